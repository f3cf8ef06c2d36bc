//! Faults of a cluster of three primaries and three replicas, with append-only files, under load.
#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

mod load;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::StreamExt;
use threadkeep_core::{StoreError, ThreadId, ThreadOrder, ThreadQuery, UserCursor, WakeUp, WakeUps};
use threadkeep_memory::{Draft, Memory, MemoryError};
use threadkeep_redis_server::{Cluster, Server};
use threadkeep_store_redis::RedisStore;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::block_in_place;

use load::{Load, Losses, TIMEOUT, ana, compare, eventually, requested_times};

/// The number of writers.
const WRITERS: usize = 16;
/// The number of slots that are moved at once.
const SLOTS: usize = 300;

/// Locked by every test, because two concurrent loads are too much for a small machine.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// The cluster that all tests except one use in turn. Each leaves it complete.
async fn cluster() -> Option<MutexGuard<'static, Cluster>> {
    static CLUSTER: std::sync::OnceLock<Option<Mutex<Cluster>>> = std::sync::OnceLock::new();
    let cluster = block_in_place(|| CLUSTER.get_or_init(|| Cluster::start(1).map(Mutex::new)));
    let cluster = cluster.as_ref()?.lock().await;
    block_in_place(|| cluster.wait_until_ready());
    Some(cluster)
}

async fn open(cluster: &Cluster, prefix: &str, further: &str) -> Memory {
    let url = format!("redis-cluster://{}?prefix={prefix}&{further}", cluster.addresses());
    Memory::new(RedisStore::open(&url).await.unwrap().backend())
}

/// How often faults are repeated: a few times by default, or as often as the environment sets.
fn times() -> usize {
    requested_times().unwrap_or(2)
}

/// Kills the primaries one after another, each after a replica has replaced the previous one and all replicas are in step again.
async fn kill_primaries(cluster: &Cluster, load: &Load) {
    for number in 0..times() {
        load.progress(50).await;
        block_in_place(|| {
            let primaries = cluster.primaries();
            let killed = primaries[number % primaries.len()];
            killed.kill();
            cluster.wait_until_served_without(killed);
            killed.restart();
            cluster.wait_until_ready();
        });
    }
    load.progress(50).await;
}

async fn assert_no_findings(memory: &Memory) {
    let backend = memory.backend();
    while !eventually(|| backend.search.catch_up(10_000)).await.done {}
    assert_eq!(eventually(|| backend.maintenance.verify()).await.findings, []);
}

// S1.40
#[tokio::test(flavor = "multi_thread")]
async fn awaited_commits_survive_the_loss_of_primaries() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    let memory = open(&cluster, "awaited", "wait_replicas=1&wait_timeout=2000").await;
    let load = Load::start(&memory, WRITERS);
    kill_primaries(&cluster, &load).await;
    let (failures, longest) = (load.failures(), load.longest_call());
    let losses = compare(&memory, &load.finish().await).await;
    println!("{} kills, WAIT 1: {losses:?}, {failures} failed calls, the longest took {longest:?}", times());
    let Losses { acknowledged, .. } = losses;
    assert_eq!(losses, Losses { acknowledged, ..Losses::default() });
    assert_no_findings(&memory).await;
}

