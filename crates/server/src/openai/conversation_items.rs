//! The items of a conversation.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod retrieve;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use threadkeep::{Message, Scope, ThreadId};

use super::ids;
use super::items::{Item, items_of};
use super::members::json_string;
use crate::app::App;
use crate::error::{ApiError, Result};

/// Responds with a list of items, each with its exact JSON text.
fn list_response(items: &[Item], has_more: bool) -> Response {
    let data: Vec<&str> = items.iter().map(|item| item.json.as_str()).collect();
    let id = |item: Option<&Item>| item.map_or_else(|| "null".to_owned(), |item| json_string(&item.id));
    let text = format!(
        r#"{{"object":"list","data":[{}],"first_id":{},"last_id":{},"has_more":{has_more}}}"#,
        data.join(","),
        id(items.first()),
        id(items.last())
    );
    json_response(text)
}

fn json_response(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Finds an item. Returns the message to which the item belongs, and the index of the item in the message.
async fn find(app: &App, scope: &Scope, thread: ThreadId, item: &str) -> Result<(Message, usize)> {
    let (message, index) = ids::parse_item_id(item).ok_or_else(|| ids::item_not_found(item))?;
    let found = app.memory().find_messages(scope, thread, &[message]).await?.pop();
    let message = found.ok_or_else(|| ids::item_not_found(item))?;
    let exists = items_of(&message).get(index).is_some_and(|found| found.id == item);
    if exists { Ok((message, index)) } else { Err(ids::item_not_found(item)) }
}

/// Returns the thread of a conversation, which must exist.
async fn find_thread(app: &App, scope: &Scope, conversation: &str) -> Result<ThreadId> {
    let thread = ids::find_conversation(app, scope, conversation).await?;
    let found = app.memory().get_thread(scope, thread).await;
    found.map_err(ApiError::from).map_err(ids::not_found_as(conversation))?;
    Ok(thread)
}
