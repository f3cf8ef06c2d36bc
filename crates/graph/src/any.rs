//! Type-erased graphs and runs.

use threadkeep_core::{ChatMessage, Portable};

use crate::{Effect, Event, Graph, Input, Journal, Output, Result, Run, State};

/// A graph with its state type erased, as drivers use it.
pub trait AnyGraph: Portable + std::fmt::Debug {
    /// Returns the graph's name.
    fn name(&self) -> &'static str;
    /// Returns the graph's version.
    fn version(&self) -> u32;
    /// Starts a run. See [`Graph::start`].
    ///
    /// # Errors
    /// See [`Graph::start`].
    fn start_any(&self, input: &Input) -> Result<Box<dyn AnyRun>>;
    /// Rebuilds a run. See [`Graph::replay`].
    ///
    /// # Errors
    /// See [`Graph::replay`].
    fn replay_any(&self, input: &Input, journal: &Journal) -> Result<Box<dyn AnyRun>>;
    /// Renders the graph. See [`Graph::mermaid`].
    fn mermaid(&self) -> String;
}

/// A run with its state type erased, as drivers use it.
pub trait AnyRun: Send + Sync {
    /// See [`Run::handle_event`].
    ///
    /// # Errors
    /// See [`Run::handle_event`].
    fn handle_event(&mut self, event: Event) -> Result<()>;
    /// See [`Run::take_effects`].
    fn take_effects(&mut self) -> Vec<Effect>;
    /// See [`Run::messages`].
    fn messages(&self) -> &[ChatMessage];
    /// See [`Run::output`].
    fn output(&self) -> Option<&Output>;
}

impl<S: State> AnyGraph for Graph<S> {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn version(&self) -> u32 {
        Self::version(self)
    }

    fn start_any(&self, input: &Input) -> Result<Box<dyn AnyRun>> {
        Ok(Box::new(self.start(input)?))
    }

    fn replay_any(&self, input: &Input, journal: &Journal) -> Result<Box<dyn AnyRun>> {
        Ok(Box::new(self.replay(input, journal)?))
    }

    fn mermaid(&self) -> String {
        Self::mermaid(self)
    }
}

impl<S: State> AnyRun for Run<S> {
    fn handle_event(&mut self, event: Event) -> Result<()> {
        Self::handle_event(self, event)
    }

    fn take_effects(&mut self) -> Vec<Effect> {
        Self::take_effects(self)
    }

    fn messages(&self) -> &[ChatMessage] {
        Self::messages(self)
    }

    fn output(&self) -> Option<&Output> {
        Self::output(self)
    }
}
