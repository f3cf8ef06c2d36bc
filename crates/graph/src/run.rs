//! The machine: a graph on its way from a question to an answer.

use std::collections::BTreeMap;

use threadkeep_core::{ChatAnswer, ChatMessage, JsonText};

use crate::node::Request;
use crate::{
    Decision, Effect, Event, Failure, Graph, GraphError, Input, Outcome, OutcomeKind, Output, RequestId, Result, State,
    ToolOutcome,
};

/// A graph on its way.
///
/// It does nothing by itself: [`Run::take_effects`] says what is to be done, and each `handle_…` tells what came of it.
pub struct Run<S: State> {
    graph: Graph<S>,
    state: S,
    steps: u32,
    next_request: u32,
    /// The nodes at which it stands, in the order of their declaration.
    standing: Vec<Standing>,
    /// What was asked and is not answered, and not taken either.
    effects: BTreeMap<RequestId, Effect>,
    end: Option<Result<Output, Failure>>,
    is_end_taken: bool,
}

/// A node that waits for answers.
struct Standing {
    node: usize,
    requests: Vec<Asked>,
}

struct Asked {
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
            steps: 0,
            next_request: 0,
            standing: Vec::new(),
            effects: BTreeMap::new(),
            end: None,
            is_end_taken: false,
        };
        run.go_on_from(&[crate::START])?;
        Ok(run)
    }

    /// Takes what is to be done, in the order of asking. What was taken once is not given again.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = std::mem::take(&mut self.effects).into_values().collect();
        if let Some(end) = &self.end
            && !std::mem::replace(&mut self.is_end_taken, true)
        {
            effects.push(Effect::Finish(end.clone()));
        }
        effects
    }

    /// Takes what happened. In whatever order answers come, the state that they lead to is the same.
    ///
    /// # Errors
    /// `NotOutstanding` and `WrongOutcome` for what was not asked; nothing has changed then. `CannotAsk` where the next
    /// node cannot write down what it asks for.
    pub fn handle_event(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Finished { request, outcome } => self.handle_outcome(request, outcome),
            Event::Stopped { failure } => {
                self.handle_stop(failure);
                Ok(())
            }
        }
    }

    /// Takes a model's answer.
    ///
    /// # Errors
    /// As [`Run::handle_event`].
    pub fn handle_answer(&mut self, request: RequestId, answer: ChatAnswer) -> Result<()> {
        self.handle_outcome(request, Outcome::Answer(answer))
    }

    /// Takes a tool's result.
    ///
    /// # Errors
    /// As [`Run::handle_event`].
    pub fn handle_tool(&mut self, request: RequestId, outcome: ToolOutcome) -> Result<()> {
        self.handle_outcome(request, Outcome::Tool(outcome))
    }

    /// Takes an activity's output.
    ///
    /// # Errors
    /// As [`Run::handle_event`].
    pub fn handle_activity(&mut self, request: RequestId, output: JsonText) -> Result<()> {
        self.handle_outcome(request, Outcome::Activity(output))
    }

    /// Takes a person's decision.
    ///
    /// # Errors
    /// As [`Run::handle_event`].
    pub fn handle_decision(&mut self, request: RequestId, decision: Decision) -> Result<()> {
        self.handle_outcome(request, Outcome::Decision(decision))
    }

    /// Takes a failure of whatever was asked.
    ///
    /// # Errors
    /// As [`Run::handle_event`].
    pub fn handle_failure(&mut self, request: RequestId, failure: Failure) -> Result<()> {
        self.handle_outcome(request, Outcome::Failed(failure))
    }

    /// Ends the run, whatever is outstanding. One that is over stays as it is.
    pub fn handle_stop(&mut self, failure: Failure) {
        if self.end.is_none() {
            self.end(Err(failure));
        }
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The messages that this run has added to the conversation so far.
    #[must_use]
    pub fn said(&self) -> &[ChatMessage] {
        (self.graph.inner.said)(&self.state)
    }

    /// What it ended with, where it has ended well.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.end.as_ref().and_then(|end| end.as_ref().ok())
    }

    /// Why it failed, where it has.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.end.as_ref().and_then(|end| end.as_ref().err())
    }

    /// The requests that wait for an answer, in the order of asking.
    pub fn outstanding(&self) -> impl Iterator<Item = RequestId> {
        let asked = self.standing.iter().flat_map(|standing| &standing.requests);
        asked.filter(|asked| asked.outcome.is_none()).map(|asked| asked.id)
    }

    fn handle_outcome(&mut self, request: RequestId, outcome: Outcome) -> Result<()> {
        let waiting = self.standing.iter_mut().flat_map(|standing| &mut standing.requests);
        let asked = waiting.into_iter().find(|asked| asked.id == request && asked.outcome.is_none());
        let asked = asked.ok_or(GraphError::NotOutstanding { request })?;
        let given = outcome.kind();
        if given != asked.kind && given != OutcomeKind::Failure {
            return Err(GraphError::WrongOutcome { request, asked: asked.kind, given });
        }
        asked.outcome = Some(outcome);
        self.effects.remove(&request);
        if self.outstanding().next().is_some() {
            return Ok(());
        }
        let from = self.settle();
        if self.end.is_some() { Ok(()) } else { self.go_on_from(&from) }
    }

    /// Applies what all nodes of this step make of their answers, and tells which nodes they were.
    fn settle(&mut self) -> Vec<&'static str> {
        let before = self.state.clone();
        let mut failed = None;
        let mut from = Vec::new();
        for standing in std::mem::take(&mut self.standing) {
            let (name, node) = &self.graph.inner.nodes[standing.node];
            let outcomes = standing.requests.into_iter().filter_map(|asked| asked.outcome).collect();
            match node.settle(&before, outcomes) {
                Ok(update) => self.state.apply(update),
                Err(failure) => failed = failed.or(Some(failure)),
            }
            from.push(*name);
        }
        if let Some(failure) = failed {
            self.end(Err(failure));
        }
        from
    }

    /// Goes on until something is outstanding or the run is over.
    fn go_on_from(&mut self, from: &[&'static str]) -> Result<()> {
        let mut from = from.to_vec();
        while let Some(nodes) = self.next_nodes(&from) {
            self.steps += 1;
            if self.steps > self.graph.inner.steps {
                let bound = self.graph.inner.steps;
                self.end(Err(Failure::new("too_many_steps", format!("the run took more than {bound} steps"))));
                return Ok(());
            }
            self.stand_at(&nodes)?;
            if self.outstanding().next().is_some() {
                return Ok(());
            }
            from = self.settle();
            if self.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The nodes that come next, in the order of their declaration. `None` ends the run.
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

    fn stand_at(&mut self, nodes: &[usize]) -> Result<()> {
        for index in nodes {
            let (name, node) = &self.graph.inner.nodes[*index];
            let requests = (node.ask)(&self.state)
                .map_err(|failure| GraphError::CannotAsk { node: (*name).to_owned(), failure })?;
            let mut standing = Standing { node: *index, requests: Vec::with_capacity(requests.len()) };
            for request in requests {
                let id = RequestId(self.next_request);
                self.next_request += 1;
                standing.requests.push(Asked { id, kind: request.kind(), outcome: None });
                self.effects.insert(id, effect(id, name, request));
            }
            self.standing.push(standing);
        }
        Ok(())
    }

    fn end(&mut self, end: Result<Output, Failure>) {
        self.standing.clear();
        self.effects.clear();
        self.end = Some(end);
    }
}

impl<S: State> std::fmt::Debug for Run<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("graph", &self.graph)
            .field("state", &self.state)
            .field("steps", &self.steps)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

fn effect(request: RequestId, node: &'static str, asked: Request) -> Effect {
    match asked {
        Request::Model(ask) => Effect::CallModel { request, node, ask },
        Request::Tool(call) => Effect::CallTool { request, node, call },
        Request::Activity { name, input } => Effect::RunActivity { request, node, name, input },
        Request::Person { question, input } => Effect::AskPerson { request, node, question, input },
    }
}
