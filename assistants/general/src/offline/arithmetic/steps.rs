//! Results that are named by what was asked for: "the total with VAT", "what was it without the tip?", "what did the 6 chairs cost?".

use threadkeep::core::text::Language;

use super::super::results::{Calculation, described};
use super::numbers::{is_number, spelled, tokens};

/// The maximum number of words in a question for a named result.
const MAX_WORDS: usize = 14;

/// Words before a part that the result includes.
const WITH: [&str; 7] = ["with", "including", "incl", "plus", "after", "con", "at"];
/// Words before a part that the result lacks.
const WITHOUT: [&str; 8] = ["without", "no", "before", "excluding", "excl", "except", "minus", "sin"];
/// Names of results.
const NAMES: [&str; 9] = ["total", "sum", "result", "amount", "price", "figure", "bill", "cost", "answer"];
/// Words that say nothing about which result is meant.
const FILLERS: [&str; 64] = [
    "wait", "hm", "oh", "sorry", "hang", "out", "what", "whats", "was", "were", "is", "it", "that", "the", "a", "an",
    "did", "do", "does", "how", "much", "again", "i", "we", "you", "get", "got", "have", "had", "pay", "come", "came",
    "to", "please", "pls", "and", "so", "then", "each", "of", "us", "only", "just", "in", "for", "remind", "me",
    "your", "my", "our", "be", "there", "costs", "taking", "take", "adding", "added", "off", "on", "top", "them", "ok",
    "all", ",",
];

/// What the message that asked for a result contains, and what it does not.
#[derive(Debug, Default, PartialEq)]
struct Conditions {
    with: Vec<String>,
    without: Vec<String>,
    /// Whether a word such as "with" or "without" introduces one of them.
    is_introduced: bool,
    /// Whether a result as a whole is meant, rather than a share of it.
    is_whole: bool,
}

impl Conditions {
    fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut conditions = Self::default();
        let mut is_without = false;
        for word in words {
            match word {
                _ if WITH.contains(&word) => (is_without, conditions.is_introduced) = (false, true),
                _ if WITHOUT.contains(&word) => (is_without, conditions.is_introduced) = (true, true),
                _ if NAMES.contains(&word) => conditions.is_whole = true,
                _ if FILLERS.contains(&word) => {}
                _ if is_without => conditions.without.push(stem(word)),
                _ => conditions.with.push(stem(word)),
            }
        }
        conditions
    }

    /// Returns the position of the newest result that meets the conditions. One that was asked for with the words themselves precedes
    /// one that only continues it.
    fn find(&self, known: &[Calculation]) -> Option<usize> {
        let contains_all = |own: &[String]| self.with.iter().all(|word| own.contains(word));
        let fits = |at: &usize| {
            let all = words_of_steps(known, *at);
            let is_share = known[*at].expression.contains('/')
                && tokens(&known[*at].asked).iter().any(|word| matches!(&**word, "per" | "each" | "apiece"));
            contains_all(&all) && !self.without.iter().any(|word| all.contains(word)) && !(self.is_whole && is_share)
        };
        let fitting: Vec<usize> = (0..known.len()).filter(fits).collect();
        let direct = fitting.iter().rev().find(|at| contains_all(&words(&known[**at].asked)));
        direct.or(fitting.last()).copied()
    }
}

/// Returns a word without the ending of its plural, and a number as digits.
pub(super) fn stem(word: &str) -> String {
    let word = spelled(word).unwrap_or(word);
    let stem = ["xes", "ses", "ches", "shes"].iter().find(|ending| word.ends_with(**ending));
    match stem {
        Some(_) => word[..word.len() - 2].to_owned(),
        None if word.len() > 3 && !word.ends_with("ss") => word.trim_end_matches('s').to_owned(),
        None => word.to_owned(),
    }
}

fn words(text: &str) -> Vec<String> {
    tokens(text).iter().map(|word| stem(word)).collect()
}

/// Returns the words with which a result was asked for, and those of the results that it continues.
fn words_of_steps(known: &[Calculation], at: usize) -> Vec<String> {
    let mut all = words(&known[at].asked);
    let mut step = at;
    while let Some(before) = continued(known, step) {
        all.extend(words(&known[before].asked));
        step = before;
    }
    all
}

/// Returns the position of the earlier result with which the expression of a result begins.
fn continued(known: &[Calculation], at: usize) -> Option<usize> {
    (0..at).rev().find(|before| continuation(&known[*before], &known[at]).is_some())
}

/// Returns how an expression continues that begins with an earlier result or with its expression: "*7" in "210*7" or "(420/2) * 7".
fn continuation<'a>(before: &Calculation, after: &'a Calculation) -> Option<&'a str> {
    let expression = after.expression.as_str();
    let of_result = expression.trim_start_matches('(').strip_prefix(&before.result);
    let of_result = of_result.filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    let of_expression = expression.strip_prefix(&format!("({})", before.expression));
    of_result.or(of_expression).map(|rest| rest.trim_start_matches([' ', ')']))
}

