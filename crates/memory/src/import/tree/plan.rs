//! Planning which thread each message of a conversation with branches belongs to.
//!
//! Every message belongs to the first thread that contained it, and is one of that thread's *own messages*. A thread contains a
//! path of the tree from the root; in a fork, the messages before the first own message are copies. Messages never move between
//! threads: a thread is only continued at its end, and only if its last message is part of the tree. All other messages go to
//! new forks.

use std::collections::HashMap;

use threadkeep_core::Timestamp;
use threadkeep_core::exchange::ImportedNode;

/// Maximum number of threads of one conversation, including the thread with the current branch.
pub(super) const MAX_BRANCHES: usize = 100;
/// Maximum number of copied messages in all forks of a conversation.
pub(super) const MAX_COPIED_MESSAGES: usize = 50_000;
/// Maximum size in bytes of the copied messages in all forks of a conversation.
pub(super) const MAX_COPIED_BYTES: u64 = 256 * 1024 * 1024;

/// The tree of a conversation's messages. Messages are identified by their index.
pub(super) struct MessageTree {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    by_external_id: HashMap<String, usize>,
    /// The number and total size in bytes of each message's ancestors.
    preceding: Vec<(usize, u64)>,
    /// The last message of the current branch.
    pub(super) current_leaf: Option<usize>,
    on_current_path: Vec<bool>,
}

/// The data from which a tree is built.
pub(super) struct TreeParts {
    parents: Vec<Option<usize>>,
    times: Vec<Option<Timestamp>>,
    by_external_id: HashMap<String, usize>,
}

impl MessageTree {
    pub(super) fn parts(nodes: &[ImportedNode]) -> TreeParts {
        let with_external_id = |(index, node): (usize, &ImportedNode)| Some((node.message.external_id.clone()?, index));
        TreeParts {
            parents: nodes.iter().map(|node| node.parent).collect(),
            times: nodes.iter().map(|node| node.message.created_at).collect(),
            by_external_id: nodes.iter().enumerate().filter_map(with_external_id).collect(),
        }
    }

