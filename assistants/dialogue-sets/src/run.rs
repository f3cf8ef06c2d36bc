//! Runs the dialogues of a set.

use serde_json::Value;

use crate::{Dialogue, DialogueSet, ObservedTurn, TurnResult, mismatches};

/// The environment of one dialogue: an assistant, its external services, and a clock.
#[expect(async_fn_in_trait, reason = "tests implement and use this trait in one task")]
pub trait DialogueEnv: Sized {
    /// Starts an environment in the state that the dialogue describes.
    async fn start(dialogue: &Dialogue) -> Self;

    /// Applies an event that precedes a message, such as `restart` or `advance_clock_s`. Panics on unknown events.
    async fn apply(&mut self, event: &str, value: &Value);

    /// Sends a message in a user's conversation. An unknown conversation name starts a new conversation.
    async fn send(&mut self, user: &str, conversation: &str, text: &str) -> ObservedTurn;

    /// Whether two values of the tool argument `name` mean the same, such as two spellings of one station's name.
    fn are_equal(name: &str, expected: &Value, actual: &Value) -> bool;
}

/// Runs the dialogues of a set. Skips dialogues that script a language model's responses, and turns without a message.
pub async fn run_dialogues<E: DialogueEnv>(set: &DialogueSet) -> Vec<TurnResult> {
    let mut results = Vec::new();
    for dialogue in &set.dialogues {
        if dialogue.turns.iter().any(|turn| turn.llm.is_some()) {
            continue;
        }
        let mut env = E::start(dialogue).await;
        for (index, turn) in dialogue.turns.iter().enumerate() {
            for (event, value) in turn.before.iter().flatten() {
                env.apply(event, value).await;
            }
            if turn.user.is_empty() {
                continue;
            }
            let (user, conversation) = (turn.session.as_deref(), turn.thread.as_deref());
            let observed = env.send(user.unwrap_or("ana"), conversation.unwrap_or("A"), &turn.user).await;
            let calls: Vec<String> =
                observed.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
            results.push(TurnResult {
                name: format!("{} turn {}", dialogue.id, index + 1),
                user: turn.user.clone(),
                kind: turn.kind.clone(),
                is_required: turn.level.as_deref() != Some("stretch"),
                mismatches: mismatches(&turn.expect, &observed, &E::are_equal),
                observed: format!("{} | {}", calls.join(" + "), observed.reply.replace('\n', " / ")),
            });
        }
    }
    results
}
