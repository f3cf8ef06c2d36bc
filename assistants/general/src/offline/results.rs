//! Results of the calculations of a conversation as subjects: "what was the first result?", "which of them was the largest?".

use std::ops::Range;

use threadkeep::core::text::Language;
use threadkeep::dialogue::Utterance;
use threadkeep::{ChatMessage, Role, Value};

use super::arithmetic;
use crate::calculation::CALCULATOR;

/// A calculation of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calculation {
    /// The message of the user that asked for it.
    pub(super) asked: String,
    pub(super) expression: String,
    pub(super) result: String,
}

/// Returns the calculations of the conversation, oldest first.
pub(super) fn calculations(earlier: &[ChatMessage]) -> Vec<Calculation> {
    let calls: Vec<&str> = earlier
        .iter()
        .flat_map(ChatMessage::tool_calls)
        .filter(|call| call.name == CALCULATOR)
        .map(|call| call.id.as_str())
        .collect();
    let mut asked = String::new();
    let mut calculations = Vec::new();
    for message in earlier {
        if message.role == Role::User {
            asked = message.plain_text();
        }
        let results = message.tool_results();
        let results = results.filter(|result| !result.is_error && calls.contains(&result.call_id.as_str()));
        calculations.extend(results.filter_map(|result| {
            let value: Value = serde_json::from_str(&result.output).ok()?;
            let text = |field: &str| value[field].as_str().map(str::to_owned);
            Some(Calculation { asked: asked.clone(), expression: text("expression")?, result: text("result")? })
        }));
    }
    calculations
}

/// The results to which words refer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reference {
    /// One result, counted from the first one.
    One(usize),
    /// Several results.
    Several(Range<usize>),
}

const NOUNS: [&str; 24] = [
    "percentage",
    "percentages",
    "result",
    "results",
    "answer",
    "answers",
    "figure",
    "figures",
    "total",
    "totals",
    "number",
    "numbers",
    "sum",
    "amount",
    "amounts",
    "value",
    "values",
    "calculation",
    "calculations",
    "resultado",
    "resultados",
    "cuenta",
    "cuentas",
    "calculo",
];

/// Returns the position to which an ordinal refers in a list of a length; `None` if the word is no ordinal.
pub(crate) fn ordinal(word: &str, length: usize) -> Option<usize> {
    const ORDINALS: [&[&str]; 10] = [
        &["first", "1st", "original", "beginning", "primer", "primero", "primera"],
        &["second", "2nd", "segundo", "segunda"],
        &["third", "3rd", "tercer", "tercero", "tercera"],
        &["fourth", "4th", "cuarto", "cuarta"],
        &["fifth", "5th", "quinto", "quinta"],
        &["sixth", "6th", "sexto", "sexta"],
        &["seventh", "7th", "septimo", "septima"],
        &["eighth", "8th", "octavo", "octava"],
        &["ninth", "9th", "noveno", "novena"],
        &["tenth", "10th", "decimo", "decima"],
    ];
    match word {
        "last" | "latest" | "final" | "previous" | "newest" | "ultimo" | "ultima" | "anterior" => length.checked_sub(1),
        "penultimate" | "penultimo" | "penultima" => length.checked_sub(2),
        _ => ORDINALS.iter().position(|names| names.contains(&word)),
    }
}

fn count(word: &str) -> Option<usize> {
    let position = ["two", "three", "four", "five"].iter().position(|name| *name == word);
    position.or_else(|| ["dos", "tres", "cuatro", "cinco"].iter().position(|name| *name == word)).map(|at| at + 2)
}

fn is_noun(word: &str) -> bool {
    NOUNS.contains(&word) || matches!(word, "one" | "ones" | "uno" | "una")
}

fn is_article(word: &str) -> bool {
    matches!(word, "the" | "that" | "those" | "these" | "my" | "our" | "your" | "el" | "la" | "los" | "las" | "very")
}

