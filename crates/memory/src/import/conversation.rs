use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use threadkeep_core::exchange::{ImportedMessage, ImportedThread};
use threadkeep_core::{
    Access, Conflict, MessageId, MessageRef, Namespace, NewMessage, OpenThread, PutRecord, Record, RecordCondition,
    RecordName, RecordState, Scope, StoreError, ThreadId, Timestamp, limits,
};

use super::{CHUNK_BYTES, CHUNK_MESSAGES, ImportReport, RESERVED_NAMESPACE};
use crate::title::title_from_first;
use crate::{Appended, Memory, MemoryError, Result};

/// A conversation that is being imported, with the messages and records that are not written yet.
pub(super) struct Conversation {
    /// Identifies the conversation in the import: its key, or else its id, or else its item number.
    pub(super) name: String,
    pub(super) records: Vec<(u64, Record)>,
    pub(super) report: ImportReport,
    thread: ImportedThread,
    number: u64,
    now: Timestamp,
    state: State,
    chunk: Vec<(u64, NewMessage)>,
    chunk_bytes: usize,
    last_instant: Option<Timestamp>,
}

#[derive(Clone, Copy)]
enum State {
    Unopened,
    Open(OpenedThread),
    /// The thread could not be opened, which was reported. Its messages and records are skipped.
    Failed,
}

#[derive(Clone, Copy)]
struct OpenedThread {
    id: ThreadId,
    /// Whether the thread may already contain some of the messages, so each one must be looked up before it is added.
    may_have_messages: bool,
    needs_title: bool,
}

impl Conversation {
    pub(super) fn new(thread: ImportedThread, number: u64, now: Timestamp) -> Self {
        let name = match (&thread.key, thread.id) {
            (Some(key), _) => format!("key {key}"),
            (None, Some(id)) => format!("id {id}"),
            (None, None) => format!("item {number}"),
        };
        Self {
            name,
            records: Vec::new(),
            report: ImportReport::default(),
            last_instant: thread.created_at,
            thread,
            number,
            now,
            state: State::Unopened,
            chunk: Vec::new(),
            chunk_bytes: 0,
        }
    }

    /// Converts a message. The id is the same in every import if the message has an id or an external id.
    pub(super) fn convert_message(&mut self, imported: ImportedMessage, memory: &Memory) -> NewMessage {
        let ImportedMessage { id, external_id, created_at, content } = imported;
        let derived_id = || external_id.as_ref().map(|name| derive_id(&self.name, name));
        let id = id.or_else(derived_id).unwrap_or_else(|| memory.generate_message_id_at(self.now));
        let created_at = created_at.or(self.last_instant).unwrap_or(self.now);
        self.last_instant = Some(created_at);
        NewMessage { id, external_id, created_at, content }
    }

    pub(super) fn push(&mut self, message: NewMessage, number: u64, bytes: usize) {
        self.chunk.push((number, message));
        self.chunk_bytes += bytes;
    }

    pub(super) fn is_full(&self) -> bool {
        self.chunk.len() >= CHUNK_MESSAGES || self.chunk_bytes >= CHUNK_BYTES
    }

    /// Writes the pending messages and records.
    pub(super) async fn write(mut self, memory: Memory, scope: Scope) -> Result<Self> {
        let (memory, scope) = (&memory, &scope);
        if let State::Unopened = self.state {
            self.state = self.open(memory, scope).await?;
        }
        let chunk = std::mem::take(&mut self.chunk);
        let records = std::mem::take(&mut self.records);
        self.chunk_bytes = 0;
        if let State::Open(mut open) = self.state {
            self.write_messages(memory, scope, &mut open, chunk).await?;
            for (number, record) in records {
                self.write_record(memory, scope, open.id, number, record).await?;
            }
            self.state = State::Open(open);
        }
        Ok(self)
    }

