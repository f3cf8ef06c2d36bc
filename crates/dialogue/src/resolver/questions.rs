//! Splits a message into its questions.

use std::ops::Range;

use super::{Class, IntentResolver, MAX_QUESTIONS, MIN_SPLIT_SCORE};
use crate::acts::Act;
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::frame::{Frame, OpenSlot, is_correction};
use crate::utterance::Utterance;

/// The minimum score at which part of a message is a separate question that is answered without slots and calls.
const MIN_REFERRAL_SCORE: i64 = 900;
/// The minimum score of both parts of a split message, in percent of the score of the whole message.
const MIN_PERCENT_OF_WHOLE: i64 = 80;
/// The value of [`MIN_PERCENT_OF_WHOLE`] if the message, interpreted as one question, leaves mentions unused.
const MIN_PERCENT_IF_UNUSED: i64 = 50;

/// Words of thanks, and of taking leave.
const THANKS: [&str; 10] =
    ["thank", "thanks", "thx", "thnx", "cheers", "ta", "gracias", "tysm", "appreciated", "appreciate"];
const FAREWELLS: [&str; 7] = ["bye", "goodbye", "byebye", "cya", "ciao", "adios", "goodnight"];
/// Words of questions and requests.
const ASKING: [&str; 44] = [
    "what", "whats", "when", "whens", "where", "wheres", "how", "hows", "which", "who", "why", "is", "are", "does",
    "do", "can", "could", "will", "would", "should", "next", "need", "want", "show", "tell", "find", "get", "take",
    "give", "go", "from", "to", "any", "there", "again", "instead", "save", "remember", "call", "also", "but", "same",
    "check", "avoid",
];

