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
use super::members::quoted;
use crate::app::App;
use crate::error::{ApiError, Result};

/// A list of items, each in its exact text.
fn list_of(items: &[Item], has_more: bool) -> Response {
    let data: Vec<&str> = items.iter().map(|item| item.json.as_str()).collect();
    let id = |item: Option<&Item>| item.map_or_else(|| "null".to_owned(), |item| quoted(&item.id));
    let text = format!(
        r#"{{"object":"list","data":[{}],"first_id":{},"last_id":{},"has_more":{has_more}}}"#,
        data.join(","),
        id(items.first()),
        id(items.last())
    );
    as_json(text)
}

fn as_json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The message that an item belongs to, and which of its items it is.
async fn find(app: &App, scope: &Scope, thread: ThreadId, item: &str) -> Result<(Message, usize)> {
    let (name, place) = ids::message(item).ok_or_else(|| ids::no_item(item))?;
    let found = app.memory().find_messages(scope, thread, &[name]).await?.pop();
    let message = found.ok_or_else(|| ids::no_item(item))?;
    let is_there = items_of(&message).get(place).is_some_and(|known| known.id == item);
    if is_there { Ok((message, place)) } else { Err(ids::no_item(item)) }
}

/// The thread of the conversation that the path names, which must be there.
async fn thread_of(app: &App, scope: &Scope, conversation: &str) -> Result<ThreadId> {
    let thread = ids::thread(conversation)?;
    let found = app.memory().get_thread(scope, thread).await;
    found.map_err(ApiError::from).map_err(ids::about(conversation))?;
    Ok(thread)
}
