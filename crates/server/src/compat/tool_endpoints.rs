//! Endpoints that call a read-only tool of an assistant without its model. The assistant defines which tool serves which endpoint.

use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use serde::Serialize;
use threadkeep::agent::plugin::Lookup;
use threadkeep::{JsonText, Map, Scope, Tool, ToolContext, ToolEffect, ToolError};
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::limits::unknown_route;
use crate::output::json;
use crate::security::{Caller, KeyRole};

/// The output of a tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolOutputJson {
    /// The output as text.
    text: String,
    /// The output as data, for programs.
    #[schema(value_type = Option<Value>)]
    data: Option<JsonText>,
}

/// Finds a route, using the server's assistant, if there is only one
#[utoipa::path(
    get,
    path = "/route",
    operation_id = "find_route",
    tag = "compat",
    params(
        ("from" = Option<String>, Query),
        ("to" = Option<String>, Query),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn route(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    call_tool(state.0, caller, path_params, head, ("route", params)).await
}

/// Finds a route, using an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/route",
    operation_id = "find_route_with_assistant",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("from" = Option<String>, Query),
        ("to" = Option<String>, Query),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn route_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    route(state, caller, path_params, head, params).await
}

/// Returns the next arrivals, using the server's assistant, if there is only one
#[utoipa::path(
    get,
    path = "/arrivals",
    operation_id = "get_arrivals",
    tag = "compat",
    params(
        ("station" = Option<String>, Query),
        ("line" = Option<String>, Query),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn arrivals(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    call_tool(state.0, caller, path_params, head, ("arrivals", params)).await
}

/// Returns the next arrivals, using an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/arrivals",
    operation_id = "get_arrivals_with_assistant",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("station" = Option<String>, Query),
        ("line" = Option<String>, Query),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn arrivals_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    arrivals(state, caller, path_params, head, params).await
}

/// Returns the stations of a line, or one station, using the server's assistant, if there is only one
#[utoipa::path(
    get,
    path = "/stations",
    operation_id = "list_stations",
    tag = "compat",
    params(
        ("line" = Option<String>, Query),
        ("station" = Option<String>, Query),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn stations(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    call_tool(state.0, caller, path_params, head, ("stations", params)).await
}

/// Returns the stations of a line, or one station, using an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/stations",
    operation_id = "list_stations_with_assistant",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("line" = Option<String>, Query),
        ("station" = Option<String>, Query),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn stations_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    stations(state, caller, path_params, head, params).await
}

/// Returns the status of lines, using the server's assistant, if there is only one
#[utoipa::path(
    get,
    path = "/lines",
    operation_id = "list_lines",
    tag = "compat",
    params(("line" = Option<String>, Query, description = "Only these lines, separated by commas")),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn lines(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    call_tool(state.0, caller, path_params, head, ("lines", params)).await
}

/// Returns the status of lines, using an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/lines",
    operation_id = "list_lines_with_assistant",
    tag = "compat",
    params(
        ("assistant" = String, Path),
        ("line" = Option<String>, Query, description = "Only these lines, separated by commas"),
    ),
    responses((status = 200, body = ToolOutputJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn lines_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    params: QueryParams,
) -> Result {
    lines(state, caller, path_params, head, params).await
}

/// Calls the tool of an endpoint with the query as its arguments. Tools that are not read-only are rejected.
async fn call_tool(
    app: App,
    caller: Caller,
    path_params: PathParams,
    (method, uri): (Method, Uri),
    (endpoint, mut params): (&str, QueryParams),
) -> Result {
    let agent = assistant::find(&app, &path_params, method.clone(), uri.clone()).await?;
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
    // A lookup may record the request for its user, for example count a trip. Callers that may not write get a scope without
    // users and data, in which nothing is recorded.
    let scope = match caller.has(KeyRole::Write) {
        true => scope,
        false => Scope::tenant(format!("read-only-{}", memory.generate_thread_id()))?,
    };
    let context = ToolContext {
        scope,
        thread: memory.generate_thread_id(),
        turn: memory.generate_message_id().to_string(),
        call_id: lookup.tool.to_owned(),
        question: String::new(),
        approval: None,
        now: memory.now(),
    };
    Ok(json(&call_with_timeout(&**tool, &context, &arguments).await?))
}

async fn call_with_timeout(tool: &dyn Tool, context: &ToolContext, arguments: &Map) -> Result<ToolOutputJson> {
    let result = tokio::time::timeout(tool.spec().timeout, tool.call(context, arguments)).await;
    // The error messages of tools may quote the query, so they are sent to the client but not logged.
    let internal = || Some(format!("{} failed", tool.spec().name()));
    let unavailable = |message: String| {
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
        ApiError { internal: internal(), ..error }
    };
    let output = result.map_err(|_| unavailable("the tool timed out".to_owned()))?;
    let output = output.map_err(|error| match error {
        ToolError::Arguments(message) => ApiError::invalid("query", message),
        ToolError::NotFound(message) => ApiError::new(StatusCode::NOT_FOUND, "not_found", message),
        ToolError::Denied(message) => ApiError::forbidden("denied", message),
        ToolError::Unavailable(message) => unavailable(message),
        _ => ApiError::internal(internal().unwrap_or_default()),
    })?;
    Ok(ToolOutputJson { text: output.text, data: output.value })
}
