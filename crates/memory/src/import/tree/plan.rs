//! Planning which thread each message of a conversation with branches belongs to.
//!
//! Every message belongs to one thread: the first that contained it. A thread contains a path of the tree from the root; in a
//! fork, the messages before its first own one are copies. Messages never move between threads: a thread is only continued at
//! its end, and only if its last message is part of the tree. All other messages go to new forks.

use std::collections::HashMap;

use threadkeep_core::Timestamp;
use threadkeep_core::exchange::ImportedNode;

/// Maximum number of threads of one conversation, including that of the current branch.
pub(super) const MAX_BRANCHES: usize = 100;
/// Maximum number, and bytes, of messages that all forks of a conversation contain as copies.
pub(super) const MAX_COPIED_MESSAGES: usize = 50_000;
pub(super) const MAX_COPIED_BYTES: u64 = 256 * 1024 * 1024;

/// The tree of a conversation's messages. Messages are identified by their index.
pub(super) struct MessageTree {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    by_external_id: HashMap<String, usize>,
    /// The number of messages before each one on its path, and their bytes.
    before: Vec<(usize, u64)>,
    /// The last message of the current branch.
    pub(super) current_leaf: Option<usize>,
    on_current_path: Vec<bool>,
}

/// The parts of the nodes that a tree is built from.
pub(super) struct TreeParts {
    parents: Vec<Option<usize>>,
    times: Vec<Option<Timestamp>>,
    by_external_id: HashMap<String, usize>,
}

impl MessageTree {
    pub(super) fn parts(nodes: &[ImportedNode]) -> TreeParts {
        let named = |(index, node): (usize, &ImportedNode)| Some((node.message.external_id.clone()?, index));
        TreeParts {
            parents: nodes.iter().map(|node| node.parent).collect(),
            times: nodes.iter().map(|node| node.message.created_at).collect(),
            by_external_id: nodes.iter().enumerate().filter_map(named).collect(),
        }
    }

    /// Builds a tree from parts, the encoded size of each message, and the message that the source marks as current.
    pub(super) fn new(parts: TreeParts, bytes: &[u64], current: Option<usize>) -> Self {
        let TreeParts { parents, times, by_external_id } = parts;
        let mut children = vec![Vec::new(); parents.len()];
        let (mut roots, mut before) = (Vec::new(), Vec::with_capacity(parents.len()));
        for (node, parent) in parents.iter().enumerate() {
            match *parent {
                Some(parent) => {
                    children[parent].push(node);
                    let (count, sum): (usize, u64) = before[parent];
                    before.push((count + 1, sum + bytes[parent]));
                }
                None => {
                    roots.push(node);
                    before.push((0, 0));
                }
            }
        }
        let newest = newest_below(&parents, times);
        let newest_of = |nodes: &[usize]| nodes.iter().copied().max_by_key(|node| newest[*node]);
        let mut current_leaf = current.or_else(|| newest_of(&roots));
        while let Some(next) = current_leaf.and_then(|node| newest_of(&children[node])) {
            current_leaf = Some(next);
        }
        let mut on_current_path = vec![false; parents.len()];
        let mut next = current_leaf;
        while let Some(node) = next {
            on_current_path[node] = true;
            next = parents[node];
        }
        Self { parents, children, roots, by_external_id, before, current_leaf, on_current_path }
    }

    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    pub(super) fn parent(&self, node: usize) -> Option<usize> {
        self.parents[node]
    }

    pub(super) fn find(&self, external_id: &str) -> Option<usize> {
        self.by_external_id.get(external_id).copied()
    }

    pub(super) fn branches(&self) -> usize {
        self.children.iter().filter(|children| children.is_empty()).count()
    }

    /// The messages that have siblings: each may be the first own message of a fork.
    pub(super) fn siblings(&self) -> impl Iterator<Item = usize> {
        let families = self.children.iter().chain(std::iter::once(&self.roots));
        families.filter(|family| family.len() > 1).flatten().copied()
    }

    /// A message and all its ancestors, the root last.
    pub(super) fn path_to_root(&self, node: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(node, |node| self.parents[*node])
    }

    /// The children of a message, or the roots.
    fn children_of(&self, after: Option<usize>) -> &[usize] {
        after.map_or(&self.roots, |node| &self.children[node])
    }

