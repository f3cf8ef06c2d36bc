//! Drawing a graph: nodes, edges, branches, an end.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatMessage, Map};

use crate::{Failure, GraphError, Journal, Node, Output, Result, Run, State};

/// Where every run begins.
pub const START: &str = "START";
/// Where a path ends. A run is over when all its paths have.
pub const END: &str = "END";
/// Steps after which a run fails unless the graph says otherwise.
const STEPS: u32 = 25;

/// What a run begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// What is asked.
    pub question: String,
    /// What else the graph is given, such as where the user is.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub given: Map,
}

impl Input {
    /// Makes an input of a question.
    #[must_use]
    pub fn question(question: impl Into<String>) -> Self {
        Self { question: question.into(), given: Map::new() }
    }
}

/// An assistant's graph over a state. Cheap to clone.
///
/// A run goes in steps. In each, all nodes at which it stands ask at once, on the same state; when all is answered,
/// their updates are applied in the order in which the nodes were declared, and the edges say where the run stands next.
/// A node that several edges lead to at once runs once.
pub struct Graph<S: State> {
    pub(crate) inner: Arc<Inner<S>>,
}

type Begin<S> = Box<dyn Fn(&Input) -> S + Send + Sync>;
type Said<S> = Box<dyn Fn(&S) -> &[ChatMessage] + Send + Sync>;

pub(crate) struct Inner<S: State> {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) steps: u32,
    pub(crate) begin: Begin<S>,
    pub(crate) nodes: Vec<(&'static str, Node<S>)>,
    pub(crate) edges: Vec<Edge<S>>,
    pub(crate) said: Said<S>,
    pub(crate) finish: Box<dyn Fn(&S) -> Output + Send + Sync>,
}

type Choose<S> = Box<dyn Fn(&S) -> Vec<&'static str> + Send + Sync>;

pub(crate) struct Edge<S> {
    pub(crate) from: &'static str,
    pub(crate) to: Vec<&'static str>,
    /// Chooses among `to`; all of them where there is none.
    pub(crate) choose: Option<Choose<S>>,
}

impl<S: State> Graph<S> {
    /// Begins a drawing. Ends with [`GraphBuilder::finish`].
    ///
    /// A journal names graph and version: change the version with every change of nodes, edges or what a node asks for.
    pub fn draw(
        name: &'static str,
        version: u32,
        begin: impl Fn(&Input) -> S + Send + Sync + 'static,
    ) -> GraphBuilder<S> {
        let begin = Box::new(begin);
        let (nodes, edges) = (Vec::new(), Vec::new());
        GraphBuilder { name, version, steps: STEPS, begin, nodes, edges, said: Box::new(|_| &[]) }
    }

    /// The graph's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// The graph's version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.inner.version
    }

    /// Begins a run.
    ///
    /// # Errors
    /// `CannotAsk` where the first node cannot write down what it asks for.
    pub fn start(&self, input: &Input) -> Result<Run<S>> {
        Run::start(self.clone(), input)
    }

    /// Rebuilds a run from what it began with and what happened to it. Only what is outstanding is asked for.
    ///
    /// # Errors
    /// `OtherGraph`, `UnknownVersion`, and those of [`Run::handle_event`].
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

/// A graph that is being drawn.
pub struct GraphBuilder<S: State> {
    name: &'static str,
    version: u32,
    steps: u32,
    begin: Begin<S>,
    nodes: Vec<(&'static str, Node<S>)>,
    edges: Vec<Edge<S>>,
    said: Said<S>,
}

impl<S: State> GraphBuilder<S> {
    /// Adds a node.
    #[must_use]
    pub fn node(mut self, name: &'static str, node: Node<S>) -> Self {
        self.nodes.push((name, node));
        self
    }

    /// Goes from one node to another. Several edges from one node are branches that run at once.
    #[must_use]
    pub fn edge(mut self, from: &'static str, to: &'static str) -> Self {
        self.edges.push(Edge { from, to: vec![to], choose: None });
        self
    }

    /// Goes from a node to the one of `to` that `choose` names.
    #[must_use]
    pub fn branch<const N: usize>(
        self,
        from: &'static str,
        to: [&'static str; N],
        choose: impl Fn(&S) -> &'static str + Send + Sync + 'static,
    ) -> Self {
        self.fan_out(from, to, move |state| vec![choose(state)])
    }

    /// Goes from a node to all those of `to` that `choose` names, at once.
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

    /// Fails a run that takes more steps than these. Default: 25.
    #[must_use]
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Says which messages of the state belong to the conversation: they are stored in their order, and only grow.
    #[must_use]
    pub fn said(mut self, said: impl Fn(&S) -> &[ChatMessage] + Send + Sync + 'static) -> Self {
        self.said = Box::new(said);
        self
    }

    /// Ends the drawing with what a run ends with.
    ///
    /// # Errors
    /// `Invalid` for a node that is named twice, that no edge reaches or leaves, and for an edge to or from nowhere.
    pub fn finish(self, finish: impl Fn(&S) -> Output + Send + Sync + 'static) -> Result<Graph<S>> {
        let Self { name, version, steps, begin, nodes, edges, said } = self;
        let inner = Inner { name, version, steps, begin, nodes, edges, said, finish: Box::new(finish) };
        inner.check().map_err(|reason| GraphError::Invalid { graph: name.to_owned(), reason })?;
        Ok(Graph { inner: Arc::new(inner) })
    }
}

impl<S: State> std::fmt::Debug for GraphBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphBuilder").field("name", &self.name).field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl<S: State> Inner<S> {
    /// Where a run stands after a node, or at its beginning.
    pub(crate) fn next(&self, from: &'static str, state: &S) -> Result<Vec<&'static str>, Failure> {
        let mut next = Vec::new();
        for edge in self.edges.iter().filter(|edge| edge.from == from) {
            match &edge.choose {
                None => next.extend(&edge.to),
                Some(choose) => {
                    for chosen in choose(state) {
                        if !edge.to.contains(&chosen) {
                            let text = format!("the branch after {from} names {chosen}, to which it does not lead");
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
                return Err(format!("node {name} is named twice"));
            }
        }
        if self.steps == 0 {
            return Err("it may take no step".to_owned());
        }
        for Edge { from, to, .. } in &self.edges {
            if *from != START && !names.contains(from) {
                return Err(format!("an edge leaves {from}, which is no node"));
            }
            if let Some(nowhere) = to.iter().find(|to| **to != END && !names.contains(*to)) {
                return Err(format!("an edge leads to {nowhere}, which is no node"));
            }
        }
        if let Some(dead) = names.iter().find(|name| !self.edges.iter().any(|edge| edge.from == **name)) {
            return Err(format!("no edge leaves {dead}"));
        }
        let reached = self.reached();
        if reached.is_empty() {
            return Err("no edge leaves START".to_owned());
        }
        match names.iter().find(|name| !reached.contains(*name)) {
            Some(lost) => Err(format!("no path from START leads to {lost}")),
            None => Ok(()),
        }
    }

    fn reached(&self) -> BTreeSet<&'static str> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![START];
        while let Some(from) = waiting.pop() {
            for to in self.edges.iter().filter(|edge| edge.from == from).flat_map(|edge| &edge.to) {
                if reached.insert(*to) {
                    waiting.push(to);
                }
            }
        }
        reached
    }
}
