//! Opens an assistant with its store, for commands that start or continue turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use threadkeep::agent::plugin::AssistantParts;
use threadkeep::agent::{Decision, EventSink, Failure as TurnFailure, Stop};
use threadkeep::core::{EPHEMERAL, limits};
use threadkeep::{
    Agent, AgentError, Assistant, Map, Memory, MemoryOptions, OpenThread, Scope, Thread, ThreadId, TurnRequest,
};
use threadkeep::{ThreadKey, ThreadOrder, ThreadQuery, Turn};
use threadkeep::{UserId, Verdict};
use threadkeep_server::AuditLog;

use crate::assistants::AssistantSource;
use crate::commands::App;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::models;
use crate::store::{Location, Purpose};
use crate::thread_name;

/// The maximum number of threads that are searched for a turn or an approval.
const MAX_THREADS: usize = 10_000;

/// How long a question asked outside any conversation is stored, in minutes.
const EPHEMERAL_MINUTES: u32 = 24 * 60;

/// The time after which a note explains why a turn has not started yet.
const NOTE_DELAY: Duration = Duration::from_secs(2);

/// An assistant that is ready to answer.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The name of the assistant as requested: a name, or the path of a file.
    pub(crate) name: String,
    pub(crate) agent: Agent,
    pub(crate) memory: Memory,
    pub(crate) scope: Scope,
    /// Whether the assistant's memory is lost when the program ends.
    pub(crate) is_in_memory: bool,
}

impl Session {
    /// Opens the store that the assistant requires and creates the assistant. `model` selects the chat model.
    pub(crate) async fn open(app: &App, name: &str, model: Option<&str>, purpose: Purpose) -> Result<Self> {
        Self::open_with_expiry(app, name, model, purpose, None).await
    }

    /// Like [`Session::open`], for questions in an [`ephemeral_thread`](Session::ephemeral_thread).
    pub(crate) async fn open_ephemeral(app: &App, name: &str, model: Option<&str>) -> Result<Self> {
        Self::open_with_expiry(app, name, model, Purpose::CreateOrWrite, Some(EPHEMERAL_MINUTES)).await
    }

    async fn open_with_expiry(
        app: &App,
        name: &str,
        model: Option<&str>,
        purpose: Purpose,
        max_minutes: Option<u32>,
    ) -> Result<Self> {
        let source = AssistantSource::find(name, &app.settings)?;
        let model = models::chat_model(model.or(source.model()), &app.settings)?;
        let embedder = models::embedder(&app.settings)?;
        let scope = app.scope()?;
        let required_store = source.store(app.global.store.as_deref())?;
        let location = match &required_store {
            Some(required_store) => Location::find(Some(required_store))?,
            None => app.location()?,
        };
        let is_in_memory = required_store.is_some();
        let mut memory = app.open_at(&location, purpose).await?.memory;
        if let Some(mut retention) = source.retention(&app.settings)? {
            // A retention period would extend the expiry of the ephemeral thread with each message.
            if let (Some(minutes), Some(max)) = (&mut retention.ttl_minutes, max_minutes) {
                *minutes = max.min(*minutes);
            }
            let options = MemoryOptions { retention: Some(retention), ..memory.options().clone() };
            memory = memory.with_options(options)?;
        }
        let parts = AssistantParts { memory: memory.clone(), model, embedder, tool_sources: Vec::new() };
        let assistant = source.make(parts, &app.settings)?;
        let agent = Agent::with_assistant(memory.clone(), assistant);
        Ok(Self { name: name.to_owned(), agent, memory, scope, is_in_memory })
    }

    pub(crate) fn assistant(&self) -> &Arc<dyn Assistant> {
        self.agent.assistant()
    }

    /// Returns the thread with a name, or creates a thread with the name as its id or key. Without a name, creates a thread.
    pub(crate) async fn thread(&self, name: Option<&str>) -> Result<ThreadId> {
        let Some(name) = name else { return Ok(self.memory.open(&self.scope).await?.thread.id) };
        if let Some(thread) = thread_name::find(&self.memory, &self.scope, name).await? {
            return Ok(thread.id);
        }
        if let Ok(id) = name.parse() {
            return Ok(self.memory.open_by_id(&self.scope, id).await?.thread.id);
        }
        ThreadKey::new(name).map_err(|error| Failure::usage(format!("invalid thread name: {error}")))?;
        Ok(self.memory.open_by_key(&self.scope, name).await?.thread.id)
    }

    /// Creates a thread for a single question. The thread is not listed or recalled, and expires after a day.
    pub(crate) async fn ephemeral_thread(&self) -> Result<ThreadId> {
        let open = OpenThread {
            metadata: Map::from_iter([(EPHEMERAL.to_owned(), true.into())]),
            expires_at: Some(self.memory.now().plus_ms(i64::from(EPHEMERAL_MINUTES) * 60_000)),
            ..OpenThread::new(&self.scope, self.memory.generate_thread_id())
        };
        Ok(self.memory.open_thread(&self.scope, open).await?.thread.id)
    }

