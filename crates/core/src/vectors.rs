//! What a commit answers when several things stand in its way: threads, and for each of them batches with every failure that
//! the contract knows ([`crate::Store::commit`]) and with every pair of failures.
//!
//! The answers follow from the order of the contract alone, not from [`crate::decide`]. The suite of the stores commits every
//! batch to every store, so that a store whose decision runs elsewhere keeps the same order as one that calls `decide`.

mod failures;
mod prepared;

use crate::{Batch, ChangeTag, CommitOutcome, Dump, Positions, Result, Scope, TenantId, ThreadId, Timestamp, limits};

use self::failures::{FAILURES, Failure};

/// A thread, to be restored, and what batches answer on it.
#[derive(Debug)]
pub struct CommitVectors {
    /// The tenant, which also owns the thread.
    pub tenant: TenantId,
    /// The thread's id.
    pub thread: ThreadId,
    /// The whole thread, in one chunk.
    pub dump: Dump,
    /// When all commits are made.
    pub now: Timestamp,
    /// Batches that are refused, or answered with an earlier commit's answer. None of them changes anything.
    pub not_applied: Vec<CommitVector>,
    /// A batch that nothing stands in the way of. It may change the thread, so it comes last.
    pub accepted: CommitVector,
}

/// A batch and its answer.
#[derive(Debug)]
pub struct CommitVector {
    /// What stands in its way.
    pub name: String,
    /// Who commits it.
    pub scope: Scope,
    /// What is committed.
    pub batch: Batch,
    /// Where the thread stands.
    positions: Positions,
    /// What every store answers.
    pub answer: Result<CommitOutcome>,
}

/// Makes the vectors, the same ones each time: for a thread with few positions left for messages, and for one with none left
/// for another change.
#[must_use]
pub fn commit_vectors() -> [CommitVectors; 2] {
    let first_seq = |seq: u64| seq + 1 - prepared::ENTRIES;
    let seq = limits::LAST_POSITION - prepared::FREE;
    let tag = Some(ChangeTag::of(&prepared::used_key()));
    let few_left = Positions { seq, change: 9, first_seq: first_seq(seq), tag };
    let mut filling = prepared::plain("nothing", few_left);
    filling.batch.append.extend((0..prepared::FREE - 1).map(|number| prepared::message(40 + u128::from(number))));
    let made = Some(ChangeTag::of(&filling.batch.key));
    let outcome = CommitOutcome { change: 10, tag: made, first_seq: seq + 1, count: prepared::FREE, replayed: false };
    filling.answer = Ok(outcome);

    let none_left = Positions { seq: 20, change: limits::LAST_POSITION, first_seq: first_seq(20), tag };
    let mut empty = prepared::plain("nothing", none_left);
    empty.batch = Batch::new(empty.batch.key, empty.batch.fingerprint);
    empty.answer = Ok(CommitOutcome { change: none_left.change, tag, first_seq: 21, count: 0, replayed: false });
    [vectors(1, few_left, filling), vectors(2, none_left, empty)]
}

fn vectors(number: u128, positions: Positions, accepted: CommitVector) -> CommitVectors {
    let mut not_applied = Vec::new();
    for (place, failure) in FAILURES.iter().enumerate() {
        not_applied.push(vector(positions, &[failure]));
        let later = FAILURES[place + 1..].iter().filter(|later| failure.part.is_compatible_with(later.part));
        not_applied.extend(later.map(|later| vector(positions, &[failure, later])));
    }
    CommitVectors {
        tenant: prepared::tenant(),
        thread: prepared::thread(number),
        dump: prepared::dump(positions),
        now: prepared::now(),
        not_applied,
        accepted,
    }
}

/// A batch with some failures, the first of which decides.
fn vector(positions: Positions, failures: &[&Failure]) -> CommitVector {
    let names: Vec<&str> = failures.iter().map(|failure| failure.name).collect();
    let mut vector = prepared::plain(&names.join(", and "), positions);
    failures.iter().for_each(|failure| (failure.apply)(&mut vector));
    vector.answer = failures.first().map_or(vector.answer, |failure| (failure.answer)(positions));
    vector
}
