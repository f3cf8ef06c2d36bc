//! Adding the missing messages and threads of a conversation with branches.

use std::collections::{HashMap, HashSet};

use threadkeep_core::{
    Access, Conflict, Expected, Map, NewMessage, OpenThread, Scope, StoreError, Thread, ThreadId, ThreadKey, codec,
};

use super::branch_metadata::{self, BRANCH, BranchMetadata, CurrentBranch, Kind};
use super::existing::{ExistingThread, ExistingThreads, fork_key, main_thread};
use super::plan::{NewThread, Plan};
use super::{SKIPPED_BRANCH, Tree};
use crate::import::{CHUNK_BYTES, CHUNK_MESSAGES};
use crate::messages::READ_PAGE;
use crate::title::title_from_first;
use crate::{Memory, MemoryError, Result};

/// Why a plan was not carried out.
pub(super) enum WriteError {
    /// Others have changed the conversation's threads since the plan was made.
    PlanOutdated,
    Failed(MemoryError),
}

impl From<MemoryError> for WriteError {
    fn from(error: MemoryError) -> Self {
        Self::Failed(error)
    }
}

/// Counts for the report, across all attempts.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) created: HashSet<ThreadId>,
    messages_added: u64,
    threads: usize,
    forks: usize,
    forks_created: usize,
    skipped: Vec<usize>,
    assigned_messages: usize,
}

impl Counts {
    /// Adds the counts to the conversation's report.
    pub(super) fn add_to_report(self, tree: &mut Tree) {
        let report = &mut tree.report;
        report.threads_created += self.created.len() as u64;
        report.threads_found += (self.threads - self.created.len()) as u64;
        report.forks_created += self.forks_created as u64;
        report.forks_found += (self.forks - self.forks_created) as u64;
        report.messages_added += self.messages_added;
        report.messages_already_there += (self.assigned_messages as u64).saturating_sub(self.messages_added);
        for last in self.skipped {
            let name = tree.messages[last].as_ref().and_then(|message| message.external_id.clone());
            tree.report.add_problem(tree.number, name, SKIPPED_BRANCH);
        }
    }
}

/// Carries out a plan: writes the missing messages, threads and metadata.
pub(super) async fn write_missing(
    tree: &Tree,
    memory: &Memory,
    scope: &Scope,
    key: &ThreadKey,
    existing: ExistingThreads,
    counts: &mut Counts,
) -> Result<(), WriteError> {
    let ExistingThreads { threads, plan, erased } = existing;
    let mut writer = Writer { tree, memory, scope, key, plan: &plan, erased: &erased, threads: Vec::new(), counts };
    for ExistingThread { thread, contents } in threads {
        let needs_title = thread.title.is_none() && scope.access(&thread.owner) == Access::Full;
        let (id, seq, metadata) = (thread.id, thread.positions.seq, thread.metadata);
        let is_main = contents.first_own.is_none();
        let (positions, fork) = (contents.positions, None);
        writer.threads.push(TargetThread { id, seq, is_main, needs_title, metadata, positions, fork });
    }
    let updates_current = writer.updates_current();
    for thread in 0..writer.threads.len() {
        writer.continue_thread(thread).await?;
    }
    for new in &plan.new {
        writer.add_thread(new, updates_current).await?;
    }
    writer.update_metadata(updates_current).await?;
    writer.count_all();
    Ok(())
}

/// A thread to which messages are added.
struct TargetThread {
    id: ThreadId,
    /// The last position.
    seq: u64,
    is_main: bool,
    needs_title: bool,
    /// The stored metadata.
    metadata: Map,
    /// The positions of the tree's messages in the thread.
    positions: HashMap<usize, u64>,
    /// The thread and position from which a fork was forked; `None` for the main thread, and for a fork not looked up yet.
    fork: Option<(ThreadId, u64)>,
}

