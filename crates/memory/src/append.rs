//! Appending messages. Depending on the options, the same commit also sets the title and trims older messages.

use threadkeep_core::{
    Access, Batch, ChangeTag, CommitOutcome, Conflict, Expected, Fingerprint, IdempotencyKey, MessageId, MessageRef,
    NewMessage, Scope, StoreError, TaggedNumber, Thread, ThreadId, Timestamp,
};

use crate::context::is_context_state_conflict;
use crate::retry::{RetryOutcome, retry_with_outcome};
use crate::thread_cache::removes_content;
use crate::title::{title_from, title_from_first};
use crate::{Draft, Memory, MemoryError, Result, Retention, Titles, fingerprint};

/// Maximum number of attempts to set a title while others change the thread.
const TITLE_ATTEMPTS: usize = 8;

/// Maximum number of attempts to remove content from the context state while others update it.
const CONTEXT_STATE_ATTEMPTS: usize = 8;

/// Options for appending.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// Identifies repeated requests for seven days, so that only one takes effect. Without a key, only retries within one call
    /// are recognised.
    pub idempotency_key: Option<String>,
    /// The position or change at which the thread must be. Default: any.
    pub expected: Option<Expected>,
    /// The retention policy of the thread. Default: [`MemoryOptions::retention`](crate::MemoryOptions::retention).
    pub retention: Option<Retention>,
    /// The time of the commit, and of messages without a creation time. Default: the current time.
    pub at: Option<Timestamp>,
    /// Distinguishes this request from other requests with the same key. Default: a digest of the drafts.
    pub fingerprint: Option<Fingerprint>,
}

impl AppendOptions {
    /// Validates a request without calling the store: [`Memory::append_all`] does not reject the content of a request that
    /// passes. Use it before opening a thread for the request, because an invalid request would leave the new thread empty.
    ///
    /// # Errors
    /// `LimitExceeded` and `Invalid` for messages and keys that cannot be stored, as in [`Memory::append_all`].
    pub fn check(&self, drafts: &[Draft]) -> Result<()> {
        let key = self.idempotency_key.clone().map(IdempotencyKey::FromCaller);
        let mut batch =
            Batch::new(key.unwrap_or(IdempotencyKey::Generated(uuid::Uuid::nil())), fingerprint::FOR_GENERATED_KEYS);
        let epoch = Timestamp::from_millis(0)?;
        let message = |(number, draft): (u64, &Draft)| NewMessage {
            id: draft.id.unwrap_or_else(|| MessageId::from_name(&number.to_be_bytes())),
            external_id: draft.external_id.clone(),
            created_at: draft.created_at.unwrap_or(epoch),
            content: draft.content.clone(),
        };
        batch.append = (0..).zip(drafts).map(message).collect();
        batch.encode()?;
        self.retention.as_ref().map_or(Ok(()), Retention::check)
    }
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The change number of the commit, or the thread's current change number if nothing was appended.
    pub change: u64,
    /// The tag of that change; `None` if the store has no tags.
    pub tag: Option<ChangeTag>,
    /// The position of the first message, or the position after the thread's last message if nothing was appended.
    pub first_seq: u64,
    /// The number of appended messages.
    pub count: u64,
    /// The messages, in order. If `replayed` is set, only those that still exist.
    pub messages: Vec<AppendedMessage>,
    /// Whether the messages were appended by an earlier request with the same idempotency key.
    pub replayed: bool,
}

impl Appended {
    /// The change number and tag of the commit, which are also the version of records written in it.
    #[must_use]
    pub const fn tagged(&self) -> TaggedNumber {
        TaggedNumber { number: self.change, tag: self.tag }
    }
}

/// An appended message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedMessage {
    /// The position in the thread.
    pub seq: u64,
    /// The id.
    pub id: MessageId,
}

impl Memory {
    /// Appends one message.
    ///
    /// # Errors
    /// The same as for [`Memory::append_all`].
    pub async fn append(&self, scope: &Scope, thread: ThreadId, draft: impl Into<Draft>) -> Result<Appended> {
        self.append_all(scope, thread, vec![draft.into()], &AppendOptions::default()).await
    }

