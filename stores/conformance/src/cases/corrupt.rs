//! Stored bytes that do not decode are an error, never a default.

use threadkeep_core::{
    Batch, Content, Dump, DumpEntry, MessageName, MessageQuery, OnCorrupt, Replacement, Role, Severity, StoreError,
    ThreadName, ThreadRead,
};

use super::eventful;
use crate::conversation::Conversation;
use crate::given::{ana, app, assert_error, at, batch, message_id, named, thread_id};
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
    let read = |query| ThreadRead { records: vec![named(app("notes"), "k")], ..ThreadRead::page(query) };
    let name = ThreadName::Id(conversation.id);
    let view = client.read_thread(&ana(), &name, &read(query), at(3)).await.expect("reading works");
    let view = view.expect("the thread is there");
    assert_eq!((view.page, view.records), (Some(page.clone()), vec![None]));
    let failed = client.read_thread(&ana(), &name, &read(MessageQuery::newest(5)), at(3)).await;
    assert_error!(failed, StoreError::Corrupt { .. });
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

/// A thread with every kind of message, dumped whole.
async fn written(stage: &Stage<'_>) -> (Subject, Conversation, Dump) {
    let from = stage.open().await;
    let source = eventful(&from.client).await;
    let chunk = source.dump(100).await.remove(0);
    (from, source, chunk)
}

async fn restored(stage: &Stage<'_>, chunk: &Dump) -> Subject {
    let to = stage.open().await;
    to.client.restore_thread(ana().tenant_id(), thread_id(1), chunk).await.expect("damage is moved, not lost");
    to.client.catch_up_fully().await;
    to
}

async fn damage(subject: &Subject) -> Vec<String> {
    let report = subject.client.verify().await.expect("verifying works");
    let damage = report.findings.into_iter().filter(|finding| finding.severity == Severity::Damage);
    damage
        .map(|finding| format!("{}: {}", finding.thread.map_or_else(String::new, |id| id.to_string()), finding.detail))
        .collect()
}

pub(super) async fn messages_carry_their_checksum(stage: &Stage<'_>) {
    let (from, _, chunk) = written(stage).await;
    let messages = chunk.entries.iter().filter(|entry| matches!(entry, DumpEntry::Message { .. }));
    // Appended, replaced and called by an external id: each has the checksum of what it says now.
    assert_eq!(messages.clone().count(), 7);
    for entry in messages {
        assert!(matches!(entry, DumpEntry::Message { checksum: Some(_), .. }), "{entry:?}");
        assert_eq!(entry.damage(), None, "{entry:?}");
    }
    let report = from.client.verify().await.expect("verifying works");
    assert_eq!((report.unchecked, report.findings), (0, Vec::new()));
}

pub(super) async fn a_changed_message_is_found(stage: &Stage<'_>) {
    let (_, source, sound) = written(stage).await;

    let change = |seq: u64, change: fn(&mut DumpEntry)| {
        let mut chunk = sound.clone();
        let entry = chunk.entries.iter_mut().find(|entry| entry.seq() == seq).expect("an entry");
        change(entry);
        (seq, chunk)
    };
    let changed = [
        change(4, |entry| {
            let DumpEntry::Message { body, .. } = entry else { panic!("a message") };
            *body = body.replace("message 4", "message 9");
        }),
        change(5, |entry| {
            let DumpEntry::Message { body, .. } = entry else { panic!("a message") };
            body.replace_range(1..2, "s");
        }),
        change(7, |entry| {
            let DumpEntry::Message { created_at, .. } = entry else { panic!("a message") };
            *created_at = at(77);
        }),
        change(8, |entry| {
            let DumpEntry::Message { id, .. } = entry else { panic!("a message") };
            *id = message_id(88);
        }),
        change(10, |entry| {
            let DumpEntry::Message { external_id, .. } = entry else { panic!("a message") };
            *external_id = Some("x11".to_owned());
        }),
    ];
    for (seq, chunk) in changed {
        assert_eq!(chunk.damage().count(), 1, "position {seq}");
        let subject = restored(stage, &chunk).await;
        let found = damage(&subject).await;
        assert!(found.len() == 1 && found[0].contains(&format!("position {seq}, message ")), "{seq}: {found:?}");
        assert!(found[0].starts_with(&source.id.to_string()) && !found[0].contains("message 9"), "{found:?}");
        // It moves on with the checksum that it was written with, so that the damage is found there, too.
        let conversation = Conversation { client: subject.client.clone(), ..source.clone() };
        assert_eq!(conversation.dump(100).await, [chunk]);
    }
}

pub(super) async fn swapped_contents_are_found(stage: &Stage<'_>) {
    let (_, _, mut chunk) = written(stage).await;
    let bodies = [3, 4].map(|seq| {
        let entry = chunk.entries.iter().find(|entry| entry.seq() == seq).expect("an entry");
        let DumpEntry::Message { body, .. } = entry else { panic!("a message") };
        body.clone()
    });
    for entry in &mut chunk.entries {
        match entry {
            DumpEntry::Message { seq: 3, body, .. } => body.clone_from(&bodies[1]),
            DumpEntry::Message { seq: 4, body, .. } => body.clone_from(&bodies[0]),
            _ => {}
        }
    }
    let subject = restored(stage, &chunk).await;
    assert_eq!(damage(&subject).await.len(), 2);
}

pub(super) async fn messages_from_before_checksums_are_counted(stage: &Stage<'_>) {
    let (_, source, mut chunk) = written(stage).await;
    for entry in &mut chunk.entries {
        if let DumpEntry::Message { checksum, .. } = entry {
            *checksum = None;
        }
    }
    let subject = restored(stage, &chunk).await;
    let report = subject.client.verify().await.expect("verifying works");
    assert_eq!((report.messages, report.unchecked, report.findings), (7, 7, Vec::new()));
    // Moving gives nobody a checksum; replacing does.
    let conversation = Conversation { client: subject.client.clone(), ..source };
    assert_eq!(conversation.dump(100).await, [chunk]);
    let content = Content::text(Role::User, "three, said differently");
    let replace = vec![Replacement { id: message_id(3), content }];
    conversation.commit(&Batch { replace, ..batch("again") }, at(20)).await;
    subject.client.catch_up_fully().await;
    let report = subject.client.verify().await.expect("verifying works");
    assert_eq!((report.messages, report.unchecked, report.findings), (7, 6, Vec::new()));
}

pub(super) async fn lost_positions_move_as_such(stage: &Stage<'_>) {
    let (_, source, sound) = written(stage).await;
    let mut chunk = sound.clone();
    chunk.entries.retain(|entry| ![4, 5, 10].contains(&entry.seq()));
    chunk.entries.insert(1, DumpEntry::Lost { seq: 4, count: 2 });
    chunk.entries.push(DumpEntry::Lost { seq: 10, count: 1 });
    let subject = restored(stage, &chunk).await;
    let conversation = Conversation { client: subject.client.clone(), ..source };
    for size in [1, 3, 100] {
        let chunks = conversation.dump(size).await;
        assert_eq!(chunks.into_iter().flat_map(|chunk| chunk.entries).collect::<Vec<_>>(), chunk.entries, "{size}");
    }
    let found = damage(&subject).await;
    assert!(!found.is_empty(), "the lost positions are damage");
    let thread = conversation.thread(at(20)).await;
    assert_eq!((thread.positions.seq, thread.message_count), (10, 4));
    assert_eq!(conversation.seqs(&MessageQuery::newest(20), at(20)).await, [3, 7, 8, 9]);
    // The thread goes on behind its end.
    assert_eq!(conversation.say(11..=11, at(21)).await.first_seq, 11);
}
