//! Sets of dialogues that measure an assistant by tool calls, facts and effects, never by wording.
//!
//! A set is a JSON file (`accept-dialogue/1`) of dialogues; each turn has a message and the expectations for the
//! answer. The assistant's tests implement [`DialogueEnv`]; [`run_dialogues`] sends the messages and compares each turn with
//! [`mismatches`].

mod expect;
mod run;
mod text;

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use expect::{ObservedCall, ObservedTurn, mismatches};
pub use run::{DialogueEnv, run_dialogues};

/// A set of dialogues.
#[derive(Clone, Debug, Deserialize)]
pub struct DialogueSet {
    /// The responses of the external services in dialogues that have none of their own.
    #[serde(default)]
    pub world: Map<String, Value>,
    /// The dialogues.
    pub dialogues: Vec<Dialogue>,
}

/// A dialogue.
#[derive(Clone, Debug, Deserialize)]
pub struct Dialogue {
    /// Its name within the set.
    pub id: String,
    /// The time at which it starts (RFC 3339).
    #[serde(default)]
    pub clock: Option<String>,
    /// The responses of the external services.
    #[serde(default)]
    pub world: Map<String, Value>,
    /// The turns, in order.
    pub turns: Vec<DialogueTurn>,
}

/// A turn of a dialogue.
#[derive(Clone, Debug, Deserialize)]
pub struct DialogueTurn {
    /// The user's message; empty for a turn without one.
    #[serde(default)]
    pub user: String,
    /// The user. Each user has separate conversations.
    #[serde(default)]
    pub session: Option<String>,
    /// The conversation: a new name starts a new one.
    #[serde(default)]
    pub thread: Option<String>,
    /// Events before the message, in order.
    #[serde(default)]
    pub before: Vec<Map<String, Value>>,
    /// What the turn must do and contain.
    #[serde(default)]
    pub expect: Map<String, Value>,
    /// `stretch` for turns that do not count.
    #[serde(default)]
    pub level: Option<String>,
    /// The kind of difficulty, for reports.
    #[serde(default)]
    pub kind: Option<String>,
    /// An operation instead of a message.
    #[serde(default)]
    pub op: Option<Value>,
    /// Raw responses of a language model.
    #[serde(default)]
    pub llm: Option<Value>,
}

/// The result of a turn.
#[derive(Clone, Debug)]
pub struct TurnResult {
    /// The dialogue and the turn's 1-based number in it: `nyc-03 turn 2`.
    pub name: String,
    /// The message.
    pub user: String,
    /// The kind of difficulty.
    pub kind: Option<String>,
    /// Whether the turn counts.
    pub is_required: bool,
    /// The differences from the expectation; empty if the turn meets it.
    pub mismatches: Vec<String>,
    /// The observed calls and reply, for reports.
    pub observed: String,
}

impl DialogueSet {
    /// Reads a set from a file; `None` if there is no such file.
    ///
    /// # Panics
    /// If the file is not a valid set.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        Some(Self::parse(&std::fs::read_to_string(path).ok()?))
    }

    /// Parses a set.
    ///
    /// # Panics
    /// If the text is not a valid set.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut set: Self = serde_json::from_str(text).unwrap_or_else(|error| panic!("invalid dialogue set: {error}"));
        for dialogue in set.dialogues.iter_mut().filter(|dialogue| dialogue.world.is_empty()) {
            dialogue.world.clone_from(&set.world);
        }
        set
    }
}

/// Returns how many required turns pass, and how many there are.
#[must_use]
pub fn count_passed(results: &[TurnResult]) -> (usize, usize) {
    let required: Vec<&TurnResult> = results.iter().filter(|result| result.is_required).collect();
    (required.iter().filter(|result| result.mismatches.is_empty()).count(), required.len())
}

/// Describes results: the number of required turns that pass, then each turn that does not.
#[must_use]
pub fn report(results: &[TurnResult]) -> String {
    let required: Vec<&TurnResult> = results.iter().filter(|result| result.is_required).collect();
    let (passed, count) = count_passed(results);
    let mut lines = vec![format!("{passed} of {count} required turns pass")];
    let mut kinds: Vec<&str> = required.iter().filter_map(|result| result.kind.as_deref()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of_kind: Vec<_> = required.iter().filter(|result| result.kind.as_deref() == Some(kind)).collect();
        let passed = of_kind.iter().filter(|result| result.mismatches.is_empty()).count();
        lines.push(format!("  {kind}: {passed} of {}", of_kind.len()));
    }
    // If this is set, the turns that pass are listed too.
    let shows_all = std::env::var_os("THREADKEEP_DIALOGUES_ALL").is_some();
    for result in required.iter().filter(|result| shows_all || !result.mismatches.is_empty()) {
        let TurnResult { name, user, mismatches, observed, .. } = result;
        lines.push(format!("{name}: {user}\n    {}\n    got: {observed}", mismatches.join("\n    ")));
    }
    lines.join("\n")
}
