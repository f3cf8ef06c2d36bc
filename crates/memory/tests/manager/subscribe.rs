use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use threadkeep_core::{Content, Role, ThreadId, UserCursor};
use threadkeep_memory::{
    AppendOptions, Draft, Start, SubscribeOptions, ThreadEvent, ThreadUpdate, ThreadUpdates, ThreadsUpdates,
};

use threadkeep_store_conformance::FailoverStore;
use threadkeep_store_memory::MemoryStore;

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn options_from(start: Start) -> SubscribeOptions {
    SubscribeOptions { start, roles: Vec::new() }
}

/// Receives the next update. The timeout, a minute of the paused clock, is longer than any poll interval.
async fn next_update(updates: &mut ThreadUpdates) -> ThreadUpdate {
    let update = tokio::time::timeout(Duration::from_secs(60), updates.next()).await;
    Arc::unwrap_or_clone(update.expect("an update arrives in time").expect("the stream does not end").unwrap())
}

async fn next_threads_update(updates: &mut ThreadsUpdates) -> threadkeep_memory::ThreadsUpdate {
    let update = tokio::time::timeout(Duration::from_secs(60), updates.next()).await;
    update.expect("an update arrives in time").expect("the stream does not end").unwrap()
}

/// Whether no update arrives within a minute of the paused clock.
async fn is_silent(updates: &mut ThreadUpdates) -> bool {
    tokio::time::timeout(Duration::from_secs(60), updates.next()).await.is_err()
}

fn texts_of(update: &ThreadUpdate) -> Vec<String> {
    let messages: Vec<_> = match update {
        ThreadUpdate::History { messages, .. } => messages.iter().collect(),
        ThreadUpdate::Commit { events, .. } => events
            .iter()
            .flat_map(|event| match event {
                ThreadEvent::Appended { messages, .. } => messages.iter().collect(),
                ThreadEvent::Replaced { message } => vec![message.as_ref()],
                _ => Vec::new(),
            })
            .collect(),
        _ => Vec::new(),
    };
    messages.iter().map(|message| message.plain_text().into_owned()).collect()
}

// S1.05, S1.06
#[tokio::test(start_paused = true)]
async fn a_subscriber_receives_only_its_thread_in_order() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        memory.append(&scope, thread, Draft::user("before")).await.unwrap();
        let mut updates = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
        let other = env.open_thread().await;
        memory.append(&scope, other, Draft::user("other thread")).await.unwrap();
        let two = vec![Draft::user("one"), Draft::assistant("two")];
        memory.append_all(&scope, thread, two, &AppendOptions::default()).await.unwrap();
        memory.append(&scope, thread, Draft::user("three")).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), ["one", "two"]);
        assert_eq!(texts_of(&next_update(&mut updates).await), ["three"]);
        memory.append_all(&scope, thread, Vec::new(), &AppendOptions::default()).await.unwrap();
        assert!(is_silent(&mut updates).await);
    })
    .await;
}

// S1.05
#[tokio::test(start_paused = true)]
async fn failed_commits_are_not_delivered() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    let mut updates = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
    probe.script([Outcome::DiskFull]);
    assert!(memory.append(&scope, thread, Draft::user("lost")).await.is_err());
    assert!(is_silent(&mut updates).await);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_change_is_delivered() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let mut updates = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
        let id = memory.append(&scope, thread, Draft::user("one")).await.unwrap().messages[0].id;
        let ThreadUpdate::Commit { change: 1, events, .. } = next_update(&mut updates).await else {
            panic!("not a commit")
        };
        assert!(matches!(events.as_slice(), [ThreadEvent::Appended { .. }, ThreadEvent::Patched]), "{events:?}");

        memory.replace_message(&scope, thread, id, Content::text(Role::User, "uno"), None).await.unwrap();
        let update = next_update(&mut updates).await;
        assert_eq!(texts_of(&update), ["uno"]);
        let ThreadUpdate::Commit { change: 2, .. } = update else { panic!("not a commit") };

        memory.erase_messages(&scope, thread, &[id]).await.unwrap();
        let ThreadUpdate::Commit { change: 3, events, .. } = next_update(&mut updates).await else {
            panic!("not a commit")
        };
        assert_eq!(events, [ThreadEvent::Erased { seq: 1, id }, ThreadEvent::Patched]);

        memory.append(&scope, thread, Draft::assistant("two")).await.unwrap();
        next_update(&mut updates).await;
        let newest_only = threadkeep_memory::Retention { max_messages: Some(1), ttl_minutes: None };
        memory.retain(&scope, thread, &newest_only).await.unwrap();
        let options = AppendOptions { retention: Some(newest_only), ..AppendOptions::default() };
        memory.append_all(&scope, thread, vec![Draft::assistant("three")], &options).await.unwrap();
        let trimmed = loop {
            let ThreadUpdate::Commit { events, .. } = next_update(&mut updates).await else { panic!("not a commit") };
            if let Some(ThreadEvent::Trimmed { first_seq: 3 }) = events.last() {
                break events;
            }
        };
        assert_eq!(trimmed.len(), 2);

        memory.set_thread_config(&scope, thread, &Default::default(), None).await.unwrap();
        let ThreadUpdate::Commit { events, .. } = next_update(&mut updates).await else { panic!("not a commit") };
        assert!(matches!(events.as_slice(), [ThreadEvent::Record { version: Some(_), .. }]), "{events:?}");

        memory.delete_thread(&scope, thread).await.unwrap();
        assert_eq!(next_update(&mut updates).await, ThreadUpdate::Deleted);
        assert!(updates.next().await.is_none());
    })
    .await;
}

