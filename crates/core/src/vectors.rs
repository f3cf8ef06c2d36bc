//! Test vectors for commits: threads, and batches for each thread with their expected results. The batches cover every failure in
//! the contract of [`crate::Store::commit`], and every pair of failures.
//!
//! The expected results follow from the order of checks in the contract, not from [`crate::decide`]. The conformance tests commit
//! every batch to every store, which ensures that stores with their own logic check in the same order as those that call `decide`.

mod failures;
mod prepared;

use crate::{Batch, ChangeTag, CommitOutcome, Dump, Positions, Result, Scope, TenantId, ThreadId, Timestamp, limits};

use self::failures::{FAILURES, Failure};

/// A thread to restore, and batches to commit to it with their expected results.
#[derive(Debug)]
pub struct CommitVectors {
    /// The tenant, which also owns the thread.
    pub tenant: TenantId,
    /// The thread's id.
    pub thread: ThreadId,
    /// The whole thread, in one chunk.
    pub dump: Dump,
    /// The `now` of all commits.
    pub now: Timestamp,
    /// Batches that fail, or return the outcome of an earlier commit. None of them changes the thread.
    pub not_applied: Vec<CommitVector>,
    /// A batch that succeeds. It may change the thread, so commit it last.
    pub accepted: CommitVector,
}

/// A batch and its expected result.
#[derive(Debug)]
pub struct CommitVector {
    /// Describes the failures in the batch.
    pub name: String,
    /// The scope of the commit.
    pub scope: Scope,
    /// The batch to commit.
    pub batch: Batch,
    /// The positions of the thread before the commit.
    positions: Positions,
    /// The expected result.
    pub expected_result: Result<CommitOutcome>,
}

/// Creates the same vectors in every call: for a thread with few positions left for messages, and for a thread with no change number
/// left.
#[must_use]
pub fn commit_vectors() -> [CommitVectors; 2] {
    let first_seq = |seq: u64| seq + 1 - prepared::ENTRIES;
    let seq = limits::LAST_POSITION - prepared::FREE_POSITIONS;
    let tag = Some(ChangeTag::of(&prepared::used_key()));
    let few_positions_left = Positions { seq, change: 9, first_seq: first_seq(seq), tag };
    let mut last_append = prepared::valid_commit("nothing", few_positions_left);
    last_append
        .batch
        .append
        .extend((0..prepared::FREE_POSITIONS - 1).map(|number| prepared::message(40 + u128::from(number))));
    let new_tag = Some(ChangeTag::of(&last_append.batch.key));
    let outcome = CommitOutcome {
        change: 10,
        tag: new_tag,
        first_seq: seq + 1,
        count: prepared::FREE_POSITIONS,
        replayed: false,
    };
    last_append.expected_result = Ok(outcome);

    let no_changes_left = Positions { seq: 20, change: limits::LAST_POSITION, first_seq: first_seq(20), tag };
    let mut empty = prepared::valid_commit("nothing", no_changes_left);
    empty.batch = Batch::new(empty.batch.key, empty.batch.fingerprint);
    empty.expected_result =
        Ok(CommitOutcome { change: no_changes_left.change, tag, first_seq: 21, count: 0, replayed: false });
    [create_vectors(1, few_positions_left, last_append), create_vectors(2, no_changes_left, empty)]
}

fn create_vectors(thread_number: u128, positions: Positions, accepted: CommitVector) -> CommitVectors {
    let mut not_applied = Vec::new();
    for (index, failure) in FAILURES.iter().enumerate() {
        not_applied.push(combine_failures(positions, &[failure]));
        let later = FAILURES[index + 1..].iter().filter(|later| failure.part.is_compatible_with(later.part));
        not_applied.extend(later.map(|later| combine_failures(positions, &[failure, later])));
    }
    CommitVectors {
        tenant: prepared::tenant(),
        thread: prepared::thread(thread_number),
        dump: prepared::dump(positions),
        now: prepared::now(),
        not_applied,
        accepted,
    }
}

/// Creates a batch with these failures. The first of them determines the expected result.
fn combine_failures(positions: Positions, failures: &[&Failure]) -> CommitVector {
    let names: Vec<&str> = failures.iter().map(|failure| failure.name).collect();
    let mut vector = prepared::valid_commit(&names.join(", and "), positions);
    failures.iter().for_each(|failure| (failure.apply)(&mut vector));
    vector.expected_result =
        failures.first().map_or(vector.expected_result, |failure| (failure.expected_result)(positions));
    vector
}
