//! Callers: their credentials, scopes and roles.

use threadkeep::{Scope, UserId};

use crate::error::{Error, Result};
use crate::keys::KeyRole;
use crate::rate::RateStatus;
use crate::service::Service;

/// Whether reading a turn or a response may resume its turn if the turn was interrupted, and store the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayResume {
    /// Reading may resume the turn.
    Yes,
    /// Reading changes nothing.
    No,
}

/// The credential of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// An API key, by its id.
    Key(String),
    /// A token of a [`TrustedIssuer`](crate::TrustedIssuer).
    Token {
        /// When the token expires, in seconds since 1970.
        expires_at_seconds: i64,
    },
    /// The local token of this machine's user, which is valid as long as there is no API key.
    Local {
        /// When the session that was started with the token expires, in seconds since 1970; `None` if the caller sent the token
        /// itself.
        expires_at_seconds: Option<i64>,
    },
    /// A short-lived token that a caller created for a page in a browser.
    Browser {
        /// The credential of that caller.
        issuer: Box<Credential>,
    },
    /// The caller was authenticated by a door. Contains [`Sender::name`].
    Door(String),
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The scope of the request.
    pub scope: Scope,
    /// Whether the request may select the user. Otherwise the key or token belongs to the user.
    pub may_select_user: bool,
    /// The roles.
    pub roles: Vec<KeyRole>,
    /// The credential.
    pub credential: Credential,
    /// The caller's rate limit after this request; `None` if there is none.
    pub rate: Option<RateStatus>,
}

/// A caller that a door authenticates itself, for example by a signature or by its connection.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The name in the audit log, which also identifies the caller for rate limits and quotas, such as `slack T1`. Not a secret.
    pub name: String,
    /// The scope of the request.
    pub scope: Scope,
    /// The roles.
    pub roles: Vec<KeyRole>,
}

impl From<Sender> for Caller {
    fn from(Sender { name, scope, roles }: Sender) -> Self {
        Self { scope, may_select_user: true, roles, credential: Credential::Door(name), rate: None }
    }
}

impl Caller {
    /// Whether the caller has a role. An administrator who uses the local token also has `Operate`.
    #[must_use]
    pub fn has(&self, role: KeyRole) -> bool {
        let is_granted = self.roles.iter().any(|granted| granted.implies(role));
        let is_local = matches!(self.credential, Credential::Local { .. });
        is_granted || (role == KeyRole::Operate && is_local && self.has(KeyRole::Admin))
    }

    /// Returns the id of the API key, if the caller used one.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        match &self.credential {
            Credential::Key(id) => Some(id),
            Credential::Browser { issuer } => match &**issuer {
                Credential::Key(id) => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether a turn may be resumed when this caller reads it.
    #[must_use]
    pub fn may_resume(&self) -> MayResume {
        if self.has(KeyRole::Write) { MayResume::Yes } else { MayResume::No }
    }

    /// Whether the caller's key or token belongs to this user, rather than to an application that selects the user.
    #[must_use]
    pub fn is_user(&self, user: &UserId) -> bool {
        !self.may_select_user && matches!(&self.scope, Scope::User(_, own_user) if own_user == user)
    }

    /// Whether the credential is still valid. Long-lived connections check this periodically.
    pub async fn is_still_valid(&self, service: &Service) -> bool {
        let now_seconds = service.memory().now().as_millis().div_euclid(1000);
        // A token for a browser opens a stream; the credential of its issuer keeps the stream open.
        let credential = match &self.credential {
            Credential::Browser { issuer } => &**issuer,
            credential => credential,
        };
        match credential {
            Credential::Token { expires_at_seconds }
            | Credential::Local { expires_at_seconds: Some(expires_at_seconds) }
                if *expires_at_seconds <= now_seconds =>
            {
                false
            }
            // The local token is not valid once there is an API key.
            Credential::Local { .. } => !service.needs_key().await.unwrap_or(false),
            // An unavailable store does not end connections.
            Credential::Key(id) => service.keys().is_valid(id).await.unwrap_or(true),
            Credential::Token { .. } | Credential::Door(_) => true,
            Credential::Browser { .. } => false,
        }
    }

    /// Checks that the caller has a role.
    ///
    /// # Errors
    /// `Forbidden` if the caller does not have the role.
    pub fn require(&self, role: KeyRole) -> Result<()> {
        if self.has(role) {
            return Ok(());
        }
        Err(Error::forbidden("role_missing", format!("this request requires a key with the role {role}")))
    }
}
