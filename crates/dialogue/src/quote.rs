//! Answers that quote earlier messages and documents.

use std::collections::HashSet;

use threadkeep_core::text::{content_terms, indexed_terms};
use threadkeep_core::{ChatMessage, Role};

use crate::Turn;
use crate::phrases::{Phrases, fill};
use crate::utterance::folded_words;

/// The maximum number of quotations in an answer.
const MAX_QUOTATIONS: usize = 3;
/// Passages that score below this share of the best score are not quoted.
const MIN_SHARE_OF_BEST: f64 = 0.6;
/// The maximum length of a quotation, in characters.
const MAX_CHARACTERS: usize = 600;

/// A passage of a message or document that may answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The introduction of the quotation: "You said on 4 May 2026:", "guide.md, line 12:".
    pub origin: String,
    /// The text.
    pub text: String,
}

impl Passage {
    /// Returns the passages that are relevant to a question, best first: those that contain at least half of its
    /// content words, in any inflection. Rare words weigh more.
    #[must_use]
    pub fn best<'a>(question: &str, passages: &'a [Self]) -> Vec<&'a Self> {
        let words: Vec<Vec<String>> = content_words(question);
        let terms: Vec<HashSet<String>> =
            passages.iter().map(|passage| indexed_terms(&passage.text).into_iter().collect()).collect();
        let contains_word = |terms: &HashSet<String>, word: &[String]| word.iter().any(|stem| terms.contains(stem));
        let weights: Vec<f64> = words
            .iter()
            .map(|word| {
                let matching_passages = terms.iter().filter(|terms| contains_word(terms, word)).count();
                (1.0 + passages.len() as f64 / matching_passages.max(1) as f64).ln()
            })
            .collect();
        let mut scored: Vec<(f64, &Self)> = Vec::new();
        for (passage, terms) in passages.iter().zip(&terms) {
            let matched: Vec<usize> = (0..words.len()).filter(|at| contains_word(terms, &words[*at])).collect();
            if !matched.is_empty() && matched.len() * 2 >= words.len() {
                scored.push((matched.iter().map(|at| weights[*at]).sum(), passage));
            }
        }
        // Of passages with equal scores, the newer one comes first. The input is ordered from old to new.
        scored.reverse();
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let threshold = scored.first().map_or(0.0, |(score, _)| score * MIN_SHARE_OF_BEST);
        let relevant = scored.into_iter().take_while(|(score, _)| *score >= threshold).map(|(_, passage)| passage);
        relevant.take(MAX_QUOTATIONS).collect()
    }

    fn quote(&self) -> String {
        let text = self.text.trim();
        let text = match text.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        format!("{} “{text}”", self.origin)
    }
}

/// Answers a question by quoting earlier messages and other passages; acknowledges statements.
pub(crate) fn answer_by_quoting(turn: &Turn<'_>, others: Vec<Passage>, phrases: &Phrases) -> String {
    let question = turn.question();
    if !is_question(&question) {
        return phrases.noted.clone();
    }
    let mut passages = earlier_statements(turn, phrases);
    passages.extend(others);
    let best = Passage::best(&question, &passages);
    if best.is_empty() {
        return phrases.nothing_said.clone();
    }
    best.into_iter().map(Passage::quote).collect::<Vec<_>>().join("\n")
}

/// Returns the user's earlier statements in the context, and recalled statements.
fn earlier_statements(turn: &Turn<'_>, phrases: &Phrases) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    for message in turn.earlier() {
        match message.role {
            Role::System => passages.extend(recalled(message, phrases)),
            Role::User => {
                let text = message.plain_text();
                if !is_question(&text) {
                    passages.push(Passage { origin: phrases.you_said.clone(), text });
                }
            }
            Role::Assistant | Role::Tool => {}
        }
    }
    passages
}

/// Parses lines of the form `- INSTANT (ROLE[, AUTHOR]): TEXT`, in which a context renders recalled messages; continuation
/// lines are indented.
fn recalled(message: &ChatMessage, phrases: &Phrases) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut continues = false;
    for line in message.plain_text().lines() {
        if let Some((phrase, day, text)) = recalled_line(line, phrases) {
            passages.push(Passage { origin: fill(phrase, &[("day", day)]), text: text.to_owned() });
            continues = true;
        } else if let Some(last) = passages.last_mut().filter(|_| continues && line.starts_with([' ', '\t'])) {
            last.text.push('\n');
            last.text.push_str(line.trim());
        } else {
            continues = false;
        }
    }
    passages.retain(|passage| !is_question(&passage.text));
    passages
}

