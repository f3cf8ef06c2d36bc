//! Bringing the messages of a tree into an order.

/// The nodes of a tree in an order in which parents come before their children.
pub(crate) struct Ordered {
    /// The nodes.
    pub(crate) order: Vec<usize>,
    /// For each node, its place in that order.
    pub(crate) places: Vec<usize>,
}

impl Ordered {
    /// Orders nodes by the parents that they have. Children come in the order that their parent gives, those that it does not
    /// name after them. `None` where some go round in a circle.
    pub(crate) fn new<C: Iterator<Item = usize>>(
        parents: &[Option<usize>],
        named_children: impl Fn(usize) -> C,
    ) -> Option<Self> {
        let (roots, children) = children(parents, named_children);
        let order = in_order(&roots, &children);
        // Whatever no root leads to goes round in a circle.
        if order.len() < parents.len() {
            return None;
        }
        let mut places = vec![0; order.len()];
        for (place, node) in order.iter().enumerate() {
            places[*node] = place;
        }
        Some(Self { places, order })
    }
}

/// The roots, and each node's children.
fn children<C: Iterator<Item = usize>>(
    parents: &[Option<usize>],
    named_children: impl Fn(usize) -> C,
) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut children = vec![Vec::new(); parents.len()];
    let mut is_placed = vec![false; parents.len()];
    for (parent, own) in children.iter_mut().enumerate() {
        for child in named_children(parent) {
            if parents[child] == Some(parent) && !std::mem::replace(&mut is_placed[child], true) {
                own.push(child);
            }
        }
    }
    let mut roots = Vec::new();
    for (node, parent) in parents.iter().enumerate() {
        match parent {
            None => roots.push(node),
            Some(parent) if !is_placed[node] => children[*parent].push(node),
            Some(_) => {}
        }
    }
    (roots, children)
}

/// All nodes that the roots lead to, each after its parent. A tree may be as deep as a file is long, so nothing recurses.
fn in_order(roots: &[usize], children: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(children.len());
    let mut waiting: Vec<usize> = roots.iter().rev().copied().collect();
    while let Some(node) = waiting.pop() {
        order.push(node);
        waiting.extend(children[node].iter().rev());
    }
    order
}
