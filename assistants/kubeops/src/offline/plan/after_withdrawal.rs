//! What else a message asks for that takes requests back.

use crate::command::Verb;
use crate::conversation::Conversation;
use crate::offline::withdraw;
use crate::offline::words::{Lexicon, Reading, read};

use super::corrections::kept_after_cancel;
use super::requests::read_request;
use super::{Next, Planner, next_step, reply};

/// Returns the next step for a message that takes requests back: what it asks for besides, or that they were withdrawn. `None` if it asks
/// something, as any other message.
pub(super) fn after_withdrawal(
    message: &str,
    reading: &Reading,
    conversation: &Conversation,
    withdrawn: &str,
) -> Option<Next> {
    if let Some(kept) = kept_after_cancel(reading, conversation) {
        return Some(Planner { conversation, reading: reading.clone() }.run_or_answer(kept));
    }
    // "Forget that. Which version of uploader is in eu?"
    let asked = read_request(message, &Lexicon::of(conversation));
    // "No dont, logs first": the look that is asked for instead.
    let last = message.rsplit([',', '.', ';', '!']).find(|clause| !clause.trim().is_empty()).unwrap_or(message);
    let instead = read(last, &Lexicon::of(conversation));
    let is_look = instead.has_any(&["logs", "log", "describe", "show", "list", "events"])
        && instead.verb.is_some_and(Verb::is_read)
        && instead.act.is_none()
        && last.len() < message.len();
    if is_look && let run @ Next::Run(_) = next_step(last, conversation) {
        return Some(run);
    }
    // "Forget that, we keep it. Delete the push pod".
    let is_other_change = instead.verb.is_some_and(|verb| !verb.is_read())
        && instead.act.is_none()
        && !instead.names.is_empty()
        && !instead.forbids()
        && !withdraw::cancels(&instead)
        && message.contains(". ")
        && last.len() < message.len();
    if is_other_change {
        return Some(match next_step(last.trim(), conversation) {
            Next::Reply(text) => reply(format!("{withdrawn}\n{text}")),
            run @ Next::Run(_) => run,
        });
    }
    let is_question = asked.verb.is_some_and(Verb::is_read)
        && asked.act.is_none()
        && asked.has_question
        && (!asked.names.is_empty() || asked.kind.is_some());
    (!is_question).then(|| reply(withdrawn))
}
