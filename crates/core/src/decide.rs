//! The commit logic, shared by all stores that check commits in Rust.
//!
//! [`decide`] performs the checks of the contract ([`crate::Store::commit`]) in the order of the contract. It queries the store
//! through [`Facts`], and makes no more queries after the first failed check. It returns a [`Plan`] with every position, checksum and
//! effect, which the store only has to write. For stores with their own logic, such as a function in PostgreSQL, the tests with
//! [`crate::vectors`] ensure the same order.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::{
    Access, Batch, ChangeTag, Checksum, CommitOutcome, Conflict, Effect, EncodedBatch, Fingerprint,
    IDEMPOTENCY_WINDOW_MS, IdempotencyKey, Kind, MessageId, Positions, RecordName, StoreError, TaggedNumber,
    ThreadPatch, Timestamp, codec, limits,
};

/// Stored facts about the thread that a commit changes. All of them must be read in the transaction that writes the commit.
pub trait Facts {
    /// The error of the store, which can contain a [`StoreError`].
    type Error: From<StoreError>;

    /// Returns the newest commit with this key, whatever its age.
    fn commit_record(&mut self, key: &IdempotencyKey) -> Result<Option<CommitRecord>, Self::Error>;

    /// Returns the version of a record of the thread; `None` if it does not exist or has expired at the `now` of the commit.
    fn record_version(&mut self, name: &RecordName) -> Result<Option<TaggedNumber>, Self::Error>;

    /// Returns the position of the message or tombstone with this id, trimmed or not, if its row still exists.
    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>, Self::Error>;

    /// Returns the position of the message with this external id, trimmed or not, if its row still exists.
    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>, Self::Error>;

    /// Returns a message, trimmed or not, if its row still exists. `None` for a tombstone.
    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>, Self::Error>;

    /// Counts the messages in a range of positions, without tombstones.
    fn count_messages(&mut self, seqs: Range<u64>) -> Result<u64, Self::Error>;

    /// Returns the title, metadata and state of the thread as stored ([`codec::encode_thread`]).
    fn thread_body(&mut self) -> Result<String, Self::Error>;
}

/// The idempotency record of an earlier commit, which identifies the request and contains its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitRecord {
    /// The `now` of the commit.
    pub at: Timestamp,
    /// The fingerprint of its request.
    pub fingerprint: Fingerprint,
    /// The change number of the commit.
    pub change: u64,
    /// The position of the first message that the commit appended; the next free position at the time if it appended none.
    pub first_seq: u64,
    /// The number of appended messages.
    pub count: u64,
}

/// The fields of a stored message that are needed to replace or erase the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessageFacts {
    /// Its position.
    pub seq: u64,
    /// Its `created_at` in microseconds, as stored. It is not checked, because a message with an invalid time can still be erased.
    pub created_at_micros: i64,
    /// Its external id.
    pub external_id: Option<String>,
    /// Its content as stored, for removing it from an index.
    pub body: String,
}

/// The thread that a commit changes, in the scope of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitTarget {
    /// The access of the caller. Never [`Access::None`]: in that case, stores return `NotFound` without calling [`decide`].
    pub access: Access,
    /// The current positions of the thread.
    pub positions: Positions,
}

/// What the store has to do with a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Write nothing and return this outcome: that of an earlier commit, or of an empty batch.
    Answer(CommitOutcome),
    /// Write what the plan requires.
    Write(Box<Plan>),
}

/// What a commit writes in addition to the contents of its batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The outcome to return after writing.
    pub outcome: CommitOutcome,
    /// The positions of the thread after the commit. Appended messages get consecutive positions from `outcome.first_seq`.
    pub positions: Positions,
    /// Positions of trimmed messages whose rows still exist and have the id or external id of an appended message. The store has
    /// to delete these rows before it appends.
    pub stale: BTreeSet<u64>,
    /// The replaced messages, in the order of the batch's replacements.
    pub replaced: Vec<ReplacedMessage>,
    /// The erased messages, in the order of the batch's erasures.
    pub erased: Vec<StoredMessageFacts>,
    /// The new `first_seq` of the thread; `None` if it does not change.
    pub trim_below: Option<u64>,
    /// How many messages the commit removes by erasing and trimming. Messages that it both appends and trims are included.
    pub removed: u64,
    /// The new title, metadata and state as stored, if the batch changes them.
    pub thread_body: Option<String>,
    /// The effects for the change log, in the order of [`crate::Change::effects`], except [`Effect::Appended`].
    pub effects: Vec<Effect>,
}