/// Parses a reference to one of `length` results at a word. Returns it with the index after its last word, and whether a noun names
/// results.
pub(super) fn reference_at(words: &[&str], start: usize, length: usize) -> Option<(Reference, usize, bool)> {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let mut at = start;
    while is_article(word(at)) {
        at += 1;
    }
    let with_noun = |end: usize, reference: Reference| {
        let has_noun = is_noun(word(end));
        Some((reference, if has_noun { end + 1 } else { end }, has_noun && NOUNS.contains(&word(end))))
    };
    if word(at) == "both" || word(at) == "ambos" || word(at) == "ambas" {
        let is_pair = length == 2;
        return is_pair.then(|| with_noun(at + 1, Reference::Several(0..2))).flatten();
    }
    if let (Some(position), Some(number)) = (ordinal(word(at), length), count(word(at + 1))) {
        let range = match position {
            0 if word(at) != "last" => 0..number,
            _ => length.checked_sub(number)?..length,
        };
        return with_noun(at + 2, Reference::Several(range)).filter(|_| number <= length);
    }
    if let (Some(number), true) = (count(word(at)), at > start) {
        let is_all = number == length;
        return is_all.then(|| with_noun(at + 1, Reference::Several(0..number))).flatten();
    }
    if word(at) == "second" && word(at + 1) == "to" && word(at + 2) == "last" {
        return with_noun(at + 3, Reference::One(length.checked_sub(2)?));
    }
    let position = ordinal(word(at), length)?;
    // "The one before the last one" ends with an ordinal of its own.
    let (reference, end, named) = with_noun(at + 1, Reference::One(position))?;
    Some((reference, end, named))
}

/// Words that a question for results may contain beside references and nouns.
const QUESTION_WORDS: [&str; 70] = [
    "out",
    "here",
    "at",
    "pls",
    "or",
    "proper",
    "real",
    "valid",
    "actual",
    "in",
    "this",
    "conversation",
    "chat",
    "what",
    "whats",
    "which",
    "was",
    "were",
    "is",
    "are",
    "did",
    "do",
    "you",
    "we",
    "i",
    "get",
    "got",
    "have",
    "had",
    "of",
    "all",
    "so",
    "far",
    "the",
    "and",
    "again",
    "please",
    "remind",
    "me",
    "give",
    "list",
    "show",
    "very",
    "that",
    "those",
    "calculated",
    "calculate",
    "come",
    "came",
    "to",
    "then",
    "for",
    "ok",
    "just",
    "your",
    "our",
    "my",
    "a",
    "cual",
    "cuales",
    "fue",
    "fueron",
    "era",
    "el",
    "la",
    "los",
    "y",
    "de",
    "todos",
    "dime",
];

