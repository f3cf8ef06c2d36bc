//! File uploads: an app gets a URL, sends the bytes to it, and shares the file in a message.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::methods::{Arguments, is_channel, number, object, text, thread_of};
use super::{BOT_USER, Message, Shared, Workspace};
use crate::lock;

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The title.
    pub title: String,
    /// The announced size, in bytes.
    size: usize,
    /// The content; `None` before the upload.
    content: Option<Vec<u8>>,
}

impl File {
    /// Returns the content as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.content.as_deref().unwrap_or_default()).into_owned()
    }
}

pub(super) fn describe(file: &File) -> Value {
    json!({ "id": file.id, "name": file.name, "title": file.title, "size": file.size, "mimetype": "text/plain" })
}

/// Announces an upload. Returns the URL for the bytes.
pub(super) fn begin(
    shared: &Shared,
    workspace: &mut Workspace,
    arguments: &Arguments,
) -> Result<Map<String, Value>, &'static str> {
    let name = text(arguments, "filename")?.ok_or("invalid_arguments")?.to_owned();
    let size = number(arguments, "length")?.filter(|size| *size > 0).ok_or("invalid_arguments")?;
    workspace.ticks += 1;
    let id = format!("F{:08}", workspace.ticks);
    let url = format!("http://{}/upload/{id}", shared.address);
    let file = File { id: id.clone(), title: name.clone(), name, size, content: None };
    workspace.uploads.insert(id.clone(), file);
    Ok(object(json!({ "upload_url": url, "file_id": id })))
}

/// Receives the bytes of a file. A second upload to the same URL is refused.
pub(super) async fn upload(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    body: Bytes,
) -> (StatusCode, String) {
    let mut workspace = lock(&shared.workspace);
    match workspace.uploads.get_mut(&id) {
        Some(file) if file.content.is_none() && file.size == body.len() => {
            file.content = Some(body.to_vec());
            (StatusCode::OK, format!("OK - {}", body.len()))
        }
        _ => (StatusCode::BAD_REQUEST, "the upload was not announced".to_owned()),
    }
}

/// Shares uploaded files in a channel.
pub(super) fn complete(workspace: &mut Workspace, arguments: &Arguments) -> Result<Map<String, Value>, &'static str> {
    let listed = arguments.get("files").and_then(Value::as_array).ok_or("invalid_arguments")?;
    let channel = text(arguments, "channel_id")?.filter(|channel| is_channel(channel)).ok_or("channel_not_found")?;
    let thread_ts = thread_of(workspace, arguments, channel)?;
    let mut files = Vec::new();
    for one in listed {
        let id = one["id"].as_str().ok_or("invalid_arguments")?;
        let mut file = workspace.uploads.get(id).filter(|file| file.content.is_some()).ok_or("file_not_found")?.clone();
        if let Some(title) = one["title"].as_str() {
            title.clone_into(&mut file.title);
        }
        files.push(file);
    }
    if files.is_empty() {
        return Err("invalid_arguments");
    }
    for file in &files {
        workspace.uploads.remove(&file.id);
    }
    let described: Vec<Value> = files.iter().map(describe).collect();
    let ts = workspace.next_ts();
    workspace.messages.push(Message {
        channel: channel.to_owned(),
        ts,
        thread_ts,
        user: BOT_USER.to_owned(),
        text: text(arguments, "initial_comment")?.unwrap_or_default().to_owned(),
        blocks: Value::Null,
        metadata: Value::Null,
        files,
        is_edited: false,
    });
    Ok(object(json!({ "files": described })))
}
