use serde::Serialize;
use threadkeep::core::{ChangeTag, TaggedNumber};
use threadkeep::{JsonText, Memory, Positions, Scope, ThreadId, ThreadUpdate, Timestamp};
use threadkeep_api::event::EventJson;
use threadkeep_api::message::{MessageJson, UnreadableJson};
use utoipa::ToSchema;

/// An update of a thread.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum UpdateJson<'a> {
    /// The latest messages, if the client requested them.
    History {
        messages: Vec<MessageJson<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unreadable: Vec<UnreadableJson<'a>>,
        /// The number of the thread's last change.
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
    /// The changes since the client's position are not available, so the client must read the thread again.
    Reset {
        /// The number of the thread's last change.
        change: u64,
        #[serde(skip)]
        tag: Option<ChangeTag>,
        seq: u64,
        first_seq: u64,
    },
    /// The thread was deleted.
    Deleted,
    /// A topic of an assistant has a new value, or is reported for the first time.
    Notice {
        assistant: &'a str,
        topic: &'a str,
        #[schema(value_type = Value)]
        data: &'a JsonText,
    },
    /// The stream ends.
    End(EndJson),
}

/// Why a stream ends, and where to resume.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct EndJson {
    /// `shutdown`, `slow_reader`, `key_revoked` or `failed`.
    pub(crate) reason: &'static str,
    /// The number of the last change that was sent. To resume, it is better to send the id of the last event as `after` or
    /// `Last-Event-ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_after: Option<u64>,
    #[serde(skip)]
    last_change: Option<TaggedNumber>,
}

impl EndJson {
    /// Creates the end of a stream. `last_change` is the last change that the client has received.
    pub(crate) fn new(reason: &'static str, last_change: Option<TaggedNumber>) -> Self {
        Self { reason, resume_after: last_change.map(|change| change.number), last_change }
    }
}

impl<'a> UpdateJson<'a> {
    /// Converts an update. Returns `None` if the update has no events that clients may see.
    pub(crate) async fn of(memory: &Memory, scope: &Scope, thread: ThreadId, update: &'a ThreadUpdate) -> Option<Self> {
        Some(match update {
            ThreadUpdate::History { messages, corrupt, positions } => Self::History {
                messages: messages.iter().map(Into::into).collect(),
                unreadable: corrupt.iter().map(Into::into).collect(),
                change: positions.change,
                tag: positions.tag,
            },
            ThreadUpdate::Commit { change, tag, at, events } => {
                let visible = EventJson::visible(memory, scope, thread, events).await;
                if visible.is_empty() {
                    return None;
                }
                Self::Commit { change: *change, tag: *tag, at: *at, events: visible }
            }
            ThreadUpdate::Reset { positions } => Self::reset(*positions),
            ThreadUpdate::Deleted => Self::Deleted,
        })
    }

    fn reset(positions: Positions) -> Self {
        let Positions { seq, change, first_seq, tag } = positions;
        Self::Reset { change, tag, seq, first_seq }
    }

    /// Returns the name of the event.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::History { .. } => "history",
            Self::Commit { .. } => "commit",
            Self::Reset { .. } => "reset",
            Self::Deleted => "deleted",
            Self::Notice { .. } => "notice",
            Self::End(_) => "end",
        }
    }

    /// Returns the client's position after this update: the number of the last change that the client has received.
    pub(crate) const fn change(&self) -> Option<TaggedNumber> {
        match self {
            Self::History { change, tag, .. } | Self::Commit { change, tag, .. } | Self::Reset { change, tag, .. } => {
                Some(TaggedNumber { number: *change, tag: *tag })
            }
            Self::End(end) => end.last_change,
            Self::Deleted | Self::Notice { .. } => None,
        }
    }
}
