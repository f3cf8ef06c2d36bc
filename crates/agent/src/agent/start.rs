//! Starting a turn: one commit stores the user's message and the run record.

use std::sync::Arc;

use threadkeep_core::{ChatModel, RecordState, Role, Scope, ThreadId, Tool};
use threadkeep_graph::{AnyRun, Failure, Input};
use threadkeep_memory::turns::{
    Driver, PendingQuestion, Runs, ThreadAccess, TurnKind, Versioned, lease_until, lock, read_turn_messages,
    turn_id_for_key,
};
use threadkeep_memory::{Prefetched, ThreadConfig};
use tokio::sync::Mutex;

use super::{Agent, TurnRequest};
use crate::drive::drive;
use crate::event::Events;
use crate::executor::{Contexts, EffectExecutor};
use crate::record::{self, RecordedEvent, RunRecord};
use crate::run_state::RunState;
use crate::segment::begin_batch;
use crate::{
    ContextSize, PrepareRequest, Result, Stop, StoreUserMessage, StoredMessage, Turn, TurnEvent, TurnPreparation,
};

/// Maximum number of attempts to lock a thread if other turns lock it first.
const ATTEMPTS: usize = 64;

/// The result of starting a turn.
pub(super) enum TurnStart {
    /// This call started the turn.
    Started(Box<StartedRun>),
    /// An earlier call with the same idempotency key ran the turn.
    Existing(Box<Turn>),
}

/// A run whose record is stored.
pub(super) struct StartedRun {
    pub(super) record: Versioned<RunRecord>,
    /// The position of the user's message, or the next position of the thread if the message is not stored yet.
    pub(super) seq: u64,
    pub(super) driver: Driver,
    /// The thread as it was read before the message was stored; `None` if it has been changed in between.
    pub(super) read: Option<Prefetched>,
}

/// The result of one read of a thread: its unfinished runs, and the data that a turn needs.
pub(super) struct ThreadSnapshot {
    runs: Runs,
    read: Prefetched,
}

/// A run that this driver has claimed, with the values that are needed to drive it.
pub(super) struct ClaimedRun<'a> {
    pub(super) run: Versioned<RunRecord>,
    pub(super) seq: u64,
    pub(super) question: String,
    pub(super) stop: &'a Stop,
    pub(super) claimed_approval: Option<&'a str>,
    pub(super) read: Option<Prefetched>,
}

impl Agent {
    /// Reads the thread in which a new turn starts.
    pub(super) async fn read_thread(
        &self,
        scope: &Scope,
        thread: ThreadId,
    ) -> Result<(ThreadAccess, Option<ThreadSnapshot>)> {
        match ThreadAccess::read(self.memory(), scope, thread, &self.assistant().definition().context).await {
            Ok((access, runs, read)) => Ok((access, Some(ThreadSnapshot { runs, read }))),
            Err(error) if error.is_not_found() => Err(error.into()),
            // The question is stored even if the history or the settings cannot be read.
            Err(_) => Ok((ThreadAccess::find(self.memory(), scope, thread).await?, None)),
        }
    }

