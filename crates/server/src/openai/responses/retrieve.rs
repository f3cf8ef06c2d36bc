use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::answer::{recalled, text_of};
use super::{kept, thread_of, unknown};
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
    let text = match thread_of(id)? {
        Some(thread) => {
            let record = turn::find(&app, scope, thread, id).await?.ok_or_else(|| unknown(id))?;
            let (shell, output) = recalled(&app, scope, thread, &record).await?;
            text_of(&shell, &output)
        }
        None => {
            let kept = kept::find(&app, scope, id).await?.ok_or_else(|| unknown(id))?;
            kept.response.as_str().to_owned()
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
