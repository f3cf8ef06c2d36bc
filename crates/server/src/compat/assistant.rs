//! Determines the assistant and the user of a request.

use axum::http::{Method, Uri};
use threadkeep::{Agent, Scope, ThreadKey, UserId};

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::input::PathParams;
use crate::limits::unknown_route;
use crate::security::Caller;
use crate::security::KeyRole;

/// The user of requests without `user_id`.
const DEFAULT_USER: &str = "default";

/// Returns the assistant that the path names, or the only assistant if the path is at the root.
pub(super) async fn find(app: &App, path_params: &PathParams, method: Method, uri: Uri) -> Result<Agent> {
    let found = match path_params.get("assistant") {
        "" => single_assistant(app),
        name => app.assistants().find(name),
    };
    match found {
        Some(agent) => Ok(agent),
        None => Err(unknown_route(&method, &uri)),
    }
}

/// Returns the assistant of a server with exactly one assistant.
pub(crate) fn single_assistant(app: &App) -> Option<Agent> {
    let mut all = app.assistants().all();
    if all.len() == 1 { all.pop() } else { None }
}

/// Returns the scope of the user that a request selects. If it selects none, returns the scope of the caller's own
/// user, or of the user `default`.
///
/// # Errors
/// `other_user` if the caller may not act for the selected user.
pub(super) fn scope(caller: &Caller, user: Option<&str>) -> Result<Scope> {
    match (&caller.scope, user) {
        (Scope::User(_, own_user), Some(named)) if named != own_user.as_str() && !may_select_any_user(caller) => {
            Err(ApiError::forbidden("other_user", "this key can act only for its own user"))
        }
        (Scope::User(..), None) => Ok(caller.scope.clone()),
        (scope, named) => {
            let user =
                UserId::new(named.unwrap_or(DEFAULT_USER)).map_err(|error| ApiError::from(error).param("user_id"))?;
            Ok(Scope::User(scope.tenant_id().clone(), user))
        }
    }
}

/// Returns the scope of the conversations that a caller can access by id. If the caller may select any user, these are
/// the conversations of all users.
pub(super) fn accessible_scope(caller: &Caller) -> Scope {
    match may_select_any_user(caller) {
        true => Scope::Tenant(caller.scope.tenant_id().clone()),
        false => caller.scope.clone(),
    }
}

/// Whether the caller may select any user, because it is a local caller of a server on which no key was ever created.
fn may_select_any_user(caller: &Caller) -> bool {
    caller.key_id().is_none() && caller.has(KeyRole::Admin)
}

/// Returns the key of the thread in which each user's conversation with an assistant is stored.
pub(super) fn thread_key(agent: &Agent) -> Result<ThreadKey> {
    Ok(ThreadKey::new(format!("chat:{}", agent.assistant().definition().name))?)
}
