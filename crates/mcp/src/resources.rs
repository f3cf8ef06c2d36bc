//! Conversations as resources: `thread://ID`, and `thread://ID?cursor=N` for further pages.
//!
//! A resource is a page of a conversation as plain text. Resources are served if the tool `read_thread` is selected, and read what
//! the tool reads.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use threadkeep::core::plain_json_error;

use crate::{Tool, ToolFailure, Toolbox};

/// The scheme of the addresses.
const SCHEME: &str = "thread://";
/// The maximum number of messages in a resource.
const MESSAGES: u64 = 100;

/// The template of the addresses.
pub(crate) const TEMPLATE: &str = "thread://{thread}{?cursor}";

/// A conversation that can be read.
#[derive(Debug)]
pub(crate) struct ThreadResource {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) description: String,
}

/// Whether the client may read conversations.
pub(crate) fn are_served(toolbox: &Toolbox) -> bool {
    toolbox.tools().contains(Tool::ReadThread)
}

/// Returns the most recently changed conversations, and the cursor of the next page.
pub(crate) async fn list(
    toolbox: &Toolbox,
    cursor: Option<String>,
) -> Result<(Vec<ThreadResource>, Option<String>), ToolFailure> {
    if !are_served(toolbox) {
        return Ok((Vec::new(), None));
    }
    let mut arguments = Map::from_iter([("limit".to_owned(), 50.into())]);
    arguments.extend(cursor.map(|cursor| ("cursor".to_owned(), cursor.into())));
    let arguments = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolFailure::argument("cursor", plain_json_error(&error.to_string())))?;
    let page = crate::tools::threads::run(toolbox, arguments).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let threads = page["threads"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(|thread| {
        let id = text(&thread["id"]);
        let title = [&thread["title"], &thread["key"]].into_iter().find_map(Value::as_str).unwrap_or(&id).to_owned();
        let description = format!("{} messages, changed {}", thread["messages"], text(&thread["updated_at"]));
        ThreadResource { uri: format!("{SCHEME}{id}"), name: title, description }
    });
    Ok((threads.collect(), page["next_cursor"].as_str().map(str::to_owned)))
}

/// Returns a page of a conversation as text.
pub(crate) async fn read(toolbox: &Toolbox, uri: &str) -> Result<String, ToolFailure> {
    let name = uri.strip_prefix(SCHEME).filter(|name| !name.is_empty() && are_served(toolbox));
    let name = name.ok_or(ToolFailure::NotFound { what: "resource", hint: "resources are thread://ID" })?;
    let (thread, query) = name.split_once('?').unwrap_or((name, ""));
    let cursor = match query {
        "" => None,
        query => Some(query.strip_prefix("cursor=").ok_or_else(crate::tools::invalid_cursor)?),
    };
    // Clients may percent-encode the `+` of a cursor.
    let cursor = cursor.map(|cursor| cursor.replace("%2B", "+").replace("%2b", "+"));
    let arguments = json!({ "thread": thread, "limit": MESSAGES, "cursor": cursor });
    let arguments = serde_json::from_value(arguments)
        .map_err(|error| ToolFailure::argument("thread", plain_json_error(&error.to_string())))?;
    let page = crate::tools::read_thread::run(toolbox, arguments).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut page_text = format!("{}\n", text(&page["notice"]));
    let title = text(&page["title"]);
    if !title.is_empty() {
        write(&mut page_text, format_args!("\n{title}\n"));
    }
    for message in page["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let author = message["author"].as_str().map(|author| format!(" ({author})")).unwrap_or_default();
        let (role, at, words) = (text(&message["role"]), text(&message["at"]), text(&message["text"]));
        write(&mut page_text, format_args!("\n{role}{author}, {at}:\n{words}\n"));
    }
    if let Some(next) = page["next_cursor"].as_str() {
        write(&mut page_text, format_args!("\nThe conversation continues at {SCHEME}{thread}?cursor={next}\n"));
    }
    Ok(page_text)
}

fn write(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(arguments);
}
