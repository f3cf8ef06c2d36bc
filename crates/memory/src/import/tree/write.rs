//! Adding what is missing of a conversation with branches.

use std::collections::{HashMap, HashSet};

use threadkeep_core::{
    Access, Conflict, Expected, Map, NewMessage, OpenThread, Scope, StoreError, Thread, ThreadId, ThreadKey, codec,
};

use super::existing::{Known, KnownThread, fork_key, main};
use super::branch_metadata::{self, Kind, MARK, Mark, Told};
use super::plan::{NewThread, Plan};
use super::{LEFT_OUT, Tree};
use crate::import::{CHUNK_BYTES, CHUNK_MESSAGES};
use crate::messages::READ_PAGE;
use crate::title::title_from_first;
use crate::{Memory, MemoryError, Result};

/// Why a plan was not carried out.
pub(super) enum Halt {
    /// Others changed what it stands on.
    Changed,
    Failed(MemoryError),
}

impl From<MemoryError> for Halt {
    fn from(error: MemoryError) -> Self {
        Self::Failed(error)
    }
}

/// What was done, over all attempts.
#[derive(Default)]
pub(super) struct Done {
    pub(super) created: HashSet<ThreadId>,
    messages_added: u64,
    threads: usize,
    forks: usize,
    forks_created: usize,
    left_out: Vec<usize>,
    owned: usize,
}

impl Done {
    /// Puts it into the conversation's report.
    pub(super) fn tell(self, tree: &mut Tree) {
        let report = &mut tree.report;
        report.threads_created += self.created.len() as u64;
        report.threads_found += (self.threads - self.created.len()) as u64;
        report.forks_created += self.forks_created as u64;
        report.forks_found += (self.forks - self.forks_created) as u64;
        report.messages_added += self.messages_added;
        report.messages_already_there += (self.owned as u64).saturating_sub(self.messages_added);
        for last in self.left_out {
            let name = tree.messages[last].as_ref().and_then(|message| message.external_id.clone());
            tree.report.problem(tree.place, name, LEFT_OUT);
        }
    }
}

pub(super) async fn write(
    tree: &Tree,
    memory: &Memory,
    scope: &Scope,
    key: &ThreadKey,
    known: Known,
    done: &mut Done,
) -> Result<(), Halt> {
    let Known { threads, plan, erased } = known;
    let mut writing = Writing { tree, memory, scope, key, plan: &plan, erased: &erased, threads: Vec::new(), done };
    for KnownThread { thread, held } in threads {
        let wants_title = thread.title.is_none() && scope.access(&thread.owner) == Access::Full;
        let (id, seq, metadata) = (thread.id, thread.positions.seq, thread.metadata);
        let is_main = held.first.is_none();
        let (positions, fork) = (held.positions, None);
        writing.threads.push(Target { id, seq, is_main, wants_title, metadata, positions, fork });
    }
    let moves = writing.moves_current();
    for thread in 0..writing.threads.len() {
        writing.continue_thread(thread).await?;
    }
    for new in &plan.new {
        writing.add_thread(new, moves).await?;
    }
    writing.mark_threads(moves).await?;
    writing.count();
    Ok(())
}

/// A thread of the conversation.
struct Target {
    id: ThreadId,
    /// Where it ends.
    seq: u64,
    is_main: bool,
    wants_title: bool,
    /// As it stands in the store.
    metadata: Map,
    positions: HashMap<usize, u64>,
    /// For a fork the thread and position that it begins at, once it was looked up.
    fork: Option<(ThreadId, u64)>,
}

struct Writing<'a> {
    tree: &'a Tree,
    memory: &'a Memory,
    scope: &'a Scope,
    key: &'a ThreadKey,
    plan: &'a Plan,
    erased: &'a HashSet<usize>,
    /// In the order of the plan.
    threads: Vec<Target>,
    done: &'a mut Done,
}

