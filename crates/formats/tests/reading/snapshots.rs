//! Snapshots of all items of each format's fixture.

use serde_json::{Value, json};
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedThread};

use super::{FIXTURES, fixture, items, messages, threads};

#[test]
fn fixtures_match_their_snapshots() {
    for (format, name, _, _) in FIXTURES {
        let values: Vec<Value> = items(fixture(name), None).iter().map(item_value).collect();
        insta::assert_json_snapshot!(format.as_str(), values);
    }
}

#[test]
fn fixtures_have_the_expected_numbers_of_threads_and_messages() {
    for (format, name, thread_count, message_count) in FIXTURES {
        let items = items(fixture(name), Some(format));
        assert_eq!((threads(&items).len(), messages(&items).len()), (thread_count, message_count), "{format}");
    }
}

fn item_value(item: &ImportItem) -> Value {
    match item {
        ImportItem::Thread(thread) => json!({ "thread": thread_value(thread) }),
        ImportItem::Message(message) => json!({ "message": message_value(message) }),
        ImportItem::Tree(tree) => {
            let mut value = thread_value(&tree.thread);
            let nodes = tree.nodes.iter().map(|node| {
                let mut value = message_value(&node.message);
                value["parent"] = json!(node.parent);
                value
            });
            value["nodes"] = nodes.collect();
            value["current"] = json!(tree.current);
            value["updated_at"] = json!(tree.updated_at);
            json!({ "tree": value })
        }
        ImportItem::Record { owner, record } => json!({"document": {"owner": owner, "document": record}}),
    }
}

fn thread_value(thread: &ImportedThread) -> Value {
    without_empty_fields(json!({
        "id": thread.id,
        "key": thread.key,
        "title": thread.title,
        "metadata": thread.metadata,
        "state": thread.state,
        "created_at": thread.created_at,
        "expires_at": thread.expires_at,
    }))
}

fn message_value(message: &ImportedMessage) -> Value {
    without_empty_fields(json!({
        "id": message.id,
        "external_id": message.external_id,
        "created_at": message.created_at,
        "role": message.content.role,
        "author": message.content.author,
        "parts": message.content.parts,
        "agent": message.content.agent,
        "data": message.content.data,
        "sources": message.content.sources,
        "usage": message.content.usage,
        "metadata": message.content.metadata,
    }))
}

fn without_empty_fields(mut value: Value) -> Value {
    let members = value.as_object_mut().unwrap();
    members.retain(|_, member| !member.is_null() && member != &json!({}) && member != &json!([]));
    value
}
