//! Graphs, and how they are declared with nodes, edges and branches.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatMessage, Map};

use crate::{Failure, GraphError, Journal, Node, Output, Result, Run, State};

/// The name of the point where every run starts.
pub const START: &str = "START";
/// The name of the point where a path ends. A run ends when all its paths have ended.
pub const END: &str = "END";
/// The default maximum number of steps per run.
const DEFAULT_MAX_STEPS: u32 = 25;

/// The input of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The user's question.
    pub question: String,
    /// Further input, such as the user's location.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[serde(rename = "given")]
    pub extra_input: Map,
}

impl Input {
    /// Creates an input with only a question.
    #[must_use]
    pub fn question(question: impl Into<String>) -> Self {
        Self { question: question.into(), extra_input: Map::new() }
    }
}

/// A graph whose runs have a state of type `S`. Cheap to clone.
///
/// A run proceeds in steps. In each step, all active nodes make their requests concurrently, from the same state. When
/// every request is answered, the nodes' updates are applied in declaration order, and the edges determine the next active
/// nodes. A node that several edges reach in one step runs once.
pub struct Graph<S: State> {
    pub(crate) inner: Arc<GraphInner<S>>,
}

type InitialStateFn<S> = Box<dyn Fn(&Input) -> S + Send + Sync>;
type MessagesFn<S> = Box<dyn Fn(&S) -> &[ChatMessage] + Send + Sync>;

pub(crate) struct GraphInner<S: State> {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) max_steps: u32,
    pub(crate) begin: InitialStateFn<S>,
    pub(crate) nodes: Vec<(&'static str, Node<S>)>,
    pub(crate) edges: Vec<Edge<S>>,
    pub(crate) messages: MessagesFn<S>,
    pub(crate) finish: Box<dyn Fn(&S) -> Output + Send + Sync>,
}

type ChooseFn<S> = Box<dyn Fn(&S) -> Vec<&'static str> + Send + Sync>;

pub(crate) struct Edge<S> {
    pub(crate) from: &'static str,
    pub(crate) to: Vec<&'static str>,
    /// Chooses among `to`; `None` for all of them.
    pub(crate) choose: Option<ChooseFn<S>>,
}

impl<S: State> Graph<S> {
    /// Starts the declaration of a graph; [`GraphBuilder::finish`] completes it. `begin` creates the initial state.
    ///
    /// Journals contain the graph's name and version. Change the version with every change of nodes, edges or requests.
    pub fn builder(
        name: &'static str,
        version: u32,
        begin: impl Fn(&Input) -> S + Send + Sync + 'static,
    ) -> GraphBuilder<S> {
        let begin = Box::new(begin);
        let (nodes, edges) = (Vec::new(), Vec::new());
        GraphBuilder { name, version, max_steps: DEFAULT_MAX_STEPS, begin, nodes, edges, messages: Box::new(|_| &[]) }
    }

    /// Returns the graph's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Returns the graph's version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.inner.version
    }

    /// Starts a run.
    ///
    /// # Errors
    /// `RequestEncoding` if a node cannot encode the input of its request.
    pub fn start(&self, input: &Input) -> Result<Run<S>> {
        Run::start(self.clone(), input)
    }

    /// Rebuilds a run from its input and events. Its effects are only the outstanding requests.
    ///
    /// # Errors
    /// `GraphMismatch` or `UnknownVersion` if another graph or version wrote the journal; the errors of [`Run::handle_event`] if the
    /// events do not match the graph.
    pub fn replay(&self, input: &Input, journal: &Journal) -> Result<Run<S>> {
        journal.check(self.name(), self.version())?;
        let mut run = self.start(input)?;
        for event in &journal.events {
            run.handle_event(event.clone())?;
        }
        Ok(run)
    }
}

impl<S: State> Clone for Graph<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: State> std::fmt::Debug for Graph<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("name", &self.name()).field("version", &self.version()).finish_non_exhaustive()
    }
}

/// Builds a [`Graph`].
pub struct GraphBuilder<S: State> {
    name: &'static str,
    version: u32,
    max_steps: u32,
    begin: InitialStateFn<S>,
    nodes: Vec<(&'static str, Node<S>)>,
    edges: Vec<Edge<S>>,
    messages: MessagesFn<S>,
}

impl<S: State> GraphBuilder<S> {
    /// Adds a node.
    #[must_use]
    pub fn node(mut self, name: &'static str, node: Node<S>) -> Self {
        self.nodes.push((name, node));
        self
    }

    /// Adds an edge. If several edges start at one node, their targets run in parallel.
    #[must_use]
    pub fn edge(mut self, from: &'static str, to: &'static str) -> Self {
        self.edges.push(Edge { from, to: vec![to], choose: None });
        self
    }

