//! Runs: the execution of a graph for one question.

use std::collections::BTreeMap;

use threadkeep_core::{ChatAnswer, ChatMessage, JsonText};

use crate::node::Request;
use crate::{
    Decision, Effect, Event, Failure, Graph, GraphError, Input, Outcome, OutcomeKind, Output, RequestId, Result, State,
    ToolOutcome,
};

/// The execution of a graph for one question.
///
/// A run performs no I/O: [`Run::take_effects`] returns the requested work, and the `handle_…` methods receive the
/// outcomes.
pub struct Run<S: State> {
    graph: Graph<S>,
    state: S,
    step_count: u32,
    next_request: u32,
    /// The active nodes, in declaration order.
    active: Vec<ActiveNode>,
    /// Effects that have neither been taken nor answered.
    effects: BTreeMap<RequestId, Effect>,
    end: Option<Result<Output, Failure>>,
    is_end_taken: bool,
}

/// An active node and its requests.
struct ActiveNode {
    node: usize,
    requests: Vec<PendingRequest>,
}

struct PendingRequest {
    id: RequestId,
    kind: OutcomeKind,
    outcome: Option<Outcome>,
}

impl<S: State> Run<S> {
    pub(crate) fn start(graph: Graph<S>, input: &Input) -> Result<Self> {
        let state = (graph.inner.begin)(input);
        let mut run = Self {
            graph,
            state,
            step_count: 0,
            next_request: 0,
            active: Vec::new(),
            effects: BTreeMap::new(),
            end: None,
            is_end_taken: false,
        };
        run.advance_from(&[crate::START])?;
        Ok(run)
    }

