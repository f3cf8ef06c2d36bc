//! The test environment: an agent with a fake clock and a fake MTA.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use threadkeep::{Agent, ChatModel, Clock, Memory, Scope, SystemClock, ThreadId, Timestamp, Turn, TurnStatus};
use threadkeep_subway::SubwayAssistant;

use crate::mta::{FakeMta, now};

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

/// An agent with the subway assistant, a fake clock and a fake MTA.
pub(crate) struct TestEnv {
    pub(crate) mta: FakeMta,
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
    /// Creates an environment with the offline model. Feeds are unavailable until a test publishes trains.
    pub(crate) async fn new() -> Self {
        Self::over("memory:", FakeMta::start().await, None).await
    }

    pub(crate) async fn with_model(model: impl ChatModel) -> Self {
        Self::over("memory:", FakeMta::start().await, Some(Arc::new(model))).await
    }

    pub(crate) async fn over(url: &str, mta: FakeMta, model: Option<Arc<dyn ChatModel>>) -> Self {
        let clock = Arc::new(FakeClock(AtomicI64::new(now().as_millisecond())));
        let backend = Box::pin(threadkeep::open_backend(url)).await.unwrap();
        let memory = Memory::with_clock(backend, clock.clone());
        let assistant = SubwayAssistant::new(&memory, Arc::new(mta.subway()), model);
        Self { mta, clock, url: url.to_owned(), agent: Agent::new(memory, assistant) }
    }

    /// Opens the same store again, as another process would.
    pub(crate) async fn restarted(self) -> Self {
        let Self { mta, url, agent, .. } = self;
        drop(agent);
        Self::over(&url, mta, None).await
    }

    /// Advances the clock.
    pub(crate) fn wait_seconds(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    /// Sets the clock.
    pub(crate) fn set_time(&self, instant: jiff::Timestamp) {
        self.clock.0.store(instant.as_millisecond(), Ordering::SeqCst);
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
        Box::pin(self.env.agent.chat(&self.scope, self.thread, text)).await.unwrap()
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
