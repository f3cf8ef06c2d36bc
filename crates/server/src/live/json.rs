use serde::Serialize;
use threadkeep::agent::{approval_id, find_approval};
use threadkeep::core::{ChangeTag, Tagged};
use threadkeep::{
    DocumentName, MessageId, Namespace, Positions, Scope, ThreadEvent, ThreadId, ThreadUpdate, Timestamp,
};
use utoipa::ToSchema;

use crate::app::App;
use crate::rest::json::approval::ApprovalJson;
use crate::rest::json::message::{MessageJson, UnreadableJson};

/// What a listener to a thread hears.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum UpdateJson<'a> {
    /// The newest messages, where the listener asked for them first.
    History {
        messages: Vec<MessageJson<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unreadable: Vec<UnreadableJson<'a>>,
        /// Where the thread stood.
        change: u64,
        #[serde(skip)]
        tag: Option<ChangeTag>,
    },
    /// One commit.
    Commit {
        change: u64,
        #[serde(skip)]
        tag: Option<ChangeTag>,
        #[schema(value_type = String, format = DateTime)]
        at: Timestamp,
        events: Vec<EventJson<'a>>,
    },
    /// What was missed is no longer known: read the thread anew.
    Reset {
        /// Where it stands.
        change: u64,
        #[serde(skip)]
        tag: Option<ChangeTag>,
        seq: u64,
        first_seq: u64,
    },
    /// The thread is gone.
    Deleted,
    /// The stream ends.
    End(EndJson),
}

/// Why a stream ends, and how to go on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct EndJson {
    /// `shutdown`, `slow_reader`, `key_revoked` or `failed`.
    pub(crate) reason: &'static str,
    /// The last change that was told. To resume, rather pass its event's id as `after` or `Last-Event-ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_after: Option<u64>,
    #[serde(skip)]
    heard: Option<Tagged>,
}

impl EndJson {
    /// The end for a listener who has heard this much.
    pub(crate) fn new(reason: &'static str, heard: Option<Tagged>) -> Self {
        Self { reason, resume_after: heard.map(|heard| heard.number), heard }
    }
}

/// One thing that a commit did.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum EventJson<'a> {
    /// Messages were added.
    Appended {
        messages: Vec<MessageJson<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unreadable: Vec<UnreadableJson<'a>>,
    },
    /// A message says something else.
    Replaced {
        #[schema(value_type = MessageJson<'_>)]
        message: Box<MessageJson<'a>>,
    },
    /// A message is gone.
    Erased {
        seq: u64,
        #[schema(value_type = String, format = Uuid)]
        id: MessageId,
    },
    /// All messages below a position are gone.
    Trimmed { first_seq: u64 },
    /// An application's document was written, or deleted.
    Document { namespace: &'a str, key: &'a str, version: Option<u64> },
    /// An approval was asked for, decided or closed. It is told as it stands.
    Approval {
        #[schema(value_type = ApprovalJson)]
        approval: Box<ApprovalJson>,
    },
    /// Title, metadata, state or expiry changed.
    Patched,
}

impl<'a> UpdateJson<'a> {
    /// The update as a listener is told it; `None` where there is nothing that a door may show.
    pub(crate) async fn of(app: &App, scope: &Scope, thread: ThreadId, update: &'a ThreadUpdate) -> Option<Self> {
        Some(match update {
            ThreadUpdate::History { messages, corrupt, positions } => Self::History {
                messages: messages.iter().map(Into::into).collect(),
                unreadable: corrupt.iter().map(Into::into).collect(),
                change: positions.change,
                tag: positions.tag,
            },
            ThreadUpdate::Commit { change, tag, at, events } => {
                let mut told = Vec::with_capacity(events.len());
                for event in events {
                    told.extend(match event {
                        ThreadEvent::Document { name, .. } if approval_id(name).is_some() => {
                            EventJson::approval(app, scope, thread, name).await
                        }
                        _ => EventJson::of(event),
                    });
                }
                if told.is_empty() {
                    return None;
                }
                Self::Commit { change: *change, tag: *tag, at: *at, events: told }
            }
            ThreadUpdate::Reset { positions } => Self::reset(*positions),
            ThreadUpdate::Deleted => Self::Deleted,
        })
    }

    fn reset(positions: Positions) -> Self {
        let Positions { seq, change, first_seq, tag } = positions;
        Self::Reset { change, tag, seq, first_seq }
    }

    /// The event's name on the wire.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::History { .. } => "history",
            Self::Commit { .. } => "commit",
            Self::Reset { .. } => "reset",
            Self::Deleted => "deleted",
            Self::End(_) => "end",
        }
    }

    /// The position that a listener who has heard this is at.
    pub(crate) const fn change(&self) -> Option<Tagged> {
        match self {
            Self::History { change, tag, .. } | Self::Commit { change, tag, .. } | Self::Reset { change, tag, .. } => {
                Some(Tagged { number: *change, tag: *tag })
            }
            Self::End(end) => end.heard,
            Self::Deleted => None,
        }
    }
}

impl<'a> EventJson<'a> {
    /// The approval that a document keeps. One that cannot be read is left out: the next thing that becomes of it is told.
    async fn approval(app: &App, scope: &Scope, thread: ThreadId, name: &DocumentName) -> Option<Self> {
        let memory = app.memory();
        let found = find_approval(memory, scope, thread, approval_id(name)?).await;
        let found = found.inspect_err(|error| tracing::warn!(%error, "an approval could not be read")).ok()??;
        Some(Self::Approval { approval: Box::new(ApprovalJson::of(thread, found, memory.now())) })
    }

    fn of(event: &'a ThreadEvent) -> Option<Self> {
        Some(match event {
            ThreadEvent::Appended { messages, corrupt } => Self::Appended {
                messages: messages.iter().map(Into::into).collect(),
                unreadable: corrupt.iter().map(Into::into).collect(),
            },
            ThreadEvent::Replaced { message } => Self::Replaced { message: Box::new((&**message).into()) },
            ThreadEvent::Erased { seq, id } => Self::Erased { seq: *seq, id: *id },
            ThreadEvent::Trimmed { first_seq } => Self::Trimmed { first_seq: *first_seq },
            ThreadEvent::Document { name: DocumentName { namespace: Namespace::App(namespace), key }, version } => {
                Self::Document { namespace, key, version: *version }
            }
            // Threadkeep's own documents are shown at no door.
            ThreadEvent::Document { .. } => return None,
            ThreadEvent::Patched => Self::Patched,
        })
    }
}
