//! The records of a turn in its thread: a run record until the turn ends, a journal, and a turn record afterwards.
//!
//! The run record is also the thread's lock: each commit by the turn requires the version that the previous commit wrote. So if
//! another driver takes over, the next commit by the former driver fails. While a run waits for a person's decision, its record
//! has another name, and the thread is not locked.

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, Content, EPHEMERAL, Failure, Fingerprint, JsonText, Map, MessageId, Namespace, Owner, RecordName, Role,
    ThreadId, Timestamp,
};

use super::{ContextSize, TurnStatus, TurnUsage};
use crate::{Draft, MemoryError};

const JOURNALS: &str = "journal";
const TURNS: &str = "turn";
const APPROVALS: &str = "approval";
/// The prefix of the record keys of waiting runs.
const WAITING: &str = "waiting/";
/// How long turn records and finished approvals are retained: 30 days, in milliseconds.
pub const TURN_RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The kind of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnKind {
    /// A run of an assistant's graph. It has a journal, and is resumed after an interruption.
    #[default]
    Run,
    /// A single model call. It is stored as a whole at its end or not at all. It is never resumed, because the answer would have
    /// to be paid for twice.
    Completion,
}

/// The record of an unfinished turn. No field may be removed, because instances of earlier versions also read the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The id of the turn.
    pub turn: String,
    /// The kind of turn.
    #[serde(default, skip_serializing_if = "TurnKind::is_run")]
    pub kind: TurnKind,
    /// The assistant; empty for a completion, so that no assistant resumes it.
    pub assistant: String,
    /// The assistant's graph.
    pub graph: String,
    /// The version of the graph.
    pub version: u32,
    /// The owner on whose behalf the turn runs, even if another owner resumes it. `None` for turns of earlier versions.
    #[serde(rename = "asker", default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Owner>,
    /// The name of the driver.
    pub driver: String,
    /// When the driver's lease ends.
    pub lease_until: Timestamp,
    /// The number of times that the turn was taken over from a driver that had ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken_over: u32,
    /// The graph's input in addition to the question.
    #[serde(rename = "given", default, skip_serializing_if = "Map::is_empty")]
    pub extra_input: Map,
    /// Whether the turn's messages are marked as ephemeral.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ephemeral: bool,
    /// Whether the turn's commits ignore the retention policy's maximum number of messages, because a turn that waits for approval
    /// needs its question.
    #[serde(rename = "keeps_messages", default, skip_serializing_if = "std::ops::Not::not")]
    pub skips_trimming: bool,
    /// Whether `extra_input` is complete, so the assistant need not prepare the turn again.
    pub is_prepared: bool,
    /// The name of the model.
    pub model: String,
    /// When the turn started.
    pub started_at: Timestamp,
    /// The number of entries in the journal.
    pub entries: u32,
    /// The numbers of requests for work that may be started only once and has been started.
    #[serde(rename = "begun", default, skip_serializing_if = "Vec::is_empty")]
    pub started_once: Vec<u32>,
    /// The number of messages created by the run's graph that are stored in the thread.
    #[serde(rename = "said")]
    pub run_messages: usize,
    /// The number of messages of this turn that are stored in the thread, including the user's. The run record does not contain
    /// their text, so erasing a message erases all copies of its text.
    pub messages: u16,
    /// The size of the context.
    #[serde(default)]
    pub context: ContextSize,
    /// How long the turn ran before it started to wait, in milliseconds.
    #[serde(rename = "worked_ms", default)]
    pub active_ms: u64,
    /// The number of embedder calls, except those by tools.
    #[serde(default)]
    pub embedding_calls: u64,
    /// The user's message, as long as the thread does not contain it: it is stored by the same commit as the answer. `messages` is
    /// then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_question: Option<PendingQuestion>,
}

/// A user's message that is stored with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingQuestion {
    /// The text.
    pub text: String,
    /// The author, in a thread that several users share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

impl PendingQuestion {
    /// Returns the draft of the user's message.
    #[must_use]
    pub fn draft(&self) -> Draft {
        Draft::new(Content { author: self.author.clone(), ..Content::text(Role::User, &self.text) })
    }
}

impl TurnKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

impl RunRecord {
    /// Returns the messages that a commit of this turn stores. If the user's message is not stored yet, it precedes an answer. A
    /// failure then stores no messages, unless the turn has started work that may have had effects.
    #[must_use]
    pub fn with_question(&self, mut drafts: Vec<Draft>, is_answer: bool) -> Vec<Draft> {
        let Some(question) = &self.pending_question else { return drafts };
        if !is_answer && self.started_once.is_empty() {
            return Vec::new();
        }
        drafts.insert(0, question.draft());
        drafts
    }

