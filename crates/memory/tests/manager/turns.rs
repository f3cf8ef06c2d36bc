//! Turns: thread locks, interrupted turns, and waiting.

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
    Completion, Interrupted, LockResult, ThreadAccess, TurnKind, TurnWaiter, find_running_turn, find_turn_state,
    list_interrupted_turns, remove_interrupted_completion, request_stop,
};
use threadkeep_memory::{Draft, Memory, Platform, Watch};

use super::probe::Probe;
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

/// A duration that is longer than a wake-up takes and shorter than the poll interval.
const WAKE_UP_TIMEOUT: Duration = Duration::from_secs(4);

async fn try_lock(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> LockResult {
    Completion::acquire(memory, scope, thread, turn, "a model").await.unwrap()
}

/// Locks a thread; panics if the thread is locked already.
async fn lock(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Completion {
    match try_lock(memory, scope, thread, turn).await {
        LockResult::Acquired(completion) => completion,
        other => panic!("{other:?}"),
    }
}

async fn read_texts(env: &TestEnv, thread: ThreadId) -> Vec<String> {
    let newest = env.memory.newest(&acme(), thread, 10).await.unwrap();
    newest.iter().map(Message::plain_text).map(String::from).collect()
}

/// Returns the name of the record by which earlier versions lock a thread.
fn earlier_lock_name() -> RecordName {
    RecordName { namespace: Namespace::System("server".to_owned()), key: "lease".to_owned() }
}

async fn find_active_run(memory: &Memory, thread: ThreadId) -> Option<RunRecord> {
    let found = memory.find_thread_record(&acme(), thread, &record::active_name()).await.unwrap();
    found.map(|record| record.value.read().unwrap())
}

/// Writes the run record that an interrupted process on another machine would leave behind.
async fn write_run_record_of_other_machine(env: &TestEnv, thread: ThreadId, change: impl Fn(&mut RunRecord)) {
    let completion = lock(&env.memory, &ana(), thread, "elsewhere").await;
    let mut record = find_active_run(&env.memory, thread).await.unwrap();
    completion.abandon().await;
    record.driver = "another machine/7".to_owned();
    change(&mut record);
    let put = PutRecord { name: record::active_name(), value: JsonText::of(&record).unwrap(), expires_at: None };
    env.memory.batch().put(put).commit(&ana(), thread).await.unwrap();
}

/// A machine on which all other processes have ended.
struct OnlyProcess;

impl Processes for OnlyProcess {
    fn own_name(&self) -> Option<String> {
        Some("alone".to_owned())
    }

    fn has_ended(&self, name: &str) -> bool {
        !name.starts_with("alone:")
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_an_ended_process_is_released() {
    let env = TestEnv::plain();
    let thread = env.open_thread().await;
    write_run_record_of_other_machine(&env, thread, |_| {}).await;
    let memory_with = |processes| {
        let platform = Platform { processes, ..env.memory.platform().clone() };
        Memory::with_platform(env.backend.clone(), platform)
    };
    assert!(matches!(try_lock(&env.memory, &ana(), thread, "one").await, LockResult::Busy));
    assert!(matches!(try_lock(&memory_with(None), &ana(), thread, "one").await, LockResult::Busy));
    lock(&memory_with(Some(Arc::new(OnlyProcess))), &ana(), thread, "one").await.abandon().await;
}

#[tokio::test(start_paused = true)]
async fn only_one_completion_at_a_time_locks_a_thread() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let other = env.another_process();
        let first = lock(&env.memory, &ana(), thread, "resp_1").await;
        assert!(matches!(try_lock(&other, &ana(), thread, "resp_2").await, LockResult::Busy));
        assert!(matches!(try_lock(&env.memory, &acme(), thread, "resp_2").await, LockResult::Busy));
        let running = find_running_turn(&other, &ana(), thread).await.unwrap().unwrap();
        let found = (running.turn.as_str(), running.kind, running.assistant.as_str(), running.model.as_str());
        assert_eq!(found, ("resp_1", TurnKind::Completion, "", "a model"));
        let batch = env.memory.batch().append(Draft::user("Hello?")).append(Draft::assistant("Hello."));
        first.finish(batch).await.unwrap();
        assert_eq!(find_running_turn(&other, &ana(), thread).await.unwrap(), None);
        let second = lock(&other, &ana(), thread, "resp_2").await;
        second.abandon().await;
        assert_eq!(read_texts(&env, thread).await, ["Hello?", "Hello."]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn users_of_a_shared_thread_lock_each_other_out() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let open = OpenThread::new(&acme(), memory.generate_thread_id());
        let thread = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        let anas_completion = lock(memory, &ana(), thread, "one").await;
        for scope in [ben(), ana(), acme()] {
            assert!(matches!(try_lock(memory, &scope, thread, "two").await, LockResult::Busy));
        }
        anas_completion.finish(memory.batch().append(Draft::user("Mine."))).await.unwrap();
        lock(memory, &ben(), thread, "two").await.abandon().await;
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        let error = Completion::acquire(memory, &ana(), bens_thread, "one", "a model").await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_completion_releases_the_thread() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let completion = lock(&env.memory, &ana(), thread, "one").await;
        let clone = completion.clone();
        drop(completion);
        assert!(
            matches!(try_lock(&env.memory, &ana(), thread, "two").await, LockResult::Busy),
            "a clone still holds the lock"
        );
        drop(clone);
        assert_eq!(list_interrupted_turns(&env.memory).await.unwrap()[0].kind, TurnKind::Completion);
        lock(&env.another_process(), &ana(), thread, "two").await.abandon().await;
        assert!(read_texts(&env, thread).await.is_empty());

        // A turn on another machine counts as running until its lease expires.
        write_run_record_of_other_machine(&env, thread, |_| {}).await;
        assert!(matches!(try_lock(&env.memory, &ana(), thread, "three").await, LockResult::Busy));
        assert_eq!(list_interrupted_turns(&env.memory).await.unwrap(), []);
        env.clock.advance_ms(30_000);
        assert!(find_turn_state(&env.memory, &ana(), thread, "elsewhere").await.unwrap().is_none());
        let interrupted = list_interrupted_turns(&env.memory).await.unwrap().remove(0);
        assert_eq!((interrupted.scope, interrupted.thread, interrupted.kind), (ana(), thread, TurnKind::Completion));
        remove_interrupted_completion(&env.memory, &ana(), thread).await.unwrap();
        assert_eq!(find_active_run(&env.memory, thread).await, None);
        assert!(read_texts(&env, thread).await.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_lost_its_lock_stores_nothing() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let outdated = lock(&env.memory, &ana(), thread, "one").await;
        // Another machine considers the process dead and takes over the lock.
        let found = env.memory.find_thread_record(&ana(), thread, &record::active_name()).await.unwrap().unwrap();
        let mut record: RunRecord = found.value.read().unwrap();
        record.turn = "two".to_owned();
        let put = PutRecord { name: record::active_name(), value: JsonText::of(&record).unwrap(), expires_at: None };
        let batch = env.memory.batch().require(record::active_name(), RecordState::Version(found.tagged())).put(put);
        batch.commit(&ana(), thread).await.unwrap();
        let error = outdated.finish(env.memory.batch().append(Draft::user("Late."))).await.unwrap_err();
        assert!(Completion::is_lock_lost(&error), "{error}");
        assert_eq!(outdated.run(std::future::pending::<()>()).await, Err(Interrupted::LockLost));
        outdated.abandon().await;
        assert_eq!(find_active_run(&env.memory, thread).await.unwrap().turn, "two");
        assert!(read_texts(&env, thread).await.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_running_completion_renews_its_lease() {
    let env = TestEnv::plain();
    let thread = env.open_thread().await;
    let completion = lock(&env.memory, &ana(), thread, "one").await;
    let lease_until = find_active_run(&env.memory, thread).await.unwrap().lease_until;
    env.clock.advance_ms(20_000);
    completion.run(tokio::time::sleep(Duration::from_secs(11))).await.unwrap();
    assert_eq!(find_active_run(&env.memory, thread).await.unwrap().lease_until, lease_until.plus_ms(20_000));
    completion.finish(env.memory.batch().append(Draft::user("Done."))).await.unwrap();
    assert_eq!(find_active_run(&env.memory, thread).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_earlier_versions_is_respected_and_written() {
    on_all_stores(async |env: TestEnv| {
        let (thread, memory) = (env.open_thread().await, &env.memory);
        let find_earlier_lock = async || memory.find_thread_record(&ana(), thread, &earlier_lock_name()).await.unwrap();
        let put_lock = |holder: &str, expires_at: Timestamp| PutRecord {
            name: earlier_lock_name(),
            value: JsonText::of(&holder).unwrap(),
            expires_at: Some(expires_at),
        };
        let expires_at = env.clock.now().plus_ms(600_000);
        memory.batch().put(put_lock("another machine/7", expires_at)).commit(&ana(), thread).await.unwrap();
        assert!(matches!(try_lock(memory, &ana(), thread, "one").await, LockResult::Busy));
        env.clock.advance_minutes(10);
        let completion = lock(memory, &ana(), thread, "one").await;
        assert_eq!(find_earlier_lock().await.unwrap().expires_at, Some(env.clock.now().plus_ms(30_000)));
        completion.finish(memory.batch().append(Draft::user("x"))).await.unwrap();
        assert_eq!(find_earlier_lock().await, None);
    })
    .await;
}

/// Version 0.1 requires all fields of the run record. A completion has no assistant.
#[tokio::test]
async fn version_0_1_can_read_the_run_record() {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "the fields are only deserialised")]
    struct EarlierRecord {
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
    let env = TestEnv::plain();
    let thread = env.open_thread().await;
    let completion = lock(&env.memory, &ana(), thread, "one").await;
    let found = env.memory.find_thread_record(&ana(), thread, &record::active_name()).await.unwrap().unwrap();
    let earlier: EarlierRecord = found.value.read().unwrap();
    assert_eq!((earlier.turn.as_str(), earlier.assistant.as_str()), ("one", ""));
    completion.abandon().await;
    // A record that version 0.1 wrote has no kind, and is read as a run of an assistant.
    let mut value: Value = found.value.read().unwrap();
    assert_eq!(value.as_object_mut().unwrap().remove("kind"), Some("completion".into()));
    let record: RunRecord = serde_json::from_value(value).unwrap();
    assert_eq!(record.kind, TurnKind::Run);
}

#[tokio::test]
async fn a_stop_request_interrupts_a_completion_immediately() {
    for (name, env) in
        [("plain", TestEnv::plain()), ("sqlite", TestEnv::sqlite())].into_iter().chain(TestEnv::on_servers())
    {
        println!("{name}");
        let thread = env.open_thread().await;
        let completion = lock(&env.memory, &ana(), thread, "one").await;
        let other = env.another_process();
        let stop = async {
            // Give the completion time to start waiting.
            tokio::time::sleep(Duration::from_millis(300)).await;
            request_stop(&other, &ana(), thread, "one").await.unwrap();
        };
        let run = tokio::time::timeout(WAKE_UP_TIMEOUT, completion.run(std::future::pending::<()>()));
        let (outcome, ()) = futures::join!(run, stop);
        assert_eq!(outcome.unwrap(), Err(Interrupted::Stopped));
        completion.abandon().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_request_is_noticed_without_wake_ups() {
    let (_, env) = Probe::new_env_without_wake_ups();
    let thread = env.open_thread().await;
    let completion = lock(&env.memory, &ana(), thread, "one").await;
    let started_at = tokio::time::Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        request_stop(&env.memory, &ana(), thread, "one").await.unwrap();
    };
    let (outcome, ()) = futures::join!(completion.run(std::future::pending::<()>()), stop);
    assert_eq!(outcome, Err(Interrupted::Stopped));
    assert!(started_at.elapsed() <= Watch::MAX_WAIT + Duration::from_millis(200), "{:?}", started_at.elapsed());
}

/// In half a minute without events, the waiting turn polls every five seconds, and renews its lease every ten seconds.
#[tokio::test(start_paused = true)]
async fn waiting_takes_few_store_calls() {
    let (probe, env) = Probe::new_env();
    let (thread, memory) = (env.open_thread().await, &env.memory);
    let completion = lock(memory, &ana(), thread, "one").await;
    probe.take_calls();
    completion.run(tokio::time::sleep(Duration::from_secs(29))).await.unwrap();
    let calls = probe.take_calls();
    let count = |name: &str| calls.iter().find(|(call, _)| *call == name).map_or(0, |(_, count)| *count);
    assert!(count("find_record") <= 9 && count("commit") <= 2 && count("wake_ups") <= 1, "{calls:?}");
    assert!(calls.iter().all(|(call, _)| matches!(*call, "find_record" | "commit" | "wake_ups")), "{calls:?}");

    let access = ThreadAccess::find(memory, &ana(), thread).await.unwrap();
    probe.take_calls();
    let wait = async {
        let mut waiter = TurnWaiter::begin(memory, &ana(), thread).await;
        while let Some(active) = access.runs(memory).await.unwrap().active {
            waiter.wait(Some(&active.value.driver)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(29), wait).await.is_err());
    let calls = probe.take_calls();
    assert!(calls.iter().map(|(_, count)| count).sum::<usize>() <= 8, "{calls:?}");
    completion.abandon().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_continues_when_the_thread_is_released() {
    on_all_stores(async |env: TestEnv| {
        let (thread, memory) = (env.open_thread().await, &env.memory);
        for is_dropped in [false, true] {
            let completion = lock(memory, &ana(), thread, "one").await;
            let driver = find_active_run(memory, thread).await.unwrap().driver;
            let mut waiter = TurnWaiter::begin(memory, &ana(), thread).await;
            let acquire = Box::pin(async {
                loop {
                    if let LockResult::Acquired(next) = try_lock(memory, &ana(), thread, "two").await {
                        return next;
                    }
                    waiter.wait(Some(&driver)).await;
                }
            });
            let release = Box::pin(async {
                if is_dropped {
                    drop(completion);
                } else {
                    completion.abandon().await;
                }
            });
            let (next, ()) = futures::join!(acquire, release);
            next.abandon().await;
        }
        assert!(find_turn_state(memory, &ana(), thread, "one").await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_write_wakes_watchers_of_the_record() {
    for (name, env) in
        [("plain", TestEnv::plain()), ("sqlite", TestEnv::sqlite())].into_iter().chain(TestEnv::on_servers())
    {
        println!("{name}");
        let memory = &env.memory;
        let name = RecordName { namespace: Namespace::app("notes").unwrap(), key: "watched".to_owned() };
        let other = RecordName { key: "other".to_owned(), ..name.clone() };
        let (mut watch, mut other_watch) =
            (memory.watch_record(&ana(), &name).await, memory.watch_record(&ana(), &other).await);
        let write = threadkeep_core::RecordWrite {
            owner: threadkeep_core::RecordOwner::User(super::test_env::user_id("ana")),
            namespace: name.namespace.clone(),
            key: name.key.clone(),
            expected: None,
            value: Some(JsonText::new("1").unwrap()),
            expires_at: None,
        };
        memory.backend().store.write_record(&ana(), write, memory.now()).await.unwrap();
        tokio::time::timeout(WAKE_UP_TIMEOUT, watch.changed()).await.expect("the watch is woken");
        let unchanged = tokio::time::timeout(Duration::from_millis(200), other_watch.changed()).await;
        assert!(unchanged.is_err(), "a write to another record does not wake the watch");
    }
}
