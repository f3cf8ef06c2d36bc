//! The methods of the Web API.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

use super::{APP_TOKEN, ApiCall, BOT_ID, BOT_TOKEN, BOT_USER, Message, Shared, TEAM, Workspace, files};
use crate::lock;

/// The maximum length of a message, in characters.
const MAX_TEXT: usize = 40_000;
/// The default number of messages per page.
const PAGE: usize = 100;
/// The maximum number of messages per page.
const MAX_PAGE: usize = 999;

pub(super) type Arguments = BTreeMap<String, Value>;

/// Handles a call. Returns its result, or Slack's error code.
pub(crate) fn answer(shared: &Shared, method: &str, headers: &HeaderMap, query: &str, body: &[u8]) -> Value {
    match call(shared, method, headers, query, body) {
        Ok(mut result) => {
            result.insert("ok".to_owned(), true.into());
            Value::Object(result)
        }
        Err(error) => json!({ "ok": false, "error": error }),
    }
}

fn call(
    shared: &Shared,
    method: &str,
    headers: &HeaderMap,
    query: &str,
    body: &[u8],
) -> Result<Map<String, Value>, &'static str> {
    let mut arguments = form(query.as_bytes())?;
    arguments.extend(arguments_of_body(headers, body)?);
    let header = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let in_form = arguments.remove("token");
    let opens_socket = method == "apps.connections.open";
    match header.or(in_form.as_ref().and_then(Value::as_str).filter(|_| !opens_socket)) {
        None => return Err("not_authed"),
        Some(token) if token == if opens_socket { APP_TOKEN } else { BOT_TOKEN } => {}
        Some(APP_TOKEN | BOT_TOKEN) => return Err("not_allowed_token_type"),
        Some(_) => return Err("invalid_auth"),
    }
    let mut workspace = lock(&shared.workspace);
    if !workspace.only_counts {
        workspace.calls.push(ApiCall { method: method.to_owned(), arguments: arguments.clone() });
    }
    shared.notify();
    if let Some(error) = workspace.refused.get(method) {
        return Err(error);
    }
    let result = match method {
        "api.test" => Map::new(),
        "auth.test" => object(json!({
            "url": "https://local.slack.com/", "team": "Local", "user": "bot", "team_id": TEAM, "user_id": BOT_USER,
            "bot_id": BOT_ID, "is_enterprise_install": false,
        })),
        "apps.connections.open" => object(json!({ "url": shared.new_socket_url() })),
        "chat.postMessage" => post(&mut workspace, &arguments)?,
        "chat.update" => update(&mut workspace, &arguments)?,
        "chat.delete" => delete(&mut workspace, &arguments)?,
        "conversations.history" => history(&workspace, &arguments, false)?,
        "conversations.replies" => history(&workspace, &arguments, true)?,
        "conversations.info" => {
            let channel = text(&arguments, "channel")?.ok_or("channel_not_found")?;
            object(
                json!({ "channel": { "id": channel, "is_im": channel.starts_with('D'), "is_channel": channel.starts_with('C') } }),
            )
        }
        "files.getUploadURLExternal" => files::begin(shared, &mut workspace, &arguments)?,
        "files.completeUploadExternal" => files::complete(&mut workspace, &arguments)?,
        "reactions.add" => {
            find(&mut workspace, &arguments, "timestamp")?;
            text(&arguments, "name")?.ok_or("invalid_name")?;
            Map::new()
        }
        "users.info" => {
            let user = text(&arguments, "user")?.ok_or("user_not_found")?;
            object(
                json!({ "user": { "id": user, "team_id": TEAM, "name": user.to_lowercase(), "is_bot": user == BOT_USER } }),
            )
        }
        _ => return Err("unknown_method"),
    };
    drop(workspace);
    if method.starts_with("chat.") || method == "files.completeUploadExternal" {
        shared.notify();
    }
    Ok(result)
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

/// Reads the arguments in the body of a call: a JSON object, or a form.
fn arguments_of_body(headers: &HeaderMap, body: &[u8]) -> Result<Arguments, &'static str> {
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if body.is_empty() {
        return Ok(Arguments::new());
    }
    if content_type.starts_with("application/json") {
        return serde_json::from_slice(body).map_err(|_| "invalid_json");
    }
    if !content_type.starts_with("application/x-www-form-urlencoded") {
        return Err("invalid_post_type");
    }
    form(body)
}

