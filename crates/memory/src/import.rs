//! Taking conversations in, again and again without doubling anything.
//!
//! A conversation is known by its id or key, a message by its id or its source's. Messages without an id of our own get
//! one made from their source's, so that one that was erased stays erased when its file comes again.
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

/// Messages of one commit.
const CHUNK_MESSAGES: usize = 500;
/// Encoded bytes of one commit, about; one message more still fits what a commit takes.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Conversations that are written at a time, so that a store can group their commits.
const AT_ONCE: usize = 32;

/// How to import.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// How many conversations are written at a time (at least 1). Default: 32.
    pub concurrency: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { concurrency: AT_ONCE }
    }
}

impl Memory {
    /// Imports conversations, in the order in which a reader of a file gives them, as owned by the scope.
    ///
    /// What is there already is left as it is: importing again changes nothing. A record that cannot be kept is reported
    /// and the rest goes on. Instants, titles, metadata and state are kept; a message without an instant gets that of the
    /// one before it, a thread without a title one from its first user message, a thread without an instant now. Records
    /// are written only where there are none, and never into a namespace of Threadkeep's own.
    ///
    /// Of a conversation with branches the current branch is the thread and each other branch a fork, with copies of the
    /// messages before it, marked in the metadata of both (`branch`). A later import moves nothing: it adds messages to the
    /// thread of the branch that they continue, forks for new branches, and moves the mark of the current one. Each
    /// conversation has at most 100 branches; those beyond are reported.
    ///
    /// `on_progress` is called after every commit's worth of messages with what has been done so far.
    ///
    /// # Errors
    /// Where going on makes no sense: the store cannot be reached or written, or its data is damaged. What was imported
    /// until then stays, and the same import again takes in the rest.
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
        for (item, place) in items.into_iter().zip(1..) {
            import.take(item, place, &mut on_progress).await?;
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
    /// Tasks of their own, as a store may do an uncontended commit where it is asked to: only on several threads does
    /// one commit wait for another, so that they can share a sync.
    in_flight: FuturesUnordered<Task<Result<WriteOutcome>>>,
    /// The conversations in flight: one that comes twice in a file is written one after the other.
    names: HashSet<String>,
}

/// What became of something that was written.
struct WriteOutcome {
    name: String,
    report: ImportReport,
    /// A conversation of which more may come.
    conversation: Option<Conversation>,
}

impl Import<'_> {
    async fn take(&mut self, item: ImportItem, place: u64, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        match item {
            ImportItem::Thread(thread) => {
                self.finish_current(progress).await?;
                self.current = Some(Conversation::new(*thread, place, self.memory.now()));
            }
            ImportItem::Message(message) => self.take_message(*message, place, progress).await?,
            ImportItem::Tree(tree) => {
                self.finish_current(progress).await?;
                self.take_tree(*tree, place, progress).await?;
            }
            ImportItem::Record { owner: RecordOwner::Thread(_), record } => match &mut self.current {
                Some(conversation) => conversation.records.push((place, record)),
                None => self.report.problem(place, None, NO_CONVERSATION),
            },
            ImportItem::Record { owner, record } => self.take_record(owner, record, place).await?,
        }
        Ok(())
    }

    async fn take_message(
        &mut self,
        message: ImportedMessage,
        place: u64,
        progress: &mut impl FnMut(&ImportReport),
    ) -> Result<()> {
        let Some(conversation) = &mut self.current else {
            self.report.problem(place, message.external_id, NO_CONVERSATION);
            return Ok(());
        };
        let message = conversation.message(message, self.memory);
        match encoded_bytes(&message) {
            Err(error) => {
                let name = message.external_id.unwrap_or_else(|| message.id.to_string());
                self.report.problem(place, Some(name), error.into());
            }
            Ok(bytes) => conversation.push(message, place, bytes),
        }
        if conversation.is_full() {
            let conversation = self.current.take().expect("it was there a line above");
            let name = conversation.name.clone();
            self.submit(conversation, progress).await?;
            self.current = Some(self.settle(&name, progress).await?);
        }
        Ok(())
    }

