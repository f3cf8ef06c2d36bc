use serde::{Deserialize, Serialize};

use crate::{TenantId, UserId};

/// On whose behalf a call is made. Every read and write carries one.
///
/// There is no optional user: acting for a whole tenant is something that one says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The application itself, for everyone in the tenant.
    Tenant(TenantId),
    /// One user of the tenant.
    User(TenantId, UserId),
}

impl Scope {
    /// Makes the scope of a tenant.
    ///
    /// # Errors
    /// As [`TenantId::new`].
    pub fn tenant(tenant: impl Into<String>) -> crate::Result<Self> {
        Ok(Self::Tenant(TenantId::new(tenant)?))
    }

    /// Makes the scope of a user.
    ///
    /// # Errors
    /// As [`TenantId::new`] and [`UserId::new`].
    pub fn user(tenant: impl Into<String>, user: impl Into<String>) -> crate::Result<Self> {
        Ok(Self::User(TenantId::new(tenant)?, UserId::new(user)?))
    }

    /// The tenant that the call stays inside.
    #[must_use]
    pub fn tenant_id(&self) -> &TenantId {
        match self {
            Self::Tenant(tenant) | Self::User(tenant, _) => tenant,
        }
    }

    /// The owner that a thread opened under this scope gets unless another is asked for.
    #[must_use]
    pub fn default_owner(&self) -> Owner {
        match self {
            Self::Tenant(_) => Owner::Tenant,
            Self::User(_, user) => Owner::User(user.clone()),
        }
    }

    /// What this caller may do with what `owner` owns inside the same tenant: the whole table.
    ///
    /// | caller | own | another user's | the tenant's (shared) |
    /// |---|---|---|---|
    /// | `User` | full | none: as if unknown | append: read, open, add messages |
    /// | `Tenant` | full | full | full |
    ///
    /// Of records, a user reads the tenant's and writes only own ones.
    #[must_use]
    pub fn access(&self, owner: &Owner) -> Access {
        match (self, owner) {
            (Self::Tenant(_), _) => Access::Full,
            (Self::User(_, caller), Owner::User(owner)) if caller == owner => Access::Full,
            (Self::User(..), Owner::User(_)) => Access::None,
            (Self::User(..), Owner::Tenant) => Access::Append,
        }
    }
}

/// Whom a thread belongs to inside its tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The tenant: a conversation that its users share, such as a channel.
    Tenant,
    /// One user.
    User(UserId),
}

/// What a caller may do with a thread, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing: it answers as if it did not exist.
    None,
    /// Reading, and adding messages.
    Append,
    /// Everything, deletion included.
    Full,
}
