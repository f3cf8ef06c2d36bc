use threadkeep_core::{Content, MessageId, NewMessage, Role, Timestamp};

use crate::Memory;

/// A message as an application gives it: what it says, and whatever else the application wants to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// What it says.
    pub content: Content,
    /// Its id; one is made when there is none.
    pub id: Option<MessageId>,
    /// What its source calls it, unique in the thread.
    pub external_id: Option<String>,
    /// When it was said; now when there is none.
    pub created_at: Option<Timestamp>,
}

impl Draft {
    /// Makes a draft of content.
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self { content, id: None, external_id: None, created_at: None }
    }

    /// Makes a draft of a user's words.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Content::text(Role::User, text))
    }

    /// Makes a draft of an assistant's words.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Content::text(Role::Assistant, text))
    }

    /// Gives it an id.
    #[must_use]
    pub fn with_id(self, id: MessageId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Gives it its source's name.
    #[must_use]
    pub fn with_external_id(self, external_id: impl Into<String>) -> Self {
        Self { external_id: Some(external_id.into()), ..self }
    }

    /// Says when it was said.
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
