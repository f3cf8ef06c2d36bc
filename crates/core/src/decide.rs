//! What a commit does: decided once, for every store that decides in Rust.
//!
//! [`decide`] asks a store for what it needs to know ([`Facts`]), in the order of the contract ([`crate::Store::commit`]),
//! and never asks for what an earlier check has settled. It answers with a [`Plan`]: every position, checksum and effect is in
//! it, and the store only writes. A store whose decision runs elsewhere, such as PostgreSQL's function, is held to the same
//! order by [`crate::vectors`].

use std::collections::BTreeSet;
use std::ops::Range;

use crate::{
    Access, Batch, ChangeTag, Checksum, CommitOutcome, Conflict, Effect, EncodedBatch, Fingerprint,
    IDEMPOTENCY_WINDOW_MS, IdempotencyKey, Kind, MessageId, Positions, RecordName, StoreError, Tagged, ThreadPatch,
    Timestamp, codec, limits,
};

/// What a store is asked about the one thread that a commit changes. All answers must be of one instant: that of the write.
pub trait Facts {
    /// The store's own error, which can hold a refusal.
    type Error: From<StoreError>;

    /// The newest commit with this key, however old.
    fn record(&mut self, key: &IdempotencyKey) -> Result<Option<CommitRecord>, Self::Error>;

    /// The version of one of the thread's records; `None` where there is none, or none any more at the commit's `now`.
    fn record_version(&mut self, name: &RecordName) -> Result<Option<Tagged>, Self::Error>;

    /// Where the message or tombstone with this id stands, trimmed or not, if its row is still there.
    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>, Self::Error>;

    /// Where the message with this external id stands, trimmed or not, if its row is still there.
    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>, Self::Error>;

    /// A message, trimmed or not, if its row is still there. `None` for a tombstone.
    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>, Self::Error>;

    /// How many messages stand in a range of positions, tombstones left out.
    fn count_messages(&mut self, seqs: Range<u64>) -> Result<u64, Self::Error>;

    /// The thread's title, metadata and state as stored ([`codec::encode_thread`]).
    fn words(&mut self) -> Result<String, Self::Error>;
}

/// A commit that was made before, as its idempotency record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitRecord {
    /// When it was made.
    pub at: Timestamp,
    /// What its key stands for.
    pub fingerprint: Fingerprint,
    /// The change position that it made.
    pub change: u64,
    /// The position of the first message that it appended.
    pub first_seq: u64,
    /// How many it appended.
    pub count: u64,
}

/// A stored message, as far as a commit needs it that replaces or erases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessageFacts {
    /// Its position.
    pub seq: u64,
    /// Its instant in microseconds, as stored: an erasure does not need it to be in range.
    pub created_at_micros: i64,
    /// What its source calls it.
    pub external_id: Option<String>,
    /// Its content as stored, for taking it out of an index.
    pub body: String,
}

/// The thread that a commit is to change, in the scope of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitTarget {
    /// What the caller may do; never [`Access::None`], which is answered with `NotFound` before.
    pub access: Access,
    /// Where the thread stands.
    pub positions: Positions,
}

/// What is to be done with a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing: this is the answer, be it that of an earlier commit or that of an empty batch.
    Answer(CommitOutcome),
    /// To write this.
    Write(Box<Plan>),
}

/// Everything that a commit writes beside what its batch holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The answer once it is written.
    pub outcome: CommitOutcome,
    /// Where the thread stands then. Appended messages get the positions from `outcome.first_seq` on.
    pub positions: Positions,
    /// Trimmed rows that are still there and hold a name that an appended message takes: to be removed first.
    pub stale: BTreeSet<u64>,
    /// For each replacement of the batch, in its order.
    pub replaced: Vec<Replaced>,
    /// For each erasure of the batch, in its order.
    pub erased: Vec<StoredMessageFacts>,
    /// The new beginning of the thread, where it moves.
    pub trim_below: Option<u64>,
    /// How many messages the thread loses by erasing and trimming, those left out that it gains at the same time.
    pub removed: u64,
    /// The thread's new words as stored, where the batch changes them.
    pub words: Option<String>,
    /// The entry of the change log, in its order: all effects but [`Effect::Appended`].
    pub effects: Vec<Effect>,
}

/// A message that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// What it was.
    pub message: StoredMessageFacts,
    /// The checksum of what it becomes.
    pub checksum: Checksum,
}

/// Decides what a batch does to a thread at an instant. `encoded` is what [`Batch::encode`] gave.
///
/// # Errors
/// Whatever [`crate::Store::commit`] refuses a batch with, but for the checks of [`Batch::encode`] and `NotFound` of the thread,
/// which come before. And what the facts fail with.
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
    /// Where the thread stands before.
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
        let stale = self.check_names()?;
        let replaced = self.replaced()?;
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
        let words = self.patch_thread_body()?;
        let removed = self.count_removed(&erased, trim_below)?;
        let effects = self.effects(&replaced, &erased, trim_below)?;
        let outcome = CommitOutcome { change: positions.change, tag: positions.tag, ..outcome };
        let plan = Plan { outcome, positions, stale, replaced, erased, trim_below, removed, words, effects };
        Ok(Decision::Write(Box::new(plan)))
    }

    fn find_replay(&mut self) -> Result<Option<CommitOutcome>, F::Error> {
        let record = self.facts.record(&self.batch.key)?;
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

    /// Checks that no appended message takes a name of another one. A trimmed message may keep its row for a while; its names
    /// are free all the same.
    fn check_names(&mut self) -> Result<BTreeSet<u64>, F::Error> {
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

    fn replaced(&mut self) -> Result<Vec<Replaced>, F::Error> {
        let mut replaced = Vec::with_capacity(self.batch.replace.len());
        for (replacement, body) in self.batch.replace.iter().zip(&self.encoded.replace) {
            let message = get_message(self.facts, self.positions.first_seq, replacement.id)?;
            let created_at = Timestamp::from_micros(message.created_at_micros)
                .map_err(|_| StoreError::corrupt("instant", "outside its range"))?;
            let checksum = replacement.checksum(created_at, message.external_id.as_deref(), body);
            replaced.push(Replaced { message, checksum });
        }
        Ok(replaced)
    }

    /// Patched before anything is written: the old words may turn out not to decode.
    fn patch_thread_body(&mut self) -> Result<Option<String>, F::Error> {
        if !self.batch.patch.changes_words() {
            return Ok(None);
        }
        Ok(Some(patch_thread_body(&self.facts.words()?, &self.batch.patch)?))
    }

    fn count_removed(&mut self, erased: &[StoredMessageFacts], trim_below: Option<u64>) -> Result<u64, F::Error> {
        let Some(below) = trim_below else { return Ok(erased.len() as u64) };
        let trimmed = self.facts.count_messages(self.positions.first_seq..below.min(self.positions.seq + 1))?;
        let erased = erased.iter().filter(|message| message.seq >= below).count() as u64;
        // What is appended and trimmed at once is not there yet.
        Ok(trimmed + erased + below.saturating_sub(self.positions.seq + 1))
    }

    fn effects(
        &mut self,
        replaced: &[Replaced],
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

/// A thread's words with a patch applied, as stored.
///
/// # Errors
/// As [`codec::decode_thread`].
pub fn patch_thread_body(body: &str, patch: &ThreadPatch) -> Result<String, StoreError> {
    let mut words = codec::decode_thread(body)?;
    words.apply(patch.clone());
    Ok(codec::encode_thread(&words))
}

#[cfg(test)]
mod tests;
