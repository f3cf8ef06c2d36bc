//! Derived records, which are written without a commit and do not change their thread.

use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{
    Batch, Conflict, DerivedWrite, Kind, Namespace, OpenThread, Owner, Record, RecordCondition, RecordOwner,
    RecordState, StoreError, TaggedNumber, ThreadPatch, WakeUp, limits,
};

use super::erasure::{MARKER, assert_erased};
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, appending, assert_error, at, batch, ben, derived_write, json, message_id, numbered_conflict_of, put,
    record_name, thread_id, user, user_message,
};
use crate::run::TestEnv;
use crate::tasks::yield_now;

impl Conversation {
    async fn try_derive(&self, write: &DerivedWrite, seconds: i64) -> threadkeep_core::Result<u64> {
        let written = self.client.write_derived(&self.scope, self.id, write, at(seconds)).await;
        written.map(|written| written.version)
    }

    async fn derive(&self, write: &DerivedWrite) -> u64 {
        self.try_derive(write, 2).await.expect("the derived record is written")
    }

    async fn find_derived(&self) -> Option<Record> {
        let owner = RecordOwner::Thread(self.id);
        let found = self.client.find_record(&self.scope, &owner, &Namespace::derived(), "k", at(3)).await;
        found.expect("reading works")
    }
}

fn conflict_at(actual: Option<u64>) -> Conflict {
    Conflict::Record { namespace: Namespace::derived(), key: "k".to_owned(), actual: actual.map(TaggedNumber::from) }
}

pub(super) async fn a_derived_write_does_not_change_its_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    let cursor = store.client.list_changed_threads(&ana(), None, 5, at(1)).await.expect("reading works").cursor;
    let (thread, changes) = (conversation.thread(at(2)).await, conversation.changes(0, at(2)).await);
    let commits = conversation.dump(limits::PAGE).await.remove(0).commits;
    let mut wake_ups = store.client.wake_ups().await.expect("subscribing works");

    let version = conversation.derive(&derived_write(1, None, r#"{"odd" :  [1.50]}"#)).await;
    let found = conversation.find_derived().await.expect("the record exists");
    assert_eq!((found.version, found.value, found.expires_at), (version, json(r#"{"odd" :  [1.50]}"#), None));
    conversation.derive(&derived_write(1, Some(version), "2")).await;
    assert_eq!(conversation.find_derived().await.expect("the record exists").value, json("2"));

    assert_eq!(conversation.thread(at(2)).await, thread);
    assert_eq!(conversation.changes(0, at(2)).await, changes);
    assert_eq!(conversation.dump(limits::PAGE).await.remove(0).commits, commits);
    let changed = store.client.list_changed_threads(&ana(), Some(&cursor), 5, at(2)).await;
    assert_eq!(changed.expect("reading works").threads, []);
    let batch = Batch {
        expected: Some(threadkeep_core::Expected::Change(1.into())),
        ..appending(vec![user_message(4, "four")])
    };
    assert_eq!(conversation.commit(&batch, at(3)).await.change, 2);
    if !env.has_faults() {
        // The first wake-up is that of the commit: the derived write caused none.
        let first = env.timeout(Duration::from_secs(10), wake_ups.next()).await.expect("a commit wakes");
        assert!(matches!(first, Some(WakeUp::Thread { change: Some(2), .. } | WakeUp::Unspecified)), "{first:?}");
    }
    assert_eq!(store.client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn a_derived_write_requires_the_current_change(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    for change in 1..=3 {
        conversation.append(u128::from(change)..=u128::from(change), at(1)).await;
        for other in [0, change - 1, change + 1, u64::MAX] {
            // The version is wrong as well, but the change is checked first.
            let refused = conversation.try_derive(&derived_write(other, Some(9), "1"), 2).await;
            assert_eq!(
                numbered_conflict_of(refused),
                Conflict::Change { expected: other.into(), actual: change.into() }
            );
        }
        assert_eq!(conversation.find_derived().await.is_some(), change > 1);
        let version = conversation.find_derived().await.map(|found| found.version);
        conversation.derive(&derived_write(change, version, &change.to_string())).await;
    }
}

pub(super) async fn a_derived_write_requires_the_current_version(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let refused = conversation.try_derive(&derived_write(0, Some(1), "1"), 2).await;
    assert_eq!(numbered_conflict_of(refused), conflict_at(None));
    let first = conversation.derive(&derived_write(0, None, "1")).await;
    let second = conversation.derive(&derived_write(0, Some(first), "2")).await;
    for wrong in [None, Some(0), Some(first), Some(second + 1)] {
        let refused = conversation.try_derive(&derived_write(0, wrong, "3"), 2).await;
        assert_eq!(numbered_conflict_of(refused), conflict_at(Some(second)));
    }
    assert_eq!(conversation.find_derived().await.expect("the record exists").value, json("2"));
    // A commit that scrubs the record requires the version that it has read.
    let scrub = |version: u64, key: &str| Batch {
        require: vec![RecordCondition {
            name: record_name(Namespace::derived(), "k"),
            state: RecordState::Version(version.into()),
        }],
        put: vec![put(Namespace::derived(), "k", "0")],
        ..batch(key)
    };
    assert_eq!(
        numbered_conflict_of(conversation.try_commit(&scrub(first, "late"), at(2)).await),
        conflict_at(Some(second))
    );
    assert_eq!(conversation.commit(&scrub(second, "scrub"), at(2)).await.change, 1);
    assert_eq!(conversation.find_derived().await.map(|found| found.version), Some(1));
}

pub(super) async fn versions_are_never_reused_by_any_writer(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let (mut change, mut version, mut seen) = (0, None, Vec::new());
    for round in 0..6 {
        for _ in 0..3 {
            version = Some(conversation.derive(&derived_write(change, version, "1")).await);
            seen.extend(version);
        }
        let name = record_name(Namespace::derived(), "k");
        let batch = match round % 3 {
            0 => Batch { put: vec![put(Namespace::derived(), "k", "2")], ..batch(&format!("put {round}")) },
            1 => Batch { delete: vec![name], ..batch(&format!("delete {round}")) },
            _ => appending(vec![user_message(round, "more")]),
        };
        change = conversation.commit(&batch, at(2)).await.change;
        version = conversation.find_derived().await.map(|found| found.version);
        assert_eq!(version.is_none(), round % 3 == 1);
        if round % 3 == 0 {
            seen.extend(version);
        }
    }
    let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "a version was reused: {seen:?}");
}

pub(super) async fn derived_writes_require_full_access(env: &TestEnv<'_>) {
    let store = env.open().await;
    let own = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    for stranger in [ben(), user("globex", "ana")] {
        let refused = own.in_scope(&stranger).try_derive(&derived_write(7, Some(7), "1"), 2).await;
        assert_error!(refused, StoreError::NotFound(Kind::Thread));
    }
    let unknown = Conversation { id: thread_id(9), ..own.clone() };
    assert_error!(unknown.try_derive(&derived_write(0, None, "1"), 2).await, StoreError::NotFound(Kind::Thread));
    own.in_scope(&acme()).derive(&derived_write(0, None, "1")).await;
    assert!(own.find_derived().await.is_some());

    let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), thread_id(2)) };
    let shared = Conversation::open_as(&store.client, &acme(), &open, at(0)).await;
    let refused = shared.in_scope(&ben()).try_derive(&derived_write(7, Some(7), "1"), 2).await;
    assert_error!(refused, StoreError::Denied(_));
    shared.derive(&derived_write(0, None, "1")).await;
    assert!(shared.in_scope(&ben()).find_derived().await.is_some());
}

pub(super) async fn derived_writes_require_a_live_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    let open = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(1)) };
    let expiring = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    assert!(expiring.try_derive(&derived_write(0, None, "1"), 9).await.is_ok());
    assert_error!(expiring.try_derive(&derived_write(0, None, "1"), 10).await, StoreError::NotFound(Kind::Thread));
    let deleted = Conversation::open(&store.client, &ana(), 2, at(0)).await;
    store.client.delete_thread(&ana(), deleted.id, at(1)).await.expect("the thread exists");
    assert_error!(deleted.try_derive(&derived_write(0, None, "1"), 2).await, StoreError::NotFound(Kind::Thread));
}