    /// Of siblings, the one on the current path, otherwise the last one.
    fn preferred(&self, nodes: impl DoubleEndedIterator<Item = usize> + Clone) -> Option<usize> {
        nodes.clone().find(|node| self.on_current_path[*node]).or_else(|| nodes.last())
    }
}

/// For each message, the time of the newest message in its subtree.
fn newest_below(parents: &[Option<usize>], times: Vec<Option<Timestamp>>) -> Vec<Option<Timestamp>> {
    let mut newest = times;
    for (node, parent) in parents.iter().enumerate().rev() {
        if let Some(parent) = *parent {
            newest[parent] = newest[parent].max(newest[node]);
        }
    }
    newest
}

/// The messages of the tree that a thread contains.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadContents {
    /// A fork's first own message; `None` for the thread with the conversation's key.
    pub(super) first: Option<usize>,
    /// The messages that it contains, or contained until they were erased, with their positions.
    pub(super) positions: HashMap<usize, u64>,
    /// Its last message.
    pub(super) end: End,
}

/// The last message of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// There are no messages.
    #[default]
    Empty,
    /// A message of the tree.
    Message(usize),
    /// A message that is not in the tree: it was appended here, or comes from a newer export.
    Other,
}

/// The changes that import a conversation.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// For each message, the index of the thread that it belongs to, counting the existing threads and then the new ones. `None`
    /// if it is skipped, or only in a thread with mixed branches.
    pub(super) owners: Vec<Option<usize>>,
    /// For each existing thread, the messages to append.
    pub(super) continued: Vec<Vec<usize>>,
    /// For each existing thread, whether it is a fork whose import was interrupted before its first own message.
    pub(super) is_incomplete: Vec<bool>,
    /// For each existing thread, whether it contains messages of several branches, as written by earlier versions.
    pub(super) mixed: Vec<bool>,
    /// The threads to create. A thread comes before those that are forked from it.
    pub(super) new: Vec<NewThread>,
    /// Messages that only forks contain, as copies. A thread whose first own message is one of them may exist.
    pub(super) orphans: Vec<usize>,
    /// The last message of each branch that is skipped because of a limit.
    pub(super) skipped: Vec<usize>,
}

/// A thread to be created.
#[derive(Debug)]
pub(super) struct NewThread {
    /// Whether it gets the conversation's key.
    pub(super) is_main: bool,
    /// Its own messages, in order; at least one.
    pub(super) own: Vec<usize>,
}

/// Makes a plan. The existing threads are ordered: the one with the conversation's key first, then forks by their first own
/// messages.
pub(super) fn plan(shape: &MessageTree, existing: &[ThreadContents]) -> Plan {
    let mut planner = Planner {
        shape,
        plan: Plan {
            owners: vec![None; shape.len()],
            continued: vec![Vec::new(); existing.len()],
            is_incomplete: vec![false; existing.len()],
            mixed: vec![false; existing.len()],
            ..Plan::default()
        },
        firsts: existing.iter().map(|contents| contents.first).collect(),
        is_skipped: vec![false; shape.len()],
        threads: existing.len(),
        copied: (0, 0),
    };
    let assign = |(thread, contents)| planner.assign(thread, contents);
    let ends: Vec<Option<ContinueAfter>> = existing.iter().enumerate().map(assign).collect();
    for (thread, end) in ends.into_iter().enumerate() {
        if let Some(ContinueAfter(last)) = end {
            let more = planner.continue_from(last, thread);
            planner.plan.continued[thread].extend(more);
        }
    }
    let has_main = existing.iter().any(|contents| contents.first.is_none());
    planner.add_threads(has_main);
    planner.plan
}

/// The message after which a thread can be continued; `None` for an empty thread.
struct ContinueAfter(Option<usize>);

struct Planner<'a> {
    shape: &'a MessageTree,
    plan: Plan,
    /// The first own message of each existing thread.
    firsts: Vec<Option<usize>>,
    /// Whether each message is in a skipped branch.
    is_skipped: Vec<bool>,
    threads: usize,
    copied: (usize, u64),
}

