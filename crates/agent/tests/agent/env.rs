//! The test environment: a fake clock, a memory with one thread, and an assistant with a scripted model.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use threadkeep_agent::{Agent, Assistant, Definition, Turn, TurnEvent};
use threadkeep_core::{Backend, ChatModel, Clock, Message, Part, Role, Scope, ThreadId, Timestamp};
use threadkeep_memory::Memory;
use threadkeep_store_memory::MemoryStore;

/// A clock that only tests advance, with a counter as randomness.
#[derive(Debug)]
pub(crate) struct FakeClock {
    millis: AtomicI64,
    random_count: AtomicU64,
}

impl FakeClock {
    pub(crate) fn new() -> Arc<Self> {
        let start: Timestamp = "2026-11-21T08:30:00Z".parse().expect("an instant");
        Arc::new(Self { millis: AtomicI64::new(start.as_millis()), random_count: AtomicU64::new(1) })
    }

    pub(crate) fn advance_minutes(&self, minutes: i64) {
        self.millis.fetch_add(minutes * 60_000, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst)).expect("an instant")
    }

    fn random(&self) -> [u8; 10] {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&self.random_count.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        random
    }
}

/// A test environment with one thread of one user.
#[derive(Clone)]
pub(crate) struct TestEnv {
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) memory: Memory,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
}

impl TestEnv {
    pub(crate) async fn new() -> Self {
        Self::with_backend(MemoryStore::open()).await
    }

    pub(crate) async fn with_backend(backend: Backend) -> Self {
        let clock = FakeClock::new();
        let memory = Memory::with_clock(backend, clock.clone());
        let scope = Scope::user("acme", "ana").expect("valid names");
        let thread = memory.open(&scope).await.expect("a thread").thread.id;
        Self { clock, memory, scope, thread }
    }

    pub(crate) fn agent(&self, assistant: impl Assistant) -> Agent {
        Agent::new(self.memory.clone(), assistant)
    }

    pub(crate) async fn chat(&self, agent: &Agent, text: &str) -> Turn {
        agent.chat(&self.scope, self.thread, text).await.expect("a turn")
    }

    pub(crate) async fn messages(&self) -> Vec<Message> {
        self.memory.newest(&self.scope, self.thread, 100).await.expect("messages")
    }

    /// Returns the messages of the thread, one line each.
    pub(crate) async fn transcript(&self) -> Vec<String> {
        self.messages().await.iter().map(format_message).collect()
    }
}

/// An assistant with this model, named `test`.
pub(crate) fn assistant(model: impl ChatModel) -> Definition {
    Definition::new("test", Arc::new(model)).with_instructions("Be brief.")
}

fn format_message(message: &Message) -> String {
    let parts: Vec<String> = message.content.parts.iter().map(format_part).collect();
    format!("{}: {}", message.content.role, parts.join(" "))
}

fn format_part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::ToolCall(call) => format!("{}({})", call.name, call.arguments),
        Part::ToolResult(result) if result.is_error => format!("!{}", result.output),
        Part::ToolResult(result) => result.output.clone(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn roles(messages: &[Message]) -> Vec<Role> {
    messages.iter().map(|message| message.content.role).collect()
}

/// Returns the names of events, in order.
pub(crate) fn names(events: &[TurnEvent]) -> Vec<&'static str> {
    events.iter().map(TurnEvent::name).collect()
}
