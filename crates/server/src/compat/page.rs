use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::{Html, IntoResponse, Redirect, Response};

use threadkeep::Agent;

use super::assistant;
use crate::app::App;
use crate::error::Result;
use crate::input::Names;
use crate::output::with_policy;

const PAGE: &str = include_str!("page.html");
/// The page brings all that it needs, and speaks with nobody but this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Shows a page to talk with the only assistant that is served; with several, leads to the document of the routes
#[utoipa::path(
    get,
    path = "/",
    tag = "compat",
    responses((status = 200, description = "A page."), (status = 307, description = "There are several assistants."))
)]
pub(crate) async fn start(State(app): State<App>) -> Response {
    match assistant::alone(&app) {
        Some(agent) => page(&agent),
        None => Redirect::temporary("/docs/").into_response(),
    }
}

/// Shows a page to talk with an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/",
    tag = "compat",
    params(("assistant" = String, Path)),
    responses((status = 200, description = "A page."), (status = 404, description = "There is no such assistant."))
)]
pub(crate) async fn start_with(State(app): State<App>, names: Names, head: (Method, Uri)) -> Result {
    Ok(page(&assistant::find(&app, &names, head.0, head.1).await?))
}

fn page(agent: &Agent) -> Response {
    let name = escaped(&agent.assistant().definition().name);
    with_policy(Html(PAGE.replace("{assistant}", &name)), POLICY)
}

/// A text as it may stand in HTML and in its attributes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
