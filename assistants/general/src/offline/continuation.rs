//! Completes messages: those that continue a calculation ("plus 20% vat", "split four ways"), and other short forms of questions.

use std::ops::Range;

use threadkeep::core::text::Language;
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role, Value};

use super::arithmetic;
use super::lists;
use super::plain::{shorter, written_out};
use super::quoting::quoted_texts;
use super::results::calculations;
use super::rewording::reworded;
use super::{NOTED, NOTED_IN_SPANISH};
use crate::calculation::{self, CALCULATOR};
use crate::clock::{CURRENT_TIME, zone_of};

/// The maximum number of words in a continuation.
const MAX_WORDS: usize = 9;
/// How many of the user's newest messages are searched for the last calculation.
const MAX_EARLIER: usize = 3;

/// Returns the complete question that a message means.
pub(super) fn complete(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let written = written_out(message);
    complete_written(&written, earlier)
        .or_else(|| shorter(&written).iter().find_map(|form| calculated(form, earlier)))
        .or_else(|| with_statement(&written, earlier))
        .or_else(|| (written != message).then_some(written))
}

/// Returns the calculation of a question without numbers about the amounts of the statement before it: "how much is that each" after
/// "dinner came to 186.40, four of us".
fn with_statement(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    const MAX_WORDS: usize = 9;
    let asked = Utterance::new(message);
    let has = |known: &[&str]| asked.words().iter().any(|word| known.contains(&&*word.folded));
    let asks = has(&["how", "what", "whats", "total", "cuanto", "each", "sum"]) && asked.words().len() <= MAX_WORDS;
    let points =
        has(&["that", "it", "each", "total", "altogether", "left", "apiece", "pay", "cada", "eso", "toca", "tocamos"]);
    if !asks || !points || message.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let last = earlier.iter().rev().find(|message| message.role == Role::User)?.plain_text();
    let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant)?.plain_text();
    let is_noted = [NOTED, NOTED_IN_SPANISH].iter().any(|noted| reply.starts_with(noted));
    (is_noted && !is_question(&last))
        .then(|| arithmetic::complete(&format!("{}, {message}", last.trim_end_matches(['.', '!'])), &[]))
        .flatten()
}

/// Returns the calculation that a message means.
fn calculated(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    arithmetic::complete(message, earlier)
        .or_else(|| continued(message, earlier))
        .or_else(|| calculation::whole(message))
}

fn complete_written(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    if let Some(rest) = without_interjection(message) {
        let without_and = ["and ", "y "].iter().find_map(|and| rest.strip_prefix(and));
        let plain = without_repetition(without_and.or_else(|| without_opening(rest)).unwrap_or(rest));
        return completed(rest, earlier)
            .or_else(|| calculation::whole(plain))
            .or_else(|| without_and.is_none().then(|| rest.to_owned()));
    }
    completed(message, earlier).or_else(|| completed(without_opening(message)?, earlier)).or_else(|| {
        // "oye y 48 entre 5?", "1000 / 7 once more"
        let plain = without_repetition(without_opening(message).unwrap_or(message));
        (plain != message).then(|| calculation::whole(plain)).flatten()
    })
}

/// Returns a message without interjections that no sign separates from it: "lol ok by 0.5 then", "oye y 48 entre 5?"
fn without_opening(message: &str) -> Option<&str> {
    let utterance = Utterance::new(message);
    let is_opening = |at: &usize| {
        let word = utterance.word(*at);
        INTERJECTIONS.contains(&word) || matches!(word, "hey" | "hi" | "hiya" | "oye" | "hola")
    };
    let mut count = (0..utterance.words().len()).take_while(is_opening).count();
    count += usize::from(count > 0 && matches!(utterance.word(count), "y" | "and"));
    let rest = utterance.words().get(count).filter(|_| count > 0)?.span.start;
    Some(&message[rest..])
}

/// Returns a message without words that ask for its result, or for it again: "1000 / 7 once more", "33 por 12 cuánto es".
fn without_repetition(message: &str) -> &str {
    let message = message.trim_end_matches(['?', '!', '.', ' ']);
    let endings = [
        " once more",
        " again",
        " otra vez",
        " one more time",
        " cuánto es",
        " cuanto es",
        " cuánto son",
        " cuanto son",
        " whats that",
        " then",
        " pls",
        " please",
        " porfa",
        " entonces",
        " what's that",
    ];
    endings.iter().find_map(|ending| message.strip_suffix(ending)).unwrap_or(message)
}