/// Reads a form, or the query of a URL. Structured values are JSON.
fn form(bytes: &[u8]) -> Result<Arguments, &'static str> {
    let structured = |name: &str| matches!(name, "blocks" | "attachments" | "metadata" | "files");
    form_urlencoded::parse(bytes)
        .map(|(name, value)| {
            let value = match structured(&name) {
                true => serde_json::from_str(&value).map_err(|_| "invalid_arguments")?,
                false => Value::String(value.into_owned()),
            };
            Ok((name.into_owned(), value))
        })
        .collect()
}

/// Whether a boolean argument is true. Forms send it as text.
fn is_set(arguments: &Arguments, name: &str) -> bool {
    arguments.get(name).is_some_and(|value| *value == true || *value == "true" || *value == "1")
}

pub(super) fn number(arguments: &Arguments, name: &str) -> Result<Option<usize>, &'static str> {
    let value = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64().and_then(|number| usize::try_from(number).ok()),
    };
    value.map(Some).ok_or("invalid_arguments")
}

pub(super) fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, &'static str> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err("invalid_arguments"),
    }
}

pub(super) fn is_channel(id: &str) -> bool {
    id.len() > 1 && id.starts_with(['C', 'D', 'G']) && id.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

fn check_content(arguments: &Arguments) -> Result<(String, Value), &'static str> {
    let blocks = arguments.get("blocks").cloned().unwrap_or_default();
    check_blocks(&blocks)?;
    let text = text(arguments, "text")?.unwrap_or_default().to_owned();
    if text.is_empty() && blocks.is_null() {
        return Err("no_text");
    }
    if text.chars().count() > MAX_TEXT {
        return Err("msg_too_long");
    }
    Ok((text, blocks))
}

/// Checks blocks against Slack's limits.
fn check_blocks(blocks: &Value) -> Result<(), &'static str> {
    let Value::Array(blocks) = blocks else {
        return if blocks.is_null() { Ok(()) } else { Err("invalid_blocks_format") };
    };
    if blocks.len() > 50 {
        return Err("invalid_blocks");
    }
    for block in blocks {
        let length = |value: &Value| value["text"].as_str().map_or(0, |text| text.chars().count());
        let is_valid = match block["type"].as_str() {
            Some("section") => (1..=3_000).contains(&length(&block["text"])),
            Some("actions") => block["elements"].as_array().is_some_and(|elements| {
                !elements.is_empty()
                    && elements.iter().all(|element| {
                        element["type"] != "button"
                            || ((1..=75).contains(&length(&element["text"])) && element["action_id"].is_string())
                    })
            }),
            Some("context" | "divider" | "header") => true,
            _ => false,
        };
        if !is_valid {
            return Err("invalid_blocks");
        }
    }
    Ok(())
}

fn post(workspace: &mut Workspace, arguments: &Arguments) -> Result<Map<String, Value>, &'static str> {
    let channel =
        text(arguments, "channel")?.filter(|channel| is_channel(channel)).ok_or("channel_not_found")?.to_owned();
    let (text_of_message, blocks) = check_content(arguments)?;
    let thread_ts = thread_of(workspace, arguments, &channel)?;
    let metadata = metadata_of(arguments)?;
    let ts = workspace.next_ts();
    let message = Message {
        channel: channel.clone(),
        ts: ts.clone(),
        thread_ts,
        user: BOT_USER.to_owned(),
        text: text_of_message,
        blocks,
        metadata,
        files: Vec::new(),
        is_edited: false,
    };
    let described = describe(&message);
    workspace.posts += 1;
    if !workspace.only_counts {
        workspace.messages.push(message);
    }
    Ok(object(json!({ "channel": channel, "ts": ts, "message": described })))
}

fn metadata_of(arguments: &Arguments) -> Result<Value, &'static str> {
    let metadata = arguments.get("metadata").cloned().unwrap_or_default();
    let has_shape = metadata["event_type"].is_string() && metadata["event_payload"].is_object();
    if metadata.is_null() || has_shape { Ok(metadata) } else { Err("invalid_metadata_format") }
}

/// Returns the root of the thread that an argument names.
pub(super) fn thread_of(
    workspace: &Workspace,
    arguments: &Arguments,
    channel: &str,
) -> Result<Option<String>, &'static str> {
    let Some(root) = text(arguments, "thread_ts")? else { return Ok(None) };
    let has_root = workspace.messages.iter().any(|message| message.channel == channel && message.ts == root);
    if has_root { Ok(Some(root.to_owned())) } else { Err("thread_not_found") }
}

