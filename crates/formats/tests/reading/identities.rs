//! Stable identities: reading a file again yields the same ids, and equal conversations stay separate.

use std::collections::HashSet;

use threadkeep_core::exchange::ImportItem;
use threadkeep_core::limits;

use super::{FIXTURES, external_ids, fixture, items, keys, messages, threads};

#[test]
fn reading_again_yields_the_same_items() {
    for (_, name, _, _) in FIXTURES {
        assert_eq!(items(fixture(name), None), items(fixture(name), None), "{name}");
    }
}

#[test]
fn every_item_has_a_unique_identity() {
    for (_, name, _, _) in FIXTURES {
        let items = items(fixture(name), None);
        let names: HashSet<_> = threads(&items).iter().map(|t| (t.id, t.key.clone())).collect();
        assert_eq!(names.len(), threads(&items).len(), "{name}");
        let mut in_thread = HashSet::new();
        for item in &items {
            match item {
                ImportItem::Thread(thread) => {
                    assert!(thread.id.is_some() || thread.key.is_some());
                    in_thread.clear();
                }
                ImportItem::Message(message) => {
                    assert!(message.id.is_some() || message.external_id.is_some());
                    assert!(in_thread.insert((message.id, message.external_id.clone())), "{name}");
                }
                ImportItem::Tree(tree) => {
                    assert!(tree.thread.key.is_some());
                    let ids: HashSet<_> = tree.nodes.iter().map(|node| node.message.external_id.clone()).collect();
                    assert!(ids.len() == tree.nodes.len() && !ids.contains(&None), "{name}");
                }
                ImportItem::Record { .. } => {}
            }
        }
    }
}

#[test]
fn equal_conversations_stay_separate() {
    let line = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let twice = items(format!("{line}\n{line}\n"), None);
    assert_eq!(keys(&twice), ["import:openai-chat:0:28b1d959db3e421c", "import:openai-chat:1:28b1d959db3e421c"]);
    assert_eq!(external_ids(&twice), ["1:4dd70a85", "1:4dd70a85"]);
}

#[test]
fn equal_messages_of_a_conversation_stay_separate() {
    let items = items(fixture("sgd.jsonl"), None);
    let repeated_ids: Vec<_> = external_ids(&items).split_off(3);
    assert_eq!(repeated_ids.iter().collect::<HashSet<_>>().len(), 3);
    assert_eq!(repeated_ids[0].split_once(':').unwrap().1, repeated_ids[2].split_once(':').unwrap().1);
}

#[test]
fn ids_do_not_depend_on_json_formatting() {
    let ids = |line: &str| external_ids(&items(line, None)).join(" ");
    assert_eq!(
        ids(r#"{"messages":[{"role":"user","content":"caf\u00e9"}]}"#),
        ids(r#"{"messages": [{"content":"café", "role":"user", "weight":1}]}"#)
    );
}

#[test]
fn invalid_ids_are_hashed() {
    let long = "x".repeat(limits::KEY_BYTES + 1);
    let text = format!(
        r#"{{"uuid":"{long}","chat_messages":[{{"uuid":"{long}","sender":"human","text":"1"}},{{"uuid":"a\tb","sender":"human","text":"2"}}]}}"#
    );
    let items = items(text, None);
    assert!(keys(&items)[0].starts_with("import:claude:sha256:"));
    assert!(external_ids(&items).iter().all(|id| id.starts_with("sha256:") && id.len() == 7 + 64));
    assert_eq!(messages(&items).len(), 2);
}