const INTERJECTIONS: [&str; 23] = [
    "ok", "okay", "lol", "haha", "hehe", "cool", "nice", "great", "super", "perfect", "hm", "hmm", "oh", "ah", "wow",
    "right", "good", "fine", "alright", "vale", "genial", "bueno", "pues",
];

/// Returns what follows an interjection that is a sentence of its own: "ok ok. double 37", "lol ok. and by 4?"
fn without_interjection(message: &str) -> Option<&str> {
    let (first, rest) = message.split_once(['.', '!', ','])?;
    let first = Utterance::new(first);
    let is_dismissal = matches!((first.word(0), first.words().len()), ("never", 2) if first.word(1) == "mind")
        || matches!((first.word(0), first.words().len()), ("nevermind" | "anyway", 1));
    let is_interjection = is_dismissal || first.words().iter().all(|word| INTERJECTIONS.contains(&&*word.folded));
    let rest = rest.trim_start_matches(['.', '!', ',', ' ']);
    (!first.words().is_empty() && is_interjection && Utterance::new(rest).words().len() > 1).then_some(rest)
}

fn completed(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let complete = asked_calculation(message)
        .or_else(|| price_of_several(message))
        .or_else(|| amount_at_a_price(message, earlier))
        .or_else(|| calculation_in_words(message))
        .or_else(|| arithmetic::complete(message, earlier))
        .or_else(|| lists::named(message, earlier))
        .or_else(|| time_there(message, earlier))
        .or_else(|| reworded(message, earlier));
    complete.or_else(|| continued(message, earlier))
}

/// Returns the calculation of an operation on the last result.
fn continued(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let operation = operation(message).or_else(|| {
        let named = named_amount(message).filter(|_| follows_result(earlier))?;
        operation(&named)
    })?;
    let expression = quoted_number(earlier).or_else(|| last_expression(earlier))?;
    Some(match operation {
        Operation::Share(percent) => format!("({expression})*{percent}/100"),
        Operation::Other(operation) => format!("({expression}) {operation}"),
    })
}

/// Returns "minus 18.5" for "minus balloons 18.5", which names what the amount is for.
fn named_amount(message: &str) -> Option<String> {
    const MAX_NAME_WORDS: usize = 3;
    let utterance = Utterance::new(message);
    let start = usize::from(matches!(utterance.word(0), "and" | "y" | "then"));
    let sign = Some(utterance.word(start)).filter(|sign| matches!(*sign, "plus" | "minus" | "mas" | "menos"))?;
    let pieces: Vec<&str> = message.split_whitespace().skip(start + 1).collect();
    let (last, name) = pieces.split_last()?;
    let amount = last.trim_matches(|c: char| !c.is_ascii_digit());
    let is_amount = !amount.is_empty() && amount.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    let is_name = (1..=MAX_NAME_WORDS).contains(&name.len())
        && name.iter().all(|word| !word.contains(|c: char| c.is_ascii_digit()));
    (is_amount && is_name && !last.ends_with('%')).then(|| format!("{sign} {amount}"))
}

/// Returns the calculation at the end of a longer message, without the explanation before it: "it is worth 60 marks so whats 40% of 60".
fn asked_calculation(message: &str) -> Option<String> {
    let (span, _) = calculation::find(message)?;
    let before = Utterance::new(&message[..span.start]);
    let words: Vec<&str> = before.words().iter().map(|word| word.folded.as_str()).collect();
    let asks =
        words.ends_with(&["whats"]) || words.ends_with(&["what", "is"]) || words.ends_with(&["how", "much", "is"]);
    let asks_in_spanish = words.ends_with(&["cuanto", "es"]) || words.ends_with(&["cuanto", "son"]);
    let after = Utterance::new(&message[span.end..]).words().len();
    let is_long = words.len() > MAX_WORDS_BEFORE;
    // "what's still open, 300 minus 90", "if I double it, 300*2 of almonds is how much"
    let is_apart = message[..span.start].trim_end().ends_with([',', ';', ':', '?']);
    let is_product = message[span.clone()].contains(['*', '×']);
    let is_asked = (asks || asks_in_spanish) && is_long || is_apart;
    let max_rest = if is_product { MAX_WORDS_AFTER_PRODUCT } else { MAX_REST };
    ((is_asked || is_product && !words.is_empty()) && after <= max_rest).then(|| message[span].to_owned())
}

