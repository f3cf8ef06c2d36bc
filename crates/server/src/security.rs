//! Authentication and authorisation of HTTP requests.
//!
//! A caller is authenticated by a key or by a token of a configured issuer. A key belongs to one tenant and determines the users
//! on whose behalf it may be used. As long as no key has ever been created, local callers are admitted instead: with the local
//! token (`local`), and only from this machine (`loopback`).

pub(crate) mod authenticate;
pub(crate) mod local;
pub(crate) mod loopback;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
pub(crate) use threadkeep_service::{Caller, KeyRole, MayResume};

use crate::app::App;
use crate::error::ApiError;

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::internal("the action needs a caller, but its route has no access rule"))
    }
}
