//! The test environment: a store on disk, users, and a fake clock.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use threadkeep::memory::{NewLibraryDocument, Passage};
use threadkeep::{
    Agent, ChatModel, Clock, Memory, Message, Part, Scope, SystemClock, ThreadId, Timestamp, Turn, TurnStatus,
};
use threadkeep_general::{General, GeneralOptions};

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

/// A store with an assistant.
pub(crate) struct TestEnv {
    folder: Arc<tempfile::TempDir>,
    clock: Arc<FakeClock>,
    pub(crate) agent: Agent,
}

/// A conversation of one user.
pub(crate) struct Conversation<'a> {
    env: &'a TestEnv,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
}

impl TestEnv {
    pub(crate) async fn new() -> Self {
        Self::with(GeneralOptions::default()).await
    }

    pub(crate) async fn scripted(model: impl ChatModel) -> Self {
        Self::with(GeneralOptions { model: Some(Arc::new(model)), ..GeneralOptions::default() }).await
    }

    pub(crate) async fn with(options: GeneralOptions) -> Self {
        let clock = Arc::new(FakeClock(AtomicI64::new(0)));
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::open(folder, clock, options).await.at("2026-05-03T09:00:00Z")
    }

    async fn open(folder: Arc<tempfile::TempDir>, clock: Arc<FakeClock>, options: GeneralOptions) -> Self {
        let path: PathBuf = folder.path().join("store.db");
        let backend = threadkeep::open_backend(&format!("sqlite:{}", path.display())).await.unwrap();
        let memory = Memory::with_clock(backend, clock.clone());
        let general = General::new(&memory, options).unwrap();
        Self { folder, clock, agent: Agent::new(memory, general) }
    }

    /// Opens the same store again, as another process would.
    pub(crate) async fn restarted(self) -> Self {
        let Self { folder, clock, agent } = self;
        drop(agent);
        Self::open(folder, clock, GeneralOptions::default()).await
    }

    pub(crate) fn at(self, instant: &str) -> Self {
        self.set_time(instant);
        self
    }

    pub(crate) fn set_time(&self, instant: &str) {
        let instant: Timestamp = instant.parse().unwrap();
        self.clock.0.store(instant.as_millis(), Ordering::SeqCst);
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.agent.memory()
    }

    /// Opens a new conversation.
    pub(crate) async fn conversation(&self, user: &str) -> Conversation<'_> {
        self.conversation_in(Scope::user("acme", user).unwrap()).await
    }

    pub(crate) async fn conversation_in(&self, scope: Scope) -> Conversation<'_> {
        let thread = self.memory().open(&scope).await.unwrap().thread.id;
        Conversation { env: self, scope, thread }
    }

    /// Returns an existing conversation.
    pub(crate) fn existing_conversation(&self, user: &str, thread: ThreadId) -> Conversation<'_> {
        Conversation { env: self, scope: Scope::user("acme", user).unwrap(), thread }
    }

    /// Adds a document to a library, with passages as (location, text).
    pub(crate) async fn add_document(&self, scope: &Scope, library: &str, title: &str, passages: &[(&str, &str)]) {
        let passages =
            passages.iter().map(|(location, text)| Passage { place: (*location).into(), text: (*text).into() });
        let (id, title, revision) = (title.to_owned(), title.to_owned(), "1".to_owned());
        let document = NewLibraryDocument { id, title, revision, passages: passages.collect() };
        self.memory().put_library_document(scope, library, document, None).await.unwrap();
    }
}

impl Conversation<'_> {
    pub(crate) async fn turn(&self, text: &str) -> Turn {
        self.env.agent.chat(&self.scope, self.thread, text).await.unwrap()
    }

    /// Sends a message and returns the reply of the completed turn.
    pub(crate) async fn say(&self, text: &str) -> String {
        let turn = self.turn(text).await;
        assert_eq!((turn.status, &turn.error), (TurnStatus::Completed, &None), "{text}: {turn:#?}");
        turn.reply
    }

    pub(crate) async fn messages(&self) -> Vec<Message> {
        self.env.memory().newest(&self.scope, self.thread, 100).await.unwrap()
    }

    /// Returns the messages of the thread, formatted as one line each.
    pub(crate) async fn rows(&self) -> Vec<String> {
        self.messages().await.iter().map(row).collect()
    }

    pub(crate) async fn preferences(&self) -> Vec<(String, String)> {
        let preferences = self.env.memory().list_preferences(&self.scope).await.unwrap();
        preferences.into_iter().map(|preference| (preference.key, preference.value.read().unwrap())).collect()
    }
}

/// Returns the tool calls of a turn, with their arguments.
pub(crate) fn calls(turn: &Turn) -> Vec<String> {
    turn.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect()
}

/// Returns the titles of a turn's sources.
pub(crate) fn sources(turn: &Turn) -> Vec<&str> {
    turn.sources.iter().map(|source| source.title.as_deref().unwrap_or_default()).collect()
}

fn row(message: &Message) -> String {
    let parts: Vec<String> = message.content.parts.iter().map(part).collect();
    format!("{}: {}", message.content.role, parts.join(" "))
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::ToolCall(call) => format!("{}{}", call.name, call.arguments),
        Part::ToolResult(result) if result.is_error => format!("!{}", result.output),
        Part::ToolResult(result) => result.output.clone(),
        other => format!("{other:?}"),
    }
}
