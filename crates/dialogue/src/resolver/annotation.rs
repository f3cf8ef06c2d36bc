//! Finds what a message mentions, and what its pronouns refer to.

use super::IntentResolver;
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::extract::{Choice, Mention};
use crate::frame::{Frame, closest, is_same_entity};
use crate::intent::Slot;
use crate::utterance::Utterance;

impl IntentResolver {
    pub(super) fn annotate(&self, text: &str, dialogue: &DialogueState) -> AnnotatedUtterance {
        let utterance = Utterance::new(text);
        let utterance = match self.spelling {
            Some(correct) => utterance.corrected(correct),
            None => utterance,
        };
        let mut annotated = AnnotatedUtterance::of(utterance, &self.kinds);
        let learnt = dialogue
            .find_learnt(&annotated.utterance)
            .map(|(kind, mention)| KindMention { kind: kind.to_owned(), mention });
        let pronoun_mentions =
            self.pronouns.iter().flat_map(|(words, kind)| self.find_pronouns(&annotated, words, kind, dialogue));
        let more: Vec<KindMention> = learnt.chain(pronoun_mentions).collect();
        for mut found in more {
            self.link_to_named(&mut annotated, &mut found);
            annotated.add(found);
        }
        for found in self.find_nouns(&annotated, dialogue) {
            annotated.mentions.retain(|known| known.mention.words != found.mention.words);
            annotated.add(found);
        }
        annotated
    }

    /// Lets a pronoun for a direction refer to a place that the same message names before it: "my cousin is in Far Rockaway, when is the
    /// next A going that way from Howard Beach". That place is then the direction.
    fn link_to_named(&self, annotated: &mut AnnotatedUtterance, found: &mut KindMention) {
        let place_kind = self.place_kind.as_ref();
        let is_of_place = |(known, other): &(String, String)| *known == found.kind && Some(other) == place_kind;
        if !found.mention.is_pronoun || !self.pronoun_kinds.iter().any(is_of_place) {
            return;
        }
        let utterance = &annotated.utterance;
        let is_start = |at: usize| {
            at > 0
                && (matches!(utterance.word(at - 1), "from" | "at" | "leaving" | "the" | "off")
                    || utterance.word(at - 1) == "of" && at > 1 && utterance.word(at - 2) == "out")
        };
        let named = annotated.mentions.iter().rposition(|known| {
            let words = &known.mention.words;
            let is_one = matches!(&known.mention.choices[..], [choice] if !choice.hints.is_empty());
            let is_before = words.end <= found.mention.words.start;
            Some(&known.kind) == place_kind
                && is_one
                && is_before
                && !known.mention.is_pronoun
                && !is_start(words.start)
        });
        if let Some(named) = named {
            annotated.mentions[named].kind.clone_from(&found.kind);
            found.mention.choices = annotated.mentions[named].mention.choices.clone();
        }
    }

    /// Finds pronouns that refer to an entity, such as "there": at the end of a sentence, or after a cue. In "is there
    /// a delay", the word refers to nothing.
    pub(super) fn find_pronouns(
        &self,
        annotated: &AnnotatedUtterance,
        words: &[String],
        kind: &str,
        dialogue: &DialogueState,
    ) -> Vec<KindMention> {
        let utterance = &annotated.utterance;
        let matches_at = |at: usize| words.iter().enumerate().all(|(i, word)| utterance.word(at + i) == word);
        let refers = |at: usize| {
            let end = at + words.len();
            // In "is there an elevator at Canal St", the word refers to nothing.
            if words.len() == 1 && at > 0 && matches!(utterance.word(at - 1), "is" | "are" | "was" | "if") {
                // "What else is there?"
                let asks_what = at > 1 && matches!(utterance.word(at - 2), "else" | "what" | "more");
                return end == utterance.words().len() && !asks_what;
            }
            let closes = end == utterance.words().len() || utterance.words()[end - 1].ends_sentence;
            let follows = at > 0
                && (self.is_cue(utterance.word(at - 1))
                    || is_way_to(utterance.word(at - 1))
                    || matches!(utterance.word(at - 1), "stop" | "stops"));
            closes || words.len() > 1 || follows
        };
        let positions = (0..utterance.words().len()).filter(|at| matches_at(*at) && refers(*at));
        positions
            .filter_map(|at| {
                // In "how far is X from there", the pronoun does not refer to X.
                let named = annotated.mentions.iter().filter(|found| found.kind == kind);
                let named: Vec<&Choice> = named.flat_map(|found| &found.mention.choices).collect();
                let other = self.pronoun_kinds.iter().find(|(known, _)| known == kind).map(|(_, other)| other.as_str());
                let is_start = || matches!(utterance.word(at), "here" | "my");
                let is_place = self.place_kind.as_deref() == Some(kind);
                let start = || self.start(dialogue, kind).filter(|_| is_place && is_start());
                let is_goal =
                    || words.len() == 1 && at > 0 && is_going(utterance.word(at - 1)) && utterance.word(at) == "there";
                let goal = || self.goal(dialogue, kind).filter(|_| is_place && is_goal());
                let newest = || match other {
                    Some(other) if self.place_kind.as_deref() == Some(other) => self.heading(dialogue, kind),
                    Some(other) => dialogue.newest_among(&[kind, other]),
                    None => dialogue.newest(kind, &named),
                };
                let choice = self
                    .mentioned_before(annotated, kind, at, dialogue)
                    .or_else(goal)
                    .or_else(start)
                    .or_else(newest)?;
                let words = at..at + words.len();
                let mention = Mention { is_pronoun: true, ..Mention::new(words, vec![choice.clone()]) };
                Some(KindMention { kind: kind.to_owned(), mention })
            })
            .collect()
    }