    /// Answers a question. Ctrl-C stops the turn and keeps the conversation.
    pub(crate) async fn ask(&self, app: &App, thread: ThreadId, text: &str, sink: EventSink<'_>) -> Result<Turn> {
        let is_ephemeral = self.memory.get_thread(&self.scope, thread).await?.is_ephemeral();
        let (ask, has_started) = (TurnRequest { is_ephemeral, ..TurnRequest::new(text) }, AtomicBool::new(false));
        app.interrupt.set_turn(Some(ask.stop.clone()));
        let mut on_event = |event| {
            has_started.store(true, Ordering::Relaxed);
            sink(event);
        };
        let mut turn = Box::pin(self.agent.chat_with(&self.scope, thread, ask, &mut on_event));
        let turn = tokio::select! {
            turn = &mut turn => turn,
            () = tokio::time::sleep(NOTE_DELAY) => {
                let is_waiting = !has_started.load(Ordering::Relaxed);
                if is_waiting && self.agent.is_busy(&self.scope, thread).await.unwrap_or(false) {
                    app.output.note("another turn is running in this thread or was interrupted: waiting up to a minute");
                }
                turn.await
            }
        };
        app.interrupt.set_turn(None);
        turn.map_err(agent_error)
    }

    /// Approves or denies a call and resumes its turn. Ctrl-C stops the turn.
    pub(crate) async fn decide(
        &self,
        interrupt: &Interrupt,
        thread: ThreadId,
        (approval, verdict, by): (&str, Verdict, &UserId),
        sink: EventSink<'_>,
    ) -> Result<Turn> {
        let stop = Stop::new();
        interrupt.set_turn(Some(stop.clone()));
        let decision = Decision { approval: approval.to_owned(), verdict, by: by.to_string(), stop };
        let act = if matches!(decision.verdict, Verdict::Deny { .. }) { "approvals deny" } else { "approvals approve" };
        let deciding = async {
            let turn = self.agent.decide_with(&self.scope, thread, decision, sink).await;
            turn.map_err(agent_error)
        };
        let turn = AuditLog::new(&self.memory).audited_command(&self.scope, act, approval, Box::pin(deciding)).await;
        interrupt.set_turn(None);
        turn
    }

    /// Returns the assistant's name or path for suggested commands, if the name recorded in turns does not suffice to
    /// find the assistant.
    pub(crate) fn name_to_suggest(&self) -> Option<String> {
        let is_path = self.name.ends_with(".yaml") || self.name.ends_with(".yml");
        let path = || Some(std::path::absolute(&self.name).ok()?.to_str()?.to_owned());
        let name = if is_path { path().unwrap_or_else(|| self.name.clone()) } else { self.name.clone() };
        (self.name != self.assistant().definition().name).then_some(name)
    }

    /// Returns the threads of the scope, most recently changed first, up to [`MAX_THREADS`].
    pub(crate) async fn threads(&self) -> Result<Vec<Thread>> {
        let mut query = ThreadQuery::new(ThreadOrder::Recent, limits::PAGE);
        let mut threads = Vec::new();
        loop {
            let page = self.memory.list_threads(&self.scope, &query).await?;
            threads.extend(page.threads);
            match page.next {
                Some(next) if threads.len() < MAX_THREADS => query.after = Some(next),
                _ => return Ok(threads),
            }
        }
    }

    /// Finds a turn by its id in all threads.
    pub(crate) async fn find_turn(&self, id: &str) -> Result<Option<Turn>> {
        for thread in self.threads().await? {
            match self.agent.find_turn(&self.scope, thread.id, id).await {
                Ok(Some(turn)) => return Ok(Some(turn)),
                Ok(None) => {}
                // The thread was deleted or has expired in the meantime.
                Err(error) if error.code() == "not_found" => {}
                Err(error) => return Err(agent_error(error)),
            }
        }
        Ok(None)
    }
}

/// Converts an agent error to a failure with a hint.
pub(crate) fn agent_error(error: AgentError) -> anyhow::Error {
    match error {
        AgentError::Memory(error) => error.into(),
        AgentError::Busy => Failure::system_error("another turn is running in this thread")
            .hint("wait until it finishes, then try again")
            .into(),
        AgentError::ApprovalNotFound { .. } | AgentError::ApprovalClosed { .. } => {
            Failure::user_error(error.to_string()).hint("`threadkeep approvals list` lists pending approvals").into()
        }
        other => Failure::user_error(other.to_string()).into(),
    }
}

/// Whether a turn failed because the user stopped it.
pub(crate) fn was_stopped(turn: &Turn) -> bool {
    turn.error.as_ref().is_some_and(|TurnFailure { code, .. }| code == "stopped")
}
