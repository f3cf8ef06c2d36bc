//! Which thread each message of a conversation with branches belongs to.
//!
//! Every message belongs to one thread: the first that held it. A thread holds a path of the tree from its beginning; where it
//! is a fork, the messages before its own first one are copies. What a thread holds never moves: a thread is only continued
//! at its end, and only where its end is a message of the tree; all else becomes a new fork.

use std::collections::HashMap;

use threadkeep_core::Timestamp;
use threadkeep_core::exchange::ImportedNode;

/// Threads of one conversation at most, the current branch's included.
pub(super) const BRANCHES: usize = 100;
/// Messages at most that all forks of a conversation hold as copies, and the bytes of them.
pub(super) const COPIED_MESSAGES: usize = 50_000;
pub(super) const COPIED_BYTES: u64 = 256 * 1024 * 1024;

/// How the messages of a conversation hang together.
pub(super) struct Shape {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    places: HashMap<String, usize>,
    /// How many messages stand before each one on its path, and their bytes.
    before: Vec<(usize, u64)>,
    /// The last message of the branch that the source shows.
    pub(super) shown: Option<usize>,
    on_shown_path: Vec<bool>,
}

/// What a shape is made of.
pub(super) struct Prepared {
    parents: Vec<Option<usize>>,
    times: Vec<Option<Timestamp>>,
    places: HashMap<String, usize>,
}

impl Shape {
    pub(super) fn prepare(nodes: &[ImportedNode]) -> Prepared {
        let named = |(place, node): (usize, &ImportedNode)| Some((node.message.external_id.clone()?, place));
        Prepared {
            parents: nodes.iter().map(|node| node.parent).collect(),
            times: nodes.iter().map(|node| node.message.created_at).collect(),
            places: nodes.iter().enumerate().filter_map(named).collect(),
        }
    }

    /// Of messages with their parents and bytes, and the one that the source shows.
    pub(super) fn of(prepared: Prepared, bytes: &[u64], current: Option<usize>) -> Self {
        let Prepared { parents, times, places } = prepared;
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
        let mut shown = current.or_else(|| newest_of(&roots));
        while let Some(next) = shown.and_then(|node| newest_of(&children[node])) {
            shown = Some(next);
        }
        let mut on_shown_path = vec![false; parents.len()];
        let mut next = shown;
        while let Some(node) = next {
            on_shown_path[node] = true;
            next = parents[node];
        }
        Self { parents, children, roots, places, before, shown, on_shown_path }
    }

    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    pub(super) fn parent(&self, node: usize) -> Option<usize> {
        self.parents[node]
    }

    pub(super) fn place(&self, external_id: &str) -> Option<usize> {
        self.places.get(external_id).copied()
    }

    pub(super) fn branches(&self) -> usize {
        self.children.iter().filter(|children| children.is_empty()).count()
    }

    /// The messages beside which there are others: each may have begun a fork.
    pub(super) fn siblings(&self) -> impl Iterator<Item = usize> {
        let families = self.children.iter().chain(std::iter::once(&self.roots));
        families.filter(|family| family.len() > 1).flatten().copied()
    }

    /// A message and all before it, the last first.
    pub(super) fn up_from(&self, node: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(node, |node| self.parents[*node])
    }

    fn next(&self, after: Option<usize>) -> &[usize] {
        after.map_or(&self.roots, |node| &self.children[node])
    }

    /// Of messages that follow the same one, the one that is shown, else the newest.
    fn preferred(&self, nodes: impl DoubleEndedIterator<Item = usize> + Clone) -> Option<usize> {
        nodes.clone().find(|node| self.on_shown_path[*node]).or_else(|| nodes.last())
    }
}

/// For each message the time of the newest one on the branches through it.
fn newest_below(parents: &[Option<usize>], times: Vec<Option<Timestamp>>) -> Vec<Option<Timestamp>> {
    let mut newest = times;
    for (node, parent) in parents.iter().enumerate().rev() {
        if let Some(parent) = *parent {
            newest[parent] = newest[parent].max(newest[node]);
        }
    }
    newest
}

/// A thread of the conversation, as far as the tree is concerned.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// A fork's first own message; `None` for the thread that has the conversation's key.
    pub(super) first: Option<usize>,
    /// The messages of the tree that it holds, or held until they were erased, with their positions.
    pub(super) positions: HashMap<usize, u64>,
    /// What it ends with.
    pub(super) end: End,
}

/// What a thread ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// It holds no messages.
    #[default]
    Empty,
    /// This message of the tree.
    Message(usize),
    /// Something else: a message that was added here, or one that only a newer export has.
    Other,
}

/// What is to become of a conversation.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// For each message the thread that it belongs to: one of those that are there, then of the new ones. `None` where it is
    /// left out, or stands only in a thread with mixed branches.
    pub(super) owners: Vec<Option<usize>>,
    /// For each thread that is there, the messages that are added to it.
    pub(super) continued: Vec<Vec<usize>>,
    /// For each thread that is there, whether its making was cut off before its first own message.
    pub(super) begun: Vec<bool>,
    /// For each thread that is there, whether it holds messages of several branches: an earlier version mixed them.
    pub(super) mixed: Vec<bool>,
    /// The threads that are made, those before that others fork from.
    pub(super) new: Vec<NewThread>,
    /// Messages that no thread here holds but a fork as a copy: their own thread begins with them, if it is there still.
    pub(super) orphans: Vec<usize>,
    /// The last message of each branch that is left out for a bound.
    pub(super) left_out: Vec<usize>,
}

