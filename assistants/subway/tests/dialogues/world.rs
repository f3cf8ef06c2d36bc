//! A user, a memory, a clock that a test moves, and the small MTA.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use threadkeep::models::ScriptedModel;
use threadkeep::{Agent, ChatModel, Clock, Memory, Scope, SystemClock, ThreadId, Timestamp, Turn, TurnStatus};
use threadkeep_subway::SubwayAssistant;

use crate::mta::{Mta, now};

#[derive(Debug)]
pub(crate) struct StillClock(AtomicI64);

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

/// An assistant over a memory, and the MTA that it asks.
pub(crate) struct World {
    pub(crate) mta: Mta,
    clock: Arc<StillClock>,
    url: String,
    pub(crate) agent: Agent,
}

/// A conversation of one user.
pub(crate) struct Talk<'a> {
    world: &'a World,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
}

impl World {
    /// The offline model; feeds are down until a test shows trains.
    pub(crate) async fn new() -> Self {
        Self::over("memory:", Mta::start().await, None).await
    }

    pub(crate) async fn scripted(model: ScriptedModel) -> Self {
        Self::spoken(model).await
    }

    pub(crate) async fn spoken(model: impl ChatModel) -> Self {
        Self::over("memory:", Mta::start().await, Some(Arc::new(model))).await
    }

    pub(crate) async fn over(url: &str, mta: Mta, model: Option<Arc<dyn ChatModel>>) -> Self {
        let clock = Arc::new(StillClock(AtomicI64::new(now().as_millisecond())));
        let backend = threadkeep::open_backend(url).await.unwrap();
        let memory = Memory::with_clock(backend, clock.clone());
        let assistant = SubwayAssistant::new(&memory, Arc::new(mta.subway()), model);
        Self { mta, clock, url: url.to_owned(), agent: Agent::new(memory, assistant) }
    }

    /// The same store, opened anew, as another process does.
    pub(crate) async fn restarted(self) -> Self {
        let Self { mta, url, agent, .. } = self;
        drop(agent);
        Self::over(&url, mta, None).await
    }

    /// Lets time pass.
    pub(crate) fn wait_seconds(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    /// A new conversation.
    pub(crate) async fn talk(&self, user: &str) -> Talk<'_> {
        let scope = Scope::user("acme", user).unwrap();
        let thread = self.agent.memory().open(&scope).await.unwrap().thread.id;
        Talk { world: self, scope, thread }
    }

    /// A conversation that is there.
    pub(crate) fn talk_again(&self, user: &str, thread: ThreadId) -> Talk<'_> {
        Talk { world: self, scope: Scope::user("acme", user).unwrap(), thread }
    }
}

impl Talk<'_> {
    pub(crate) async fn turn(&self, text: &str) -> Turn {
        self.world.agent.chat(&self.scope, self.thread, text).await.unwrap()
    }

    /// Asks, and gives the calls and the answer of a turn that is well.
    pub(crate) async fn ask(&self, text: &str) -> (Vec<String>, String) {
        let turn = self.turn(text).await;
        assert_eq!((turn.status, &turn.error), (TurnStatus::Completed, &None), "{text}: {turn:#?}");
        (calls(&turn), turn.reply)
    }

    /// Says something, and gives what is answered by a turn that is well.
    pub(crate) async fn say(&self, text: &str) -> String {
        self.ask(text).await.1
    }
}

/// The tools that a turn called, with their arguments.
pub(crate) fn calls(turn: &Turn) -> Vec<String> {
    turn.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect()
}
