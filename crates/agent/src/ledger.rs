//! A run on its way, with all that is written down of it.

use threadkeep_core::{ChatAnswer, DocumentState, JsonText, PutDocument, Tagged};
use threadkeep_graph::{AnyRun, Event, Failure, Outcome, RequestId};
use threadkeep_memory::turns::{Place, Versioned, lease_until, lock};
use threadkeep_memory::{Appended, BatchBuilder, Draft, Memory};

use crate::record::{self, Recorded, RunRecord};
use crate::{AgentError, Approval, ApprovalState, Result, StoredMessage, ToolCallTrace, TurnUsage};

/// Journal documents of one run, so that the commit which deletes them is within its bounds.
const ENTRIES: u32 = 60;

/// A run, its record and its journal.
pub(crate) struct Ledger {
    pub(crate) run: Box<dyn AnyRun>,
    pub(crate) record: RunRecord,
    /// The version of the run document: what fences this driver.
    pub(crate) version: Tagged,
    pub(crate) recorded: Vec<Recorded>,
    /// How much of `recorded` is in the journal.
    written: usize,
    /// Where in `recorded` the journal's last document begins.
    last_entry: usize,
    /// Approvals of this turn that somebody may have seen.
    pub(crate) approvals: Vec<Versioned<Approval>>,
    /// Approvals that are to be asked for when the run is put away. Until then nobody sees them, and a driver that goes on
    /// with the run asks anew.
    pub(crate) requested: Vec<Approval>,
    /// Approvals that changed since they were written.
    pub(crate) changed: Vec<String>,
    /// Calls of models that were begun, answered or not.
    pub(crate) model_calls: u64,
    /// Calls of tools that were begun, done or not.
    pub(crate) tools_begun: u64,
    /// The messages of this turn that are in the thread.
    pub(crate) stored: Vec<StoredMessage>,
}

impl Ledger {
    pub(crate) fn new(run: Box<dyn AnyRun>, record: Versioned<RunRecord>, recorded: Vec<Recorded>) -> Self {
        let model_calls = answers(&recorded).count() as u64;
        let tools_begun = recorded.iter().filter(|recorded| recorded.call.is_some()).count() as u64;
        Self {
            run,
            record: record.value,
            version: record.version,
            written: recorded.len(),
            last_entry: recorded.len(),
            recorded,
            approvals: Vec::new(),
            requested: Vec::new(),
            changed: Vec::new(),
            model_calls,
            tools_begun,
            stored: Vec::new(),
        }
    }

    /// Tells the run what happened. What the graph cannot take ends the run.
    pub(crate) fn take(&mut self, recorded: Recorded) {
        let told = self.run.handle_event(recorded.event.clone());
        self.recorded.push(recorded);
        if let Err(error) = told {
            // The journal must replay, so what the graph refused is not in it.
            self.recorded.pop();
            self.stop(Failure::new("graph_failed", error.to_string()));
        }
    }

    pub(crate) fn stop(&mut self, failure: Failure) {
        let event = Event::Stopped { failure };
        // Stopping a run cannot fail.
        drop(self.run.handle_event(event.clone()));
        self.recorded.push(Recorded::of(event, 0));
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

    /// Puts what is to be asked for among what is written. Tells whether there was anything.
    pub(crate) fn ask_for_approvals(&mut self) -> bool {
        let requested = std::mem::take(&mut self.requested);
        self.changed.extend(requested.iter().map(|approval| approval.id.clone()));
        let is_any = !requested.is_empty();
        self.approvals.extend(requested.into_iter().map(|value| Versioned { value, version: Tagged::default() }));
        is_any
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.written < self.recorded.len()
    }

    /// Writes what is new to the journal, with a sign of life.
    pub(crate) async fn write(&mut self, memory: &Memory, place: &Place, is_urgent: bool) -> Result<()> {
        self.record.lease_until = lease_until(memory);
        let batch = self.journal(self.fenced(memory.batch()))?;
        let batch = self.put_approvals(batch, memory)?;
        let batch = lock::hold(batch, &self.record)?;
        let batch = if is_urgent { batch } else { batch.deferred() };
        self.version = self.commit(batch, place).await?.tagged();
        Ok(())
    }

    /// Demands that this driver still drives.
    pub(crate) fn fenced(&self, batch: BatchBuilder) -> BatchBuilder {
        batch.require(record::active(), DocumentState::Version(self.version))
    }

    /// Adds what is new to the journal.
    pub(crate) fn journal(&mut self, batch: BatchBuilder) -> Result<BatchBuilder> {
        if !self.has_unwritten() {
            return Ok(batch);
        }
        if self.record.entries < ENTRIES {
            self.record.entries += 1;
            self.last_entry = self.written;
        }
        self.written = self.recorded.len();
        let name = record::entry(&self.record.turn, self.record.entries);
        let value = JsonText::of(&self.recorded[self.last_entry..])?;
        Ok(batch.put(PutDocument { name, value, expires_at: None }))
    }

    /// Adds the approvals that changed. They are checked against what they were.
    pub(crate) fn put_approvals(&self, mut batch: BatchBuilder, memory: &Memory) -> Result<BatchBuilder> {
        let is_changed = |approval: &&Versioned<Approval>| self.changed.contains(&approval.value.id);
        for Versioned { value, version } in self.approvals.iter().filter(is_changed) {
            let state = if version.number == 0 { DocumentState::Absent } else { DocumentState::Version(*version) };
            batch = batch.require(record::approval(&value.id), state).put(value.document(memory.now())?);
        }
        Ok(batch)
    }

    /// Adds messages of this turn, with ids that only this turn gives.
    pub(crate) fn append(&mut self, mut batch: BatchBuilder, drafts: &[Draft]) -> BatchBuilder {
        for draft in drafts {
            let id = record::message_id(&self.record.turn, self.record.started_at, self.record.messages);
            self.record.messages += 1;
            batch = batch.append(self.record.marked(draft.clone()).with_id(id));
        }
        batch
    }

    /// Commits, and tells a driver that was taken over from a store that failed.
    pub(crate) async fn commit(&mut self, batch: BatchBuilder, place: &Place) -> Result<Appended> {
        let committed = batch.commit(&place.writer, place.thread).await;
        let committed = committed.map_err(|error| match record::is_about_runs(&error) {
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
        TurnUsage::of(answers(&self.recorded), self.record.embedding_calls + embedding_calls)
    }

    /// The calls of tools that were made or refused, in the order of their requests.
    pub(crate) fn tool_calls(&self) -> Vec<ToolCallTrace> {
        let mut calls: Vec<_> =
            self.recorded.iter().filter_map(|recorded| Some((recorded.request()?, recorded))).collect();
        calls.sort_by_key(|(request, _)| *request);
        calls.into_iter().filter_map(|(_, recorded)| recorded.tool_trace()).collect()
    }

    /// What spoke last.
    pub(crate) fn model(&self) -> String {
        answers(&self.recorded).last().map_or_else(|| self.record.model.clone(), |answer| answer.model.clone())
    }

    /// The latest result of a call.
    pub(crate) fn result_of(&self, call_id: &str) -> Option<&Recorded> {
        let is_result =
            |recorded: &&Recorded| recorded.tool_outcome().is_some_and(|outcome| outcome.call_id == call_id);
        self.recorded.iter().rev().find(is_result)
    }
}

pub(crate) fn answers(recorded: &[Recorded]) -> impl Iterator<Item = &ChatAnswer> {
    recorded.iter().filter_map(|recorded| match &recorded.event {
        Event::Finished { outcome: Outcome::Answer(answer), .. } => Some(answer),
        _ => None,
    })
}
