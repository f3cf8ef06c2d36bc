//! Compares values that the user stated: "which is cheaper?", "who came first?", "which of the two was earlier?"

use threadkeep::core::text::Language;
use threadkeep::dialogue::time::{Period, find_times};
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

use super::arithmetic::plain_numbers;
use super::quoting::quoted_texts;
use crate::evidence::sentences;

/// The maximum number of words in a question that compares.
const MAX_WORDS: usize = 14;
/// How many of the user's newest statements are compared.
const MAX_STATEMENTS: usize = 4;

/// What a question compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Number,
    Day,
}

/// Answers a question for the smallest or the largest of several stated values; `None` if the message is no such question.
pub(super) fn describe(text: &str, earlier: &[ChatMessage], language: Language) -> Option<String> {
    let (measure, is_largest) = comparison(text)?;
    let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant).map(ChatMessage::plain_text);
    let quoted = reply.map(|reply| quoted_texts(&reply)).unwrap_or_default();
    let said = earlier.iter().rev().filter(|message| message.role == Role::User).map(ChatMessage::plain_text);
    let said: Vec<String> = said.filter(|text| !is_question(text)).take(MAX_STATEMENTS).collect();
    let newest = said.iter().map(|text| values(text, measure)).find(|values| values.len() > 1);
    let together = || said.iter().rev().flat_map(|text| values(text, measure)).collect::<Vec<_>>();
    let all = Some(values(&quoted, measure)).filter(|values| values.len() > 1).or(newest).unwrap_or_else(together);
    // Equal values, and more values than a comparison means, are not decided.
    let best = |one: &&(String, f64), other: &&(String, f64)| {
        let order = one.1.total_cmp(&other.1);
        if is_largest { order } else { order.reverse() }
    };
    let (clause, value) = all.iter().max_by(best)?;
    let is_only = all.iter().filter(|(_, other)| other == value).count() == 1;
    (all.len() > 1 && is_only).then(|| match language {
        Language::English => format!("You said: “{clause}”"),
        Language::Spanish => format!("Dijiste: “{clause}”"),
    })
}

/// Parses a question that compares. Returns whether the largest value is asked for.
fn comparison(text: &str) -> Option<(Measure, bool)> {
    const WORDS: [&str; 47] = [
        "and", "so", "ok", "then", "which", "who", "what", "one", "of", "the", "two", "three", "them", "those",
        "these", "both", "was", "is", "were", "are", "came", "comes", "come", "it", "again", "just", "name", "only",
        "please", "pls", "me", "cost", "costs", "us", "quote", "option", "price", "y", "cual", "quien", "de", "los",
        "las", "es", "era", "dos", "el",
    ];
    const EXTREMES: [(&str, Measure, bool); 24] = [
        ("cheaper", Measure::Number, false),
        ("cheapest", Measure::Number, false),
        ("dearer", Measure::Number, true),
        ("dearest", Measure::Number, true),
        ("pricier", Measure::Number, true),
        ("priciest", Measure::Number, true),
        ("barato", Measure::Number, false),
        ("barata", Measure::Number, false),
        ("caro", Measure::Number, true),
        ("cara", Measure::Number, true),
        ("bigger", Measure::Number, true),
        ("biggest", Measure::Number, true),
        ("larger", Measure::Number, true),
        ("smaller", Measure::Number, false),
        ("smallest", Measure::Number, false),
        ("longer", Measure::Number, true),
        ("longest", Measure::Number, true),
        ("shorter", Measure::Number, false),
        ("heavier", Measure::Number, true),
        ("earlier", Measure::Day, false),
        ("earliest", Measure::Day, false),
        ("sooner", Measure::Day, false),
        ("later", Measure::Day, true),
        ("latest", Measure::Day, true),
    ];
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let asks = words.iter().take(3).any(|word| matches!(*word, "which" | "who" | "what" | "cual" | "quien"));
    if !asks || words.len() > MAX_WORDS {
        return None;
    }
    let is_expensive = words.windows(2).any(|pair| pair == ["more", "expensive"] || pair == ["most", "expensive"]);
    let is_less = words.windows(2).any(|pair| pair == ["less", "expensive"] || pair == ["least", "expensive"]);
    let named =
        EXTREMES.iter().find(|(word, ..)| words.contains(word)).map(|(_, measure, largest)| (*measure, *largest));
    let found = match (is_expensive, is_less) {
        (true, _) => Some((Measure::Number, true)),
        (_, true) => Some((Measure::Number, false)),
        _ => named,
    }?;
    let is_known = |word: &&str| {
        WORDS.contains(word)
            || EXTREMES.iter().any(|(known, ..)| known == word)
            || matches!(*word, "more" | "most" | "less" | "least" | "expensive" | "mas" | "menos" | "la")
    };
    words.iter().all(is_known).then_some(found)
}

/// Returns the clauses of a text with the value that each states.
fn values(text: &str, measure: Measure) -> Vec<(String, f64)> {
    let clauses = sentences(text).flat_map(|sentence| sentence.split([';', ':'])).flat_map(|part| part.split(", "));
    let clauses = clauses.flat_map(|part| part.split(" and ")).flat_map(|part| part.split(" but "));
    let clauses = clauses.flat_map(|part| part.split(" y ")).map(|part| part.trim().trim_end_matches(['.', '!']));
    let value = |clause: &str| match measure {
        Measure::Number => match &plain_numbers(clause)[..] {
            [only] => only.parse().ok(),
            _ => None,
        },
        Measure::Day => {
            let days = find_times(&Utterance::new(clause)).into_iter().filter_map(|found| match found.time.period {
                Some(Period::Date { month, day, .. }) => Some(f64::from(month) * 100.0 + f64::from(day)),
                _ => None,
            });
            match days.collect::<Vec<_>>()[..] {
                [only] => Some(only),
                _ => None,
            }
        }
    };
    clauses.filter_map(|clause| Some((clause.to_owned(), value(clause)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_values_are_compared() {
        let said = |texts: &[&str]| -> Vec<ChatMessage> {
            texts.iter().map(|text| ChatMessage::text(Role::User, *text)).collect()
        };
        let quotes = said(&["two quotes for the roof: Coyle wants 4,200, Baxter wants 3,650"]);
        let days = said(&["the fair is on 12 June", "the play is on 3 June"]);
        for (earlier, text, expected) in [
            (&quotes, "who was cheaper, just the name", Some("Baxter wants 3,650")),
            (&quotes, "which is more expensive?", Some("Coyle wants 4,200")),
            (&quotes, "which hotel is cheaper?", None),
            (&days, "which of the two is earlier?", Some("the play is on 3 June")),
            (&days, "which is cheaper?", None),
            (&days, "when is it earlier?", None),
        ] {
            let described = describe(text, earlier, Language::English);
            match expected {
                Some(part) => assert!(described.as_ref().is_some_and(|it| it.contains(part)), "{text}: {described:?}"),
                None => assert_eq!(described, None, "{text}"),
            }
        }
    }
}
