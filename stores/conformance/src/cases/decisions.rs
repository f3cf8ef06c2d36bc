use threadkeep_core::vectors::{CommitVectors, commit_vectors};
use threadkeep_core::{
    Batch, CommitOutcome, Dump, DumpedThread, Kind, MessageQuery, MessageRef, Positions, Scope, StoreError, limits,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{appending, assert_error, batch, tag_of, thread_id, user_message};
use crate::run::TestEnv;

/// Restores the thread of the given test vectors.
async fn restore(client: &Client, vectors: &CommitVectors) -> Conversation {
    client.restore_thread(&vectors.tenant, vectors.thread, &vectors.dump).await.expect("restoring works");
    Conversation { client: client.clone(), scope: Scope::Tenant(vectors.tenant.clone()), id: vectors.thread }
}

pub(super) async fn the_first_failed_check_determines_the_error(env: &TestEnv<'_>) {
    let store = env.open().await;
    for vectors in commit_vectors() {
        let thread = restore(&store.client, &vectors).await;
        let before = thread.dump(1000).await;
        for vector in &vectors.not_applied {
            let answer = store.client.commit(&vector.scope, vectors.thread, &vector.batch, vectors.now).await;
            assert_eq!(format!("{answer:?}"), format!("{:?}", vector.expected_result), "{}", vector.name);
        }
        assert_eq!(thread.dump(1000).await, before, "a rejected commit had effects");
        let outcome = thread.commit(&vectors.accepted.batch, vectors.now).await;
        assert!(!outcome.replayed || env.has_faults(), "a first commit is not a replay");
        let expected = vectors.accepted.expected_result.as_ref().expect("the vector is accepted");
        assert_eq!(CommitOutcome { replayed: false, ..outcome }, *expected);
    }
}

pub(super) async fn positions_have_a_maximum(env: &TestEnv<'_>) {
    const LAST: u64 = limits::LAST_POSITION;
    let store = env.open().await;
    let client = &store.client;
    let [few_left, none_left] = commit_vectors();
    let now = few_left.now;
    let thread = restore(client, &few_left).await;
    thread.commit(&few_left.accepted.batch, now).await;
    let full = thread.try_commit(&appending(vec![user_message(1, "one more")]), now).await;
    assert_error!(full, StoreError::LimitExceeded { max: LAST, actual, .. } if actual == LAST + 1);
    assert_eq!(thread.seqs(&MessageQuery::newest(2), now).await, [LAST - 1, LAST]);
    let found = client.find_messages(&thread.scope, thread.id, &[MessageRef::Seq(LAST)], now).await;
    assert_eq!(found.expect("reading works").len(), 1);
    // Commits without messages are still possible, and a trim can remove all messages.
    let trim = Batch { trim_below: Some(LAST + 1), ..batch("trim") };
    let outcome = thread.commit(&trim, now).await;
    assert_eq!(outcome.change, 11);
    let trimmed = thread.thread(now).await;
    assert_eq!(trimmed.positions, Positions { seq: LAST, change: 11, first_seq: LAST + 1, tag: tag_of(&trim) });
    assert_eq!((trimmed.message_count, thread.messages(now).await), (0, Vec::new()));

    let thread = restore(client, &none_left).await;
    let empty = thread.try_commit(&batch("nothing"), now).await.expect("an empty batch makes no change");
    assert_eq!(empty.change, LAST);
    let full = thread.try_commit(&appending(vec![user_message(1, "one more")]), now).await;
    assert_error!(full, StoreError::LimitExceeded { max: LAST, actual, .. } if actual == LAST + 1);

    let Some(row) = few_left.dump.thread.clone() else { panic!("a dump without a thread") };
    for positions in [Positions { seq: LAST + 1, ..row.positions }, Positions { change: LAST + 1, ..row.positions }] {
        let dump = Dump { thread: Some(DumpedThread { positions, ..row.clone() }), ..Dump::default() };
        let beyond = client.restore_thread(&few_left.tenant, thread_id(9), &dump).await;
        assert_error!(beyond, StoreError::LimitExceeded { max: LAST, actual, .. } if actual == LAST + 1);
    }
    let dumped = client.dump_thread(&few_left.tenant, thread_id(9), None, 1).await;
    assert_error!(dumped, StoreError::NotFound(Kind::Thread));
}