struct Writer<'a> {
    tree: &'a Tree,
    memory: &'a Memory,
    scope: &'a Scope,
    key: &'a ThreadKey,
    plan: &'a Plan,
    erased: &'a HashSet<usize>,
    /// In the order of the plan.
    threads: Vec<TargetThread>,
    counts: &'a mut Counts,
}

impl Writer<'_> {
    async fn continue_thread(&mut self, thread: usize) -> Result<(), WriteError> {
        let own = &self.plan.to_append[thread];
        if self.plan.is_incomplete[thread] {
            let first = own.first().copied().or_else(|| self.first_own_message(thread));
            self.copy_shared(thread, first).await?;
        }
        self.append_own_messages(thread, own).await
    }

    async fn add_thread(&mut self, new: &NewThread, updates_current: bool) -> Result<(), WriteError> {
        let (thread, first) = (self.threads.len(), new.own_messages[0]);
        let mut open = main_thread(self.tree, self.memory, self.scope, self.key);
        if !new.is_main {
            let created_at = self.tree.messages[first].as_ref().map(|message| message.created_at);
            let name = self.tree.external_id(first).unwrap_or_default();
            open = OpenThread {
                key: Some(fork_key(self.key, name)?),
                metadata: Map::new(),
                created_at: created_at.or(open.created_at),
                ..open
            };
        }
        let fork = self.fork_point(self.tree.message_tree.parent(first)).or_else(|| self.start_of_main());
        let mut target = TargetThread {
            id: open.id,
            seq: 0,
            is_main: new.is_main,
            needs_title: open.title.is_none(),
            metadata: open.metadata.clone(),
            positions: HashMap::new(),
            fork,
        };
        if let Some(branch) = self.branch_metadata(thread, &target, updates_current) {
            branch.put_into(&mut open.metadata);
        }
        let opened = self.memory.open_thread(self.scope, open).await?;
        let Thread { id, positions, metadata, .. } = opened.thread;
        // The id is new, so a thread with another id was created by another import.
        if id != target.id {
            return Err(WriteError::PlanOutdated);
        }
        self.counts.created.insert(id);
        self.counts.forks_created += usize::from(!new.is_main);
        if positions.seq > 0 {
            return Err(WriteError::PlanOutdated);
        }
        target.metadata = metadata;
        self.threads.push(target);
        self.copy_shared(thread, Some(first)).await?;
        self.append_own_messages(thread, &new.own_messages).await
    }

    /// The first own message of a thread.
    fn first_own_message(&self, thread: usize) -> Option<usize> {
        self.plan.owners.iter().position(|owner| *owner == Some(thread))
    }

    /// The thread and position of `parent`, after which a fork begins, or of its nearest ancestor that still exists.
    fn fork_point(&self, parent: Option<usize>) -> Option<(ThreadId, u64)> {
        let target = &self.threads[self.plan.owners[parent?]?];
        let mut path = self.tree.message_tree.path_to_root(parent);
        let seq = path.find_map(|node| target.positions.get(&node)).copied().unwrap_or(0);
        Some((target.id, seq))
    }

    /// The fork point for a fork that shares no message with another thread: before the first message of the main thread.
    fn start_of_main(&self) -> Option<(ThreadId, u64)> {
        self.threads.first().map(|thread| (thread.id, 0))
    }

    /// Copies the messages that precede a fork's first own message `first` into the fork, from the thread in which they are
    /// stored. Copies their current versions, and omits messages that were erased.
    async fn copy_shared(&mut self, thread: usize, first: Option<usize>) -> Result<(), WriteError> {
        let parent = first.and_then(|first| self.tree.message_tree.parent(first));
        let Some((from, through)) = self.fork_point(parent) else { return Ok(()) };
        self.threads[thread].fork = Some((from, through));
        let present = &self.threads[thread].positions;
        let ancestors = self.tree.message_tree.path_to_root(parent);
        let shared: HashSet<usize> = ancestors.filter(|node| !present.contains_key(node)).collect();
        let mut chunk = Chunk::default();
        let mut after = Some(0).filter(|_| !shared.is_empty());
        while let Some(seq) = after {
            let step = self.memory.page_after(self.scope, from, seq, READ_PAGE).await?;
            for message in step.page.messages.into_iter().take_while(|message| message.seq <= through) {
                let name = message.external_id.as_deref();
                let Some(node) =
                    name.and_then(|name| self.tree.message_tree.find(name)).filter(|node| shared.contains(node))
                else {
                    continue;
                };
                let bytes = codec::encode_content(&message.content).map_err(MemoryError::from)?.len();
                let (id, external_id) = (message.id, message.external_id);
                let copy = NewMessage { id, external_id, created_at: message.created_at, content: message.content };
                if chunk.push(node, copy, bytes) {
                    self.append(thread, std::mem::take(&mut chunk)).await?;
                }
            }
            after = step.next.filter(|next| *next < through);
        }
        self.append(thread, chunk).await.map(drop)
    }

    async fn append_own_messages(&mut self, thread: usize, own: &[usize]) -> Result<(), WriteError> {
        let mut chunk = Chunk::default();
        for node in own.iter().filter(|node| !self.erased.contains(node)) {
            let Some(message) = &self.tree.messages[*node] else { continue };
            let bytes = codec::encode_content(&message.content).map_err(MemoryError::from)?.len();
            if chunk.push(*node, message.clone(), bytes) {
                self.counts.messages_added += self.append(thread, std::mem::take(&mut chunk)).await?;
            }
        }
        self.counts.messages_added += self.append(thread, chunk).await?;
        Ok(())
    }

    /// Appends messages if the thread still ends where the plan expects. Omits messages that were erased from the thread.
    /// Returns the number of appended messages.
    async fn append(&mut self, thread: usize, Chunk { mut nodes, mut messages, .. }: Chunk) -> Result<u64, WriteError> {
        let target = &mut self.threads[thread];
        while !messages.is_empty() {
            let now = self.memory.now();
            let mut batch = self.memory.new_batch(now);
            batch.expected = Some(Expected::Seq(target.seq));
            batch.append.clone_from(&messages);
            if target.needs_title {
                batch.patch.title = title_from_first(messages.iter().map(|message| &message.content)).map(Some);
            }
            match self.memory.commit_with_retries(self.scope, target.id, &batch, now).await {
                Ok(appended) => {
                    target.needs_title &= batch.patch.title.is_none();
                    target.positions.extend(nodes.into_iter().zip(appended.first_seq..));
                    target.seq = (appended.first_seq + appended.count).saturating_sub(1);
                    return Ok(appended.count);
                }
                Err(MemoryError::Store(StoreError::Conflict(Conflict::MessageId { id, .. }))) => {
                    let Some(index) = messages.iter().position(|message| message.id == id) else {
                        return Err(WriteError::PlanOutdated);
                    };
                    messages.remove(index);
                    nodes.remove(index);
                }
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Seq { .. } | Conflict::ExternalId { .. }))) => {
                    return Err(WriteError::PlanOutdated);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }

    /// Whether this import updates which branch is current. It does not if a newer export was imported before.
    fn updates_current(&self) -> bool {
        let main = self.threads.iter().find(|target| target.is_main);
        let as_of = main.and_then(|main| CurrentBranch::read(&main.metadata).as_of);
        as_of.is_none_or(|as_of| self.tree.updated_at.is_none_or(|updated_at| updated_at >= as_of))
    }

    /// The index of the thread that contains the current branch.
    fn current_thread(&self) -> Option<usize> {
        self.plan.owners[self.tree.message_tree.current_leaf?]
    }

    /// The branch metadata of a thread; `None` if the conversation has no branches.
    fn branch_metadata(&self, thread: usize, target: &TargetThread, updates_current: bool) -> Option<BranchMetadata> {
        let thread_count = self.plan.to_append.len() + self.plan.new.len();
        let has_metadata = target.metadata.contains_key(BRANCH);
        if thread_count < 2 && !has_metadata && target.fork.is_none() {
            return None;
        }
        let member = |name: &str| target.metadata.get(BRANCH).and_then(|branch| branch.get(name));
        let was_current = member("current").and_then(threadkeep_core::Value::as_bool).unwrap_or(false);
        let is_current = if updates_current { self.current_thread() == Some(thread) } else { was_current };
        let kind = if target.is_main {
            let before = CurrentBranch::read(&target.metadata);
            let now =
                self.current_thread().map(|current| self.threads.get(current).map_or(target.id, |target| target.id));
            let (current, as_of) = match updates_current {
                true => (now, self.tree.updated_at.or(before.as_of)),
                false => (before.current, before.as_of),
            };
            let is_mixed = self.plan.is_mixed.get(thread).copied().unwrap_or(false);
            Kind::Main { current, as_of, is_mixed }
        } else {
            let (thread, seq) = target.fork?;
            Kind::Fork { thread, seq }
        };
        Some(BranchMetadata { conversation: self.key.clone(), is_current, kind })
    }

    /// Updates the branch metadata of the threads whose stored metadata differs.
    async fn update_metadata(&mut self, updates_current: bool) -> Result<(), WriteError> {
        let before = self.threads.iter().find(|target| target.is_main);
        let before = before.and_then(|main| CurrentBranch::read(&main.metadata).current);
        for thread in 0..self.threads.len() {
            if !self.threads[thread].is_main && self.threads[thread].fork.is_none() {
                let first = self.first_own_message(thread);
                self.threads[thread].fork = self.stored_fork(thread).or_else(|| {
                    let parent = first.and_then(|first| self.tree.message_tree.parent(first));
                    self.fork_point(parent).or_else(|| self.start_of_main())
                });
            }
            let target = &self.threads[thread];
            let Some(branch) = self.branch_metadata(thread, target, updates_current) else { continue };
            let mut metadata = target.metadata.clone();
            branch.put_into(&mut metadata);
            if metadata != target.metadata {
                branch_metadata::update_metadata(self.memory, self.scope, target.id, |metadata| {
                    branch.put_into(metadata)
                })
                .await?;
            }
        }
        if updates_current
            && let Some(before) = before
            && self.threads.iter().all(|target| target.id != before)
        {
            branch_metadata::clear_current(self.memory, self.scope, before).await?;
        }
        Ok(())
    }

    /// The fork point according to a fork's stored metadata.
    fn stored_fork(&self, thread: usize) -> Option<(ThreadId, u64)> {
        let from = self.threads[thread].metadata.get(BRANCH)?.get("forked_from")?;
        Some((from.get("thread")?.as_str()?.parse().ok()?, from.get("seq")?.as_u64()?))
    }

    fn count_all(&mut self) {
        self.counts.threads = self.threads.len();
        self.counts.forks = self.threads.iter().filter(|target| !target.is_main).count();
        self.counts.skipped.clone_from(&self.plan.skipped);
        let is_assigned =
            |(node, owner): &(usize, &Option<usize>)| owner.is_some() && self.tree.messages[*node].is_some();
        self.counts.assigned_messages = self.plan.owners.iter().enumerate().filter(is_assigned).count();
    }
}

/// The messages for one commit, with their indexes in the tree.
#[derive(Default)]
struct Chunk {
    nodes: Vec<usize>,
    messages: Vec<NewMessage>,
    bytes: usize,
}

impl Chunk {
    /// Adds a message. Returns whether the chunk is full.
    fn push(&mut self, node: usize, message: NewMessage, bytes: usize) -> bool {
        self.nodes.push(node);
        self.messages.push(message);
        self.bytes += bytes;
        self.messages.len() >= CHUNK_MESSAGES || self.bytes >= CHUNK_BYTES
    }
}
