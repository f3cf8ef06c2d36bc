//! Messages that only check what came of a change: "did it work?", "gone?", "are they up yet". They do not change what "it", "instead" and
//! "the same" stand for.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::conversation::{Conversation, Exchange, Requested};
use crate::offline::answers;
use crate::offline::refer;
use crate::offline::words::{Act, Lexicon, Reading, number_of, read};

/// The maximum number of words of a question about a change that names nothing.
const MAX_WORDS_OF_CHECK: usize = 6;
/// How many exchanges before the newest change count for "both" and "all".
const MAX_EARLIER: usize = 2;
/// Words of such a question that do not say what is asked.
const FILLERS: [&str; 53] = [
    "is",
    "are",
    "was",
    "were",
    "has",
    "have",
    "did",
    "does",
    "it",
    "its",
    "that",
    "they",
    "them",
    "this",
    "these",
    "both",
    "all",
    "so",
    "and",
    "then",
    "yet",
    "already",
    "by",
    "the",
    "still",
    "with",
    "in",
    "place",
    "happy",
    "puh",
    "phew",
    "anyone",
    "anybody",
    "someone",
    "somebody",
    "those",
    "two",
    "three",
    "of",
    "for",
    "to",
    "roll",
    "be",
    "been",
    "any",
    "out",
    "which",
    "got",
    "come",
    "came",
    "sure",
    "really",
    "everything",
];
/// Words of such a question that say what is asked.
const STATES: [&str; 50] = [
    "helped",
    "help",
    "closed",
    "unschedulable",
    "schedulable",
    "drained",
    "gone",
    "done",
    "ready",
    "up",
    "back",
    "fine",
    "good",
    "well",
    "alright",
    "healthy",
    "green",
    "live",
    "through",
    "thru",
    "go",
    "went",
    "run",
    "ran",
    "take",
    "took",
    "taken",
    "work",
    "worked",
    "working",
    "happen",
    "happened",
    "finished",
    "finish",
    "complete",
    "completed",
    "applied",
    "apply",
    "effect",
    "ok",
    "okay",
    "there",
    "success",
    "successful",
    "approved",
    "approve",
    "accepted",
    "rejected",
    "now",
    "dead",
];

fn is_word_of_check(word: &str) -> bool {
    FILLERS.contains(&word) || STATES.contains(&word)
}

/// Whether a message asks in few words what came of the change that was requested last, after which nothing else was spoken of.
pub(super) fn asks_for_outcome(reading: &Reading, conversation: &Conversation) -> bool {
    let Some(changed) = last_changed(conversation) else { return false };
    // A word of the change itself: "restarted yet?"
    let names_change = |word: &str| {
        let verbs = changed.requested.iter().map(|requested| requested.command.verb);
        verbs.into_iter().any(|verb| {
            let stem = match verb {
                Verb::Delete => "delet",
                Verb::Scale => "scal",
                Verb::RolloutRestart => "restart",
                Verb::RolloutUndo => "roll",
                Verb::SetImage => "updat",
                Verb::Cordon => "cordon",
                Verb::Drain => "drain",
                _ => return false,
            };
            word.starts_with(stem)
        })
    };
    let words = &reading.words;
    let asks = reading.is_question
        || words.iter().find(|word| !matches!(&***word, "ok" | "so" | "and" | "puh" | "phew")).is_some_and(|word| {
            matches!(&**word, "is" | "are" | "was" | "were" | "has" | "have" | "did" | "which" | "got")
        });
    let is_there = words.iter().any(|word| word == "there") && !words.iter().any(|word| word == "still");
    asks && words.len() <= MAX_WORDS_OF_CHECK
        && !is_there
        && reading.names.is_empty()
        && reading.namespace.is_none()
        && words.iter().all(|word| is_word_of_check(word) || names_change(word) || number_of(word).is_some())
        && words.iter().any(|word| STATES.contains(&&**word) || names_change(word) || number_of(word).is_some())
}