/// A stored message whose content is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedMessage {
    /// The message before the replacement.
    pub message: StoredMessageFacts,
    /// The checksum after the replacement.
    pub checksum: Checksum,
}

/// Decides what a batch does to a thread. `encoded` is the result of [`Batch::encode`].
///
/// # Errors
/// The errors of [`crate::Store::commit`], except those of [`Batch::encode`] and `NotFound` for the thread, which the caller has
/// already checked. Also errors returned by `facts`.
pub fn decide<F: Facts>(
    facts: &mut F,
    target: CommitTarget,
    batch: &Batch,
    encoded: &EncodedBatch,
    now: Timestamp,
) -> Result<Decision, F::Error> {
    if target.access < Access::Full && !batch.is_append_only() {
        return Err(StoreError::Denied("changing a shared thread other than by adding messages").into());
    }
    let commit = Commit { facts, positions: target.positions, batch, encoded, now };
    commit.decide()
}

struct Commit<'a, F> {
    facts: &'a mut F,
    /// The positions of the thread before the commit.
    positions: Positions,
    batch: &'a Batch,
    encoded: &'a EncodedBatch,
    now: Timestamp,
}

impl<F: Facts> Commit<'_, F> {
    fn decide(mut self) -> Result<Decision, F::Error> {
        if let Some(outcome) = self.find_replay()? {
            return Ok(Decision::Answer(outcome));
        }
        if let Some(expected) = self.batch.expected {
            expected.check(self.positions)?;
        }
        for condition in &self.batch.require {
            condition.check(self.facts.record_version(&condition.name)?)?;
        }
        let Positions { seq, change, first_seq, tag } = self.positions;
        let count = self.batch.append.len() as u64;
        let outcome = CommitOutcome { change, tag, first_seq: seq + 1, count, replayed: false };
        if self.batch.is_empty() {
            return Ok(Decision::Answer(outcome));
        }
        let stale = self.check_ids()?;
        let replaced = self.find_replaced()?;
        let erased = self.batch.erase.iter().map(|id| get_message(self.facts, first_seq, *id));
        let erased = erased.collect::<Result<Vec<_>, _>>()?;
        let end = seq + count;
        if self.batch.trim_below.is_some_and(|below| below > end + 1) {
            return Err(StoreError::invalid("trim_below", "beyond the end of the thread").into());
        }
        let trim_below = self.batch.trim_below.filter(|below| *below > first_seq);
        let first_seq = trim_below.unwrap_or(first_seq);
        let positions = Positions { seq: end, change: change + 1, first_seq, tag: Some(self.tag()) };
        limits::check_positions(positions)?;
        let thread_body = self.patch_body()?;
        let removed = self.count_removed(&erased, trim_below)?;
        let effects = self.list_effects(&replaced, &erased, trim_below)?;
        let outcome = CommitOutcome { change: positions.change, tag: positions.tag, ..outcome };
        let plan = Plan { outcome, positions, stale, replaced, erased, trim_below, removed, thread_body, effects };
        Ok(Decision::Write(Box::new(plan)))
    }

    fn find_replay(&mut self) -> Result<Option<CommitOutcome>, F::Error> {
        let record = self.facts.commit_record(&self.batch.key)?;
        let Some(record) = record.filter(|record| record.at.plus_ms(IDEMPOTENCY_WINDOW_MS) > self.now) else {
            return Ok(None);
        };
        if record.fingerprint != self.batch.fingerprint {
            return Err(StoreError::from(Conflict::IdempotencyKey).into());
        }
        let CommitRecord { change, first_seq, count, .. } = record;
        Ok(Some(CommitOutcome { change, tag: Some(self.tag()), first_seq, count, replayed: true }))
    }

    fn tag(&self) -> ChangeTag {
        ChangeTag::of(&self.batch.key)
    }

    /// Checks that the ids and external ids of appended messages are unused. Those of trimmed messages can be used again, even while
    /// the rows of the trimmed messages still exist. Returns the positions of these rows.
    fn check_ids(&mut self) -> Result<BTreeSet<u64>, F::Error> {
        let first_seq = self.positions.first_seq;
        let mut stale = BTreeSet::new();
        for message in &self.batch.append {
            match self.facts.seq_of_id(message.id)? {
                Some(seq) if seq >= first_seq => {
                    return Err(StoreError::from(Conflict::MessageId { id: message.id, seq }).into());
                }
                trimmed => stale.extend(trimmed),
            }
            let Some(external_id) = &message.external_id else { continue };
            match self.facts.seq_of_external_id(external_id)? {
                Some(seq) if seq >= first_seq => {
                    return Err(StoreError::from(Conflict::ExternalId { seq }).into());
                }
                trimmed => stale.extend(trimmed),
            }
        }
        Ok(stale)
    }

    fn find_replaced(&mut self) -> Result<Vec<ReplacedMessage>, F::Error> {
        let mut replaced = Vec::with_capacity(self.batch.replace.len());
        for (replacement, body) in self.batch.replace.iter().zip(&self.encoded.replace) {
            let message = get_message(self.facts, self.positions.first_seq, replacement.id)?;
            let created_at = Timestamp::from_micros(message.created_at_micros)
                .map_err(|_| StoreError::corrupt("created_at", "out of range"))?;
            let checksum = replacement.checksum(created_at, message.external_id.as_deref(), body);
            replaced.push(ReplacedMessage { message, checksum });
        }
        Ok(replaced)
    }

    fn patch_body(&mut self) -> Result<Option<String>, F::Error> {
        if !self.batch.patch.changes_thread_body() {
            return Ok(None);
        }
        Ok(Some(patch_thread_body(&self.facts.thread_body()?, &self.batch.patch)?))
    }

    fn count_removed(&mut self, erased: &[StoredMessageFacts], trim_below: Option<u64>) -> Result<u64, F::Error> {
        let Some(below) = trim_below else { return Ok(erased.len() as u64) };
        let trimmed = self.facts.count_messages(self.positions.first_seq..below.min(self.positions.seq + 1))?;
        let erased = erased.iter().filter(|message| message.seq >= below).count() as u64;
        // Messages that this commit appends and trims are not stored yet, so the store cannot count them.
        Ok(trimmed + erased + below.saturating_sub(self.positions.seq + 1))
    }

    fn list_effects(
        &mut self,
        replaced: &[ReplacedMessage],
        erased: &[StoredMessageFacts],
        trim_below: Option<u64>,
    ) -> Result<Vec<Effect>, F::Error> {
        let Batch { replace, erase, put, delete, patch, .. } = self.batch;
        let mut effects = Vec::new();
        let pairs = replace.iter().zip(replaced);
        effects.extend(pairs.map(|(new, old)| Effect::Replaced { seq: old.message.seq, id: new.id }));
        effects.extend(erase.iter().zip(erased).map(|(id, old)| Effect::Erased { seq: old.seq, id: *id }));
        effects.extend(trim_below.map(|first_seq| Effect::Trimmed { first_seq }));
        let version = self.positions.change + 1;
        effects.extend(put.iter().map(|put| Effect::RecordPut { name: put.name.clone(), version }));
        for name in delete {
            if self.facts.record_version(name)?.is_some() {
                effects.push(Effect::RecordDeleted { name: name.clone() });
            }
        }
        effects.extend((!patch.is_empty()).then_some(Effect::Patched));
        Ok(effects)
    }
}

fn get_message<F: Facts>(facts: &mut F, first_seq: u64, id: MessageId) -> Result<StoredMessageFacts, F::Error> {
    let message = facts.message(id)?.filter(|message| message.seq >= first_seq);
    message.ok_or_else(|| StoreError::NotFound(Kind::Message).into())
}

/// Applies a patch to the stored title, metadata and state of a thread, and returns them as stored.
///
/// # Errors
/// The same as [`codec::decode_thread`].
pub fn patch_thread_body(body: &str, patch: &ThreadPatch) -> Result<String, StoreError> {
    let mut attributes = codec::decode_thread(body)?;
    attributes.apply(patch.clone());
    Ok(codec::encode_thread(&attributes))
}

#[cfg(test)]
mod tests;
