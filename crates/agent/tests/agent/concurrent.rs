//! Concurrent turns in one thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use threadkeep_agent::{Agent, AgentError, BusyPolicy, Definition, TurnRequest};
use threadkeep_core::{Clock, Role, Timestamp};
use threadkeep_memory::Memory;
use threadkeep_models::{Reply, ScriptedModel, Turn};
use threadkeep_store_memory::MemoryStore;

use crate::env::{FakeClock, TestEnv, assistant, roles};

fn echo() -> ScriptedModel {
    ScriptedModel::always(|request| Ok(Reply::text(format!("You said {}", Turn::of(request).question()))))
}

// S1.48
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_in_one_thread_run_one_after_another() {
    let env = TestEnv::new().await;
    let agents = [env.agent(assistant(echo())), env.agent(assistant(echo()))];
    let turns: Vec<_> = (0..12)
        .map(|number| {
            let (agent, env) = (agents[number % 2].clone(), env.clone());
            tokio::spawn(async move { agent.chat(&env.scope, env.thread, number.to_string()).await })
        })
        .collect();
    for turn in turns {
        turn.await.unwrap().unwrap();
    }
    let messages = env.messages().await;
    assert_eq!(roles(&messages), [Role::User, Role::Assistant].repeat(12));
    for pair in messages.chunks(2) {
        assert_eq!(pair[1].plain_text(), format!("You said {}", pair[0].plain_text()));
    }
}

// S1.48
#[tokio::test]
async fn a_second_turn_is_refused_by_policy() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging()));
    let agent = env.agent(Definition { busy: BusyPolicy::Refuse, ..assistant(model) });
    let first = {
        let (agent, env) = (agent.clone(), env.clone());
        tokio::spawn(async move { agent.chat(&env.scope, env.thread, "one").await })
    };
    while env.messages().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let refused = agent.chat(&env.scope, env.thread, "two").await.unwrap_err();
    assert!(matches!(refused, AgentError::Busy));
    assert_eq!(env.transcript().await, ["user: one"]);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    // The dropped turn is resumed before the next one starts.
    let model = ScriptedModel::new().says("To one.").says("To two.");
    let agent = env.agent(assistant(model));
    assert_eq!(env.chat(&agent, "two").await.reply, "To two.");
    let expected = ["user: one", "assistant: To one.", "user: two", "assistant: To two."];
    assert_eq!(env.transcript().await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_no_longer_than_the_policy_allows() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging()));
    let busy = BusyPolicy::Wait(Duration::from_secs(2));
    let agent = env.agent(Definition { busy, ..assistant(model) });
    let first = {
        let (agent, env) = (agent.clone(), env.clone());
        tokio::spawn(async move { agent.chat(&env.scope, env.thread, "one").await })
    };
    while env.messages().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(agent.chat(&env.scope, env.thread, "two").await, Err(AgentError::Busy)));
    first.abort();
}

/// A clock that blocks once: when random numbers are first requested, which is when a turn starts.
#[derive(Debug)]
struct BlockingClock {
    clock: Arc<FakeClock>,
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Clock for BlockingClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn random(&self) -> [u8; 10] {
        if let Some((reached, released)) = self.gate.lock().unwrap().take() {
            reached.send(()).unwrap();
            released.recv().unwrap();
        }
        self.clock.random()
    }
}

// Two instances receive the same request. One runs the whole turn while the other is about to start it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_with_one_idempotency_key_run_one_turn() {
    let backend = MemoryStore::open();
    let env = TestEnv::with_backend(backend.clone()).await;
    let ((reached, wait_until_reached), (release, released)) = (channel(), channel());
    let clock = BlockingClock { clock: env.clock.clone(), gate: Mutex::new(Some((reached, released))) };
    let slow = Agent::new(Memory::with_clock(backend, Arc::new(clock)), assistant(echo()));
    let request = || TurnRequest { idempotency_key: Some("event 7".to_owned()), ..TurnRequest::new("Hello?") };
    let slow_turn = {
        let (env, request) = (env.clone(), request());
        tokio::spawn(async move { slow.chat_with(&env.scope, env.thread, request, &mut |_| {}).await })
    };
    tokio::task::spawn_blocking(move || wait_until_reached.recv()).await.unwrap().unwrap();
    env.clock.advance_minutes(1);
    let quick = env.agent(assistant(echo()));
    let turn = quick.chat_with(&env.scope, env.thread, request(), &mut |_| {}).await.unwrap();
    release.send(()).unwrap();
    assert_eq!(slow_turn.await.unwrap().unwrap(), turn);
    assert_eq!(env.transcript().await, ["user: Hello?", "assistant: You said Hello?"]);
}