// S1.06
#[tokio::test(start_paused = true)]
async fn a_role_filter_is_applied() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        memory.append(&scope, thread, Draft::user("title")).await.unwrap();
        let options = SubscribeOptions { start: Start::Last(10), roles: vec![Role::Assistant] };
        let mut updates = memory.subscribe(&scope, thread, options).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), [""; 0]);
        memory.append(&scope, thread, Draft::user("unread")).await.unwrap();
        let drafts = vec![Draft::user("unread, too"), Draft::assistant("received")];
        memory.append_all(&scope, thread, drafts, &AppendOptions::default()).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), ["received"]);
        assert!(is_silent(&mut updates).await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_resumed_subscriber_receives_missed_changes() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        for number in 1..=250 {
            memory.append(&scope, thread, Draft::assistant(number.to_string())).await.unwrap();
        }
        let mut updates = memory.subscribe(&scope, thread, options_from(Start::After(3.into()))).await.unwrap();
        for number in 4..=250_u64 {
            let update = next_update(&mut updates).await;
            assert_eq!(texts_of(&update), [number.to_string()]);
            assert!(matches!(update, ThreadUpdate::Commit { change, .. } if change == number));
        }
        memory.append(&scope, thread, Draft::assistant("live")).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), ["live"]);
    })
    .await;
}

// S1.43
#[tokio::test(start_paused = true)]
async fn a_late_subscriber_receives_the_last_messages_first() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        for number in 1..=5 {
            memory.append(&scope, thread, Draft::user(number.to_string())).await.unwrap();
        }
        let mut updates = memory.subscribe(&scope, thread, options_from(Start::Last(2))).await.unwrap();
        memory.append(&scope, thread, Draft::user("6")).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), ["4", "5"]);
        assert_eq!(texts_of(&next_update(&mut updates).await), ["6"]);
        assert!(is_silent(&mut updates).await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_after_an_unknown_change_is_reset() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        memory.append(&scope, thread, Draft::user("one")).await.unwrap();
        let mut updates = memory.subscribe(&scope, thread, options_from(Start::After(99.into()))).await.unwrap();
        let positions = memory.get_thread(&scope, thread).await.unwrap().positions;
        assert_eq!(next_update(&mut updates).await, ThreadUpdate::Reset { positions });
        memory.append(&scope, thread, Draft::user("two")).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), ["two"]);
    })
    .await;
}

