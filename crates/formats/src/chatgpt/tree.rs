//! Reads the message tree of a ChatGPT conversation.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::error::Rejection;
use crate::fields::{self, Fields};
use crate::tree::Ordered;

const CYCLE: &str = "mapping: the messages form a cycle";

/// The nodes of a mapping: parents before their children, siblings in the order of the parent's `children`.
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// The index of the current node; `None` if the file names no existing node.
    pub(super) current: Option<usize>,
}

/// A node of a mapping.
pub(super) struct Node<'a> {
    pub(super) id: String,
    pub(super) message: Option<&'a RawValue>,
    /// The index of the parent node.
    pub(super) parent: Option<usize>,
}

/// Reads a mapping.
pub(super) fn read<'a>(mapping: Fields<'a>, current: Option<&str>) -> Result<Tree<'a>, Rejection> {
    let mapping = read_nodes(mapping)?;
    let parents = parents(&mapping);
    let index = |id: &String| mapping.indexes.get(id).copied();
    let children = |node: usize| mapping.nodes[node].children.iter().filter_map(index);
    let Some(Ordered { order, positions }) = Ordered::new(&parents, children) else {
        return Err(Rejection::new(CYCLE));
    };
    let current = current.and_then(|current| mapping.indexes.get(current).copied());
    let mut nodes: Vec<Option<MappingNode<'a>>> = mapping.nodes.into_iter().map(Some).collect();
    let nodes = order.iter().filter_map(|node| {
        let MappingNode { id, message, .. } = nodes[*node].take()?;
        Some(Node { id, message, parent: parents[*node].map(|parent| positions[parent]) })
    });
    Ok(Tree { nodes: nodes.collect(), current: current.map(|current| positions[current]) })
}

/// The nodes in the order of the file.
struct Mapping<'a> {
    nodes: Vec<MappingNode<'a>>,
    indexes: HashMap<String, usize>,
}

struct MappingNode<'a> {
    id: String,
    message: Option<&'a RawValue>,
    parent: Option<String>,
    children: Vec<String>,
}

fn read_nodes(fields: Fields<'_>) -> Result<Mapping<'_>, Rejection> {
    let mut mapping = Mapping { nodes: Vec::new(), indexes: HashMap::new() };
    for (id, json) in fields.into_remaining() {
        let node = read_node(&id, json).map_err(|rejection| rejection.at("mapping"))?;
        // If a field name is repeated, the last field wins, as is usual in JSON.
        match mapping.indexes.get(&id) {
            Some(index) => mapping.nodes[*index] = node,
            None => {
                mapping.indexes.insert(id, mapping.nodes.len());
                mapping.nodes.push(node);
            }
        }
    }
    Ok(mapping)
}

fn read_node<'a>(id: &str, json: &'a RawValue) -> Result<MappingNode<'a>, Rejection> {
    let mut fields = Fields::read(json)?;
    let children = fields.take_list("children")?.unwrap_or_default();
    let children = children.into_iter().map(fields::text).collect::<Result<_, _>>()?;
    Ok(MappingNode {
        id: id.to_owned(),
        message: fields.take("message"),
        parent: fields.take_text("parent")?,
        children,
    })
}

/// Returns the parent of each node: the node in `parent`, or otherwise the node that lists it in `children`.
fn parents(mapping: &Mapping<'_>) -> Vec<Option<usize>> {
    let index = |id: &String| mapping.indexes.get(id).copied();
    let mut parents: Vec<Option<usize>> =
        mapping.nodes.iter().map(|node| node.parent.as_ref().and_then(index)).collect();
    for (parent, node) in mapping.nodes.iter().enumerate() {
        for child in node.children.iter().filter_map(index) {
            if mapping.nodes[child].parent.is_none() && child != parent {
                parents[child].get_or_insert(parent);
            }
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats each node as `parent/id`. Returns the nodes with the id of the current node.
    fn tree(mapping: &str, current: Option<&str>) -> Result<(Vec<String>, Option<String>), Rejection> {
        let json = RawValue::from_string(mapping.to_owned()).unwrap();
        let Tree { nodes, current } = read(Fields::read(&json)?, current)?;
        let paths = nodes.iter().map(|node| {
            let parent = node.parent.map_or("", |parent| nodes[parent].id.as_str());
            format!("{parent}/{}", node.id)
        });
        Ok((paths.collect(), current.map(|current| nodes[current].id.clone())))
    }

    const TREE: &str = r#"{
        "root": {"message": null, "parent": null, "children": ["a"]},
        "c": {"message": {}, "parent": "a", "children": []},
        "a": {"message": {}, "parent": "root", "children": ["b", "c"]},
        "b": {"message": {}, "parent": "a", "children": ["d"]},
        "d": {"message": {}, "parent": "b", "children": []}
    }"#;

    fn expected_tree(nodes: &[&str], current: Option<&str>) -> Result<(Vec<String>, Option<String>), Rejection> {
        Ok((nodes.iter().map(|node| (*node).to_owned()).collect(), current.map(str::to_owned)))
    }

    #[test]
    fn parents_come_before_their_children_in_order() {
        let nodes = ["/root", "root/a", "a/b", "b/d", "a/c"];
        assert_eq!(tree(TREE, Some("d")), expected_tree(&nodes, Some("d")));
        assert_eq!(tree(TREE, Some("a")), expected_tree(&nodes, Some("a")));
    }

    #[test]
    fn an_unknown_current_node_is_ignored() {
        let nodes = ["/root", "root/a", "a/b", "b/d", "a/c"];
        assert_eq!(tree(TREE, None), expected_tree(&nodes, None));
        assert_eq!(tree(TREE, Some("gone")), expected_tree(&nodes, None));
        assert_eq!(tree("{}", None), Ok((Vec::new(), None)));
    }

    #[test]
    fn a_node_with_an_unknown_parent_is_a_root() {
        let orphans =
            r#"{"a": {"parent": "gone", "children": ["b", "gone"]}, "b": {"parent": "a"}, "c": {"parent": "gone"}}"#;
        assert_eq!(tree(orphans, None), expected_tree(&["/a", "a/b", "/c"], None));
    }

    #[test]
    fn a_tree_is_read_from_children_alone() {
        let children = r#"{"b": {}, "a": {"children": ["c", "b", "a"]}, "c": {"children": ["b"]}}"#;
        assert_eq!(tree(children, None), expected_tree(&["/a", "a/c", "a/b"], None));
    }

    #[test]
    fn a_cycle_is_rejected() {
        let cycle = r#"{"x": {}, "a": {"parent": "b", "children": ["b"]}, "b": {"parent": "a", "children": ["a"]}}"#;
        for current in [Some("a"), Some("x"), None] {
            assert_eq!(tree(cycle, current), Err(Rejection::new(CYCLE)));
        }
        assert_eq!(tree(r#"{"a": {"parent": "a"}}"#, None), Err(Rejection::new(CYCLE)));
    }

    #[test]
    fn a_very_deep_tree_is_read() {
        let nodes = (1..200_000).map(|node| format!(r#""{node}":{{"parent":"{}"}}"#, node - 1));
        let mapping = format!(r#"{{"0":{{}},{}}}"#, nodes.collect::<Vec<_>>().join(","));
        assert_eq!(tree(&mapping, Some("199999")).unwrap().1.as_deref(), Some("199999"));
    }
}
