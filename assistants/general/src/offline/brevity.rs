//! Answers to questions that want only a value: "who does payroll? just the name", "number only".

use threadkeep::core::text::content_terms;
use threadkeep::dialogue::Utterance;

use crate::evidence::question::{Question, QuestionWord};
use crate::evidence::{matches_word, sentences};

/// What a question wants and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Name,
    Number,
}

/// Words of conditions, which a shortened answer would lose.
const CONDITIONS: [&str; 22] = [
    "if", "unless", "until", "till", "except", "but", "when", "while", "because", "maybe", "probably", "or", "from",
    "instead", "not", "si", "salvo", "excepto", "hasta", "pero", "cuando", "sino",
];

/// Shortens an answer to the clause that contains the value, if the message wants only that: without what is no longer true, and without
/// the other clauses of the statement. Conditions are kept.
pub(super) fn shortened(message: &str, question: &Question, answer: String) -> String {
    let Some(wanted) = wanted(message) else { return answer };
    let lines: Vec<&str> = answer.lines().collect();
    let is_replaced = |line: &&str| line.starts_with("Before that,") || line.starts_with("Antes, el ");
    let current: Vec<&str> = lines.iter().copied().filter(|line| !is_replaced(line)).collect();
    let lines = if current.is_empty() { lines } else { current };
    lines.into_iter().map(|line| shortened_line(line, question, wanted)).collect::<Vec<_>>().join("\n")
}

fn shortened_line(line: &str, question: &Question, wanted: Wanted) -> String {
    let Some((before, rest)) = line.split_once('“') else { return line.to_owned() };
    let Some((text, after)) = rest.rsplit_once('”') else { return line.to_owned() };
    match clause(text, question, wanted) {
        Some(clause) => format!("{before}“{clause}”{after}"),
        None => line.to_owned(),
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

/// Parses "just the name pls", "name only" and "solo el nombre" at the end of a message.
fn wanted(message: &str) -> Option<Wanted> {
    const FILLERS: [&str; 10] = ["the", "a", "an", "please", "pls", "plz", "el", "la", "un", "porfa"];
    let utterance = Utterance::new(message);
    let words: Vec<&str> =
        utterance.words().iter().map(|word| word.folded.as_str()).filter(|word| !FILLERS.contains(word)).collect();
    let (one, other) = match words[..] {
        [.., one, other] => (one, other),
        _ => return None,
    };
    let is_only = |word: &str| matches!(word, "only" | "just" | "solo" | "solamente" | "nomas");
    let noun = if is_only(one) { other } else { Some(one).filter(|_| is_only(other))? };
    match noun {
        "name" | "names" | "nombre" => Some(Wanted::Name),
        "number" | "figure" | "amount" | "numero" | "cifra" => Some(Wanted::Number),
        _ => None,
    }
}

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
                "You said: “Irene does the payroll” [1]",
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
            ("who does payroll?", "You said: “Hi. Ana does payroll” [1]", "You said: “Hi. Ana does payroll” [1]"),
        ] {
            assert_eq!(shortened(message, answer), expected, "{message}");
        }
    }
}
