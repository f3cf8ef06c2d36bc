//! Nodes: which requests they make, and how they derive state updates from the outcomes.

use std::sync::Arc;

use threadkeep_core::{ChatAnswer, JsonText, StoreError, ToolCall};

use crate::{Decision, Failure, ModelRequest, Outcome, OutcomeKind, State, ToolOutcome};

type AskFn<S> = Arc<dyn Fn(&S) -> Result<Vec<Request>, Failure> + Send + Sync>;
type TakeFn<S> = Arc<dyn Fn(&S, Vec<Outcome>) -> <S as State>::Update + Send + Sync>;
type RecoverFn<S> = Arc<dyn Fn(&S, &Failure) -> <S as State>::Update + Send + Sync>;

/// A request that a node makes.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Model(Box<ModelRequest>),
    Tool(ToolCall),
    Activity { name: &'static str, input: JsonText },
    Approval { question: String, input: JsonText },
}

impl Request {
    /// Returns the kind of outcome that answers the request.
    pub(crate) const fn outcome_kind(&self) -> OutcomeKind {
        match self {
            Self::Model(_) => OutcomeKind::Answer,
            Self::Tool(_) => OutcomeKind::Tool,
            Self::Activity { .. } => OutcomeKind::Activity,
            Self::Approval { .. } => OutcomeKind::Decision,
        }
    }
}

/// A node: a pure function that computes requests from the state (`ask`), and a pure function that derives a state update from
/// their outcomes (`take`).
///
/// A failed request ends the run unless [`Node::or_else`] handles it.
pub struct Node<S: State> {
    pub(crate) kind: NodeKind,
    pub(crate) ask: AskFn<S>,
    pub(crate) take: TakeFn<S>,
    pub(crate) recover: Option<RecoverFn<S>>,
}

/// The kind of a node, which determines its shape in diagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Pure,
    Model,
    Tools,
    Activity,
    Approval,
}

impl<S: State> Node<S> {
    /// Creates a node that makes no requests and only computes an update.
    pub fn pure(compute: impl Fn(&S) -> S::Update + Send + Sync + 'static) -> Self {
        Self::build(NodeKind::Pure, |_| Ok(Vec::new()), move |state, _| compute(state))
    }

    /// Creates a node that calls a model.
    pub fn model(
        ask: impl Fn(&S) -> ModelRequest + Send + Sync + 'static,
        take: impl Fn(&S, ChatAnswer) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        Self::models(
            move |state| vec![ask(state)],
            move |state, answers| answers.into_iter().next().map(|answer| take(state, answer)).unwrap_or_default(),
        )
    }

    /// Creates a node that calls models concurrently. Answers are passed in the order of the requests.
    pub fn models(
        ask: impl Fn(&S) -> Vec<ModelRequest> + Send + Sync + 'static,
        take: impl Fn(&S, Vec<ChatAnswer>) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        let ask =
            move |state: &S| Ok(ask(state).into_iter().map(|request| Request::Model(Box::new(request))).collect());
        let answer = |outcome| if let Outcome::Answer(answer) = outcome { Some(answer) } else { None };
        Self::build(NodeKind::Model, ask, move |state, outcomes| {
            take(state, outcomes.into_iter().filter_map(answer).collect())
        })
    }

    /// Creates a node that calls tools concurrently. Results are passed in the order of the calls.
    pub fn tools(
        ask: impl Fn(&S) -> Vec<ToolCall> + Send + Sync + 'static,
        take: impl Fn(&S, Vec<ToolOutcome>) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        let ask = move |state: &S| Ok(ask(state).into_iter().map(Request::Tool).collect());
        let result = |outcome| if let Outcome::Tool(result) = outcome { Some(result) } else { None };
        Self::build(NodeKind::Tools, ask, move |state, outcomes| {
            take(state, outcomes.into_iter().filter_map(result).collect())
        })
    }

    /// Creates a node that runs the activity `name` with an input computed from the state.
    pub fn activity(
        name: &'static str,
        input: impl Fn(&S) -> Result<JsonText, StoreError> + Send + Sync + 'static,
        take: impl Fn(&S, JsonText) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        let ask = move |state: &S| Ok(vec![Request::Activity { name, input: input(state)? }]);
        Self::build(NodeKind::Activity, ask, move |state, outcomes| match outcomes.into_iter().next() {
            Some(Outcome::Activity(output)) => take(state, output),
            _ => S::Update::default(),
        })
    }

    /// Creates a node that asks a person for approval, without a time limit.
    pub fn approval(
        question: impl Fn(&S) -> String + Send + Sync + 'static,
        input: impl Fn(&S) -> Result<JsonText, StoreError> + Send + Sync + 'static,
        take: impl Fn(&S, Decision) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        let ask = move |state: &S| Ok(vec![Request::Approval { question: question(state), input: input(state)? }]);
        Self::build(NodeKind::Approval, ask, move |state, outcomes| match outcomes.into_iter().next() {
            Some(Outcome::Decision(decision)) => take(state, decision),
            _ => S::Update::default(),
        })
    }

    /// Handles failures: if a request of the node fails, the run continues with the update that `recover` returns.
    #[must_use]
    pub fn or_else(mut self, recover: impl Fn(&S, &Failure) -> S::Update + Send + Sync + 'static) -> Self {
        self.recover = Some(Arc::new(recover));
        self
    }

    fn build(
        kind: NodeKind,
        ask: impl Fn(&S) -> Result<Vec<Request>, Failure> + Send + Sync + 'static,
        take: impl Fn(&S, Vec<Outcome>) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        Self { kind, ask: Arc::new(ask), take: Arc::new(take), recover: None }
    }

    /// Returns the node's update for its outcomes, or the first failure if the node does not handle failures.
    pub(crate) fn update_for(&self, state: &S, outcomes: Vec<Outcome>) -> Result<S::Update, Failure> {
        let failure = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        });
        match (failure, &self.recover) {
            (None, _) => Ok((self.take)(state, outcomes)),
            (Some(failure), Some(recover)) => Ok(recover(state, failure)),
            (Some(failure), None) => Err(failure.clone()),
        }
    }
}

impl<S: State> std::fmt::Debug for Node<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("kind", &self.kind).finish_non_exhaustive()
    }
}
