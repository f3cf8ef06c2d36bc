//! What each format's fixture becomes, whole.

use serde_json::{Value, json};
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedThread};

use super::{FIXTURES, fixture, items, messages, threads};

#[test]
fn every_fixture_becomes_what_its_snapshot_says() {
    for (format, name, _, _) in FIXTURES {
        let shown: Vec<Value> = items(fixture(name), None).iter().map(shown).collect();
        insta::assert_json_snapshot!(format.as_str(), shown);
    }
}

#[test]
fn every_fixture_has_its_threads_and_messages() {
    for (format, name, thread_count, message_count) in FIXTURES {
        let items = items(fixture(name), Some(format));
        assert_eq!((threads(&items).len(), messages(&items).len()), (thread_count, message_count), "{format}");
    }
}

fn shown(item: &ImportItem) -> Value {
    match item {
        ImportItem::Thread(thread) => json!({ "thread": shown_thread(thread) }),
        ImportItem::Message(message) => json!({ "message": shown_message(message) }),
        ImportItem::Tree(tree) => {
            let mut shown = shown_thread(&tree.thread);
            let nodes = tree.nodes.iter().map(|node| {
                let mut shown = shown_message(&node.message);
                shown["parent"] = json!(node.parent);
                shown
            });
            shown["nodes"] = nodes.collect();
            shown["current"] = json!(tree.current);
            shown["updated_at"] = json!(tree.updated_at);
            json!({ "tree": shown })
        }
        ImportItem::Document { owner, document } => json!({"document": {"owner": owner, "document": document}}),
    }
}

fn shown_thread(thread: &ImportedThread) -> Value {
    filled(json!({
        "id": thread.id,
        "key": thread.key,
        "title": thread.title,
        "metadata": thread.metadata,
        "state": thread.state,
        "created_at": thread.created_at,
        "expires_at": thread.expires_at,
    }))
}

fn shown_message(message: &ImportedMessage) -> Value {
    filled(json!({
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

fn filled(mut shown: Value) -> Value {
    let members = shown.as_object_mut().unwrap();
    members.retain(|_, value| !value.is_null() && value != &json!({}) && value != &json!([]));
    shown
}