    /// Adds a branch: `choose` returns the next node, which must be in `to`.
    #[must_use]
    pub fn branch<const N: usize>(
        self,
        from: &'static str,
        to: [&'static str; N],
        choose: impl Fn(&S) -> &'static str + Send + Sync + 'static,
    ) -> Self {
        self.fan_out(from, to, move |state| vec![choose(state)])
    }

    /// Adds a branch with several targets: `choose` returns the next nodes, which run in parallel and must be in `to`.
    #[must_use]
    pub fn fan_out<const N: usize>(
        mut self,
        from: &'static str,
        to: [&'static str; N],
        choose: impl Fn(&S) -> Vec<&'static str> + Send + Sync + 'static,
    ) -> Self {
        self.edges.push(Edge { from, to: to.to_vec(), choose: Some(Box::new(choose)) });
        self
    }

    /// Sets the maximum number of steps. A run that takes more steps fails. Default: 25.
    #[must_use]
    pub fn max_steps(mut self, max_steps: u32) -> Self {
        self.max_steps = max_steps;
        self
    }

    /// Selects the messages of the state that belong to the conversation. They are stored in order; the list must only
    /// grow.
    #[must_use]
    pub fn messages(mut self, messages: impl Fn(&S) -> &[ChatMessage] + Send + Sync + 'static) -> Self {
        self.messages = Box::new(messages);
        self
    }

    /// Completes the graph. `finish` creates the output from the final state.
    ///
    /// # Errors
    /// `Invalid` if a node name is duplicated, reserved or unknown, a node is unreachable or has no outgoing edge, or the maximum number
    /// of steps is 0.
    pub fn finish(self, finish: impl Fn(&S) -> Output + Send + Sync + 'static) -> Result<Graph<S>> {
        let Self { name, version, max_steps, begin, nodes, edges, messages } = self;
        let inner = GraphInner { name, version, max_steps, begin, nodes, edges, messages, finish: Box::new(finish) };
        inner.check().map_err(|reason| GraphError::Invalid { graph: name.to_owned(), reason })?;
        Ok(Graph { inner: Arc::new(inner) })
    }
}

impl<S: State> std::fmt::Debug for GraphBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphBuilder").field("name", &self.name).field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl<S: State> GraphInner<S> {
    /// Returns the nodes that follow the node `from`, which may be START.
    pub(crate) fn next(&self, from: &'static str, state: &S) -> Result<Vec<&'static str>, Failure> {
        let mut next = Vec::new();
        for edge in self.edges.iter().filter(|edge| edge.from == from) {
            match &edge.choose {
                None => next.extend(&edge.to),
                Some(choose) => {
                    for chosen in choose(state) {
                        if !edge.to.contains(&chosen) {
                            let text =
                                format!("the branch after {from} chose {chosen}, which is not one of its targets");
                            return Err(Failure::new("invalid_graph", text));
                        }
                        next.push(chosen);
                    }
                }
            }
        }
        Ok(next)
    }

    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for (name, _) in &self.nodes {
            if [START, END].contains(name) || !names.insert(*name) {
                return Err(format!("the node name {name} is reserved or already used"));
            }
        }
        if self.max_steps == 0 {
            return Err("max_steps is 0; allow at least 1 step".to_owned());
        }
        for Edge { from, to, .. } in &self.edges {
            if *from != START && !names.contains(from) {
                return Err(format!("an edge starts at unknown node {from}"));
            }
            if let Some(unknown) = to.iter().find(|to| **to != END && !names.contains(*to)) {
                return Err(format!("an edge leads to unknown node {unknown}"));
            }
        }
        if let Some(dead_end) = names.iter().find(|name| !self.edges.iter().any(|edge| edge.from == **name)) {
            return Err(format!("node {dead_end} has no outgoing edge"));
        }
        let reachable = self.reachable_nodes();
        if reachable.is_empty() {
            return Err("START has no outgoing edge".to_owned());
        }
        match names.iter().find(|name| !reachable.contains(*name)) {
            Some(unreachable) => Err(format!("node {unreachable} is not reachable from START")),
            None => Ok(()),
        }
    }

    fn reachable_nodes(&self) -> BTreeSet<&'static str> {
        let mut reachable = BTreeSet::new();
        let mut waiting = vec![START];
        while let Some(from) = waiting.pop() {
            for to in self.edges.iter().filter(|edge| edge.from == from).flat_map(|edge| &edge.to) {
                if reachable.insert(*to) {
                    waiting.push(to);
                }
            }
        }
        reachable
    }
}
