//! A `Memory` delivers its own commits to its subscribers directly, with the same content as the change log. S1.06, S1.07

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use threadkeep_core::{
    Content, JsonText, Map, Message, MessageId, Namespace, Part, PutRecord, RecordName, Role, Scope, ThreadId,
    ThreadPatch, Timestamp,
};
use threadkeep_memory::{AppendOptions, Draft, Memory, SubscribeOptions, ThreadEvent, ThreadUpdate, ThreadUpdates};

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

async fn subscribe(memory: &Memory, scope: &Scope, thread: ThreadId) -> ThreadUpdates {
    memory.subscribe(scope, thread, SubscribeOptions::default()).await.unwrap()
}

/// Receives the next update. The timeout, a minute of the paused clock, is longer than any poll interval.
async fn next_update(updates: &mut ThreadUpdates) -> ThreadUpdate {
    let update = tokio::time::timeout(Duration::from_secs(60), updates.next()).await;
    Arc::unwrap_or_clone(update.expect("an update arrives in time").expect("the stream does not end").unwrap())
}

/// Receives updates up to and including the change with the number `last`.
async fn receive_through(updates: &mut ThreadUpdates, last: u64) -> Vec<ThreadUpdate> {
    let mut received = Vec::new();
    loop {
        let update = next_update(updates).await;
        let ThreadUpdate::Commit { change, .. } = update else { panic!("not a commit: {update:?}") };
        received.push(update);
        if change == last {
            return received;
        }
    }
}

fn note_name(number: usize) -> RecordName {
    RecordName { namespace: Namespace::App("notes".to_owned()), key: number.to_string() }
}

/// A draft with several kinds of content.
fn rich_draft(number: usize) -> Draft {
    let mut content = Content::text(if number.is_multiple_of(2) { Role::User } else { Role::Assistant }, "é\u{1f6e4}");
    content.parts.push(Part::Reasoning(format!("because {number}")));
    content.author = Some(format!("author {number}"));
    content.metadata = Map::from_iter([("share".to_owned(), (number as f64 / 7.0).into())]);
    content.data = Some(JsonText::new(format!("{{\"b\":1.50,  \"a\":[{number}]}}")).unwrap());
    Draft::new(content)
}