    async fn open(&mut self, memory: &Memory, scope: &Scope) -> Result<State> {
        let id = self.thread.id.unwrap_or_else(|| memory.generate_thread_id());
        let open = OpenThread {
            id,
            owner: scope.default_owner(),
            key: self.thread.key.clone(),
            title: self.thread.title.clone(),
            metadata: self.thread.metadata.clone(),
            state: self.thread.state.clone(),
            created_at: self.thread.created_at,
            expires_at: self.thread.expires_at,
        };
        match memory.open_thread(scope, open).await {
            Ok(opened) => {
                let count =
                    if opened.created { &mut self.report.threads_created } else { &mut self.report.threads_found };
                *count += 1;
                let thread = opened.thread;
                Ok(State::Open(OpenedThread {
                    id: thread.id,
                    may_have_messages: thread.positions.seq > 0,
                    needs_title: thread.title.is_none() && scope.access(&thread.owner) == Access::Full,
                }))
            }
            Err(error) => {
                let name = Some(self.name.clone());
                self.report.add_problem_or_fail(self.number, name, error)?;
                Ok(State::Failed)
            }
        }
    }

    /// Appends the messages that do not exist yet. A message that is invalid or already exists does not prevent adding the others.
    async fn write_messages(
        &mut self,
        memory: &Memory,
        scope: &Scope,
        open: &mut OpenedThread,
        chunk: Vec<(u64, NewMessage)>,
    ) -> Result<()> {
        let mut remaining = chunk;
        while !remaining.is_empty() {
            if open.may_have_messages {
                remaining = self.remove_existing(memory, scope, open.id, remaining).await?;
            }
            remaining = self.remove_repeated(remaining);
            let result = append(memory, scope, open, &remaining).await;
            match result {
                Ok(appended) => {
                    self.report.messages_added += appended.count;
                    return Ok(());
                }
                Err(MemoryError::Store(StoreError::Conflict(conflict))) => {
                    // If the message was looked up and not found although its id is taken, it was erased, and stays erased.
                    let is_erased = open.may_have_messages;
                    match conflict {
                        Conflict::MessageId { id, .. } if is_erased => {
                            let before = remaining.len();
                            remaining.retain(|(_, message)| message.id != id);
                            self.report.messages_already_there += (before - remaining.len()) as u64;
                        }
                        Conflict::MessageId { .. } | Conflict::ExternalId { .. } if !open.may_have_messages => {
                            open.may_have_messages = true;
                        }
                        // Another import has added the message meanwhile.
                        Conflict::ExternalId { .. } => {}
                        conflict => return self.report_chunk(&remaining, StoreError::from(conflict).into()),
                    }
                }
                Err(error) => return self.report_chunk(&remaining, error),
            }
        }
        Ok(())
    }

    /// Removes messages that exist in the thread, and counts them in the report.
    async fn remove_existing(
        &mut self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        chunk: Vec<(u64, NewMessage)>,
    ) -> Result<Vec<(u64, NewMessage)>> {
        let refs = chunk.iter().flat_map(|(_, message)| {
            let external = message.external_id.clone().map(MessageRef::External);
            [Some(MessageRef::Id(message.id)), external].into_iter().flatten()
        });
        let refs: Vec<_> = refs.collect();
        let (mut by_id, mut by_external_id) = (HashMap::new(), HashMap::new());
        for refs in refs.chunks(limits::PAGE) {
            for message in memory.find_messages(scope, thread, refs).await? {
                let parts = Arc::new(message.content.parts);
                by_id.insert(message.id, Arc::clone(&parts));
                by_external_id.extend(message.external_id.map(|name| (name, parts)));
            }
        }
        let before = chunk.len();
        let mut remaining = chunk;
        let mut changed = 0;
        remaining.retain(|(_, message)| {
            let of_external_id = message.external_id.as_ref().and_then(|name| by_external_id.get(name));
            let known = of_external_id.or_else(|| by_id.get(&message.id));
            changed += u64::from(known.is_some_and(|parts| **parts != message.content.parts));
            known.is_none()
        });
        self.report.messages_changed += changed;
        self.report.messages_already_there += (before - remaining.len()) as u64;
        Ok(remaining)
    }

