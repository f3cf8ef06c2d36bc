//! What a turn keeps in its thread: the record while it is on its way, a journal, and a stub when it is over.
//!
//! The record is the thread's lock at the same time: each commit of a turn demands the version that the commit before
//! gave it, so a driver that was taken over loses with its next commit. A run that waits for a person lies under a name
//! of its own, and the thread is free.

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, EPHEMERAL, Failure, Fingerprint, JsonText, Map, MessageId, Namespace, Owner, RecordName, ThreadId,
    Timestamp,
};

use super::{ContextNumbers, TurnStatus, TurnUsage};
use crate::{Draft, MemoryError};

const JOURNALS: &str = "journal";
const STUBS: &str = "turn";
const APPROVALS: &str = "approval";
/// What the key of a run that waits begins with.
const WAITING: &str = "waiting/";
/// Stubs, and approvals that are over, are kept so long: 30 days, in milliseconds.
pub const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// What drives a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnKind {
    /// An assistant's graph: it has a journal, and is resumed when it was cut.
    #[default]
    Run,
    /// A single call of a model: stored whole at its end or not at all, and never resumed, as that would buy the answer
    /// twice.
    Completion,
}

/// The record of a turn that is on its way, or waits. A member is never taken away, as instances of the version before read
/// it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The turn's id.
    pub turn: String,
    /// What drives it.
    #[serde(default, skip_serializing_if = "TurnKind::is_run")]
    pub kind: TurnKind,
    /// The assistant; empty for a completion, so that no assistant takes it for its own.
    pub assistant: String,
    /// The assistant's graph.
    pub graph: String,
    /// The graph's version.
    pub version: u32,
    /// On whose behalf: the asker's, whoever drives it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Owner>,
    /// Who drives it.
    pub driver: String,
    /// Until when its driver is believed to be there without another sign.
    pub lease_until: Timestamp,
    /// How often it was taken from a driver that was gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken_over: u32,
    /// What the graph is given beside the question.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub given: Map,
    /// Whether its messages are marked as ephemeral.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ephemeral: bool,
    /// Whether `given` is complete, so that nothing has to be prepared for the graph's sake.
    pub is_prepared: bool,
    /// What is to speak, by its name.
    pub model: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Records of the journal.
    pub entries: u32,
    /// Requests of work that is begun once only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<u32>,
    /// How many messages of the run's own making are in the thread.
    pub said: usize,
    /// How many messages of this turn are in the thread, the user's among them. Its words are read from there, so that
    /// erasing it erases them.
    pub messages: u16,
    /// What the model saw, in numbers.
    #[serde(default)]
    pub context: ContextNumbers,
    /// How long it took until it was put away.
    #[serde(default)]
    pub worked_ms: u64,
    /// Embedding calls beside those of tools.
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
    /// A message of this turn, marked as the turn is.
    #[must_use]
    pub fn marked(&self, mut draft: Draft) -> Draft {
        if self.is_ephemeral {
            draft.content.metadata.insert(EPHEMERAL.to_owned(), true.into());
        }
        draft
    }
}

/// What is left of a run that is over: at most 1 KB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The assistant.
    pub assistant: String,
    /// The assistant's graph.
    pub graph: String,
    /// The graph's version.
    pub version: u32,
    /// What spoke.
    pub model: String,
    /// How it ended.
    pub status: TurnStatus,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// How sure the choice of an agent was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What it took.
    pub usage: TurnUsage,
    /// What the model saw, in numbers.
    pub context: ContextNumbers,
    /// How many messages of the thread are the turn's.
    pub messages: u16,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
}