/// Creates an environment on a store that can fail over, and returns both.
fn failover_env() -> (TestEnv, Arc<FailoverStore>) {
    let store = FailoverStore::new(MemoryStore::open(), MemoryStore::open());
    (TestEnv::with_backends(store.backend(), store.backend()), store)
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_after_a_change_lost_in_a_failover_is_reset() {
    let (env, store) = failover_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    memory.append(&scope, thread, Draft::user("one")).await.unwrap();
    store.replicate(&scope, thread, memory.now()).await.unwrap();
    let lost = memory.append(&scope, thread, Draft::user("lost")).await.unwrap().tagged();
    store.fail_over();
    let current = memory.append(&scope, thread, Draft::user("current")).await.unwrap().tagged();
    assert_eq!((lost.number, lost == current), (current.number, false));
    // While there is a subscriber, the feed buffers later changes.
    let mut listening = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
    for text in ["", "two", "three"] {
        if !text.is_empty() {
            memory.append(&scope, thread, Draft::user(text)).await.unwrap();
            assert_eq!(texts_of(&next_update(&mut listening).await), [text]);
        }
        let positions = memory.get_thread(&scope, thread).await.unwrap().positions;
        let mut updates = memory.subscribe(&scope, thread, options_from(Start::After(lost))).await.unwrap();
        assert_eq!(next_update(&mut updates).await, ThreadUpdate::Reset { positions }, "after {text:?}");
        let page = memory.updates_after(&scope, thread, lost, &[]).await.unwrap().unwrap();
        assert_eq!(page.updates, [ThreadUpdate::Reset { positions }]);
    }
    for known in [current, current.number.into()] {
        let mut updates = memory.subscribe(&scope, thread, options_from(Start::After(known))).await.unwrap();
        assert_eq!(texts_of(&next_update(&mut updates).await), ["two"], "after {known}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failover_resets_subscribers() {
    let (env, store) = failover_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    store.replicate(&scope, thread, memory.now()).await.unwrap();
    let mut updates = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
    memory.append(&scope, thread, Draft::user("lost")).await.unwrap();
    assert_eq!(texts_of(&next_update(&mut updates).await), ["lost"]);
    store.fail_over();
    env.another_process().append(&scope, thread, Draft::user("current")).await.unwrap();
    let positions = memory.get_thread(&scope, thread).await.unwrap().positions;
    assert_eq!(next_update(&mut updates).await, ThreadUpdate::Reset { positions });
    memory.append(&scope, thread, Draft::user("two")).await.unwrap();
    assert_eq!(texts_of(&next_update(&mut updates).await), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn changes_are_delivered_without_wake_ups() {
    let (_, env) = Probe::new_env_without_wake_ups();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    let mut updates = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
    assert!(is_silent(&mut updates).await);
    let listener = tokio::spawn(async move {
        let mut received = Vec::new();
        for _ in 0..3 {
            received.extend(texts_of(&next_update(&mut updates).await));
        }
        received
    });
    // A `Memory` delivers its own commits directly, so another `Memory` commits.
    let other_process = env.another_process();
    for number in 1..=3 {
        tokio::task::yield_now().await;
        other_process.append(&scope, thread, Draft::user(number.to_string())).await.unwrap();
    }
    assert_eq!(listener.await.unwrap(), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_up_delivers_a_change_without_polling() {
    let env = TestEnv::plain().with_options(threadkeep_memory::MemoryOptions {
        poll_interval: Duration::from_secs(3_600),
        ..Default::default()
    });
    let (memory, scope, thread) = (env.memory.clone(), ana(), env.open_thread().await);
    let mut updates = memory.subscribe(&scope, thread, SubscribeOptions::default()).await.unwrap();
    assert!(updates.next().now_or_never().is_none());
    memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
    assert_eq!(texts_of(&next_update(&mut updates).await), ["hello"]);
}

// S1.06, S1.07
#[tokio::test(start_paused = true)]
async fn subscribers_receive_all_changes_in_stored_order() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let subscribe = async || env.memory.subscribe(&ana(), thread, SubscribeOptions::default()).await.unwrap();
        let (mut listening, unread, dropped) = (subscribe().await, subscribe().await, subscribe().await);
        drop(dropped);
        let failing = tokio::spawn(subscribe().await.for_each(async |_| panic!("a subscriber that panics")));
        let writers = (0..16).map(|writer| {
            let memory = env.memory.clone();
            tokio::spawn(async move {
                for number in 0..4 {
                    memory.append(&ana(), thread, Draft::assistant(format!("{writer}:{number}"))).await.unwrap();
                }
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        let mut received = Vec::new();
        while received.len() < 64 {
            received.extend(texts_of(&next_update(&mut listening).await));
        }
        let stored = env.memory.newest(&ana(), thread, 100).await.unwrap();
        let stored: Vec<_> = stored.iter().map(|message| message.plain_text().into_owned()).collect();
        assert_eq!(received, stored);
        assert!(failing.await.is_err());

        // A slow subscriber receives all changes later.
        let received_later: Vec<_> = unread.take(64).map(|update| texts_of(&update.unwrap())).collect().await;
        assert_eq!(received_later.concat(), stored);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_user_receives_changed_threads() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, ana());
        let (first, second) = (env.open_thread().await, env.open_thread().await);
        let cursor = memory.current_cursor(&scope).await.unwrap();
        memory.append(&scope, first, Draft::user("first")).await.unwrap();
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ben(), bens_thread, Draft::user("not ana's")).await.unwrap();
        memory.append(&scope, second, Draft::user("second")).await.unwrap();

        let mut updates = memory.subscribe_threads(&scope, Some(cursor)).await.unwrap();
        let mut changed: Vec<ThreadId> = Vec::new();
        while changed.len() < 2 {
            changed.extend(next_threads_update(&mut updates).await.threads.iter().map(|thread| thread.id));
        }
        assert_eq!(changed, [first, second]);

        memory.delete_thread(&scope, first).await.unwrap();
        let update = next_threads_update(&mut updates).await;
        assert_eq!((update.threads[0].id, update.threads[0].positions), (first, None));
        assert!(!update.reset);

        // A subscription that starts from a cursor continues with the changes after the cursor.
        memory.append(&scope, second, Draft::user("third")).await.unwrap();
        let mut resumed = memory.subscribe_threads(&scope, Some(update.cursor)).await.unwrap();
        let resumed_update = next_threads_update(&mut resumed).await;
        assert_eq!(resumed_update.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [second]);

        let mut tenant_updates = memory.subscribe_threads(&acme(), None).await.unwrap();
        memory.append(&ben(), bens_thread, Draft::user("for the tenant")).await.unwrap();
        assert_eq!(next_threads_update(&mut tenant_updates).await.threads[0].id, bens_thread);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_with_a_cursor_from_another_store_is_reset() {
    let (first, second) = (TestEnv::plain(), TestEnv::plain());
    for _ in 0..3 {
        first.open_thread().await;
    }
    let cursor: UserCursor = first.memory.current_cursor(&ana()).await.unwrap();
    let mut updates = second.memory.subscribe_threads(&ana(), Some(cursor)).await.unwrap();
    assert!(next_threads_update(&mut updates).await.reset);
    let thread = second.open_thread().await;
    assert_eq!(next_threads_update(&mut updates).await.threads[0].id, thread);
}
