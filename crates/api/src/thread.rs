use serde::{Deserialize, Serialize};
use threadkeep::{Map, Owner, StoreError, Thread, ThreadId, Timestamp, UserId};
use utoipa::ToSchema;

/// A conversation, without its messages.
#[derive(Debug, Serialize, ToSchema)]
pub struct ThreadJson {
    #[schema(value_type = String, format = Uuid)]
    id: ThreadId,
    owner: OwnerJson,
    /// The key that the application chose, such as the name of a conversation in a chat service. Unique among the owner's threads.
    key: Option<String>,
    /// A title for people.
    title: Option<String>,
    /// Data of the application.
    #[schema(value_type = Object)]
    metadata: Map,
    /// The stored state of an agent.
    #[schema(value_type = Object)]
    state: Map,
    /// The number of messages in the thread.
    messages: u64,
    /// The position of the first retained message.
    first_seq: u64,
    /// The position of the last message that was ever appended.
    seq: u64,
    /// The number of changes to the thread. The thread's ETag and the id of its last event contain the same number.
    change: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// The owner of a thread: `"tenant"`, or `{"user": NAME}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnerJson {
    /// Shared by all users of the tenant.
    Tenant,
    /// Owned by one user.
    User(String),
}

impl From<Owner> for OwnerJson {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Tenant => Self::Tenant,
            Owner::User(user) => Self::User(user.as_str().to_owned()),
        }
    }
}

impl TryFrom<OwnerJson> for Owner {
    type Error = StoreError;

    fn try_from(owner: OwnerJson) -> Result<Self, StoreError> {
        match owner {
            OwnerJson::Tenant => Ok(Self::Tenant),
            OwnerJson::User(user) => Ok(Self::User(UserId::new(user)?)),
        }
    }
}

impl From<Thread> for ThreadJson {
    fn from(thread: Thread) -> Self {
        let Thread { id, owner, key, title, metadata, state, positions, message_count, .. } = thread;
        Self {
            id,
            owner: owner.into(),
            key: key.map(|key| key.as_str().to_owned()),
            title,
            metadata,
            state,
            messages: message_count,
            first_seq: positions.first_seq,
            seq: positions.seq,
            change: positions.change,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            expires_at: thread.expires_at,
        }
    }
}
