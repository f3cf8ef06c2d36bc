//! An assistant over the store, and the thread that it talks in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use threadkeep::agent::plugin::AssistantParts;
use threadkeep::agent::{Decision, EventSink, Failure as TurnFailure, Stop};
use threadkeep::core::{EPHEMERAL, limits};
use threadkeep::{Agent, AgentError, Ask, Assistant, Map, Memory, MemoryOptions, OpenThread, Scope, Thread, ThreadId};
use threadkeep::{ThreadKey, ThreadOrder, ThreadQuery, Turn};
use threadkeep::{UserId, Verdict};
use threadkeep_server::AuditLog;

use crate::assistants::Found;
use crate::commands::App;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::models;
use crate::store::{Location, Purpose};
use crate::thread_name;

/// Threads that are looked through for a turn or an approval.
const THREADS: usize = 10_000;

/// How long a question is kept that was asked in no thread.
const EPHEMERAL_MINUTES: u32 = 24 * 60;

/// After how long without a sign of its turn a person is told why.
const SILENCE: Duration = Duration::from_secs(2);

/// An assistant that can be talked with.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// What the assistant was asked for by: a name, or the path of its file.
    pub(crate) name: String,
    pub(crate) agent: Agent,
    pub(crate) memory: Memory,
    pub(crate) scope: Scope,
    /// Whether conversations end with the program.
    pub(crate) is_forgetful: bool,
}

impl Session {
    /// Opens the store, as the assistant asks for it, and makes the assistant. `model` names the model that speaks.
    pub(crate) async fn open(app: &App, name: &str, model: Option<&str>, purpose: Purpose) -> Result<Self> {
        Self::open_kept(app, name, model, purpose, None).await
    }

    /// As [`Session::open`], to ask in [`Session::ephemeral_thread`].
    pub(crate) async fn open_for_a_day(app: &App, name: &str, model: Option<&str>) -> Result<Self> {
        Self::open_kept(app, name, model, Purpose::Fill, Some(EPHEMERAL_MINUTES)).await
    }

    async fn open_kept(
        app: &App,
        name: &str,
        model: Option<&str>,
        purpose: Purpose,
        most_minutes: Option<u32>,
    ) -> Result<Self> {
        let found = Found::find(name, &app.settings)?;
        let speaker = models::speaker(model.or(found.model()), &app.settings)?;
        let embedder = models::embedder(&app.settings)?;
        let scope = app.scope()?;
        let own = found.store(app.global.store.as_deref())?;
        let location = match &own {
            Some(own) => Location::find(Some(own))?,
            None => app.location()?,
        };
        let is_forgetful = own.is_some();
        let mut memory = app.open_at(&location, purpose).await?.memory;
        if let Some(manifest) = found.manifest() {
            let mut retention = manifest.memory.retention();
            // A thread's expiry is moved by each message where the assistant says how long messages are kept.
            if let (Some(minutes), Some(most)) = (&mut retention.ttl_minutes, most_minutes) {
                *minutes = most.min(*minutes);
            }
            let options = MemoryOptions { retention: Some(retention), ..memory.options().clone() };
            memory = memory.with_options(options)?;
        }
        let parts = AssistantParts { memory: memory.clone(), model: speaker, embedder };
        let assistant = found.make(parts, &app.settings)?;
        let agent = Agent::with_assistant(memory.clone(), assistant);
        Ok(Self { name: name.to_owned(), agent, memory, scope, is_forgetful })
    }

    pub(crate) fn assistant(&self) -> &Arc<dyn Assistant> {
        self.agent.assistant()
    }

    /// The thread of a name: one that is there, else a new one with that id or key. Without a name, a new one.
    pub(crate) async fn thread(&self, name: Option<&str>) -> Result<ThreadId> {
        let Some(name) = name else { return Ok(self.memory.open(&self.scope).await?.thread.id) };
        if let Some(thread) = thread_name::find(&self.memory, &self.scope, name).await? {
            return Ok(thread.id);
        }
        if let Ok(id) = name.parse() {
            return Ok(self.memory.open_by_id(&self.scope, id).await?.thread.id);
        }
        ThreadKey::new(name).map_err(|error| Failure::usage(format!("no thread can be called so: {error}")))?;
        Ok(self.memory.open_by_key(&self.scope, name).await?.thread.id)
    }

    /// A new thread for one question: it is in no list, nothing of it is recalled, and after a day it has expired.
    pub(crate) async fn ephemeral_thread(&self) -> Result<ThreadId> {
        let open = OpenThread {
            metadata: Map::from_iter([(EPHEMERAL.to_owned(), true.into())]),
            expires_at: Some(self.memory.now().plus_ms(i64::from(EPHEMERAL_MINUTES) * 60_000)),
            ..OpenThread::new(&self.scope, self.memory.mint_thread_id())
        };
        Ok(self.memory.open_thread(&self.scope, open).await?.thread.id)
    }

