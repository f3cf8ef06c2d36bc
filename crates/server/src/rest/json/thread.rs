use serde::{Deserialize, Serialize};
use threadkeep::{Map, Owner, StoreError, Thread, ThreadId, Timestamp, UserId};
use utoipa::ToSchema;

/// A conversation, without its messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadJson {
    #[schema(value_type = String, format = Uuid)]
    id: ThreadId,
    owner: OwnerJson,
    /// The application's key, such as a channel's name for the conversation; unique for its owner.
    key: Option<String>,
    /// A title for people.
    title: Option<String>,
    /// Data of the application.
    #[schema(value_type = Object)]
    metadata: Map,
    /// The stored state of an agent.
    #[schema(value_type = Object)]
    state: Map,
    /// How many messages it contains.
    messages: u64,
    /// The lowest position from which messages are retained.
    first_seq: u64,
    /// The position of the last message that was ever appended.
    seq: u64,
    /// How often it was changed. Its ETag and the id of its last event have the same number.
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
pub(crate) enum OwnerJson {
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
