//! Beginning a turn: the user's message is stored, and the run with it.

use std::sync::Arc;

use threadkeep_core::{ChatModel, Content, DocumentState, Role, Scope, ThreadId, Tool};
use threadkeep_graph::{AnyRun, Failure, Input};
use threadkeep_memory::turns::{
    Driving, Place, Runs, TurnKind, Versioned, lease_until, lock, messages_of, turn_of_key,
};
use threadkeep_memory::{Draft, Prefetched, ThreadConfig};
use tokio::sync::Mutex;

use super::{Agent, Ask};
use crate::drive::drive;
use crate::event::Events;
use crate::ledger::Ledger;
use crate::record::{self, Recorded, RunRecord};
use crate::workshop::{Contexts, Workshop};
use crate::{Asked, ContextNumbers, Prepared, Result, Stop, StoredMessage, Turn, TurnEvent};

/// How often a thread is tried for that others get first.
const ATTEMPTS: usize = 64;

/// A turn that has begun.
pub(super) enum Begun {
    /// By this call.
    Now(Box<Run>),
    /// By an earlier call with the same key.
    Before(Box<Turn>),
}

/// A run whose user's message is stored.
pub(super) struct Run {
    pub(super) record: Versioned<RunRecord>,
    /// The position of the user's message.
    pub(super) seq: u64,
    pub(super) driving: Driving,
    /// The thread as it was read before that, where nothing else happened in it since.
    pub(super) read: Option<Prefetched>,
}

/// What was found in a thread by one look: the turns that are not over, and all that a turn reads of it.
pub(super) struct Looked {
    runs: Runs,
    read: Prefetched,
}

/// What a run goes on from.
pub(super) struct Going<'a> {
    pub(super) run: Versioned<RunRecord>,
    pub(super) seq: u64,
    pub(super) question: String,
    pub(super) stop: &'a Stop,
    pub(super) claimed: Option<&'a str>,
    pub(super) read: Option<Prefetched>,
}

impl Agent {
    /// Looks at a thread that is to have a turn.
    pub(super) async fn look(&self, scope: &Scope, thread: ThreadId) -> Result<(Place, Option<Looked>)> {
        match Place::read(self.memory(), scope, thread, &self.assistant().definition().context).await {
            Ok((place, runs, read)) => Ok((place, Some(Looked { runs, read }))),
            Err(error) if error.is_not_found() => Err(error.into()),
            // A history or settings that cannot be read must not keep the question from being stored.
            Err(_) => Ok((Place::find(self.memory(), scope, thread).await?, None)),
        }
    }

