use threadkeep_core::{Content, MessageId, NewMessage, Role, Timestamp};

use crate::Memory;

/// A message to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The content.
    pub content: Content,
    /// The id. Default: a new id.
    pub id: Option<MessageId>,
    /// The id of the message in the system it comes from, unique in the thread.
    pub external_id: Option<String>,
    /// When the message was created. Default: now.
    pub created_at: Option<Timestamp>,
}

impl Draft {
    /// Creates a draft with this content.
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self { content, id: None, external_id: None, created_at: None }
    }

    /// Creates a draft of a user message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Content::text(Role::User, text))
    }

    /// Creates a draft of an assistant message.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Content::text(Role::Assistant, text))
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(self, id: MessageId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Sets the id of the message in the system it comes from.
    #[must_use]
    pub fn with_external_id(self, external_id: impl Into<String>) -> Self {
        Self { external_id: Some(external_id.into()), ..self }
    }

    /// Sets the creation time.
    #[must_use]
    pub fn with_created_at(self, created_at: Timestamp) -> Self {
        Self { created_at: Some(created_at), ..self }
    }

    pub(crate) fn into_message(self, memory: &Memory, now: Timestamp) -> NewMessage {
        let Self { content, id, external_id, created_at } = self;
        let id = id.unwrap_or_else(|| memory.generate_message_id_at(now));
        NewMessage { id, external_id, created_at: created_at.unwrap_or(now), content }
    }
}

impl From<Content> for Draft {
    fn from(content: Content) -> Self {
        Self::new(content)
    }
}