    /// Appends messages in order, all or none. An empty list changes nothing and causes no event.
    ///
    /// A thread without a title gets one from its first user message in the same commit. An append usually takes one call to
    /// the store. With a retention policy it takes two calls, because the thread is read first, and three calls if messages are
    /// trimmed, because those messages are also removed from the context state.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread; `Conflict` if `expected` is not met, the idempotency key was used for another request,
    /// or an id is taken; `LimitExceeded` and `Invalid` for messages that cannot be stored; `Unavailable` if the store could not
    /// be reached after several attempts, with `maybe_applied` if the outcome is unknown: retry with the same key.
    pub async fn append_all(
        &self,
        scope: &Scope,
        thread: ThreadId,
        drafts: Vec<Draft>,
        options: &AppendOptions,
    ) -> Result<Appended> {
        let now = options.at.unwrap_or_else(|| self.now());
        let key = match &options.idempotency_key {
            Some(key) => IdempotencyKey::FromCaller(key.clone()),
            None => self.generate_key(now),
        };
        let fingerprint = match options.fingerprint {
            Some(fingerprint) => fingerprint,
            None => fingerprint::of_drafts(&key, &drafts)?,
        };
        let mut batch = Batch::new(key, fingerprint);
        batch.expected = options.expected;
        batch.append = drafts.into_iter().map(|draft| draft.into_message(self, now)).collect();
        let retention = options.retention.or(self.options().retention);
        if let Some(retention) = &retention {
            retention.check()?;
        }
        self.commit_by_policy(scope, thread, batch, retention, now).await
    }

    /// Appends a user's message and the assistant's answer, both or neither.
    ///
    /// # Errors
    /// The same as for [`Memory::append_all`].
    pub async fn append_pair(
        &self,
        scope: &Scope,
        thread: ThreadId,
        user: impl Into<Draft>,
        assistant: impl Into<Draft>,
        options: &AppendOptions,
    ) -> Result<Appended> {
        self.append_all(scope, thread, vec![user.into(), assistant.into()], options).await
    }

