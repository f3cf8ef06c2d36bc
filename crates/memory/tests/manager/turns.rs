//! Turns: who holds a thread, what becomes of what was cut, and how little waiting costs.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use threadkeep_core::{
    Clock, JsonText, Message, Namespace, OpenThread, Processes, PutRecord, RecordName, RecordState, Scope, ThreadId,
    Timestamp,
};
use threadkeep_memory::turns::record::{self, RunRecord};
use threadkeep_memory::turns::{
    Completion, Interrupted, LockResult, ThreadAccess, TurnKind, TurnWaiter, request_stop, find_running_turn, find_turn_state,
    list_interrupted_turns, remove_interrupted_completion,
};
use threadkeep_memory::{Draft, Memory, Platform, Watch};

use super::probe::Probe;
use super::world::{World, acme, ana, ben, everywhere};

/// Longer than anything takes that is woken, and less than what looks by itself.
const SOON: Duration = Duration::from_secs(4);

async fn take(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> LockResult {
    Completion::take(memory, scope, thread, turn, "a model").await.unwrap()
}

async fn taken(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Completion {
    match take(memory, scope, thread, turn).await {
        LockResult::Acquired(completion) => completion,
        other => panic!("{other:?}"),
    }
}

async fn texts(world: &World, thread: ThreadId) -> Vec<String> {
    let newest = world.memory.newest(&acme(), thread, 10).await.unwrap();
    newest.iter().map(Message::plain_text).map(String::from).collect()
}

fn older_lock() -> RecordName {
    RecordName { namespace: Namespace::System("server".to_owned()), key: "lease".to_owned() }
}

async fn active(memory: &Memory, thread: ThreadId) -> Option<RunRecord> {
    let found = memory.find_thread_record(&acme(), thread, &record::active()).await.unwrap();
    found.map(|record| record.value.read().unwrap())
}

/// Writes a record as a process of another machine would have left it.
async fn left_elsewhere(world: &World, thread: ThreadId, change: impl Fn(&mut RunRecord)) {
    let completion = taken(&world.memory, &ana(), thread, "elsewhere").await;
    let mut record = active(&world.memory, thread).await.unwrap();
    completion.abandon().await;
    record.driver = "another machine/7".to_owned();
    change(&mut record);
    let put = PutRecord { name: record::active(), value: JsonText::of(&record).unwrap(), expires_at: None };
    world.memory.batch().put(put).commit(&ana(), thread).await.unwrap();
}

/// The only process of its machine.
struct Alone;

impl Processes for Alone {
    fn own_name(&self) -> Option<String> {
        Some("alone".to_owned())
    }

    fn has_ended(&self, name: &str) -> bool {
        !name.starts_with("alone:")
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_known_to_have_ended_holds_no_thread() {
    let world = World::plain();
    let thread = world.thread().await;
    left_elsewhere(&world, thread, |_| {}).await;
    let on = |processes| {
        let platform = Platform { processes, ..world.memory.platform().clone() };
        Memory::with_platform(world.backend.clone(), platform)
    };
    assert!(matches!(take(&world.memory, &ana(), thread, "one").await, LockResult::Busy));
    assert!(matches!(take(&on(None), &ana(), thread, "one").await, LockResult::Busy));
    taken(&on(Some(Arc::new(Alone))), &ana(), thread, "one").await.abandon().await;
}

#[tokio::test(start_paused = true)]
async fn one_call_of_a_model_holds_a_thread_at_a_time() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let other = world.another_process();
        let first = taken(&world.memory, &ana(), thread, "resp_1").await;
        assert!(matches!(take(&other, &ana(), thread, "resp_2").await, LockResult::Busy));
        assert!(matches!(take(&world.memory, &acme(), thread, "resp_2").await, LockResult::Busy));
        let running = find_running_turn(&other, &ana(), thread).await.unwrap().unwrap();
        let told = (running.turn.as_str(), running.kind, running.assistant.as_str(), running.model.as_str());
        assert_eq!(told, ("resp_1", TurnKind::Completion, "", "a model"));
        let batch = world.memory.batch().append(Draft::user("Hello?")).append(Draft::assistant("Hello."));
        first.finish(batch).await.unwrap();
        assert_eq!(find_running_turn(&other, &ana(), thread).await.unwrap(), None);
        let second = taken(&other, &ana(), thread, "resp_2").await;
        second.abandon().await;
        assert_eq!(texts(&world, thread).await, ["Hello?", "Hello."]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn users_who_share_a_thread_lock_each_other() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let open = OpenThread::new(&acme(), memory.mint_thread_id());
        let thread = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        let anas = taken(memory, &ana(), thread, "one").await;
        for scope in [ben(), ana(), acme()] {
            assert!(matches!(take(memory, &scope, thread, "two").await, LockResult::Busy));
        }
        anas.finish(memory.batch().append(Draft::user("Mine."))).await.unwrap();
        taken(memory, &ben(), thread, "two").await.abandon().await;
        let bens = memory.open(&ben()).await.unwrap().thread.id;
        let error = Completion::take(memory, &ana(), bens, "one", "a model").await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_leaves_a_free_thread_and_nothing_else() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let cut = taken(&world.memory, &ana(), thread, "one").await;
        let late = cut.clone();
        drop(cut);
        assert!(
            matches!(take(&world.memory, &ana(), thread, "two").await, LockResult::Busy),
            "a clone drives it still"
        );
        drop(late);
        assert_eq!(list_interrupted_turns(&world.memory).await.unwrap()[0].kind, TurnKind::Completion);
        taken(&world.another_process(), &ana(), thread, "two").await.abandon().await;
        assert!(texts(&world, thread).await.is_empty());

        // Of another machine nothing is known until its lease is over.
        left_elsewhere(&world, thread, |_| {}).await;
        assert!(matches!(take(&world.memory, &ana(), thread, "three").await, LockResult::Busy));
        assert_eq!(list_interrupted_turns(&world.memory).await.unwrap(), []);
        world.clock.advance_ms(30_000);
        assert!(find_turn_state(&world.memory, &ana(), thread, "elsewhere").await.unwrap().is_none());
        let cut = list_interrupted_turns(&world.memory).await.unwrap().remove(0);
        assert_eq!((cut.scope, cut.thread, cut.kind), (ana(), thread, TurnKind::Completion));
        remove_interrupted_completion(&world.memory, &ana(), thread).await.unwrap();
        assert_eq!(active(&world.memory, thread).await, None);
        assert!(texts(&world, thread).await.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_overtaken_stores_nothing() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let slow = taken(&world.memory, &ana(), thread, "one").await;
        // Another machine thinks that it is gone, and takes the thread.
        let held = world.memory.find_thread_record(&ana(), thread, &record::active()).await.unwrap().unwrap();
        let mut record: RunRecord = held.value.read().unwrap();
        record.turn = "two".to_owned();
        let put = PutRecord { name: record::active(), value: JsonText::of(&record).unwrap(), expires_at: None };
        let batch = world.memory.batch().require(record::active(), RecordState::Version(held.tagged())).put(put);
        batch.commit(&ana(), thread).await.unwrap();
        let error = slow.finish(world.memory.batch().append(Draft::user("Late."))).await.unwrap_err();
        assert!(Completion::is_lock_lost(&error), "{error}");
        assert_eq!(slow.run(std::future::pending::<()>()).await, Err(Interrupted::LockLost));
        slow.abandon().await;
        assert_eq!(active(&world.memory, thread).await.unwrap().turn, "two");
        assert!(texts(&world, thread).await.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_holds_its_thread_for_as_long_as_it_gives_signs() {
    let world = World::plain();
    let thread = world.thread().await;
    let completion = taken(&world.memory, &ana(), thread, "one").await;
    let until = active(&world.memory, thread).await.unwrap().lease_until;
    world.clock.advance_ms(20_000);
    completion.run(tokio::time::sleep(Duration::from_secs(11))).await.unwrap();
    assert_eq!(active(&world.memory, thread).await.unwrap().lease_until, until.plus_ms(20_000));
    completion.finish(world.memory.batch().append(Draft::user("Done."))).await.unwrap();
    assert_eq!(active(&world.memory, thread).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_older_instances_counts_and_is_written() {
    everywhere(async |world: World| {
        let (thread, memory) = (world.thread().await, &world.memory);
        let older = async || memory.find_thread_record(&ana(), thread, &older_lock()).await.unwrap();
        let put = |holder: &str, until: Timestamp| PutRecord {
            name: older_lock(),
            value: JsonText::of(&holder).unwrap(),
            expires_at: Some(until),
        };
        let until = world.clock.now().plus_ms(600_000);
        memory.batch().put(put("another machine/7", until)).commit(&ana(), thread).await.unwrap();
        assert!(matches!(take(memory, &ana(), thread, "one").await, LockResult::Busy));
        world.clock.advance_minutes(10);
        let completion = taken(memory, &ana(), thread, "one").await;
        assert_eq!(older().await.unwrap().expires_at, Some(world.clock.now().plus_ms(30_000)));
        completion.finish(memory.batch().append(Draft::user("x"))).await.unwrap();
        assert_eq!(older().await, None);
    })
    .await;
}

/// The record as version 0.1 reads it: every member is there, and its name is no assistant's.
#[tokio::test]
async fn instances_of_the_version_before_read_the_record_of_a_call() {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "what it holds is read by serde")]
    struct OlderRecord {
        turn: String,
        assistant: String,
        graph: String,
        version: u32,
        driver: String,
        lease_until: Timestamp,
        is_prepared: bool,
        model: String,
        started_at: Timestamp,
        entries: u32,
        said: usize,
        messages: u16,
    }
    let world = World::plain();
    let thread = world.thread().await;
    let completion = taken(&world.memory, &ana(), thread, "one").await;
    let found = world.memory.find_thread_record(&ana(), thread, &record::active()).await.unwrap().unwrap();
    let older: OlderRecord = found.value.read().unwrap();
    assert_eq!((older.turn.as_str(), older.assistant.as_str()), ("one", ""));
    completion.abandon().await;
    // And what they write is read here: a run, as there was nothing else.
    let mut value: Value = found.value.read().unwrap();
    assert_eq!(value.as_object_mut().unwrap().remove("kind"), Some("completion".into()));
    let record: RunRecord = serde_json::from_value(value).unwrap();
    assert_eq!(record.kind, TurnKind::Run);
}

#[tokio::test]
async fn a_call_that_is_asked_to_stop_hears_of_it_at_once() {
    for (name, world) in [("plain", World::plain()), ("sqlite", World::sqlite())].into_iter().chain(World::on_servers())
    {
        println!("{name}");
        let thread = world.thread().await;
        let completion = taken(&world.memory, &ana(), thread, "one").await;
        let other = world.another_process();
        let asking = async {
            // Until then it looked for itself.
            tokio::time::sleep(Duration::from_millis(300)).await;
            request_stop(&other, &ana(), thread, "one").await.unwrap();
        };
        let hold = tokio::time::timeout(SOON, completion.run(std::future::pending::<()>()));
        let (held, ()) = futures::join!(hold, asking);
        assert_eq!(held.unwrap(), Err(Interrupted::Stopped));
        completion.abandon().await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_hears_also_where_every_hint_is_lost() {
    let (_, world) = Probe::silent_world();
    let thread = world.thread().await;
    let completion = taken(&world.memory, &ana(), thread, "one").await;
    let began = tokio::time::Instant::now();
    let asking = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        request_stop(&world.memory, &ana(), thread, "one").await.unwrap();
    };
    let (held, ()) = futures::join!(completion.run(std::future::pending::<()>()), asking);
    assert_eq!(held, Err(Interrupted::Stopped));
    assert!(began.elapsed() <= Watch::MAX_WAIT + Duration::from_millis(200), "{:?}", began.elapsed());
}

/// Half a minute in which nothing happens: a look of each kind every five seconds, and a sign of life every ten.
#[tokio::test(start_paused = true)]
async fn waiting_costs_few_calls_of_the_store() {
    let (probe, world) = Probe::world();
    let (thread, memory) = (world.thread().await, &world.memory);
    let completion = taken(memory, &ana(), thread, "one").await;
    probe.take_calls();
    completion.run(tokio::time::sleep(Duration::from_secs(29))).await.unwrap();
    let calls = probe.take_calls();
    let of = |name: &str| calls.iter().find(|(call, _)| *call == name).map_or(0, |(_, count)| *count);
    assert!(of("find_document") <= 9 && of("commit") <= 2 && of("wake_ups") <= 1, "{calls:?}");
    assert!(calls.iter().all(|(call, _)| matches!(*call, "find_document" | "commit" | "wake_ups")), "{calls:?}");

    let access = ThreadAccess::find(memory, &ana(), thread).await.unwrap();
    probe.take_calls();
    let waits = async {
        let mut waiting = TurnWaiter::begin(memory, &ana(), thread).await;
        while let Some(active) = access.runs(memory).await.unwrap().active {
            waiting.wait(Some(&active.value.driver)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(29), waits).await.is_err());
    let calls = probe.take_calls();
    assert!(calls.iter().map(|(_, count)| count).sum::<usize>() <= 8, "{calls:?}");
    completion.abandon().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_goes_on_once_the_thread_is_free() {
    everywhere(async |world: World| {
        let (thread, memory) = (world.thread().await, &world.memory);
        for is_dropped in [false, true] {
            let completion = taken(memory, &ana(), thread, "one").await;
            let driver = active(memory, thread).await.unwrap().driver;
            let mut waiting = TurnWaiter::begin(memory, &ana(), thread).await;
            let next = Box::pin(async {
                loop {
                    if let LockResult::Acquired(next) = take(memory, &ana(), thread, "two").await {
                        return next;
                    }
                    waiting.wait(Some(&driver)).await;
                }
            });
            let ends = Box::pin(async {
                if is_dropped {
                    drop(completion);
                } else {
                    completion.abandon().await;
                }
            });
            let (next, ()) = futures::join!(next, ends);
            next.abandon().await;
        }
        assert!(find_turn_state(memory, &ana(), thread, "one").await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_watched_record_wakes_whoever_watches_it() {
    for (name, world) in [("plain", World::plain()), ("sqlite", World::sqlite())].into_iter().chain(World::on_servers())
    {
        println!("{name}");
        let memory = &world.memory;
        let mine = RecordName { namespace: Namespace::app("notes").unwrap(), key: "mine".to_owned() };
        let other = RecordName { key: "other".to_owned(), ..mine.clone() };
        let (mut watch, mut unmoved) =
            (memory.watch_record(&ana(), &mine).await, memory.watch_record(&ana(), &other).await);
        let write = threadkeep_core::RecordWrite {
            owner: threadkeep_core::RecordOwner::User(super::world::user_id("ana")),
            namespace: mine.namespace.clone(),
            key: mine.key.clone(),
            expected: None,
            value: Some(JsonText::new("1").unwrap()),
            expires_at: None,
        };
        memory.backend().store.write_record(&ana(), write, memory.now()).await.unwrap();
        tokio::time::timeout(SOON, watch.changed()).await.expect("it is woken");
        let still = tokio::time::timeout(Duration::from_millis(200), unmoved.changed()).await;
        assert!(still.is_err(), "another document's hint is none about this one");
    }
}
