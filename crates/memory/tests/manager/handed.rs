//! What a manager hands to those who listen is what they would have read. S1.06, S1.07

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use threadkeep_core::{
    Content, JsonText, Map, Message, MessageId, Namespace, Part, PutRecord, RecordName, Role, Scope, ThreadId,
    ThreadPatch, Timestamp,
};
use threadkeep_memory::{AppendOptions, Draft, Memory, SubscribeOptions, ThreadEvent, ThreadUpdate, ThreadUpdates};

use super::probe::{Fate, Probe};
use super::world::{World, acme, ana, ben, everywhere};

async fn subscribe(memory: &Memory, scope: &Scope, thread: ThreadId) -> ThreadUpdates {
    memory.subscribe(scope, thread, SubscribeOptions::default()).await.unwrap()
}

/// The next update; a minute of the paused clock is longer than any poll interval.
async fn next(updates: &mut ThreadUpdates) -> ThreadUpdate {
    let update = tokio::time::timeout(Duration::from_secs(60), updates.next()).await;
    Arc::unwrap_or_clone(update.expect("something was heard of in time").expect("the stream goes on").unwrap())
}

/// What is heard up to a change.
async fn heard_up_to(updates: &mut ThreadUpdates, last: u64) -> Vec<ThreadUpdate> {
    let mut heard = Vec::new();
    loop {
        let update = next(updates).await;
        let ThreadUpdate::Commit { change, .. } = update else { panic!("no commit: {update:?}") };
        heard.push(update);
        if change == last {
            return heard;
        }
    }
}

fn note(number: usize) -> RecordName {
    RecordName { namespace: Namespace::App("notes".to_owned()), key: number.to_string() }
}

/// A message with a bit of everything that one can hold.
fn rich(number: usize) -> Draft {
    let mut content = Content::text(if number.is_multiple_of(2) { Role::User } else { Role::Assistant }, "é\u{1f6e4}");
    content.parts.push(Part::Reasoning(format!("because {number}")));
    content.author = Some(format!("author {number}"));
    content.metadata = Map::from_iter([("share".to_owned(), (number as f64 / 7.0).into())]);
    content.data = Some(JsonText::new(format!("{{\"b\":1.50,  \"a\":[{number}]}}")).unwrap());
    Draft::new(content)
}

