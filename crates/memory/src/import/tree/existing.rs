//! Reading the threads of a conversation that already exist.

use std::collections::HashSet;

use threadkeep_core::{DumpEntry, MessageId, OpenThread, Scope, Thread, ThreadKey, limits};

use super::Tree;
use super::plan::{End, Plan, ThreadContents, plan};
use super::write::Counts;
use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::{Memory, Result};

/// The existing threads of a conversation, and the plan for the import.
pub(super) struct ExistingThreads {
    /// In the order that [`plan`] requires.
    pub(super) threads: Vec<ExistingThread>,
    pub(super) plan: Plan,
    /// The messages that were erased from a thread.
    pub(super) erased: HashSet<usize>,
}

pub(super) struct ExistingThread {
    pub(super) thread: Thread,
    pub(super) contents: ThreadContents,
}

/// Returns the key of the fork whose first own message has the external id `first`.
pub(super) fn fork_key(conversation: &ThreadKey, first: &str) -> Result<ThreadKey> {
    // The length makes the name unambiguous, and the hash keeps the key short.
    let name = format!("{}:{conversation}{first}", conversation.as_str().len());
    Ok(ThreadKey::new(format!("import:fork:{}", MessageId::from_name(name.as_bytes())))?)
}

/// Reads the existing threads and plans the import.
///
/// Forks are looked up by the message with which they would start. A plan may contain further such messages, so this repeats until
/// all of those in the plan have been looked up.
pub(super) async fn read_threads(
    tree: &Tree,
    memory: &Memory,
    scope: &Scope,
    key: &ThreadKey,
    counts: &mut Counts,
) -> Result<ExistingThreads> {
    let mut reader = Reader { tree, memory, scope, threads: Vec::new(), erased: HashSet::new() };
    let has_branches = tree.message_tree.branch_count() > 1;
    if has_branches {
        if let Some(main) = memory.find_thread_by_key(scope, key.as_str()).await? {
            reader.add(main, None).await?;
        }
    } else {
        let open = main_thread(tree, memory, scope, key);
        let id = open.id;
        let opened = memory.open_thread(scope, open).await?;
        if opened.thread.id == id {
            counts.created.insert(id);
        }
        if counts.created.contains(&opened.thread.id) && opened.thread.positions.seq == 0 {
            // This import created the thread, so the thread is empty.
            let threads = vec![ExistingThread { thread: opened.thread, contents: ThreadContents::default() }];
            let plan = plan(&tree.message_tree, &[ThreadContents::default()]);
            return Ok(ExistingThreads { threads, plan, erased: HashSet::new() });
        }
        reader.add(opened.thread, None).await?;
    }
    let mut looked_up = HashSet::new();
    let mut next: Vec<usize> = if has_branches { tree.message_tree.siblings().collect() } else { Vec::new() };
    loop {
        for first in next {
            if looked_up.insert(first) {
                reader.find_fork(key, first).await?;
            }
        }
        let threads = &reader.threads;
        let plan =
            plan(&tree.message_tree, &threads.iter().map(|existing| existing.contents.clone()).collect::<Vec<_>>());
        let own_messages = plan.new.iter().map(|new| &new.own_messages).chain(&plan.to_append);
        let first_messages = own_messages.filter_map(|own| own.first().copied()).chain(plan.orphans.iter().copied());
        next = first_messages.filter(|first| !looked_up.contains(first)).collect();
        if next.is_empty() {
            return Ok(ExistingThreads { plan, threads: reader.threads, erased: reader.erased });
        }
    }
}

/// Creates the request to open the main thread, which has the conversation's key.
pub(super) fn main_thread(tree: &Tree, memory: &Memory, scope: &Scope, key: &ThreadKey) -> OpenThread {
    OpenThread {
        id: memory.generate_thread_id(),
        owner: scope.default_owner(),
        key: Some(key.clone()),
        title: tree.thread.title.clone(),
        metadata: tree.thread.metadata.clone(),
        state: tree.thread.state.clone(),
        created_at: tree.thread.created_at,
        expires_at: tree.thread.expires_at,
    }
}

struct Reader<'a> {
    tree: &'a Tree,
    memory: &'a Memory,
    scope: &'a Scope,
    threads: Vec<ExistingThread>,
    erased: HashSet<usize>,
}

impl Reader<'_> {
    async fn find_fork(&mut self, key: &ThreadKey, first: usize) -> Result<()> {
        let Some(name) = self.tree.external_id(first) else { return Ok(()) };
        let key = fork_key(key, name)?;
        match self.memory.find_thread_by_key(self.scope, key.as_str()).await? {
            Some(fork) => self.add(fork, Some(first)).await,
            None => Ok(()),
        }
    }

    async fn add(&mut self, thread: Thread, first: Option<usize>) -> Result<()> {
        let contents = self.read_contents(&thread, first).await?;
        self.threads.push(ExistingThread { thread, contents });
        self.threads.sort_by_key(|existing| existing.contents.first_own);
        Ok(())
    }

    async fn read_contents(&mut self, thread: &Thread, first: Option<usize>) -> Result<ThreadContents> {
        let mut contents = ThreadContents { first_own: first, ..ThreadContents::default() };
        let (mut count, mut last, mut after) = (0, 0, Some(0));
        while let Some(seq) = after {
            let step = self.memory.page_after(self.scope, thread.id, seq, READ_PAGE).await?;
            for message in &step.page.messages {
                let node = message.external_id.as_deref().and_then(|name| self.tree.message_tree.find(name));
                contents.end = node.map_or(End::Other, End::Message);
                contents.positions.extend(node.map(|node| (node, message.seq)));
                last = message.seq;
            }
            for row in &step.page.corrupt {
                // An unreadable message at the end is treated as unknown, so nothing is appended after it.
                contents.end = if row.seq > last { End::Other } else { contents.end };
            }
            count += step.page.messages.len() + step.page.corrupt.len();
            after = step.next;
        }
        let positions = thread.positions;
        if positions.seq + 1 - positions.first_seq > count as u64 {
            self.add_erased(thread, &mut contents).await?;
        }
        Ok(contents)
    }

    /// Finds the messages of the tree that were erased from a thread. They are not added again, not even to forks.
    async fn add_erased(&mut self, thread: &Thread, contents: &mut ThreadContents) -> Result<()> {
        let (maintenance, tenant) = (self.memory.maintenance(), self.scope.tenant_id());
        let mut after = Some(0);
        while after.is_some() {
            let dump = retry(self.memory.runtime(), || maintenance.dump_thread(tenant, thread.id, after, limits::PAGE))
                .await?;
            for entry in &dump.entries {
                if let DumpEntry::Tombstone { seq, id, .. } = entry
                    && let Some(node) = self.tree.ids.get(id)
                {
                    contents.positions.entry(*node).or_insert(*seq);
                    self.erased.insert(*node);
                }
            }
            after = dump.next;
        }
        Ok(())
    }
}
