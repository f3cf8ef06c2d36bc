//! Which assistant is asked, and for whom.

use axum::http::{Method, Uri};
use threadkeep::{Agent, Scope, ThreadKey, UserId};

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::input::Names;
use crate::limits::unknown_route;
use crate::security::Caller;
use crate::security::KeyRole;

/// Who is meant where a client names nobody.
const NOBODY: &str = "default";

/// The assistant that the path names; at the root the only one that is served.
pub(super) async fn find(app: &App, names: &Names, method: Method, uri: Uri) -> Result<Agent> {
    let found = match names.text("assistant") {
        "" => alone(app),
        name => app.assistants().find(name),
    };
    match found {
        Some(agent) => Ok(agent),
        None => Err(unknown_route(&method, &uri)),
    }
}

/// The only assistant that is served.
pub(super) fn alone(app: &App) -> Option<Agent> {
    let mut all = app.assistants().all();
    if all.len() == 1 { all.pop() } else { None }
}

/// On whose behalf a client asks: the user that it names, where it may act for others.
pub(super) fn scope(caller: &Caller, user: Option<&str>) -> Result<Scope> {
    match (&caller.scope, user) {
        (Scope::User(_, own), Some(named)) if named != own.as_str() && !may_name_others(caller) => {
            Err(ApiError::forbidden("other_user", "this key acts for one user only, and not for that one"))
        }
        (Scope::User(..), None) => Ok(caller.scope.clone()),
        (scope, named) => {
            let user = UserId::new(named.unwrap_or(NOBODY)).map_err(|error| ApiError::from(error).param("user_id"))?;
            Ok(Scope::User(scope.tenant_id().clone(), user))
        }
    }
}

/// All whom a client may ask for: a conversation is told by its id alone, whoever it was had for.
pub(super) fn reach(caller: &Caller) -> Scope {
    match may_name_others(caller) {
        true => Scope::Tenant(caller.scope.tenant_id().clone()),
        false => caller.scope.clone(),
    }
}

/// Whether this is this machine's user, where there is no key yet.
fn may_name_others(caller: &Caller) -> bool {
    caller.key_id().is_none() && caller.has(KeyRole::Admin)
}

/// What a user's conversation with an assistant is called.
pub(super) fn key(agent: &Agent) -> Result<ThreadKey> {
    Ok(ThreadKey::new(format!("chat:{}", agent.assistant().definition().name))?)
}