/// A thread that is to be made.
#[derive(Debug)]
pub(super) struct NewThread {
    /// Whether it gets the conversation's key.
    pub(super) is_main: bool,
    /// Its own messages, in order; at least one.
    pub(super) own: Vec<usize>,
}

/// Settles it. The threads that are there stand in this order: the one with the conversation's key first, forks by the places
/// of their first messages.
pub(super) fn plan(shape: &Shape, held: &[Held]) -> Plan {
    let mut planning = Planning {
        shape,
        plan: Plan {
            owners: vec![None; shape.len()],
            continued: vec![Vec::new(); held.len()],
            begun: vec![false; held.len()],
            mixed: vec![false; held.len()],
            ..Plan::default()
        },
        firsts: held.iter().map(|held| held.first).collect(),
        is_passed_over: vec![false; shape.len()],
        threads: held.len(),
        copied: (0, 0),
    };
    let ends: Vec<Option<Tip>> = held.iter().enumerate().map(|(thread, held)| planning.settle(thread, held)).collect();
    for (thread, end) in ends.into_iter().enumerate() {
        if let Some(Tip(tip)) = end {
            let more = planning.continue_from(tip, thread);
            planning.plan.continued[thread].extend(more);
        }
    }
    let has_main = held.iter().any(|held| held.first.is_none());
    planning.add_threads(has_main);
    planning.plan
}

/// Where a thread can be continued.
struct Tip(Option<usize>);

struct Planning<'a> {
    shape: &'a Shape,
    plan: Plan,
    /// The first own message of each thread that is there.
    firsts: Vec<Option<usize>>,
    /// Messages of branches that are left out.
    is_passed_over: Vec<bool>,
    threads: usize,
    copied: (usize, u64),
}

impl Planning<'_> {
    /// Gives a thread the messages that it holds, and tells where it can be continued, if it can.
    fn settle(&mut self, thread: usize, held: &Held) -> Option<Tip> {
        let shape = self.shape;
        let deepest = held.positions.keys().copied().max_by_key(|node| (shape.before[*node].0, *node));
        let on_path = shape.up_from(deepest).filter(|node| held.positions.contains_key(node)).count();
        if on_path < held.positions.len() {
            // It stays as it is, and stands for none of its branches.
            self.plan.mixed[thread] = true;
            return None;
        }
        self.own_up_from(deepest, thread);
        let Some(first) = held.first else {
            return (held.end != End::Other).then_some(Tip(deepest));
        };
        self.count_copies(first);
        let is_begun = shape.up_from(shape.parent(first)).any(|node| Some(node) == deepest) || deepest.is_none();
        self.own_up_from(Some(first), thread);
        if held.end == End::Other {
            return None;
        }
        if !is_begun {
            return Some(Tip(deepest));
        }
        self.plan.begun[thread] = true;
        let missing = shape.up_from(Some(first)).take_while(|node| Some(*node) != deepest);
        let mut own: Vec<usize> = missing.filter(|node| self.plan.owners[*node] == Some(thread)).collect();
        own.reverse();
        self.plan.continued[thread] = own;
        Some(Tip(Some(first)))
    }

    /// Whatever leads to a message of a thread is that thread's or an earlier one's. (Where a thread does not hold it any more,
    /// it was erased or trimmed, and stays so.)
    fn own_up_from(&mut self, node: Option<usize>, thread: usize) {
        let shape = self.shape;
        let first = self.firsts[thread];
        let mut top = None;
        for node in shape.up_from(node).take_while(|node| self.plan.owners[*node].is_none()) {
            top = Some(node);
        }
        if let (Some(top), Some(first)) = (top, first)
            && shape.before[top].0 < shape.before[first].0
        {
            self.plan.orphans.push(top);
        }
        for node in shape.up_from(node) {
            if self.plan.owners[node].is_some() {
                break;
            }
            self.plan.owners[node] = Some(thread);
        }
    }

    /// Follows what nobody owns to the end of a branch.
    fn continue_from(&mut self, tip: Option<usize>, thread: usize) -> Vec<usize> {
        let (shape, mut tip, mut path) = (self.shape, tip, Vec::new());
        loop {
            let free = shape.next(tip).iter().copied().filter(|node| self.plan.owners[*node].is_none());
            let Some(next) = shape.preferred(free) else { return path };
            self.plan.owners[next] = Some(thread);
            path.push(next);
            tip = Some(next);
        }
    }

    /// Makes threads for what nobody owns: for the branch that is shown, then for the others in their order.
    fn add_threads(&mut self, has_main: bool) {
        let shape = self.shape;
        let mut has_main = has_main;
        let is_free = |node: &usize, plan: &Plan| plan.owners[*node].is_none();
        let shown = shape.up_from(shape.shown).take_while(|node| is_free(node, &self.plan)).last();
        for first in shown.into_iter().chain(0..shape.len()) {
            if self.plan.owners[first].is_some() || self.is_passed_over[first] {
                continue;
            }
            if shape.parent(first).is_some_and(|parent| self.is_passed_over[parent]) || !self.has_room_for(first) {
                self.is_passed_over[first] = true;
                if shape.children[first].is_empty() {
                    self.plan.left_out.push(first);
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
        self.threads < BRANCHES && self.copied.0 + messages <= COPIED_MESSAGES && self.copied.1 + bytes <= COPIED_BYTES
    }

    fn count_copies(&mut self, first: usize) {
        let (messages, bytes) = self.shape.before[first];
        self.copied = (self.copied.0 + messages, self.copied.1 + bytes);
    }
}

#[cfg(test)]
mod tests;