impl Writing<'_> {
    async fn continue_thread(&mut self, thread: usize) -> Result<(), Halt> {
        let own = &self.plan.continued[thread];
        if self.plan.begun[thread] {
            let top = own.first().copied().or_else(|| self.top_of(thread));
            self.copy_before(thread, top).await?;
        }
        self.append_own(thread, own).await
    }

    async fn add_thread(&mut self, new: &NewThread, moves: bool) -> Result<(), Halt> {
        let (thread, first) = (self.threads.len(), new.own[0]);
        let mut open = main(self.tree, self.memory, self.scope, self.key);
        if !new.is_main {
            let instant = self.tree.messages[first].as_ref().map(|message| message.created_at);
            let name = self.tree.external_id(first).unwrap_or_default();
            open = OpenThread {
                key: Some(fork_key(self.key, name)?),
                metadata: Map::new(),
                created_at: instant.or(open.created_at),
                ..open
            };
        }
        let fork = self.fork_point(self.tree.shape.parent(first)).or_else(|| self.beginning());
        let mut target = Target {
            id: open.id,
            seq: 0,
            is_main: new.is_main,
            wants_title: open.title.is_none(),
            metadata: open.metadata.clone(),
            positions: HashMap::new(),
            fork,
        };
        if let Some(mark) = self.mark_of(thread, &target, moves) {
            mark.put_into(&mut open.metadata);
        }
        let opened = self.memory.open_thread(self.scope, open).await?;
        let Thread { id, positions, metadata, .. } = opened.thread;
        // The id was just made, so nobody else can have made a thread with it.
        if id != target.id {
            return Err(Halt::Changed);
        }
        self.done.created.insert(id);
        self.done.forks_created += usize::from(!new.is_main);
        if positions.seq > 0 {
            return Err(Halt::Changed);
        }
        target.metadata = metadata;
        self.threads.push(target);
        self.copy_before(thread, Some(first)).await?;
        self.append_own(thread, &new.own).await
    }

    /// The first message that is a thread's own.
    fn top_of(&self, thread: usize) -> Option<usize> {
        self.plan.owners.iter().position(|owner| *owner == Some(thread))
    }

    /// Which thread a message stands in that others follow, and where; the one before it where it is gone.
    fn fork_point(&self, parent: Option<usize>) -> Option<(ThreadId, u64)> {
        let target = &self.threads[self.plan.owners[parent?]?];
        let mut before = self.tree.shape.up_from(parent);
        let seq = before.find_map(|node| target.positions.get(&node)).copied().unwrap_or(0);
        Some((target.id, seq))
    }

    /// Where a fork begins that shares no message with another thread.
    fn beginning(&self) -> Option<(ThreadId, u64)> {
        self.threads.first().map(|thread| (thread.id, 0))
    }

    /// Copies what a fork shares with the thread that it forks from, as it stands there: what was erased there is not copied,
    /// and what was corrected there is copied so.
    async fn copy_before(&mut self, thread: usize, first: Option<usize>) -> Result<(), Halt> {
        let parent = first.and_then(|first| self.tree.shape.parent(first));
        let Some((from, through)) = self.fork_point(parent) else { return Ok(()) };
        self.threads[thread].fork = Some((from, through));
        let held = &self.threads[thread].positions;
        let shared: HashSet<usize> = self.tree.shape.up_from(parent).filter(|node| !held.contains_key(node)).collect();
        let mut chunk = Chunk::default();
        let mut after = Some(0).filter(|_| !shared.is_empty());
        while let Some(seq) = after {
            let step = self.memory.page_after(self.scope, from, seq, READ_PAGE).await?;
            for message in step.page.messages.into_iter().take_while(|message| message.seq <= through) {
                let name = message.external_id.as_deref();
                let Some(node) = name.and_then(|name| self.tree.shape.place(name)).filter(|node| shared.contains(node))
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

    async fn append_own(&mut self, thread: usize, own: &[usize]) -> Result<(), Halt> {
        let mut chunk = Chunk::default();
        for node in own.iter().filter(|node| !self.erased.contains(node)) {
            let Some(message) = &self.tree.messages[*node] else { continue };
            let bytes = codec::encode_content(&message.content).map_err(MemoryError::from)?.len();
            if chunk.push(*node, message.clone(), bytes) {
                self.done.messages_added += self.append(thread, std::mem::take(&mut chunk)).await?;
            }
        }
        self.done.messages_added += self.append(thread, chunk).await?;
        Ok(())
    }

    /// Appends to a thread that ends where it is known to end. A message that was erased from it stays erased.
    async fn append(&mut self, thread: usize, Chunk { mut nodes, mut messages, .. }: Chunk) -> Result<u64, Halt> {
        let target = &mut self.threads[thread];
        while !messages.is_empty() {
            let now = self.memory.now();
            let mut batch = self.memory.minted_batch(now);
            batch.expected = Some(Expected::Seq(target.seq));
            batch.append.clone_from(&messages);
            if target.wants_title {
                batch.patch.title = title_from_first(messages.iter().map(|message| &message.content)).map(Some);
            }
            match self.memory.commit_repeatedly(self.scope, target.id, &batch, now).await {
                Ok(appended) => {
                    target.wants_title &= batch.patch.title.is_none();
                    target.positions.extend(nodes.into_iter().zip(appended.first_seq..));
                    target.seq = (appended.first_seq + appended.count).saturating_sub(1);
                    return Ok(appended.count);
                }
                Err(MemoryError::Store(StoreError::Conflict(Conflict::MessageId { id, .. }))) => {
                    let Some(at) = messages.iter().position(|message| message.id == id) else {
                        return Err(Halt::Changed);
                    };
                    messages.remove(at);
                    nodes.remove(at);
                }
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Seq { .. } | Conflict::ExternalId { .. }))) => {
                    return Err(Halt::Changed);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }

    /// Whether this import says what is current: an older export does not.
    fn moves_current(&self) -> bool {
        let main = self.threads.iter().find(|target| target.is_main);
        let as_of = main.and_then(|main| Told::by(&main.metadata).as_of);
        as_of.is_none_or(|as_of| self.tree.updated_at.is_none_or(|updated_at| updated_at >= as_of))
    }

    /// The place of the thread that holds the current branch.
    fn current(&self) -> Option<usize> {
        self.plan.owners[self.tree.shape.shown?]
    }

    /// How a thread is to be marked; `None` where the conversation has no branches.
    fn mark_of(&self, thread: usize, target: &Target, moves: bool) -> Option<Mark> {
        let count = self.plan.continued.len() + self.plan.new.len();
        let is_marked = target.metadata.contains_key(MARK);
        if count < 2 && !is_marked && target.fork.is_none() {
            return None;
        }
        let told = |name: &str| target.metadata.get(MARK).and_then(|mark| mark.get(name));
        let was_current = told("current").and_then(threadkeep_core::Value::as_bool).unwrap_or(false);
        let is_current = if moves { self.current() == Some(thread) } else { was_current };
        let kind = if target.is_main {
            let before = Told::by(&target.metadata);
            let now = self.current().map(|current| self.threads.get(current).map_or(target.id, |target| target.id));
            let (current, as_of) =
                if moves { (now, self.tree.updated_at.or(before.as_of)) } else { (before.current, before.as_of) };
            let is_mixed = self.plan.mixed.get(thread).copied().unwrap_or(false);
            Kind::Main { current, as_of, is_mixed }
        } else {
            let (thread, seq) = target.fork?;
            Kind::Fork { thread, seq }
        };
        Some(Mark { conversation: self.key.clone(), is_current, kind })
    }

    /// Marks the threads whose marks are not as they shall be.
    async fn mark_threads(&mut self, moves: bool) -> Result<(), Halt> {
        let before = self.threads.iter().find(|target| target.is_main);
        let before = before.and_then(|main| Told::by(&main.metadata).current);
        for thread in 0..self.threads.len() {
            if !self.threads[thread].is_main && self.threads[thread].fork.is_none() {
                let first = self.top_of(thread);
                self.threads[thread].fork = self.kept_fork(thread).or_else(|| {
                    let parent = first.and_then(|first| self.tree.shape.parent(first));
                    self.fork_point(parent).or_else(|| self.beginning())
                });
            }
            let target = &self.threads[thread];
            let Some(mark) = self.mark_of(thread, target, moves) else { continue };
            let mut metadata = target.metadata.clone();
            mark.put_into(&mut metadata);
            if metadata != target.metadata {
                branch_metadata::change(self.memory, self.scope, target.id, |metadata| mark.put_into(metadata)).await?;
            }
        }
        if moves
            && let Some(before) = before
            && self.threads.iter().all(|target| target.id != before)
        {
            branch_metadata::take_current(self.memory, self.scope, before).await?;
        }
        Ok(())
    }

    /// What a fork's own mark says about where it begins.
    fn kept_fork(&self, thread: usize) -> Option<(ThreadId, u64)> {
        let from = self.threads[thread].metadata.get(MARK)?.get("forked_from")?;
        Some((from.get("thread")?.as_str()?.parse().ok()?, from.get("seq")?.as_u64()?))
    }

    fn count(&mut self) {
        self.done.threads = self.threads.len();
        self.done.forks = self.threads.iter().filter(|target| !target.is_main).count();
        self.done.left_out.clone_from(&self.plan.left_out);
        let is_owned = |(node, owner): &(usize, &Option<usize>)| owner.is_some() && self.tree.messages[*node].is_some();
        self.done.owned = self.plan.owners.iter().enumerate().filter(is_owned).count();
    }
}

/// Messages of one commit, with their places in the tree.
#[derive(Default)]
struct Chunk {
    nodes: Vec<usize>,
    messages: Vec<NewMessage>,
    bytes: usize,
}

impl Chunk {
    /// Says whether it is full.
    fn push(&mut self, node: usize, message: NewMessage, bytes: usize) -> bool {
        self.nodes.push(node);
        self.messages.push(message);
        self.bytes += bytes;
        self.messages.len() >= CHUNK_MESSAGES || self.bytes >= CHUNK_BYTES
    }
}
