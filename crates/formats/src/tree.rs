//! Orders the messages of a tree.

/// The nodes of a tree, with parents before their children.
pub(crate) struct Ordered {
    /// The indexes of the nodes, in order.
    pub(crate) order: Vec<usize>,
    /// For each node, its position in `order`.
    pub(crate) positions: Vec<usize>,
}

impl Ordered {
    /// Orders nodes by their parents. Children are in the order of `named_children`, followed by children that it does not
    /// name. Returns `None` if the nodes contain a cycle.
    pub(crate) fn new<C: Iterator<Item = usize>>(
        parents: &[Option<usize>],
        named_children: impl Fn(usize) -> C,
    ) -> Option<Self> {
        let (roots, children) = children(parents, named_children);
        let order = in_order(&roots, &children);
        // Nodes that cannot be reached from a root belong to a cycle.
        if order.len() < parents.len() {
            return None;
        }
        let mut positions = vec![0; order.len()];
        for (position, node) in order.iter().enumerate() {
            positions[*node] = position;
        }
        Some(Self { positions, order })
    }
}

/// Returns the roots, and the children of each node.
fn children<C: Iterator<Item = usize>>(
    parents: &[Option<usize>],
    named_children: impl Fn(usize) -> C,
) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut children = vec![Vec::new(); parents.len()];
    let mut is_placed = vec![false; parents.len()];
    for (parent, own_children) in children.iter_mut().enumerate() {
        for child in named_children(parent) {
            if parents[child] == Some(parent) && !std::mem::replace(&mut is_placed[child], true) {
                own_children.push(child);
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

/// Returns all nodes that can be reached from the roots, each after its parent. Iterative, because trees can be very deep.
fn in_order(roots: &[usize], children: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(children.len());
    let mut stack: Vec<usize> = roots.iter().rev().copied().collect();
    while let Some(node) = stack.pop() {
        order.push(node);
        stack.extend(children[node].iter().rev());
    }
    order
}
