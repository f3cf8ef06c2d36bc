use threadkeep_core::{Content, MessageId, NewMessage, Role, Timestamp};

use crate::Memory;

/// A message to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its content.
    pub content: Content,
    /// Its id. Default: a new one.
    pub id: Option<MessageId>,
    /// The id that its source uses, unique in the thread.
    pub external_id: Option<String>,
    /// When it was created. Default: now.
    pub created_at: Option<Timestamp>,
}

impl Draft {
    /// Creates a draft from content.
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self { content, id: None, external_id: None, created_at: None }
    }

    /// Creates a draft of a user's message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Content::text(Role::User, text))
    }

    /// Creates a draft of an assistant's message.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Content::text(Role::Assistant, text))
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(self, id: MessageId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Sets the id that its source uses.
    #[must_use]
    pub fn with_external_id(self, external_id: impl Into<String>) -> Self {
        Self { external_id: Some(external_id.into()), ..self }
    }

    /// Sets when it was created.
    #[must_use]
    pub fn with_created_at(self, created_at: Timestamp) -> Self {
        Self { created_at: Some(created_at), ..self }
    }

    pub(crate) fn into_message(self, memory: &Memory, now: Timestamp) -> NewMessage {
        let Self { content, id, external_id, created_at } = self;
        let id = id.unwrap_or_else(|| memory.mint_message_id_at(now));
        NewMessage { id, external_id, created_at: created_at.unwrap_or(now), content }
    }
}

impl From<Content> for Draft {
    fn from(content: Content) -> Self {
        Self::new(content)
    }
}