/// Answers a question for results of the conversation; `None` if the message is no such question.
pub(super) fn describe(text: &str, earlier: &[ChatMessage], language: Language) -> Option<String> {
    let known = calculations(earlier);
    let message = Utterance::new(text);
    let length = known.len();
    let folded: Vec<&str> = message.words().iter().map(|word| word.folded.as_str()).collect();
    let words = folded.len();
    if known.is_empty() || words == 0 || words > MAX_WORDS {
        return None;
    }
    if let Some(previous) = before_last(&folded, &known, earlier) {
        return Some(described(&[previous], language));
    }
    if let Some(recalled) = arithmetic::recalled(text, &known, language) {
        return Some(recalled);
    }
    let continues = last_reply(earlier).is_some_and(|reply| {
        let is_result = known.last().is_some_and(|last| reply.ends_with(&format!("= {}", last.result)));
        is_result || [PREFIX, PREFIX_IN_SPANISH].iter().any(|it| reply.starts_with(it))
    });
    let mut named = false;
    let mut found: Option<Reference> = None;
    let mut alternative = None;
    let mut extreme = None;
    let mut at = 0;
    while at < words {
        match reference_at(&folded, at, length) {
            Some((reference, end, has_noun)) if found.is_none() => {
                (found, at, named) = (Some(reference), end, named || has_noun);
            }
            // "Which is larger, the first or the third?"
            Some((Reference::One(position), end, has_noun)) if alternative.is_none() => {
                (alternative, at, named) = (Some(position), end, named || has_noun);
            }
            _ => {
                let word = message.word(at);
                match word {
                    "bigger" | "biggest" | "larger" | "largest" | "highest" | "higher" | "mayor" => {
                        extreme = Some(true)
                    }
                    "smaller" | "smallest" | "lowest" | "lower" | "menor" => extreme = Some(false),
                    _ if is_noun(word) => named |= NOUNS.contains(&word),
                    _ if QUESTION_WORDS.contains(&word) => {}
                    _ => return None,
                }
                at += 1;
            }
        }
    }
    let asks = matches!(
        message.word(0),
        "what" | "whats" | "which" | "and" | "list" | "show" | "give" | "remind" | "cual" | "cuales" | "dime" | "y"
    ) || text.trim_end().ends_with('?')
        || matches!(message.word(words - 1), "again" | "please" | "pls");
    // "The results" without an ordinal are all of them; "what is the answer" asks about something else.
    let lists = message.words().iter().any(|word| word.folded.starts_with("result") && word.folded.ends_with('s'))
        || extreme.is_some();
    let compares = extreme.is_some() && (matches!(found, Some(Reference::Several(_))) || alternative.is_some());
    if alternative.is_some() && !(compares && matches!(found, Some(Reference::One(_)))) {
        return None;
    }
    if !asks || !(named || compares || continues && found.is_some()) || found.is_none() && !lists {
        return None;
    }
    let meant = match found.unwrap_or(Reference::Several(0..length)) {
        Reference::One(position) => position..position + 1,
        Reference::Several(range) => range,
    };
    let Some(meant_results) = known.get(meant.clone()) else {
        return Some(match language {
            Language::English => format!("There are only {length} results in this conversation."),
            Language::Spanish => format!("En esta conversación solo hay {length} resultados."),
        });
    };
    let mut meant_results: Vec<&Calculation> = meant_results.iter().collect();
    meant_results.extend(alternative.and_then(|position| known.get(position)));
    let by_value = |calculation: &&Calculation| calculation.result.parse::<f64>().ok();
    let chosen: Vec<&Calculation> = match extreme {
        None => meant_results,
        Some(is_largest) => {
            let order = |one: &&Calculation, other: &&Calculation| {
                by_value(one).partial_cmp(&by_value(other)).unwrap_or(std::cmp::Ordering::Equal)
            };
            let chosen = if is_largest {
                meant_results.into_iter().max_by(order)
            } else {
                meant_results.into_iter().min_by(order)
            };
            chosen.into_iter().collect()
        }
    };
    Some(described(&chosen, language))
}

/// Formats calculations of the conversation.
pub(super) fn described(calculations: &[&Calculation], language: Language) -> String {
    let prefix = if language == Language::English { PREFIX } else { PREFIX_IN_SPANISH };
    let line = |calculation: &&Calculation| format!("{} = {}", calculation.expression, calculation.result);
    format!("{prefix} {}", calculations.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Returns the result in the last answer: of a calculation, or of an earlier one that the user asked for again.
pub(super) fn last_answered(earlier: &[ChatMessage], known: &[Calculation]) -> Option<String> {
    let reply = last_reply(earlier)?;
    let is_recalled = [PREFIX, PREFIX_IN_SPANISH].iter().any(|prefix| reply.starts_with(prefix));
    if is_recalled && !reply.contains('\n') {
        return Some(reply.rsplit_once("= ")?.1.to_owned());
    }
    known.last().map(|last| last.result.clone()).filter(|result| reply.ends_with(&format!("= {result}")))
}

/// Returns the result before a step: "what was it before splitting?", "what did I have before I took anything off?"
fn before_last<'a>(words: &[&str], known: &'a [Calculation], earlier: &[ChatMessage]) -> Option<&'a Calculation> {
    let at = words.iter().position(|word| *word == "before")?;
    let is_asking = |word: &&str| {
        QUESTION_WORDS.contains(word)
            || is_noun(word)
            || count(word).is_some()
            || matches!(*word, "it" | "wait" | "sorry" | "add" | "up" | "make" | "but")
    };
    let asks = words[..at].iter().any(|word| matches!(*word, "what" | "whats" | "how" | "and"))
        && words[..at].iter().all(is_asking)
        && words.len() <= at + MAX_STEP_WORDS;
    if let Some(found) = arithmetic::before_step(&words[at + 1..], known).filter(|_| asks) {
        return Some(found);
    }
    let [.., previous, last] = known else { return None };
    let follows = last_reply(earlier)?.ends_with(&format!("= {}", last.result));
    let names_step = words.get(at + 1).is_none_or(|next| next.ends_with("ing") || matches!(*next, "that" | "the"));
    (follows && asks && names_step && words.len() <= at + 4).then_some(previous)
}