/// "Both live?", "have those two restarts happened?": returns what became of the last changes, if not all of them were carried out.
pub(super) fn fates_of_several(reading: &Reading, conversation: &Conversation) -> Option<String> {
    let several = reading.has_any(&["both", "all", "they", "them", "those", "these", "two", "three"]);
    let newest = last_changed(conversation).filter(|_| several)?;
    let at = conversation.earlier.iter().position(|exchange| std::ptr::eq(exchange, newest))?;
    let mut changes: Vec<&Requested> = newest.requested.iter().rev().collect();
    // One request each, directly one after the other.
    for exchange in conversation.earlier[..at].iter().rev().take(MAX_EARLIER) {
        let is_alike = |requested: &Requested| requested.command.verb == newest.requested[0].command.verb;
        if exchange.requested.is_empty() || !exchange.requested.iter().all(is_alike) {
            break;
        }
        changes.extend(exchange.requested.iter().rev());
    }
    let is_done = changes.iter().all(|requested| requested.state == ApprovalState::Done);
    let lines: Vec<String> = changes.iter().rev().map(|requested| answers::line_of_history(requested)).collect();
    (changes.len() > 1 && !is_done).then(|| lines.join("\n"))
}

/// Returns the newest exchange that requested changes, if the exchanges after it only checked them.
pub(super) fn last_changed(conversation: &Conversation) -> Option<&Exchange> {
    let at = conversation.earlier.iter().rposition(|exchange| !exchange.requested.is_empty())?;
    let changed = &conversation.earlier[at];
    conversation.earlier[at + 1..].iter().all(|exchange| is_check(exchange, changed, conversation)).then_some(changed)
}

/// Like [`last_changed`], if the changes were requested, and none of them was refused.
pub(super) fn last_accepted(conversation: &Conversation) -> Option<&Exchange> {
    let is_refused = |state| matches!(state, ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Void);
    last_changed(conversation).filter(|changed| !changed.requested.iter().any(|requested| is_refused(requested.state)))
}

/// Whether an exchange only checked the changes of an earlier one.
fn is_check(exchange: &Exchange, changed: &Exchange, conversation: &Conversation) -> bool {
    let objects = refer::subjects(changed);
    let is_of_change = |object: &ObjectSummary| {
        objects.iter().any(|own| {
            let is_part = object.owner.as_ref().is_some_and(|(_, owner)| *owner == own.name);
            object.namespace == own.namespace && (object.name == own.name || is_part || object.kind == own.kind)
        })
    };
    let said = read(&exchange.said, &Lexicon::of(conversation));
    let is_look = exchange.steps.iter().any(|step| step.command.verb == Verb::RolloutStatus);
    let asks = is_look
        || matches!(said.act, Some(Act::Outcome | Act::History | Act::Repeat))
        || said.words.len() <= MAX_WORDS_OF_CHECK && said.words.iter().all(|word| is_word_of_check(word));
    asks && !exchange.asked && refer::subjects(exchange).iter().all(is_of_change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    #[test]
    fn a_short_question_after_a_change_asks_what_came_of_it() {
        let command = Command::new(Verb::Delete).on("pods", "cart-1", Some("shop"));
        let requested = vec![Requested { command, state: ApprovalState::Pending, turn: "t1".to_owned(), by: None }];
        let changed = Exchange { said: "delete cart-1".to_owned(), requested, ..Exchange::default() };
        let check = Exchange { said: "has that run yet?".to_owned(), ..Exchange::default() };
        let conversation = |earlier: Vec<Exchange>| Conversation {
            earlier,
            namespaces: vec!["shop".to_owned()],
            mentioned: Some(Vec::new()),
            ..Conversation::default()
        };
        let asks = |message: &str, conversation: &Conversation| {
            asks_for_outcome(&read(message, &Lexicon::of(conversation)), conversation)
        };
        let after = conversation(vec![changed.clone(), check]);
        for message in
            ["gone?", "are they gone", "has that run yet?", "all good?", "still there?", "did it go through yet"]
        {
            assert!(asks(message, &after), "{message}");
        }
        for message in ["whats there", "is cart-2 gone?", "delete it", "fine", "is there one on shop?"] {
            assert!(!asks(message, &after), "{message}");
        }
        let look = Exchange { said: "list the nodes".to_owned(), ..Exchange::default() };
        assert!(!asks("gone?", &conversation(vec![changed, look])));
    }
}
