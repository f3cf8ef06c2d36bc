//! What is left of an amount: "we've got 2400 for the trip, the hotel's 930. What's left?", and debts that were partly repaid: "I lent Ana
//! 120", "Ana gave me 50 back", "how much does Ana still owe me?"

use threadkeep::dialogue::is_question;
use threadkeep::{ChatMessage, Role};

use super::numbers::{is_number, plain_numbers, tokens};
use crate::evidence::sentences;

/// The maximum number of words in a question about the conversation's debts.
const MAX_DEBT_WORDS: usize = 12;

/// Returns the difference for a question for the rest of an amount.
pub(super) fn left(text: &str, earlier: &[ChatMessage], last: Option<&str>) -> Option<String> {
    let all = tokens(text);
    let word = |at: usize| all.get(at).map_or("", String::as_str);
    let has = |known: &[&str]| all.iter().any(|token| known.contains(&token.as_str()));
    let numbers = plain_numbers(text);
    // "The trains were 214, take those off as well"; in "take that off the 214", the number follows and is the whole.
    let stated = all.iter().position(|token| numbers.first() == Some(token)).unwrap_or_default();
    let takes = (0..all.len()).any(|at| {
        matches!(word(at), "take" | "knock" | "subtract" | "deduct")
            && matches!(word(at + 1), "that" | "those" | "it" | "them")
            && (word(at + 2) == "off" || matches!(word(at), "subtract" | "deduct"))
            && stated < at
    });
    if let ([only], Some(last), true) = (&numbers[..], last, takes) {
        let is_share = all.windows(2).any(|pair| pair[0] == *only && pair[1] == "percent");
        return (!is_share).then(|| format!("{last}-{only}"));
    }
    let asks = (0..all.len()).any(|at| {
        let is_rest = |at: usize| matches!(word(at), "left" | "remaining") && word(at - 1) != "the";
        matches!(word(at), "whats" | "much") && (is_rest(at + 1) || is_rest(at + 2) || is_rest(at + 3))
            || word(at) == "what" && word(at + 1) == "is" && is_rest(at + 2)
    });
    if !asks || has(&["percent", "each", "per", "hours", "hour", "days", "minutes", "if"]) && numbers.is_empty() {
        return None;
    }
    let stated = match numbers.len() {
        0 => {
            let mut said =
                earlier.iter().rev().filter(|message| message.role == Role::User).map(ChatMessage::plain_text);
            said.next().filter(|said| says_whole(said)).map(|said| plain_numbers(&said))?
        }
        _ => numbers,
    };
    let [whole, parts @ ..] = &stated[..] else { return None };
    let is_less = |sum: f64| whole.parse::<f64>().is_ok_and(|whole| sum <= whole);
    let sum = parts.iter().map(|part| part.parse::<f64>()).sum::<Result<f64, _>>().ok()?;
    (!parts.is_empty() && is_less(sum)).then(|| format!("{whole}-{}", parts.join("-")))
}

/// Whether a text states an amount and what it is spent on.
fn says_whole(text: &str) -> bool {
    let all = tokens(text);
    let Some(at) = all.iter().position(|token| is_number(token)) else { return false };
    all[..at].iter().any(|word| {
        matches!(&**word, "got" | "have" | "had" | "budget" | "saved" | "weve" | "ive" | "start" | "started")
    })
}

/// Returns what someone still owes the user, if parts of it were repaid.
pub(super) fn owed(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let all = tokens(text);
    let has = |known: &[&str]| all.iter().any(|token| known.contains(&token.as_str()));
    let at = all.iter().position(|token| matches!(&**token, "owe" | "owes"))?;
    let asks = has(&["how"]) && has(&["much"]) && has(&["me"]) && all.len() <= MAX_DEBT_WORDS;
    let name =
        all[..at].iter().rev().find(|word| !matches!(&***word, "still" | "does" | "now" | "do")).filter(|_| asks)?;
    if matches!(&**name, "i" | "we" | "much" | "they" | "he" | "she" | "you") {
        return None;
    }
    let (mut lent, mut repaid) = (Vec::new(), Vec::new());
    for message in earlier.iter().filter(|message| message.role == Role::User).map(ChatMessage::plain_text) {
        for sentence in sentences(&message).filter(|sentence| !is_question(sentence)) {
            let mut verb = None;
            for clause in sentence.split([',', ';']).flat_map(|clause| clause.split(" and ")) {
                let words = tokens(clause);
                let says = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
                let gives_back = says(&["back"]) && says(&["gave", "paid", "pays", "gives", "sent"]);
                verb = match () {
                    () if gives_back || says(&["repaid", "returned"]) => Some(false),
                    () if says(&["lent", "owes", "owe", "borrowed"]) => Some(true),
                    () => verb,
                };
                let ([amount], Some(is_debt), true) = (&plain_numbers(clause)[..], verb, words.contains(name)) else {
                    continue;
                };
                if is_debt { lent.push(amount.clone()) } else { repaid.push(amount.clone()) }
            }
        }
    }
    let expression = [lent.join("+"), repaid.join("-")].join("-");
    (!lent.is_empty() && !repaid.is_empty()).then_some(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> Vec<ChatMessage> {
        texts.iter().map(|text| ChatMessage::text(Role::User, *text)).collect()
    }

    #[test]
    fn the_rest_of_an_amount_is_a_difference() {
        let budget = said(&["We've got 900 for the party. The room's 300 already"]);
        for (earlier, text, last, expected) in [
            (&budget, "so whats left of it", None, Some("900-300")),
            (&budget, "if it fetches 1200 and the movers take 100 of that whats left for me", None, Some("1200-100")),
            (&budget, "drinks were 150, take those off as well", Some("600"), Some("600-150")),
            (&budget, "take that off the 1260", Some("189"), None),
            (&budget, "drinks were 10%, take those off", Some("600"), None),
            (&budget, "what's on the left of the shelf?", None, None),
            (&said(&["The gas is 70 and the water is 30"]), "what's left?", None, None),
        ] {
            assert_eq!(left(text, earlier, last).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn repaid_debts_are_subtracted() {
        let debts = said(&["I lent Ida 120 and Ben 45", "ida gave me 50 back today"]);
        assert_eq!(owed("how much does Ida still owe me", &debts).as_deref(), Some("120-50"));
        // Nothing was repaid: the statement is quoted.
        assert_eq!(owed("how much does Ben owe me?", &debts), None);
        assert_eq!(owed("how much do I owe Ida?", &debts), None);
    }
}
