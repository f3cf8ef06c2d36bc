//! The state of a run: its graph, its record, its journal and its approvals.

use threadkeep_core::{ChatAnswer, JsonText, PutRecord, RecordState, TaggedNumber};
use threadkeep_graph::{AnyRun, Event, Failure, Outcome, RequestId};
use threadkeep_memory::turns::{ThreadAccess, Versioned, lease_until, lock};
use threadkeep_memory::{Appended, BatchBuilder, Draft, Memory};

use crate::record::{self, RecordedEvent, RunRecord};
use crate::{AgentError, Approval, ApprovalState, Result, StoredMessage, ToolCallTrace, TurnUsage};

/// The maximum number of journal entries of a run. Each entry is a record, and one commit must be able to delete all of them.
const MAX_ENTRIES: u32 = 60;

/// When a write of the journal is synced to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalSync {
    /// By this commit.
    Now,
    /// By the next commit that syncs.
    Deferred,
}

/// A run, its record and its journal.
pub(crate) struct RunState {
    pub(crate) run: Box<dyn AnyRun>,
    pub(crate) record: RunRecord,
    /// The version of the run record that this driver wrote last. Commits require it, so they fail after another driver has taken over.
    pub(crate) version: TaggedNumber,
    pub(crate) recorded: Vec<RecordedEvent>,
    /// The number of events in `recorded` that the stored journal contains.
    written_count: usize,
    /// The index in `recorded` of the first event of the journal's last entry.
    last_entry_start: usize,
    /// The stored approvals of this turn. People may already have seen them.
    pub(crate) approvals: Vec<Versioned<Approval>>,
    /// New approvals, which are stored when the run is suspended. If another driver takes over the run before that, it requests the
    /// approvals again.
    pub(crate) requested: Vec<Approval>,
    /// The ids of approvals that changed since they were stored.
    pub(crate) changed: Vec<String>,
    /// The number of model calls: those in the journal, which were answered, and all that this driver started, failed ones included.
    pub(crate) model_calls: u64,
    /// The number of tool calls that were started, including unfinished ones.
    pub(crate) tool_calls_started: u64,
    /// The stored messages of this turn.
    pub(crate) stored: Vec<StoredMessage>,
}

impl RunState {
    pub(crate) fn new(run: Box<dyn AnyRun>, record: Versioned<RunRecord>, recorded: Vec<RecordedEvent>) -> Self {
        let model_calls = model_answers(&recorded).count() as u64;
        let tool_calls_started = recorded.iter().filter(|recorded| recorded.call.is_some()).count() as u64;
        Self {
            run,
            record: record.value,
            version: record.version,
            written_count: recorded.len(),
            last_entry_start: recorded.len(),
            recorded,
            approvals: Vec::new(),
            requested: Vec::new(),
            changed: Vec::new(),
            model_calls,
            tool_calls_started,
            stored: Vec::new(),
        }
    }

    /// Passes an event to the run. If the graph rejects the event, the run ends with a failure.
    pub(crate) fn apply(&mut self, recorded: RecordedEvent) {
        let handled = self.run.handle_event(recorded.event.clone());
        self.recorded.push(recorded);
        if let Err(error) = handled {
            // An event that the graph rejected is not recorded, because the journal could not be replayed with it.
            self.recorded.pop();
            self.stop(Failure::new("graph_failed", error.to_string()));
        }
    }

    pub(crate) fn stop(&mut self, failure: Failure) {
        let event = Event::Stopped { failure };
        // Stopping a run cannot fail.
        drop(self.run.handle_event(event.clone()));
        self.recorded.push(RecordedEvent::of(event, 0));
    }

    pub(crate) fn approval(&self, request: RequestId) -> Option<&Approval> {
        self.approvals.iter().map(|approval| &approval.value).find(|approval| approval.request == request.0)
    }

    pub(crate) fn set_approval(&mut self, request: RequestId, state: ApprovalState) {
        let found = self.approvals.iter_mut().find(|approval| approval.value.request == request.0);
        if let Some(Versioned { value, .. }) = found.filter(|approval| approval.value.state != state) {
            value.state = state;
            self.changed.push(value.id.clone());
        }
    }

    /// Marks the requested approvals to be stored by the next commit. Returns whether there were any.
    pub(crate) fn take_requested_approvals(&mut self) -> bool {
        let requested = std::mem::take(&mut self.requested);
        self.changed.extend(requested.iter().map(|approval| approval.id.clone()));
        let has_requested = !requested.is_empty();
        self.approvals.extend(requested.into_iter().map(|value| Versioned { value, version: TaggedNumber::default() }));
        has_requested
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.written_count < self.recorded.len()
    }