impl Planner<'_> {
    /// Assigns the messages that a thread contains to it. Returns where it can be continued, if it can.
    fn assign(&mut self, thread: usize, contents: &ThreadContents) -> Option<ContinueAfter> {
        let shape = self.shape;
        let deepest = contents.positions.keys().copied().max_by_key(|node| (shape.before[*node].0, *node));
        let on_path = shape.path_to_root(deepest).filter(|node| contents.positions.contains_key(node)).count();
        if on_path < contents.positions.len() {
            // It stays as it is, and its messages are also imported into other threads.
            self.plan.mixed[thread] = true;
            return None;
        }
        self.own_path_to(deepest, thread);
        let Some(first) = contents.first else {
            return (contents.end != End::Other).then_some(ContinueAfter(deepest));
        };
        self.count_copies(first);
        let is_incomplete =
            shape.path_to_root(shape.parent(first)).any(|node| Some(node) == deepest) || deepest.is_none();
        self.own_path_to(Some(first), thread);
        if contents.end == End::Other {
            return None;
        }
        if !is_incomplete {
            return Some(ContinueAfter(deepest));
        }
        self.plan.is_incomplete[thread] = true;
        let missing = shape.path_to_root(Some(first)).take_while(|node| Some(*node) != deepest);
        let mut own: Vec<usize> = missing.filter(|node| self.plan.owners[*node] == Some(thread)).collect();
        own.reverse();
        self.plan.continued[thread] = own;
        Some(ContinueAfter(Some(first)))
    }

    /// Assigns a message and its unassigned ancestors to a thread. (Ancestors that the thread does not contain were erased or
    /// trimmed, and are not added again.)
    fn own_path_to(&mut self, node: Option<usize>, thread: usize) {
        let shape = self.shape;
        let first = self.firsts[thread];
        let mut top = None;
        for node in shape.path_to_root(node).take_while(|node| self.plan.owners[*node].is_none()) {
            top = Some(node);
        }
        if let (Some(top), Some(first)) = (top, first)
            && shape.before[top].0 < shape.before[first].0
        {
            self.plan.orphans.push(top);
        }
        for node in shape.path_to_root(node) {
            if self.plan.owners[node].is_some() {
                break;
            }
            self.plan.owners[node] = Some(thread);
        }
    }

    /// Assigns the unassigned messages after `last` to a thread, to the end of a branch.
    fn continue_from(&mut self, last: Option<usize>, thread: usize) -> Vec<usize> {
        let (shape, mut last, mut path) = (self.shape, last, Vec::new());
        loop {
            let free = shape.children_of(last).iter().copied().filter(|node| self.plan.owners[*node].is_none());
            let Some(next) = shape.preferred(free) else { return path };
            self.plan.owners[next] = Some(thread);
            path.push(next);
            last = Some(next);
        }
    }

    /// Adds threads for unassigned messages: for the current branch, then for the others in order.
    fn add_threads(&mut self, has_main: bool) {
        let shape = self.shape;
        let mut has_main = has_main;
        let is_free = |node: &usize, plan: &Plan| plan.owners[*node].is_none();
        let current = shape.path_to_root(shape.current_leaf).take_while(|node| is_free(node, &self.plan)).last();
        for first in current.into_iter().chain(0..shape.len()) {
            if self.plan.owners[first].is_some() || self.is_skipped[first] {
                continue;
            }
            if shape.parent(first).is_some_and(|parent| self.is_skipped[parent]) || !self.has_room_for(first) {
                self.is_skipped[first] = true;
                if shape.children[first].is_empty() {
                    self.plan.skipped.push(first);
                }
                continue;
            }
            self.count_copies(first);
            let thread = self.threads;
            self.threads += 1;
            self.plan.owners[first] = Some(thread);
            let mut own = vec![first];
            own.extend(self.continue_from(Some(first), thread));
            let is_main = !std::mem::replace(&mut has_main, true);
            self.plan.new.push(NewThread { is_main, own });
        }
    }

    fn has_room_for(&self, first: usize) -> bool {
        let (messages, bytes) = self.shape.before[first];
        self.threads < MAX_BRANCHES
            && self.copied.0 + messages <= MAX_COPIED_MESSAGES
            && self.copied.1 + bytes <= MAX_COPIED_BYTES
    }

    fn count_copies(&mut self, first: usize) {
        let (messages, bytes) = self.shape.before[first];
        self.copied = (self.copied.0 + messages, self.copied.1 + bytes);
    }
}

#[cfg(test)]
mod tests;