fn recalled_line<'a>(line: &'a str, phrases: &'a Phrases) -> Option<(&'a str, &'a str, &'a str)> {
    let (instant, rest) = line.strip_prefix("- ")?.split_once(" (")?;
    let (day, _time) = instant.split_once('T')?;
    instant.parse::<threadkeep_core::Timestamp>().ok()?;
    let (speaker, text) = rest.split_once("): ")?;
    let role = speaker.split(',').next()?;
    let phrase = match role {
        "user" => &phrases.you_said_on,
        "assistant" => &phrases.i_said_on,
        _ => return None,
    };
    Some((phrase, day, text))
}

fn content_words(question: &str) -> Vec<Vec<String>> {
    let words = content_terms(question).into_iter().filter(|(word, _)| !REQUEST_WORDS.contains(&word.as_str()));
    let mut seen = HashSet::new();
    words.filter(|(word, _)| seen.insert(word.clone())).map(|(_, stems)| stems).collect()
}

/// Words of requests that do not belong to a topic.
const REQUEST_WORDS: [&str; 10] =
    ["tell", "remind", "say", "said", "know", "remember", "dime", "dije", "recuerdame", "recuerdas"];

/// First words of questions, normalized.
const QUESTION_WORDS: [&str; 64] = [
    "what",
    "whats",
    "when",
    "whens",
    "where",
    "wheres",
    "who",
    "whos",
    "whose",
    "whom",
    "which",
    "why",
    "how",
    "do",
    "did",
    "does",
    "is",
    "are",
    "was",
    "were",
    "am",
    "can",
    "could",
    "have",
    "has",
    "had",
    "will",
    "would",
    "should",
    "tell",
    "remind",
    "and",
    "que",
    "cuando",
    "donde",
    "quien",
    "cual",
    "cuales",
    "como",
    "cuanto",
    "cuantos",
    "dime",
    "dame",
    "repiteme",
    "recuerdame",
    "sabes",
    "find",
    "search",
    // As typed in chats.
    "wat",
    "wats",
    "wot",
    "wots",
    "hows",
    "wen",
    "wens",
    "wher",
    "whr",
    "wich",
    "dnd",
    "cdo",
    "kien",
    "pasame",
    "recuerdas",
    "acuerdas",
];

/// First words of questions that also start statements without a subject: "was at the dentist", "have an appointment".
/// A message that starts with one of these words is a question if a subject follows.
const AUXILIARIES: [&str; 8] = ["am", "was", "were", "have", "has", "had", "did", "will"];
const SUBJECTS: [&str; 28] = [
    "i",
    "you",
    "we",
    "they",
    "he",
    "she",
    "it",
    "there",
    "this",
    "that",
    "these",
    "those",
    "the",
    "my",
    "your",
    "our",
    "his",
    "her",
    "their",
    "its",
    "any",
    "anyone",
    "anything",
    "someone",
    "somebody",
    "something",
    "everyone",
    "nobody",
];
/// Words that start a question after a preposition, or an indirect question.
const INTERROGATIVES: [&str; 16] = [
    "what", "when", "where", "which", "who", "whom", "whose", "how", "que", "cuando", "donde", "quien", "quienes",
    "cual", "cuanto", "cuantos",
];
/// Spellings of question words as people type them in a hurry, with the words that they stand for. Names and other words are not
/// among them: "Ke leads Falcon" and "hw due Friday" are statements.
const MISSPELLINGS: [(&str, &str); 21] = [
    ("wat", "what"),
    ("wats", "whats"),
    ("waht", "what"),
    ("wot", "what"),
    ("wots", "whats"),
    ("wut", "what"),
    ("wht", "what"),
    ("wehn", "when"),
    ("whn", "when"),
    ("wher", "where"),
    ("wheres", "where"),
    ("hwo", "how"),
    ("whihc", "which"),
    ("wich", "which"),
    ("woh", "who"),
    ("qe", "que"),
    ("kien", "quien"),
    ("kuando", "cuando"),
    ("qando", "cuando"),
    ("dond", "donde"),
    ("qien", "quien"),
];
/// Words before a question that do not change it.
const OPENINGS: [&str; 18] = [
    "wait", "hm", "hmm", "please", "so", "ok", "okay", "well", "hey", "hi", "hello", "oh", "um", "sorry", "oye",
    "bueno", "pues", "hola",
];
/// The maximum number of words in a message that is a question because a clause after the first one asks.
const MAX_WORDS_WITH_CLAUSE: usize = 9;
/// The maximum number of words of a question that starts with "and".
const MAX_CONTINUATION_WORDS: usize = 5;