fn find<'a>(workspace: &'a mut Workspace, arguments: &Arguments, name: &str) -> Result<&'a mut Message, &'static str> {
    let channel = text(arguments, "channel")?.ok_or("channel_not_found")?;
    let ts = text(arguments, name)?.ok_or("message_not_found")?;
    let found = workspace.messages.iter_mut().find(|message| message.channel == channel && message.ts == ts);
    found.ok_or("message_not_found")
}

fn update(workspace: &mut Workspace, arguments: &Arguments) -> Result<Map<String, Value>, &'static str> {
    let (text, blocks) = check_content(arguments)?;
    let metadata = metadata_of(arguments)?;
    let message = find(workspace, arguments, "ts")?;
    if !message.is_from_bot() {
        return Err("cant_update_message");
    }
    message.text.clone_from(&text);
    message.blocks = blocks;
    if !metadata.is_null() {
        message.metadata = metadata;
    }
    message.is_edited = true;
    Ok(object(json!({ "channel": message.channel, "ts": message.ts, "text": text })))
}

fn delete(workspace: &mut Workspace, arguments: &Arguments) -> Result<Map<String, Value>, &'static str> {
    let message = find(workspace, arguments, "ts")?;
    if !message.is_from_bot() {
        return Err("cant_delete_message");
    }
    let (channel, ts) = (message.channel.clone(), message.ts.clone());
    workspace.messages.retain(|message| (&message.channel, &message.ts) != (&channel, &ts));
    Ok(object(json!({ "channel": channel, "ts": ts })))
}

/// Returns a page of a channel, newest first, or of a thread, oldest first.
fn history(workspace: &Workspace, arguments: &Arguments, is_thread: bool) -> Result<Map<String, Value>, &'static str> {
    let channel = text(arguments, "channel")?.filter(|channel| is_channel(channel)).ok_or("channel_not_found")?;
    let root = if is_thread { Some(text(arguments, "ts")?.ok_or("thread_not_found")?) } else { None };
    let (oldest, latest) = (text(arguments, "oldest")?.unwrap_or("0"), text(arguments, "latest")?);
    let is_inclusive = is_set(arguments, "inclusive");
    let is_between = |ts: &str| {
        (ts > oldest && latest.is_none_or(|latest| ts < latest))
            || (is_inclusive && (ts == oldest || Some(ts) == latest))
    };
    let is_listed = |message: &&Message| {
        message.channel == channel
            && is_between(&message.ts)
            && match root {
                Some(root) => message.ts == root || message.thread_ts.as_deref() == Some(root),
                None => message.thread_ts.is_none(),
            }
    };
    let mut messages: Vec<&Message> = workspace.messages.iter().filter(is_listed).collect();
    if !is_thread {
        messages.reverse();
    }
    let limit = number(arguments, "limit")?.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err("invalid_limit");
    }
    let from = match text(arguments, "cursor")? {
        Some(cursor) => cursor.strip_prefix("after:").and_then(|at| at.parse().ok()).ok_or("invalid_cursor")?,
        None => 0,
    };
    let with_metadata = is_set(arguments, "include_all_metadata");
    let page: Vec<Value> =
        messages.iter().skip(from).take(limit).map(|message| listed(workspace, message, with_metadata)).collect();
    let has_more = messages.len() > from + page.len();
    let cursor = if has_more { format!("after:{}", from + page.len()) } else { String::new() };
    Ok(object(json!({
        "messages": page, "has_more": has_more, "response_metadata": { "next_cursor": cursor },
    })))
}

/// Returns a message as it appears in lists: a thread's root message includes its reply count.
fn listed(workspace: &Workspace, message: &Message, with_metadata: bool) -> Value {
    let mut described = describe(message);
    if with_metadata && !message.metadata.is_null() {
        described["metadata"] = message.metadata.clone();
    }
    let is_reply = |other: &&Message| other.channel == message.channel && other.thread_ts.as_ref() == Some(&message.ts);
    let replies = workspace.messages.iter().filter(is_reply).count();
    if replies > 0 {
        described["thread_ts"] = json!(message.ts);
        described["reply_count"] = json!(replies);
    }
    described
}

fn describe(message: &Message) -> Value {
    let mut value = json!({ "type": "message", "user": message.user, "ts": message.ts, "text": message.text });
    if message.is_from_bot() {
        value["bot_id"] = json!(BOT_ID);
    }
    if let Some(thread_ts) = &message.thread_ts {
        value["thread_ts"] = json!(thread_ts);
    }
    if !message.blocks.is_null() {
        value["blocks"] = message.blocks.clone();
    }
    if !message.files.is_empty() {
        value["files"] = message.files.iter().map(files::describe).collect();
    }
    value
}