/// Without WAIT, a failover may lose the newest commits, but it neither duplicates nor reorders any.
#[tokio::test(flavor = "multi_thread")]
async fn commits_without_waiting_may_be_lost_but_not_duplicated_or_reordered() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    let memory = open(&cluster, "unawaited", "wait_replicas=0").await;
    let load = Load::start(&memory, WRITERS);
    kill_primaries(&cluster, &load).await;
    let failures = load.failures();
    let losses = compare(&memory, &load.finish().await).await;
    println!("{} kills, no WAIT: {losses:?}, {failures} failed calls", times());
    assert_eq!((losses.doubled, losses.out_of_order), (0, 0), "{losses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_move_under_load() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    let memory = open(&cluster, "moved", "").await;
    let load = Load::start(&memory, WRITERS);
    for number in 0..times() {
        load.progress(50).await;
        block_in_place(|| {
            let primaries = cluster.primaries();
            let (from, to) = (primaries[number % 3], primaries[(number + 1) % 3]);
            cluster.move_slots(from, to, SLOTS);
        });
    }
    load.progress(50).await;
    let (failures, longest) = (load.failures(), load.longest_call());
    let losses = compare(&memory, &load.finish().await).await;
    println!("{} x {SLOTS} slots moved: {losses:?}, {failures} failed calls, the longest took {longest:?}", times());
    let Losses { acknowledged, .. } = losses;
    assert_eq!(losses, Losses { acknowledged, ..Losses::default() });
    assert_no_findings(&memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_half_of_the_nodes_gets_errors_and_recovers() {
    let _turn = turn().await;
    let started = block_in_place(|| Cluster::start_behind_proxies(1));
    let Some((cluster, proxies)) = started else { return };
    let url = format!("redis-cluster://{}?connect_timeout=1&response_timeout=1", cluster.proxied_addresses());
    let memory = Memory::new(RedisStore::open(&url).await.unwrap().backend());
    let load = Load::start(&memory, WRITERS);
    // Each repetition takes several timeouts.
    let times = times().div_ceil(3);
    for number in 0..times {
        load.progress(50).await;
        // Of three primaries and three replicas; the nodes still reach each other.
        let half: Vec<_> = proxies.iter().cycle().skip(number).take(proxies.len() / 2).collect();
        half.iter().for_each(|proxy| proxy.cut());
        let failures = load.failures();
        while load.failures() == failures {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        half.iter().for_each(|proxy| proxy.repair());
    }
    load.progress(50).await;
    let (failures, longest) = (load.failures(), load.longest_call());
    let losses = compare(&memory, &load.finish().await).await;
    println!("{times} times cut off: {losses:?}, {failures} failed calls, the longest took {longest:?}");
    let Losses { acknowledged, .. } = losses;
    assert_eq!(losses, Losses { acknowledged, ..Losses::default() });
    assert_no_findings(&memory).await;
}

/// Returns the primary that serves a key of a thread.
fn primary_of<'a>(cluster: &'a Cluster, prefix: &str, thread: ThreadId) -> &'a Server {
    cluster.primaries().into_iter().find(|node| is_stored(node, prefix, thread)).unwrap()
}

fn is_stored(node: &Server, prefix: &str, thread: ThreadId) -> bool {
    node.run(&["exists", &format!("{prefix}:{{{thread}/acme}}:t")]) == "1"
}

/// Reads a user's feed until it is reset, and returns the cursor from which to continue.
async fn cursor_after_reset(memory: &Memory, mut cursor: UserCursor) -> UserCursor {
    let began = Instant::now();
    loop {
        let now = memory.platform().clock.now();
        let store = memory.backend().store.clone();
        let changed = eventually(|| store.list_changed_threads(ana(), Some(&cursor), 10, now)).await;
        cursor = changed.cursor;
        if changed.reset {
            return cursor;
        }
        assert!(began.elapsed() < TIMEOUT, "the feed is not reset");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// After a failover that lost commits, cursors of readers that had seen them are no longer valid.
#[tokio::test(flavor = "multi_thread")]
async fn readers_are_reset_after_a_failover_that_lost_a_tail() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    let memory = open(&cluster, "reset", "").await;
    let thread = memory.open(ana()).await.unwrap().thread.id;
    memory.append(ana(), thread, Draft::user("kept")).await.unwrap();
    let primary = block_in_place(|| primary_of(&cluster, "reset", thread));
    block_in_place(|| {
        cluster.wait_until_ready();
        primary.disconnect_replicas();
    });
    memory.append(ana(), thread, Draft::user("lost")).await.unwrap();
    let store = memory.backend().store.clone();
    let now = memory.platform().clock.now();
    let cursor = store.list_changed_threads(ana(), None, 10, now).await.unwrap().cursor;
    let before = memory.find_thread(ana(), thread).await.unwrap().unwrap().positions;
    block_in_place(|| {
        primary.kill();
        cluster.wait_until_served_without(primary);
        primary.restart();
        cluster.wait_until_ready();
    });
    let texts = eventually(|| memory.newest(ana(), thread, 10)).await;
    assert_eq!(texts.iter().map(|message| message.plain_text().into_owned()).collect::<Vec<_>>(), ["kept"]);
    let cursor = cursor_after_reset(&memory, cursor).await;
    eventually(|| memory.append(ana(), thread, Draft::user("other"))).await;
    // The number of the lost write is reused, and the feed announces the new write.
    let changed = eventually(|| store.list_changed_threads(ana(), Some(&cursor), 10, now)).await;
    assert_eq!(changed.threads.iter().map(|changed| changed.id).collect::<Vec<_>>(), [thread]);
    let after = eventually(|| memory.find_thread(ana(), thread)).await.unwrap().positions;
    assert_eq!(before.change, after.change, "the number of the lost change is not used again");
    let before = before.tagged();
    let page = eventually(|| store.list_changes(ana(), thread, before, 10, now)).await;
    assert!(matches!(page, threadkeep_core::ChangePage::Reset { .. }), "{page:?}");
}

/// Whether an error says that a server has lost its data.
fn names_the_loss(error: &MemoryError) -> bool {
    matches!(error, MemoryError::Store(StoreError::Corrupt { .. }))
        && error.to_string().contains("restarted without its data")
}

/// Returns the result of a call after a loss; `None` if it failed with the error that reports the loss.
async fn answer<T, F>(call: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, MemoryError>>,
{
    let answer = eventually(|| async {
        match call().await {
            Err(error) if names_the_loss(&error) => Ok(None),
            result => result.map(Some),
        }
    });
    answer.await
}

/// A primary that restarts without its files before its replica takes over empties the replica too. Until the store is repaired, no call
/// may answer as if the lost data had never existed. What is lost depends on the primary's slots: lists, keys, the description of the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_restarts_empty_is_noticed() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    for number in 0..3 {
        let (lost, all) = assert_loss_is_noticed(&cluster, number).await;
        println!("{lost} of {all} threads were on the emptied server");
    }
}

/// Returns the number of lost threads, and of all threads.
async fn assert_loss_is_noticed(cluster: &Cluster, number: usize) -> (usize, usize) {
    let prefix = format!("emptied-{number}");
    let memory = open(cluster, &prefix, "").await;
    let other = open(cluster, &prefix, "").await;
    let load = Load::start(&memory, WRITERS);
    load.progress(300).await;
    let written = load.finish().await;
    assert_eq!(compare(&memory, &written).await.lost, 0);
    let now = memory.platform().clock.now();
    let cursor = memory.backend().store.list_changed_threads(ana(), None, 10, now).await.unwrap().cursor;
    let (lost, kept): (Vec<_>, Vec<_>) = block_in_place(|| {
        let primary = cluster.primaries()[number];
        let partition = written.iter().partition(|thread| is_stored(primary, &prefix, thread.thread()));
        primary.restart_empty();
        cluster.wait_until_ready();
        partition
    });
    assert!(!lost.is_empty() && !kept.is_empty(), "{} lost, {} kept", lost.len(), kept.len());
    let mut reported = 0;
    for thread in &written {
        // Neither "not found" nor an empty thread.
        match answer(|| memory.newest(ana(), thread.thread(), 100)).await {
            Some(messages) => assert_eq!(messages.len(), thread.acknowledged().len()),
            None => reported += 1,
        }
        // A key is either found or reported as lost, by every instance.
        for memory in [&memory, &other] {
            if let Some(found) = answer(|| memory.find_thread_by_key(ana(), thread.key())).await {
                assert_eq!(found.map(|found| found.id), Some(thread.thread()));
            }
        }
    }
    // Losses are recorded for parts of the hash slots. Until the repair, threads in a part that spans two servers are reported as well.
    assert!((lost.len()..lost.len() + 3).contains(&reported), "{} lost, {reported} reported", lost.len());
    let query = ThreadQuery::new(ThreadOrder::Created, 500);
    if let Some(page) = answer(|| memory.list_threads(ana(), &query)).await {
        assert_eq!(page.threads.len(), kept.len());
    }
    let maintenance = &memory.backend().maintenance;
    let findings = eventually(|| maintenance.verify()).await.findings;
    assert!(findings.len() == 1 && findings[0].detail.contains("restarted without its data"), "{findings:?}");
    assert!(answer(|| async { Ok(maintenance.snapshot(now).await?) }).await.is_none(), "a backup would lack data");
    let description = maintenance.durability().unwrap();
    assert!(description.is_volatile && description.description.starts_with("LOST DATA"), "{description:?}");
    // A process that starts now does not mistake the emptied server for a new one.
    let started = open(cluster, &prefix, "").await;
    assert!(answer(|| started.newest(ana(), lost[0].thread(), 1)).await.is_none());

    eventually(|| maintenance.repair(now)).await;
    for memory in [&memory, &other, &started] {
        // Other calls notice within a second that the store has been repaired.
        assert_eq!(eventually(|| memory.backend().maintenance.verify()).await.findings, []);
        assert_no_findings(memory).await;
        let page = eventually(|| memory.list_threads(ana(), &query)).await;
        let listed: HashSet<ThreadId> = page.threads.iter().map(|thread| thread.id).collect();
        assert_eq!(listed, kept.iter().map(|thread| thread.thread()).collect());
        for thread in &kept {
            let found = eventually(|| memory.find_thread_by_key(ana(), thread.key())).await;
            assert_eq!(found.map(|found| found.id), Some(thread.thread()));
        }
    }
    assert!(!maintenance.durability().unwrap().is_volatile);
    cursor_after_reset(&memory, cursor).await;
    let load = Load::start(&memory, WRITERS);
    load.progress(100).await;
    let losses = compare(&memory, &load.finish().await).await;
    let Losses { acknowledged, .. } = losses;
    assert_eq!(losses, Losses { acknowledged, ..Losses::default() });
    (lost.len(), written.len())
}

/// The instances of a store subscribe to its channels at several nodes. One of these nodes is killed, and slots are moved.
#[tokio::test(flavor = "multi_thread")]
async fn events_reach_other_instances_after_a_node_was_killed_and_slots_have_moved() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    let (one, two) = (open(&cluster, "events", "").await, open(&cluster, "events", "").await);
    let mut wake_ups = two.backend().store.wake_ups().await.unwrap();
    let mut threads = Vec::new();
    for _ in 0..32 {
        threads.push(one.open(ana()).await.unwrap().thread.id);
    }
    // With 32 threads, every node publishes some of the wake-ups.
    assert_woken(&one, &mut wake_ups, &threads).await;
    block_in_place(|| {
        let killed = cluster.primaries()[1];
        killed.kill();
        cluster.wait_until_served_without(killed);
    });
    assert_woken(&one, &mut wake_ups, &threads).await;
    block_in_place(|| {
        cluster.nodes().iter().for_each(|node| {
            if node.run(&["ping"]) != "PONG" {
                node.restart()
            }
        });
        cluster.wait_until_ready();
        let primaries = cluster.primaries();
        cluster.move_slots(primaries[0], primaries[2], 2_000);
    });
    assert_woken(&one, &mut wake_ups, &threads).await;
}

/// Writes to each thread until another instance receives a wake-up for this thread, not only `WakeUp::Unspecified`.
async fn assert_woken(memory: &Memory, wake_ups: &mut WakeUps, threads: &[ThreadId]) {
    let began = Instant::now();
    for expected in threads {
        'written: loop {
            assert!(began.elapsed() < TIMEOUT, "no wake-up");
            eventually(|| memory.append(ana(), *expected, Draft::user("hello"))).await;
            // While an instance resubscribes, wake-ups are lost.
            while let Ok(woken) = tokio::time::timeout(Duration::from_millis(500), wake_ups.next()).await {
                if matches!(woken, Some(WakeUp::Thread { thread, change: Some(_), .. }) if thread == *expected) {
                    break 'written;
                }
            }
        }
    }
}
