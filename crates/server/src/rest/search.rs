use axum::extract::State;
use serde::Deserialize;
use threadkeep::core::limits::{self, PAGE};
use threadkeep::{Map, Role, SearchOptions, Timestamp};
use threadkeep_api::message::RoleJson;
use threadkeep_api::search::HitsJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::cursor;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, metadata_filter, optional_whole_number};
use crate::output::json;
use crate::security::Caller;
use crate::thread_names;

/// The default number of hits on a page.
const DEFAULT_LIMIT: usize = 20;

/// A search query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchJson {
    /// The words to search for, in any inflected form. A message matches if it contains any of them. Also "phrases", -exclusions,
    /// prefixes*, title:, in:, project:, role:, since: and until:. Any text is a valid query.
    query: String,
    /// If set, only this thread is searched. A thread is named by its id, conversation id or key.
    #[serde(default)]
    thread: Option<String>,
    /// If set, only messages in threads with these values in their metadata match: strings, integers and booleans, at most 8.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// If set, only messages with these values in their own metadata match.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    message_metadata: Option<Map>,
    /// The maximum number of hits on a page, from 1 to 1,000. Default: 20.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the previous page.
    #[serde(default)]
    after: Option<String>,
    /// If not empty, only messages with these roles match.
    #[serde(default)]
    roles: Vec<RoleJson>,
    /// If set, only messages written at or after this instant match.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// If set, only messages written before this instant match.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

/// Searches messages
#[utoipa::path(
    post,
    path = "/v1/search",
    operation_id = "search_messages",
    tag = "search",
    request_body = SearchJson,
    responses((status = 200, body = HitsJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<SearchJson>,
) -> Result {
    let SearchJson { query, thread, metadata, message_metadata, limit, after, roles, since, until } = body;
    let metadata = metadata_filter("metadata", metadata.as_ref())?;
    let message_metadata = metadata_filter("message_metadata", message_metadata.as_ref())?;
    let thread = thread_names::resolve_existing(&app, &caller.scope, thread.as_deref()).await?;
    let roles: Vec<Role> = roles.into_iter().map(Into::into).collect();
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    limits::check_page(limit).map_err(|error| ApiError::from(error).param("limit"))?;
    let list = format!("search {query:?} {thread:?} {metadata:?} {message_metadata:?} {roles:?} {since:?} {until:?}");
    let start: usize = match &after {
        // The cursor contains a number that this server wrote.
        Some(after) => cursor::decode(&caller.scope, &list, "after", after)?.parse().unwrap_or(PAGE),
        None => 0,
    };
    // All hits are ranked together. A page contains the hits after those of the earlier pages.
    let end = start.saturating_add(limit).min(PAGE);
    let limit = (end + 1).min(PAGE);
    let options = SearchOptions { thread, metadata, message_metadata, limit, roles, since, until };
    let found = app.memory().search(&caller.scope, &query, &options).await?;
    let next = (found.hits.len() > end).then(|| cursor::encode(&caller.scope, &list, &end.to_string()));
    Ok(json(&HitsJson::page(&found, start..end, next)))
}
