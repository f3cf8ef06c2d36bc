//! Conversations with branches, in the formats that record them.

use threadkeep_core::exchange::{ImportItem, ImportedTree};
use threadkeep_formats::Format;

use super::{errors, external_ids, items, items_and_errors};

fn tree(text: &str) -> ImportedTree {
    match items(text, None).pop().unwrap() {
        ImportItem::Tree(tree) => *tree,
        other => panic!("{other:?}"),
    }
}

/// Formats each message as `parent/id`. Returns the messages with the id of the current message.
fn paths(tree: &ImportedTree) -> (Vec<String>, Option<&str>) {
    let id = |node: usize| tree.nodes[node].message.external_id.as_deref().unwrap();
    let nodes = (0..tree.nodes.len()).map(|node| format!("{}/{}", tree.nodes[node].parent.map_or("", id), id(node)));
    (nodes.collect(), tree.current.map(id))
}

fn chatgpt(nodes: &[(&str, &str, &str)], current: &str) -> String {
    let nodes = nodes.iter().map(|(id, parent, role)| {
        let text = if *role == "system" { "" } else { id };
        format!(
            r#""{id}":{{"parent":"{parent}","message":{{"id":"{id}","author":{{"role":"{role}"}},"content":{{"content_type":"text","parts":["{text}"]}}}}}}"#
        )
    });
    let nodes = nodes.collect::<Vec<_>>().join(",");
    format!(r#"{{"id":"c","update_time":7,"mapping":{{{nodes}}},"current_node":"{current}"}}"#)
}

#[test]
fn chatgpt_trees_are_read_completely() {
    let nodes = [
        ("s", "", "system"),
        ("q", "s", "user"),
        ("one", "q", "assistant"),
        ("two", "q", "assistant"),
        ("more", "one", "user"),
    ];
    let tree = tree(&chatgpt(&nodes, "two"));
    let expected = ["/q", "q/one", "one/more", "q/two"].map(str::to_owned).to_vec();
    assert_eq!(paths(&tree), (expected, Some("two")));
    assert_eq!(tree.updated_at.unwrap().as_millis(), 7_000);
    assert!(!tree.thread.metadata.contains_key("branches_left_out"));
}

#[test]
fn hidden_messages_are_skipped() {
    let nodes = [("q", "", "user"), ("s", "q", "system"), ("one", "s", "assistant"), ("two", "s", "assistant")];
    let read = tree(&chatgpt(&nodes, "s"));
    assert_eq!(paths(&read), (["/q", "q/one", "q/two"].map(str::to_owned).to_vec(), Some("q")));
}

#[test]
fn children_of_a_skipped_message_are_attached_to_its_parent() {
    let nodes = [("q", "", "user"), ("bad", "q", "assistant"), ("more", "bad", "user"), ("two", "q", "assistant")];
    let text = chatgpt(&nodes, "more").replace(r#""id":"bad","author":{"role":"assistant"}"#, r#""id":"bad""#);
    let (mut items, errors) = items_and_errors(text, Format::ChatGptExport);
    let Some(ImportItem::Tree(tree)) = items.pop() else { panic!("{items:?}") };
    assert_eq!(paths(&tree), (["/q", "q/more", "q/two"].map(str::to_owned).to_vec(), Some("more")));
    assert_eq!(errors[0].fault.to_string(), "node bad: `author` is missing");

    let text = claude(&[("q", ROOT), ("bad", Some("q")), ("more", Some("bad"))], None);
    let text = text.replace(r#""sender":"human","text":"bad""#, r#""sender":7"#);
    let (mut items, errors) = items_and_errors(text, Format::ClaudeExport);
    let Some(ImportItem::Tree(tree)) = items.pop() else { panic!("{items:?}") };
    assert_eq!(paths(&tree), (["/q", "q/more"].map(str::to_owned).to_vec(), Some("more")));
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn a_repeated_id_in_a_tree_is_replaced() {
    let text = chatgpt(&[("q", "", "user"), ("one", "q", "user"), ("two", "q", "user")], "one");
    let ids = external_ids(&items(text.replace(r#""id":"two""#, r#""id":"one""#), None)).join(" ");
    assert!(ids.starts_with("q one 2:"), "{ids}");
}

fn claude(messages: &[(&str, Option<&str>)], current: Option<&str>) -> String {
    let messages = messages.iter().map(|(id, parent)| {
        let parent = parent.map_or_else(String::new, |parent| format!(r#","parent_message_uuid":"{parent}""#));
        format!(r#"{{"uuid":"{id}","sender":"human","text":"{id}"{parent}}}"#)
    });
    let current = current.map_or_else(String::new, |current| format!(r#","current_leaf_message_uuid":"{current}""#));
    let messages = messages.collect::<Vec<_>>().join(",");
    format!(r#"{{"uuid":"c","updated_at":"2026-01-05T10:05:00Z","chat_messages":[{messages}]{current}}}"#)
}

const ROOT: Option<&str> = Some("00000000-0000-4000-8000-000000000000");

#[test]
fn claude_trees_are_read_if_present() {
    let messages = [("q", ROOT), ("one", Some("q")), ("two", Some("q")), ("more", Some("one"))];
    let expected = ["/q", "q/one", "one/more", "q/two"].map(str::to_owned).to_vec();
    assert_eq!(paths(&tree(&claude(&messages, Some("two")))), (expected.clone(), Some("two")));
    assert_eq!(paths(&tree(&claude(&messages, None))), (expected, Some("more")), "the last message is current");
    let linear = items(claude(&[("q", None), ("one", None)], None), None);
    assert!(matches!(linear.as_slice(), [ImportItem::Thread(_), ImportItem::Message(_), ImportItem::Message(_)]));
    let partly = [("q", None), ("one", None), ("two", Some("q"))];
    assert_eq!(paths(&tree(&claude(&partly, None))).0, ["/q", "q/one", "q/two"]);
}

#[test]
fn a_cycle_of_messages_is_an_error() {
    let cycle = claude(&[("q", Some("one")), ("one", Some("q"))], None);
    let expected = "line 1, conversation c: chat_messages: the messages form a cycle";
    assert_eq!(errors(cycle, Format::ClaudeExport), [expected]);
}
