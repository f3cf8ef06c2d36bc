//! Assistants as state graphs, executed as deterministic state machines: events in, effects out.
//!
//! Start with [`Graph`]: declare its nodes, edges and branches. [`Graph::start`] returns a [`Run`], which
//! requests work ([`Run::take_effects`]) and receives the outcomes ([`Run::handle_event`]). A run's checkpoint is the
//! [`Journal`] of its events: [`Graph::replay`] rebuilds the run from it, and the run then requests only the work that is still
//! outstanding.
//!
//! ```
//! use threadkeep_core::{JsonText, StoreError};
//! use threadkeep_graph::{END, Effect, Event, Graph, Input, Node, Outcome, Output, START, state};
//!
//! state! {
//!     /// What the assistant knows in a turn.
//!     pub struct Weather (update WeatherUpdate) {
//!         /// The town that the user asked about.
//!         replace town: String,
//!         /// The readings so far.
//!         append readings: JsonText,
//!     }
//! }
//!
//! fn town_input(state: &Weather) -> Result<JsonText, StoreError> {
//!     JsonText::of(&state.town)
//! }
//! fn add_reading(_: &Weather, reading: JsonText) -> WeatherUpdate {
//!     WeatherUpdate { readings: vec![reading], ..WeatherUpdate::default() }
//! }
//!
//! let graph = Graph::<Weather>::builder("weather", 1, |input| Weather { town: input.question.clone(), ..Weather::default() })
//!     .node("measure", Node::activity("thermometer", town_input, add_reading))
//!     .edge(START, "measure")
//!     .branch("measure", ["measure", END], |state| if state.readings.len() < 2 { "measure" } else { END })
//!     .finish(|state| Output::reply(format!("{} says {:?}", state.town, state.readings)))?;
//!
//! let mut run = graph.start(&Input::question("Oslo"))?;
//! for degrees in ["3", "4"] {
//!     let effects = run.take_effects();
//!     let Effect::RunActivity { request, .. } = &effects[0] else { panic!("{effects:?}") };
//!     run.handle_event(Event::Finished { request: *request, outcome: Outcome::Activity(JsonText::new(degrees)?) })?;
//! }
//! assert_eq!(run.output().map(|output| output.reply.as_str()), Some("Oslo says [3, 4]"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate performs no I/O: it calls no model, and uses neither the clock nor random numbers nor the environment. So replaying the
//! same events produces the same run.
#![warn(missing_docs)]

mod any;
mod effect;
mod error;
mod event;
mod graph;
mod journal;
mod mermaid;
mod node;
mod run;
mod state;

pub use any::{AnyGraph, AnyRun};
pub use effect::{Effect, History, ModelRequest, Output, RequestId, ToolSelection};
pub use error::{GraphError, Result};
pub use event::{Decision, Event, Outcome, OutcomeKind, ToolOutcome};
pub use graph::{END, Graph, GraphBuilder, Input, START};
pub use journal::Journal;
pub use node::Node;
pub use run::Run;
pub use state::{State, reduce};
pub use threadkeep_core::{Failure, Map};
