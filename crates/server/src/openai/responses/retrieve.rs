use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use threadkeep::Scope;

use super::answer::{recalled, text_of};
use super::{background, kept, thread_of, unknown};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::Names;
use crate::openai::turn;
use crate::security::Caller;

/// Retrieves a response
#[utoipa::path(
    get,
    path = "/v1/responses/{id}",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The response.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, caller: Caller, names: Names) -> Result<Response> {
    let (id, scope) = (names.text("id"), &caller.scope);
    let text = find(&app, scope, id).await?.ok_or_else(|| unknown(id))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// A response as it stands.
pub(super) async fn find(app: &App, scope: &Scope, id: &str) -> Result<Option<String>> {
    let thread = thread_of(id)?;
    let stored = match thread {
        Some(thread) => match turn::find(app, scope, thread, id).await? {
            Some(record) => {
                let (shell, output) = recalled(app, scope, thread, &record).await?;
                Some(text_of(&shell, &output))
            }
            // It goes with its conversation.
            None if app.memory().find_thread(scope, thread).await?.is_none() => return Ok(None),
            None => None,
        },
        None => kept::find(app, scope, id).await?.map(|kept| kept.response.as_str().to_owned()),
    };
    match stored {
        Some(stored) => Ok(Some(stored)),
        None => background::look(app, scope, id).await,
    }
}
