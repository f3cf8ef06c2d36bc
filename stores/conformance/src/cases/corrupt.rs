//! Stored data that cannot be decoded causes an error. It is never replaced by a default value.

use threadkeep_core::{
    Batch, Content, Dump, DumpEntry, MessageQuery, MessageRef, OnCorrupt, Replacement, Role, Severity, StoreError,
    ThreadRead, ThreadRef,
};

use super::thread_with_history;
use crate::conversation::Conversation;
use crate::fixtures::{ana, app, assert_error, at, batch, message_id, record_name, thread_id};
use crate::run::{TestEnv, TestStore};

/// Dumps a thread with three messages, damages the dump and restores it. The store also contains an intact thread,
/// number 2.
async fn restore_damaged(env: &TestEnv<'_>, damage: impl Fn(&mut Dump)) -> (TestStore, Conversation) {
    let (from, to) = (env.open().await, env.open().await);
    let source = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    source.append(1..=3, at(1)).await;
    let mut chunk = source.dump(10).await.remove(0);
    damage(&mut chunk);
    to.client.restore_thread(ana().tenant_id(), source.id, &chunk).await.expect("a damaged thread is restored");
    let healthy = Conversation::open(&to.client, &ana(), 2, at(1)).await;
    healthy.append(1..=2, at(2)).await;
    let client = to.client.clone();
    (to, Conversation { client, ..source })
}

fn truncate_second_message(chunk: &mut Dump) {
    if let DumpEntry::Message { body, .. } = &mut chunk.entries[1] {
        *body = "1u{\"parts\":[{\"text\":\"sec".to_owned();
    }
}

pub(super) async fn a_corrupt_message_is_reported(env: &TestEnv<'_>) {
    let (store, conversation) = restore_damaged(env, truncate_second_message).await;
    let client = &store.client;
    let page = client.list_messages(&ana(), conversation.id, &MessageQuery::newest(5), at(3)).await;
    assert_error!(page, StoreError::Corrupt { .. });
    let found = client.find_messages(&ana(), conversation.id, &[MessageRef::Seq(2)], at(3)).await;
    assert_error!(found, StoreError::Corrupt { .. });
    let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(5) };
    let page = conversation.page(&query, at(3)).await;
    assert_eq!(page.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(page.corrupt.iter().map(|row| row.seq).collect::<Vec<_>>(), [2]);
    let read = |query| ThreadRead { records: vec![record_name(app("notes"), "k")], ..ThreadRead::page(query) };
    let reference = ThreadRef::Id(conversation.id);
    let view = client.read_thread(&ana(), &reference, &read(query), at(3)).await.expect("reading works");
    let view = view.expect("the thread exists");
    assert_eq!((view.page, view.records), (Some(page.clone()), vec![None]));
    let failed = client.read_thread(&ana(), &reference, &read(MessageQuery::newest(5)), at(3)).await;
    assert_error!(failed, StoreError::Corrupt { .. });
    let followed = client.list_changes_with_messages(&ana(), conversation.id, 0, 5, at(3)).await;
    let followed = followed.expect("reading works");
    assert_eq!((&followed.messages, &followed.corrupt, followed.read_to), (&page.messages, &page.corrupt, 3));
    assert!(!page.corrupt[0].detail.contains("sec"), "a report contains message text: {}", page.corrupt[0].detail);
    // The rest of the thread and other threads remain usable.
    assert_eq!(conversation.seqs(&MessageQuery::newest(1), at(3)).await, [3]);
    assert_eq!(conversation.append(4..=4, at(4)).await.first_seq, 4);
    let healthy = Conversation { id: thread_id(2), ..conversation.clone() };
    assert_eq!(healthy.texts(at(4)).await.len(), 2);
    client.catch_up_fully().await;
    let report = client.verify().await.expect("verifying works");
    let damage: Vec<_> = report.findings.iter().filter(|finding| finding.severity == Severity::Damage).collect();
    assert!(!damage.is_empty() && damage.iter().all(|finding| finding.thread == Some(conversation.id)), "{report:?}");
    assert_eq!((report.threads, report.messages), (2, 6));
}

pub(super) async fn a_corrupt_thread_is_reported(env: &TestEnv<'_>) {
    let (store, conversation) = restore_damaged(env, |chunk| {
        if let Some(thread) = &mut chunk.thread {
            thread.body = "1[\"title\"".to_owned();
        }
    })
    .await;
    let client = &store.client;
    let found = client.find_thread(&ana(), &ThreadRef::Id(conversation.id), at(3)).await;
    assert_error!(found, StoreError::Corrupt { .. });
    assert_eq!(conversation.texts(at(3)).await.len(), 3, "the messages remain readable");
    let report = client.verify().await.expect("verifying works");
    assert!(report.findings.iter().any(|finding| finding.thread == Some(conversation.id)), "{report:?}");
}

/// Dumps a thread with every kind of message as one chunk.
async fn dumped(env: &TestEnv<'_>) -> (TestStore, Conversation, Dump) {
    let from = env.open().await;
    let source = thread_with_history(&from.client).await;
    let chunk = source.dump(100).await.remove(0);
    (from, source, chunk)
}

async fn restore(env: &TestEnv<'_>, chunk: &Dump) -> TestStore {
    let to = env.open().await;
    to.client.restore_thread(ana().tenant_id(), thread_id(1), chunk).await.expect("a damaged thread is restored");
    to.client.catch_up_fully().await;
    to
}

async fn damage_findings(store: &TestStore) -> Vec<String> {
    let report = store.client.verify().await.expect("verifying works");
    let damage = report.findings.into_iter().filter(|finding| finding.severity == Severity::Damage);
    damage
        .map(|finding| format!("{}: {}", finding.thread.map_or_else(String::new, |id| id.to_string()), finding.detail))
        .collect()
}