pub(super) async fn derived_records_have_limits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let of_bytes = |bytes: usize| derived_write(0, None, &format!("\"{}\"", "x".repeat(bytes - 2)));
    let over = conversation.try_derive(&of_bytes(limits::RECORD_BYTES + 1), 2).await;
    assert_error!(over, StoreError::LimitExceeded { limit: "record", .. });
    let with_key = |key: &str| DerivedWrite { key: key.to_owned(), ..derived_write(0, None, "1") };
    for bad in ["", "a\0b"] {
        assert_error!(conversation.try_derive(&with_key(bad), 2).await, StoreError::Invalid { .. });
    }
    let long = "x".repeat(limits::KEY_BYTES + 1);
    assert_error!(conversation.try_derive(&with_key(&long), 2).await, StoreError::LimitExceeded { .. });
    let exhausted = derived_write(0, Some(u64::MAX), "1");
    assert_error!(conversation.try_derive(&exhausted, 2).await, StoreError::LimitExceeded { .. });
    assert!(conversation.find_derived().await.is_none());
    conversation.derive(&of_bytes(limits::RECORD_BYTES)).await;
    conversation.derive(&with_key(&"x".repeat(limits::KEY_BYTES))).await;
}

pub(super) async fn derived_records_are_removed_with_their_thread(env: &TestEnv<'_>) {
    for deletes in [true, false] {
        let store = env.open().await;
        let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
        conversation.derive(&derived_write(0, None, &format!("\"The {MARKER} are here\""))).await;
        assert_erased(&store, &conversation, async || {
            if deletes {
                store.client.delete_thread(&ana(), conversation.id, at(3)).await.expect("the thread exists");
            } else {
                let patch = ThreadPatch { expires_at: Some(Some(at(40))), ..ThreadPatch::default() };
                conversation.commit(&Batch { patch, ..batch("expire") }, at(3)).await;
            }
        })
        .await;
    }
}