    /// Returns where the newest trip or board goes, for "does the 6 go there?", if the place mentioned last belongs to it.
    fn goal<'a>(&self, dialogue: &'a DialogueState, kind: &str) -> Option<&'a Choice> {
        let newest = dialogue.newest(kind, &[])?;
        let is_about = |frame: &&Frame| frame.slots.0.iter().any(|(_, choice)| is_same_entity(choice, newest));
        dialogue.recent_frames().filter(is_about).find_map(|frame| {
            let intent = &self.intents[frame.intent];
            let end = intent.swaps.first().map(|(_, end)| end);
            let towards = || intent.slots.iter().find(|slot| slot.opposite.is_some()).map(|slot| &slot.name);
            frame.slots.get(end.or_else(towards)?)
        })
    }

    /// Returns where the user is, for "here" and "my station": where the newest trip or board starts, if the place mentioned last belongs
    /// to it.
    fn start<'a>(&self, dialogue: &'a DialogueState, kind: &str) -> Option<&'a Choice> {
        let newest = dialogue.newest(kind, &[])?;
        let is_about = |frame: &&Frame| frame.slots.0.iter().any(|(_, choice)| is_same_entity(choice, newest));
        dialogue.recent_frames().filter(is_about).find_map(|frame| {
            let intent = &self.intents[frame.intent];
            let start = intent.swaps.first().map(|(start, _)| start);
            let board = || {
                let has_direction = intent.slots.iter().any(|slot| slot.opposite.is_some());
                let mut required = intent.slots.iter().filter(|slot| slot.is_required && slot.kind == kind);
                required.next().map(|slot| &slot.name).filter(|_| has_direction)
            };
            frame.slots.get(start.or_else(board)?)
        })
    }

    /// Returns where the newest trip or board goes, for "that way".
    pub(super) fn heading<'a>(&self, dialogue: &'a DialogueState, kind: &str) -> Option<&'a Choice> {
        dialogue.recent_frames().find_map(|frame| {
            let intent = &self.intents[frame.intent];
            let of_kind = |slot: &&Slot| slot.kind == kind || slot.opposite.is_some();
            let direct = intent.slots.iter().filter(of_kind).find_map(|slot| frame.slots.get(&slot.name));
            direct.or_else(|| intent.swaps.first().and_then(|(_, end)| frame.slots.get(end)))
        })
    }

    /// Returns the entity that an earlier question of the same message mentions last. Of several with its name, that is the one most
    /// like the entity mentioned before.
    pub(super) fn mentioned_before<'a>(
        &self,
        annotated: &'a AnnotatedUtterance,
        kind: &str,
        at: usize,
        dialogue: &DialogueState,
    ) -> Option<&'a Choice> {
        let borders = self.borders(annotated).into_iter();
        let border = borders.map(|border| border.end).rfind(|end| *end <= at)?;
        let clause = 0..border;
        let newest = annotated.within(&clause).rfind(|found| found.kind == kind);
        match &newest?.mention.choices[..] {
            [choice] => Some(choice),
            choices => dialogue.newest(kind, &[]).and_then(|earlier| closest(choices, earlier)),
        }
    }

    pub(super) fn is_cue(&self, word: &str) -> bool {
        matches!(word, "from" | "to" | "at" | "near" | "in" | "of" | "desde" | "hasta" | "en" | "de")
            || self.intents.iter().flat_map(|intent| &intent.slots).any(|slot| slot.cues.iter().any(|cue| cue == word))
    }
}

/// Whether "there" after this word is where something goes or stops.
fn is_going(word: &str) -> bool {
    matches!(
        word,
        "go" | "goes"
            | "going"
            | "to"
            | "get"
            | "gets"
            | "getting"
            | "reach"
            | "reaches"
            | "run"
            | "runs"
            | "stop"
            | "stops"
    )
}

/// Whether a word leads to a place, so "there" after it means a place: "up there", "get there".
fn is_way_to(word: &str) -> bool {
    matches!(
        word,
        "up" | "down"
            | "over"
            | "out"
            | "back"
            | "get"
            | "gets"
            | "go"
            | "goes"
            | "going"
            | "getting"
            | "head"
            | "heading"
            | "be"
            | "arrive"
    )
}
