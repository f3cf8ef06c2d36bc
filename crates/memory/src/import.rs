//! Importing conversations. Importing the same data again adds nothing.
//!
//! A conversation is identified by its id or key, a message by its id or external id. A message without an id gets one derived
//! from its external id, so that a message that was erased stays erased when its file is imported again.
//!
//! A conversation with branches (`tree`) becomes one thread and forks of it.

mod conversation;
mod report;
mod tree;

use std::collections::HashSet;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedTree};
use threadkeep_core::{
    Conflict, Namespace, NewMessage, Reason, Record, RecordOwner, RecordWrite, Scope, StoreError, codec,
};

use crate::retry::retry_tracked;
use crate::task::Task;
use crate::{Memory, MemoryError, Result};
use conversation::Conversation;
pub use report::{ImportReport, Problem};
use tree::Tree;

/// Maximum number of messages per commit.
const CHUNK_MESSAGES: usize = 500;
/// Approximate maximum of encoded bytes per commit. One more message stays within the limit of a commit.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Default number of conversations written concurrently, so that a store can batch their commits.
const CONCURRENCY: usize = 32;

/// Options for an import.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// How many conversations are written concurrently (at least 1). Default: 32.
    pub concurrency: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { concurrency: CONCURRENCY }
    }
}

impl Memory {
    /// Imports conversations, in the order in which a file contains them. The scope's default owner owns them.
    ///
    /// Existing data is not changed. An item that cannot be stored is reported, and the import continues. Times, titles, metadata
    /// and state are preserved. A message without a time gets that of the message before it, a thread without a time the current
    /// one, a thread without a title one from its first user message. A record is written only if it does not exist, and never
    /// into a reserved namespace.
    ///
    /// If a conversation has branches, the thread contains the current branch, and each other branch becomes a fork, with copies
    /// of the messages before it. The metadata of both describes this (`branch`). A later import moves no messages: it appends to
    /// the thread of the branch that a message continues, adds forks for new branches, and updates which branch is current. A
    /// conversation has at most 100 branches; further branches are reported.
    ///
    /// `on_progress` is called with the report so far after each commit's worth of messages.
    ///
    /// # Errors
    /// An error that affects all items: the store is unavailable, cannot be written, or is damaged. What was imported before
    /// remains, and the same import again adds the rest.
    pub async fn import(
        &self,
        scope: &Scope,
        items: impl IntoIterator<Item = ImportItem>,
        options: ImportOptions,
        mut on_progress: impl FnMut(&ImportReport),
    ) -> Result<ImportReport> {
        let mut import = Import {
            memory: self,
            scope,
            concurrency: options.concurrency.max(1),
            report: ImportReport::default(),
            current: None,
            in_flight: FuturesUnordered::new(),
            names: HashSet::new(),
        };
        for (item, number) in items.into_iter().zip(1..) {
            import.add(item, number, &mut on_progress).await?;
        }
        import.finish_current(&mut on_progress).await?;
        import.settle_all(&mut on_progress).await?;
        Ok(import.report)
    }
}

struct Import<'a> {
    memory: &'a Memory,
    scope: &'a Scope,
    concurrency: usize,
    report: ImportReport,
    current: Option<Conversation>,
    /// Separate tasks, because a store may run an uncontended commit in the calling task: commits can share a sync only if they
    /// run concurrently.
    in_flight: FuturesUnordered<Task<Result<WrittenConversation>>>,
    /// The names of conversations in flight. Parts of the same conversation are written one after the other.
    names: HashSet<String>,
}

/// The result of writing a conversation, or a part of it.
struct WrittenConversation {
    name: String,
    report: ImportReport,
    /// The conversation, if more parts of it may follow.
    conversation: Option<Conversation>,
}

