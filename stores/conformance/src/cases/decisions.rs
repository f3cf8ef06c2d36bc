use threadkeep_core::vectors::{CommitVectors, commit_vectors};
use threadkeep_core::{
    Batch, CommitOutcome, Dump, DumpedThread, Kind, MessageName, MessageQuery, Positions, Scope, StoreError, limits,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{adds, assert_error, batch, says, tag_of, thread_id};
use crate::run::Stage;

/// The thread of some vectors, restored.
async fn restored(client: &Client, vectors: &CommitVectors) -> Conversation {
    client.restore_thread(&vectors.tenant, vectors.thread, &vectors.dump).await.expect("the thread restores");
    Conversation { client: client.clone(), scope: Scope::Tenant(vectors.tenant.clone()), id: vectors.thread }
}

pub(super) async fn the_first_failure_in_order_decides(stage: &Stage<'_>) {
    let subject = stage.open().await;
    for vectors in commit_vectors() {
        let thread = restored(&subject.client, &vectors).await;
        let before = thread.dump(1000).await;
        for vector in &vectors.unmet {
            let answer = subject.client.commit(&vector.scope, vectors.thread, &vector.batch, vectors.now).await;
            assert_eq!(format!("{answer:?}"), format!("{:?}", vector.answer), "{}", vector.name);
        }
        assert_eq!(thread.dump(1000).await, before, "what was refused left something");
        let outcome = thread.commit(&vectors.accepted.batch, vectors.now).await;
        assert!(!outcome.replayed || stage.is_weak(), "a first commit is no replay");
        let expected = vectors.accepted.answer.as_ref().expect("nothing stands in its way");
        assert_eq!(CommitOutcome { replayed: false, ..outcome }, *expected);
    }
}

pub(super) async fn positions_end_at_the_same_number(stage: &Stage<'_>) {
    const LAST: u64 = limits::LAST_POSITION;
    let subject = stage.open().await;
    let client = &subject.client;
    let [few_left, none_left] = commit_vectors();
    let now = few_left.now;
    let thread = restored(client, &few_left).await;
    thread.commit(&few_left.accepted.batch, now).await;
    let full = thread.try_commit(&adds(vec![says(1, "one more")]), now).await;
    assert_error!(full, StoreError::LimitExceeded { max: LAST, actual, .. } if actual == LAST + 1);
    assert_eq!(thread.seqs(&MessageQuery::newest(2), now).await, [LAST - 1, LAST]);
    let named = client.find_messages(&thread.scope, thread.id, &[MessageName::Seq(LAST)], now).await;
    assert_eq!(named.expect("reading works").len(), 1);
    // What adds no message goes on, and the beginning moves behind the last position.
    let trim = Batch { trim_below: Some(LAST + 1), ..batch("trim") };
    let outcome = thread.commit(&trim, now).await;
    assert_eq!(outcome.change, 11);
    let stands = thread.thread(now).await;
    assert_eq!(stands.positions, Positions { seq: LAST, change: 11, first_seq: LAST + 1, tag: tag_of(&trim) });
    assert_eq!((stands.message_count, thread.messages(now).await), (0, Vec::new()));

    let thread = restored(client, &none_left).await;
    let full = thread.try_commit(&batch("nothing"), now).await.expect("an empty batch makes no change");
    assert_eq!(full.change, LAST);
    let full = thread.try_commit(&adds(vec![says(1, "one more")]), now).await;
    assert_error!(full, StoreError::LimitExceeded { max: LAST, actual, .. } if actual == LAST + 1);

    let Some(row) = few_left.dump.thread.clone() else { panic!("a dump without its thread") };
    for positions in [Positions { seq: LAST + 1, ..row.positions }, Positions { change: LAST + 1, ..row.positions }] {
        let dump = Dump { thread: Some(DumpedThread { positions, ..row.clone() }), ..Dump::default() };
        let beyond = client.restore_thread(&few_left.tenant, thread_id(9), &dump).await;
        assert_error!(beyond, StoreError::LimitExceeded { max: LAST, actual, .. } if actual == LAST + 1);
    }
    let gone = client.dump_thread(&few_left.tenant, thread_id(9), None, 1).await;
    assert_error!(gone, StoreError::NotFound(Kind::Thread));
}