    /// Commits a batch after adding the title and the trimming that its messages require.
    pub(crate) async fn commit_by_policy(
        &self,
        scope: &Scope,
        thread: ThreadId,
        mut batch: Batch,
        retention: Option<Retention>,
        now: Timestamp,
    ) -> Result<Appended> {
        let retention = retention.filter(|_| !batch.append.is_empty());
        let expected = batch.expected;
        let mut read_seq = None;
        let mut context_state_attempts = CONTEXT_STATE_ATTEMPTS;
        let mut title_attempts = if self.may_add_title(scope, thread, &batch) { TITLE_ATTEMPTS } else { 0 };
        let appended = loop {
            if title_attempts > 0 || retention.is_some() {
                let found = self.get_thread(scope, thread).await?;
                read_seq = Some(found.positions.seq);
                if let Some(retention) = &retention {
                    self.add_retention(scope, &found, retention, &mut batch, now).await?;
                }
                if title_attempts > 0 {
                    self.add_title(scope, &found, &mut batch);
                }
            }
            self.scrub_removed_messages(scope, thread, &mut batch).await?;
            match self.commit_with_retries(scope, thread, &batch, now).await {
                Err(error) if is_context_state_conflict(&error) && context_state_attempts > 0 => {
                    context_state_attempts -= 1
                }
                // The title was made for a thread that has changed since. Try again; after the last attempt, append the
                // messages without a title.
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. })))
                    if batch.expected != expected =>
                {
                    batch.expected = expected;
                    batch.patch.title = None;
                    title_attempts -= 1;
                }
                result => break result?,
            }
        };
        if matches!(batch.patch.title, Some(Some(_))) {
            self.threads_with_final_title().insert(scope, thread);
        }
        if let (Some(retention), Some(read_seq)) = (retention, read_seq)
            && appended.first_seq != read_seq + 1
            && !appended.replayed
        {
            // Others appended between the read and the commit, so too few messages were trimmed. A failure is ignored: the
            // messages are stored, and the next append trims the thread.
            drop(self.retain(scope, thread, &retention).await);
        }
        Ok(appended)
    }

    /// Commits a batch without adding to it, and retries transient failures with the same key.
    pub(crate) async fn commit_with_retries(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<Appended> {
        let pending = self.feeds().begin_commit(scope, thread, batch);
        let retried = self.commit_through_cache(scope, thread, batch, now).await;
        if let Some(pending) = pending {
            pending.end(batch, &retried, now);
        }
        let outcome = retried.result?;
        let is_key_generated = matches!(batch.key, IdempotencyKey::Generated(_));
        if !outcome.replayed || is_key_generated {
            return Ok(appended_in_order(outcome, batch));
        }
        self.replayed(scope, thread, batch, outcome, retried.may_have_applied_before).await
    }

    /// Commits a batch and updates the caches.
    pub(crate) async fn commit_through_cache(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> RetryOutcome<CommitOutcome> {
        if !removes_content(batch) {
            return self.commit_through_thread_cache(scope, thread, batch, now).await;
        }
        self.vocabularies().evict(thread);
        let outcome = self.commit_through_thread_cache(scope, thread, batch, now).await;
        self.vocabularies().evict(thread);
        outcome
    }

    async fn commit_through_thread_cache(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> RetryOutcome<CommitOutcome> {
        let Some(cache) = self.thread_cache() else {
            return retry_with_outcome(self.runtime(), || self.store().commit(scope, thread, batch.clone(), now)).await;
        };
        let key = (scope.tenant_id().clone(), thread);
        cache.before_commit(&key, batch);
        let outcome =
            retry_with_outcome(self.runtime(), || self.store().commit(scope, thread, batch.clone(), now)).await;
        cache.after_commit(&key, batch, outcome.result.as_ref().ok());
        outcome
    }

    /// Creates an empty batch with a generated idempotency key.
    pub(crate) fn new_batch(&self, now: Timestamp) -> Batch {
        Batch::new(self.generate_key(now), fingerprint::FOR_GENERATED_KEYS)
    }

    fn may_add_title(&self, scope: &Scope, thread: ThreadId, batch: &Batch) -> bool {
        self.options().titles == Titles::FromFirstUserMessage
            && batch.patch.title.is_none()
            && !self.threads_with_final_title().contains(scope, thread)
            && batch.append.iter().any(|message| title_from(&message.content).is_some())
    }

    /// Remembers that a thread needs no title if the thread, as read from the store, has one.
    pub(crate) fn remember_title(&self, scope: &Scope, thread: &Thread) {
        if thread.title.is_some() && !self.threads_with_final_title().contains(scope, thread.id) {
            self.threads_with_final_title().insert(scope, thread.id);
        }
    }

    fn add_title(&self, scope: &Scope, thread: &Thread, batch: &mut Batch) {
        if thread.title.is_some() || scope.access(&thread.owner) != Access::Full {
            self.threads_with_final_title().insert(scope, thread.id);
            return;
        }
        // If the thread is not at the expected position or change, the store has to report the conflict or replay an earlier commit.
        if batch.expected.is_none_or(|expected| expected.check(thread.positions).is_ok()) {
            batch.expected = Some(Expected::Change(thread.positions.tagged()));
            batch.patch.title = Some(title_from_first(batch.append.iter().map(|message| &message.content)));
        }
    }

    /// Returns the messages that an earlier request with the same key appended. If `may_be_own`, that request may have been an
    /// earlier attempt of this one.
    async fn replayed(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        outcome: CommitOutcome,
        may_be_own: bool,
    ) -> Result<Appended> {
        let refs: Vec<_> = (outcome.first_seq..outcome.first_seq + outcome.count).map(MessageRef::Seq).collect();
        let found = self.find_messages(scope, thread, &refs).await?;
        let messages: Vec<_> =
            found.into_iter().map(|message| AppendedMessage { seq: message.seq, id: message.id }).collect();
        let own = appended_in_order(outcome, batch);
        if may_be_own && own.messages == messages {
            return Ok(own);
        }
        let CommitOutcome { change, tag, first_seq, count, .. } = outcome;
        Ok(Appended { change, tag, first_seq, count, messages, replayed: true })
    }
}

fn appended_in_order(outcome: CommitOutcome, batch: &Batch) -> Appended {
    let CommitOutcome { change, tag, first_seq, count, .. } = outcome;
    let messages = batch.append.iter().zip(first_seq..).map(|(message, seq)| AppendedMessage { seq, id: message.id });
    Appended { change, tag, first_seq, count, messages: messages.collect(), replayed: false }
}