/// Makes one of six kinds of commits, chosen by `number`. None of them edits or removes messages.
async fn commit_step(memory: &Memory, thread: ThreadId, writer: usize, number: usize) {
    let scope = ana();
    let name = writer * 100 + number;
    let put = PutRecord { name: note_name(name), value: JsonText::new("1".to_owned()).unwrap(), expires_at: None };
    match number % 6 {
        0 => drop(memory.append(&scope, thread, Draft::user(format!("{writer}: {number}"))).await.unwrap()),
        1 => {
            let two = vec![rich_draft(number), rich_draft(number + 1)];
            drop(memory.append_all(&scope, thread, two, &AppendOptions::default()).await.unwrap());
        }
        2 => {
            let batch = memory.batch().append(rich_draft(number)).put(put).patch(ThreadPatch {
                metadata: Some(Map::from_iter([("number".to_owned(), number.into())])),
                ..ThreadPatch::default()
            });
            drop(batch.commit(&scope, thread).await.unwrap());
        }
        3 => drop(memory.batch().put(put).delete(note_name(name - 1)).commit(&scope, thread).await.unwrap()),
        4 => drop(memory.batch().put(put).deferred().commit(&scope, thread).await.unwrap()),
        _ => {
            let patch = ThreadPatch { title: Some(Some(format!("title {number}"))), ..ThreadPatch::default() };
            memory.patch_thread(&scope, thread, patch, None).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn delivered_commits_equal_the_change_log() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        // The first `Memory` commits and delivers its commits directly. The second only reads the change log. The third makes commits
        // that the others read from the log.
        let (committing, reading, other_process) = (&env.memory, env.another_process(), env.another_process());
        let (mut delivered, mut read) =
            (subscribe(committing, &ana(), thread).await, subscribe(&reading, &ana(), thread).await);
        let mut late_subscriber = subscribe(committing, &ana(), thread).await;
        let listening = tokio::spawn(async move { (receive_through(&mut delivered, 120).await, delivered) });
        let writers = (0..6).map(|writer| {
            let memory = if writer < 5 { committing.clone() } else { other_process.clone() };
            tokio::spawn(async move {
                for number in 0..20 {
                    commit_step(&memory, thread, writer, number).await;
                }
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        let last = committing.get_thread(&ana(), thread).await.unwrap().positions.change;
        assert_eq!(last, 120);
        let read = receive_through(&mut read, last).await;
        let (delivered, _) = listening.await.unwrap();
        assert_eq!(delivered, read);
        assert_eq!(receive_through(&mut late_subscriber, last).await, read);
    })
    .await;
}

/// Returns the received updates without messages that were edited or removed later.
fn current_updates(received: &[ThreadUpdate], stored: &BTreeMap<MessageId, Message>) -> Vec<(u64, Vec<ThreadEvent>)> {
    let is_stored = |message: &Message| stored.get(&message.id) == Some(message);
    let commits = received.iter().filter_map(|update| {
        let ThreadUpdate::Commit { change, events, .. } = update else { panic!("not a commit: {update:?}") };
        let mut events = events.clone();
        for event in &mut events {
            if let ThreadEvent::Appended { messages, .. } = event {
                // A subscriber that reads the log later receives the current content.
                messages.retain(|message| is_stored(message) && message.revision == 0);
            }
        }
        events.retain(|event| match event {
            ThreadEvent::Appended { messages, .. } => !messages.is_empty(),
            ThreadEvent::Replaced { message } => is_stored(message),
            _ => true,
        });
        (!events.is_empty()).then_some((*change, events))
    });
    commits.collect()
}

#[tokio::test(start_paused = true)]
async fn delivered_commits_equal_the_change_log_after_edits_and_erasures() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let (committing, reading) = (env.memory.clone(), env.another_process());
        let (mut delivered, mut read) =
            (subscribe(&committing, &ana(), thread).await, subscribe(&reading, &ana(), thread).await);
        let listening = tokio::spawn(async move { receive_through(&mut delivered, 81).await });
        let writers = (0..4).map(|writer| {
            let memory = if writer < 3 { committing.clone() } else { env.another_process() };
            tokio::spawn(async move {
                for number in 0..5 {
                    // These are assistant messages, because a user message would set the title, and the writers would conflict.
                    let drafts = (0..3).map(|index| Draft::assistant(format!("{writer}: {number}, {index}"))).collect();
                    let appended =
                        memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap().messages;
                    memory.erase_messages(&ana(), thread, &[appended[0].id]).await.unwrap();
                    let edited = Content::text(Role::Assistant, format!("{writer}, edited"));
                    memory.replace_message(&ana(), thread, appended[1].id, edited, None).await.unwrap();
                    commit_step(&memory, thread, writer, 2).await;
                }
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        committing.append(&ana(), thread, Draft::assistant("the end")).await.unwrap();
        let (delivered, read) = (listening.await.unwrap(), receive_through(&mut read, 81).await);
        let stored = committing.newest(&ana(), thread, 100).await.unwrap();
        let stored: BTreeMap<_, _> = stored.into_iter().map(|message| (message.id, message)).collect();
        assert_eq!(current_updates(&delivered, &stored), current_updates(&read, &stored));
    })
    .await;
}

fn texts_of(update: &ThreadUpdate) -> Vec<String> {
    let ThreadUpdate::Commit { events, .. } = update else { panic!("not a commit: {update:?}") };
    let appended = events.iter().flat_map(|event| match event {
        ThreadEvent::Appended { messages, .. } => messages.as_slice(),
        _ => &[],
    });
    appended.map(|message| message.plain_text().into_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn subscribers_that_keep_up_need_no_store_calls() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    memory.append(&scope, thread, Draft::user("a title")).await.unwrap();
    let mut subscribers = Vec::new();
    for _ in 0..50 {
        subscribers.push(subscribe(memory, &scope, thread).await);
    }
    probe.take_calls();
    for number in 0..200 {
        memory.append(&scope, thread, Draft::user(number.to_string())).await.unwrap();
        for updates in &mut subscribers {
            assert_eq!(texts_of(&next_update(updates).await), [number.to_string()]);
        }
    }
    assert_eq!(probe.take_calls(), [("commit", 200)]);
}

#[tokio::test(start_paused = true)]
async fn one_read_of_the_change_log_serves_all_subscribers() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    let mut subscribers = Vec::new();
    for _ in 0..1_000 {
        subscribers.push(subscribe(memory, &scope, thread).await);
    }
    env.another_process().append(&scope, thread, Draft::assistant("from another process")).await.unwrap();
    probe.take_calls();
    let received = futures::future::join_all(subscribers.iter_mut().map(next_update)).await;
    assert!(received.iter().all(|update| texts_of(update) == ["from another process"]));
    assert_eq!(probe.take_calls(), [("list_changes_with_messages", 1)]);

    // Periodic reads are shared as well.
    let silence = futures::future::join_all(subscribers.iter_mut().map(ThreadUpdates::next));
    assert!(tokio::time::timeout(Duration::from_secs(10), silence).await.is_err());
    let calls = probe.take_calls();
    assert!(matches!(calls.as_slice(), [("list_changes_with_messages", 5..=11)]), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_commit_with_an_unknown_outcome_is_read_from_the_log() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    let mut updates = subscribe(memory, &scope, thread).await;
    probe.script([Outcome::LostResponse]);
    memory.append(&scope, thread, Draft::assistant("stored once")).await.unwrap();
    probe.script([Outcome::LostRequest]);
    memory.append(&scope, thread, Draft::assistant("stored later")).await.unwrap();
    assert_eq!(texts_of(&next_update(&mut updates).await), ["stored once"]);
    assert_eq!(texts_of(&next_update(&mut updates).await), ["stored later"]);
    assert!(tokio::time::timeout(Duration::from_secs(60), updates.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_reads_evicted_changes_from_the_store() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    let mut slow = subscribe(memory, &scope, thread).await;
    for number in 1..=150 {
        memory.append(&scope, thread, Draft::assistant(number.to_string())).await.unwrap();
    }
    probe.take_calls();
    for number in 1..=150 {
        assert_eq!(texts_of(&next_update(&mut slow).await), [number.to_string()]);
    }
    assert!(probe.take_calls().contains(&("list_changes_with_messages", 1)));
    // A message that is too large for the buffer is delivered as well.
    let long = "x".repeat(300_000);
    memory.append(&scope, thread, Draft::assistant(&long)).await.unwrap();
    assert_eq!(texts_of(&next_update(&mut slow).await), [long]);
}

#[tokio::test(start_paused = true)]
async fn removed_messages_are_not_delivered() {
    let env = TestEnv::plain();
    let (memory, other_process, scope) = (&env.memory, env.another_process(), ana());
    for eraser in [memory, &other_process] {
        let thread = env.open_thread().await;
        let mut updates = subscribe(memory, &scope, thread).await;
        let secret = memory.append(&scope, thread, Draft::assistant("a secret")).await.unwrap().messages[0];
        eraser.erase_messages(&scope, thread, &[secret.id]).await.unwrap();
        // Another task delivers the wake-up.
        tokio::task::yield_now().await;
        let ThreadUpdate::Commit { change: 2, events, .. } = next_update(&mut updates).await else {
            panic!("not a commit")
        };
        assert_eq!(events, [ThreadEvent::Erased { seq: secret.seq, id: secret.id }]);

        memory.append(&scope, thread, Draft::assistant("another")).await.unwrap();
        memory.delete_thread(&scope, thread).await.unwrap();
        assert_eq!(next_update(&mut updates).await, ThreadUpdate::Deleted);
    }
}

#[tokio::test(start_paused = true)]
async fn commits_from_other_scopes_are_read_from_the_store() {
    let (probe, env) = Probe::new_env();
    let (memory, clock) = (&env.memory, &env.clock);
    let thread = env.open_thread().await;
    let mut tenant_updates = subscribe(memory, &acme(), thread).await;
    memory.append(&ana(), thread, Draft::assistant("for the tenant")).await.unwrap();
    probe.take_calls();
    assert_eq!(texts_of(&next_update(&mut tenant_updates).await), ["for the tenant"]);
    assert_eq!(probe.take_calls(), [("list_changes_with_messages", 1)]);

    // After Ana's thread has expired, Ben opens a thread with the same id. Ana must not receive his messages.
    let mut anas_updates = subscribe(memory, &ana(), thread).await;
    let expiring =
        ThreadPatch { expires_at: Some(Some(time_after_minutes(clock.as_ref(), 1))), ..ThreadPatch::default() };
    memory.patch_thread(&ana(), thread, expiring, None).await.unwrap();
    assert!(matches!(next_update(&mut anas_updates).await, ThreadUpdate::Commit { change: 2, .. }));
    clock.advance_minutes(2);
    let open = threadkeep_core::OpenThread::new(&ben(), thread);
    env.backend.store.open_thread(&ben(), open, memory.now()).await.unwrap();
    for number in 1..=4 {
        memory.append(&ben(), thread, Draft::assistant(number.to_string())).await.unwrap();
    }
    assert_eq!(next_update(&mut anas_updates).await, ThreadUpdate::Deleted);
}

fn time_after_minutes(clock: &dyn threadkeep_core::Clock, minutes: i64) -> Timestamp {
    clock.now().plus_ms(minutes * 60_000)
}

#[tokio::test(start_paused = true)]
async fn a_commit_abandoned_by_its_caller_is_delivered() {
    let (_, env) = Probe::new_env_without_wake_ups();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    let mut updates = subscribe(memory, &scope, thread).await;
    assert!(updates.next().now_or_never().is_none());
    memory.append(&scope, thread, Draft::assistant("abandoned")).now_or_never();
    env.another_process().append(&scope, thread, Draft::assistant("after it")).await.unwrap();
    let mut received = texts_of(&next_update(&mut updates).await);
    if received != ["after it"] {
        assert_eq!(received, ["abandoned"]);
        received = texts_of(&next_update(&mut updates).await);
    }
    assert_eq!(received, ["after it"]);
}