    /// Returns the new effects, in the order of the requests. Each effect is returned once.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = std::mem::take(&mut self.effects).into_values().collect();
        if let Some(end) = &self.end
            && !std::mem::replace(&mut self.is_end_taken, true)
        {
            effects.push(Effect::Finish(end.clone()));
        }
        effects
    }

    /// Applies an event. The resulting state does not depend on the order in which outcomes arrive.
    ///
    /// # Errors
    /// `NotOutstanding` or `UnexpectedOutcome` if the run is not waiting for this outcome; the run is then unchanged. `RequestEncoding`
    /// if the next node cannot encode the input of its request.
    pub fn handle_event(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Finished { request, outcome } => self.handle_outcome(request, outcome),
            Event::Stopped { failure } => {
                self.handle_stop(failure);
                Ok(())
            }
        }
    }

    /// Applies a model's answer.
    ///
    /// # Errors
    /// See [`Run::handle_event`].
    pub fn handle_answer(&mut self, request: RequestId, answer: ChatAnswer) -> Result<()> {
        self.handle_outcome(request, Outcome::Answer(answer))
    }

    /// Applies a tool's result.
    ///
    /// # Errors
    /// See [`Run::handle_event`].
    pub fn handle_tool(&mut self, request: RequestId, outcome: ToolOutcome) -> Result<()> {
        self.handle_outcome(request, Outcome::Tool(outcome))
    }

    /// Applies an activity's output.
    ///
    /// # Errors
    /// See [`Run::handle_event`].
    pub fn handle_activity(&mut self, request: RequestId, output: JsonText) -> Result<()> {
        self.handle_outcome(request, Outcome::Activity(output))
    }

    /// Applies a person's decision.
    ///
    /// # Errors
    /// See [`Run::handle_event`].
    pub fn handle_decision(&mut self, request: RequestId, decision: Decision) -> Result<()> {
        self.handle_outcome(request, Outcome::Decision(decision))
    }

    /// Applies the failure of a request.
    ///
    /// # Errors
    /// See [`Run::handle_event`].
    pub fn handle_failure(&mut self, request: RequestId, failure: Failure) -> Result<()> {
        self.handle_outcome(request, Outcome::Failed(failure))
    }

    /// Ends the run with a failure and discards outstanding requests. Has no effect on a run that has ended.
    pub fn handle_stop(&mut self, failure: Failure) {
        if self.end.is_none() {
            self.end(Err(failure));
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns the messages that this run has added to the conversation so far.
    #[must_use]
    pub fn messages(&self) -> &[ChatMessage] {
        (self.graph.inner.messages)(&self.state)
    }

    /// Returns the output of a run that succeeded.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.end.as_ref().and_then(|end| end.as_ref().ok())
    }

    /// Returns the failure of a run that failed.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.end.as_ref().and_then(|end| end.as_ref().err())
    }

    /// Returns the outstanding requests, in the order they were made.
    pub fn outstanding(&self) -> impl Iterator<Item = RequestId> {
        let pending = self.active.iter().flat_map(|active| &active.requests);
        pending.filter(|pending| pending.outcome.is_none()).map(|pending| pending.id)
    }

    fn handle_outcome(&mut self, request: RequestId, outcome: Outcome) -> Result<()> {
        let waiting = self.active.iter_mut().flat_map(|active| &mut active.requests);
        let pending = waiting.into_iter().find(|pending| pending.id == request && pending.outcome.is_none());
        let pending = pending.ok_or(GraphError::NotOutstanding { request })?;
        let actual = outcome.kind();
        if actual != pending.kind && actual != OutcomeKind::Failure {
            return Err(GraphError::UnexpectedOutcome { request, expected: pending.kind, actual });
        }
        pending.outcome = Some(outcome);
        self.effects.remove(&request);
        if self.outstanding().next().is_some() {
            return Ok(());
        }
        let from = self.apply_updates();
        if self.end.is_some() { Ok(()) } else { self.advance_from(&from) }
    }

    /// Applies the updates of all nodes of this step and returns the nodes' names.
    fn apply_updates(&mut self) -> Vec<&'static str> {
        let before = self.state.clone();
        let mut first_failure = None;
        let mut from = Vec::new();
        for active in std::mem::take(&mut self.active) {
            let (name, node) = &self.graph.inner.nodes[active.node];
            let outcomes = active.requests.into_iter().filter_map(|pending| pending.outcome).collect();
            match node.update_for(&before, outcomes) {
                Ok(update) => self.state.apply(update),
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
            from.push(*name);
        }
        if let Some(failure) = first_failure {
            self.end(Err(failure));
        }
        from
    }

    /// Advances until a request is outstanding or the run has ended.
    fn advance_from(&mut self, from: &[&'static str]) -> Result<()> {
        let mut from = from.to_vec();
        while let Some(nodes) = self.next_nodes(&from) {
            self.step_count += 1;
            if self.step_count > self.graph.inner.max_steps {
                let limit = self.graph.inner.max_steps;
                self.end(Err(Failure::new("too_many_steps", format!("the run took more than {limit} steps"))));
                return Ok(());
            }
            self.activate(&nodes)?;
            if self.outstanding().next().is_some() {
                return Ok(());
            }
            from = self.apply_updates();
            if self.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the indexes of the next nodes, in declaration order. If there are none, ends the run and returns `None`.
    fn next_nodes(&mut self, from: &[&'static str]) -> Option<Vec<usize>> {
        let mut reached = Vec::new();
        for name in from {
            match self.graph.inner.next(name, &self.state) {
                Ok(next) => reached.extend(next),
                Err(failure) => {
                    self.end(Err(failure));
                    return None;
                }
            }
        }
        let all = self.graph.inner.nodes.iter().enumerate();
        let nodes: Vec<usize> = all.filter(|(_, (name, _))| reached.contains(name)).map(|(index, _)| index).collect();
        if nodes.is_empty() {
            self.end(Ok((self.graph.inner.finish)(&self.state)));
            return None;
        }
        Some(nodes)
    }

    fn activate(&mut self, nodes: &[usize]) -> Result<()> {
        for index in nodes {
            let (name, node) = &self.graph.inner.nodes[*index];
            let requests = (node.ask)(&self.state)
                .map_err(|failure| GraphError::RequestEncoding { node: (*name).to_owned(), failure })?;
            let mut active = ActiveNode { node: *index, requests: Vec::with_capacity(requests.len()) };
            for request in requests {
                let id = RequestId(self.next_request);
                self.next_request += 1;
                active.requests.push(PendingRequest { id, kind: request.outcome_kind(), outcome: None });
                self.effects.insert(id, create_effect(id, name, request));
            }
            self.active.push(active);
        }
        Ok(())
    }

    fn end(&mut self, end: Result<Output, Failure>) {
        self.active.clear();
        self.effects.clear();
        self.end = Some(end);
    }
}

impl<S: State> std::fmt::Debug for Run<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("graph", &self.graph)
            .field("state", &self.state)
            .field("steps", &self.step_count)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

fn create_effect(id: RequestId, node: &'static str, request: Request) -> Effect {
    match request {
        Request::Model(model_request) => Effect::CallModel { request: id, node, model_request },
        Request::Tool(call) => Effect::CallTool { request: id, node, call },
        Request::Activity { name, input } => Effect::RunActivity { request: id, node, name, input },
        Request::Approval { question, input } => Effect::RequestApproval { request: id, node, question, input },
    }
}