/// One of the things that a commit can do, without taking words away.
async fn add(memory: &Memory, thread: ThreadId, writer: usize, number: usize) {
    let scope = ana();
    let name = writer * 100 + number;
    let put = PutRecord { name: note(name), value: JsonText::new("1".to_owned()).unwrap(), expires_at: None };
    match number % 6 {
        0 => drop(memory.append(&scope, thread, Draft::user(format!("{writer}: {number}"))).await.unwrap()),
        1 => {
            let two = vec![rich(number), rich(number + 1)];
            drop(memory.append_all(&scope, thread, two, &AppendOptions::default()).await.unwrap());
        }
        2 => {
            let batch = memory.batch().append(rich(number)).put(put).patch(ThreadPatch {
                metadata: Some(Map::from_iter([("number".to_owned(), number.into())])),
                ..ThreadPatch::default()
            });
            drop(batch.commit(&scope, thread).await.unwrap());
        }
        3 => drop(memory.batch().put(put).delete(note(name - 1)).commit(&scope, thread).await.unwrap()),
        4 => drop(memory.batch().put(put).deferred().commit(&scope, thread).await.unwrap()),
        _ => {
            let patch = ThreadPatch { title: Some(Some(format!("title {number}"))), ..ThreadPatch::default() };
            memory.patch_thread(&scope, thread, patch, None).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_handed_over_is_what_the_log_tells() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        // One that commits hands over, one that does not reads; a third leaves gaps for both.
        let (here, reading, elsewhere) = (&world.memory, world.another_process(), world.another_process());
        let (mut handed, mut read) = (subscribe(here, &ana(), thread).await, subscribe(&reading, &ana(), thread).await);
        let mut late = subscribe(here, &ana(), thread).await;
        let listening = tokio::spawn(async move { (heard_up_to(&mut handed, 120).await, handed) });
        let writers = (0..6).map(|writer| {
            let memory = if writer < 5 { here.clone() } else { elsewhere.clone() };
            tokio::spawn(async move {
                for number in 0..20 {
                    add(&memory, thread, writer, number).await;
                }
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        let last = here.get_thread(&ana(), thread).await.unwrap().positions.change;
        assert_eq!(last, 120);
        let read = heard_up_to(&mut read, last).await;
        let (handed, _) = listening.await.unwrap();
        assert_eq!(handed, read);
        assert_eq!(heard_up_to(&mut late, last).await, read);
    })
    .await;
}

/// What was heard, without the words that are no longer there.
fn as_it_stands(heard: &[ThreadUpdate], stored: &BTreeMap<MessageId, Message>) -> Vec<(u64, Vec<ThreadEvent>)> {
    let is_there = |message: &Message| stored.get(&message.id) == Some(message);
    let commits = heard.iter().filter_map(|update| {
        let ThreadUpdate::Commit { change, events, .. } = update else { panic!("no commit: {update:?}") };
        let mut events = events.clone();
        for event in &mut events {
            if let ThreadEvent::Appended { messages, .. } = event {
                // Who is late is shown what it says by now.
                messages.retain(|message| is_there(message) && message.revision == 0);
            }
        }
        events.retain(|event| match event {
            ThreadEvent::Appended { messages, .. } => !messages.is_empty(),
            ThreadEvent::Replaced { message } => is_there(message),
            _ => true,
        });
        (!events.is_empty()).then_some((*change, events))
    });
    commits.collect()
}

#[tokio::test(start_paused = true)]
async fn both_ways_tell_the_same_of_words_that_are_taken_away() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let (here, reading) = (world.memory.clone(), world.another_process());
        let (mut handed, mut read) =
            (subscribe(&here, &ana(), thread).await, subscribe(&reading, &ana(), thread).await);
        let listening = tokio::spawn(async move { heard_up_to(&mut handed, 81).await });
        let writers = (0..4).map(|writer| {
            let memory = if writer < 3 { here.clone() } else { world.another_process() };
            tokio::spawn(async move {
                for number in 0..5 {
                    // No title comes from them, so that the writers do not get in each other's way.
                    let three = (0..3).map(|place| Draft::assistant(format!("{writer}: {number}, {place}"))).collect();
                    let said =
                        memory.append_all(&ana(), thread, three, &AppendOptions::default()).await.unwrap().messages;
                    memory.erase_messages(&ana(), thread, &[said[0].id]).await.unwrap();
                    let anew = Content::text(Role::Assistant, format!("{writer}, anew"));
                    memory.replace_message(&ana(), thread, said[1].id, anew, None).await.unwrap();
                    add(&memory, thread, writer, 2).await;
                }
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        here.append(&ana(), thread, Draft::assistant("the end")).await.unwrap();
        let (handed, read) = (listening.await.unwrap(), heard_up_to(&mut read, 81).await);
        let stored = here.newest(&ana(), thread, 100).await.unwrap();
        let stored: BTreeMap<_, _> = stored.into_iter().map(|message| (message.id, message)).collect();
        assert_eq!(as_it_stands(&handed, &stored), as_it_stands(&read, &stored));
    })
    .await;
}

fn texts(update: &ThreadUpdate) -> Vec<String> {
    let ThreadUpdate::Commit { events, .. } = update else { panic!("no commit: {update:?}") };
    let appended = events.iter().flat_map(|event| match event {
        ThreadEvent::Appended { messages, .. } => messages.as_slice(),
        _ => &[],
    });
    appended.map(|message| message.plain_text().into_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn those_who_keep_up_ask_the_store_nothing() {
    let (probe, world) = Probe::world();
    let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
    memory.append(&scope, thread, Draft::user("a title")).await.unwrap();
    let mut all = Vec::new();
    for _ in 0..50 {
        all.push(subscribe(memory, &scope, thread).await);
    }
    probe.take_calls();
    for number in 0..200 {
        memory.append(&scope, thread, Draft::user(number.to_string())).await.unwrap();
        for updates in &mut all {
            assert_eq!(texts(&next(updates).await), [number.to_string()]);
        }
    }
    assert_eq!(probe.take_calls(), [("commit", 200)]);
}

#[tokio::test(start_paused = true)]
async fn one_look_at_the_log_serves_all_who_listen() {
    let (probe, world) = Probe::world();
    let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
    let mut all = Vec::new();
    for _ in 0..1_000 {
        all.push(subscribe(memory, &scope, thread).await);
    }
    world.another_process().append(&scope, thread, Draft::assistant("from elsewhere")).await.unwrap();
    probe.take_calls();
    let heard = futures::future::join_all(all.iter_mut().map(next)).await;
    assert!(heard.iter().all(|update| texts(update) == ["from elsewhere"]));
    assert_eq!(probe.take_calls(), [("list_changes_with_messages", 1)]);

    // Nor does each of them look now and then.
    let silence = futures::future::join_all(all.iter_mut().map(ThreadUpdates::next));
    assert!(tokio::time::timeout(Duration::from_secs(10), silence).await.is_err());
    let calls = probe.take_calls();
    assert!(matches!(calls.as_slice(), [("list_changes_with_messages", 5..=11)]), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_unknown_fate_is_read() {
    let (probe, world) = Probe::world();
    let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
    let mut updates = subscribe(memory, &scope, thread).await;
    probe.will_end([Fate::LostReply]);
    memory.append(&scope, thread, Draft::assistant("stored once")).await.unwrap();
    probe.will_end([Fate::LostRequest]);
    memory.append(&scope, thread, Draft::assistant("stored later")).await.unwrap();
    assert_eq!(texts(&next(&mut updates).await), ["stored once"]);
    assert_eq!(texts(&next(&mut updates).await), ["stored later"]);
    assert!(tokio::time::timeout(Duration::from_secs(60), updates.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_reads_what_is_held_no_more() {
    let (probe, world) = Probe::world();
    let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
    let mut slow = subscribe(memory, &scope, thread).await;
    for number in 1..=150 {
        memory.append(&scope, thread, Draft::assistant(number.to_string())).await.unwrap();
    }
    probe.take_calls();
    for number in 1..=150 {
        assert_eq!(texts(&next(&mut slow).await), [number.to_string()]);
    }
    assert!(probe.take_calls().contains(&("list_changes_with_messages", 1)));
    // One that is too large to be held is told all the same.
    let long = "x".repeat(300_000);
    memory.append(&scope, thread, Draft::assistant(&long)).await.unwrap();
    assert_eq!(texts(&next(&mut slow).await), [long]);
}

#[tokio::test(start_paused = true)]
async fn words_that_are_gone_are_told_to_nobody() {
    let world = World::plain();
    let (memory, elsewhere, scope) = (&world.memory, world.another_process(), ana());
    for eraser in [memory, &elsewhere] {
        let thread = world.thread().await;
        let mut updates = subscribe(memory, &scope, thread).await;
        let said = memory.append(&scope, thread, Draft::assistant("a secret")).await.unwrap().messages[0];
        eraser.erase_messages(&scope, thread, &[said.id]).await.unwrap();
        // The hint that it is so comes by another task.
        tokio::task::yield_now().await;
        let ThreadUpdate::Commit { change: 2, events, .. } = next(&mut updates).await else { panic!("no commit") };
        assert_eq!(events, [ThreadEvent::Erased { seq: said.seq, id: said.id }]);

        memory.append(&scope, thread, Draft::assistant("another")).await.unwrap();
        memory.delete_thread(&scope, thread).await.unwrap();
        assert_eq!(next(&mut updates).await, ThreadUpdate::Deleted);
    }
}

#[tokio::test(start_paused = true)]
async fn another_scope_is_told_by_the_store_alone() {
    let (probe, world) = Probe::world();
    let (memory, clock) = (&world.memory, &world.clock);
    let thread = world.thread().await;
    let mut of_tenant = subscribe(memory, &acme(), thread).await;
    memory.append(&ana(), thread, Draft::assistant("for the tenant")).await.unwrap();
    probe.take_calls();
    assert_eq!(texts(&next(&mut of_tenant).await), ["for the tenant"]);
    assert_eq!(probe.take_calls(), [("list_changes_with_messages", 1)]);

    // An id of Ana's whose thread has expired becomes Ben's: what he says there is not for her.
    let mut hers = subscribe(memory, &ana(), thread).await;
    let ends = ThreadPatch { expires_at: Some(Some(after_minutes(clock.as_ref(), 1))), ..ThreadPatch::default() };
    memory.patch_thread(&ana(), thread, ends, None).await.unwrap();
    assert!(matches!(next(&mut hers).await, ThreadUpdate::Commit { change: 2, .. }));
    clock.advance_minutes(2);
    let open = threadkeep_core::OpenThread::new(&ben(), thread);
    world.backend.store.open_thread(&ben(), open, memory.now()).await.unwrap();
    for number in 1..=4 {
        memory.append(&ben(), thread, Draft::assistant(number.to_string())).await.unwrap();
    }
    assert_eq!(next(&mut hers).await, ThreadUpdate::Deleted);
}

fn after_minutes(clock: &dyn threadkeep_core::Clock, minutes: i64) -> Timestamp {
    clock.now().plus_ms(minutes * 60_000)
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_its_caller_abandons_is_heard_of() {
    let (_, world) = Probe::silent_world();
    let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
    let mut updates = subscribe(memory, &scope, thread).await;
    assert!(updates.next().now_or_never().is_none());
    memory.append(&scope, thread, Draft::assistant("abandoned")).now_or_never();
    world.another_process().append(&scope, thread, Draft::assistant("after it")).await.unwrap();
    let mut heard = texts(&next(&mut updates).await);
    if heard != ["after it"] {
        assert_eq!(heard, ["abandoned"]);
        heard = texts(&next(&mut updates).await);
    }
    assert_eq!(heard, ["after it"]);
}
