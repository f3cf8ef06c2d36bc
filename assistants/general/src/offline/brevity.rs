//! Answers to questions that want only a value: "who does payroll? just the name", "number only".

use threadkeep::core::text::{content_terms, fold};
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::find_times;

use super::quoting::quoted_texts;
use crate::evidence::heading::HOLDS;
use crate::evidence::question::{Question, QuestionWord, WantedValue};
use crate::evidence::terms::Terms;
use crate::evidence::{matches_word, sentences};

/// What a question wants and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Name,
    Number,
    Time,
    /// What holds, without what no longer does: "only the right one".
    Current,
}

/// Words of conditions, which a shortened answer would lose.
const CONDITIONS: [&str; 22] = [
    "if", "unless", "until", "till", "except", "but", "when", "while", "because", "maybe", "probably", "or", "from",
    "instead", "not", "si", "salvo", "excepto", "hasta", "pero", "cuando", "sino",
];

/// Shortens an answer to the value or its clause, if the message wants only that: without what is no longer true, and without the other
/// clauses of the statement. Conditions are kept.
pub(super) fn shortened(message: &str, question: &Question, answer: String) -> String {
    let Some(wanted) = wanted(message, question) else { return answer };
    let is_replaced = |line: &&str| line.starts_with("Before that,") || line.starts_with("Antes, el ");
    let (replaced, current): (Vec<&str>, Vec<&str>) = answer.lines().partition(is_replaced);
    let replaced_text = quoted_texts(&replaced.join("\n"));
    let lines = if current.is_empty() { replaced } else { current };
    lines.into_iter().map(|line| shortened_line(line, question, wanted, &replaced_text)).collect::<Vec<_>>().join("\n")
}

fn shortened_line(line: &str, question: &Question, wanted: Wanted, replaced: &str) -> String {
    let Some((before, rest)) = line.split_once(": “") else { return line.to_owned() };
    let Some((text, after)) = rest.rsplit_once('”') else { return line.to_owned() };
    // "Gwen waters the plants, but from Monday on Idris does” (now: Gwen waters the plants)"
    let holds =
        after.strip_prefix(" (").and_then(|meaning| meaning.strip_prefix(HOLDS)).and_then(|it| it.rsplit_once(") "));
    if let Some((part, number)) = holds {
        return format!("{before}: “{part}” {number}");
    }
    match new_value(text, question, wanted, replaced).or_else(|| clause(text, question, wanted)) {
        Some(clause) => format!("{before}: “{clause}”{after}"),
        None => line.to_owned(),
    }
}

/// Returns the value in a text that also repeats a value of the text that it replaced: "Priya handed it over to Tomasz". Returns `None` if
/// the text has conditions, or no such value alone.
fn new_value<'a>(text: &'a str, question: &Question, wanted: Wanted, replaced: &str) -> Option<&'a str> {
    let kinds: &[Kind] = match wanted {
        Wanted::Name => &[Kind::Name],
        Wanted::Number => &[Kind::Number],
        Wanted::Time => &[Kind::Time],
        Wanted::Current => &[Kind::Name, Kind::Time, Kind::Number],
    };
    if Utterance::new(text).words().iter().any(|word| CONDITIONS.contains(&&*word.folded)) {
        return None;
    }
    kinds.iter().find_map(|kind| {
        let old: Vec<String> = kind.values(replaced).into_iter().map(fold).collect();
        let is_old = |value: &&str| old.contains(&fold(value));
        let is_asked = |value: &&str| question.topic.iter().any(|word| matches_word(word, value));
        let (repeated, new): (Vec<&str>, Vec<&str>) = kind.values(text).into_iter().partition(is_old);
        let new: Vec<&str> = new.into_iter().filter(|value| !is_asked(value)).collect();
        match new[..] {
            [only] if !repeated.is_empty() => Some(only),
            _ => None,
        }
    })
}

/// The kind of a value in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Number,
    Time,
}

