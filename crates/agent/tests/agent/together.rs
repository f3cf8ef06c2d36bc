//! Several turns at once on one thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use threadkeep_agent::{Agent, AgentError, Ask, BusyPolicy, Definition};
use threadkeep_core::{Clock, Role, Timestamp};
use threadkeep_memory::Memory;
use threadkeep_models::{Reply, ScriptedModel, Turn};
use threadkeep_store_memory::MemoryStore;

use crate::world::{StillClock, World, assistant, roles};

fn echo() -> ScriptedModel {
    ScriptedModel::always(|request| Ok(Reply::text(format!("You said {}", Turn::of(request).question()))))
}

// S1.48
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_of_one_thread_come_one_after_the_other() {
    let world = World::new().await;
    let agents = [world.agent(assistant(echo())), world.agent(assistant(echo()))];
    let turns: Vec<_> = (0..12)
        .map(|number| {
            let (agent, world) = (agents[number % 2].clone(), world.clone());
            tokio::spawn(async move { agent.chat(&world.scope, world.thread, number.to_string()).await })
        })
        .collect();
    for turn in turns {
        turn.await.unwrap().unwrap();
    }
    let messages = world.messages().await;
    assert_eq!(roles(&messages), [Role::User, Role::Assistant].repeat(12));
    for pair in messages.chunks(2) {
        assert_eq!(pair[1].plain_text(), format!("You said {}", pair[0].plain_text()));
    }
}

// S1.48
#[tokio::test]
async fn a_second_turn_is_refused_where_policy_says_so() {
    let world = World::new().await;
    let model = ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging()));
    let agent = world.agent(Definition { busy: BusyPolicy::Refuse, ..assistant(model) });
    let first = {
        let (agent, world) = (agent.clone(), world.clone());
        tokio::spawn(async move { agent.chat(&world.scope, world.thread, "one").await })
    };
    while world.messages().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let refused = agent.chat(&world.scope, world.thread, "two").await.unwrap_err();
    assert!(matches!(refused, AgentError::Busy));
    assert_eq!(world.transcript().await, ["user: one"]);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    // What was dropped is gone on with before the next one begins.
    let model = ScriptedModel::new().says("To one.").says("To two.");
    let agent = world.agent(assistant(model));
    assert_eq!(world.chat(&agent, "two").await.reply, "To two.");
    let expected = ["user: one", "assistant: To one.", "user: two", "assistant: To two."];
    assert_eq!(world.transcript().await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_no_longer_than_policy_says() {
    let world = World::new().await;
    let model = ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging()));
    let busy = BusyPolicy::Wait(Duration::from_secs(2));
    let agent = world.agent(Definition { busy, ..assistant(model) });
    let first = {
        let (agent, world) = (agent.clone(), world.clone());
        tokio::spawn(async move { agent.chat(&world.scope, world.thread, "one").await })
    };
    while world.messages().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(agent.chat(&world.scope, world.thread, "two").await, Err(AgentError::Busy)));
    first.abort();
}

/// A clock that waits once, where it is first asked for randomness: there a turn begins.
#[derive(Debug)]
struct WaitingClock {
    clock: Arc<StillClock>,
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Clock for WaitingClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn random(&self) -> [u8; 10] {
        if let Some((reached, go_on)) = self.gate.lock().unwrap().take() {
            reached.send(()).unwrap();
            go_on.recv().unwrap();
        }
        self.clock.random()
    }
}

// The same request at two instances: one has its whole turn while the other is about to begin it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_comes_twice_at_once_is_one_turn() {
    let backend = MemoryStore::open();
    let world = World::over(backend.clone()).await;
    let ((reached, is_reached), (release, go_on)) = (channel(), channel());
    let clock = WaitingClock { clock: world.clock.clone(), gate: Mutex::new(Some((reached, go_on))) };
    let slow = Agent::new(Memory::with_clock(backend, Arc::new(clock)), assistant(echo()));
    let ask = || Ask { idempotency_key: Some("event 7".to_owned()), ..Ask::new("Hello?") };
    let late = {
        let (world, ask) = (world.clone(), ask());
        tokio::spawn(async move { slow.chat_with(&world.scope, world.thread, ask, &mut |_| {}).await })
    };
    tokio::task::spawn_blocking(move || is_reached.recv()).await.unwrap().unwrap();
    world.clock.advance_minutes(1);
    let quick = world.agent(assistant(echo()));
    let turn = quick.chat_with(&world.scope, world.thread, ask(), &mut |_| {}).await.unwrap();
    release.send(()).unwrap();
    assert_eq!(late.await.unwrap().unwrap(), turn);
    assert_eq!(world.transcript().await, ["user: Hello?", "assistant: You said Hello?"]);
}
