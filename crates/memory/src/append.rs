//! Appending messages, with what policy adds to the same commit.

use threadkeep_core::{
    Access, Batch, ChangeTag, CommitOutcome, Conflict, Expected, Fingerprint, IdempotencyKey, MessageId, MessageName,
    NewMessage, Scope, StoreError, Tagged, Thread, ThreadId, Timestamp,
};

use crate::context::is_about_summary;
use crate::retry::{Attempted, repeat};
use crate::title::{title_from, title_from_first};
use crate::{Draft, Memory, MemoryError, Result, Retention, Titles, fingerprint};

/// How often a title is decided anew because the thread changed meanwhile.
const TITLE_ATTEMPTS: usize = 8;

/// How often a summary is looked at anew because others renewed it meanwhile.
const SUMMARY_ATTEMPTS: usize = 8;

/// How to append.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// Makes a repeated request count once, for seven days. Without one only the call's own repetitions do.
    pub idempotency_key: Option<String>,
    /// Where the thread must stand.
    pub expected: Option<Expected>,
    /// What is kept of the thread; the manager's own retention when there is none.
    pub retention: Option<Retention>,
    /// The instant that counts as now, for the messages and the change; that of the manager's clock when there is none.
    pub at: Option<Timestamp>,
    /// What tells this request from another one with the same key; a digest of the drafts when there is none.
    pub fingerprint: Option<Fingerprint>,
}

impl AppendOptions {
    /// Checks what can be told of a request without the store: what passes is refused for nothing that it says. For who
    /// opens a thread for it, which would otherwise stay behind empty.
    ///
    /// # Errors
    /// `LimitExceeded` and `Invalid` for messages and keys that no store keeps, as [`Memory::append_all`].
    pub fn check(&self, drafts: &[Draft]) -> Result<()> {
        let key = self.idempotency_key.clone().map(IdempotencyKey::Given);
        let mut batch = Batch::new(key.unwrap_or(IdempotencyKey::Minted(uuid::Uuid::nil())), fingerprint::MINTED);
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

/// What appending did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The change position that the commit made; where the thread stands if nothing was appended.
    pub change: u64,
    /// The tag of that change; `None` where the store knows none.
    pub tag: Option<ChangeTag>,
    /// The position of the first message; one past the thread's last if nothing was appended.
    pub first_seq: u64,
    /// How many were appended.
    pub count: u64,
    /// The messages, in order. On a replay those that are still there.
    pub messages: Vec<Placed>,
    /// Whether an earlier request with the same idempotency key had appended them.
    pub replayed: bool,
}

impl Appended {
    /// The change with its tag: also the version of the records that were written with the messages.
    #[must_use]
    pub const fn tagged(&self) -> Tagged {
        Tagged { number: self.change, tag: self.tag }
    }
}

/// Where a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
}

impl Memory {
    /// Appends one message.
    ///
    /// # Errors
    /// As [`Memory::append_all`].
    pub async fn append(&self, scope: &Scope, thread: ThreadId, draft: impl Into<Draft>) -> Result<Appended> {
        self.append_all(scope, thread, vec![draft.into()], &AppendOptions::default()).await
    }

