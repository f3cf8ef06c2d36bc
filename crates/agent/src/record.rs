//! What a run leaves in its thread while it is on its way: the run document, its journal, and a stub when it is over.
//!
//! The run document is the thread's lock at the same time: each commit of a run demands the version that the commit before
//! gave it, so a driver that was taken over loses with its next commit. A run that waits for a person lies under a name
//! of its own, and the thread is free.

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, DocumentName, EPHEMERAL, Fingerprint, JsonText, Map, MessageId, Namespace, Owner, Timestamp, ToolCall,
};
use threadkeep_graph::{Event, Failure, Outcome, RequestId, ToolOutcome};
use threadkeep_memory::{Draft, MemoryError};

use crate::{ContextNumbers, ToolCallTrace, TurnStatus, TurnUsage};

const JOURNALS: &str = "journal";
const STUBS: &str = "turn";
const APPROVALS: &str = "approval";
/// What the key of a run that waits begins with.
const WAITING: &str = "waiting/";
/// Stubs, and approvals that are over, are kept so long: 30 days.
pub(crate) const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The run document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    pub(crate) turn: String,
    pub(crate) assistant: String,
    pub(crate) graph: String,
    pub(crate) version: u32,
    /// On whose behalf: the asker's, whoever drives it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asker: Option<Owner>,
    /// Who drives it.
    pub(crate) driver: String,
    /// Until when its driver is believed to be there without another sign.
    pub(crate) lease_until: Timestamp,
    /// How often it was taken from a driver that was gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) taken_over: u32,
    /// What the graph is given beside the question.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) given: Map,
    /// Whether its messages are marked as ephemeral.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_ephemeral: bool,
    /// Whether `given` is complete, so that nothing has to be prepared for the graph's sake.
    pub(crate) is_prepared: bool,
    pub(crate) model: String,
    pub(crate) started_at: Timestamp,
    /// Documents of the journal.
    pub(crate) entries: u32,
    /// Requests of work that is begun once only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) begun: Vec<RequestId>,
    /// How many messages of the run's own making are in the thread.
    pub(crate) said: usize,
    /// How many messages of this turn are in the thread, the user's among them. Its words are read from there, so that
    /// erasing it erases them.
    pub(crate) messages: u16,
    #[serde(default)]
    pub(crate) context: ContextNumbers,
    /// How long it took until it was put away.
    #[serde(default)]
    pub(crate) worked_ms: u64,
    /// Embedding calls beside those of tools.
    #[serde(default)]
    pub(crate) embedding_calls: u64,
}

impl RunRecord {
    /// A message of this turn, marked as the turn is.
    pub(crate) fn marked(&self, mut draft: Draft) -> Draft {
        if self.is_ephemeral {
            draft.content.metadata.insert(EPHEMERAL.to_owned(), true.into());
        }
        draft
    }
}

/// One thing that happened to a run, as its journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) event: Event,
    pub(crate) duration_ms: u64,
    /// The call as it was made, for a tool's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<ToolCall>,
    /// The whole result, where the model read only a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) whole: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cached: bool,
    /// Whether nobody knows what came of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unknown: bool,
    #[serde(default)]
    pub(crate) embedding_calls: u64,
}

impl Recorded {
    pub(crate) fn new(request: RequestId, outcome: Outcome, duration_ms: u64) -> Self {
        Self::of(Event::Finished { request, outcome }, duration_ms)
    }

    pub(crate) fn of(event: Event, duration_ms: u64) -> Self {
        Self { event, duration_ms, call: None, whole: None, cached: false, is_unknown: false, embedding_calls: 0 }
    }

    pub(crate) fn request(&self) -> Option<RequestId> {
        match &self.event {
            Event::Finished { request, .. } => Some(*request),
            Event::Stopped { .. } => None,
        }
    }

    pub(crate) fn tool_outcome(&self) -> Option<&ToolOutcome> {
        match &self.event {
            Event::Finished { outcome: Outcome::Tool(outcome), .. } => Some(outcome),
            _ => None,
        }
    }

