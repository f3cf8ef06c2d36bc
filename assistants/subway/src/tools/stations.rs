//! Tools about stations and lines: next trains, station information, and the stations of a line.

use schemars::JsonSchema;
use serde::Deserialize;
use threadkeep::FnTool;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep_transit::tools::{MAX_LINE_BYTES, MAX_STATION_BYTES, TextArgument, changes, now_of};

use super::{SubwayTools, tool_output};
use crate::system::SUBWAY;
use crate::{info, wording};

/// A departure board.
#[derive(Debug, Deserialize, JsonSchema)]
struct Board {
    /// The station as the user says it.
    station_name: TextArgument,
    /// Only this line, such as "7"; all lines if left out.
    line: Option<TextArgument>,
    /// Only this direction, as the user says it: "uptown", "toward Manhattan", "Queens-bound"; both if left out.
    direction: Option<TextArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Station {
    /// The station as the user says it.
    station: TextArgument,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Line {
    /// The line, such as "6", "A" or "SIR".
    line: TextArgument,
    /// Only the stations where one can change to this line; all stations if left out.
    change_to: Option<TextArgument>,
    /// With `change_to`: a station; those nearest to it come first.
    near: Option<TextArgument>,
}

pub(super) fn get_train_arrivals(tools: &SubwayTools) -> FnTool {
    let description = "The next trains at a station, live, on all lines or on one. Use it for \"when is the next train\" \
                       and \"trains at\" a station.";
    tools
        .tool("get_train_arrivals", description, arrivals)
        .with_alias("station", "station_name")
        .with_alias("name", "station_name")
        .with_alias("train", "line")
}

pub(super) fn get_station_info(tools: &SubwayTools) -> FnTool {
    let description = "Information about a station: its lines, borough, directions, and which platforms can be reached \
                       without steps.";
    tools
        .tool("get_station_info", description, station_info)
        .with_alias("station_name", "station")
        .with_alias("name", "station")
}

pub(super) fn find_stations_on_line(tools: &SubwayTools) -> FnTool {
    let description = "All stations at which a line stops during the day, in the order of travel; or those where one can \
                       change from it to another line.";
    tools.tool("find_stations_on_line", description, stations_on_line).with_alias("train", "line")
}

async fn arrivals(tools: SubwayTools, context: ToolContext, board: Board) -> Result<ToolOutput, ToolError> {
    let station = board.station_name.required("station_name", MAX_STATION_BYTES)?;
    let line = match board.line.as_ref().filter(|line| line.non_empty().is_some()) {
        Some(line) => Some(line.required("line", MAX_LINE_BYTES)?),
        None => None,
    };
    let now = now_of(&context);
    let direction = match board.direction.as_ref().filter(|direction| direction.non_empty().is_some()) {
        Some(direction) => Some(direction.required("direction", MAX_STATION_BYTES)?),
        None => None,
    };
    let answer = tools.subway.get_train_arrivals_towards(station, line, direction, now).await;
    tool_output(&answer, |answer| wording::arrivals(answer, now))
}

async fn station_info(_: SubwayTools, _: ToolContext, named: Station) -> Result<ToolOutput, ToolError> {
    tool_output(&info::get_station_info(named.station.required("station", MAX_STATION_BYTES)?), wording::station_info)
}

async fn stations_on_line(_: SubwayTools, _: ToolContext, named: Line) -> Result<ToolOutput, ToolError> {
    if let Some(found) = changes(&SUBWAY, &named.line, named.change_to.as_ref(), named.near.as_ref())? {
        return Ok(found);
    }
    tool_output(&info::find_stations_on_line(named.line.required("line", MAX_LINE_BYTES)?), wording::line_stations)
}
