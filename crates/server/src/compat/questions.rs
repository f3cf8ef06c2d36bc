//! Questions to an assistant's tools without its model. Which tool answers which endpoint is the assistant's to say.

use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use serde::Serialize;
use threadkeep::agent::plugin::Lookup;
use threadkeep::{JsonText, Map, Tool, ToolContext, ToolEffect, ToolError};
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::limits::unknown_route;
use crate::output::json;
use crate::security::Caller;

/// What a tool says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FactsJson {
    /// In words.
    text: String,
    /// For programs.
    #[schema(value_type = Option<Value>)]
    data: Option<JsonText>,
}

/// Finds a way, by the only assistant that is served
#[utoipa::path(
    get,
    path = "/route",
    tag = "compat",
    params(
        ("from" = Option<String>, Query),
        ("to" = Option<String>, Query),
    ),
    responses((status = 200, body = FactsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn route(
    state: State<App>,
    caller: Caller,
    names: Names,
    head: (Method, Uri),
    params: Params,
) -> Result {
    ask(state.0, caller, names, head, ("route", params)).await
}

/// Finds a way, by an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/route",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("from" = Option<String>, Query),
        ("to" = Option<String>, Query),
    ),
    responses((status = 200, body = FactsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn route_with(
    state: State<App>,
    caller: Caller,
    names: Names,
    head: (Method, Uri),
    params: Params,
) -> Result {
    route(state, caller, names, head, params).await
}

/// Tells the next arrivals, by the only assistant that is served
#[utoipa::path(
    get,
    path = "/arrivals",
    tag = "compat",
    params(
        ("station" = Option<String>, Query),
        ("line" = Option<String>, Query),
    ),
    responses((status = 200, body = FactsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn arrivals(
    state: State<App>,
    caller: Caller,
    names: Names,
    head: (Method, Uri),
    params: Params,
) -> Result {
    ask(state.0, caller, names, head, ("arrivals", params)).await
}

/// Tells the next arrivals, by an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/arrivals",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("station" = Option<String>, Query),
        ("line" = Option<String>, Query),
    ),
    responses((status = 200, body = FactsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn arrivals_with(
    state: State<App>,
    caller: Caller,
    names: Names,
    head: (Method, Uri),
    params: Params,
) -> Result {
    arrivals(state, caller, names, head, params).await
}

/// Tells the stations of a line, or about a station, by the only assistant that is served
#[utoipa::path(
    get,
    path = "/stations",
    tag = "compat",
    params(
        ("line" = Option<String>, Query),
        ("station" = Option<String>, Query),
    ),
    responses((status = 200, body = FactsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn stations(
    state: State<App>,
    caller: Caller,
    names: Names,
    head: (Method, Uri),
    params: Params,
) -> Result {
    ask(state.0, caller, names, head, ("stations", params)).await
}

/// Tells the stations of a line, or about a station, by an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/stations",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("line" = Option<String>, Query),
        ("station" = Option<String>, Query),
    ),
    responses((status = 200, body = FactsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn stations_with(
    state: State<App>,
    caller: Caller,
    names: Names,
    head: (Method, Uri),
    params: Params,
) -> Result {
    stations(state, caller, names, head, params).await
}

/// Calls the tool that answers an endpoint, if it only looks, with the query as its arguments.
async fn ask(
    app: App,
    caller: Caller,
    names: Names,
    (method, uri): (Method, Uri),
    (endpoint, mut params): (&str, Params),
) -> Result {
    let agent = assistant::find(&app, &names, method.clone(), uri.clone()).await?;
    let definition = agent.assistant().definition();
    let lookups = app.assistants().lookups(&definition.name);
    let lookup = Lookup::find(lookups, endpoint, |parameter| params.has(parameter));
    let found = lookup.and_then(|lookup| {
        let tool = definition.tools.iter().find(|tool| tool.spec().name() == lookup.tool);
        tool.map(|tool| (lookup, tool))
    });
    let Some((lookup, tool)) = found else {
        return Err(unknown_route(&method, &uri));
    };
    params.take("key")?;
    let scope = assistant::scope(&caller, params.take("user_id")?.as_deref())?;
    let arguments = tool.spec().without_aliases(lookup.arguments(params.into_texts()?));
    if tool.effect(&arguments) != ToolEffect::ReadOnly {
        return Err(unknown_route(&method, &uri));
    }
    let memory = app.memory();
    let context = ToolContext {
        scope,
        thread: memory.mint_thread_id(),
        turn: memory.mint_message_id().to_string(),
        call_id: lookup.tool.to_owned(),
        question: String::new(),
        approval: None,
        now: memory.now(),
    };
    Ok(json(&call(&**tool, &context, &arguments).await?))
}

async fn call(tool: &dyn Tool, context: &ToolContext, arguments: &Map) -> Result<FactsJson> {
    let called = tokio::time::timeout(tool.spec().timeout, tool.call(context, arguments)).await;
    // What a tool says may quote what it was asked: the client reads it, and the log does not.
    let internal = || Some(format!("{} failed", tool.spec().name()));
    let unavailable = |message: String| {
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
        ApiError { internal: internal(), ..error }
    };
    let output = called.map_err(|_| unavailable("the question took too long".to_owned()))?;
    let output = output.map_err(|error| match error {
        ToolError::Arguments(message) => ApiError::invalid("query", message),
        ToolError::NotFound(message) => ApiError::new(StatusCode::NOT_FOUND, "not_found", message),
        ToolError::Denied(message) => ApiError::forbidden("denied", message),
        ToolError::Unavailable(message) => unavailable(message),
        _ => ApiError::internal(internal().unwrap_or_default()),
    })?;
    Ok(FactsJson { text: output.text, data: output.value })
}