    /// The call as a turn shows it.
    pub(crate) fn tool_trace(&self) -> Option<ToolCallTrace> {
        let (call, outcome) = (self.call.as_ref()?, self.tool_outcome()?);
        let text = || JsonText::from(&threadkeep_core::Value::String(outcome.output.clone()));
        Some(ToolCallTrace {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            ok: !outcome.is_error,
            result: (!outcome.is_error).then(|| outcome.value.clone().unwrap_or_else(text)),
            error: outcome.is_error.then(|| outcome.output.clone()),
            duration_ms: self.duration_ms,
            cached: self.cached,
        })
    }
}

/// What is left of a run that is over: at most 1 KB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stub {
    pub(crate) assistant: String,
    pub(crate) graph: String,
    pub(crate) version: u32,
    pub(crate) model: String,
    pub(crate) status: TurnStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) confidence: Option<f64>,
    pub(crate) usage: TurnUsage,
    pub(crate) context: ContextNumbers,
    /// How many messages of the thread are the turn's.
    pub(crate) messages: u16,
    pub(crate) started_at: Timestamp,
    pub(crate) duration_ms: u64,
}

impl Stub {
    /// The stub as text, within its bound.
    pub(crate) fn to_json(&self) -> threadkeep_core::Result<JsonText> {
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
pub(crate) fn message_id(turn: &str, started_at: Timestamp, number: u16) -> MessageId {
    let mut random = [0; 10];
    let digest = Fingerprint::of(turn.as_bytes());
    random[..8].copy_from_slice(&digest.0);
    random[8..].copy_from_slice(&number.to_be_bytes());
    MessageId::v7(started_at, random)
}

pub(crate) fn runs() -> Namespace {
    active().namespace
}

pub(crate) fn active() -> DocumentName {
    DocumentName::driver()
}

pub(crate) fn waiting(turn: &str) -> DocumentName {
    DocumentName { namespace: runs(), key: format!("{WAITING}{turn}") }
}

pub(crate) fn is_active(key: &str) -> bool {
    key == active().key
}

/// Whether a commit failed because a run document is not what it demanded: another driver has gone on.
pub(crate) fn is_about_runs(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Document { namespace, .. }) if *namespace == runs())
}

/// The same, or because the turn has been: another one has begun, or it is over.
pub(crate) fn is_about_turns(error: &MemoryError) -> bool {
    let is_stub = |namespace: &Namespace| matches!(namespace, Namespace::System(name) if name == STUBS);
    is_about_runs(error) || matches!(error.conflict(), Some(Conflict::Document { namespace, .. }) if is_stub(namespace))
}

/// Whether a commit failed because an approval is not what it demanded: somebody else has decided.
pub(crate) fn is_about_approvals(error: &MemoryError) -> bool {
    matches!(error.conflict(), Some(Conflict::Document { namespace, .. }) if *namespace == approvals())
}

pub(crate) fn journals() -> Namespace {
    Namespace::System(JOURNALS.to_owned())
}

pub(crate) fn entry(turn: &str, number: u32) -> DocumentName {
    DocumentName { namespace: journals(), key: format!("{turn}/{number:04}") }
}

pub(crate) fn stub(turn: &str) -> DocumentName {
    DocumentName { namespace: Namespace::System(STUBS.to_owned()), key: turn.to_owned() }
}

pub(crate) fn approvals() -> Namespace {
    Namespace::System(APPROVALS.to_owned())
}

pub(crate) fn approval(id: &str) -> DocumentName {
    DocumentName { namespace: approvals(), key: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use threadkeep_core::TokenDetails;

    use super::*;

    #[test]
    fn a_stub_stays_small_whatever_the_turn_was() {
        let at: Timestamp = "2026-11-21T08:30:00.123456Z".parse().unwrap();
        let big = u64::MAX >> 12;
        let stub = Stub {
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