pub(super) async fn derived_records_are_dumped_with_their_thread(env: &TestEnv<'_>) {
    let from = env.open().await;
    let source = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    source.append(1..=3, at(1)).await;
    let first = source.derive(&derived_write(1, None, "1")).await;
    let second = source.derive(&derived_write(1, Some(first), r#"{"odd" :  [1.50]}"#)).await;
    let to = env.open().await;
    let chunks = source.dump(2).await;
    for chunk in &chunks {
        to.client.restore_thread(acme().tenant_id(), source.id, chunk).await.expect("restoring works");
    }
    let target = Conversation { client: to.client.clone(), ..source.clone() };
    assert_eq!(target.dump(2).await, chunks);
    assert_eq!(target.find_derived().await, source.find_derived().await);
    assert_eq!(
        numbered_conflict_of(target.try_derive(&derived_write(1, Some(first), "2"), 2).await),
        conflict_at(Some(second))
    );
    let third = target.derive(&derived_write(1, Some(second), "2")).await;
    assert!(![first, second].contains(&third));
    assert_eq!(to.client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn one_concurrent_derived_write_wins(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let mut version = None;
    for round in 0..5 {
        let writers = (0..16).map(|writer| {
            let (conversation, write) =
                (conversation.clone(), derived_write(0, version, &format!("[{round},{writer}]")));
            env.spawn(async move { conversation.try_derive(&write, 2).await })
        });
        let answers = futures::future::join_all(writers).await;
        let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("the writer does not panic")).collect();
        let won: Vec<_> = answers.iter().flatten().copied().collect();
        let found = conversation.find_derived().await.expect("the record exists").version;
        assert_eq!(won, [found], "two writers replaced the same version");
        for lost in answers.into_iter().filter(Result::is_err) {
            assert_eq!(numbered_conflict_of(lost), conflict_at(Some(found)));
        }
        version = Some(found);
    }
    assert_eq!(conversation.thread(at(3)).await.positions.change, 0);
}

/// Two writers repeatedly derive a record from a message while a third one erases the message. No derived text remains.
pub(super) async fn an_erasure_removes_text_derived_concurrently(env: &TestEnv<'_>) {
    let store = env.open().await;
    for round in 0..8 {
        let conversation = Conversation::open(&store.client, &ana(), round, at(0)).await;
        conversation.append(1..=1, at(1)).await;
        let deriving = (0..2).map(|_| {
            let conversation = conversation.clone();
            env.spawn(async move {
                loop {
                    let (change, texts) =
                        (conversation.thread(at(2)).await.positions.change, conversation.texts(at(2)).await);
                    let version = conversation.find_derived().await.map(|found| found.version);
                    let derived = texts.first().map_or("none", String::as_str);
                    match conversation.try_derive(&derived_write(change, version, &format!("\"{derived}\"")), 2).await {
                        Ok(_) if change > 1 => return,
                        Ok(_) | Err(StoreError::Conflict(_)) => yield_now().await,
                        Err(error) => panic!("unexpected error of a writer: {error:?}"),
                    }
                }
            })
        });
        let deriving: Vec<_> = deriving.collect();
        for attempt in 0.. {
            let found = conversation.find_derived().await;
            let state = found.map_or(RecordState::Absent, |found| RecordState::Version((found.version).into()));
            let erase = Batch {
                erase: vec![message_id(1)],
                require: vec![RecordCondition { name: record_name(Namespace::derived(), "k"), state }],
                put: vec![put(Namespace::derived(), "k", "\"none\"")],
                ..batch(&format!("erase {attempt}"))
            };
            match conversation.try_commit(&erase, at(2)).await {
                Ok(_) => break,
                Err(StoreError::Conflict(Conflict::Record { .. })) => {}
                Err(error) => panic!("unexpected error of the erasure: {error:?}"),
            }
        }
        // The text must be absent directly after the erasure, not only at the end.
        assert_eq!(conversation.find_derived().await.map(|found| found.value), Some(json("\"none\"")));
        for writer in deriving {
            writer.await.expect("the writer does not panic");
        }
        assert_eq!(conversation.find_derived().await.map(|found| found.value), Some(json("\"none\"")));
        assert_eq!(conversation.thread(at(3)).await.positions.change, 2);
    }
}

pub(super) async fn rewriting_a_derived_record_removes_previous_text_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    let marked = format!("\"The {MARKER} are here\"");
    let first = conversation.derive(&derived_write(1, None, &marked)).await;
    assert_erased(&store, &conversation, async || {
        // The record is replaced by another derived write, and then scrubbed by a commit.
        let second = conversation.derive(&derived_write(1, Some(first), &format!("[{marked}]"))).await;
        let state = RecordState::Version(second.into());
        let scrub = Batch {
            require: vec![RecordCondition { name: record_name(Namespace::derived(), "k"), state }],
            put: vec![put(Namespace::derived(), "k", "\"none\"")],
            ..batch("scrub")
        };
        conversation.commit(&scrub, at(2)).await;
    })
    .await;
}