/// Whether a message is a question, in English or Spanish: by its question mark, or by its first words after "please".
#[must_use]
pub fn is_question(text: &str) -> bool {
    if text.trim_end().ends_with('?') {
        return true;
    }
    let mut words = folded_words(text);
    for word in &mut words {
        if let Some((_, meant)) = MISSPELLINGS.iter().find(|(typed, _)| typed == word) {
            (*meant).clone_into(word);
        }
    }
    let is_interrogative = |word: &String| INTERROGATIVES.contains(&word.as_str());
    // "… if you could kindly tell me which …", "the billing service, who owns it"
    let asks_indirectly = words.windows(3).any(|three| {
        matches!((three[0].as_str(), three[1].as_str()), ("tell" | "remind", "me") | ("me", "know"))
            && is_interrogative(&three[2])
    });
    if asks_indirectly
        || text.split(',').skip(1).map(folded_words).any(|clause| {
            // "…, qué frío" exclaims, and "…, que se va" gives a reason.
            clause.first().is_some_and(|first| is_interrogative(first) && first != "que")
        }) && words.len() <= MAX_WORDS_WITH_CLAUSE
    {
        return true;
    }
    let is_opening = |word: &&String| OPENINGS.contains(&word.as_str());
    let start = words.iter().take_while(is_opening).count();
    let word = |at: usize| words.get(start + at).map_or("", String::as_str);
    let asks = |word: &str| QUESTION_WORDS.contains(&word) && !AUXILIARIES.contains(&word);
    match word(0) {
        // "by when", "de qué"
        "by" | "at" | "in" | "on" | "for" | "from" | "to" | "with" | "about" | "of" | "a" | "de" | "en" | "con"
        | "para" | "por"
            if INTERROGATIVES.contains(&word(1)) =>
        {
            true
        }
        // "a q hora"
        "a" | "de" | "en" | "con" | "para" | "por" if word(1) == "q" => true,
        first if AUXILIARIES.contains(&first) => SUBJECTS.contains(&word(1)),
        "remind" => word(1) == "me" && word(2) != "to",
        "and" => {
            // "And our cleaner is Yusuf" states something.
            let states =
                words[start..].iter().skip(2).any(|word| matches!(&**word, "is" | "are" | "was" | "were" | "es"));
            words.len() - start <= MAX_CONTINUATION_WORDS && !states
                || asks(word(1))
                || AUXILIARIES.contains(&word(1)) && SUBJECTS.contains(&word(2))
        }
        first => QUESTION_WORDS.contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_question_words_ask_but_names_do_not() {
        assert!(is_question("wat is the door code") && is_question("hwo much did i quote"));
        assert!(!is_question("hw due friday") && !is_question("Ke leads Falcon now"));
    }

    #[test]
    fn questions_and_statements_are_distinguished() {
        for question in [
            "Who has the keys",
            "keys?",
            "Please tell me about the tent",
            "¿Dónde está?",
            "What's up",
            "the tent, where is it",
        ] {
            assert!(is_question(question), "{question}");
        }
        for statement in [
            "I have the keys.",
            "The tent is blue",
            "had lunch with Ana",
            "was at the dentist today",
            "remind me to call Ana",
            "and the tent in the garage is also blue",
            "trabajo en una panadería, qué madrugones",
            "I met Ana at the station in the old town on my way home today, who told me about it",
            "",
        ] {
            assert!(!is_question(statement), "{statement}");
        }
    }
}