    /// Marks a message of this turn as ephemeral if the turn is ephemeral.
    #[must_use]
    pub fn mark_if_ephemeral(&self, mut draft: Draft) -> Draft {
        if self.is_ephemeral {
            draft.content.metadata.insert(EPHEMERAL.to_owned(), true.into());
        }
        draft
    }
}

/// The record of a turn that has ended. Its size is at most 1 KiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The assistant.
    pub assistant: String,
    /// The assistant's graph.
    pub graph: String,
    /// The version of the graph.
    pub version: u32,
    /// The model.
    pub model: String,
    /// How the turn ended.
    pub status: TurnStatus,
    /// The error, if the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The confidence with which the assistant chose the agent, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The usage of models.
    pub usage: TurnUsage,
    /// The size of the context.
    pub context: ContextSize,
    /// The number of messages in the thread that belong to the turn.
    pub messages: u16,
    /// When the turn started.
    pub started_at: Timestamp,
    /// How long the turn took, in milliseconds.
    pub duration_ms: u64,
}

impl TurnRecord {
    /// Encodes the record, and truncates its texts to keep it within 1 KiB.
    ///
    /// # Errors
    /// An encoding error, which is not expected.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The id of a turn's message with this number. Ids are derived from numbers so that a turn can find its messages, and so that a
/// commit repeated by another driver cannot duplicate them.
#[must_use]
pub fn message_id(turn: &str, started_at: Timestamp, number: u16) -> MessageId {
    let mut random = [0; 10];
    let digest = Fingerprint::of(turn.as_bytes());
    random[..8].copy_from_slice(&digest.0);
    random[8..].copy_from_slice(&number.to_be_bytes());
    MessageId::v7(started_at, random)
}

/// The id of the turn that a caller requests in a thread with this idempotency key.
#[must_use]
pub fn turn_id_for_key(thread: ThreadId, key: &str) -> String {
    MessageId::from_name(format!("turn/{thread}/{key}").as_bytes()).to_string()
}

/// Whether the text can be the id of a turn or approval. Record keys contain these ids.
pub(super) fn is_valid_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 100 && !id.chars().any(char::is_control)
}

/// The namespace of run records.
#[must_use]
pub fn run_namespace() -> Namespace {
    active_name().namespace
}

/// The name of the run record that holds the lock of the thread.
#[must_use]
pub fn active_name() -> RecordName {
    RecordName::driver()
}

/// The name of the run record of a turn that waits for a person's decision.
#[must_use]
pub fn waiting_name(turn: &str) -> RecordName {
    RecordName { namespace: run_namespace(), key: format!("{WAITING}{turn}") }
}

/// Whether the run record with this key holds the lock of the thread.
#[must_use]
pub fn is_active(key: &str) -> bool {
    key == active_name().key
}

/// Whether a commit failed because another driver has changed a run record.
#[must_use]
pub fn is_run_conflict(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if *namespace == run_namespace())
}

/// Whether a commit failed because another driver has changed a run record, or because the turn has already ended.
#[must_use]
pub fn is_turn_conflict(error: &MemoryError) -> bool {
    let is_turn_namespace = |namespace: &Namespace| matches!(namespace, Namespace::System(name) if name == TURNS);
    is_run_conflict(error)
        || matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if is_turn_namespace(namespace))
}

/// Whether a commit failed because an approval has already been decided.
#[must_use]
pub fn is_approval_conflict(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if *namespace == approval_namespace())
}

/// The namespace of journals.
#[must_use]
pub fn journal_namespace() -> Namespace {
    Namespace::System(JOURNALS.to_owned())
}

/// The name of the journal entry with this 1-based number.
#[must_use]
pub fn entry_name(turn: &str, number: u32) -> RecordName {
    RecordName { namespace: journal_namespace(), key: format!("{turn}/{number:04}") }
}

/// The name of the turn record of a turn that has ended.
#[must_use]
pub fn turn_record_name(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System(TURNS.to_owned()), key: turn.to_owned() }
}

/// The namespace of approvals.
#[must_use]
pub fn approval_namespace() -> Namespace {
    Namespace::System(APPROVALS.to_owned())
}

/// The name of the record of an approval.
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
            context: ContextSize { messages: 20, tokens: big, summary: big, recalled: 50, dropped: big },
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
