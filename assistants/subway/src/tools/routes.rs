//! Tools that find routes between stations.

use threadkeep::FnTool;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep_transit::tools::{TripArguments, now_of, with_trip_aliases};

use super::{SubwayTools, tool_output};
use crate::system::SUBWAY;
use crate::wording;

pub(super) fn get_route(tools: &SubwayTools) -> FnTool {
    let description = "The best route between two stations, from the map and the timetable: which trains, where to \
                       change, how long. It has no live times. Use it for planning, and for \"how do I get there\" \
                       when the question is not about right now.";
    with_trip_aliases(tools.tool("get_route", description, route))
}

pub(super) fn get_route_with_arrivals(tools: &SubwayTools) -> FnTool {
    let description = "The best route between two stations with live trains, and the next trains where it begins. Use \
                       it for \"the fastest way right now\" and \"how do I get there now\".";
    with_trip_aliases(tools.tool("get_route_with_arrivals", description, route_with_arrivals))
}

pub(super) fn get_transfer_timing(tools: &SubwayTools) -> FnTool {
    let description = "The change of trains on the best route between two stations, with live times: when the user \
                       arrives at the change, which train to take from there, and how long the wait is.";
    with_trip_aliases(tools.tool("get_transfer_timing", description, transfer_timing))
}

async fn route(tools: SubwayTools, context: ToolContext, trip: TripArguments) -> Result<ToolOutput, ToolError> {
    let answer = tools.subway.find_route(&trip.request(&SUBWAY, now_of(&context))?);
    if let Ok(route) = &answer {
        tools.count(&context, &route.from, &route.to).await;
    }
    tool_output(&answer, wording::route)
}

async fn route_with_arrivals(
    tools: SubwayTools,
    context: ToolContext,
    trip: TripArguments,
) -> Result<ToolOutput, ToolError> {
    let request = trip.request(&SUBWAY, now_of(&context))?;
    if request.conditions.is_planned() {
        return route(tools, context, trip).await;
    }
    let answer = tools.subway.find_route_with_arrivals(&request).await;
    if let Ok(answer) = &answer {
        tools.count(&context, &answer.route.from, &answer.route.to).await;
    }
    tool_output(&answer, wording::route_with_arrivals)
}

async fn transfer_timing(
    tools: SubwayTools,
    context: ToolContext,
    trip: TripArguments,
) -> Result<ToolOutput, ToolError> {
    let (from, to) = trip.ends()?;
    let answer = tools.subway.get_transfer_timing(from, to, now_of(&context)).await;
    if let Ok(timing) = &answer {
        tools.count(&context, &timing.route.from, &timing.route.to).await;
    }
    tool_output(&answer, wording::transfer_timing)
}