    /// Has a question answered; Ctrl-C stops the turn and keeps the conversation.
    pub(crate) async fn ask(&self, app: &App, thread: ThreadId, text: &str, sink: EventSink<'_>) -> Result<Turn> {
        let is_ephemeral = self.memory.get_thread(&self.scope, thread).await?.is_ephemeral();
        let (ask, has_begun) = (Ask { is_ephemeral, ..Ask::new(text) }, AtomicBool::new(false));
        app.interrupt.stops(Some(ask.stop.clone()));
        let mut hear = |event| {
            has_begun.store(true, Ordering::Relaxed);
            sink(event);
        };
        let mut turn = Box::pin(self.agent.chat_with(&self.scope, thread, ask, &mut hear));
        let turn = tokio::select! {
            turn = &mut turn => turn,
            () = tokio::time::sleep(SILENCE) => {
                let waits = !has_begun.load(Ordering::Relaxed);
                if waits && self.agent.is_busy(&self.scope, thread).await.unwrap_or(false) {
                    app.output.note("another turn of this thread is on its way, or was cut off: waiting, a minute at most");
                }
                turn.await
            }
        };
        app.interrupt.stops(None);
        turn.map_err(told)
    }

    /// Decides about an approval, and has its turn go on; Ctrl-C stops that.
    pub(crate) async fn decide(
        &self,
        interrupt: &Interrupt,
        thread: ThreadId,
        (approval, verdict, by): (&str, Verdict, &UserId),
        sink: EventSink<'_>,
    ) -> Result<Turn> {
        let stop = Stop::new();
        interrupt.stops(Some(stop.clone()));
        let decision = Decision { approval: approval.to_owned(), verdict, by: by.to_string(), stop };
        let act = if matches!(decision.verdict, Verdict::Deny { .. }) { "approvals deny" } else { "approvals approve" };
        let deciding = async {
            let turn = self.agent.decide_with(&self.scope, thread, decision, sink).await;
            turn.map_err(told)
        };
        let turn = AuditLog::new(&self.memory).around_command(&self.scope, act, approval, Box::pin(deciding)).await;
        interrupt.stops(None);
        turn
    }

    /// How the assistant is named to a command that is given elsewhere, where the turns' name for it does not do.
    pub(crate) fn name_elsewhere(&self) -> Option<String> {
        let is_path = self.name.ends_with(".yaml") || self.name.ends_with(".yml");
        let path = || Some(std::path::absolute(&self.name).ok()?.to_str()?.to_owned());
        let name = if is_path { path().unwrap_or_else(|| self.name.clone()) } else { self.name.clone() };
        (self.name != self.assistant().definition().name).then_some(name)
    }

    /// All threads that the scope lists, those that changed last first.
    pub(crate) async fn threads(&self) -> Result<Vec<Thread>> {
        let mut query = ThreadQuery::new(ThreadOrder::Recent, limits::PAGE);
        let mut threads = Vec::new();
        loop {
            let page = self.memory.list_threads(&self.scope, &query).await?;
            threads.extend(page.threads);
            match page.next {
                Some(next) if threads.len() < THREADS => query.after = Some(next),
                _ => return Ok(threads),
            }
        }
    }

    /// Finds a turn by its id, in all threads.
    pub(crate) async fn find_turn(&self, id: &str) -> Result<Option<Turn>> {
        for thread in self.threads().await? {
            match self.agent.find_turn(&self.scope, thread.id, id).await {
                Ok(Some(turn)) => return Ok(Some(turn)),
                Ok(None) => {}
                // It was deleted or has expired meanwhile.
                Err(error) if error.code() == "not_found" => {}
                Err(error) => return Err(told(error)),
            }
        }
        Ok(None)
    }
}

/// An error of an agent in the command line's words.
pub(crate) fn told(error: AgentError) -> anyhow::Error {
    match error {
        AgentError::Memory(error) => error.into(),
        AgentError::Busy => Failure::other_side("another turn is running in this thread")
            .hint("wait until it is done, and ask again")
            .into(),
        AgentError::ApprovalNotFound { .. } | AgentError::ApprovalClosed { .. } => {
            Failure::yours(error.to_string()).hint("`threadkeep approvals list` lists those that are open").into()
        }
        other => Failure::yours(other.to_string()).into(),
    }
}

/// Whether a failed turn failed because it was stopped.
pub(crate) fn was_stopped(turn: &Turn) -> bool {
    turn.error.as_ref().is_some_and(|TurnFailure { code, .. }| code == "stopped")
}
