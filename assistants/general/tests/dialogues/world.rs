//! A user, a store in a file, and a clock that a test moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use threadkeep::memory::{NewLibraryDocument, Passage};
use threadkeep::{
    Agent, ChatModel, Clock, Memory, Message, Part, Scope, SystemClock, ThreadId, Timestamp, Turn, TurnStatus,
};
use threadkeep_general::{General, GeneralOptions};

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

/// A store, and an assistant over it.
pub(crate) struct World {
    folder: Arc<tempfile::TempDir>,
    clock: Arc<StillClock>,
    pub(crate) agent: Agent,
}

/// A conversation of one user.
pub(crate) struct Talk<'a> {
    world: &'a World,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(GeneralOptions::default()).await
    }

    pub(crate) async fn scripted(model: impl ChatModel) -> Self {
        Self::with(GeneralOptions { model: Some(Arc::new(model)), ..GeneralOptions::default() }).await
    }

    pub(crate) async fn with(options: GeneralOptions) -> Self {
        let clock = Arc::new(StillClock(AtomicI64::new(0)));
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::over(folder, clock, options).await.at("2026-05-03T09:00:00Z")
    }

    async fn over(folder: Arc<tempfile::TempDir>, clock: Arc<StillClock>, options: GeneralOptions) -> Self {
        let path: PathBuf = folder.path().join("store.db");
        let backend = threadkeep::open_backend(&format!("sqlite:{}", path.display())).await.unwrap();
        let memory = Memory::with_clock(backend, clock.clone());
        let general = General::new(&memory, options).unwrap();
        Self { folder, clock, agent: Agent::new(memory, general) }
    }

    /// The same files, opened anew, as another process does.
    pub(crate) async fn restarted(self) -> Self {
        let Self { folder, clock, agent } = self;
        drop(agent);
        Self::over(folder, clock, GeneralOptions::default()).await
    }

    pub(crate) fn at(self, instant: &str) -> Self {
        self.move_to(instant);
        self
    }

    pub(crate) fn move_to(&self, instant: &str) {
        let instant: Timestamp = instant.parse().unwrap();
        self.clock.0.store(instant.as_millis(), Ordering::SeqCst);
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.agent.memory()
    }

    /// A new conversation.
    pub(crate) async fn talk(&self, user: &str) -> Talk<'_> {
        self.talk_in(Scope::user("acme", user).unwrap()).await
    }

    pub(crate) async fn talk_in(&self, scope: Scope) -> Talk<'_> {
        let thread = self.memory().open(&scope).await.unwrap().thread.id;
        Talk { world: self, scope, thread }
    }

    /// A conversation that is there.
    pub(crate) fn talk_again(&self, user: &str, thread: ThreadId) -> Talk<'_> {
        Talk { world: self, scope: Scope::user("acme", user).unwrap(), thread }
    }

    /// Puts a document into a library: passages as (place, text).
    pub(crate) async fn document(&self, scope: &Scope, library: &str, title: &str, passages: &[(&str, &str)]) {
        let passages = passages.iter().map(|(place, text)| Passage { place: (*place).into(), text: (*text).into() });
        let (id, title, revision) = (title.to_owned(), title.to_owned(), "1".to_owned());
        let document = NewLibraryDocument { id, title, revision, passages: passages.collect() };
        self.memory().put_library_document(scope, library, document, None).await.unwrap();
    }
}

impl Talk<'_> {
    pub(crate) async fn turn(&self, text: &str) -> Turn {
        self.world.agent.chat(&self.scope, self.thread, text).await.unwrap()
    }

    /// Says something, and gives what is answered by a turn that is well.
    pub(crate) async fn say(&self, text: &str) -> String {
        let turn = self.turn(text).await;
        assert_eq!((turn.status, &turn.error), (TurnStatus::Completed, &None), "{text}: {turn:#?}");
        turn.reply
    }

    pub(crate) async fn messages(&self) -> Vec<Message> {
        self.world.memory().newest(&self.scope, self.thread, 100).await.unwrap()
    }

    /// What the thread holds, a line a message.
    pub(crate) async fn rows(&self) -> Vec<String> {
        self.messages().await.iter().map(row).collect()
    }

    pub(crate) async fn preferences(&self) -> Vec<(String, String)> {
        let preferences = self.world.memory().list_preferences(&self.scope).await.unwrap();
        preferences.into_iter().map(|preference| (preference.key, preference.value.read().unwrap())).collect()
    }
}

/// The tools that a turn called, with their arguments.
pub(crate) fn calls(turn: &Turn) -> Vec<String> {
    turn.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect()
}

/// The titles of what a turn stands on.
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
