//! Who calls, on whose behalf, and what the caller may do.

use threadkeep::{Scope, UserId};

use crate::error::{Error, Result};
use crate::keys::KeyRole;
use crate::service::Service;

/// Whether looking at a turn or a response may drive it on: resume one that was cut, and note what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayResume {
    /// It may.
    Yes,
    /// It only reads.
    No,
}

/// By what a caller is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A key, by its id.
    Key(String),
    /// A token of an issuer.
    Token {
        /// Until when it is good, in seconds since 1970.
        until_seconds: i64,
    },
    /// The token of this machine's user, as there is no key yet.
    Local {
        /// Until when it is good, in seconds since 1970; `None` for the token itself.
        until_seconds: Option<i64>,
    },
    /// A door knows the caller by itself, under this name.
    Door(String),
}

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// On whose behalf.
    pub scope: Scope,
    /// Whether the request named the user; else the key or the token is the user's own.
    pub is_user_named: bool,
    /// What they may do.
    pub roles: Vec<KeyRole>,
    /// By what they are known.
    pub credential: Credential,
}

/// Whom a door knows by itself: by a signature, or by a connection that it holds.
#[derive(Clone, Debug)]
pub struct Sender {
    /// What the audit log calls them, and under which their requests are counted, such as `slack T1`. It is no secret.
    pub name: String,
    /// On whose behalf they act.
    pub scope: Scope,
    /// What they may do.
    pub roles: Vec<KeyRole>,
}

impl From<Sender> for Caller {
    fn from(Sender { name, scope, roles }: Sender) -> Self {
        Self { scope, is_user_named: true, roles, credential: Credential::Door(name) }
    }
}

impl Caller {
    /// Whether they may do what needs a role.
    #[must_use]
    pub fn has(&self, role: KeyRole) -> bool {
        let is_held = self.roles.iter().any(|held| held.implies(role));
        let is_local = matches!(self.credential, Credential::Local { .. });
        is_held || (role == KeyRole::Operate && is_local && self.has(KeyRole::Admin))
    }

    /// The id of the key that they showed.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        if let Credential::Key(id) = &self.credential { Some(id) } else { None }
    }

    /// Whether what this caller looks at may be driven on by that.
    #[must_use]
    pub fn may_drive(&self) -> MayResume {
        if self.has(KeyRole::Write) { MayResume::Yes } else { MayResume::No }
    }

    /// Whether a user's own key or token is shown, and not that of an application which names the user.
    #[must_use]
    pub fn is_user(&self, user: &UserId) -> bool {
        !self.is_user_named && matches!(&self.scope, Scope::User(_, own) if own == user)
    }

    /// Whether a caller who was let in may go on, as one does who listens for long.
    pub async fn is_still_valid(&self, service: &Service) -> bool {
        let now_seconds = service.memory().now().as_millis().div_euclid(1000);
        match &self.credential {
            Credential::Token { until_seconds } | Credential::Local { until_seconds: Some(until_seconds) }
                if *until_seconds <= now_seconds =>
            {
                false
            }
            // Once there is a key, nobody goes on without one.
            Credential::Local { .. } => !service.needs_key().await.unwrap_or(false),
            // A store that cannot be asked now is no reason to end.
            Credential::Key(id) => service.keys().is_good(id).await.unwrap_or(true),
            Credential::Token { .. } | Credential::Door(_) => true,
        }
    }

    /// Demands a role.
    ///
    /// # Errors
    /// `Forbidden` for a caller without it.
    pub fn demand(&self, role: KeyRole) -> Result<()> {
        if self.has(role) {
            return Ok(());
        }
        Err(Error::forbidden("role_missing", format!("this needs a key with the role {role}")))
    }
}