impl TurnRecord {
    /// The stub as text, within its bound.
    ///
    /// # Errors
    /// Those of the codec; none is known.
    pub fn to_json(&self) -> threadkeep_core::Result<JsonText> {
        let mut stub = self.clone();
        for name in [&mut stub.assistant, &mut stub.model] {
            *name = name.chars().take(40).collect();
        }
        if let Some(error) = &mut stub.error {
            error.message = error.message.chars().filter(|character| !character.is_control()).take(64).collect();
        }
        JsonText::of(&stub)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The id of a turn's message, by its number: so that a turn finds its messages, and a commit that is made again by
/// another driver cannot double them.
#[must_use]
pub fn message_id(turn: &str, started_at: Timestamp, number: u16) -> MessageId {
    let mut random = [0; 10];
    let digest = Fingerprint::of(turn.as_bytes());
    random[..8].copy_from_slice(&digest.0);
    random[8..].copy_from_slice(&number.to_be_bytes());
    MessageId::v7(started_at, random)
}

/// The id of the turn that an idempotency key has in a thread, begun or not.
#[must_use]
pub fn turn_of_key(thread: ThreadId, key: &str) -> String {
    MessageId::from_name(format!("turn/{thread}/{key}").as_bytes()).to_string()
}

/// Whether a text can be the id of a turn or of an approval: what no record can be called names neither.
pub(super) fn is_name(id: &str) -> bool {
    !id.is_empty() && id.len() <= 100 && !id.chars().any(char::is_control)
}

/// The family of the records of turns.
#[must_use]
pub fn runs() -> Namespace {
    active().namespace
}

/// The record of the turn that holds the thread.
#[must_use]
pub fn active() -> RecordName {
    RecordName::driver()
}

/// The record of a turn that waits for a person.
#[must_use]
pub fn waiting(turn: &str) -> RecordName {
    RecordName { namespace: runs(), key: format!("{WAITING}{turn}") }
}

/// Whether a record of that key is the one that holds the thread.
#[must_use]
pub fn is_active(key: &str) -> bool {
    key == active().key
}

/// Whether a commit failed because a run record is not what it demanded: another driver has gone on.
#[must_use]
pub fn is_run_conflict(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if *namespace == runs())
}

/// The same, or because the turn has been: another one has begun, or it is over.
#[must_use]
pub fn is_turn_conflict(error: &MemoryError) -> bool {
    let is_stub = |namespace: &Namespace| matches!(namespace, Namespace::System(name) if name == STUBS);
    is_run_conflict(error) || matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if is_stub(namespace))
}

/// Whether a commit failed because an approval is not what it demanded: somebody else has decided.
#[must_use]
pub fn is_approval_conflict(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Record { namespace, .. }) if *namespace == approvals())
}

/// The family of journals.
#[must_use]
pub fn journals() -> Namespace {
    Namespace::System(JOURNALS.to_owned())
}

/// A record of a journal; the first has the number 1.
#[must_use]
pub fn entry(turn: &str, number: u32) -> RecordName {
    RecordName { namespace: journals(), key: format!("{turn}/{number:04}") }
}

/// What is left of a turn that is over.
#[must_use]
pub fn stub(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System(STUBS.to_owned()), key: turn.to_owned() }
}

/// The family of approvals.
#[must_use]
pub fn approvals() -> Namespace {
    Namespace::System(APPROVALS.to_owned())
}

/// An approval.
#[must_use]
pub fn approval(id: &str) -> RecordName {
    RecordName { namespace: approvals(), key: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use threadkeep_core::TokenDetails;

    use super::*;

    #[test]
    fn a_stub_stays_small_whatever_the_turn_was() {
        let at: Timestamp = "2026-11-21T08:30:00.123456Z".parse().unwrap();
        let big = u64::MAX >> 12;
        let stub = TurnRecord {
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
        let json = stub.to_json().unwrap();
        assert!(json.as_str().len() <= 1_024, "{}", json.as_str().len());
    }

    #[test]
    fn a_turns_messages_have_ids_that_grow() {
        let at: Timestamp = "2026-11-21T08:30:00Z".parse().unwrap();
        let ids: Vec<_> = (0..700).map(|number| message_id("a turn", at, number)).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        assert_ne!(message_id("another turn", at, 0), ids[0]);
    }
}
