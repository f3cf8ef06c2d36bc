//! Importing conversations. Importing the same data again adds nothing.
//!
//! A conversation is identified by its id or key, a message by its id or external id. A message without an id gets one that is
//! derived from its external id, so that a message that was erased stays erased when its file is imported again.
//!
//! A conversation with branches (module `tree`) becomes one thread and forks of that thread.
//!
//! Consecutive messages are written in chunks, each with one commit.

mod conversation;
mod erased;
mod report;
mod tree;

use std::collections::HashSet;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedTree};
use threadkeep_core::{
    Conflict, Namespace, NewMessage, Reason, Record, RecordOwner, RecordWrite, Scope, StoreError, codec,
};

use crate::retry::retry_with_outcome;
use crate::task::Task;
use crate::{Memory, MemoryError, Result};
use conversation::Conversation;
use erased::ErasedConversations;
pub use report::{ImportReport, Problem};
use tree::Tree;

/// Maximum number of messages per commit.
const CHUNK_MESSAGES: usize = 500;
/// Size in encoded bytes at which a chunk is full. A commit may contain a chunk of nearly this size and one more message.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Default number of conversations that are written concurrently, so that a store can batch their commits.
const CONCURRENCY: usize = 32;

/// Options for an import.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Maximum number of conversations that are written concurrently (at least 1). Default: 32.
    pub concurrency: usize,
    /// Whether to import conversations that an earlier import created and that were deleted since. Default: `false`.
    pub includes_erased: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { concurrency: CONCURRENCY, includes_erased: false }
    }
}

impl Memory {
    /// Imports conversations from the items of a file, in the order of the file. New threads belong to the scope's default owner.
    ///
    /// Existing data is not changed. An item that cannot be stored is reported, and the import continues. Times, titles, metadata
    /// and state are preserved. A message without a time gets the time of the message before it. A thread without a time gets
    /// the current time, and a thread without a title gets one from its first user message. A record is written only if it does
    /// not exist, and never in a reserved namespace.
    ///
    /// If a conversation has branches, the thread contains the current branch, and each other branch becomes a fork, with copies
    /// of the messages before it. The metadata of the threads describes the branches (`branch`). A later import moves no
    /// messages: it appends new messages to the thread that contains their branch, adds forks for new branches, and updates which
    /// branch is current. A conversation has at most 100 branches; further branches are reported.
    ///
    /// A conversation that was imported before and deleted since is skipped and counted, unless the options include it.
    ///
    /// `on_progress` is called with the current report whenever a chunk of messages has been written.
    ///
    /// # Errors
    /// An error that affects all items: the store is unavailable, cannot be written to, or is damaged. Data that was imported
    /// before the error remains, and repeating the import adds the rest.
    pub async fn import(
        &self,
        scope: &Scope,
        items: impl IntoIterator<Item = ImportItem>,
        options: ImportOptions,
        mut on_progress: impl FnMut(&ImportReport),
    ) -> Result<ImportReport> {
        let erased = match options.includes_erased {
            true => ErasedConversations::default(),
            false => ErasedConversations::read(self, scope).await?,
        };
        let mut import = Import {
            memory: self,
            scope,
            erased,
            is_erased: false,
            concurrency: options.concurrency.max(1),
            report: ImportReport::default(),
            current: None,
            in_flight: FuturesUnordered::new(),
            names_in_flight: HashSet::new(),
        };
        for (item, number) in items.into_iter().zip(1..) {
            import.add(item, number, &mut on_progress).await?;
        }
        import.finish_current(&mut on_progress).await?;
        import.wait_for_all(&mut on_progress).await?;
        Ok(import.report)
    }
}

/// An import in progress.
struct Import<'a> {
    memory: &'a Memory,
    scope: &'a Scope,
    erased: ErasedConversations,
    /// Whether the current conversation was deleted, so its items are skipped.
    is_erased: bool,
    concurrency: usize,
    report: ImportReport,
    current: Option<Conversation>,
    /// The tasks that write conversations. A store may execute a commit in the task that calls it, so commits can only run
    /// concurrently, and share a sync to disk, if they are called from separate tasks.
    in_flight: FuturesUnordered<Task<Result<WrittenConversation>>>,
    /// The names of the conversations in `in_flight`. Parts of the same conversation are written one after the other.
    names_in_flight: HashSet<String>,
}

/// The result of writing a conversation or part of it.
struct WrittenConversation {
    name: String,
    report: ImportReport,
    /// The conversation, to which more parts may be added; `None` if the conversation is complete.
    conversation: Option<Conversation>,
}