    /// Removes and reports messages that have the id or external id of an earlier message in the chunk.
    fn remove_repeated(&mut self, chunk: Vec<(u64, NewMessage)>) -> Vec<(u64, NewMessage)> {
        let (mut ids, mut external_ids) = (HashSet::new(), HashSet::new());
        let mut remaining = Vec::with_capacity(chunk.len());
        for (number, message) in chunk {
            let has_new_external_id = message.external_id.as_ref().is_none_or(|name| external_ids.insert(name.clone()));
            if ids.insert(message.id) && has_new_external_id {
                remaining.push((number, message));
            } else {
                let name = message.external_id.unwrap_or_else(|| message.id.to_string());
                let error = MemoryError::invalid("message", "its conversation has another message with this id");
                self.report.add_problem(number, Some(name), error);
            }
        }
        remaining
    }

    /// Reports the messages of a chunk that could not be written. Returns an error that affects all items.
    fn report_chunk(&mut self, chunk: &[(u64, NewMessage)], error: MemoryError) -> Result<()> {
        let Some((number, message)) = chunk.first() else { return Ok(()) };
        let name = message.external_id.clone().unwrap_or_else(|| message.id.to_string());
        self.report.add_problem_or_fail(*number, Some(name), error)?;
        for (number, message) in &chunk[1..] {
            let name = message.external_id.clone().unwrap_or_else(|| message.id.to_string());
            let error = MemoryError::invalid("message", "a message before it could not be stored");
            self.report.add_problem(*number, Some(name), error);
        }
        Ok(())
    }

    async fn write_record(
        &mut self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        number: u64,
        record: Record,
    ) -> Result<()> {
        let Record { namespace, key, value, expires_at, .. } = record;
        if matches!(namespace, Namespace::System(_)) {
            self.report.add_problem(number, Some(key), RESERVED_NAMESPACE);
            return Ok(());
        }
        let name = RecordName { namespace, key };
        let now = memory.now();
        let mut batch = memory.new_batch(now);
        batch.require.push(RecordCondition { name: name.clone(), state: RecordState::Absent });
        batch.put.push(PutRecord { name: name.clone(), value, expires_at });
        match memory.commit_with_retries(scope, thread, &batch, now).await {
            Ok(_) => self.report.records_added += 1,
            Err(MemoryError::Store(StoreError::Conflict(Conflict::Record { .. }))) => {
                self.report.records_already_there += 1;
            }
            Err(error) => self.report.add_problem_or_fail(number, Some(name.key), error)?,
        }
        Ok(())
    }
}

/// Appends a chunk, and gives the thread a title if it needs one.
async fn append(
    memory: &Memory,
    scope: &Scope,
    open: &mut OpenedThread,
    chunk: &[(u64, NewMessage)],
) -> Result<Appended> {
    let now = memory.now();
    let mut batch = memory.new_batch(now);
    batch.append = chunk.iter().map(|(_, message)| message.clone()).collect();
    if open.needs_title
        && let Some(title) = title_from_first(batch.append.iter().map(|message| &message.content))
    {
        batch.patch.title = Some(Some(title));
    }
    let appended = memory.commit_with_retries(scope, open.id, &batch, now).await?;
    open.needs_title &= batch.patch.title.is_none();
    Ok(appended)
}

/// Derives an id from the names of a message and of its conversation. The first bytes depend only on the conversation, so that
/// the ids in one conversation are adjacent in an index.
pub(super) fn derive_id(conversation: &str, message: &str) -> MessageId {
    let (conversation, message) =
        (MessageId::from_name(conversation.as_bytes()), MessageId::from_name(message.as_bytes()));
    let mut id = message.0.into_bytes();
    id[..6].copy_from_slice(&conversation.0.as_bytes()[..6]);
    MessageId(uuid::Uuid::from_bytes(id))
}
