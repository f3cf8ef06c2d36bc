//! Which of a tree's messages the program shows.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use crate::error::Refusal;
use crate::fields::{self, Fields};

const CIRCLE: &str = "mapping: the messages go round in a circle";

/// The messages from the root to the current node.
pub(super) struct Path<'a> {
    /// Each with its node's id.
    pub(super) messages: Vec<(String, &'a RawValue)>,
    /// How many subtrees hang beside the path.
    pub(super) branches_left_out: usize,
}

struct Node<'a> {
    message: Option<&'a RawValue>,
    parent: Option<String>,
    children: Vec<String>,
}

/// Finds the path to `current`, or along the last children where `current` names no node.
pub(super) fn shown<'a>(mapping: Fields<'a>, current: Option<&str>) -> Result<Path<'a>, Refusal> {
    let nodes = read_nodes(mapping)?;
    let ids = match current.filter(|current| nodes.by_id.contains_key(*current)) {
        Some(current) => up(&nodes.by_id, current)?,
        None => down(&nodes)?,
    };
    let on_path: HashSet<&str> = ids.iter().copied().collect();
    let hangs_on_path = |node: &Node<'_>| match &node.parent {
        Some(parent) => on_path.contains(parent.as_str()) || !nodes.by_id.contains_key(parent),
        None => true,
    };
    let beside = nodes.by_id.iter().filter(|(id, node)| !on_path.contains(id.as_str()) && hangs_on_path(node));
    let branches_left_out = beside.count();
    let messages = ids.iter().filter_map(|id| Some(((*id).to_owned(), nodes.by_id[*id].message?))).collect();
    Ok(Path { messages, branches_left_out })
}

struct Nodes<'a> {
    /// The ids in the order of the file.
    order: Vec<String>,
    by_id: HashMap<String, Node<'a>>,
}

fn read_nodes(mapping: Fields<'_>) -> Result<Nodes<'_>, Refusal> {
    let mut nodes = Nodes { order: Vec::new(), by_id: HashMap::new() };
    for (id, json) in mapping.into_members() {
        let node = read_node(json).map_err(|refusal| refusal.at("mapping"))?;
        nodes.order.push(id.clone());
        nodes.by_id.insert(id, node);
    }
    Ok(nodes)
}

fn read_node(json: &RawValue) -> Result<Node<'_>, Refusal> {
    let mut fields = Fields::read(json)?;
    let children = fields.take_list("children")?.unwrap_or_default();
    let children = children.into_iter().map(fields::text).collect::<Result<_, _>>()?;
    Ok(Node { message: fields.take("message"), parent: fields.take_text("parent")?, children })
}

fn up<'n>(nodes: &'n HashMap<String, Node<'_>>, current: &str) -> Result<Vec<&'n str>, Refusal> {
    let mut path = Walk::default();
    let mut next = nodes.get_key_value(current);
    while let Some((id, node)) = next {
        path.step(id)?;
        next = node.parent.as_ref().and_then(|parent| nodes.get_key_value(parent));
    }
    path.ids.reverse();
    Ok(path.ids)
}

fn down<'n>(Nodes { order, by_id: nodes }: &'n Nodes<'_>) -> Result<Vec<&'n str>, Refusal> {
    let is_root = |id: &&String| nodes[*id].parent.as_ref().is_none_or(|parent| !nodes.contains_key(parent));
    let mut path = Walk::default();
    let mut next = order.iter().find(is_root);
    if next.is_none() && !order.is_empty() {
        return Err(Refusal::new(CIRCLE));
    }
    while let Some(id) = next {
        path.step(id)?;
        next = nodes[id].children.iter().rev().find(|child| nodes.contains_key(*child));
    }
    Ok(path.ids)
}

#[derive(Default)]
struct Walk<'n> {
    ids: Vec<&'n str>,
    seen: HashSet<&'n str>,
}

impl<'n> Walk<'n> {
    fn step(&mut self, id: &'n str) -> Result<(), Refusal> {
        if !self.seen.insert(id) {
            return Err(Refusal::new(CIRCLE));
        }
        self.ids.push(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(mapping: &str, current: Option<&str>) -> Result<(Vec<String>, usize), Refusal> {
        let json = RawValue::from_string(mapping.to_owned()).unwrap();
        let path = shown(Fields::read(&json)?, current)?;
        Ok((path.messages.into_iter().map(|(id, _)| id).collect(), path.branches_left_out))
    }

    const TREE: &str = r#"{
        "root": {"message": null, "parent": null, "children": ["a"]},
        "a": {"message": {}, "parent": "root", "children": ["b", "c"]},
        "b": {"message": {}, "parent": "a", "children": ["d"]},
        "c": {"message": {}, "parent": "a", "children": []},
        "d": {"message": {}, "parent": "b", "children": []}
    }"#;

    fn is(ids: &[&str], branches: usize) -> Result<(Vec<String>, usize), Refusal> {
        Ok((ids.iter().map(|id| (*id).to_owned()).collect(), branches))
    }

    #[test]
    fn the_current_node_decides() {
        assert_eq!(path(TREE, Some("d")), is(&["a", "b", "d"], 1));
        assert_eq!(path(TREE, Some("c")), is(&["a", "c"], 1));
        assert_eq!(path(TREE, Some("a")), is(&["a"], 2));
    }

    #[test]
    fn without_one_the_last_children_do() {
        assert_eq!(path(TREE, None), is(&["a", "c"], 1));
        assert_eq!(path(TREE, Some("gone")), is(&["a", "c"], 1));
        assert_eq!(path("{}", None), is(&[], 0));
    }

    #[test]
    fn a_parent_that_is_not_there_makes_a_root() {
        let orphan = r#"{"a": {"message": {}, "parent": "gone", "children": ["b", "gone"]},
                         "b": {"message": {}, "parent": "a"}, "c": {"message": {}, "parent": "gone"}}"#;
        assert_eq!(path(orphan, Some("b")), is(&["a", "b"], 1));
        assert_eq!(path(orphan, None), is(&["a", "b"], 1));
    }

    #[test]
    fn a_circle_is_refused() {
        let circle = r#"{"a": {"parent": "b", "children": ["b"]}, "b": {"parent": "a", "children": ["a"]}}"#;
        assert_eq!(path(circle, Some("a")), Err(Refusal::new(CIRCLE)));
        assert_eq!(path(circle, None), Err(Refusal::new(CIRCLE)));
        let below_root = r#"{"a": {"children": ["b"]}, "b": {"parent": "a", "children": ["b"]}}"#;
        assert_eq!(path(below_root, None), Err(Refusal::new(CIRCLE)));
    }
}
