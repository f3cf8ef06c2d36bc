//! Numbers in messages, and what "that", "the two" or "my budget" refer to.

use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

use super::super::quoting::quoted_texts;
use super::super::results::{Calculation, Reference, last_answered, reference_at};
use super::super::{DECLINED, DECLINED_IN_SPANISH, NOT_FOUND, NOT_FOUND_IN_SPANISH};
use super::corrections::last_expression;
use super::steps::named_at;
use crate::calculation::number;
use crate::evidence::sentences;

/// Words that refer to the last number.
pub(super) const PRONOUNS: [&str; 8] = ["that", "it", "this", "eso", "esto", "ello", "lo", "them"];

/// Words after "the" that name no stated number.
const NOT_NAMES: [&str; 25] = [
    "power",
    "first",
    "second",
    "third",
    "last",
    "two",
    "three",
    "result",
    "total",
    "sum",
    "amount",
    "answer",
    "difference",
    "average",
    "same",
    "other",
    "ratio",
    "product",
    "square",
    "percentage",
    "half",
    "mean",
    "root",
    "number",
    "numbers",
];

/// Splits a message into words, numbers and signs: "12.5%" becomes "12.5" and "percent".
pub(super) fn tokens(text: &str) -> Vec<String> {
    let spaced = text.replace(['\'', '’'], "");
    let mut tokens = Vec::new();
    for piece in spaced.split_whitespace() {
        let piece = piece
            .trim_matches(|c: char| matches!(c, '?' | '!' | ';' | ':' | '"' | '“' | '”' | '€' | '$' | '£' | '(' | ')'));
        let ends_with_comma = piece.ends_with(',');
        let piece = piece.trim_end_matches(['.', ',']);
        let (piece, is_percent) = piece.strip_suffix('%').map_or((piece, false), |piece| (piece, true));
        let is_number = piece.starts_with(|c: char| c.is_ascii_digit())
            && piece.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
        if is_number {
            tokens.push(number(piece));
        } else if let Some((amount, unit)) = with_unit(piece) {
            tokens.extend([number(amount), unit.to_owned()]);
        } else {
            tokens.extend(Utterance::new(piece).words().iter().map(|word| word.folded.clone()));
            tokens.extend(matches!(piece, "+" | "-" | "*" | "/" | "×" | "÷").then(|| piece.to_owned()));
        }
        tokens.extend(is_percent.then(|| "percent".to_owned()));
        tokens.extend(ends_with_comma.then(|| ",".to_owned()));
    }
    tokens
}

/// Splits "7.5h" into the amount and its unit.
fn with_unit(piece: &str) -> Option<(&str, &str)> {
    const UNITS: [&str; 12] = ["h", "hrs", "km", "kg", "g", "m", "cm", "l", "ml", "min", "mins", "eur"];
    let at = piece.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).filter(|at| *at > 0)?;
    let (amount, unit) = piece.split_at(at);
    UNITS.contains(&unit).then_some((amount, unit))
}

pub(super) fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
        || token.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the digits of a number that is written as a word.
pub(in super::super) fn spelled(token: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 24] = [
        ("two", "2"),
        ("three", "3"),
        ("four", "4"),
        ("five", "5"),
        ("six", "6"),
        ("seven", "7"),
        ("eight", "8"),
        ("nine", "9"),
        ("ten", "10"),
        ("eleven", "11"),
        ("twelve", "12"),
        ("twenty", "20"),
        ("hundred", "100"),
        ("dos", "2"),
        ("tres", "3"),
        ("cuatro", "4"),
        ("cinco", "5"),
        ("seis", "6"),
        ("siete", "7"),
        ("ocho", "8"),
        ("nueve", "9"),
        ("diez", "10"),
        ("doce", "12"),
        ("cien", "100"),
    ];
    NAMES.iter().find(|(name, _)| *name == token).map(|(_, number)| *number)
}

/// The numbers to which the words of a message may refer.
pub(super) struct Numbers<'a> {
    pub(super) known: &'a [Calculation],
    /// What "that" means.
    pub(super) last: Option<String>,
    /// What "the two" or "all three" may mean, most likely first.
    pub(super) groups: Vec<Vec<String>>,
    /// The statements of the user, newest first, in which "my budget" may have a value.
    stated: Vec<String>,
    /// The numbers that the last two replies quoted, if each quoted one.
    pub(super) replies: Option<(String, String)>,
    /// The result that "the total" means, unless the message itself names another one.
    result: Option<String>,
    /// The two numbers that the last calculation compared.
    compared: Option<(String, String)>,
    /// The texts whose numbers "in total" may mean, most likely first.
    pub(super) texts: [String; 2],
}

