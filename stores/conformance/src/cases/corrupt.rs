//! Stored bytes that do not decode are an error, never a default.

use threadkeep_core::{Dump, DumpEntry, MessageName, MessageQuery, OnCorrupt, Severity, StoreError, ThreadName};

use crate::conversation::Conversation;
use crate::given::{ana, app, assert_error, at, named, thread_id};
use crate::run::{Stage, Subject};

/// Three messages in a store whose dump was damaged on its way there.
async fn damaged(stage: &Stage<'_>, damage: impl Fn(&mut Dump)) -> (Subject, Conversation) {
    let (from, to) = (stage.open().await, stage.open().await);
    let source = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    source.say(1..=3, at(1)).await;
    let mut chunk = source.dump(10).await.remove(0);
    damage(&mut chunk);
    to.client.restore_thread(ana().tenant_id(), source.id, &chunk).await.expect("a damaged thread is moved, not lost");
    let healthy = Conversation::open(&to.client, &ana(), 2, at(1)).await;
    healthy.say(1..=2, at(2)).await;
    let client = to.client.clone();
    (to, Conversation { client, ..source })
}

fn break_the_second(chunk: &mut Dump) {
    if let DumpEntry::Message { body, .. } = &mut chunk.entries[1] {
        *body = "1u{\"parts\":[{\"text\":\"sec".to_owned();
    }
}

pub(super) async fn a_broken_message_is_told_of(stage: &Stage<'_>) {
    let (subject, conversation) = damaged(stage, break_the_second).await;
    let client = &subject.client;
    let page = client.list_messages(&ana(), conversation.id, &MessageQuery::newest(5), at(3)).await;
    assert_error!(page, StoreError::Corrupt { .. });
    let found = client.find_messages(&ana(), conversation.id, &[MessageName::Seq(2)], at(3)).await;
    assert_error!(found, StoreError::Corrupt { .. });
    let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(5) };
    let page = conversation.page(&query, at(3)).await;
    assert_eq!(page.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(page.corrupt.iter().map(|row| row.seq).collect::<Vec<_>>(), [2]);
    let notes = named(app("notes"), "k");
    let both = client.list_messages_with_document(&ana(), conversation.id, &query, &notes, at(3)).await;
    assert_eq!(both.expect("reading works"), (page.clone(), None));
    let followed = client.list_changes_with_messages(&ana(), conversation.id, 0, 5, at(3)).await;
    let followed = followed.expect("reading works");
    assert_eq!((&followed.messages, &followed.corrupt, followed.read_to), (&page.messages, &page.corrupt, 3));
    assert!(!page.corrupt[0].detail.contains("sec"), "a report quotes the message: {}", page.corrupt[0].detail);
    // The rest of the thread, and other threads, are as they were.
    assert_eq!(conversation.seqs(&MessageQuery::newest(1), at(3)).await, [3]);
    assert_eq!(conversation.say(4..=4, at(4)).await.first_seq, 4);
    let healthy = Conversation { id: thread_id(2), ..conversation.clone() };
    assert_eq!(healthy.texts(at(4)).await.len(), 2);
    client.catch_up_fully().await;
    let report = client.verify().await.expect("verifying works");
    let damage: Vec<_> = report.findings.iter().filter(|finding| finding.severity == Severity::Damage).collect();
    assert!(!damage.is_empty() && damage.iter().all(|finding| finding.thread == Some(conversation.id)), "{report:?}");
    assert_eq!((report.threads, report.messages), (2, 6));
}

pub(super) async fn a_broken_thread_is_no_empty_one(stage: &Stage<'_>) {
    let (subject, conversation) = damaged(stage, |chunk| {
        if let Some(thread) = &mut chunk.thread {
            thread.body = "1[\"title\"".to_owned();
        }
    })
    .await;
    let client = &subject.client;
    let found = client.find_thread(&ana(), &ThreadName::Id(conversation.id), at(3)).await;
    assert_error!(found, StoreError::Corrupt { .. });
    assert_eq!(conversation.texts(at(3)).await.len(), 3, "the messages can be read all the same");
    let report = client.verify().await.expect("verifying works");
    assert!(report.findings.iter().any(|finding| finding.thread == Some(conversation.id)), "{report:?}");
}