impl Import<'_> {
    async fn add(&mut self, item: ImportItem, number: u64, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        let thread = match &item {
            ImportItem::Thread(thread) => Some(thread.as_ref()),
            ImportItem::Tree(tree) => Some(&tree.thread),
            _ => None,
        };
        if let Some(thread) = thread {
            // An export of Threadkeep, whose threads have ids, is imported to bring them back.
            let key = thread.key.as_ref().filter(|_| thread.id.is_none());
            self.is_erased = self.erased.contain(self.memory, self.scope, key).await?;
            self.report.threads_erased += u64::from(self.is_erased);
        }
        let is_of_user = matches!(&item, ImportItem::Record { owner: RecordOwner::User(_) | RecordOwner::Tenant, .. });
        if self.is_erased && !is_of_user {
            return Ok(());
        }
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
                None => self.report.add_problem(number, None, NO_CONVERSATION),
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
            self.report.add_problem(number, message.external_id, NO_CONVERSATION);
            return Ok(());
        };
        let message = conversation.convert_message(message, self.memory);
        match encoded_bytes(&message) {
            Err(error) => {
                let name = message.external_id.unwrap_or_else(|| message.id.to_string());
                self.report.add_problem(number, Some(name), error.into());
            }
            Ok(bytes) => conversation.push(message, number, bytes),
        }
        if conversation.is_full() {
            let conversation = self.current.take().expect("a message was added to the conversation above");
            let name = conversation.name.clone();
            self.submit(conversation, progress).await?;
            self.current = Some(self.wait_for_conversation(&name, progress).await?);
        }
        Ok(())
    }

    /// Starts writing a conversation with branches. The whole conversation is in memory, so large ones are written one at a
    /// time.
    async fn add_tree(
        &mut self,
        tree: ImportedTree,
        number: u64,
        progress: &mut impl FnMut(&ImportReport),
    ) -> Result<()> {
        let tree = Tree::new(tree, number, self.memory.now());
        if tree.bytes() > CHUNK_BYTES as u64 {
            self.wait_for_all(progress).await?;
        }
        self.wait_until_written(tree.name(), progress).await?;
        self.names_in_flight.insert(tree.name().to_owned());
        self.spawn(tree.write(self.memory.clone(), self.scope.clone()));
        self.wait_for_capacity(progress).await
    }

    async fn finish_current(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        let Some(conversation) = self.current.take() else { return Ok(()) };
        self.submit(conversation, progress).await?;
        self.wait_for_capacity(progress).await
    }

    /// Waits until another conversation may be written concurrently.
    async fn wait_for_capacity(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.in_flight.len() >= self.concurrency {
            self.wait_for_one(progress).await?;
        }
        Ok(())
    }

    /// Starts writing the pending messages and records of a conversation.
    async fn submit(&mut self, conversation: Conversation, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        self.wait_until_written(&conversation.name, progress).await?;
        self.names_in_flight.insert(conversation.name.clone());
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
    async fn wait_until_written(&mut self, name: &str, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.names_in_flight.contains(name) && self.wait_for_one(progress).await?.is_some() {}
        Ok(())
    }

    /// Waits until part of the named conversation has been written, and returns the conversation.
    async fn wait_for_conversation(
        &mut self,
        name: &str,
        progress: &mut impl FnMut(&ImportReport),
    ) -> Result<Conversation> {
        loop {
            if let Some(WrittenConversation { name: written, conversation: Some(conversation), .. }) =
                self.wait_for_one(progress).await?
                && written == name
            {
                return Ok(conversation);
            }
        }
    }

    async fn wait_for_all(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.wait_for_one(progress).await?.is_some() {}
        Ok(())
    }

    /// Waits until any conversation has been written, and adds its report; `None` if none is being written.
    async fn wait_for_one(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<Option<WrittenConversation>> {
        let mut written = match self.in_flight.next().await {
            None => return Ok(None),
            Some(Some(written)) => written?,
            // The runtime is shutting down.
            Some(None) => return Err(StoreError::unavailable(Reason::Closed).into()),
        };
        self.names_in_flight.remove(&written.name);
        self.report.add(std::mem::take(&mut written.report));
        progress(&self.report);
        Ok(Some(written))
    }

    /// Writes a record of a user or the tenant if the record does not exist.
    async fn add_record(&mut self, owner: RecordOwner, record: Record, number: u64) -> Result<()> {
        if matches!(record.namespace, Namespace::System(_)) {
            self.report.add_problem(number, Some(record.key), RESERVED_NAMESPACE);
            return Ok(());
        }
        let Record { namespace, key, value, expires_at, .. } = record;
        let name = key.clone();
        let write = RecordWrite { owner, namespace, key, expected: Some(0), value: Some(value), expires_at };
        let (store, scope, now) = (self.memory.store(), self.scope, self.memory.now());
        let outcome = retry_with_outcome(self.memory.runtime(), || store.write_record(scope, write.clone(), now)).await;
        match outcome.result {
            Ok(_) => self.report.records_added += 1,
            Err(StoreError::Conflict(Conflict::Record { .. })) if outcome.may_have_applied_before => {
                self.report.records_added += 1;
            }
            Err(StoreError::Conflict(Conflict::Record { .. })) => self.report.records_already_there += 1,
            Err(error) => self.report.add_problem_or_fail(number, Some(name), error.into())?,
        }
        Ok(())
    }
}

const NO_CONVERSATION: MemoryError = MemoryError::invalid("item", "there is no conversation before it");
const RESERVED_NAMESPACE: MemoryError = MemoryError::invalid("record", "its namespace is reserved");

/// Validates a message, so that an invalid one does not make the commit of a whole chunk fail. Returns its size in bytes.
fn encoded_bytes(message: &NewMessage) -> Result<usize, StoreError> {
    message.check()?;
    codec::encode_content(&message.content).map(|text| text.len())
}
