use serde::{Deserialize, Serialize};

use crate::{TenantId, UserId};

/// The identity on whose behalf a call is made. Every read and write has a scope.
///
/// Acting for a whole tenant is a separate variant, not the absence of a user, so that it is always explicit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The application, for all users of the tenant.
    Tenant(TenantId),
    /// One user of the tenant.
    User(TenantId, UserId),
}

impl Scope {
    /// Creates the scope of a tenant.
    ///
    /// # Errors
    /// The same as [`TenantId::new`].
    pub fn tenant(tenant: impl Into<String>) -> crate::Result<Self> {
        Ok(Self::Tenant(TenantId::new(tenant)?))
    }

    /// Creates the scope of a user.
    ///
    /// # Errors
    /// The same as [`TenantId::new`] and [`UserId::new`].
    pub fn user(tenant: impl Into<String>, user: impl Into<String>) -> crate::Result<Self> {
        Ok(Self::User(TenantId::new(tenant)?, UserId::new(user)?))
    }

    /// Returns the tenant that the call is limited to.
    #[must_use]
    pub fn tenant_id(&self) -> &TenantId {
        match self {
            Self::Tenant(tenant) | Self::User(tenant, _) => tenant,
        }
    }

    /// Returns the owner of threads opened in this scope, unless the call names another owner.
    #[must_use]
    pub fn default_owner(&self) -> Owner {
        match self {
            Self::Tenant(_) => Owner::Tenant,
            Self::User(_, user) => Owner::User(user.clone()),
        }
    }

    /// Returns the access of this scope to threads of an owner in the same tenant:
    ///
    /// | scope | own | another user's | the tenant's (shared) |
    /// |---|---|---|---|
    /// | `User` | full | none: as if it did not exist | append: read, open, add messages |
    /// | `Tenant` | full | full | full |
    ///
    /// Records differ from threads: a user can read the records of the tenant, but write only the user's own records.
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

/// The owner of a thread in its tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The tenant. All users of the tenant share the thread, as in a team channel.
    Tenant,
    /// One user.
    User(UserId),
}

/// The access of a scope to a thread, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// No access: the thread appears not to exist.
    None,
    /// Reading and appending messages.
    Append,
    /// Everything, including deletion.
    Full,
}