impl Kind {
    /// Returns the values of a text. The first word of a sentence is a name only if the sentence names it again or a verb follows.
    fn values(self, text: &str) -> Vec<&str> {
        let utterance = Utterance::new(text);
        let words = utterance.words();
        match self {
            Self::Time => find_times(&utterance)
                .into_iter()
                .filter_map(|found| {
                    let first = words.get(found.words.start)?;
                    let start = match &*first.folded {
                        "on" | "at" | "by" | "el" | "en" | "to" => words.get(found.words.start + 1)?.span.start,
                        _ => first.span.start,
                    };
                    Some(&text[start..words.get(found.words.end - 1)?.span.end])
                })
                .collect(),
            Self::Number => text
                .split_whitespace()
                .map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()))
                .filter(|piece| piece.contains(|c: char| c.is_ascii_digit()))
                .collect(),
            Self::Name => words
                .iter()
                .map(|word| &text[word.span.clone()])
                .filter(|word| {
                    word.starts_with(char::is_uppercase) && word.chars().count() > 2 && !content_terms(word).is_empty()
                })
                .collect(),
        }
    }
}

/// Returns the only clause of a text that contains all words of the question that the text contains, and a value. Returns `None` if the
/// text has conditions.
fn clause<'a>(text: &'a str, question: &Question, wanted: Wanted) -> Option<&'a str> {
    let utterance = Utterance::new(text);
    if utterance.words().iter().any(|word| CONDITIONS.contains(&&*word.folded)) {
        return None;
    }
    let count = |clause: &str| question.topic.iter().filter(|word| contains(word, clause)).count();
    let all = count(text);
    let clauses =
        sentences(text).flat_map(|sentence| sentence.split([',', ';', ':'])).flat_map(|part| part.split(" and "));
    let clauses = clauses.flat_map(|part| part.split(" y ")).map(str::trim);
    let has_value = |clause: &&str| match wanted {
        Wanted::Name => names_other(clause, question),
        Wanted::Number => clause.contains(|c: char| c.is_ascii_digit()),
        Wanted::Time => Terms::new(clause).has_time(),
        Wanted::Current => false,
    };
    let found: Vec<&str> = clauses.filter(|clause| all > 0 && count(clause) == all).filter(has_value).collect();
    match found[..] {
        [only] => Some(only.trim_end_matches(['.', '!'])),
        _ => None,
    }
}

/// Whether a clause contains a capitalized word that is not a word of the question.
fn names_other(clause: &str, question: &Question) -> bool {
    let is_name = |word: &str| {
        word.starts_with(char::is_uppercase)
            && !content_terms(word).is_empty()
            && !question.topic.iter().any(|asked| matches_word(asked, word))
    };
    clause.split_whitespace().any(is_name)
}

fn contains(word: &QuestionWord, clause: &str) -> bool {
    clause.split_whitespace().any(|said| matches_word(word, said))
}