impl IntentResolver {
    /// Returns the act of a message that only thanks or takes leave: "ok thank u, have a good shift everyone", "great, D then. bye!"
    pub(super) fn closing_act(&self, annotated: &AnnotatedUtterance) -> Option<Act> {
        let utterance = &annotated.utterance;
        let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&word.folded.as_str()));
        if self.place_kind.is_none() || utterance.text().contains('?') || has(&ASKING) {
            return None;
        }
        let is_statement = || annotated.mentions.iter().any(|found| !found.mention.is_incidental);
        match (has(&FAREWELLS), has(&THANKS)) {
            (true, _) => Some(Act::Leave),
            (false, true) if !is_statement() => Some(Act::Thank),
            _ => None,
        }
    }

    /// Returns the frames of a question about several entities of one kind: "is A accessible and B" asks about each.
    pub(super) fn one_for_each(
        &self,
        frame: Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
    ) -> Vec<Frame> {
        let intent = &self.intents[frame.intent];
        let mut required = intent.slots.iter().filter(|slot| slot.is_required && !slot.is_text);
        let (Some(slot), None) = (required.next(), required.next()) else { return vec![frame] };
        if intent.is_about_user || frame.open.iter().any(|open| open.choices.is_empty()) {
            return vec![frame];
        }
        let is_joined = |found: &&KindMention| {
            let start = found.mention.words.start;
            let said = annotated.utterance.said(found.mention.words.clone());
            let before = |steps: usize| start.checked_sub(steps).map_or("", |at| annotated.utterance.word(at));
            let is_conjunction = |word: &str| matches!(word, "and" | "or" | "n" | "y" | "plus" | "also" | "&");
            let is_listed = (1..=3).any(|steps| is_conjunction(before(steps)));
            found.kind == slot.kind && is_listed && frame.unused.iter().any(|unused| unused == said)
        };
        let others: Vec<&KindMention> = annotated.within(clause).filter(is_joined).take(MAX_QUESTIONS - 1).collect();
        let mut frames = vec![frame.clone()];
        for other in others {
            let said = annotated.utterance.said(other.mention.words.clone());
            let choices = &other.mention.choices;
            let narrowed = slot.narrows.as_ref().map(|narrows| narrows(choices, &frame.slots)).unwrap_or_default();
            let choices = if narrowed.is_empty() { choices } else { &narrowed };
            let mut next = frame.repeated();
            next.aspect = frame.aspect;
            match &choices[..] {
                [choice] => next.slots.set(&slot.name, choice.clone()),
                _ => {
                    next.slots.put(&slot.name, None);
                    let index = intent.slots.iter().position(|known| known.name == slot.name).unwrap_or_default();
                    next.open =
                        vec![OpenSlot { slot: index, ambiguous_text: said.to_owned(), choices: choices.clone() }];
                }
            }
            for known in &mut frames {
                known.unused.retain(|unused| unused != said);
            }
            frames.push(next);
        }
        frames
    }

    /// Returns the frames of a question that compares an aspect of the last trip with the trip from or to another place: "is that more
    /// stops than from Grand Central?"
    pub(super) fn compared(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Vec<Frame>> {
        let aspect = frame.aspect?;
        let kind = self.place_kind.as_ref()?;
        let than = clause.clone().find(|at| annotated.utterance.word(*at) == "than")?;
        annotated.within(&(than..clause.end)).find(|found| found.kind == *kind)?;
        let last = dialogue.recent_frames().find(|last| last.intent == frame.intent && last.open.is_empty())?;
        let last = Frame { aspect: Some(aspect), ..last.repeated() };
        Some(vec![last, frame.clone()])
    }

    /// Whether a clause only corrects the last question: "I meant Morgan, not Jefferson".
    pub(super) fn corrects(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> bool {
        const MAX_WORDS: usize = 12;
        !dialogue.frames.is_empty()
            && clause.len() <= MAX_WORDS
            && is_correction(annotated, clause)
            && self.count_required_mentions(annotated, clause) > 0
    }

    /// Splits a message at the ends of sentences and at conjunctions if both sides are separate questions.
    pub(super) fn clauses(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Vec<Range<usize>> {
        let mut rest = 0..annotated.utterance.words().len();
        let mut clauses = Vec::new();
        for Border { end, start, is_comma } in self.borders(annotated) {
            if clauses.len() + 1 == MAX_QUESTIONS || end <= rest.start || start >= rest.end {
                continue;
            }
            let (left, right) = (rest.start..end, start..rest.end);
            let corrects = self.corrects(annotated, &left, dialogue);
            // "I live at Balham, how do I get to Bank" is a statement to be saved, and a question.
            // "Home is Balham, work is Bank" is two statements, "my job is at Bank, keep that as work" is one.
            let names_place = |clause: &Range<usize>| {
                annotated
                    .within(clause)
                    .any(|found| Some(&found.kind) == self.place_kind.as_ref() && !found.mention.is_pronoun)
            };
            // "My usual line is the Jubilee, home is Balham" too.
            let says_what = |clause: &Range<usize>| {
                let ranked = self.rank(annotated, clause, dialogue);
                self.statement_frame(annotated, clause, dialogue, &ranked).is_some()
            };
            let both_state = || {
                (names_place(&left) || says_what(&left))
                    && (names_place(&right) || says_what(&right))
                    && self.states(annotated, &right, dialogue)
            };
            let states = || self.states(annotated, &left, dialogue) && (self.asks(annotated, &right) || both_state());
            if self.place_kind.is_some() && says_what(&left) && says_what(&right) {
                clauses.push(left);
                rest = right;
                continue;
            }
            if is_comma && !corrects && !states() {
                continue;
            }
            if self.place_kind.is_some()
                && !corrects
                && !self.asks(annotated, &left)
                && self.lacks_a_slot(annotated, &left, dialogue)
            {
                continue;
            }
            let mut parts = [&left, &right].map(|clause| self.score_as_question(annotated, clause, dialogue));
            if corrects {
                parts[0] = parts[0].or(parts[1].filter(|_| self.asks(annotated, &right)));
            }
            let whole = self.best_score(annotated, &rest);
            // If the text as one question leaves mentions unused, it is more likely to contain two questions.
            let least = || {
                if self.leaves_mentions(annotated, &rest, dialogue) {
                    MIN_PERCENT_IF_UNUSED
                } else {
                    MIN_PERCENT_OF_WHOLE
                }
            };
            if let [Some(left_score), Some(right_score)] = parts
                && (corrects || left_score.min(right_score) * 100 > whole * least())
            {
                clauses.push(left);
                rest = right;
            }
        }
        clauses.push(rest);
        clauses
    }

    /// Whether a clause is only a statement about the user, which the assistant should save.
    fn states(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, dialogue: &DialogueState) -> bool {
        let ranked = self.rank(annotated, clause, dialogue);
        let best = ranked.first().filter(|(_, score)| *score >= MIN_SPLIT_SCORE);
        best.is_some_and(
            |(class, _)| matches!(self.classes[*class], Class::Intent(intent) if self.intents[intent].is_about_user),
        ) || self.statement_frame(annotated, clause, dialogue, &ranked).is_some()
    }

    /// Whether a clause starts like a question.
    pub(super) fn asks(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        const ASKING: &[&str] = &[
            "is", "are", "does", "do", "can", "which", "what", "whats", "when", "whens", "where", "how", "any", "next",
            "wheres", "hows", "would", "will", "could", "should", "best", "fastest", "quickest",
        ];
        ASKING.contains(&annotated.utterance.word(clause.start))
    }

    /// Whether a clause starts with a question word, so that it states nothing.
    pub(super) fn asks_openly(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        const ASKING: [&str; 10] =
            ["where", "wheres", "what", "whats", "which", "when", "whens", "how", "hows", "whose"];
        self.place_kind.is_some() && ASKING.contains(&annotated.utterance.word(clause.start))
    }

    /// Returns a clause without the interjections that precede a question: "ugh, what about the Q".
    pub(super) fn without_interjections(&self, annotated: &AnnotatedUtterance, clause: Range<usize>) -> Range<usize> {
        const MIN_REST: usize = 2;
        if self.place_kind.is_none() {
            return clause;
        }
        let mut start = clause.start;
        loop {
            let length = interjection(&annotated.utterance, start);
            let words = start..start + length;
            let is_mentioned = annotated.mentions.iter().any(|found| {
                !found.mention.is_incidental
                    && found.mention.words.start < words.end
                    && words.start < found.mention.words.end
            });
            if length == 0 || is_mentioned || words.end + MIN_REST > clause.end {
                return start..clause.end;
            }
            start = words.end;
        }
    }

    /// Whether the best intent of a clause lacks the value of a slot, so the clause is a condition on what
    /// follows: "stroller here, need elevators".
    fn lacks_a_slot(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, dialogue: &DialogueState) -> bool {
        let ranked = self.rank(annotated, clause, dialogue);
        let Some((class, _)) = ranked.first() else { return false };
        let Class::Intent(intent) = self.classes[*class] else { return false };
        let frame = self.new_frame(intent, *class, annotated, clause, dialogue);
        frame.open.iter().any(|open| open.choices.is_empty())
    }

    /// Whether the best intent of a clause leaves mentions unused.
    pub(super) fn leaves_mentions(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> bool {
        let ranked = self.rank(annotated, clause, dialogue);
        let Some((class, _)) = ranked.first() else { return false };
        match self.classes[*class] {
            Class::Intent(intent) => !self.new_frame(intent, *class, annotated, clause, dialogue).unused.is_empty(),
            _ => false,
        }
    }

    pub(super) fn best_score(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> i64 {
        let features = self.classifier.features(&annotated.tokens(clause));
        self.classifier.scores(&features).first().map_or(0, |best| best.score)
    }

    /// Returns the score of a clause if it is a separate question.
    pub(super) fn score_as_question(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<i64> {
        let features = self.classifier.features(&annotated.tokens(clause));
        let best = self.classifier.scores(&features).into_iter().next()?;
        let is_intent = match &self.classes[best.class] {
            Class::Intent(intent) => {
                let intent = &self.intents[*intent];
                // A text slot may contain sentences and conjunctions.
                !intent.slots.iter().any(|slot| slot.is_text) || intent.is_about_user
            }
            Class::Aspect(_) => true,
            Class::Act(Act::Reverse | Act::Again) => !dialogue.frames.is_empty(),
            Class::Answer(answer) => self.referrals.contains(answer) && best.score >= MIN_REFERRAL_SCORE,
            Class::Act(_) | Class::OffTopic | Class::Absent => false,
        };
        let mentions = annotated.within(clause).count();
        let has_content = self.has_own_words(annotated, clause) || mentions > 1;
        let is_question = is_intent && best.score >= MIN_SPLIT_SCORE && has_content;
        is_question.then_some(best.score)
    }

    /// Returns the positions where one question may end and another start. The words of a mention belong together.
    pub(super) fn borders(&self, annotated: &AnnotatedUtterance) -> Vec<Border> {
        let utterance = &annotated.utterance;
        let is_conjunction =
            |word: &str| self.phrases.iter().flat_map(|phrases| &phrases.conjunctions).any(|known| known == word);
        let is_within = |at: usize| {
            let mut mentions = annotated.mentions.iter().map(|found| &found.mention.words);
            mentions.any(|words| words.start < at && at < words.end)
        };
        let words = utterance.words().iter().enumerate().filter(|(at, _)| !is_within(at + 1));
        let borders = words.filter_map(|(at, word)| {
            let next = utterance.words().get(at + 1).map_or(word.span.end, |next| next.span.start);
            let between = &utterance.text()[word.span.end..next];
            // "Home: 125 St" is one statement.
            let is_stated = || {
                let mut ending = annotated.mentions.iter().filter(|found| found.mention.words.end == at + 1);
                ending.any(|found| self.stating_intent(&found.kind).is_some())
            };
            if word.ends_sentence || between.starts_with(": ") && !is_stated() {
                Some(Border { end: at + 1, start: at + 1, is_comma: false })
            } else if between.contains(',') {
                Some(Border { end: at + 1, start: at + 1, is_comma: true })
            } else {
                is_conjunction(&word.folded).then_some(Border { end: at, start: at + 1, is_comma: false })
            }
        });
        borders.collect()
    }
}

/// A position where one question may end and another start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Border {
    /// The end of the first question.
    pub(super) end: usize,
    /// The start of the second one.
    pub(super) start: usize,
    /// Whether only a comma separates them.
    pub(super) is_comma: bool,
}

/// Words that say nothing about a question after them.
const INTERJECTIONS: &[&str] = &[
    "ok", "okay", "okey", "k", "kk", "so", "um", "umm", "uh", "uhm", "er", "hmm", "hm", "hmmm", "mm", "ugh", "oh",
    "ooh", "ah", "aw", "hey", "yo", "hiya", "lol", "haha", "hah", "alright", "aight", "cool", "sweet", "awesome",
    "wow", "omg", "well", "nah", "nope", "righto", "lame",
];
/// Expressions that say nothing about a question after them, if a comma or the end of a sentence follows.
const SEPARATE_INTERJECTIONS: &[&str] = &[
    "good",
    "right",
    "fine",
    "noted",
    "nice",
    "great",
    "perfect",
    "lovely",
    "brilliant",
    "wonderful",
    "excellent",
    "thanks",
    "thank you",
    "cheers",
    "ta",
    "sure",
    "yes",
    "gotcha",
    "got it",
    "i see",
    "damn",
    "dang",
    "blimey",
    "crikey",
    "phew",
    "sound",
    "fair enough",
    "all right",
    "very good",
    "very well",
    "good morning",
    "good afternoon",
    "good evening",
    "morning",
    "evening",
    "hi",
    "hello",
    "hi there",
    "hello there",
    "excuse me",
    "quick one",
    "quick question",
    "one more",
    "one more thing",
    "anyway",
    "thanks a lot",
    "thank you so much",
    "many thanks",
    "good to know",
    "no worries",
    "understood",
    "interesting",
];

/// Returns the number of words of an interjection at a position; 0 if there is none.
fn interjection(utterance: &Utterance, at: usize) -> usize {
    if INTERJECTIONS.contains(&utterance.word(at)) {
        return 1;
    }
    let ends_at = |end: usize| {
        let words = utterance.words();
        let (Some(last), Some(next)) = (words.get(end - 1), words.get(end)) else { return false };
        last.ends_sentence || utterance.text()[last.span.end..next.span.start].contains([',', '-', '–', ':', '.'])
    };
    let lengths = SEPARATE_INTERJECTIONS.iter().filter_map(|phrase| {
        let count = phrase.split(' ').count();
        let is_here = phrase.split(' ').enumerate().all(|(offset, word)| utterance.word(at + offset) == word);
        (is_here && ends_at(at + count)).then_some(count)
    });
    lengths.max().unwrap_or(0)
}
