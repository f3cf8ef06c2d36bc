use threadkeep_core::{OpenThread, RecordOwner, RecordQuery, StoreError, ThreadOrder, ThreadQuery, WakeUp};

use super::dump_restore::eventful;
use super::search::query_for;
use crate::conversation::Conversation;
use crate::given::{ana, app, assert_error, at, note, thread_id, user_id};
use crate::run::{Stage, Subject};

/// What somebody sees who looks at everything.
async fn everything_seen(subject: &Subject, conversation: &Conversation) -> String {
    let client = &subject.client;
    client.catch_up_fully().await;
    let (scope, now) = (&ana(), at(20));
    let mut found = client.search(scope, &query_for("message walrus"), now).await.expect("searching works");
    // Over a weak store, how far the index seems to have come is chance.
    found.hits.clear();
    found.behind.clear();
    let records = [RecordOwner::User(user_id("ana")), RecordOwner::Thread(conversation.id)].map(RecordQuery::of);
    format!(
        "{:?}",
        (
            conversation.dump(3).await,
            conversation.thread(now).await,
            conversation.messages(now).await,
            conversation.changes(0, now).await,
            client.list_threads(scope, &ThreadQuery::new(ThreadOrder::Recent, 10), now).await.expect("reading works"),
            client.list_records(scope, &records[0], now).await.expect("reading works"),
            client.list_records(scope, &records[1], now).await.expect("reading works"),
            client.verify().await.expect("verifying works"),
            found,
        )
    )
}

// S1.40
pub(super) async fn everything_is_there_after_reopening(stage: &Stage<'_>) {
    let subject = stage.open().await;
    if !stage.abilities().durable {
        return assert_nothing_is_shared(stage, subject).await;
    }
    let conversation = eventful(&subject.client).await;
    let deleted = Conversation::open(&subject.client, &ana(), 2, at(8)).await;
    let of_ana = RecordOwner::User(user_id("ana"));
    let version = subject.client.write_record(&ana(), &note(of_ana.clone(), "k", "1"), at(9)).await;
    let version = version.expect("writing works").version;
    let cursor = subject.client.list_changed_threads(&ana(), None, 10, at(9)).await.expect("reading works").cursor;
    subject.client.delete_thread(&ana(), deleted.id, at(10)).await.expect("the thread is there");
    let before = everything_seen(&subject, &conversation).await;
    let (scope, id) = (conversation.scope.clone(), conversation.id);
    drop((conversation, deleted));

    let subject = subject.reopen().await;
    let conversation = Conversation { client: subject.client.clone(), scope, id };
    assert_eq!(everything_seen(&subject, &conversation).await, before);
    let changed = subject.client.list_changed_threads(&ana(), Some(&cursor), 10, at(11)).await.expect("reading works");
    assert!(!changed.reset, "a cursor ends with the process");
    assert_eq!(changed.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread_id(2)]);
    let open = OpenThread::new(&ana(), thread_id(2));
    assert_error!(subject.client.open_thread(&ana(), &open, at(12)).await, StoreError::NotFound(_));
    assert_eq!(conversation.say(11..=12, at(13)).await.first_seq, 11);
    let written = subject.client.write_record(&ana(), &note(of_ana.clone(), "k", "2"), at(13)).await;
    assert!(written.expect("writing works").version > version);
    drop(conversation);

    // And once more, so that what was written after reopening is no exception.
    let subject = subject.reopen().await;
    let found = subject.client.find_record(&ana(), &of_ana, &app("notes"), "k", at(14)).await;
    assert_eq!(found.expect("reading works").map(|record| record.value.to_string()), Some("2".to_owned()));
    let conversation = Conversation { client: subject.client.clone(), scope: ana(), id };
    assert_eq!(conversation.thread(at(14)).await.positions.seq, 12);
}

/// A store that does not outlive its process says so by having no files, and shares nothing with the next one.
async fn assert_nothing_is_shared(stage: &Stage<'_>, subject: Subject) {
    assert!(!subject.has_files(), "the store has files, but its data does not outlive the process");
    Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let other = stage.open().await;
    Conversation::open(&other.client, &ana(), 1, at(0)).await;
}

pub(super) async fn hints_end_with_the_store(stage: &Stage<'_>) {
    use futures::StreamExt;
    let subject = stage.open().await;
    let mut wake_ups = subject.client.wake_ups().await.expect("listening works");
    Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    drop(subject);
    let ends = async { while let Some(WakeUp::Thread { .. } | WakeUp::Anything) = wake_ups.next().await {} };
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), ends).await;
    ended.expect("the hints end when the store is closed");
}