/// The maximum number of words after a product. Only calculations contain products.
const MAX_WORDS_AFTER_PRODUCT: usize = 5;

/// Returns the calculation for "bags cost 3.80 each, how much is that for 11".
fn price_of_several(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&word.folded.as_str()));
    let is_price = has(&["each", "apiece", "cada"]) && has(&["for", "para", "por"]) && has(&["much", "cuanto"]);
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let trimmed = message.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()));
    let numbers: Vec<&str> = trimmed.filter(is_number).collect();
    match &numbers[..] {
        [price, count] if is_price => Some(format!("{price} * {count}")),
        _ => None,
    }
}

/// Returns the calculation for "25 kg at 18.40, what's that", or after a calculation "and 3 kg at 4.20".
fn amount_at_a_price(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let folded = message.to_lowercase().replace(['\'', '’'], "");
    let asks = [
        "whats that",
        "what is that",
        "how much",
        "how much is that",
        "how much is it",
        "in total",
        "altogether",
        "cuanto es",
        "cuánto es",
        "en total",
    ];
    let pieces: Vec<&str> = message.split_whitespace().collect();
    let amount = |at: usize| pieces.get(at).map(|piece| piece.trim_matches(|c: char| !c.is_ascii_digit()));
    let is_amount = |at: usize| {
        amount(at).is_some_and(|amount| {
            !amount.is_empty() && amount.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
        })
    };
    let is_spanish = ["cuanto", "cuánto", "en total"].iter().any(|word| folded.contains(word));
    let at = (1..pieces.len()).find(|at| matches!(pieces[*at], "at" | "@") || is_spanish && pieces[*at] == "a")?;
    // At most three words for the unit: "3 hotel nights at 85", "6 bottles of wine at 8".
    let count = (at.saturating_sub(4)..at).rev().find(|count| is_amount(*count))?;
    // In "dinner for 6 at 19.30, how much is the deposit?", the numbers are no product.
    let end = folded.trim_end_matches(|c: char| !c.is_alphanumeric());
    let continues = matches!(Utterance::new(message).word(0), "and" | "plus" | "y") && follows_result(earlier);
    let is_asked = (continues || asks.iter().any(|ask| end.ends_with(ask))) && is_amount(at + 1);
    let has_more = (0..pieces.len()).filter(|piece| is_amount(*piece)).count() > 2;
    is_asked.then_some(())?;
    (!has_more).then(|| format!("{} * {}", amount(count).unwrap_or_default(), amount(at + 1).unwrap_or_default()))
}

/// Whether the last answer is the result of a calculation.
fn follows_result(earlier: &[ChatMessage]) -> bool {
    let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant).map(ChatMessage::plain_text);
    let result = calculations(earlier).pop().map(|calculation| calculation.result);
    reply.zip(result).is_some_and(|(reply, result)| reply.ends_with(&format!("= {result}")))
}

/// Returns the calculation for "split 186.40 between 4" and "add 12.5% tip to 186.40".
fn calculation_in_words(message: &str) -> Option<String> {
    let pieces: Vec<&str> = message.split_whitespace().map(|piece| piece.trim_end_matches(['?', '.', ','])).collect();
    let is_number = |at: usize| {
        pieces.get(at).is_some_and(|piece| {
            !piece.is_empty() && piece.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
        })
    };
    let first =
        pieces.iter().position(|piece| !matches!(*piece, "and" | "then" | "ok" | "now" | "please" | "can" | "you"))?;
    match pieces[first].to_lowercase().as_str() {
        "split" | "divide" | "share" if is_number(first + 1) && is_number(first + 3) => {
            let is_division = matches!(pieces[first + 2], "between" | "by" | "among" | "into");
            is_division.then(|| format!("{} / {}", pieces[first + 1], pieces[first + 3]))
        }
        "add" => {
            let percent = pieces.get(first + 1)?.strip_suffix('%')?;
            let to = (first + 2..pieces.len()).take(MAX_WORDS_BEFORE_TO).find(|at| pieces[*at] == "to")?;
            let is_percentage = percent.chars().all(|c| c.is_ascii_digit() || c == '.') && is_number(to + 1);
            is_percentage.then(|| format!("{} + {percent}%", pieces[to + 1]))
        }
        _ => None,
    }
}