    /// Builds a tree. `bytes` is the encoded size of each message, `current` the message that the source marks as current.
    pub(super) fn new(parts: TreeParts, bytes: &[u64], current: Option<usize>) -> Self {
        let TreeParts { parents, times, by_external_id } = parts;
        let mut children = vec![Vec::new(); parents.len()];
        let (mut roots, mut preceding) = (Vec::new(), Vec::with_capacity(parents.len()));
        for (node, parent) in parents.iter().enumerate() {
            match *parent {
                Some(parent) => {
                    children[parent].push(node);
                    let (count, sum): (usize, u64) = preceding[parent];
                    preceding.push((count + 1, sum + bytes[parent]));
                }
                None => {
                    roots.push(node);
                    preceding.push((0, 0));
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
        Self { parents, children, roots, by_external_id, preceding, current_leaf, on_current_path }
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

    pub(super) fn branch_count(&self) -> usize {
        self.children.iter().filter(|children| children.is_empty()).count()
    }

    /// The messages that have siblings. Each may be the first own message of a fork.
    pub(super) fn siblings(&self) -> impl Iterator<Item = usize> {
        let sibling_lists = self.children.iter().chain(std::iter::once(&self.roots));
        sibling_lists.filter(|siblings| siblings.len() > 1).flatten().copied()
    }

    /// A message and all its ancestors, with the root at the end. Empty if `node` is `None`.
    pub(super) fn path_to_root(&self, node: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(node, |node| self.parents[*node])
    }

    /// The children of a message, or the roots if it is `None`.
    fn children_of(&self, after: Option<usize>) -> &[usize] {
        after.map_or(&self.roots, |node| &self.children[node])
    }

    /// Returns the node on the current path, or else the last one; `None` if there are no nodes.
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
    /// The first own message of a fork; `None` for the main thread, which has the conversation's key.
    pub(super) first_own: Option<usize>,
    /// The positions of the messages, including those that were erased.
    pub(super) positions: HashMap<usize, u64>,
    /// The last message.
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
    /// A message that is not in the tree. It was appended in this store, or comes from a newer export.
    Other,
}

/// The changes that are needed to import a conversation.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// For each message, the index of the thread to which it belongs, among the existing threads followed by the new threads.
    /// `None` if the message is skipped.
    pub(super) owners: Vec<Option<usize>>,
    /// For each existing thread, the messages to append.
    pub(super) to_append: Vec<Vec<usize>>,
    /// For each existing thread, whether it is a fork whose import was interrupted before its first own message.
    pub(super) is_incomplete: Vec<bool>,
    /// For each existing thread, whether it contains messages of several branches, as written by earlier versions.
    pub(super) is_mixed: Vec<bool>,
    /// The threads to create. A thread precedes its forks.
    pub(super) new: Vec<NewThread>,
    /// Messages that existing forks contain as copies although no known thread owns them. Each may be the first own message of an
    /// existing fork that has not been looked up yet.
    pub(super) orphans: Vec<usize>,
    /// The last message of each branch that is skipped because of a limit.
    pub(super) skipped: Vec<usize>,
}

/// A thread to be created.
#[derive(Debug)]
pub(super) struct NewThread {
    /// Whether it gets the conversation's key.
    pub(super) is_main: bool,
    /// The thread's own messages, in order; at least one.
    pub(super) own_messages: Vec<usize>,
}

/// Creates a plan. `existing` starts with the main thread, if that exists, followed by the forks in the order of their first own
/// messages.
pub(super) fn plan(tree: &MessageTree, existing: &[ThreadContents]) -> Plan {
    let mut planner = Planner {
        tree,
        plan: Plan {
            owners: vec![None; tree.len()],
            to_append: vec![Vec::new(); existing.len()],
            is_incomplete: vec![false; existing.len()],
            is_mixed: vec![false; existing.len()],
            ..Plan::default()
        },
        first_own_messages: existing.iter().map(|contents| contents.first_own).collect(),
        is_skipped: vec![false; tree.len()],
        thread_count: existing.len(),
        copied: (0, 0),
    };
    let assign = |(thread, contents)| planner.assign(thread, contents);
    let ends: Vec<Option<ContinueAfter>> = existing.iter().enumerate().map(assign).collect();
    for (thread, end) in ends.into_iter().enumerate() {
        if let Some(ContinueAfter(last)) = end {
            let more = planner.continue_from(last, thread);
            planner.plan.to_append[thread].extend(more);
        }
    }
    let has_main = existing.iter().any(|contents| contents.first_own.is_none());
    planner.add_threads(has_main);
    planner.plan
}

/// The message after which a thread can be continued; `None` if the thread is empty.
struct ContinueAfter(Option<usize>);

struct Planner<'a> {
    tree: &'a MessageTree,
    plan: Plan,
    /// The first own message of each existing thread.
    first_own_messages: Vec<Option<usize>>,
    /// Whether each message is in a skipped branch.
    is_skipped: Vec<bool>,
    /// The number of existing and new threads.
    thread_count: usize,
    /// The number and total size in bytes of the copied messages in all forks.
    copied: (usize, u64),
}

impl Planner<'_> {
    /// Assigns to a thread the messages that it contains. Returns where it can be continued; `None` if it cannot be.
    fn assign(&mut self, thread: usize, contents: &ThreadContents) -> Option<ContinueAfter> {
        let tree = self.tree;
        let deepest = contents.positions.keys().copied().max_by_key(|node| (tree.preceding[*node].0, *node));
        let on_path_count = tree.path_to_root(deepest).filter(|node| contents.positions.contains_key(node)).count();
        if on_path_count < contents.positions.len() {
            // The thread is not changed, and its messages are imported into other threads.
            self.plan.is_mixed[thread] = true;
            return None;
        }
        self.assign_path_to(deepest, thread);
        let Some(first) = contents.first_own else {
            return (contents.end != End::Other).then_some(ContinueAfter(deepest));
        };
        self.count_copies(first);
        let is_incomplete =
            tree.path_to_root(tree.parent(first)).any(|node| Some(node) == deepest) || deepest.is_none();
        self.assign_path_to(Some(first), thread);
        if contents.end == End::Other {
            return None;
        }
        if !is_incomplete {
            return Some(ContinueAfter(deepest));
        }
        self.plan.is_incomplete[thread] = true;
        let missing = tree.path_to_root(Some(first)).take_while(|node| Some(*node) != deepest);
        let mut own: Vec<usize> = missing.filter(|node| self.plan.owners[*node] == Some(thread)).collect();
        own.reverse();
        self.plan.to_append[thread] = own;
        Some(ContinueAfter(Some(first)))
    }

    /// Assigns a message and its unassigned ancestors to a thread. Ancestors that the thread does not contain were erased or
    /// trimmed, and are not added again.
    fn assign_path_to(&mut self, node: Option<usize>, thread: usize) {
        let tree = self.tree;
        let first = self.first_own_messages[thread];
        let mut top = None;
        for node in tree.path_to_root(node).take_while(|node| self.plan.owners[*node].is_none()) {
            top = Some(node);
        }
        if let (Some(top), Some(first)) = (top, first)
            && tree.preceding[top].0 < tree.preceding[first].0
        {
            self.plan.orphans.push(top);
        }
        for node in tree.path_to_root(node) {
            if self.plan.owners[node].is_some() {
                break;
            }
            self.plan.owners[node] = Some(thread);
        }
    }

    /// Assigns unassigned messages after `last` to a thread, until the end of a branch, and returns them.
    fn continue_from(&mut self, last: Option<usize>, thread: usize) -> Vec<usize> {
        let (tree, mut last, mut path) = (self.tree, last, Vec::new());
        loop {
            let unassigned = tree.children_of(last).iter().copied().filter(|node| self.plan.owners[*node].is_none());
            let Some(next) = tree.preferred(unassigned) else { return path };
            self.plan.owners[next] = Some(thread);
            path.push(next);
            last = Some(next);
        }
    }

    /// Adds threads for unassigned messages, first for the current branch, then for the other branches in order.
    fn add_threads(&mut self, has_main: bool) {
        let tree = self.tree;
        let mut has_main = has_main;
        let is_unassigned = |node: &usize, plan: &Plan| plan.owners[*node].is_none();
        let current = tree.path_to_root(tree.current_leaf).take_while(|node| is_unassigned(node, &self.plan)).last();
        for first in current.into_iter().chain(0..tree.len()) {
            if self.plan.owners[first].is_some() || self.is_skipped[first] {
                continue;
            }
            if tree.parent(first).is_some_and(|parent| self.is_skipped[parent]) || !self.has_room_for(first) {
                self.is_skipped[first] = true;
                if tree.children[first].is_empty() {
                    self.plan.skipped.push(first);
                }
                continue;
            }
            self.count_copies(first);
            let thread = self.thread_count;
            self.thread_count += 1;
            self.plan.owners[first] = Some(thread);
            let mut own = vec![first];
            own.extend(self.continue_from(Some(first), thread));
            let is_main = !std::mem::replace(&mut has_main, true);
            self.plan.new.push(NewThread { is_main, own_messages: own });
        }
    }

    fn has_room_for(&self, first: usize) -> bool {
        let (messages, bytes) = self.tree.preceding[first];
        self.thread_count < MAX_BRANCHES
            && self.copied.0 + messages <= MAX_COPIED_MESSAGES
            && self.copied.1 + bytes <= MAX_COPIED_BYTES
    }

    fn count_copies(&mut self, first: usize) {
        let (messages, bytes) = self.tree.preceding[first];
        self.copied = (self.copied.0 + messages, self.copied.1 + bytes);
    }
}

#[cfg(test)]
mod tests;
