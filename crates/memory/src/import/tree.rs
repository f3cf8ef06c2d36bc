//! Importing a conversation with branches: the current branch as one thread, and each other branch as a fork.
//!
//! `existing` reads the conversation's threads, `plan` decides which thread each message belongs to, `write` adds the missing
//! messages and threads, and `branch_metadata` describes the branches in the threads' metadata. Each append requires that the
//! thread still ends where the plan expects. If not, a new plan is made.

mod branch_metadata;
mod existing;
mod plan;
mod write;

use std::collections::HashMap;

use threadkeep_core::exchange::{ImportedNode, ImportedThread, ImportedTree};
use threadkeep_core::{MessageId, NewMessage, Scope, ThreadKey, Timestamp};

use super::conversation::derive_id;
use super::{ImportReport, WrittenConversation, encoded_bytes};
use crate::{Memory, MemoryError, Result};
use plan::MessageTree;

/// Maximum number of plans that are made while others change the conversation's threads.
const ATTEMPTS: usize = 16;
/// Maximum number of branches for which a plan is made. If a conversation has more, only the current branch is imported.
const MAX_PLANNED_BRANCHES: usize = 1_000;

const TOO_MANY_BRANCHES: MemoryError =
    MemoryError::invalid("conversation", "it has more than 1,000 branches; only the current one was imported");
const SKIPPED_BRANCH: MemoryError = MemoryError::invalid(
    "branch",
    "skipped: a conversation has at most 100 branches, and its forks copy at most 50,000 messages or 256 MiB",
);
const NO_IDENTITY: MemoryError =
    MemoryError::invalid("conversation", "it has no key, or one of its messages has no external id");

/// A conversation with branches that is being imported.
pub(super) struct Tree {
    name: String,
    number: u64,
    key: Option<ThreadKey>,
    thread: ImportedThread,
    message_tree: MessageTree,
    /// The messages. `None` for a message that cannot be stored, which has been reported.
    messages: Vec<Option<NewMessage>>,
    external_ids: Vec<Option<String>>,
    ids: HashMap<MessageId, usize>,
    updated_at: Option<Timestamp>,
    bytes: u64,
    report: ImportReport,
}

impl Tree {
    pub(super) fn new(tree: ImportedTree, number: u64, now: Timestamp) -> Self {
        let ImportedTree { thread, nodes, current, updated_at } = tree;
        let mut report = ImportReport::default();
        let name = thread.key.as_ref().map_or_else(|| format!("item {number}"), |key| format!("key {key}"));
        let (nodes, current) = limit_branches(nodes, current, number, &name, &mut report);
        let mut key = thread.key.clone();
        if key.is_none() || nodes.iter().any(|node| node.message.external_id.is_none()) {
            report.add_problem(number, Some(name.clone()), NO_IDENTITY);
            key = None;
        }
        let times = creation_times(&nodes, thread.created_at.unwrap_or(now));
        let parts = MessageTree::parts(&nodes);
        let external_ids = nodes.iter().map(|node| node.message.external_id.clone()).collect();
        let mut bytes = Vec::with_capacity(nodes.len());
        let (mut messages, mut ids) = (Vec::with_capacity(nodes.len()), HashMap::new());
        for ((index, node), created_at) in nodes.into_iter().enumerate().zip(times) {
            let external_id = node.message.external_id;
            let id = derive_id(&name, external_id.as_deref().unwrap_or_default());
            ids.insert(id, index);
            let message = NewMessage { id, external_id, created_at, content: node.message.content };
            match encoded_bytes(&message) {
                Ok(encoded) => {
                    bytes.push(encoded as u64);
                    messages.push(Some(message));
                }
                Err(error) => {
                    report.add_problem(number, message.external_id, error.into());
                    bytes.push(0);
                    messages.push(None);
                }
            }
        }
        let message_tree = MessageTree::new(parts, &bytes, current);
        let bytes = bytes.iter().sum();
        Self { name, number, key, thread, message_tree, messages, external_ids, ids, updated_at, bytes, report }
    }

    /// Identifies the conversation in the import.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The total size of the messages, in encoded bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn external_id(&self, node: usize) -> Option<&str> {
        self.external_ids[node].as_deref()
    }

    /// Writes the messages and threads that do not exist yet.
    pub(super) async fn write(mut self, memory: Memory, scope: Scope) -> Result<WrittenConversation> {
        if let Some(key) = self.key.clone()
            && let Err(error) = self.write_all(&memory, &scope, &key).await
        {
            self.report.add_problem_or_fail(self.number, Some(self.name.clone()), error)?;
        }
        Ok(WrittenConversation { name: self.name, report: self.report, conversation: None })
    }

    async fn write_all(&mut self, memory: &Memory, scope: &Scope, key: &ThreadKey) -> Result<()> {
        let mut counts = write::Counts::default();
        for _ in 0..ATTEMPTS {
            let existing = existing::read_threads(self, memory, scope, key, &mut counts).await?;
            match write::write_missing(self, memory, scope, key, existing, &mut counts).await {
                Ok(()) => {
                    counts.add_to_report(self);
                    return Ok(());
                }
                Err(write::WriteError::PlanOutdated) => {}
                Err(write::WriteError::Failed(error)) => return Err(error),
            }
        }
        Err(MemoryError::Contended { what: "the conversation", attempts: ATTEMPTS })
    }
}

/// Returns all nodes, or only those of the current branch if there are too many branches.
fn limit_branches(
    nodes: Vec<ImportedNode>,
    current: Option<usize>,
    number: u64,
    name: &str,
    report: &mut ImportReport,
) -> (Vec<ImportedNode>, Option<usize>) {
    let tree = MessageTree::new(MessageTree::parts(&nodes), &vec![0; nodes.len()], current);
    if tree.branch_count() <= MAX_PLANNED_BRANCHES {
        return (nodes, current);
    }
    report.add_problem(number, Some(name.to_owned()), TOO_MANY_BRANCHES);
    let mut path: Vec<usize> = tree.path_to_root(tree.current_leaf).collect();
    path.reverse();
    let mut nodes: Vec<Option<ImportedNode>> = nodes.into_iter().map(Some).collect();
    let kept = path.iter().filter_map(|node| nodes[*node].take()).enumerate();
    let kept: Vec<ImportedNode> =
        kept.map(|(index, node)| ImportedNode { parent: index.checked_sub(1), message: node.message }).collect();
    let last = kept.len().checked_sub(1);
    (kept, last)
}

/// Returns the creation time of each message. A message without a time gets the time of its parent.
fn creation_times(nodes: &[ImportedNode], started_at: Timestamp) -> Vec<Timestamp> {
    let mut times: Vec<Timestamp> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = node.parent.map_or(started_at, |parent| times[parent]);
        times.push(node.message.created_at.unwrap_or(before));
    }
    times
}
