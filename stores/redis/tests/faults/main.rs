//! Faults of a cluster of three primaries and three replicas, with append-only files, under load.
#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

mod load;

use std::time::{Duration, Instant};

use threadkeep_core::{StoreError, ThreadId, UserCursor};
use threadkeep_memory::{Draft, Memory, MemoryError};
use threadkeep_redis_server::{Cluster, Server};
use threadkeep_store_redis::RedisStore;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::block_in_place;

use load::{Load, Losses, TIMEOUT, ana, compare, eventually, requested_times};

/// The number of writers.
const WRITERS: usize = 16;
/// The number of slots that move at once.
const SLOTS: usize = 300;

/// Held by every test, because two loads at the same time are too much for a small machine.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// The cluster of all tests but one, which use it one after the other and leave it complete.
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

/// How often faults are repeated: a few times, or as often as the environment says.
fn times() -> usize {
    requested_times().unwrap_or(2)
}

/// Kills one primary after the other, each when a replica has taken over the former and all replicas are in step again.
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

/// Without WAIT a failover may lose the newest commits, but it neither doubles nor reorders any.
#[tokio::test(flavor = "multi_thread")]
async fn the_loss_without_waiting_is_only_of_commits() {
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
    // Each time takes several timeouts.
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
    let key = format!("{prefix}:{{{thread}/acme}}:t");
    let is_stored = |node: &&Server| node.run(&["exists", &key]) == "1";
    cluster.primaries().into_iter().find(is_stored).unwrap()
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

/// What was read before a failover that lost it is not valid afterwards.
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
    // The number of the lost write is used again, and the feed announces it.
    let changed = eventually(|| store.list_changed_threads(ana(), Some(&cursor), 10, now)).await;
    assert_eq!(changed.threads.iter().map(|changed| changed.id).collect::<Vec<_>>(), [thread]);
    let after = eventually(|| memory.find_thread(ana(), thread)).await.unwrap().positions;
    assert_eq!(before.change, after.change, "the number of the lost change is not used again");
    let before = before.tagged();
    let page = eventually(|| store.list_changes(ana(), thread, before, 10, now)).await;
    assert!(matches!(page, threadkeep_core::ChangePage::Reset { .. }), "{page:?}");
}

/// The trap of a primary without its files that restarts before its replica takes over: the replica is emptied too.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_restarts_empty_loses_its_threads_and_no_others() {
    let _turn = turn().await;
    let Some(cluster) = cluster().await else { return };
    let memory = open(&cluster, "emptied", "").await;
    let load = Load::start(&memory, WRITERS);
    load.progress(500).await;
    let written = load.finish().await;
    let before = compare(&memory, &written).await;
    let emptied = block_in_place(|| {
        let emptied = cluster.primaries()[0];
        emptied.restart_empty();
        cluster.wait_until_ready();
        emptied
    });
    let (mut lost, mut kept) = (0, 0);
    for thread in load::threads(&written) {
        let is_kept = eventually(|| async {
            match memory.append(ana(), thread, Draft::user("after")).await {
                Err(MemoryError::Store(StoreError::NotFound(_))) => Ok(false),
                result => result.map(|_| true),
            }
        });
        if is_kept.await { kept += 1 } else { lost += 1 }
    }
    println!("{} of {} threads were on the emptied node {}", lost, lost + kept, emptied.address());
    assert!(lost > 0 && kept > 0 && before.lost == 0);
    // The functions are missing there as well, and are installed again.
    let load = Load::start(&memory, WRITERS);
    load.progress(200).await;
    let written = load.finish().await;
    let losses = compare(&memory, &written).await;
    assert_eq!((losses.lost, losses.doubled), (0, 0), "{losses:?}");
}