    /// Stores the user's message and takes the thread's lock.
    pub(super) async fn start(
        &self,
        access: &ThreadAccess,
        snapshot: Option<ThreadSnapshot>,
        request: &TurnRequest,
    ) -> Result<TurnStart> {
        let memory = self.memory();
        let name = &self.assistant().definition().name;
        // Only the length is logged, because users' messages must never be.
        tracing::debug!("Processing natural language input for agent {name}: {} chars", request.text.chars().count());
        let turn = match &request.idempotency_key {
            Some(key) => turn_id_for_key(access.thread, key),
            None => memory.generate_message_id().to_string(),
        };
        let mut legacy = lock::LegacyLock::default();
        let (mut known_runs, mut read) = match snapshot {
            Some(ThreadSnapshot { runs, read }) => (Some(runs), Some(read)),
            None => (None, None),
        };
        for attempt in 1.. {
            let skips_trimming =
                !self.admit(access, known_runs.take(), &request.stop, &mut legacy).await?.waiting.is_empty();
            // The first attempt needs no lookup: its commit requires that no turn with this key exists.
            if attempt > 1
                && request.idempotency_key.is_some()
                && let Some(existing) = self.find_turn(&access.scope, access.thread, &turn).await?
            {
                return Ok(TurnStart::Existing(Box::new(existing)));
            }
            let driver = Driver::begin(memory);
            let question = PendingQuestion {
                text: request.text.clone(),
                author: request.author.clone().or_else(|| access.author.clone()),
            };
            let is_stored_first = self.assistant().definition().store_user_message == StoreUserMessage::BeforeModelCall;
            let record = RunRecord {
                extra_input: request.extra_input.clone(),
                is_ephemeral: request.is_ephemeral,
                skips_trimming,
                requester: Some(access.scope.default_owner()),
                messages: u16::from(is_stored_first),
                pending_question: (!is_stored_first).then(|| question.clone()),
                ..self.new_record(&turn, &driver)
            };
            let mut batch = lock::acquire(begin_batch(memory, &record), &record, &legacy)?;
            if request.idempotency_key.is_some() {
                // Since the lookup, the same request may have run its whole turn on another instance.
                for name in [record::turn_record_name(&turn), record::waiting_name(&turn)] {
                    batch = batch.require(name, RecordState::Absent);
                }
            }
            let draft = question.draft();
            if is_stored_first {
                let id = record::message_id(&turn, record.started_at, 0);
                batch = batch.append(record.mark_if_ephemeral(draft).with_id(id));
            } else {
                // Reject an invalid message now rather than with the commit that ends the turn.
                draft.content.check()?;
            }
            match batch.commit(&access.writer, access.thread).await {
                Ok(appended) => {
                    let record = Versioned { value: record, version: appended.tagged() };
                    let read = read.take().and_then(|read| read.after(appended.tagged()));
                    return Ok(TurnStart::Started(Box::new(StartedRun {
                        record,
                        seq: appended.first_seq,
                        driver,
                        read,
                    })));
                }
                Err(error)
                    if (record::is_turn_conflict(&error) || legacy.is_conflict(&error)) && attempt < ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(crate::AgentError::Busy)
    }

    fn new_record(&self, turn: &str, driver: &Driver) -> RunRecord {
        let (memory, definition) = (self.memory(), self.assistant().definition());
        RunRecord {
            turn: turn.to_owned(),
            kind: TurnKind::Run,
            assistant: definition.name.clone(),
            graph: definition.graph.name().to_owned(),
            version: definition.graph.version(),
            requester: None,
            driver: driver.name().to_owned(),
            lease_until: lease_until(memory),
            taken_over: 0,
            extra_input: threadkeep_core::Map::new(),
            is_ephemeral: false,
            skips_trimming: false,
            is_prepared: false,
            model: definition.model.name().to_owned(),
            started_at: memory.now(),
            entries: 0,
            started_once: Vec::new(),
            run_messages: 0,
            messages: 1,
            context: ContextSize::default(),
            active_ms: 0,
            embedding_calls: 0,
            pending_question: None,
        }
    }

    /// Runs a turn that [`Agent::start`] started.
    pub(super) async fn run_started(
        &self,
        access: &ThreadAccess,
        run: Box<StartedRun>,
        request: &TurnRequest,
        events: &Events<'_>,
    ) -> Result<Turn> {
        let StartedRun { record, seq, driver, read } = *run;
        let (thread, turn) = (access.thread, record.value.turn.clone());
        events.send(TurnEvent::Started { thread, turn, agent: record.value.assistant.clone() });
        let (question, stop) = (request.text.clone(), &request.stop);
        let claimed_run = ClaimedRun { run: record, seq, question, stop, claimed_approval: None, read };
        let turn = Box::pin(self.drive_claimed(access, claimed_run, events)).await;
        drop(driver);
        turn
    }

    /// Prepares a claimed run, rebuilds its state from the journal and drives it.
    pub(super) async fn drive_claimed(
        &self,
        access: &ThreadAccess,
        claimed_run: ClaimedRun<'_>,
        events: &Events<'_>,
    ) -> Result<Turn> {
        let ClaimedRun { mut run, seq, question, stop, claimed_approval, read } = claimed_run;
        let access = &access.for_requester(&run.value);
        let memory = self.memory();
        let config = match &read {
            Some(read) => Ok(read.config.clone()),
            None => memory.thread_config(&access.writer, access.thread).await,
        };
        let prepared = tokio::select! {
            biased;
            () = stop.wait() => Err(Failure::new("stopped", "the turn was stopped")),
            prepared = self.prepare(access, &mut run.value, seq, &question) => prepared,
        };
        let (config, failed) = match config {
            Ok(config) => (config, None),
            Err(error) => (ThreadConfig::default(), Some(Failure::new("settings_failed", error.to_string()))),
        };
        let (prepared, failed) = match prepared {
            Ok(prepared) => (prepared, failed),
            Err(failure) => (TurnPreparation::default(), failed.or(Some(failure))),
        };
        let (model, failed) = match self.select_model(&config) {
            Ok(model) => (model, failed),
            Err(failure) => (Arc::clone(&self.assistant().definition().model), failed.or(Some(failure))),
        };
        run.value.model = model.name().to_owned();
        let sink = |event| events.send(event);
        let executor = EffectExecutor {
            memory,
            assistant: &**self.assistant(),
            access,
            turn: run.value.turn.clone(),
            question: question.clone(),
            history_end_seq: seq - 1,
            model,
            tools: self.allowed_tools(&config, stop).await,
            policy: config.limit_context(&self.assistant().definition().context),
            prepared,
            sink: &sink,
            contexts: Mutex::new(Contexts::of(read)),
        };
        let mut run_state = self.rebuild_run_state(access, run, seq, question).await?;
        if let Some(failure) = failed {
            run_state.stop(failure);
        }
        drive(&executor, run_state, claimed_approval, stop).await
    }

    async fn prepare(
        &self,
        access: &ThreadAccess,
        record: &mut RunRecord,
        seq: u64,
        question: &str,
    ) -> Result<TurnPreparation, Failure> {
        let turn = record.turn.clone();
        let (memory, scope, thread) = (self.memory(), &access.scope, access.thread);
        let extra_input = record.extra_input.clone();
        let request = PrepareRequest {
            memory,
            scope,
            thread,
            turn: &turn,
            question,
            seq,
            extra_input: &extra_input,
            now: memory.now(),
        };
        let prepared = self.assistant().prepare(&request).await?;
        record.embedding_calls += prepared.embedding_calls;
        // Only the first preparation determines the graph's input, so that the journal can be replayed.
        if !record.is_prepared {
            record.extra_input.extend(prepared.extra_input.clone());
            record.is_prepared = true;
        }
        Ok(prepared)
    }

    fn select_model(&self, config: &ThreadConfig) -> Result<Arc<dyn ChatModel>, Failure> {
        let Some(name) = &config.model else {
            return Ok(Arc::clone(&self.assistant().definition().model));
        };
        self.assistant()
            .model_named(name)
            .ok_or_else(|| Failure::new("unknown_model", format!("unknown model {name} in the thread's settings")))
    }

    /// Returns the tools that the thread's settings allow, once the sources of tools are ready.
    async fn allowed_tools(&self, config: &ThreadConfig, stop: &Stop) -> Vec<Arc<dyn Tool>> {
        let definition = self.assistant().definition();
        if !definition.tool_sources.is_empty() {
            let ready =
                futures::future::join_all(definition.tool_sources.iter().map(|source| source.wait_until_ready()));
            tokio::select! {
                biased;
                () = stop.wait() => {}
                _ = ready => {}
            }
        }
        let mut tools = definition.all_tools();
        tools.retain(|tool| config.allows_tool(tool.spec().name()));
        tools
    }

    /// Rebuilds a run's state from its journal.
    async fn rebuild_run_state(
        &self,
        access: &ThreadAccess,
        mut run: Versioned<RunRecord>,
        seq: u64,
        question: String,
    ) -> Result<RunState> {
        let memory = self.memory();
        let recorded: Vec<RecordedEvent> = match run.value.entries {
            0 => Vec::new(),
            _ => access.journal(memory, &run.value.turn).await?,
        };
        let approvals = match run.value.messages > 1 || run.value.entries > 0 {
            true => access.approvals_of_turn(memory, &run.value.turn).await?,
            false => Vec::new(),
        };
        let input = Input { question, extra_input: run.value.extra_input.clone() };
        let graph = &self.assistant().definition().graph;
        let mut journal = threadkeep_graph::Journal::new(&run.value.graph, run.value.version);
        journal.events = recorded.iter().map(|recorded| recorded.event.clone()).collect();
        let replayed = graph.replay_any(&input, &journal);
        let has_no_lasting_effects =
            run.value.run_messages == 0 && run.value.started_once.is_empty() && approvals.is_empty();
        let (replayed_run, recorded): (Box<dyn AnyRun>, _) = match replayed {
            Ok(replayed_run) => (replayed_run, recorded),
            // The graph has changed in the meantime. A run without lasting effects starts again; its reads are repeated.
            Err(_) if has_no_lasting_effects => {
                run.value.graph = graph.name().to_owned();
                run.value.version = graph.version();
                (graph.start_any(&input)?, Vec::new())
            }
            Err(error) => {
                let mut replayed_run = graph.start_any(&input)?;
                let failure = Failure::new("unknown_graph_version", error.to_string());
                replayed_run.handle_event(threadkeep_graph::Event::Stopped { failure })?;
                (replayed_run, recorded)
            }
        };
        let mut run_state = RunState::new(replayed_run, run, recorded);
        run_state.approvals = approvals;
        run_state.stored = self.find_stored_messages(access, &run_state.record, seq).await?;
        Ok(run_state)
    }

    async fn find_stored_messages(
        &self,
        access: &ThreadAccess,
        record: &RunRecord,
        seq: u64,
    ) -> Result<Vec<StoredMessage>> {
        match record.messages {
            0 => return Ok(Vec::new()),
            1 => return Ok(vec![StoredMessage { seq, role: Role::User }]),
            _ => {}
        }
        let found = read_turn_messages(self.memory(), access, &record.turn, record.started_at, record.messages).await?;
        Ok(found.iter().map(|message| StoredMessage { seq: message.seq, role: message.content.role }).collect())
    }
}