/// The maximum number of words between a percentage and "to".
const MAX_WORDS_BEFORE_TO: usize = 3;

/// Returns the complete question for "and in New York?" after a question for the time, and for "my client sits in
/// Denver, what time is it there?"
fn time_there(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let utterance = Utterance::new(message);
    let word = |at: usize| utterance.word(at);
    let count = utterance.words().len();
    if let Some((_, place)) = places_in(&utterance).next()
        && (0..count).any(|at| matches!(word(at), "time" | "hora"))
        && (0..count).any(|at| matches!(word(at), "there" | "alli" | "ahi" | "alla"))
    {
        return Some(format!("what time is it in {place}"));
    }
    let last =
        earlier.iter().rev().find(|message| message.role == Role::User || message.tool_calls().next().is_some())?;
    last.tool_calls().find(|call| call.name == CURRENT_TIME)?;
    let (words, place) = places_in(&utterance).find(|(words, _)| words.end == count)?;
    let is_opening = |at: usize| {
        matches!(word(at), "and" | "y" | "what" | "how" | "about" | "que" | "tal" | "in" | "en" | "now" | "then")
    };
    let question =
        if Language::of(message) == Some(Language::Spanish) { "qué hora es en" } else { "what time is it in" };
    (0..words.start).all(is_opening).then(|| format!("{question} {place}"))
}

/// Returns the large cities that a message names, longest names first, with their words.
fn places_in(utterance: &Utterance) -> impl Iterator<Item = (Range<usize>, String)> {
    let count = utterance.words().len();
    let spans = (1..=MAX_PLACE_WORDS).rev().flat_map(move |length| (0..count).map(move |start| start..start + length));
    spans.filter(move |words| words.end <= count).filter_map(|words| {
        let place = utterance.said(words.clone()).to_owned();
        zone_of(&place).map(|_| (words, place))
    })
}

const MAX_PLACE_WORDS: usize = 3;

/// If more words than this precede a calculation, they are an explanation.
const MAX_WORDS_BEFORE: usize = 4;

/// Returns the only number that the last answer quoted: "quítale 80" after "980".
fn quoted_number(earlier: &[ChatMessage]) -> Option<String> {
    let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant).map(ChatMessage::plain_text)?;
    match &arithmetic::plain_numbers(&quoted_texts(&reply))[..] {
        [only] => Some(only.clone()),
        _ => None,
    }
}

#[derive(Debug, PartialEq)]
enum Operation {
    /// "20% of that".
    Share(String),
    /// An operator and a number: "+ 20%".
    Other(String),
}

fn last_expression(earlier: &[ChatMessage]) -> Option<String> {
    let mut user_messages = 0;
    for message in earlier.iter().rev() {
        if let Some(call) = message.tool_calls().find(|call| call.name == CALCULATOR) {
            let arguments: Value = call.arguments.read().ok()?;
            return arguments["expression"].as_str().map(str::to_owned);
        }
        user_messages += usize::from(message.role == Role::User);
        if user_messages >= MAX_EARLIER {
            return None;
        }
    }
    None
}