/// The maximum number of words in the name of a step: "before I took anything off".
const MAX_STEP_WORDS: usize = 6;

const PREFIX: &str = "Calculated in this conversation:";
const PREFIX_IN_SPANISH: &str = "Calculado en esta conversación:";
/// The maximum number of words in a question for results.
const MAX_WORDS: usize = 14;

fn last_reply(earlier: &[ChatMessage]) -> Option<String> {
    let mut replies = earlier.iter().rev().filter(|message| message.role == Role::Assistant);
    replies.next().map(ChatMessage::plain_text)
}

#[cfg(test)]
pub(super) mod tests {
    use threadkeep::{JsonText, Part, ToolCall, ToolResult};

    use super::*;

    /// Returns the messages of calculations with their results.
    pub(in super::super) fn conversation(results: &[(&str, &str)]) -> Vec<ChatMessage> {
        let exchange = |(at, (expression, result)): (usize, &(&str, &str))| {
            let arguments = JsonText::from(&serde_json::json!({"expression": expression}));
            let call = ToolCall { id: format!("c{at}"), name: CALCULATOR.to_owned(), arguments };
            let output = serde_json::json!({"expression": expression, "result": result}).to_string();
            let result = ToolResult { call_id: call.id.clone(), output, is_error: false };
            [
                ChatMessage {
                    role: Role::Assistant,
                    parts: vec![Part::ToolCall(call)],
                    ..ChatMessage::text(Role::Assistant, "")
                },
                ChatMessage {
                    role: Role::Tool,
                    parts: vec![Part::ToolResult(result)],
                    ..ChatMessage::text(Role::Tool, "")
                },
            ]
        };
        results.iter().enumerate().flat_map(exchange).collect()
    }

    #[test]
    fn results_are_described() {
        let earlier = conversation(&[("3*8", "24"), ("24+6", "30"), ("30/4", "7.5")]);
        for (text, expected) in [
            ("what was the first result again?", Some("24")),
            ("and what did the second calculation come to?", Some("30")),
            ("what were the last two results?", Some("7.5")),
            ("which result was the smallest?", Some("7.5")),
            ("which was bigger, the first or the second result?", Some("24+6 = 30")),
            ("which is lower, the first or the third result?", Some("30/4 = 7.5")),
            ("what is the last figure?", Some("7.5")),
            ("cuál fue el primer resultado?", Some("24")),
            ("what was the fifth result?", Some("only 3")),
            ("what was the result of the first exam?", None),
            ("what is the answer?", None),
            ("what number is the first house?", None),
            ("the first result was wrong because of rain", None),
        ] {
            let described = describe(text, &earlier, Language::English);
            match expected {
                Some(part) => assert!(described.as_ref().is_some_and(|it| it.contains(part)), "{text}: {described:?}"),
                None => assert_eq!(described, None, "{text}"),
            }
        }
        assert_eq!(describe("what was the first result?", &[], Language::English), None);
    }
}