/// Parses "just the name pls", "name only", "only the right one", "solo el nombre" and "one date please" in a part of a message.
fn wanted(message: &str, question: &Question) -> Option<Wanted> {
    const OPENINGS: [&str; 20] = [
        "and", "but", "please", "pls", "plz", "tell", "give", "me", "say", "i", "want", "need", "dime", "dame",
        "quiero", "y", "pero", "porfa", "with", "now",
    ];
    const ONLY: [&str; 8] = ["only", "just", "solo", "solamente", "nomas", "unicamente", "sola", "nothing"];
    /// Words that make "just" a time: "what did I just say".
    const SAYING: [&str; 12] = [
        "said",
        "told",
        "asked",
        "say",
        "tell",
        "ask",
        "wondering",
        "checking",
        "curious",
        "asking",
        "got",
        "mentioned",
    ];
    let kind = |words: &[&str]| {
        words.iter().find_map(|word| match *word {
            "name" | "names" | "nombre" | "who" | "person" => Some(Wanted::Name),
            "number" | "figure" | "amount" | "code" | "price" | "numero" | "cifra" | "importe" | "codigo" => {
                Some(Wanted::Number)
            }
            "date" | "day" | "time" | "hour" | "fecha" | "dia" | "hora" | "weekday" => Some(Wanted::Time),
            _ => None,
        })
    };
    let parts = message.split(['?', ',', ';', ':', '.', '!', '(', ')', '–', '—']).flat_map(|part| part.split(" - "));
    parts.filter(|part| !part.trim().is_empty()).find_map(|part| {
        let utterance = Utterance::new(part);
        let all: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
        let start = all.iter().take_while(|word| OPENINGS.contains(word)).count();
        let words = &all[start..];
        let polite = matches!(words.last(), Some(&("please" | "pls" | "plz" | "thanks" | "thx" | "porfa")));
        let ends = &words[..words.len() - usize::from(polite)];
        let is_first = words.first().is_some_and(|first| ONLY.contains(first));
        let is_last = ends.last().is_some_and(|last| ONLY.contains(last) && ends.len() <= MAX_WORDS_BEFORE_ONLY);
        // "One date please"
        let is_one =
            matches!(words.first(), Some(&("one" | "un" | "una"))) && words.len() <= 3 && kind(words).is_some();
        let is_short = words.len() > 1 && words.len() <= MAX_WORDS && !words.iter().any(|word| SAYING.contains(word));
        if !is_short || !(is_first || is_last || is_one) {
            return None;
        }
        let asked = Utterance::new(message);
        let asks_person = asked.words().iter().take(2).any(|word| matches!(&*word.folded, "who" | "whos" | "quien"));
        Some(kind(words).unwrap_or(match question.wanted {
            WantedValue::Time => Wanted::Time,
            WantedValue::Number => Wanted::Number,
            WantedValue::Any if asks_person => Wanted::Name,
            WantedValue::Any => Wanted::Current,
        }))
    })
}

/// The maximum number of words in a part of a message that wants only something.
const MAX_WORDS: usize = 8;
/// The maximum number of words in such a part that ends with "only".
const MAX_WORDS_BEFORE_ONLY: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_shortened_to_the_value() {
        let shortened = |message: &str, answer: &str| {
            shortened(
                message,
                &Question::new(message.split(['?', ',']).next().unwrap_or_default(), ""),
                answer.to_owned(),
            )
        };
        for (message, answer, expected) in [
            (
                "who does payroll? just the name pls",
                "You said: “update, Pablo has left. Irene does the payroll” [1]\nBefore that, you said: “Pablo does the payroll” [2]",
                "You said: “Irene” [1]",
            ),
            (
                "which hotel? name only",
                "You said: “scrap that, the hotel is Vila Norte” [1]",
                "You said: “the hotel is Vila Norte” [1]",
            ),
            (
                "what's the Heron budget? number only",
                "You said: “lead is Farah, Heron budget 900” [1]",
                "You said: “Heron budget 900” [1]",
            ),
            // The name is not in the clause with the words of the question.
            (
                "who has the key? name only",
                "You said: “the key is safe, Bob has it” [1]",
                "You said: “the key is safe, Bob has it” [1]",
            ),
            (
                "who drives? name only",
                "You said: “Ana drives, unless Bob does” [1]",
                "You said: “Ana drives, unless Bob does” [1]",
            ),
            (
                "who runs the newsletter now? just the name thx",
                "You said: “update - Priya handed the newsletter over to Tomasz” [1]\nBefore that, you said: “Priya runs the newsletter” [2]",
                "You said: “Tomasz” [1]",
            ),
            (
                "when's the vet? only the date thats right now",
                "You said: “ah no, actually its 12 June” [1]\nBefore that, you said: “the vet is on 11 June at 9:30” [2]",
                "You said: “ah no, actually its 12 June” [1]",
            ),
            (
                "locker code? only the right one",
                "You said: “no wait, its 4417, not 4471” [1]\nBefore that, you said: “locker code is 4471” [2]",
                "You said: “no wait, its 4417, not 4471” [1]",
            ),
            (
                "what did I just say?",
                "You said: “b” [1]\nBefore that, you said: “a” [2]",
                "You said: “b” [1]\nBefore that, you said: “a” [2]",
            ),
            ("who does payroll?", "You said: “Hi. Ana does payroll” [1]", "You said: “Hi. Ana does payroll” [1]"),
        ] {
            assert_eq!(shortened(message, answer), expected, "{message}");
        }
    }
}
