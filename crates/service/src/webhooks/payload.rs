//! The body of a delivery. It is read from the thread for each attempt, so that it contains no text that has been
//! erased.

use std::fmt;

use async_trait::async_trait;
use serde_json::{Value, json};
use threadkeep::core::TaggedNumber;
use threadkeep::memory::turns::{ended_turn_id, find_ended_turn};
use threadkeep::{Memory, Owner, Scope, ThreadEvent, ThreadId, ThreadUpdate};

use super::Webhook;
use super::deliveries::{EventKind, WebhookEvent};
use crate::error::Result;

/// The maximum size of a body, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Encodes the updates of a thread in the format of the server's live events.
#[async_trait]
pub trait EventEncoder: fmt::Debug + Send + Sync {
    /// Encodes an update as an object. Returns `None` if it has no events that clients may see.
    async fn encode(&self, memory: &Memory, scope: &Scope, thread: ThreadId, update: &ThreadUpdate) -> Option<Value>;
}

/// Returns the body of an event; `None` if the subject of the event no longer exists.
pub(super) async fn read(
    memory: &Memory,
    scope: &Scope,
    webhook: &Webhook,
    event: &WebhookEvent,
    encoder: &dyn EventEncoder,
) -> Result<Option<String>> {
    let mut data = json!({ "thread": event.thread });
    if event.kind != EventKind::Deleted {
        let thread = match memory.get_thread(scope, event.thread).await {
            Ok(thread) => thread,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        data["user"] = match &thread.owner {
            Owner::User(user) => json!(user.as_str()),
            Owner::Tenant => Value::Null,
        };
        match event.kind {
            EventKind::Commit(change) => {
                let Some(commit) = read_commit(memory, scope, webhook, event.thread, change, encoder).await? else {
                    return Ok(None);
                };
                merge(&mut data, commit);
                data["id"] = json!(change.to_string());
            }
            EventKind::Reset(_) => {
                let update = ThreadUpdate::Reset { positions: thread.positions };
                merge(&mut data, encoder.encode(memory, scope, event.thread, &update).await.unwrap_or_default());
                data["id"] = json!(thread.positions.tagged().to_string());
            }
            EventKind::Created | EventKind::Deleted => {}
        }
    }
    let encode = |data: &Value| json!({ "type": event.kind.name(), "timestamp": event.at, "data": data }).to_string();
    let body = encode(&data);
    if body.len() <= MAX_BYTES {
        return Ok(Some(body));
    }
    Ok(Some(encode(&truncate(data))))
}

/// Reads a commit with the events that the webhook selects.
async fn read_commit(
    memory: &Memory,
    scope: &Scope,
    webhook: &Webhook,
    thread: ThreadId,
    change: TaggedNumber,
    encoder: &dyn EventEncoder,
) -> Result<Option<Value>> {
    let Some(update) = memory.find_update(scope, thread, change).await? else { return Ok(None) };
    let ThreadUpdate::Commit { at, events, .. } = &update else { return Ok(None) };
    let mut turns = Vec::new();
    for event in events {
        if let ThreadEvent::Record { name, version: Some(_) } = event
            && let Some(turn) = ended_turn_id(name)
            && let Some(record) = find_ended_turn(memory, scope, thread, turn).await?
        {
            let error = record.error.map(|error| json!({ "code": error.code, "message": error.message }));
            turns.push(json!({
                "type": "turn",
                "turn": turn,
                "agent": record.assistant,
                "model": record.model,
                "status": record.status,
                "error": error,
                "duration_ms": record.duration_ms,
            }));
        }
    }
    let encoded = encoder.encode(memory, scope, thread, &update).await;
    // A commit that only ends a turn has no events that live streams show.
    let mut commit = encoded.unwrap_or_else(|| json!({ "change": change.number, "at": at, "events": [] }));
    let Some(Value::Array(events)) = commit.get_mut("events") else { return Ok(None) };
    events.extend(turns);
    events.retain(|event| event["type"].as_str().is_some_and(|name| webhook.wants(name)));
    Ok((!events.is_empty()).then_some(commit))
}

/// Adds the fields of an object, except its type.
fn merge(data: &mut Value, object: Value) {
    if let (Value::Object(data), Value::Object(object)) = (data, object) {
        data.extend(object.into_iter().filter(|(name, _)| name != "type"));
    }
}

/// Shortens a body that is too large: only the types of its events remain. The receiver can read the thread.
fn truncate(mut data: Value) -> Value {
    if let Some(Value::Array(events)) = data.get_mut("events") {
        for event in events {
            *event = json!({ "type": event["type"] });
        }
    }
    data["truncated"] = json!(true);
    data
}
