//! The records of a turn in its thread: a run record until it ends, a journal, and a turn record after its end.
//!
//! The run record is also the thread's lock: each commit of a turn requires the version that the commit before wrote, so the next
//! commit of a driver that was taken over fails. A run that waits for a person is stored under a separate name, and the thread is
//! not locked.

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, EPHEMERAL, Failure, Fingerprint, JsonText, Map, MessageId, Namespace, Owner, RecordName, ThreadId,
    Timestamp,
};

use super::{ContextNumbers, TurnStatus, TurnUsage};
use crate::{Draft, MemoryError};

const JOURNALS: &str = "journal";
const TURNS: &str = "turn";
const APPROVALS: &str = "approval";
/// The prefix of the keys of waiting runs.
const WAITING: &str = "waiting/";
/// How long turn records and finished approvals are retained: 30 days, in milliseconds.
pub const TURN_RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// What drives a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnKind {
    /// An assistant's graph: it has a journal, and is resumed after an interruption.
    #[default]
    Run,
    /// A single call of a model: stored as a whole at its end or not at all, and never resumed, because the answer would have to
    /// be paid for twice.
    Completion,
}

/// The record of an unfinished turn. No member may be removed, because instances of earlier versions read it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The turn's id.
    pub turn: String,
    /// What drives it.
    #[serde(default, skip_serializing_if = "TurnKind::is_run")]
    pub kind: TurnKind,
    /// The assistant; empty for a completion, so that no assistant resumes it.
    pub assistant: String,
    /// The assistant's graph.
    pub graph: String,
    /// The graph's version.
    pub version: u32,
    /// The owner on whose behalf it runs, also if another one resumes it.
    #[serde(rename = "asker", default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Owner>,
    /// The name of its driver.
    pub driver: String,
    /// When its driver's lease ends.
    pub lease_until: Timestamp,
    /// How often it was taken over from a driver that was gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken_over: u32,
    /// The graph's input in addition to the question.
    #[serde(rename = "given", default, skip_serializing_if = "Map::is_empty")]
    pub extra_input: Map,
    /// Whether its messages are marked as ephemeral.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ephemeral: bool,
    /// Whether `extra_input` is complete, so that the assistant need not prepare the turn again.
    pub is_prepared: bool,
    /// The name of the model.
    pub model: String,
    /// When it started.
    pub started_at: Timestamp,
    /// The number of records of the journal.
    pub entries: u32,
    /// The requests for work that may be started only once and was started.
    #[serde(rename = "begun", default, skip_serializing_if = "Vec::is_empty")]
    pub started_once: Vec<u32>,
    /// How many messages that the run made are stored in the thread.
    #[serde(rename = "said")]
    pub own_messages: usize,
    /// How many messages of this turn are stored in the thread, including the user's. The run record does not repeat their text,
    /// so that erasing them erases it.
    pub messages: u16,
    /// The size of the context.
    #[serde(default)]
    pub context: ContextNumbers,
    /// How long it ran before it started to wait.
    #[serde(default)]
    pub worked_ms: u64,
    /// Number of embedding calls, except those of tools.
    #[serde(default)]
    pub embedding_calls: u64,
}

impl TurnKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

impl RunRecord {
    /// Marks a message of this turn as ephemeral if the turn is.
    #[must_use]
    pub fn mark_if_ephemeral(&self, mut draft: Draft) -> Draft {
        if self.is_ephemeral {
            draft.content.metadata.insert(EPHEMERAL.to_owned(), true.into());
        }
        draft
    }
}

/// The record of a turn that has ended: at most 1 KB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The assistant.
    pub assistant: String,
    /// The assistant's graph.
    pub graph: String,
    /// The graph's version.
    pub version: u32,
    /// The model.
    pub model: String,
    /// How it ended.
    pub status: TurnStatus,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The confidence of the choice of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Its usage of models.
    pub usage: TurnUsage,
    /// The size of the context.
    pub context: ContextNumbers,
    /// How many messages of the thread belong to the turn.
    pub messages: u16,
    /// When it started.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
}

