//! Adding messages or replacing messages with the same ids.

use std::collections::HashMap;

use threadkeep_core::{
    Batch, Conflict, IdempotencyKey, Message, MessageId, MessageRef, Replacement, Scope, StoreError, TaggedNumber,
    ThreadId, limits,
};

use crate::title::title_from;
use crate::{AppendOptions, Appended, Draft, Memory, MemoryError, Result, fingerprint};

/// Maximum number of attempts while others add or remove messages with the same ids.
const ATTEMPTS: usize = 8;

/// The result of [`Memory::upsert_with`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upserted {
    /// The change number of the commit, or the thread's current change number if nothing changed.
    pub change: TaggedNumber,
    /// The messages, in the order of the drafts. If `replayed` is set, only those that still exist.
    pub messages: Vec<UpsertedMessage>,
    /// Whether an earlier request with the same idempotency key made the change.
    pub replayed: bool,
}

/// A message that was added, replaced or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpsertedMessage {
    /// The position in the thread.
    pub seq: u64,
    /// The id.
    pub id: MessageId,
    /// What happened to the message.
    pub outcome: UpsertOutcome,
}

/// What happened to a message of an upsert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpsertOutcome {
    /// The message was added.
    Added,
    /// The thread already contains the message with the same content.
    Unchanged,
    /// The content of the message was replaced.
    Replaced,
}

impl Memory {
    /// Adds messages, all or none. If the thread already contains a message with the id or the external id of a draft, the content
    /// of that message is replaced.
    ///
    /// A replaced message keeps its position and creation time. A message with the same content is not changed. Drafts without
    /// an id and an external id are always added.
    ///
    /// # Errors
    /// The same as for [`Memory::append_all`]; `Conflict` for the id of an erased message; `Denied` if a message has to be
    /// replaced, the thread is shared and `scope` is a user's.
    pub async fn upsert(&self, scope: &Scope, thread: ThreadId, drafts: Vec<Draft>) -> Result<Appended> {
        let options = AppendOptions::default();
        Ok(self.upsert_repeatedly(scope, thread, &drafts, &options).await?.0)
    }

    /// Like [`Memory::upsert`], with options, and returns what happened to each message.
    ///
    /// # Errors
    /// The same as for [`Memory::upsert`].
    pub async fn upsert_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        drafts: Vec<Draft>,
        options: &AppendOptions,
    ) -> Result<Upserted> {
        let (appended, mut messages) = self.upsert_repeatedly(scope, thread, &drafts, options).await?;
        // A repeated request finds messages that the first one added, and the store also lists those as added.
        let is_found = |id: MessageId| messages.iter().flatten().any(|found: &UpsertedMessage| found.id == id);
        let added: Vec<_> = appended.messages.iter().filter(|message| !is_found(message.id)).copied().collect();
        let mut added = added.into_iter();
        for message in messages.iter_mut().filter(|message| message.is_none()) {
            let outcome = UpsertOutcome::Added;
            *message = added.next().map(|added| UpsertedMessage { seq: added.seq, id: added.id, outcome });
        }
        let (change, replayed) = (appended.tagged(), appended.replayed);
        Ok(Upserted { change, messages: messages.into_iter().flatten().collect(), replayed })
    }

    async fn upsert_repeatedly(
        &self,
        scope: &Scope,
        thread: ThreadId,
        drafts: &[Draft],
        options: &AppendOptions,
    ) -> Result<(Appended, Vec<Option<UpsertedMessage>>)> {
        limits::check_at_most("messages per commit", drafts.len(), limits::COMMIT_MESSAGES)?;
        for _ in 1..ATTEMPTS {
            match self.try_upsert(scope, thread, drafts, options).await {
                Err(error) if is_race(&error) && options.expected.is_none() => {}
                result => return result,
            }
        }
        self.try_upsert(scope, thread, drafts, options).await
    }

    /// Returns the outcome of the commit, and for each draft the message that was found; `None` if it was added.
    async fn try_upsert(
        &self,
        scope: &Scope,
        thread: ThreadId,
        drafts: &[Draft],
        options: &AppendOptions,
    ) -> Result<(Appended, Vec<Option<UpsertedMessage>>)> {
        let refs: Vec<MessageRef> = drafts.iter().filter_map(reference).collect();
        let found = self.find_messages(scope, thread, &refs).await?;
        let by_id: HashMap<MessageId, &Message> = found.iter().map(|message| (message.id, message)).collect();
        let by_external_id: HashMap<&str, &Message> =
            found.iter().filter_map(|message| Some((message.external_id.as_deref()?, message))).collect();
        let now = options.at.unwrap_or_else(|| self.now());
        let mut batch = match &options.idempotency_key {
            None => self.new_batch(now),
            Some(key) => {
                let key = IdempotencyKey::FromCaller(key.clone());
                let fingerprint = options.fingerprint.map_or_else(|| fingerprint::of_drafts(&key, drafts), Ok)?;
                Batch::new(key, fingerprint)
            }
        };
        batch.expected = options.expected;
        let (mut replaced, mut messages) = (Vec::new(), Vec::with_capacity(drafts.len()));
        for draft in drafts {
            let existing = match (draft.id, draft.external_id.as_deref()) {
                (Some(id), _) => by_id.get(&id),
                (None, Some(external_id)) => by_external_id.get(external_id),
                (None, None) => None,
            };
            let outcome = match existing {
                None => {
                    batch.append.push(draft.clone().into_message(self, now));
                    messages.push(None);
                    continue;
                }
                Some(message) if message.content != draft.content => {
                    replaced.push(*message);
                    batch.replace.push(Replacement { id: message.id, content: draft.content.clone() });
                    UpsertOutcome::Replaced
                }
                Some(_) => UpsertOutcome::Unchanged,
            };
            messages.push(existing.map(|message| UpsertedMessage { seq: message.seq, id: message.id, outcome }));
        }
        if replaced.iter().any(|message| title_from(&message.content).is_some()) {
            self.renew_title(scope, thread, &replaced, &mut batch).await?;
        }
        let retention = options.retention.or(self.options().retention);
        Ok((self.commit_by_policy(scope, thread, batch, retention, now).await?, messages))
    }
}

/// Returns the reference to the message that a draft would replace; `None` if the draft has no id and no external id.
fn reference(draft: &Draft) -> Option<MessageRef> {
    let external_id = || draft.external_id.clone().map(MessageRef::External);
    draft.id.map(MessageRef::Id).or_else(external_id)
}

/// Whether the error shows that another commit changed the messages between the read and the write.
fn is_race(error: &MemoryError) -> bool {
    use Conflict::{Change, ExternalId, MessageId};
    match error {
        MemoryError::Store(StoreError::Conflict(conflict)) => {
            matches!(conflict, Change { .. } | MessageId { .. } | ExternalId { .. })
        }
        MemoryError::Store(StoreError::NotFound(kind)) => matches!(kind, threadkeep_core::Kind::Message),
        _ => false,
    }
}