impl<'a> Numbers<'a> {
    pub(super) fn new(before: &str, earlier: &[ChatMessage], known: &'a [Calculation]) -> Self {
        let own = plain_numbers(before);
        let message = |role: Role| {
            let message = earlier.iter().rev().find(|message| message.role == role && !message.plain_text().is_empty());
            message.map(ChatMessage::plain_text).unwrap_or_default()
        };
        let (reply, said) = (message(Role::Assistant), message(Role::User));
        let answered = last_answered(earlier, known);
        let is_result = answered.is_some();
        let result = answered.or_else(|| known.last().map(|calculation| calculation.result.clone()));
        let quoted = plain_numbers(&quoted_texts(&reply));
        // "That" after a request that was not answered means the missing result, not a number of the request.
        let is_unanswered = [NOT_FOUND, NOT_FOUND_IN_SPANISH, DECLINED, DECLINED_IN_SPANISH]
            .iter()
            .any(|unanswered| reply.starts_with(unanswered));
        let stated = if is_unanswered { Vec::new() } else { plain_numbers(&said) };
        let undivided = divided_by_zero(earlier);
        let last = match (&own[..], &quoted[..], &stated[..]) {
            ([number], ..) => Some(number.clone()),
            _ if undivided.is_some() => undivided,
            _ if is_result => result.clone(),
            _ if is_unanswered => None,
            (_, [number], _) | (_, [], [number]) => Some(number.clone()),
            _ => result.clone(),
        };
        let compared = last_expression(earlier).and_then(|expression| {
            let (one, other) = expression.split_once('-')?;
            (is_number(one) && is_number(other)).then(|| (one.to_owned(), other.to_owned()))
        });
        let result = result.filter(|_| is_result || plain_numbers(&said).is_empty());
        let results: Vec<String> =
            known.iter().rev().take(2).rev().map(|calculation| calculation.result.clone()).collect();
        let are_results_first = known.len() == 2 || is_result;
        let groups = match are_results_first {
            true => [own, results, quoted, stated],
            false => [own, quoted, stated, results],
        };
        let groups = groups.into_iter().filter(|numbers| numbers.len() > 1).collect();
        let of_user = earlier.iter().rev().filter(|message| message.role == Role::User);
        let stated = std::iter::once(before.to_owned())
            .chain(of_user.map(ChatMessage::plain_text).filter(|text| !is_question(text)))
            .collect();
        let replies = earlier.iter().rev().filter(|message| message.role == Role::Assistant);
        let replies = replies.map(ChatMessage::plain_text).filter(|text| !text.is_empty()).take(2);
        let replies = replies.map(|reply| plain_numbers(&quoted_texts(&reply))).collect::<Vec<_>>();
        let replies = match &replies[..] {
            [last, before] if last.len() == 1 && before.len() == 1 => Some((last[0].clone(), before[0].clone())),
            _ => None,
        };
        Self { known, last, groups, stated, replies, result, compared, texts: [before.to_owned(), said] }
    }
}

/// Returns the number that the calculation of the last message divided by zero.
fn divided_by_zero(earlier: &[ChatMessage]) -> Option<String> {
    let last_message = earlier.iter().rposition(|message| message.role == Role::User)?;
    let expression = last_expression(&earlier[last_message..])?;
    let dividend = expression.strip_suffix("/0")?;
    is_number(dividend).then(|| dividend.to_owned())
}

impl Numbers<'_> {
    /// Returns the numbers that "the two" or "all three" mean.
    pub(super) fn group(&self, size: usize) -> Option<&Vec<String>> {
        self.groups.iter().find(|group| group.len() == size && size > 1)
    }

    /// Returns the number that "the total" means: the last result, unless the message itself states a total.
    fn whole(&self, name: &str) -> Option<String> {
        let is_stated = Utterance::new(&*self.texts[0]).words().iter().any(|word| word.folded == name);
        self.result.clone().filter(|_| !is_stated).or_else(|| self.last.clone())
    }

    /// Returns the number that "the larger one" or "the smallest result" means.
    fn extreme(&self, word: &str) -> Option<String> {
        let (is_largest, is_of_two) = match word {
            "larger" | "bigger" | "higher" | "greater" => (true, true),
            "smaller" | "lower" => (false, true),
            "largest" | "biggest" | "highest" => (true, false),
            "smallest" | "lowest" => (false, false),
            _ => return None,
        };
        let results = || self.known.iter().map(|calculation| calculation.result.clone()).collect::<Vec<_>>();
        let candidates = match &self.compared {
            Some((one, other)) if is_of_two => vec![one.clone(), other.clone()],
            _ if is_of_two => self.group(2)?.clone(),
            _ => results(),
        };
        let value = |number: &String| number.parse::<f64>().unwrap_or_default();
        let by_value = |one: &String, other: &String| value(one).total_cmp(&value(other));
        if is_largest { candidates.into_iter().max_by(by_value) } else { candidates.into_iter().min_by(by_value) }
    }

    /// Returns the number that the user stated for a name: "my budget".
    fn named(&self, name: &str) -> Option<String> {
        let clauses = |text: &str| -> Vec<String> {
            let parts = sentences(text).flat_map(|sentence| sentence.split(", ")).flat_map(|part| part.split(" and "));
            parts.map(str::to_owned).collect()
        };
        self.stated.iter().find_map(|text| {
            clauses(text).into_iter().rev().find_map(|clause| {
                let is_named = Utterance::new(&*clause).words().iter().any(|word| word.folded == name);
                <[String; 1]>::try_from(plain_numbers(&clause)).ok().filter(|_| is_named).map(|[number]| number)
            })
        })
    }
}