    /// Appends messages in order, all or none. None at all changes nothing and makes no event.
    ///
    /// A thread without a title gets one from its user's message in the same commit. In the steady state this is one
    /// call of the store; with a retention two, as the thread is looked at first, and three where messages go, as a summary
    /// must not keep their words.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread; `Conflict` for an expectation that does not hold, an idempotency key that was
    /// used for something else, and ids that are taken; `LimitExceeded` and `Invalid` for messages that no store keeps;
    /// `Unavailable` after some attempts, with `maybe_applied` where the fate is unknown: repeat with the same key.
    pub async fn append_all(
        &self,
        scope: &Scope,
        thread: ThreadId,
        drafts: Vec<Draft>,
        options: &AppendOptions,
    ) -> Result<Appended> {
        let now = options.at.unwrap_or_else(|| self.now());
        let key = match &options.idempotency_key {
            Some(key) => IdempotencyKey::Given(key.clone()),
            None => self.mint_key(now),
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

    /// Appends what a user said and what the assistant answered, both or neither.
    ///
    /// # Errors
    /// As [`Memory::append_all`].
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

    /// Commits a batch with the title and the trimming that are due.
    pub(crate) async fn commit_by_policy(
        &self,
        scope: &Scope,
        thread: ThreadId,
        mut batch: Batch,
        retention: Option<Retention>,
        now: Timestamp,
    ) -> Result<Appended> {
        let retention = retention.filter(|_| !batch.append.is_empty());
        let asked = batch.expected;
        let mut looked_at = None;
        let mut summary_attempts = SUMMARY_ATTEMPTS;
        let mut title_attempts = if self.may_title(scope, thread, &batch) { TITLE_ATTEMPTS } else { 0 };
        let appended = loop {
            if title_attempts > 0 || retention.is_some() {
                let found = self.get_thread(scope, thread).await?;
                looked_at = Some(found.positions.seq);
                if let Some(retention) = &retention {
                    self.add_retention(scope, &found, retention, &mut batch, now).await?;
                }
                if title_attempts > 0 {
                    self.add_title(scope, &found, &mut batch);
                }
            }
            self.scrub_what_goes(scope, thread, &mut batch).await?;
            match self.commit_repeatedly(scope, thread, &batch, now).await {
                Err(error) if is_about_summary(&error) && summary_attempts > 0 => summary_attempts -= 1,
                // The title was decided on a thread that has changed since: decide again, and give up on the title
                // rather than on the message.
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. }))) if batch.expected != asked => {
                    batch.expected = asked;
                    batch.patch.title = None;
                    title_attempts -= 1;
                }
                result => break result?,
            }
        };
        if matches!(batch.patch.title, Some(Some(_))) {
            self.settled_titles().insert(scope, thread);
        }
        if let (Some(retention), Some(looked_at)) = (retention, looked_at)
            && appended.first_seq != looked_at + 1
            && !appended.replayed
        {
            // Others appended between the look and the commit, so too much is kept. The messages are stored whatever
            // becomes of the trimming, and the next append makes up for it.
            drop(self.retain(scope, thread, &retention).await);
        }
        Ok(appended)
    }

    /// Commits a batch as it is, and repeats it with the same key while the store fails in passing.
    pub(crate) async fn commit_repeatedly(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<Appended> {
        let under_way = self.feeds().begin(scope, thread, batch);
        let attempted = self.commit_past_tails(scope, thread, batch, now).await;
        if let Some(under_way) = under_way {
            under_way.end(batch, &attempted, now);
        }
        let outcome = attempted.result?;
        let is_minted = matches!(batch.key, IdempotencyKey::Minted(_));
        if !outcome.replayed || is_minted {
            return Ok(placed_in_order(outcome, batch));
        }
        self.replayed(scope, thread, batch, outcome, attempted.may_have_applied_before).await
    }

    pub(crate) async fn commit_past_tails(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Attempted<CommitOutcome> {
        let Some(tails) = self.tails() else {
            return repeat(self.runtime(), || self.store().commit(scope, thread, batch.clone(), now)).await;
        };
        let key = (scope.tenant_id().clone(), thread);
        tails.before_commit(&key, batch);
        let attempted = repeat(self.runtime(), || self.store().commit(scope, thread, batch.clone(), now)).await;
        tails.after_commit(&key, batch, attempted.result.as_ref().ok());
        attempted
    }

    pub(crate) fn minted_batch(&self, now: Timestamp) -> Batch {
        Batch::new(self.mint_key(now), fingerprint::MINTED)
    }

    fn may_title(&self, scope: &Scope, thread: ThreadId, batch: &Batch) -> bool {
        self.options().titles == Titles::FromFirstUserMessage
            && batch.patch.title.is_none()
            && !self.settled_titles().holds(scope, thread)
            && batch.append.iter().any(|message| title_from(&message.content).is_some())
    }

    /// Remembers that a thread that was read needs no title.
    pub(crate) fn note_title(&self, scope: &Scope, thread: &Thread) {
        if thread.title.is_some() && !self.settled_titles().holds(scope, thread.id) {
            self.settled_titles().insert(scope, thread.id);
        }
    }

    fn add_title(&self, scope: &Scope, thread: &Thread, batch: &mut Batch) {
        if thread.title.is_some() || scope.access(&thread.owner) != Access::Full {
            self.settled_titles().insert(scope, thread.id);
            return;
        }
        // Where the caller's own expectation fails the store has to say so, or to answer a repetition.
        if batch.expected.is_none_or(|expected| expected.check(thread.positions).is_ok()) {
            batch.expected = Some(Expected::Change(thread.positions.tagged()));
            batch.patch.title = Some(title_from_first(batch.append.iter().map(|message| &message.content)));
        }
    }

    /// Tells what an earlier request with the same key appended.
    async fn replayed(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        outcome: CommitOutcome,
        may_be_ours: bool,
    ) -> Result<Appended> {
        let names: Vec<_> = (outcome.first_seq..outcome.first_seq + outcome.count).map(MessageName::Seq).collect();
        let found = self.find_messages(scope, thread, &names).await?;
        let messages: Vec<_> = found.into_iter().map(|message| Placed { seq: message.seq, id: message.id }).collect();
        let ours = placed_in_order(outcome, batch);
        if may_be_ours && ours.messages == messages {
            return Ok(ours);
        }
        let CommitOutcome { change, tag, first_seq, count, .. } = outcome;
        Ok(Appended { change, tag, first_seq, count, messages, replayed: true })
    }
}

fn placed_in_order(outcome: CommitOutcome, batch: &Batch) -> Appended {
    let CommitOutcome { change, tag, first_seq, count, .. } = outcome;
    let placed = batch.append.iter().zip(first_seq..).map(|(message, seq)| Placed { seq, id: message.id });
    Appended { change, tag, first_seq, count, messages: placed.collect(), replayed: false }
}