/// Parses an operation on the last result. It must be the whole message, except for a few words after the number: "plus
/// 20% vat".
fn operation(message: &str) -> Option<Operation> {
    // Signs become words, so that "+20%" is "plus 20 percent".
    let spelled = [
        ("%", " percent "),
        ("+", " plus "),
        ("*", " times "),
        ("×", " times "),
        ("÷", " divided "),
        ("/", " divided "),
    ];
    let text = spelled.iter().fold(message.trim().to_owned(), |text, (sign, word)| text.replace(sign, word));
    let text = text.strip_prefix(['-', '−']).map_or(text.clone(), |rest| format!("minus {rest}"));
    let utterance = Utterance::new(text.clone());
    let words = utterance.words();
    if words.is_empty() || words.len() > MAX_WORDS {
        return None;
    }
    let word = |at: usize| utterance.word(at);
    let mut at = 0;
    // "A eso quítale 15"
    if matches!((word(0), word(1)), ("a", "eso" | "esto")) {
        at = 2;
    }
    while matches!(
        word(at),
        "and" | "then" | "now" | "ok" | "so" | "y" | "ahora" | "luego" | "whats" | "what" | "is" | "cuanto" | "es"
    ) {
        at += 1;
    }
    let refers =
        |word: &str| matches!(word, "that" | "it" | "this" | "the" | "total" | "result" | "eso" | "esto" | "el" | "lo");
    // "half of that", "double it", "20% of that"
    match word(at) {
        "half" | "halve" | "mitad" if ends_with_reference(&utterance, at) => {
            return Some(Operation::Other("/ 2".to_owned()));
        }
        "la" if word(at + 1) == "mitad" && ends_with_reference(&utterance, at + 1) => {
            return Some(Operation::Other("/ 2".to_owned()));
        }
        "double" | "doble" if ends_with_reference(&utterance, at) => return Some(Operation::Other("* 2".to_owned())),
        _ => {}
    }
    if let Some(number) = number(&text, &utterance, at)
        && matches!(word(at + number.words), "percent")
        && matches!(word(at + number.words + 1), "of" | "de")
        && refers(word(at + number.words + 2))
    {
        return Some(Operation::Share(number.text));
    }
    // "1850 plus that"
    if let Some(number) = number(&text, &utterance, at)
        && matches!(word(at + number.words), "plus" | "and" | "times" | "mas" | "por")
        && ends_with_reference(&utterance, at + number.words)
        && at + number.words + 1 < words.len()
    {
        let sign = if matches!(word(at + number.words), "times" | "por") { "*" } else { "+" };
        return Some(Operation::Other(format!("{sign} {}", number.text)));
    }
    // "with a 10% discount", "with 20% tip"
    if matches!(word(at), "with" | "con") {
        let start = at + 1 + usize::from(matches!(word(at + 1), "a" | "un" | "el" | "the"));
        let number = number(&text, &utterance, start)?;
        let rest: Vec<&str> = (start + number.words..words.len()).map(word).collect();
        let less = rest.iter().any(|word| matches!(*word, "discount" | "off" | "descuento" | "rebaja" | "menos"));
        let more =
            rest.iter().any(|word| matches!(*word, "tip" | "vat" | "tax" | "service" | "iva" | "propina" | "recargo"));
        let sign = if less { "-" } else { "+" };
        return (rest.first() == Some(&"percent") && (less || more))
            .then(|| Operation::Other(format!("{sign} {}%", number.text)));
    }
    // Only a calculation begins with a sign and a number: "times 12 for the year".
    let is_direct =
        matches!(word(at), "plus" | "minus" | "times" | "mas" | "menos") && number(&text, &utterance, at + 1).is_some();
    let operator = match word(at) {
        "plus" | "add" | "mas" | "suma" | "sumale" | "sumaselo" | "sumado" | "anadelo" | "anadido" => "+",
        "minus" | "less" | "subtract" | "menos" | "resta" | "restale" | "restado" | "quitale" => "-",
        "take" if matches!(word(at + 1), "off" | "away") => {
            at += 1;
            "-"
        }
        "times" | "multiply" | "multiplied" | "multiplica" | "multiplicado" | "multiplicalo" | "por" | "x" => "*",
        "divide" | "divided" | "split" | "share" | "entre" | "divididos" | "dividido" | "dividelo" | "repartido" => "/",
        _ => return None,
    };
    at += 1;
    while refers(word(at))
        || matches!(
            word(at),
            "by" | "in"
                | "into"
                | "between"
                | "among"
                | "to"
                | "up"
                | "another"
                | "otros"
                | "en"
                | "entre"
                | "por"
                | "a"
                | "los"
                | "las"
                | "un"
        )
    {
        at += 1;
    }
    let number = number(&text, &utterance, at)?;
    at += number.words;
    let percent = word(at) == "percent";
    // "Add 40 to that last one"
    let is_reference = |at: &usize| {
        refers(word(*at)) || matches!(word(*at), "to" | "a" | "ese" | "esa" | "last" | "one" | "ultimo" | "ultima")
    };
    let after = at + usize::from(percent);
    let rest = (after..words.len()).filter(|at| !is_reference(at)).count();
    let max_rest = if is_direct { MAX_REST_AFTER_OPERATOR } else { MAX_REST };
    let sign = if percent { "%" } else { "" };
    (rest <= max_rest).then(|| Operation::Other(format!("{operator} {}{sign}", number.text)))
}