    /// Commits unwritten events and changed approvals, and extends the driver's lease.
    pub(crate) async fn write(&mut self, memory: &Memory, access: &ThreadAccess, sync: JournalSync) -> Result<()> {
        self.record.lease_until = lease_until(memory);
        let batch = self.add_to_journal(self.require_lock(memory.batch()))?;
        let batch = self.put_approvals(batch, memory)?;
        let batch = lock::renew(batch, &self.record)?;
        let batch = if sync == JournalSync::Now { batch } else { batch.deferred() };
        self.version = self.commit(batch, access).await?.tagged();
        Ok(())
    }

    /// Adds the precondition that this driver still holds the lock, so that no other driver has taken over the run.
    pub(crate) fn require_lock(&self, batch: BatchBuilder) -> BatchBuilder {
        batch.require(record::active_name(), RecordState::Version(self.version))
    }

    /// Adds a write that appends the unwritten events to the journal.
    pub(crate) fn add_to_journal(&mut self, batch: BatchBuilder) -> Result<BatchBuilder> {
        if !self.has_unwritten() {
            return Ok(batch);
        }
        if self.record.entries < MAX_ENTRIES {
            self.record.entries += 1;
            self.last_entry_start = self.written_count;
        }
        self.written_count = self.recorded.len();
        let name = record::entry_name(&self.record.turn, self.record.entries);
        let value = JsonText::of(&self.recorded[self.last_entry_start..])?;
        Ok(batch.put(PutRecord { name, value, expires_at: None }))
    }

    /// Adds writes of the changed approvals, with the precondition that their stored versions are unchanged.
    pub(crate) fn put_approvals(&self, mut batch: BatchBuilder, memory: &Memory) -> Result<BatchBuilder> {
        let is_changed = |approval: &&Versioned<Approval>| self.changed.contains(&approval.value.id);
        for Versioned { value, version } in self.approvals.iter().filter(is_changed) {
            let state = if version.number == 0 { RecordState::Absent } else { RecordState::Version(*version) };
            batch = batch.require(record::approval_name(&value.id), state).put(value.record(memory.now())?);
        }
        Ok(batch)
    }

    /// Moves the user's message from the record to the messages of the next commit, unless it is already stored.
    pub(crate) fn add_pending_question(&mut self, drafts: Vec<Draft>, is_answer: bool) -> Vec<Draft> {
        let drafts = self.record.with_question(drafts, is_answer);
        self.record.pending_question = None;
        drafts
    }

    /// Adds messages of this turn, with ids derived from the turn.
    pub(crate) fn append(&mut self, mut batch: BatchBuilder, drafts: &[Draft]) -> BatchBuilder {
        for draft in drafts {
            let id = record::message_id(&self.record.turn, self.record.started_at, self.record.messages);
            self.record.messages += 1;
            batch = batch.append(self.record.mark_if_ephemeral(draft.clone()).with_id(id));
        }
        batch
    }

    /// Commits a batch. Returns [`AgentError::Superseded`] if another driver has taken over the run.
    pub(crate) async fn commit(&mut self, batch: BatchBuilder, access: &ThreadAccess) -> Result<Appended> {
        let committed = batch.commit(&access.writer, access.thread).await;
        let committed = committed.map_err(|error| match record::is_run_conflict(&error) {
            true => AgentError::Superseded { turn: self.record.turn.clone() },
            false => error.into(),
        })?;
        let changed = std::mem::take(&mut self.changed);
        for approval in self.approvals.iter_mut().filter(|approval| changed.contains(&approval.value.id)) {
            approval.version = committed.tagged();
        }
        Ok(committed)
    }

    pub(crate) fn usage(&self) -> TurnUsage {
        let embedding_calls = self.recorded.iter().map(|recorded| recorded.embedding_calls).sum::<u64>();
        TurnUsage::of(model_answers(&self.recorded), self.record.embedding_calls + embedding_calls)
    }

    /// Returns the tool calls that were made or refused, in the order of their requests.
    pub(crate) fn tool_calls(&self) -> Vec<ToolCallTrace> {
        let mut calls: Vec<_> =
            self.recorded.iter().filter_map(|recorded| Some((recorded.request()?, recorded))).collect();
        calls.sort_by_key(|(request, _)| *request);
        calls.into_iter().filter_map(|(_, recorded)| recorded.tool_trace()).collect()
    }

    /// Returns the name of the model that answered last.
    pub(crate) fn model(&self) -> String {
        model_answers(&self.recorded).last().map_or_else(|| self.record.model.clone(), |answer| answer.model.clone())
    }

    /// Returns the latest result of a call.
    pub(crate) fn result_of(&self, call_id: &str) -> Option<&RecordedEvent> {
        let is_result =
            |recorded: &&RecordedEvent| recorded.tool_outcome().is_some_and(|outcome| outcome.call_id == call_id);
        self.recorded.iter().rev().find(is_result)
    }
}

pub(crate) fn model_answers(recorded: &[RecordedEvent]) -> impl Iterator<Item = &ChatAnswer> {
    recorded.iter().filter_map(|recorded| match &recorded.event {
        Event::Finished { outcome: Outcome::Answer(answer), .. } => Some(answer),
        _ => None,
    })
}