pub(super) async fn messages_have_checksums(env: &TestEnv<'_>) {
    let (from, _, chunk) = dumped(env).await;
    let messages = chunk.entries.iter().filter(|entry| matches!(entry, DumpEntry::Message { .. }));
    // Appended messages, replaced messages and a message with an external id have a checksum of their current content.
    assert_eq!(messages.clone().count(), 7);
    for entry in messages {
        assert!(matches!(entry, DumpEntry::Message { checksum: Some(_), .. }), "{entry:?}");
        assert_eq!(entry.damage(), None, "{entry:?}");
    }
    let report = from.client.verify().await.expect("verifying works");
    assert_eq!((report.unchecked, report.findings), (0, Vec::new()));
}

pub(super) async fn a_modified_message_is_detected(env: &TestEnv<'_>) {
    let (_, source, sound) = dumped(env).await;

    let change = |seq: u64, change: fn(&mut DumpEntry)| {
        let mut chunk = sound.clone();
        let entry = chunk.entries.iter_mut().find(|entry| entry.seq() == seq).expect("an entry");
        change(entry);
        (seq, chunk)
    };
    let changed = [
        change(4, |entry| {
            let DumpEntry::Message { body, .. } = entry else { panic!("not a message") };
            *body = body.replace("message 4", "message 9");
        }),
        change(5, |entry| {
            let DumpEntry::Message { body, .. } = entry else { panic!("not a message") };
            body.replace_range(1..2, "s");
        }),
        change(7, |entry| {
            let DumpEntry::Message { created_at, .. } = entry else { panic!("not a message") };
            *created_at = at(77);
        }),
        change(8, |entry| {
            let DumpEntry::Message { id, .. } = entry else { panic!("not a message") };
            *id = message_id(88);
        }),
        change(10, |entry| {
            let DumpEntry::Message { external_id, .. } = entry else { panic!("not a message") };
            *external_id = Some("x11".to_owned());
        }),
    ];
    for (seq, chunk) in changed {
        assert_eq!(chunk.damage().count(), 1, "position {seq}");
        let store = restore(env, &chunk).await;
        let found = damage_findings(&store).await;
        assert!(found.len() == 1 && found[0].contains(&format!("position {seq}, message ")), "{seq}: {found:?}");
        assert!(found[0].starts_with(&source.id.to_string()) && !found[0].contains("message 9"), "{found:?}");
        // A dump retains the original checksum, so the damage is also detected after the next restore.
        let conversation = Conversation { client: store.client.clone(), ..source.clone() };
        assert_eq!(conversation.dump(100).await, [chunk]);
    }
}

pub(super) async fn swapped_contents_are_detected(env: &TestEnv<'_>) {
    let (_, _, mut chunk) = dumped(env).await;
    let bodies = [3, 4].map(|seq| {
        let entry = chunk.entries.iter().find(|entry| entry.seq() == seq).expect("an entry");
        let DumpEntry::Message { body, .. } = entry else { panic!("not a message") };
        body.clone()
    });
    for entry in &mut chunk.entries {
        match entry {
            DumpEntry::Message { seq: 3, body, .. } => body.clone_from(&bodies[1]),
            DumpEntry::Message { seq: 4, body, .. } => body.clone_from(&bodies[0]),
            _ => {}
        }
    }
    let store = restore(env, &chunk).await;
    assert_eq!(damage_findings(&store).await.len(), 2);
}

pub(super) async fn messages_without_checksums_are_counted(env: &TestEnv<'_>) {
    let (_, source, mut chunk) = dumped(env).await;
    for entry in &mut chunk.entries {
        if let DumpEntry::Message { checksum, .. } = entry {
            *checksum = None;
        }
    }
    let store = restore(env, &chunk).await;
    let report = store.client.verify().await.expect("verifying works");
    assert_eq!((report.messages, report.unchecked, report.findings), (7, 7, Vec::new()));
    // A restore does not add checksums; replacing a message does.
    let conversation = Conversation { client: store.client.clone(), ..source };
    assert_eq!(conversation.dump(100).await, [chunk]);
    let content = Content::text(Role::User, "three, edited");
    let replace = vec![Replacement { id: message_id(3), content }];
    conversation.commit(&Batch { replace, ..batch("again") }, at(20)).await;
    store.client.catch_up_fully().await;
    let report = store.client.verify().await.expect("verifying works");
    assert_eq!((report.messages, report.unchecked, report.findings), (7, 6, Vec::new()));
}

pub(super) async fn lost_positions_are_restored(env: &TestEnv<'_>) {
    let (_, source, sound) = dumped(env).await;
    let mut chunk = sound.clone();
    chunk.entries.retain(|entry| ![4, 5, 10].contains(&entry.seq()));
    chunk.entries.insert(1, DumpEntry::Lost { seq: 4, count: 2 });
    chunk.entries.push(DumpEntry::Lost { seq: 10, count: 1 });
    let store = restore(env, &chunk).await;
    let conversation = Conversation { client: store.client.clone(), ..source };
    for size in [1, 3, 100] {
        let chunks = conversation.dump(size).await;
        assert_eq!(chunks.into_iter().flat_map(|chunk| chunk.entries).collect::<Vec<_>>(), chunk.entries, "{size}");
    }
    let found = damage_findings(&store).await;
    assert!(!found.is_empty(), "lost positions are not reported as damage");
    let thread = conversation.thread(at(20)).await;
    assert_eq!((thread.positions.seq, thread.message_count), (10, 4));
    assert_eq!(conversation.seqs(&MessageQuery::newest(20), at(20)).await, [3, 7, 8, 9]);
    // New messages are appended after the last position.
    assert_eq!(conversation.append(11..=11, at(21)).await.first_seq, 11);
}