impl TurnRecord {
    /// Encodes the record, shortening its texts to keep it within its limit.
    ///
    /// # Errors
    /// Those of the codec; none is known.
    pub fn to_json(&self) -> threadkeep_core::Result<JsonText> {
        let mut shortened = self.clone();
        for name in [&mut shortened.assistant, &mut shortened.model] {
            *name = name.chars().take(40).collect();
        }
        if let Some(error) = &mut shortened.error {
            error.message = error.message.chars().filter(|character| !character.is_control()).take(64).collect();
        }
        JsonText::of(&shortened)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The id of a turn's message, derived from its number, so that a turn finds its messages, and a commit that another driver
/// repeats cannot duplicate them.
#[must_use]
pub fn message_id(turn: &str, started_at: Timestamp, number: u16) -> MessageId {
    let mut random = [0; 10];
    let digest = Fingerprint::of(turn.as_bytes());
    random[..8].copy_from_slice(&digest.0);
    random[8..].copy_from_slice(&number.to_be_bytes());
    MessageId::v7(started_at, random)
}

/// The id of the turn that is requested with an idempotency key in a thread.
#[must_use]
pub fn turn_id_for_key(thread: ThreadId, key: &str) -> String {
    MessageId::from_name(format!("turn/{thread}/{key}").as_bytes()).to_string()
}

/// Whether a text can be the id of a turn or of an approval. Ids are used in keys of records.
pub(super) fn is_valid_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 100 && !id.chars().any(char::is_control)
}

/// The namespace of run records.
#[must_use]
pub fn run_namespace() -> Namespace {
    active_name().namespace
}

/// The run record of the turn that holds the lock of the thread.
#[must_use]
pub fn active_name() -> RecordName {
    RecordName::driver()
}

/// The run record of a turn that waits for a person.
#[must_use]
pub fn waiting_name(turn: &str) -> RecordName {
    RecordName { namespace: run_namespace(), key: format!("{WAITING}{turn}") }
}

/// Whether a key is that of the run record that holds the lock.
#[must_use]
pub fn is_active(key: &str) -> bool {
    key == active_name().key
}

/// Whether a commit failed because a run record is not as required: another driver has taken over.
#[must_use]
pub fn is_run_conflict(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if *namespace == run_namespace())
}

/// Whether a commit failed because of a run record, or because the turn has ended already.
#[must_use]
pub fn is_turn_conflict(error: &MemoryError) -> bool {
    let is_turns = |namespace: &Namespace| matches!(namespace, Namespace::System(name) if name == TURNS);
    is_run_conflict(error)
        || matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if is_turns(namespace))
}

/// Whether a commit failed because an approval is not as required: it was decided already.
#[must_use]
pub fn is_approval_conflict(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if *namespace == approval_namespace())
}

/// The namespace of journals.
#[must_use]
pub fn journal_namespace() -> Namespace {
    Namespace::System(JOURNALS.to_owned())
}

/// A record of a journal, counted from 1.
#[must_use]
pub fn entry_name(turn: &str, number: u32) -> RecordName {
    RecordName { namespace: journal_namespace(), key: format!("{turn}/{number:04}") }
}

/// The turn record of a turn that has ended.
#[must_use]
pub fn turn_record_name(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System(TURNS.to_owned()), key: turn.to_owned() }
}

/// The namespace of approvals.
#[must_use]
pub fn approval_namespace() -> Namespace {
    Namespace::System(APPROVALS.to_owned())
}

/// The record of an approval.
#[must_use]
pub fn approval_name(id: &str) -> RecordName {
    RecordName { namespace: approval_namespace(), key: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use threadkeep_core::TokenDetails;

    use super::*;

    #[test]
    fn turn_records_stay_within_their_limit() {
        let at: Timestamp = "2026-11-21T08:30:00.123456Z".parse().unwrap();
        let big = u64::MAX >> 12;
        let record = TurnRecord {
            assistant: "é".repeat(200),
            graph: "plan_execute_synthesise".to_owned(),
            version: 12,
            model: "é".repeat(5_000),
            status: TurnStatus::Failed,
            error: Some(Failure::new("model_unavailable", "\u{1}😀".repeat(5_000))),
            confidence: Some(0.95),
            usage: TurnUsage {
                model_calls: 25,
                embedding_calls: 3,
                input_tokens: big,
                output_tokens: big,
                details: TokenDetails { cached_input: big, cache_write: big, reasoning: big },
                cost_usd: None,
            },
            context: ContextNumbers { messages: 20, tokens: big, summary: big, recalled: 50, dropped: big },
            messages: u16::MAX,
            started_at: at,
            duration_ms: big,
        };
        let json = record.to_json().unwrap();
        assert!(json.as_str().len() <= 1_024, "{}", json.as_str().len());
    }

    #[test]
    fn message_ids_of_a_turn_are_ascending() {
        let at: Timestamp = "2026-11-21T08:30:00Z".parse().unwrap();
        let ids: Vec<_> = (0..700).map(|number| message_id("a turn", at, number)).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        assert_ne!(message_id("another turn", at, 0), ids[0]);
    }
}
