//! Tools that find routes between stations.

use schemars::JsonSchema;
use serde::Deserialize;
use threadkeep::FnTool;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};

use super::text_argument::TextArgument;
use super::{SubwayTools, now_of, tool_output};
use crate::tools::stations::MAX_STATION_BYTES;
use crate::wording;

/// Origin and destination.
#[derive(Debug, Deserialize, JsonSchema)]
struct Trip {
    /// Where the trip begins: a station as the user says it, with its line or borough if the user names one.
    from_station: TextArgument,
    /// Where it ends, in the same way.
    to_station: TextArgument,
}

impl Trip {
    fn ends(&self) -> Result<(&str, &str), ToolError> {
        let from = self.from_station.required("from_station", MAX_STATION_BYTES)?;
        Ok((from, self.to_station.required("to_station", MAX_STATION_BYTES)?))
    }
}

pub(super) fn get_route(tools: &SubwayTools) -> FnTool {
    let description = "The best route between two stations, from the map and the timetable: which trains, where to \
                       change, how long. It has no live times. Use it for planning, and for \"how do I get there\" \
                       when the question is not about right now.";
    with_aliases(tools.tool("get_route", description, route))
}

pub(super) fn get_route_with_arrivals(tools: &SubwayTools) -> FnTool {
    let description = "The best route between two stations with live trains, and the next trains where it begins. Use \
                       it for \"the fastest way right now\" and \"how do I get there now\".";
    with_aliases(tools.tool("get_route_with_arrivals", description, route_with_arrivals))
}

pub(super) fn get_transfer_timing(tools: &SubwayTools) -> FnTool {
    let description = "The change of trains on the best route between two stations, with live times: when the user \
                       arrives at the change, which train to take from there, and how long the wait is.";
    with_aliases(tools.tool("get_transfer_timing", description, transfer_timing))
}

fn with_aliases(tool: FnTool) -> FnTool {
    let aliases = [
        ("from", "from_station"),
        ("origin", "from_station"),
        ("start", "from_station"),
        ("to", "to_station"),
        ("destination", "to_station"),
        ("end", "to_station"),
    ];
    aliases.into_iter().fold(tool, |tool, (alias, argument)| tool.with_alias(alias, argument))
}

async fn route(tools: SubwayTools, context: ToolContext, trip: Trip) -> Result<ToolOutput, ToolError> {
    let (from, to) = trip.ends()?;
    let answer = tools.subway.get_route(from, to, now_of(&context));
    if let Ok(route) = &answer {
        tools.count(&context, &route.from, &route.to).await;
    }
    tool_output(&answer, wording::route)
}

async fn route_with_arrivals(tools: SubwayTools, context: ToolContext, trip: Trip) -> Result<ToolOutput, ToolError> {
    let (from, to) = trip.ends()?;
    let answer = tools.subway.get_route_with_arrivals(from, to, now_of(&context)).await;
    if let Ok(answer) = &answer {
        tools.count(&context, &answer.route.from, &answer.route.to).await;
    }
    tool_output(&answer, wording::route_with_arrivals)
}

async fn transfer_timing(tools: SubwayTools, context: ToolContext, trip: Trip) -> Result<ToolOutput, ToolError> {
    let (from, to) = trip.ends()?;
    let answer = tools.subway.get_transfer_timing(from, to, now_of(&context)).await;
    if let Ok(timing) = &answer {
        tools.count(&context, &timing.route.from, &timing.route.to).await;
    }
    tool_output(&answer, wording::transfer_timing)
}