/// Returns the result that the newest step with an operation changed: "what did I have before multiplying?", "before I took anything
/// off".
pub(in super::super) fn before_step<'a>(verbs: &[&str], known: &'a [Calculation]) -> Option<&'a Calculation> {
    let stems = |known: &[&str]| verbs.iter().any(|verb| known.iter().any(|stem| verb.starts_with(stem)));
    let signs: &[&str] = match () {
        () if stems(&["multipl", "tripl", "doubl"]) => &["*"],
        () if stems(&["divid", "split", "shar", "halv"]) => &["/"],
        () if stems(&["add", "plus"]) => &["+", "*(1+"],
        () if stems(&["took", "tak", "subtract", "deduct"]) => &["-", "*(1-"],
        () => return None,
    };
    let is_step = |rest: &str| {
        let is_share = rest.starts_with("*(1");
        signs.iter().any(|sign| rest.starts_with(sign) && (!is_share || sign.len() > 1))
    };
    (0..known.len()).rev().find_map(|at| {
        let before = continued(known, at)?;
        is_step(continuation(&known[before], &known[at])?).then(|| &known[before])
    })
}

/// Returns the earlier result that a question names: "what was the total without VAT again?"
pub(in super::super) fn recalled(text: &str, known: &[Calculation], language: Language) -> Option<String> {
    let tokens = tokens(&text.to_lowercase().replace("w/o", "without"));
    let has = |known: &[&str]| tokens.iter().any(|token| known.contains(&token.as_str()));
    let asks = tokens.iter().find(|token| {
        !matches!(
            &***token,
            "and" | "so" | "ok" | "then" | "but" | "wait" | "sorry" | "oh" | "hm" | "hang" | "on" | ","
        )
    });
    let asks = asks.is_some_and(|first| matches!(&**first, "what" | "whats" | "how" | "remind"));
    let is_past = has(&["was", "were", "did", "had", "again", "before"]);
    if !asks || !is_past || tokens.len() > MAX_WORDS || known.is_empty() {
        return None;
    }
    // "What was the result with the typo?" means the one that was corrected.
    if has(&["typo", "mistake", "wrong", "error"]) {
        let corrects = |calculation: &Calculation| {
            let asked = self::tokens(&calculation.asked);
            asked.iter().any(|word| {
                matches!(&**word, "typo" | "oops" | "no" | "sorry" | "meant" | "mistake" | "wrong" | "wait")
            })
        };
        let at = known.iter().rposition(corrects)?;
        return Some(described(&[known.get(at.checked_sub(1)?)?], language));
    }
    let conditions = Conditions::parse(tokens.iter().map(String::as_str));
    let numbers = conditions.with.iter().filter(|word| is_number(word)).count();
    // "What did the paint cost?" asks for what was stated, not for a total that contains it.
    let is_named = numbers > 0 && numbers < conditions.with.len()
        || !conditions.without.is_empty()
        || conditions.is_introduced && conditions.is_whole && !conditions.with.is_empty();
    let found = conditions.find(known).filter(|_| is_named)?;
    Some(described(&[&known[found]], language))
}

/// Returns the result that words name, and how many words: "the total with VAT".
pub(super) fn named_at(words: &[&str], known: &[Calculation]) -> Option<(String, usize)> {
    const ENDS: [&str; 9] = ["by", "from", "times", "and", "divided", "between", "multiplied", "into", ","];
    let ["the", name, introduction, ..] = words else { return None };
    let is_introduced = WITH.contains(introduction) || WITHOUT.contains(introduction);
    if !NAMES.contains(name) || !is_introduced {
        return None;
    }
    let length = (3..words.len()).find(|at| ENDS.contains(&words[*at])).unwrap_or(words.len());
    let conditions = Conditions::parse(words[1..length].iter().copied());
    let is_empty = conditions.with.is_empty() && conditions.without.is_empty();
    let found = conditions.find(known).filter(|_| !is_empty)?;
    Some((known[found].result.clone(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Calculation> {
        let step = |asked: &str, expression: &str, result: &str| Calculation {
            asked: asked.to_owned(),
            expression: expression.to_owned(),
            result: result.to_owned(),
        };
        vec![
            step("A mug costs 4 and we need 10 of them, what's the total?", "4*10", "40"),
            step("and with 20% vat on top?", "(40)*(1+20/100)", "48"),
            step("how much is that per mug", "48/10", "4.8"),
        ]
    }

    #[test]
    fn results_before_a_step_are_found() {
        let found = |verbs: &[&str]| before_step(verbs, &known()).map(|found| found.result.clone());
        assert_eq!(found(&["adding"]).as_deref(), Some("40"));
        assert_eq!(found(&["i", "divided", "it"]).as_deref(), Some("48"));
        assert_eq!(found(&["multiplying"]), None);
        assert_eq!(found(&["lunch"]), None);
    }

    #[test]
    fn results_are_named_by_their_questions() {
        for (text, expected) in [
            ("What was the total without vat again?", Some("= 40")),
            ("and how much was it w/o the vat?", Some("= 40")),
            ("what was the total with vat?", Some("= 48")),
            ("what did the 10 mugs cost?", Some("= 40")),
            ("what did I have before adding the 20%?", Some("= 40")),
            ("what was the total with postage?", None),
            ("what was the result with the typo?", None),
            ("what did the mugs cost?", None),
            ("what was that?", None),
            ("what was the weather before?", None),
        ] {
            let recalled = recalled(text, &known(), Language::English);
            match expected {
                Some(part) => assert!(recalled.as_ref().is_some_and(|it| it.ends_with(part)), "{text}: {recalled:?}"),
                None => assert_eq!(recalled, None, "{text}"),
            }
        }
        let named = |text: &str| named_at(&text.split(' ').collect::<Vec<_>>(), &known());
        assert_eq!(named("the total with vat"), Some(("48".to_owned(), 4)));
        assert_eq!(named("the total without vat by 4"), Some(("40".to_owned(), 4)));
        assert_eq!(named("the total by 4"), None);
    }
}
