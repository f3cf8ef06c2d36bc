//! Tools that compare staying on the local with changing to the express.

use schemars::JsonSchema;
use serde::Deserialize;
use threadkeep::FnTool;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep_transit::tools::{MAX_LINE_BYTES, MAX_STATION_BYTES, NoArguments, TextArgument, now_of};

use super::{SubwayTools, tool_output};
use crate::compare::ComparisonAnswer;
use crate::place::QueryError;
use crate::{Comparison, wording};

/// Maximum length in bytes of the list of express lines.
const MAX_LINES_BYTES: usize = 60;

/// The trip and the lines to compare.
#[derive(Debug, Deserialize, JsonSchema)]
struct Corridor {
    /// Where the trip begins: a station as the user says it.
    from_station: TextArgument,
    /// Where the trip ends: a station as the user says it.
    to_station: TextArgument,
    /// Where to change to the express; the same as `from_station` if the local and the express both stop there.
    transfer_station: TextArgument,
    /// The local line, such as "1".
    local_line: TextArgument,
    /// The express lines, separated by commas, such as "2,3".
    express_lines: TextArgument,
}

pub(super) fn compare_local_vs_express(tools: &SubwayTools) -> FnTool {
    let description = "Compares two options for a trip, based on the trains running now: stay on the local, or change to \
                       an express on the way. It reports the next local, both totals, the wait at the change, and which \
                       to take. Use it for every question about local or express, on any line.";
    let aliases = [
        ("from", "from_station"),
        ("to", "to_station"),
        ("transfer", "transfer_station"),
        ("local", "local_line"),
        ("express", "express_lines"),
        ("express_line", "express_lines"),
    ];
    let tool = tools.tool("compare_local_vs_express", description, compare);
    aliases.into_iter().fold(tool, |tool, (alias, argument)| tool.with_alias(alias, argument))
}

pub(super) fn plan_trip_with_transfers(tools: &SubwayTools) -> FnTool {
    let description = "Compares staying on the 1 from South Ferry to Penn Station with changing to the 2 or 3 at Chambers \
                       St. Only for South Ferry to Penn Station.";
    tools.tool("plan_trip_with_transfers", description, plan)
}

async fn compare(tools: SubwayTools, context: ToolContext, corridor: Corridor) -> Result<ToolOutput, ToolError> {
    let comparison = Comparison {
        from_station: corridor.from_station.required("from_station", MAX_STATION_BYTES)?,
        to_station: corridor.to_station.required("to_station", MAX_STATION_BYTES)?,
        transfer_station: corridor.transfer_station.required("transfer_station", MAX_STATION_BYTES)?,
        local_line: corridor.local_line.required("local_line", MAX_LINE_BYTES)?,
        express_lines: corridor.express_lines.required("express_lines", MAX_LINES_BYTES)?,
    };
    let answer = tools.subway.compare_local_vs_express(&comparison, now_of(&context)).await;
    comparison_output(&tools, &context, answer).await
}

async fn plan(tools: SubwayTools, context: ToolContext, _: NoArguments) -> Result<ToolOutput, ToolError> {
    let answer = tools.subway.plan_trip_with_transfers(now_of(&context)).await;
    comparison_output(&tools, &context, answer).await
}

async fn comparison_output(
    tools: &SubwayTools,
    context: &ToolContext,
    answer: Result<ComparisonAnswer, QueryError>,
) -> Result<ToolOutput, ToolError> {
    if let Ok(comparison) = &answer {
        tools.count(context, &comparison.from, &comparison.to).await;
    }
    tool_output(&answer, wording::comparison)
}
