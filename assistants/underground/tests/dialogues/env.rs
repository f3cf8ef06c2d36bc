//! The test environment: an agent with a fake clock and a local server in place of TfL's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use threadkeep::{Agent, ChatModel, Clock, Memory, Scope, SystemClock, ThreadId, Timestamp, Turn, TurnStatus};
use threadkeep_underground::UndergroundAssistant;

use crate::tfl::FakeTfl;

/// A Tuesday morning.
pub(crate) fn now() -> jiff::Timestamp {
    "2026-06-16T08:40:00+01:00".parse().unwrap()
}

#[derive(Debug)]
pub(crate) struct FakeClock(AtomicI64);

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

/// An agent with the London assistant, a fake clock and a local server for TfL.
pub(crate) struct TestEnv {
    pub(crate) tfl: FakeTfl,
    clock: Arc<FakeClock>,
    url: String,
    pub(crate) agent: Agent,
}

/// A user's conversation.
pub(crate) struct Conversation<'a> {
    env: &'a TestEnv,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
}

impl TestEnv {
    /// Creates an environment with the offline model. All lines have a good service until a test changes that.
    pub(crate) async fn new() -> Self {
        Self::over("memory:", FakeTfl::start().await, None).await
    }

    pub(crate) async fn with_model(model: impl ChatModel) -> Self {
        Self::over("memory:", FakeTfl::start().await, Some(Arc::new(model))).await
    }

    pub(crate) async fn over(url: &str, tfl: FakeTfl, model: Option<Arc<dyn ChatModel>>) -> Self {
        let clock = Arc::new(FakeClock(AtomicI64::new(now().as_millisecond())));
        let backend = threadkeep::open_backend(url).await.unwrap();
        let memory = Memory::with_clock(backend, clock.clone());
        let assistant = UndergroundAssistant::new(&memory, Arc::new(tfl.underground()), model);
        let env = Self { tfl, clock, url: url.to_owned(), agent: Agent::new(memory, assistant) };
        env.set_time(now());
        env
    }

    /// Opens the same store again, as another process would.
    pub(crate) async fn restarted(self) -> Self {
        let Self { tfl, url, agent, .. } = self;
        drop(agent);
        Self::over(&url, tfl, None).await
    }

    /// Advances the clock.
    pub(crate) fn wait_seconds(&self, seconds: i64) {
        let now = jiff::Timestamp::from_millisecond(self.clock.0.load(Ordering::SeqCst)).unwrap();
        self.set_time(now + jiff::SignedDuration::from_secs(seconds));
    }

    /// Sets the clock of the agent and of the server.
    pub(crate) fn set_time(&self, instant: jiff::Timestamp) {
        self.clock.0.store(instant.as_millisecond(), Ordering::SeqCst);
        let local = instant.to_zoned(threadkeep_underground::london()).datetime();
        self.tfl.world.lock().unwrap().now = local;
    }

    /// Starts a conversation.
    pub(crate) async fn conversation(&self, user: &str) -> Conversation<'_> {
        let scope = Scope::user("acme", user).unwrap();
        let thread = self.agent.memory().open(&scope).await.unwrap().thread.id;
        Conversation { env: self, scope, thread }
    }

    /// Resumes an existing conversation.
    pub(crate) fn existing_conversation(&self, user: &str, thread: ThreadId) -> Conversation<'_> {
        Conversation { env: self, scope: Scope::user("acme", user).unwrap(), thread }
    }
}

impl Conversation<'_> {
    pub(crate) async fn turn(&self, text: &str) -> Turn {
        self.env.agent.chat(&self.scope, self.thread, text).await.unwrap()
    }

    /// Sends a message; returns the tool calls and the reply of the turn, which must complete.
    pub(crate) async fn ask(&self, text: &str) -> (Vec<String>, String) {
        let turn = self.turn(text).await;
        assert_eq!((turn.status, &turn.error), (TurnStatus::Completed, &None), "{text}: {turn:#?}");
        (calls(&turn), turn.reply)
    }

    /// Sends a message; returns the reply of the turn, which must complete.
    pub(crate) async fn say(&self, text: &str) -> String {
        self.ask(text).await.1
    }
}

/// Returns the tool calls of a turn with their arguments.
pub(crate) fn calls(turn: &Turn) -> Vec<String> {
    turn.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect()
}
