//! The tree that a conversation's messages make.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::error::Refusal;
use crate::fields::{self, Fields};
use crate::tree::Ordered;

const CIRCLE: &str = "mapping: the messages go round in a circle";

/// The nodes of a mapping: parents before their children, siblings in the order in which their parent names them.
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// The place of the node that is shown last, where the file names one that is there.
    pub(super) current: Option<usize>,
}

/// A node of a mapping.
pub(super) struct Node<'a> {
    pub(super) id: String,
    pub(super) message: Option<&'a RawValue>,
    /// The place of its parent among the nodes.
    pub(super) parent: Option<usize>,
}

/// Reads a mapping.
pub(super) fn read<'a>(mapping: Fields<'a>, current: Option<&str>) -> Result<Tree<'a>, Refusal> {
    let given = read_nodes(mapping)?;
    let parents = parents(&given);
    let place = |id: &String| given.places.get(id).copied();
    let children = |node: usize| given.nodes[node].children.iter().filter_map(place);
    let Some(Ordered { order, places }) = Ordered::new(&parents, children) else {
        return Err(Refusal::new(CIRCLE));
    };
    let current = current.and_then(|current| given.places.get(current).copied());
    let mut nodes: Vec<Option<GivenNode<'a>>> = given.nodes.into_iter().map(Some).collect();
    let nodes = order.iter().filter_map(|node| {
        let GivenNode { id, message, .. } = nodes[*node].take()?;
        Some(Node { id, message, parent: parents[*node].map(|parent| places[parent]) })
    });
    Ok(Tree { nodes: nodes.collect(), current: current.map(|current| places[current]) })
}

/// The nodes in the order of the file.
struct Given<'a> {
    nodes: Vec<GivenNode<'a>>,
    places: HashMap<String, usize>,
}

struct GivenNode<'a> {
    id: String,
    message: Option<&'a RawValue>,
    parent: Option<String>,
    children: Vec<String>,
}

fn read_nodes(mapping: Fields<'_>) -> Result<Given<'_>, Refusal> {
    let mut given = Given { nodes: Vec::new(), places: HashMap::new() };
    for (id, json) in mapping.into_members() {
        let node = read_node(&id, json).map_err(|refusal| refusal.at("mapping"))?;
        // Of members with one name, the last is the one, as everywhere in JSON.
        match given.places.get(&id) {
            Some(place) => given.nodes[*place] = node,
            None => {
                given.places.insert(id, given.nodes.len());
                given.nodes.push(node);
            }
        }
    }
    Ok(given)
}

fn read_node<'a>(id: &str, json: &'a RawValue) -> Result<GivenNode<'a>, Refusal> {
    let mut fields = Fields::read(json)?;
    let children = fields.take_list("children")?.unwrap_or_default();
    let children = children.into_iter().map(fields::text).collect::<Result<_, _>>()?;
    Ok(GivenNode { id: id.to_owned(), message: fields.take("message"), parent: fields.take_text("parent")?, children })
}

/// What a node says of its parent counts; where it says nothing, the node that names it as a child is its parent.
fn parents(given: &Given<'_>) -> Vec<Option<usize>> {
    let place = |id: &String| given.places.get(id).copied();
    let mut parents: Vec<Option<usize>> = given.nodes.iter().map(|node| node.parent.as_ref().and_then(place)).collect();
    for (parent, node) in given.nodes.iter().enumerate() {
        for child in node.children.iter().filter_map(place) {
            if given.nodes[child].parent.is_none() && child != parent {
                parents[child].get_or_insert(parent);
            }
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each node as `parent/id`, and the current one.
    fn tree(mapping: &str, current: Option<&str>) -> Result<(Vec<String>, Option<String>), Refusal> {
        let json = RawValue::from_string(mapping.to_owned()).unwrap();
        let Tree { nodes, current } = read(Fields::read(&json)?, current)?;
        let shown = nodes.iter().map(|node| {
            let parent = node.parent.map_or("", |parent| nodes[parent].id.as_str());
            format!("{parent}/{}", node.id)
        });
        Ok((shown.collect(), current.map(|current| nodes[current].id.clone())))
    }

    const TREE: &str = r#"{
        "root": {"message": null, "parent": null, "children": ["a"]},
        "c": {"message": {}, "parent": "a", "children": []},
        "a": {"message": {}, "parent": "root", "children": ["b", "c"]},
        "b": {"message": {}, "parent": "a", "children": ["d"]},
        "d": {"message": {}, "parent": "b", "children": []}
    }"#;

    fn is(nodes: &[&str], current: Option<&str>) -> Result<(Vec<String>, Option<String>), Refusal> {
        Ok((nodes.iter().map(|node| (*node).to_owned()).collect(), current.map(str::to_owned)))
    }

    #[test]
    fn parents_come_before_their_children_in_order() {
        let nodes = ["/root", "root/a", "a/b", "b/d", "a/c"];
        assert_eq!(tree(TREE, Some("d")), is(&nodes, Some("d")));
        assert_eq!(tree(TREE, Some("a")), is(&nodes, Some("a")));
    }

    #[test]
    fn a_current_node_that_is_not_there_is_none() {
        let nodes = ["/root", "root/a", "a/b", "b/d", "a/c"];
        assert_eq!(tree(TREE, None), is(&nodes, None));
        assert_eq!(tree(TREE, Some("gone")), is(&nodes, None));
        assert_eq!(tree("{}", None), Ok((Vec::new(), None)));
    }

    #[test]
    fn a_parent_that_is_not_there_makes_a_root() {
        let orphans =
            r#"{"a": {"parent": "gone", "children": ["b", "gone"]}, "b": {"parent": "a"}, "c": {"parent": "gone"}}"#;
        assert_eq!(tree(orphans, None), is(&["/a", "a/b", "/c"], None));
    }

    #[test]
    fn children_alone_make_a_tree_too() {
        let children = r#"{"b": {}, "a": {"children": ["c", "b", "a"]}, "c": {"children": ["b"]}}"#;
        assert_eq!(tree(children, None), is(&["/a", "a/c", "a/b"], None));
    }

    #[test]
    fn a_circle_is_refused() {
        let circle = r#"{"x": {}, "a": {"parent": "b", "children": ["b"]}, "b": {"parent": "a", "children": ["a"]}}"#;
        for current in [Some("a"), Some("x"), None] {
            assert_eq!(tree(circle, current), Err(Refusal::new(CIRCLE)));
        }
        assert_eq!(tree(r#"{"a": {"parent": "a"}}"#, None), Err(Refusal::new(CIRCLE)));
    }

    #[test]
    fn a_very_deep_tree_is_read() {
        let nodes = (1..200_000).map(|node| format!(r#""{node}":{{"parent":"{}"}}"#, node - 1));
        let mapping = format!(r#"{{"0":{{}},{}}}"#, nodes.collect::<Vec<_>>().join(","));
        assert_eq!(tree(&mapping, Some("199999")).unwrap().1.as_deref(), Some("199999"));
    }
}
