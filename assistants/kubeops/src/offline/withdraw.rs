//! Messages that take back a request that waits for an approval.
//!
//! The person who approves a request must be able to rely on it: a request that the conversation has taken back or corrected must not wait any
//! longer, also if the correction is not understood. So it is withdrawn before any model reads the message.

use crate::conversation::Conversation;

use super::answers;
use super::words::{Act, Reading, read};

/// Phrases that take a request back, wherever they are in a message.
const CANCELS: [&str; 27] = [
    "cancel",
    "cancel that",
    "abort",
    "withdraw",
    "revoke",
    "call it off",
    "scratch that",
    "forget it",
    "forget that",
    "never mind",
    "nevermind",
    "drop that request",
    "drop the request",
    "take that back",
    "on second thought",
    "second thoughts",
    "dont do it",
    "dont do that",
    "do not do that",
    "dont run it",
    "no dont",
    "wait dont",
    "please dont",
    "hold off",
    "leave it",
    "leave it alone",
    "undo the request",
];
/// Words with which a correction begins.
const BEGINNINGS: [&str; 17] = [
    "no", "nope", "nah", "wait", "wrong", "oops", "whoops", "sorry", "argh", "ugh", "shoot", "stop", "hold",
    "actually", "crap", "dang", "dont",
];
/// Words of a correction, wherever they are.
const CORRECTS: [&str; 5] = ["meant", "instead", "wrong", "rather", "mistake"];
/// Phrases that look like a correction, and are none.
const NO_CORRECTIONS: [&str; 9] =
    ["no problem", "no worries", "no rush", "no hurry", "wait for", "sorry for", "hold my", "no idea", "sorry about"];

/// Whether a message cancels a request.
pub(super) fn cancels(reading: &Reading) -> bool {
    let is_negated = reading.says("dont cancel") || reading.says("do not cancel");
    !reading.is_question && !is_negated && CANCELS.iter().any(|phrase| reading.says(phrase))
}

/// Whether a message corrects the request before it.
fn corrects(reading: &Reading) -> bool {
    let asks = reading.is_question
        || reading
            .has_any(&["what", "which", "how", "why", "who", "when", "where", "show", "list", "describe", "logs"]);
    let is_social =
        matches!(reading.act, Some(Act::Thanks | Act::Greeting | Act::Consent | Act::Outcome | Act::Capabilities));
    let excludes = reading.words.first().is_some_and(|word| word == "not") && !reading.says("not yet");
    let begins = excludes || reading.words.iter().take(2).any(|word| BEGINNINGS.contains(&&**word));
    !asks
        && !is_social
        && !NO_CORRECTIONS.iter().any(|phrase| reading.says(phrase))
        && (begins || reading.has_any(&CORRECTS))
}

/// Whether a message takes back the request that waits, or corrects it.
pub(crate) fn takes_back(message: &str, conversation: &Conversation) -> bool {
    if answers::pending(conversation).is_none() {
        return false;
    }
    let reading = read(message, &conversation.namespaces);
    let is_newest = conversation.earlier.last().is_some_and(|last| !last.requested.is_empty());
    cancels(&reading) || is_newest && corrects(&reading)
}

#[cfg(test)]
mod tests {
    use threadkeep::agent::ApprovalState;

    use super::*;
    use crate::command::{Command, Verb};
    use crate::conversation::{Exchange, Requested};

    #[test]
    fn cancellations_and_corrections_take_a_request_back() {
        let command = Command::new(Verb::Delete).on("pods", "web-1", Some("prod"));
        let requested = vec![Requested { command, state: ApprovalState::Pending }];
        let conversation = Conversation {
            earlier: vec![Exchange { said: "delete web-1".to_owned(), requested, ..Exchange::default() }],
            ..Conversation::default()
        };
        for message in [
            "wait no dont",
            "cancel the delete",
            "no, the other",
            "on second thought drop that request",
            "oops wrong pod",
            "never mind",
        ] {
            assert!(takes_back(message, &conversation), "{message}");
        }
        for message in [
            "wait, what pods are in there?",
            "did it work?",
            "no worries",
            "is it approved?",
            "yes go ahead",
            "thanks",
            "how many are there",
            "restart web",
        ] {
            assert!(!takes_back(message, &conversation), "{message}");
        }
        assert!(!takes_back("cancel", &Conversation::default()));
    }
}
