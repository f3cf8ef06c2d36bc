//! Who calls, on whose behalf, and what the caller may do.
//!
//! A caller is known by a key (`keys`), which belongs to one tenant and says on whose behalf it may act, or by a token
//! of an issuer that the server was told of (`jwt`). A request without either is taken only while no key was ever made, with
//! the token of this machine's user (`local`), and only from this machine (`loopback`).

pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod guesses;
pub(crate) mod jwt;
pub(crate) mod keys;
pub(crate) mod local;
mod loopback;
pub(crate) mod quota;
pub(crate) mod rate;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use threadkeep::{Scope, UserId};

use crate::app::App;
use crate::error::ApiError;
use keys::KeyRole;

/// Whether looking at a turn or a response may drive it on: resume one that was cut, and note what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayDrive {
    Yes,
    No,
}

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// On whose behalf.
    pub(crate) scope: Scope,
    /// Whether the request named the user; else the key or the token is the user's own.
    pub(crate) is_user_named: bool,
    /// What they may do.
    pub(crate) roles: Vec<KeyRole>,
    /// The key that they showed.
    pub(crate) key_id: Option<String>,
    /// Until when their token or cookie is good, in seconds since 1970.
    pub(crate) until_seconds: Option<i64>,
    /// They showed no key, as there is none yet.
    pub(crate) is_local: bool,
}

impl Caller {
    pub(crate) fn has(&self, role: KeyRole) -> bool {
        let is_held = self.roles.iter().any(|held| held.implies(role));
        is_held || (role == KeyRole::Operate && self.is_local && self.has(KeyRole::Admin))
    }

    /// Whether what this caller looks at may be driven on by that.
    pub(crate) fn may_drive(&self) -> MayDrive {
        if self.has(KeyRole::Write) { MayDrive::Yes } else { MayDrive::No }
    }

    /// Whether a user's own key or token is shown, and not that of an application which names the user.
    pub(crate) fn is_user(&self, user: &UserId) -> bool {
        !self.is_user_named && matches!(&self.scope, Scope::User(_, own) if own == user)
    }

    /// Whether a caller who was let in may go on, as one does who listens for long.
    pub(crate) async fn is_still_good(&self, app: &App) -> bool {
        let now_seconds = app.memory().now().as_millis().div_euclid(1000);
        if self.until_seconds.is_some_and(|until| until <= now_seconds) {
            return false;
        }
        if self.is_local {
            // Once there is a key, nobody goes on without one.
            return !authenticate::needs_key(app).await.unwrap_or(false);
        }
        let Some(key) = &self.key_id else { return true };
        // A store that cannot be asked now is no reason to end.
        app.keys().is_good(key).await.unwrap_or(true)
    }

    /// Demands a role that the route's own does not include.
    pub(crate) fn demand(&self, role: KeyRole) -> Result<(), ApiError> {
        if self.has(role) {
            return Ok(());
        }
        Err(ApiError::forbidden("role_missing", format!("this needs a key with the role {role}")))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::internal("an action asked for a caller on a route without one"))
    }
}