    /// Stores the user's message and takes the thread.
    pub(super) async fn begin(&self, place: &Place, looked: Option<Looked>, ask: &Ask) -> Result<Begun> {
        let memory = self.memory();
        let name = &self.assistant().definition().name;
        // Its length alone: what a user says is in no log.
        tracing::debug!("Processing natural language input for agent {name}: {} chars", ask.text.chars().count());
        let turn = match &ask.idempotency_key {
            Some(key) => turn_of_key(place.thread, key),
            None => memory.mint_message_id().to_string(),
        };
        let mut older = lock::OlderLock::default();
        let (mut seen, mut read) = looked.map_or((None, None), |looked| (Some(looked.runs), Some(looked.read)));
        for attempt in 1.. {
            self.admit(place, seen.take(), &ask.stop, &mut older).await?;
            // That there was none is what the first attempt demands.
            if attempt > 1
                && ask.idempotency_key.is_some()
                && let Some(before) = self.find_turn(&place.scope, place.thread, &turn).await?
            {
                return Ok(Begun::Before(Box::new(before)));
            }
            let driving = Driving::begin(memory);
            let record = RunRecord {
                given: ask.given.clone(),
                is_ephemeral: ask.is_ephemeral,
                asker: Some(place.scope.default_owner()),
                ..self.new_record(&turn, &driving)
            };
            let mut content = Content::text(Role::User, &ask.text);
            content.author = ask.author.clone().or_else(|| place.author.clone());
            let id = record::message_id(&turn, record.started_at, 0);
            let mut batch = lock::take(memory.batch(), &record, &older)?;
            if ask.idempotency_key.is_some() {
                // The same request elsewhere may have had its turn, from its beginning to its end, since it was looked for.
                for name in [record::stub(&turn), record::waiting(&turn)] {
                    batch = batch.require(name, DocumentState::Absent);
                }
            }
            let batch = batch.append(record.marked(Draft::new(content)).with_id(id));
            match batch.commit(&place.writer, place.thread).await {
                Ok(appended) => {
                    let record = Versioned { value: record, version: appended.tagged() };
                    let read = read.take().and_then(|read| read.after(appended.tagged()));
                    return Ok(Begun::Now(Box::new(Run { record, seq: appended.first_seq, driving, read })));
                }
                Err(error) if (record::is_about_turns(&error) || older.has_refused(&error)) && attempt < ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(crate::AgentError::Busy)
    }

    fn new_record(&self, turn: &str, driving: &Driving) -> RunRecord {
        let (memory, definition) = (self.memory(), self.assistant().definition());
        RunRecord {
            turn: turn.to_owned(),
            kind: TurnKind::Run,
            assistant: definition.name.clone(),
            graph: definition.graph.name().to_owned(),
            version: definition.graph.version(),
            asker: None,
            driver: driving.name().to_owned(),
            lease_until: lease_until(memory),
            taken_over: 0,
            given: threadkeep_core::Map::new(),
            is_ephemeral: false,
            is_prepared: false,
            model: definition.model.name().to_owned(),
            started_at: memory.now(),
            entries: 0,
            begun: Vec::new(),
            said: 0,
            messages: 1,
            context: ContextNumbers::default(),
            worked_ms: 0,
            embedding_calls: 0,
        }
    }

    /// Runs a turn that has begun.
    pub(super) async fn run_begun(&self, place: &Place, run: Box<Run>, ask: &Ask, events: &Events<'_>) -> Result<Turn> {
        let Run { record, seq, driving, read } = *run;
        let (thread, turn) = (place.thread, record.value.turn.clone());
        events.send(TurnEvent::Started { thread, turn, agent: record.value.assistant.clone() });
        let going = Going { run: record, seq, question: ask.text.clone(), stop: &ask.stop, claimed: None, read };
        let turn = Box::pin(self.go(place, going, events)).await;
        drop(driving);
        turn
    }

    /// Prepares and drives a run, from wherever its journal has brought it.
    pub(super) async fn go(&self, place: &Place, going: Going<'_>, events: &Events<'_>) -> Result<Turn> {
        let Going { mut run, seq, question, stop, claimed, read } = going;
        let place = &place.of_asker(&run.value);
        let memory = self.memory();
        let config = match &read {
            Some(read) => Ok(read.config.clone()),
            None => memory.thread_config(&place.writer, place.thread).await,
        };
        let prepared = tokio::select! {
            biased;
            () = stop.wait() => Err(Failure::new("stopped", "it was stopped")),
            prepared = self.prepare(place, &mut run.value, seq, &question) => prepared,
        };
        let (config, trouble) = match config {
            Ok(config) => (config, None),
            Err(error) => (ThreadConfig::default(), Some(Failure::new("settings_failed", error.to_string()))),
        };
        let (prepared, trouble) = match prepared {
            Ok(prepared) => (prepared, trouble),
            Err(failure) => (Prepared::default(), trouble.or(Some(failure))),
        };
        let (model, trouble) = match self.model_of(&config) {
            Ok(model) => (model, trouble),
            Err(failure) => (Arc::clone(&self.assistant().definition().model), trouble.or(Some(failure))),
        };
        run.value.model = model.name().to_owned();
        let sink = |event| events.send(event);
        let workshop = Workshop {
            memory,
            assistant: &**self.assistant(),
            place,
            turn: run.value.turn.clone(),
            question: question.clone(),
            read_at: seq - 1,
            model,
            tools: self.tools_of(&config),
            policy: config.bound_context(&self.assistant().definition().context),
            prepared,
            sink: &sink,
            contexts: Mutex::new(Contexts::of(read)),
        };
        let mut ledger = self.ledger(place, run, seq, question).await?;
        if let Some(failure) = trouble {
            ledger.stop(failure);
        }
        drive(&workshop, ledger, claimed, stop).await
    }

    async fn prepare(
        &self,
        place: &Place,
        record: &mut RunRecord,
        seq: u64,
        question: &str,
    ) -> Result<Prepared, Failure> {
        let turn = record.turn.clone();
        let (memory, scope, thread) = (self.memory(), &place.scope, place.thread);
        let given = record.given.clone();
        let asked = Asked { memory, scope, thread, turn: &turn, question, seq, given: &given, now: memory.now() };
        let prepared = self.assistant().prepare(&asked).await?;
        record.embedding_calls += prepared.embedding_calls;
        // What the graph was given once it is given again, so that its journal replays.
        if !record.is_prepared {
            record.given.extend(prepared.given.clone());
            record.is_prepared = true;
        }
        Ok(prepared)
    }

    fn model_of(&self, config: &ThreadConfig) -> Result<Arc<dyn ChatModel>, Failure> {
        let Some(name) = &config.model else {
            return Ok(Arc::clone(&self.assistant().definition().model));
        };
        self.assistant().model_named(name).ok_or_else(|| {
            Failure::new("unknown_model", format!("the thread's settings name the model {name}, which is not here"))
        })
    }

    fn tools_of(&self, config: &ThreadConfig) -> Vec<Arc<dyn Tool>> {
        let is_enabled = |tool: &&Arc<dyn Tool>| match &config.enabled_tools {
            Some(names) => names.iter().any(|name| name == tool.spec().name()),
            None => true,
        };
        self.assistant().definition().tools.iter().filter(is_enabled).cloned().collect()
    }

    /// Rebuilds a run from its journal.
    async fn ledger(&self, place: &Place, mut run: Versioned<RunRecord>, seq: u64, question: String) -> Result<Ledger> {
        let memory = self.memory();
        let recorded: Vec<Recorded> = match run.value.entries {
            0 => Vec::new(),
            _ => place.journal(memory, &run.value.turn).await?,
        };
        let approvals = match run.value.messages > 1 || run.value.entries > 0 {
            true => place.approvals_of(memory, &run.value.turn).await?,
            false => Vec::new(),
        };
        let input = Input { question, given: run.value.given.clone() };
        let graph = &self.assistant().definition().graph;
        let mut journal = threadkeep_graph::Journal::new(&run.value.graph, run.value.version);
        journal.events = recorded.iter().map(|recorded| recorded.event.clone()).collect();
        let replayed = graph.replay_any(&input, &journal);
        let is_fresh = run.value.said == 0 && run.value.begun.is_empty() && approvals.is_empty();
        let (machine, recorded): (Box<dyn AnyRun>, _) = match replayed {
            Ok(machine) => (machine, recorded),
            // A graph that was changed meanwhile: what only looked is looked at again.
            Err(_) if is_fresh => {
                run.value.graph = graph.name().to_owned();
                run.value.version = graph.version();
                (graph.start_any(&input)?, Vec::new())
            }
            Err(error) => {
                let mut machine = graph.start_any(&input)?;
                let failure = Failure::new("unknown_graph_version", error.to_string());
                machine.handle_event(threadkeep_graph::Event::Stopped { failure })?;
                (machine, recorded)
            }
        };
        let mut ledger = Ledger::new(machine, run, recorded);
        ledger.approvals = approvals;
        ledger.stored = self.stored(place, &ledger.record, seq).await?;
        Ok(ledger)
    }

    async fn stored(&self, place: &Place, record: &RunRecord, seq: u64) -> Result<Vec<StoredMessage>> {
        if record.messages == 1 {
            return Ok(vec![StoredMessage { seq, role: Role::User }]);
        }
        let found = messages_of(self.memory(), place, &record.turn, record.started_at, record.messages).await?;
        Ok(found.iter().map(|message| StoredMessage { seq: message.seq, role: message.content.role }).collect())
    }
}
