//! The tools that a model calls, by their names.
//!
//! Each tool answers with words that can be handed to the person as they stand, and with the same facts for programs. A
//! question that has no answer (a station that nobody knows, a name that fits several) is answered by saying so and what
//! to ask back: the person reads it, and the model goes on with it. Only what is broken is an error.
//!
//! No call needs an approval: what is kept are the user's own preferences, at the user's word, and they can be set anew.

mod comparisons;
mod personal;
mod routes;
mod stations;
mod words;

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use threadkeep::core::{Tool, ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Memory, Scope};

use crate::place::{StationView, Trouble};
use crate::preferences::count_trip;
use crate::subway::Subway;
use crate::travel::instant;
use crate::wording;

/// The names of all tools.
pub const TOOLS: [&str; 11] = [
    "get_route",
    "get_route_with_arrivals",
    "get_train_arrivals",
    "get_transfer_timing",
    "compare_local_vs_express",
    "plan_trip_with_transfers",
    "get_station_info",
    "find_stations_on_line",
    "save_preference",
    "get_preference",
    "get_common_trips",
];

/// Makes the tools over a subway and the memory in which a person's preferences and trips are kept. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SubwayTools {
    subway: Arc<Subway>,
    memory: Memory,
}

/// No arguments.
#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Nothing {}

impl SubwayTools {
    /// Makes them. The memory must be the one that the agent has.
    pub fn new(memory: Memory, subway: Arc<Subway>) -> Self {
        Self { subway, memory }
    }

    /// The subway that they ask.
    pub fn subway(&self) -> &Arc<Subway> {
        &self.subway
    }

    /// All tools, in the order of [`TOOLS`].
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        let tools = [
            routes::get_route(self),
            routes::get_route_with_arrivals(self),
            stations::get_train_arrivals(self),
            routes::get_transfer_timing(self),
            comparisons::compare_local_vs_express(self),
            comparisons::plan_trip_with_transfers(self),
            stations::get_station_info(self),
            stations::find_stations_on_line(self),
            personal::save_preference(self),
            personal::get_preference(self),
            personal::get_common_trips(self),
        ];
        tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect()
    }

    /// A tool of a name, which runs `work`.
    fn tool<A, R>(&self, name: &str, description: &str, work: fn(Self, ToolContext, A) -> R) -> FnTool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let tools = self.clone();
        FnTool::new(name, description, move |context, arguments: A| work(tools.clone(), context, arguments))
    }

    /// Counts a trip that was answered, for the person who asked. Where nobody in particular asks, nobody's trips are
    /// counted, and an answer is worth more than its count.
    async fn count(&self, context: &ToolContext, from: &StationView, to: &StationView) {
        if matches!(context.scope, Scope::User(..)) {
            let (from, to) = (wording::whole_place(from), wording::whole_place(to));
            drop(count_trip(&self.memory, &context.scope, &from, &to, &context.turn).await);
        }
    }
}

/// What a tool gives for an answer, or for a question that has none.
fn told<T: Serialize>(answer: &Result<T, Trouble>, words: impl Fn(&T) -> String) -> Result<ToolOutput, ToolError> {
    let (text, value) = match answer {
        Ok(answer) => (words(answer), JsonText::of(answer)),
        Err(trouble) => (wording::trouble(trouble), JsonText::of(trouble)),
    };
    let value = value.map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(ToolOutput { text, value: Some(value), ..ToolOutput::default() })
}

/// When a tool is called, which counts as now.
fn now_of(context: &ToolContext) -> Timestamp {
    instant(context.now)
}

fn unavailable(error: threadkeep::MemoryError) -> ToolError {
    ToolError::Unavailable(error.to_string())
}