impl Import<'_> {
    async fn add(&mut self, item: ImportItem, number: u64, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        match item {
            ImportItem::Thread(thread) => {
                self.finish_current(progress).await?;
                self.current = Some(Conversation::new(*thread, number, self.memory.now()));
            }
            ImportItem::Message(message) => self.add_message(*message, number, progress).await?,
            ImportItem::Tree(tree) => {
                self.finish_current(progress).await?;
                self.add_tree(*tree, number, progress).await?;
            }
            ImportItem::Record { owner: RecordOwner::Thread(_), record } => match &mut self.current {
                Some(conversation) => conversation.records.push((number, record)),
                None => self.report.problem(number, None, NO_CONVERSATION),
            },
            ImportItem::Record { owner, record } => self.add_record(owner, record, number).await?,
        }
        Ok(())
    }

    async fn add_message(
        &mut self,
        message: ImportedMessage,
        number: u64,
        progress: &mut impl FnMut(&ImportReport),
    ) -> Result<()> {
        let Some(conversation) = &mut self.current else {
            self.report.problem(number, message.external_id, NO_CONVERSATION);
            return Ok(());
        };
        let message = conversation.message(message, self.memory);
        match encoded_bytes(&message) {
            Err(error) => {
                let name = message.external_id.unwrap_or_else(|| message.id.to_string());
                self.report.problem(number, Some(name), error.into());
            }
            Ok(bytes) => conversation.push(message, number, bytes),
        }
        if conversation.is_full() {
            let conversation = self.current.take().expect("a message was added to it above");
            let name = conversation.name.clone();
            self.submit(conversation, progress).await?;
            self.current = Some(self.settle(&name, progress).await?);
        }
        Ok(())
    }

    /// Starts to write a conversation with branches. It is in memory as a whole, so large ones are written one at a time.
    async fn add_tree(
        &mut self,
        tree: ImportedTree,
        number: u64,
        progress: &mut impl FnMut(&ImportReport),
    ) -> Result<()> {
        let tree = Tree::new(tree, number, self.memory.now());
        if tree.bytes() > CHUNK_BYTES as u64 {
            self.settle_all(progress).await?;
        }
        self.wait_for(tree.name(), progress).await?;
        self.names.insert(tree.name().to_owned());
        self.spawn(tree.write(self.memory.clone(), self.scope.clone()));
        self.settle_some(progress).await
    }

    async fn finish_current(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        let Some(conversation) = self.current.take() else { return Ok(()) };
        self.submit(conversation, progress).await?;
        self.settle_some(progress).await
    }

    async fn settle_some(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.in_flight.len() >= self.concurrency {
            self.settle_one(progress).await?;
        }
        Ok(())
    }

    /// Starts to write the pending messages and records of a conversation.
    async fn submit(&mut self, conversation: Conversation, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        self.wait_for(&conversation.name, progress).await?;
        self.names.insert(conversation.name.clone());
        let (memory, scope) = (self.memory.clone(), self.scope.clone());
        self.spawn(async move {
            let mut conversation = conversation.write(memory, scope).await?;
            let report = std::mem::take(&mut conversation.report);
            Ok(WrittenConversation { name: conversation.name.clone(), report, conversation: Some(conversation) })
        });
        Ok(())
    }

    fn spawn(&self, writing: impl Future<Output = Result<WrittenConversation>> + Send + 'static) {
        self.in_flight.push(Task::spawn(self.memory.runtime(), writing));
    }

    /// Waits until no conversation with this name is being written.
    async fn wait_for(&mut self, name: &str, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.names.contains(name) && self.settle_one(progress).await?.is_some() {}
        Ok(())
    }

    /// Waits until one conversation is written.
    async fn settle(&mut self, name: &str, progress: &mut impl FnMut(&ImportReport)) -> Result<Conversation> {
        loop {
            if let Some(WrittenConversation { name: written, conversation: Some(conversation), .. }) =
                self.settle_one(progress).await?
                && written == name
            {
                return Ok(conversation);
            }
        }
    }

    async fn settle_all(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.settle_one(progress).await?.is_some() {}
        Ok(())
    }

    async fn settle_one(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<Option<WrittenConversation>> {
        let mut written = match self.in_flight.next().await {
            None => return Ok(None),
            Some(Some(written)) => written?,
            // The runtime is shutting down.
            Some(None) => return Err(StoreError::unavailable(Reason::Closed).into()),
        };
        self.names.remove(&written.name);
        self.report.add(std::mem::take(&mut written.report));
        progress(&self.report);
        Ok(Some(written))
    }

    /// Writes a record of a user or the tenant, if it does not exist.
    async fn add_record(&mut self, owner: RecordOwner, record: Record, number: u64) -> Result<()> {
        if matches!(record.namespace, Namespace::System(_)) {
            self.report.problem(number, Some(record.key), RESERVED_NAMESPACE);
            return Ok(());
        }
        let Record { namespace, key, value, expires_at, .. } = record;
        let name = key.clone();
        let write = RecordWrite { owner, namespace, key, expected: Some(0), value: Some(value), expires_at };
        let (store, scope, now) = (self.memory.store(), self.scope, self.memory.now());
        let outcome = retry_tracked(self.memory.runtime(), || store.write_record(scope, write.clone(), now)).await;
        match outcome.result {
            Ok(_) => self.report.records_added += 1,
            Err(StoreError::Conflict(Conflict::Record { .. })) if outcome.may_have_applied_before => {
                self.report.records_added += 1;
            }
            Err(StoreError::Conflict(Conflict::Record { .. })) => self.report.records_already_there += 1,
            Err(error) => self.report.problem_or_end(number, Some(name), error.into())?,
        }
        Ok(())
    }
}

const NO_CONVERSATION: MemoryError = MemoryError::invalid("item", "there is no conversation before it");
const RESERVED_NAMESPACE: MemoryError = MemoryError::invalid("record", "its namespace is reserved");

/// Validates a message before its commit, so that an invalid one does not make the whole commit fail.
fn encoded_bytes(message: &NewMessage) -> Result<usize, StoreError> {
    message.check()?;
    codec::encode_content(&message.content).map(|text| text.len())
}
