//! The total of amounts that the user states one by one: "I paid 48.50 for paint", "and 12.75 for brushes", "what have I spent so far?"

use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

use super::{is_number, plain_numbers, tokens};
use crate::calculation;
use crate::evidence::sentences;

/// The minimum number of amounts of a total.
const MIN_AMOUNTS: usize = 2;
/// Verbs of statements with an amount.
const STATING: [&str; 9] = ["paid", "spent", "cost", "costs", "bought", "pay", "spend", "charged", "owe"];
/// Verbs that state an amount only after another one, directly before the number: "the ladder, that was 89".
const CONTINUING: [&str; 3] = ["was", "were", "came"];

/// An amount that the user stated.
#[derive(Debug, PartialEq)]
struct Amount {
    /// The words of the statement.
    words: Vec<String>,
    value: String,
}

/// Returns the sum of the amounts of the conversation, if a message asks for their total.
pub(super) fn total(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    if !sentences(text).any(asks_total) {
        return None;
    }
    let mut amounts = Vec::new();
    let messages = earlier.iter().filter(|message| message.role == Role::User).map(ChatMessage::plain_text);
    for message in messages.chain([text.to_owned()]) {
        if message != text && message.contains('?') && calculation::find(&message).is_some() {
            // The results of calculations have a total of their own.
            return None;
        }
        // "And 12.75 for brushes" continues a statement.
        let continues = |sentence: &str| Utterance::new(sentence).word(0) == "and" && !sentence.contains('?');
        for sentence in sentences(&message).filter(|sentence| continues(sentence) || !is_question(sentence)) {
            read(sentence, &mut amounts);
        }
    }
    let values: Vec<&str> = amounts.iter().map(|amount| amount.value.as_str()).collect();
    (values.len() >= MIN_AMOUNTS).then(|| values.join("+"))
}

/// Whether a sentence asks for a total: "what have I spent so far?", "how much is it all together now?"
fn asks_total(sentence: &str) -> bool {
    let utterance = Utterance::new(sentence);
    let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&word.folded.as_str()));
    let has_number = utterance.words().iter().any(|word| is_number(&word.folded));
    let is_total = has(&["total", "altogether", "together", "overall", "sum"])
        || (0..utterance.words().len()).any(|at| utterance.word(at) == "so" && utterance.word(at + 1) == "far")
        || (0..utterance.words().len()).any(|at| utterance.word(at) == "in" && utterance.word(at + 1) == "all");
    let is_about_money = has(&["spent", "spend", "paid", "pay", "cost", "costs", "much", "total", "sum"]);
    is_total && is_about_money && !has_number && is_question(sentence)
}

/// Reads the amount of a statement, or its correction.
fn read(sentence: &str, amounts: &mut Vec<Amount>) {
    let (words, numbers) = (tokens(sentence), plain_numbers(sentence));
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    match &numbers[..] {
        // "The brushes were 15.75, not 12.75"
        [new, old] if has(&["not"]) => {
            if let Some(amount) = amounts.iter_mut().rev().find(|amount| amount.value == *old) {
                amount.value.clone_from(new);
            }
        }
        [only] => {
            let continues = !amounts.is_empty();
            let at = words.iter().position(|word| word == only).unwrap_or_default();
            // "Was born in 1980" states no amount.
            let is_direct =
                words[..at].iter().rev().find(|word| !matches!(word.as_str(), "to" | "only" | "just" | "about"));
            let states = words.iter().any(|word| STATING.contains(&word.as_str()))
                || continues && is_direct.is_some_and(|word| CONTINUING.contains(&word.as_str()));
            let is_fragment = continues
                && matches!(words.first().map(String::as_str), Some("and" | "also" | "plus"))
                && has(&["for", "another"]);
            // "The brushes were actually 15.75": the same thing again.
            let is_correction = has(&["actually", "wait", "sorry"]);
            let same = amounts.iter_mut().rev().find(|amount| {
                words
                    .iter()
                    .any(|word| word.len() > 4 && !STATING.contains(&word.as_str()) && amount.words.contains(word))
            });
            match same.filter(|_| is_correction) {
                Some(amount) => amount.value.clone_from(only),
                None if states || is_fragment => amounts.push(Amount { value: only.clone(), words: words.clone() }),
                None => {}
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total_of(said: &[&str], asked: &str) -> Option<String> {
        let earlier: Vec<ChatMessage> = said.iter().map(|text| ChatMessage::text(Role::User, *text)).collect();
        total(asked, &earlier)
    }

    #[test]
    fn amounts_are_added() {
        let said = ["I paid 48.50 for paint", "and 12.75 for brushes"];
        assert_eq!(total_of(&said, "What have I spent so far?").as_deref(), Some("48.50+12.75"));
        let asked = "Then there's the ladder, that was 89. How much is it all together now?";
        assert_eq!(total_of(&said, asked).as_deref(), Some("48.50+12.75+89"));
        let corrected = [said[0], said[1], "Wait, the brushes were 15.75, not 12.75"];
        assert_eq!(total_of(&corrected, "So what's the total?").as_deref(), Some("48.50+15.75"));
    }

    #[test]
    fn other_numbers_are_not_added() {
        assert_eq!(total_of(&["I paid 48.50 for paint"], "What have I spent so far?"), None);
        assert_eq!(total_of(&["I was born in 1980", "My house number is 12"], "What is the total?"), None);
        let said = ["I paid 5", "My father was born in 1950", "and 6 for tea"];
        assert_eq!(total_of(&said, "What have I spent so far?").as_deref(), Some("5+6"));
        assert_eq!(total_of(&["What is 3 times 4?", "I paid 5", "I paid 6"], "What is the total?"), None);
    }
}