/// The maximum number of words after an operation that begins with an operator: "a square metre".
const MAX_REST_AFTER_OPERATOR: usize = 4;
/// The maximum number of words after an operation: "vat please".
const MAX_REST: usize = 2;

/// Whether a message ends after a word, or with "of that" or "it".
fn ends_with_reference(utterance: &Utterance, at: usize) -> bool {
    let mut rest = utterance.words()[at + 1..].iter().map(|word| word.folded.as_str());
    rest.all(|word| matches!(word, "of" | "that" | "it" | "this" | "please" | "de" | "eso" | "the" | "total"))
}

struct Number {
    text: String,
    words: usize,
}

/// Reads a number at a word: "20", "7.5", "four".
fn number(text: &str, utterance: &Utterance, at: usize) -> Option<Number> {
    let first = utterance.words().get(at)?;
    if let Some(digits) = arithmetic::spelled(&first.folded) {
        return Some(Number { text: digits.to_owned(), words: 1 });
    }
    let rest = &text[first.span.start..];
    let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(rest.len());
    let digits = rest[..length].trim_end_matches(['.', ',']);
    let end = first.span.start + digits.len();
    let words = utterance.words()[at..].iter().take_while(|word| word.span.start < end).count();
    (!digits.is_empty()).then(|| Number { text: digits.to_owned(), words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calculations_in_words_are_found() {
        for (message, expected) in [
            ("split 186.40 between 4", "186.40 / 4"),
            ("and divide 90 by 3?", "90 / 3"),
            ("add 12.5% tip to 186.40 first", "186.40 + 12.5%"),
        ] {
            assert_eq!(calculation_in_words(message).as_deref(), Some(expected), "{message}");
        }
        for message in ["split the bill between 4", "add milk to the list", "share 2 photos with 3 people"] {
            assert_eq!(calculation_in_words(message), None, "{message}");
        }
    }

    #[test]
    fn interjections_are_left_out() {
        assert_eq!(without_interjection("ok ok. double 37"), Some("double 37"));
        assert_eq!(without_interjection("cool, thanks"), None);
        assert_eq!(without_interjection("never mind. 7.25 x 16 pls"), Some("7.25 x 16 pls"));
        assert_eq!(named_amount("minus balloons 18.5").as_deref(), Some("minus 18.5"));
        assert_eq!(named_amount("plus room 12 has no key"), None);
        assert_eq!(without_opening("oye y 48 entre 5?"), Some("48 entre 5?"));
        assert_eq!(complete("1000 / 7 once more", &[]).as_deref(), Some("1000/7"));
        assert_eq!(complete("vale, y 33 por 12 cuánto es", &[]).as_deref(), Some("33*12"));
        assert_eq!(without_interjection("the flat is fine. It is warm"), None);
    }

    #[test]
    fn operations_are_parsed() {
        for (message, expected) in [
            ("plus 20% vat", "+ 20%"),
            ("split four ways", "/ 4"),
            ("divide that by 3", "/ 3"),
            ("and times 12?", "* 12"),
            ("take off 15", "- 15"),
            ("+ 7.50", "+ 7.50"),
            ("/4", "/ 4"),
            ("half of that", "/ 2"),
            ("y entre cuatro?", "/ 4"),
            ("súmale 30", "+ 30"),
            ("add 10% tip", "+ 10%"),
            ("and times 12 for the year", "* 12"),
            ("y con un 10% de descuento", "- 10%"),
            ("súmaselo a 340", "+ 340"),
            ("súmaselo a los 340", "+ 340"),
            ("a eso quítale 15", "- 15"),
            ("and 1850 plus that?", "+ 1850"),
        ] {
            assert_eq!(operation(message), Some(Operation::Other(expected.to_owned())), "{message}");
        }
        assert_eq!(operation("what is 20% of that"), Some(Operation::Share("20".to_owned())));
        assert_eq!(operation("súmale 40 a eso último"), Some(Operation::Other("+ 40".to_owned())));
        for message in
            ["plus the dog needs 3 walks a day now", "split the bill", "add milk to the list", "half the team came", ""]
        {
            assert_eq!(operation(message), None, "{message}");
        }
    }
}