    /// Begins to write a conversation with branches. Such a one is held whole, so large ones are written one at a time.
    async fn take_tree(
        &mut self,
        tree: ImportedTree,
        place: u64,
        progress: &mut impl FnMut(&ImportReport),
    ) -> Result<()> {
        let tree = Tree::new(tree, place, self.memory.now());
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

    /// Begins to write what a conversation holds.
    async fn submit(&mut self, conversation: Conversation, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        self.wait_for(&conversation.name, progress).await?;
        self.names.insert(conversation.name.clone());
        let (memory, scope) = (self.memory.clone(), self.scope.clone());
        self.spawn(async move {
            let mut conversation = conversation.write(memory, scope).await?;
            let report = std::mem::take(&mut conversation.report);
            Ok(WriteOutcome { name: conversation.name.clone(), report, conversation: Some(conversation) })
        });
        Ok(())
    }

    fn spawn(&self, writing: impl Future<Output = Result<WriteOutcome>> + Send + 'static) {
        self.in_flight.push(Task::spawn(self.memory.runtime(), writing));
    }

    /// Waits until nothing of this name is being written.
    async fn wait_for(&mut self, name: &str, progress: &mut impl FnMut(&ImportReport)) -> Result<()> {
        while self.names.contains(name) && self.settle_one(progress).await?.is_some() {}
        Ok(())
    }

    /// Waits until one conversation is written, and lets the others go on meanwhile.
    async fn settle(&mut self, name: &str, progress: &mut impl FnMut(&ImportReport)) -> Result<Conversation> {
        loop {
            if let Some(WriteOutcome { name: written, conversation: Some(conversation), .. }) =
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

    async fn settle_one(&mut self, progress: &mut impl FnMut(&ImportReport)) -> Result<Option<WriteOutcome>> {
        let mut written = match self.in_flight.next().await {
            None => return Ok(None),
            Some(Some(written)) => written?,
            // The runtime ends.
            Some(None) => return Err(StoreError::unavailable(Reason::Closed).into()),
        };
        self.names.remove(&written.name);
        self.report.add(std::mem::take(&mut written.report));
        progress(&self.report);
        Ok(Some(written))
    }

    /// Writes a record of a user or the tenant where there is none.
    async fn take_record(&mut self, owner: RecordOwner, record: Record, place: u64) -> Result<()> {
        if matches!(record.namespace, Namespace::System(_)) {
            self.report.problem(place, Some(record.key), NOT_AN_APPLICATIONS);
            return Ok(());
        }
        let Record { namespace, key, value, expires_at, .. } = record;
        let name = key.clone();
        let write = RecordWrite { owner, namespace, key, expected: Some(0), value: Some(value), expires_at };
        let (store, scope, now) = (self.memory.store(), self.scope, self.memory.now());
        let attempted = retry_tracked(self.memory.runtime(), || store.write_record(scope, write.clone(), now)).await;
        match attempted.result {
            Ok(_) => self.report.records_added += 1,
            Err(StoreError::Conflict(Conflict::Record { .. })) if attempted.may_have_applied_before => {
                self.report.records_added += 1;
            }
            Err(StoreError::Conflict(Conflict::Record { .. })) => self.report.records_already_there += 1,
            Err(error) => self.report.problem_or_end(place, Some(name), error.into())?,
        }
        Ok(())
    }
}

const NO_CONVERSATION: MemoryError = MemoryError::invalid("item", "no conversation begins before it");
const NOT_AN_APPLICATIONS: MemoryError = MemoryError::invalid("document", "it belongs to Threadkeep itself");

/// Checks a message by itself, so that one that cannot be kept does not take its neighbours with it.
fn encoded_bytes(message: &NewMessage) -> Result<usize, StoreError> {
    message.check()?;
    codec::encode_content(&message.content).map(|text| text.len())
}
