//! Corrections of the last calculation.

use threadkeep::ChatMessage;

use super::super::results::{Calculation, Reference, last_answered, reference_at};
use super::MAX_WORDS;
use super::numbers::{is_number, spelled, tokens};
use super::pricing::price_and_count;
use super::steps::stem;

/// Words after a number that do not change what is meant.
pub(super) const UNITS: [&str; 24] = [
    "euros",
    "euro",
    "eur",
    "dollars",
    "pounds",
    "people",
    "persons",
    "ways",
    "of",
    "us",
    "please",
    "then",
    "now",
    "again",
    "each",
    "altogether",
    "together",
    "in",
    "total",
    "instead",
    "friends",
    "days",
    "months",
    "personas",
];

/// Returns the last calculation with one number replaced: "no, between 5", "ok, by 8 then", "and 60%?", or with its two numbers
/// swapped: "and the other way round?"
pub(super) fn corrected(text: &str, earlier: &[ChatMessage], known: &[Calculation]) -> Option<String> {
    const OPENINGS: [&str; 34] = [
        "n", "no", "oops", "whoops", "ok", "okay", "sorry", "and", "then", "what", "how", "about", "make", "it",
        "actually", "wait", "i", "meant", "mean", "that", "its", "is", "be", "rather", "so", "hm", "y", "perdon", "if",
        "el", "del", "si", "lol", "haha",
    ];
    let calculation = last_expression(earlier).or_else(|| known.last().map(|known| known.expression.clone()))?;
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(String::as_str).filter(|token| *token != ",").collect();
    if words.is_empty() || words.len() > MAX_WORDS {
        return None;
    }
    let other_way = words.windows(3).any(|three| matches!(three, ["other", "way", "round" | "around"]))
        || matches!(words[..], ["reversed"] | ["and", "reversed"] | ["al", "reves"] | ["y", "al", "reves"]);
    if other_way {
        let plain = calculation.trim_matches(['(', ')']);
        let at = plain.find(['/', '-'])?;
        let (one, rest) = plain.split_at(at);
        let (sign, other) = rest.split_at(1);
        let (other, tail) = other.strip_suffix("*100").map_or((other, ""), |other| (other, "*100"));
        let are_numbers = [one, other].iter().all(|number| number.parse::<f64>().is_ok());
        return are_numbers.then(|| format!("{other}{sign}{one}{tail}"));
    }
    // "The party has 7 guests instead of 6" is about something else.
    const AROUND: [&str; 9] = ["instead", "of", "not", "but", "should", "be", "have", "been", "use"];
    let is_around =
        |word: &&str| is_number(word) || OPENINGS.contains(word) || AROUND.contains(word) || UNITS.contains(word);
    if words.iter().all(is_around)
        && let Some(replaced) = with_replacement(&words, &calculation)
    {
        return Some(replaced);
    }
    if last_answered(earlier, known).is_some()
        && let Some(replaced) =
            with_other_part(&words, &calculation, known).or_else(|| supposed(&words, &calculation, known))
    {
        return Some(replaced);
    }
    if let Some(replaced) = as_percentage(&words, &calculation) {
        return Some(replaced);
    }
    // "And if the VAT were only 7%?"
    let is_condition = words.contains(&"if") && words.contains(&"percent");
    let is_stated = |word: &&str| {
        !is_condition || !matches!(*word, "the" | "vat" | "tax" | "tip" | "discount" | "were" | "was" | "only" | "just")
    };
    let words: Vec<&str> = words.into_iter().filter(is_stated).collect();
    let start = words.iter().position(|word| !OPENINGS.contains(word))?;
    let has_opening = start > 0;
    // "And at 5%?"
    let is_at = has_opening && matches!(words[start], "at" | "with") && words.get(start + 2) == Some(&"percent");
    let start = start + usize::from(is_at);
    let number = |at: usize| {
        let word = words.get(at)?;
        if is_number(word) { Some((*word).to_owned()) } else { spelled(word).map(str::to_owned) }
    };
    // "Leave out the 14"
    if let ["leave" | "without" | "drop" | "skip", rest @ ..] = &words[start..] {
        let out = rest.iter().find(|word| is_number(word)).filter(|_| rest.len() <= 3)?;
        let parts: Vec<&str> = calculation.split('+').collect();
        let left: Vec<&str> = parts.iter().copied().filter(|part| part != out).collect();
        let is_sum = parts.iter().all(|part| part.parse::<f64>().is_ok());
        return (is_sum && left.len() > 1 && left.len() + 1 == parts.len()).then(|| left.join("+"));
    }
    // "What is 84 as a percentage of 560?", "and 126?"
    if has_opening && words.len() == start + 1 && calculation.ends_with("*100") {
        let (part, whole) = calculation.split_once('/')?;
        part.parse::<f64>().ok()?;
        return Some(format!("{}/{whole}", number(start)?));
    }
    // "What percent is 45 of 360?", "and 90 of 240"
    if let ([part, "of", whole], true) = (&words[start..], has_opening && calculation.ends_with("*100")) {
        return (is_number(part) && is_number(whole)).then(|| format!("{part}/{whole}*100"));
    }
    let means = |at: usize| matches!(words[at..], ["i", "meant" | "mean"] | ["meant"]);
    let is_short_rest = |at: usize| {
        means(at)
            || {
                words[at..].iter().take(2).all(|word| UNITS.contains(word)) && words.len() <= at + 2
        // "No, between 5, Marta isn't paying"
        || text.split(',').filter(|part| number_in(part).is_some()).count() == 1 && words[at..].len() <= 5 && text.matches(',').count() >= 2
            }
    };
    let replaced_last = |number: &str| {
        let at = calculation.rfind(['/', '*'])?;
        calculation[at + 1..].parse::<f64>().ok()?;
        Some(format!("{}{number}", &calculation[..=at]))
    };
    if words[start] == "of" && words.len() == start + 2 && has_opening {
        // "What percentage of 640 is 96?", "and of 800?"
        if let Some((part, _)) = calculation.strip_suffix("*100").and_then(|share| share.split_once('/')) {
            part.parse::<f64>().ok()?;
            return Some(format!("{part}/{}*100", number(start + 1)?));
        }
        let (share, _) = calculation.rsplit_once("/100*")?;
        return Some(format!(
            "{share}/100*{}{}",
            number(start + 1)?,
            if calculation.ends_with(')') { ")" } else { "" }
        ));
    }
    // "No, 6"
    let corrects = matches!(words[0], "no" | "sorry" | "oops" | "wait" | "actually");
    if corrects && words.len() == start + 1 {
        return replaced_last(&number(start)?);
    }
    match words[start] {
        "by" | "between" | "among" | "into" | "entre" | "somos" => {
            let value = number(start + 1).filter(|_| has_opening || words.len() <= 3)?;
            is_short_rest(start + 2).then(|| replaced_last(&value)).flatten()
        }
        _ => {
            let value = number(start).filter(|_| has_opening && words.get(start + 1) == Some(&"percent"))?;
            let is_all =
                words[start + 2..].iter().all(|word| UNITS.contains(word) || matches!(*word, "off" | "tip" | "vat"));
            let end = calculation.find("/100").filter(|_| is_all)?;
            let begin = calculation[..end].rfind(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(0, |at| at + 1);
            (begin < end).then(|| format!("{}{value}{}", &calculation[..begin], &calculation[end..]))
        }
    }
}

/// Returns the calculation with another count or another result: "sorry, only five of us are paying", "no, 8 chairs", "no, I meant the
/// first one".
fn with_other_part(words: &[&str], calculation: &str, known: &[Calculation]) -> Option<String> {
    const OPENINGS: [&str; 13] =
        ["no", "sorry", "oops", "wait", "actually", "only", "just", "i", "meant", "mean", "its", "it", "make"];
    const PEOPLE: [&str; 7] = ["of", "people", "persons", "guests", "friends", "personas", "are"];
    if !matches!(words.first(), Some(&("no" | "sorry" | "oops" | "wait" | "actually"))) {
        return None;
    }
    let start = words.iter().position(|word| !OPENINGS.contains(word))?;
    let rest = &words[start..];
    if let Some((Reference::One(position), end, _)) = reference_at(rest, 0, known.len())
        && end == rest.len()
    {
        // The calculation that is corrected is not one of its own parts.
        let result = known.get(position)?.result.as_str();
        let part = known.iter().rev().skip(1).find(|part| calculation.strip_prefix(part.result.as_str()).is_some())?;
        let tail = calculation.strip_prefix(part.result.as_str())?;
        let is_whole = tail.starts_with(['+', '-', '*', '/']);
        return is_whole.then(|| format!("{result}{tail}"));
    }
    let number = |word: &str| if is_number(word) { Some(word.to_owned()) } else { spelled(word).map(str::to_owned) };
    let (count, rest) = (number(rest.first()?)?, &rest[1..]);
    // "Only five of us are paying"
    let divisor = calculation.rfind('/').filter(|at| calculation[at + 1..].parse::<f64>().is_ok());
    if let (Some(at), true) = (divisor, rest.first().is_some_and(|word| PEOPLE.contains(word))) {
        return Some(format!("{}/{count}", &calculation[..at]));
    }
    // "No, 8 chairs"
    let ([noun], Some(last)) = (rest, known.last()) else { return None };
    let asked = tokens(&last.asked);
    let old = asked.windows(2).find(|pair| is_number(&pair[0]) && stem(&pair[1]) == stem(noun))?;
    with_replacement(&["not", &old[0], "but", &count], calculation)
}

/// Returns the calculation with another price or another count: "and if I only take 20?", "what if it were 200?"
fn supposed(words: &[&str], calculation: &str, known: &[Calculation]) -> Option<String> {
    const SUPPOSING: [&str; 12] =
        ["and", "what", "but", "so", "only", "just", "then", "instead", "say", "we", "i", "there"];
    // "And for 30?"
    let start = words.iter().position(|word| *word == "if" || *word == "for" && words[0] == "and")?;
    let is_plain = |word: &&str| SUPPOSING.contains(word);
    let rest: Vec<&str> = words[start + 1..].iter().copied().filter(|word| !is_plain(word)).collect();
    let ([verb @ .., new], true) = (&rest[..], words[..start].iter().all(is_plain)) else { return None };
    let new = if is_number(new) { (*new).to_owned() } else { spelled(new)?.to_owned() };
    let (price, count) = price_and_count(&known.last()?.asked);
    let old = match verb {
        [] if words[start] == "for" => count?,
        ["it" | "that" | "they" | "each" | "one", "were" | "was" | "is" | "are" | "costs" | "cost"] => price?,
        ["take" | "took" | "buy" | "bought" | "order" | "get" | "got" | "need" | "want" | "were" | "are"] => count?,
        _ => return None,
    };
    with_replacement(&["not", &old, "but", &new], calculation)
}

/// Returns the calculation in which an amount that was added or taken off is a percentage: "no, I meant 15 percent off".
fn as_percentage(words: &[&str], calculation: &str) -> Option<String> {
    const WORDS: [&str; 18] = [
        "no", "sorry", "oops", "wait", "actually", "i", "meant", "mean", "percent", "off", "the", "full", "whole",
        "sum", "total", "of", "price", "amount",
    ];
    let at = words.windows(2).position(|pair| is_number(pair[0]) && pair[1] == "percent")?;
    let corrects = words.iter().any(|word| matches!(*word, "meant" | "mean" | "no"));
    let is_all = words.iter().enumerate().all(|(index, word)| index == at || WORDS.contains(word));
    let sign = calculation.rfind(['+', '-'])?;
    let (whole, by) = (&calculation[..sign], &calculation[sign + 1..]);
    let is_same = by.trim().parse::<f64>().ok()? == words[at].parse::<f64>().ok()?;
    let whole = if whole.trim().parse::<f64>().is_ok() { whole.trim().to_owned() } else { format!("({whole})") };
    (corrects && is_all && is_same).then(|| format!("{whole}*(1{}{}/100)", &calculation[sign..=sign], words[at]))
}

/// Returns the calculation with one number replaced by another: "7.50 instead of 6.50", "not 6.50 but 7.50".
fn with_replacement(words: &[&str], calculation: &str) -> Option<String> {
    let at = |index: usize| words.get(index).filter(|word| is_number(word)).copied();
    let (new, old) = (0..words.len()).find_map(|index| match &words[index..] {
        ["instead", "of", ..] => Some((at(index.checked_sub(1)?)?, at(index + 2)?)),
        ["not", ..] if words.get(index + 2) == Some(&"but") => Some((at(index + 3)?, at(index + 1)?)),
        ["not", ..] => Some((at(index.checked_sub(1)?)?, at(index + 1)?)),
        _ => None,
    })?;
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let is_whole = |start: usize| {
        let end = start + old.len();
        !calculation[..start].ends_with(is_part) && !calculation[end..].starts_with(is_part)
    };
    let places: Vec<usize> =
        calculation.match_indices(old).map(|(start, _)| start).filter(|start| is_whole(*start)).collect();
    let [start] = places[..] else { return None };
    Some(format!("{}{new}{}", &calculation[..start], &calculation[start + old.len()..]))
}

fn number_in(text: &str) -> Option<String> {
    tokens(text).into_iter().find(|token| is_number(token) || spelled(token).is_some())
}

/// Returns the expression of the last call of the calculator, whether it succeeded or not.
pub(super) fn last_expression(earlier: &[ChatMessage]) -> Option<String> {
    let call = earlier
        .iter()
        .rev()
        .flat_map(ChatMessage::tool_calls)
        .find(|call| call.name == crate::calculation::CALCULATOR)?;
    let arguments: threadkeep::Value = call.arguments.read().ok()?;
    arguments["expression"].as_str().map(str::to_owned)
}
