use serde::Serialize;
use threadkeep::agent::{approval_id, find_approval};
use threadkeep::{Memory, MessageId, Namespace, RecordName, Scope, ThreadEvent, ThreadId};
use utoipa::ToSchema;

use crate::approval::ApprovalJson;
use crate::message::{MessageJson, UnreadableJson};

/// One effect of a commit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventJson<'a> {
    /// Messages were added.
    Appended {
        messages: Vec<MessageJson<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unreadable: Vec<UnreadableJson<'a>>,
    },
    /// The content of a message was replaced.
    Replaced {
        #[schema(value_type = MessageJson<'_>)]
        message: Box<MessageJson<'a>>,
    },
    /// A message was erased.
    Erased {
        seq: u64,
        #[schema(value_type = String, format = Uuid)]
        id: MessageId,
    },
    /// All messages before a position were erased.
    Trimmed { first_seq: u64 },
    /// A record of the application was written, or deleted if `version` is null.
    #[serde(rename = "document")]
    Record { namespace: &'a str, key: &'a str, version: Option<u64> },
    /// An approval was requested, decided or closed. The event contains its current state.
    Approval {
        #[schema(value_type = ApprovalJson)]
        approval: Box<ApprovalJson>,
    },
    /// The title, metadata, state or expiry of the thread changed.
    Patched,
}

impl<'a> EventJson<'a> {
    /// Converts the events of a commit that clients may see.
    pub async fn visible(memory: &Memory, scope: &Scope, thread: ThreadId, events: &'a [ThreadEvent]) -> Vec<Self> {
        let mut visible = Vec::with_capacity(events.len());
        for event in events {
            visible.extend(match event {
                ThreadEvent::Record { name, .. } if approval_id(name).is_some() => {
                    Self::read_approval(memory, scope, thread, name).await
                }
                _ => Self::of(event),
            });
        }
        visible
    }

    /// Reads the approval in a record. An approval that cannot be read is omitted; clients still receive its next change.
    async fn read_approval(memory: &Memory, scope: &Scope, thread: ThreadId, name: &RecordName) -> Option<Self> {
        let found = find_approval(memory, scope, thread, approval_id(name)?).await;
        let found = found.inspect_err(|error| tracing::warn!(%error, "failed to read an approval")).ok()??;
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
            ThreadEvent::Record { name: RecordName { namespace: Namespace::App(namespace), key }, version } => {
                Self::Record { namespace, key, version: *version }
            }
            // Threadkeep's own records are not visible to clients.
            ThreadEvent::Record { .. } => return None,
            ThreadEvent::Patched => Self::Patched,
        })
    }
}
