//! Tools that tell of stations and lines: what calls there next, what is there, and in which order.

use schemars::JsonSchema;
use serde::Deserialize;
use threadkeep::FnTool;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};

use super::words::Words;
use super::{SubwayTools, now_of, told};
use crate::{info, wording};

/// Bytes of what a station may be called; nobody says more.
pub(super) const STATION_BYTES: usize = 300;
/// Bytes of what a line may be called.
pub(super) const LINE_BYTES: usize = 40;

/// Whose trains.
#[derive(Debug, Deserialize, JsonSchema)]
struct Board {
    /// The station as the user says it.
    station_name: Words,
    /// Only this line, such as "7"; all lines where it is left out.
    line: Option<Words>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Station {
    /// The station as the user says it.
    station: Words,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Line {
    /// The line, such as "6", "A" or "SIR".
    line: Words,
}

pub(super) fn get_train_arrivals(tools: &SubwayTools) -> FnTool {
    let description = "The next trains at a station, live, of all lines or of one. Use it for \"when is the next train\" \
                       and \"trains at\" a station.";
    tools
        .tool("get_train_arrivals", description, arrivals)
        .with_alias("station", "station_name")
        .with_alias("name", "station_name")
        .with_alias("train", "line")
}

pub(super) fn get_station_info(tools: &SubwayTools) -> FnTool {
    let description = "What is known of a station: its lines, borough, directions, and which platforms are reached \
                       without steps.";
    tools
        .tool("get_station_info", description, station_info)
        .with_alias("station_name", "station")
        .with_alias("name", "station")
}

pub(super) fn find_stations_on_line(tools: &SubwayTools) -> FnTool {
    let description = "All stations at which a line stops by day, in the order of travel.";
    tools.tool("find_stations_on_line", description, stations_on_line).with_alias("train", "line")
}

async fn arrivals(tools: SubwayTools, context: ToolContext, board: Board) -> Result<ToolOutput, ToolError> {
    let station = board.station_name.required("station_name", STATION_BYTES)?;
    let line = match board.line.as_ref().filter(|line| line.given().is_some()) {
        Some(line) => Some(line.required("line", LINE_BYTES)?),
        None => None,
    };
    let now = now_of(&context);
    let answer = tools.subway.get_train_arrivals(station, line, now).await;
    told(&answer, |answer| wording::arrivals(answer, now))
}

async fn station_info(_: SubwayTools, _: ToolContext, named: Station) -> Result<ToolOutput, ToolError> {
    told(&info::get_station_info(named.station.required("station", STATION_BYTES)?), wording::station_info)
}

async fn stations_on_line(_: SubwayTools, _: ToolContext, named: Line) -> Result<ToolOutput, ToolError> {
    told(&info::find_stations_on_line(named.line.required("line", LINE_BYTES)?), wording::line_stations)
}
