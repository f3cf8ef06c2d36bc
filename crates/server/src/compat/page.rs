use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::{Html, Response};

use threadkeep::Agent;

use super::assistant;
use crate::app::App;
use crate::error::Result;
use crate::input::PathParams;
use crate::output::with_policy;

const PAGE: &str = include_str!("page.html");
/// The content security policy of the page, which is self-contained and connects only to this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Serves the chat page of an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/",
    operation_id = "get_chat_page_of_assistant",
    tag = "compat",
    params(("assistant" = String, Path)),
    responses((status = 200, description = "The page."), (status = 404, description = "There is no such assistant."))
)]
pub(crate) async fn start_with(State(app): State<App>, path_params: PathParams, head: (Method, Uri)) -> Result {
    Ok(page(&assistant::find(&app, &path_params, head.0, head.1).await?))
}

/// Returns the chat page of an assistant.
pub(crate) fn page(agent: &Agent) -> Response {
    let name = escape_html(&agent.assistant().definition().name);
    with_policy(Html(PAGE.replace("{assistant}", &name)), POLICY)
}

/// Escapes the text for HTML, including attributes.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
