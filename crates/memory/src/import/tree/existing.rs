//! Reading which threads of a conversation are there, and what they hold.

use std::collections::HashSet;

use threadkeep_core::{DumpEntry, MessageId, OpenThread, Scope, Thread, ThreadKey, limits};

use super::Tree;
use super::plan::{End, Held, Plan, plan};
use super::write::Done;
use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::{Memory, Result};

/// The conversation's threads, and what is to become of it.
pub(super) struct Known {
    /// In the order of [`plan`].
    pub(super) threads: Vec<KnownThread>,
    pub(super) plan: Plan,
    /// Messages that were erased from one of the threads.
    pub(super) erased: HashSet<usize>,
}

pub(super) struct KnownThread {
    pub(super) thread: Thread,
    pub(super) held: Held,
}

/// The key of the fork whose first own message has this name.
pub(super) fn fork_key(conversation: &ThreadKey, first: &str) -> Result<ThreadKey> {
    // The length keeps two conversations from having one fork, and the hash keeps the key short.
    let name = format!("{}:{conversation}{first}", conversation.as_str().len());
    Ok(ThreadKey::new(format!("import:fork:{}", MessageId::from_name(name.as_bytes())))?)
}

pub(super) async fn read(
    tree: &Tree,
    memory: &Memory,
    scope: &Scope,
    key: &ThreadKey,
    done: &mut Done,
) -> Result<Known> {
    let mut reading = Reading { tree, memory, scope, threads: Vec::new(), erased: HashSet::new() };
    let has_branches = tree.shape.branches() > 1;
    if has_branches {
        if let Some(main) = memory.find_thread_by_key(scope, key.as_str()).await? {
            reading.add(main, None).await?;
        }
    } else {
        let open = main(tree, memory, scope, key);
        let id = open.id;
        let opened = memory.open_thread(scope, open).await?;
        if opened.thread.id == id {
            done.created.insert(id);
        }
        if done.created.contains(&opened.thread.id) && opened.thread.positions.seq == 0 {
            // Made here, so nothing of the conversation has to be looked for.
            let held = vec![KnownThread { thread: opened.thread, held: Held::default() }];
            let plan = plan(&tree.shape, &[Held::default()]);
            return Ok(Known { threads: held, plan, erased: HashSet::new() });
        }
        reading.add(opened.thread, None).await?;
    }
    let mut looked_for = HashSet::new();
    let mut next: Vec<usize> = if has_branches { tree.shape.siblings().collect() } else { Vec::new() };
    loop {
        for first in next {
            if looked_for.insert(first) {
                reading.look_for_fork(key, first).await?;
            }
        }
        let threads = &reading.threads;
        let plan = plan(&tree.shape, &threads.iter().map(|known| known.held.clone()).collect::<Vec<_>>());
        let begins = plan.new.iter().map(|new| &new.own).chain(&plan.continued).filter_map(|own| own.first().copied());
        let begins = begins.chain(plan.orphans.iter().copied());
        next = begins.filter(|first| !looked_for.contains(first)).collect();
        if next.is_empty() {
            return Ok(Known { plan, threads: reading.threads, erased: reading.erased });
        }
    }
}

/// The thread that has the conversation's key.
pub(super) fn main(tree: &Tree, memory: &Memory, scope: &Scope, key: &ThreadKey) -> OpenThread {
    OpenThread {
        id: memory.mint_thread_id(),
        owner: scope.default_owner(),
        key: Some(key.clone()),
        title: tree.thread.title.clone(),
        metadata: tree.thread.metadata.clone(),
        state: tree.thread.state.clone(),
        created_at: tree.thread.created_at,
        expires_at: tree.thread.expires_at,
    }
}

struct Reading<'a> {
    tree: &'a Tree,
    memory: &'a Memory,
    scope: &'a Scope,
    threads: Vec<KnownThread>,
    erased: HashSet<usize>,
}

impl Reading<'_> {
    async fn look_for_fork(&mut self, key: &ThreadKey, first: usize) -> Result<()> {
        let Some(name) = self.tree.external_id(first) else { return Ok(()) };
        let key = fork_key(key, name)?;
        match self.memory.find_thread_by_key(self.scope, key.as_str()).await? {
            Some(fork) => self.add(fork, Some(first)).await,
            None => Ok(()),
        }
    }

    async fn add(&mut self, thread: Thread, first: Option<usize>) -> Result<()> {
        let held = self.held(&thread, first).await?;
        self.threads.push(KnownThread { thread, held });
        self.threads.sort_by_key(|known| known.held.first);
        Ok(())
    }

    async fn held(&mut self, thread: &Thread, first: Option<usize>) -> Result<Held> {
        let mut held = Held { first, ..Held::default() };
        let (mut count, mut last, mut after) = (0, 0, Some(0));
        while let Some(seq) = after {
            let step = self.memory.page_after(self.scope, thread.id, seq, READ_PAGE).await?;
            for message in &step.page.messages {
                let node = message.external_id.as_deref().and_then(|name| self.tree.shape.place(name));
                held.end = node.map_or(End::Other, End::Message);
                held.positions.extend(node.map(|node| (node, message.seq)));
                last = message.seq;
            }
            for row in &step.page.corrupt {
                // What cannot be read may be anything, and nothing is added behind it.
                held.end = if row.seq > last { End::Other } else { held.end };
            }
            count += step.page.messages.len() + step.page.corrupt.len();
            after = step.next;
        }
        let positions = thread.positions;
        if positions.seq + 1 - positions.first_seq > count as u64 {
            self.add_erased(thread, &mut held).await?;
        }
        Ok(held)
    }

    /// Looks for the messages of the tree that were erased from a thread: they are not brought back, in no fork either.
    async fn add_erased(&mut self, thread: &Thread, held: &mut Held) -> Result<()> {
        let (maintenance, tenant) = (self.memory.maintenance(), self.scope.tenant_id());
        let mut after = Some(0);
        while after.is_some() {
            let dump = retry(self.memory.runtime(), || {
                maintenance.dump_thread(tenant, thread.id, after, limits::PAGE)
            })
            .await?;
            for entry in &dump.entries {
                if let DumpEntry::Tombstone { seq, id, .. } = entry
                    && let Some(node) = self.tree.ids.get(id)
                {
                    held.positions.entry(*node).or_insert(*seq);
                    self.erased.insert(*node);
                }
            }
            after = dump.next;
        }
        Ok(())
    }
}
