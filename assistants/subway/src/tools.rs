//! The tools that a model calls.
//!
//! Each tool returns text that can be passed to the user unchanged, and the same facts as JSON. A [`QueryError`], such as an
//! unknown station or an ambiguous name, is a successful result whose text explains the problem and asks the user for what is
//! missing. Tool
//! errors are reserved for invalid arguments and failures.
//!
//! No call requires approval: only the user's own preferences are stored, at their request, and they can be changed again.

mod comparisons;
mod routes;
mod stations;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use threadkeep::core::{Tool, ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, Memory, Scope};
use threadkeep_transit::RiderMemory;
use threadkeep_transit::tools::personal_tools;

use crate::place::{QueryError, StationView};
use crate::preferences::rider_memory;
use crate::subway::Subway;
use crate::system::SUBWAY;
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

/// Creates the tools from a subway and the memory that stores users' preferences and trips. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SubwayTools {
    subway: Arc<Subway>,
    memory: RiderMemory,
}

impl SubwayTools {
    /// Creates the tools. `memory` must be the memory of the agent.
    pub fn new(memory: Memory, subway: Arc<Subway>) -> Self {
        Self { subway, memory: rider_memory(&memory) }
    }

    /// Returns the subway that the tools query.
    pub fn subway(&self) -> &Arc<Subway> {
        &self.subway
    }

    /// Returns all tools, in the order of [`TOOLS`].
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
        ];
        tools.into_iter().chain(personal_tools(&self.memory)).map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect()
    }

    /// Creates a tool that runs `work`.
    fn tool<A, R>(&self, name: &str, description: &str, work: fn(Self, ToolContext, A) -> R) -> FnTool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let tools = self.clone();
        FnTool::new(name, description, move |context, arguments: A| work(tools.clone(), context, arguments))
    }

    /// Counts a trip for the user; does nothing in a tenant's scope. Ignores errors: the answer matters more than the count.
    async fn count(&self, context: &ToolContext, from: &StationView, to: &StationView) {
        if matches!(context.scope, Scope::User(..)) {
            let (from, to) = (wording::whole_place(from), wording::whole_place(to));
            drop(self.memory.count_trip(&context.scope, &from, &to, &context.turn).await);
        }
    }
}

/// Returns the output for an answer or a query error.
fn tool_output<T: Serialize>(
    answer: &Result<T, QueryError>,
    text: impl Fn(&T) -> String,
) -> Result<ToolOutput, ToolError> {
    threadkeep_transit::tools::tool_output(&SUBWAY, answer, text)
}
