//! A conversation with branches on its way in: one thread, and a fork for each other branch.
//!
//! `plan` says which thread each message belongs to, `known` reads what is there, `write` adds what is missing, `mark` says in
//! the threads' metadata how they belong together. Each addition demands that its thread still ends where the plan saw it
//! end; where it does not, the plan is made again.

mod existing;
mod branch_metadata;
mod plan;
mod write;

use std::collections::HashMap;

use threadkeep_core::exchange::{ImportedNode, ImportedThread, ImportedTree};
use threadkeep_core::{MessageId, NewMessage, Scope, ThreadKey, Timestamp};

use super::conversation::named_id;
use super::{ImportReport, WriteOutcome, encoded_bytes};
use crate::{Memory, MemoryError, Result};
use plan::Shape;

/// How often a plan is made again because others changed the conversation's threads.
const ATTEMPTS: usize = 16;
/// Branches of which a conversation is looked through; of one with more, only the branch that is shown is imported.
const LOOKED_THROUGH: usize = 1_000;

const TOO_MANY: MemoryError =
    MemoryError::invalid("conversation", "it has more than 1,000 branches: all but the current one are left out");
const LEFT_OUT: MemoryError = MemoryError::invalid(
    "branch",
    "left out: a conversation keeps at most 100 branches, with 50,000 messages or 256 MiB that they share",
);
const NO_IDENTITY: MemoryError = MemoryError::invalid("conversation", "it has no key, or a message no external id");

/// A conversation with branches that is not written yet.
pub(super) struct Tree {
    name: String,
    place: u64,
    key: Option<ThreadKey>,
    thread: ImportedThread,
    shape: Shape,
    /// The messages; `None` for one that cannot be kept, which is reported.
    messages: Vec<Option<NewMessage>>,
    names: Vec<Option<String>>,
    ids: HashMap<MessageId, usize>,
    updated_at: Option<Timestamp>,
    bytes: u64,
    report: ImportReport,
}

impl Tree {
    pub(super) fn new(tree: ImportedTree, place: u64, now: Timestamp) -> Self {
        let ImportedTree { thread, nodes, current, updated_at } = tree;
        let mut report = ImportReport::default();
        let name = thread.key.as_ref().map_or_else(|| format!("item {place}"), |key| format!("key {key}"));
        let (nodes, current) = bounded(nodes, current, place, &name, &mut report);
        let mut key = thread.key.clone();
        if key.is_none() || nodes.iter().any(|node| node.message.external_id.is_none()) {
            report.problem(place, Some(name.clone()), NO_IDENTITY);
            key = None;
        }
        let instants = instants(&nodes, thread.created_at.unwrap_or(now));
        let prepared = Shape::prepare(&nodes);
        let names = nodes.iter().map(|node| node.message.external_id.clone()).collect();
        let mut bytes = Vec::with_capacity(nodes.len());
        let (mut messages, mut ids) = (Vec::with_capacity(nodes.len()), HashMap::new());
        for ((at, node), created_at) in nodes.into_iter().enumerate().zip(instants) {
            let external_id = node.message.external_id;
            let id = named_id(&name, external_id.as_deref().unwrap_or_default());
            ids.insert(id, at);
            let message = NewMessage { id, external_id, created_at, content: node.message.content };
            match encoded_bytes(&message) {
                Ok(encoded) => {
                    bytes.push(encoded as u64);
                    messages.push(Some(message));
                }
                Err(error) => {
                    report.problem(place, message.external_id, error.into());
                    bytes.push(0);
                    messages.push(None);
                }
            }
        }
        let shape = Shape::of(prepared, &bytes, current);
        let bytes = bytes.iter().sum();
        Self { name, place, key, thread, shape, messages, names, ids, updated_at, bytes, report }
    }

    /// Tells it from other conversations.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Encoded bytes of all its messages.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn external_id(&self, node: usize) -> Option<&str> {
        self.names[node].as_deref()
    }

    /// Writes what is not there yet.
    pub(super) async fn write(mut self, memory: Memory, scope: Scope) -> Result<WriteOutcome> {
        if let Some(key) = self.key.clone()
            && let Err(error) = self.write_all(&memory, &scope, &key).await
        {
            self.report.problem_or_end(self.place, Some(self.name.clone()), error)?;
        }
        Ok(WriteOutcome { name: self.name, report: self.report, conversation: None })
    }

    async fn write_all(&mut self, memory: &Memory, scope: &Scope, key: &ThreadKey) -> Result<()> {
        let mut done = write::Done::default();
        for _ in 0..ATTEMPTS {
            let known = existing::read(self, memory, scope, key, &mut done).await?;
            match write::write(self, memory, scope, key, known, &mut done).await {
                Ok(()) => {
                    done.tell(self);
                    return Ok(());
                }
                Err(write::Halt::Changed) => {}
                Err(write::Halt::Failed(error)) => return Err(error),
            }
        }
        Err(MemoryError::Contended { what: "the conversation", attempts: ATTEMPTS })
    }
}

/// All nodes, or those of the current branch where the branches are too many to be looked through.
fn bounded(
    nodes: Vec<ImportedNode>,
    current: Option<usize>,
    place: u64,
    name: &str,
    report: &mut ImportReport,
) -> (Vec<ImportedNode>, Option<usize>) {
    let shape = Shape::of(Shape::prepare(&nodes), &vec![0; nodes.len()], current);
    if shape.branches() <= LOOKED_THROUGH {
        return (nodes, current);
    }
    report.problem(place, Some(name.to_owned()), TOO_MANY);
    let mut path: Vec<usize> = shape.up_from(shape.shown).collect();
    path.reverse();
    let mut nodes: Vec<Option<ImportedNode>> = nodes.into_iter().map(Some).collect();
    let kept = path.iter().filter_map(|node| nodes[*node].take()).enumerate();
    let kept: Vec<ImportedNode> =
        kept.map(|(at, node)| ImportedNode { parent: at.checked_sub(1), message: node.message }).collect();
    let last = kept.len().checked_sub(1);
    (kept, last)
}

/// When each message was said; one that does not tell, with the one before it.
fn instants(nodes: &[ImportedNode], begun_at: Timestamp) -> Vec<Timestamp> {
    let mut instants: Vec<Timestamp> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = node.parent.map_or(begun_at, |parent| instants[parent]);
        instants.push(node.message.created_at.unwrap_or(before));
    }
    instants
}