/// Returns the numbers of a text that are neither percentages, times, nor days of a month.
pub(in super::super) fn plain_numbers(text: &str) -> Vec<String> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let tokens = tokens(text);
    let is_plain = |at: &usize| {
        let next = tokens.get(at + 1).map_or("", String::as_str);
        let is_day = MONTHS.iter().any(|month| next.starts_with(month)) && next.len() > 2;
        is_number(&tokens[*at]) && next != "percent" && !is_day
    };
    (0..tokens.len()).filter(is_plain).map(|at| tokens[at].clone()).collect()
}

/// A word of a calculation, or a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Number(String),
    Group(Vec<String>),
    Word(String),
}

impl Item {
    pub(super) fn is(&self, known: &[&str]) -> bool {
        matches!(self, Self::Word(word) if known.contains(&word.as_str()))
    }
}

/// Replaces references by numbers. Returns whether there was one.
pub(super) fn items(tokens: &[String], numbers: &Numbers<'_>) -> Option<(Vec<Item>, bool)> {
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (mut items, mut refers, mut at) = (Vec::new(), false, 0);
    // Without results, "the second one" is one of the amounts that were stated together.
    let results: Vec<String> = match numbers.known {
        [] => numbers.groups.first().cloned().unwrap_or_default(),
        known => known.iter().map(|calculation| calculation.result.clone()).collect(),
    };
    let result = |position: usize| results.get(position).cloned();
    while at < words.len() {
        let word = words[at];
        if let Some((number, length)) = named_at(&words[at..], numbers.known) {
            items.push(Item::Number(number));
            (refers, at) = (true, at + length);
            continue;
        }
        // "The larger one"
        if let ["the", word, "one" | "result" | "number" | "figure", ..] = &words[at..]
            && let Some(number) = numbers.extreme(word)
        {
            items.push(Item::Number(number));
            (refers, at) = (true, at + 3);
            continue;
        }
        // "A third of that" is a share.
        let is_share = words.get(at + 1) == Some(&"of");
        let reference = reference_at(&words, at, results.len()).filter(|_| !results.is_empty() && !is_share);
        if let Some((reference, end, _)) = reference {
            items.push(match reference {
                Reference::One(position) => Item::Number(result(position)?),
                Reference::Several(range) => Item::Group(range.map(result).collect::<Option<_>>()?),
            });
            (refers, at) = (true, end);
            continue;
        }
        let size = match words[at..] {
            ["both", ..] => Some((2, 1)),
            ["all" | "the" | "those" | "these", count, ..] => {
                spelled(count).and_then(|count| Some((count.parse().ok()?, 2)))
            }
            _ => None,
        };
        if let Some((group, length)) = size.and_then(|(size, length)| Some((numbers.group(size)?, length))) {
            items.push(Item::Group(group.clone()));
            at += length;
            at += usize::from(matches!(words.get(at), Some(&("numbers" | "prices" | "amounts" | "results" | "rents"))));
            refers = true;
            continue;
        }
        // "My budget", "the rent", "the deposit of 60"
        if let ["my" | "the" | "our", name, rest @ ..] = &words[at..]
            && !NOT_NAMES.contains(name)
        {
            let own = match rest {
                ["of", number, ..] if is_number(number) => Some(((*number).to_owned(), 4)),
                _ => numbers.named(name).map(|number| (number, 2)),
            };
            if let Some((number, length)) = own {
                items.push(Item::Number(number));
                (refers, at) = (true, at + length);
                continue;
            }
        }
        let names_last = PRONOUNS.contains(&word)
            || matches!(words[at..], ["the", "result" | "total" | "sum" | "amount" | "answer", ..])
                && !matches!(words.get(at + 2), Some(&("of" | "with" | "including" | "for")));
        let meant = if PRONOUNS.contains(&word) {
            numbers.last.clone()
        } else {
            numbers.whole(words.get(at + 1).unwrap_or(&""))
        };
        if let (true, Some(last)) = (names_last, meant) {
            items.push(Item::Number(last));
            at += if PRONOUNS.contains(&word) { 1 } else { 2 };
            // "That total", "this result", "that one"
            at +=
                usize::from(matches!(words.get(at), Some(&("result" | "total" | "sum" | "amount" | "number" | "one"))));
            refers = true;
            continue;
        }
        match spelled(word) {
            _ if is_number(word) => items.push(Item::Number(word.to_owned())),
            Some(number) => items.push(Item::Number(number.to_owned())),
            None => items.push(Item::Word(word.to_owned())),
        }
        at += 1;
    }
    Some((items, refers))
}
