//! Tools that find routes between stations.

use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::Deserialize;
use threadkeep::FnTool;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::{Direction, find_times};

use super::text_argument::TextArgument;
use super::{SubwayTools, now_of, tool_output};
use crate::route::{RouteRequest, TripConditions};
use crate::subway::find_lines;
use crate::tools::stations::MAX_STATION_BYTES;
use crate::travel::new_york;
use crate::wording;

/// Maximum length in bytes of a time.
const MAX_TIME_BYTES: usize = 80;

/// Origin and destination.
#[derive(Debug, Deserialize, JsonSchema)]
struct Trip {
    /// Where the trip begins: a station as the user says it, with its line or borough if the user names one.
    from_station: TextArgument,
    /// Where it ends, in the same way.
    to_station: TextArgument,
    /// When to leave, as the user says it or as a local date and time: "tomorrow at 8am", "2026-05-06 08:00". Default: now.
    leave_at: Option<TextArgument>,
    /// When to be there at the latest, in the same way.
    arrive_by: Option<TextArgument>,
    /// Lines not to use, such as "E,M".
    avoid_lines: Option<TextArgument>,
    /// Whether to use only platforms that a wheelchair can reach.
    step_free: Option<bool>,
}

impl Trip {
    fn ends(&self) -> Result<(&str, &str), ToolError> {
        let from = self.from_station.required("from_station", MAX_STATION_BYTES)?;
        Ok((from, self.to_station.required("to_station", MAX_STATION_BYTES)?))
    }

    fn request(&self, now: Timestamp) -> Result<RouteRequest<'_>, ToolError> {
        let (from, to) = self.ends()?;
        let avoid = self.avoid_lines.as_ref().and_then(TextArgument::non_empty).unwrap_or_default();
        let avoid = avoid.split([',', '/', ' ']).map(str::trim).filter(|sign| !sign.is_empty());
        let avoid = avoid.map(line_named).collect::<Result<_, _>>()?;
        let conditions = TripConditions {
            leave_at: time_of("leave_at", self.leave_at.as_ref(), now)?,
            arrive_by: time_of("arrive_by", self.arrive_by.as_ref(), now)?,
            step_free: self.step_free.unwrap_or_default(),
            avoid,
        };
        Ok(RouteRequest { from, to, now, conditions })
    }
}

fn line_named(sign: &str) -> Result<String, ToolError> {
    let lines = find_lines(sign).map_err(|_| ToolError::Arguments(format!("avoid_lines: {sign} is not a line")))?;
    Ok(lines[0].name.clone())
}

/// Reads a time as the user says it, or as a local date and time.
fn time_of(name: &str, text: Option<&TextArgument>, now: Timestamp) -> Result<Option<Timestamp>, ToolError> {
    let Some(text) = text.filter(|text| text.non_empty().is_some()) else { return Ok(None) };
    let text = text.required(name, MAX_TIME_BYTES)?;
    let now = now.to_zoned(new_york());
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Some(at));
    }
    if let Ok(local) = text.parse::<DateTime>()
        && let Ok(at) = local.to_zoned(new_york())
    {
        return Ok(Some(at.timestamp()));
    }
    let found = find_times(&Utterance::new(format!("at {text}"))).into_iter().next();
    let found = found.or_else(|| find_times(&Utterance::new(text)).into_iter().next());
    // A day without a time of day is meant at this time of day.
    let at = found.and_then(|found| {
        let (time, direction) = (found.time, Direction::Future);
        let on_day = || {
            let (start, end) = time.span(&now, direction)?;
            let day = start.or(end)?.date();
            day.to_datetime(now.time()).to_zoned(new_york()).ok()
        };
        time.instant(&now, direction).or_else(on_day)
    });
    let at = at.ok_or_else(|| ToolError::Arguments(format!("{name}: {text:?} is not a time")))?;
    Ok(Some(at.timestamp()))
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
    let answer = tools.subway.find_route(&trip.request(now_of(&context))?);
    if let Ok(route) = &answer {
        tools.count(&context, &route.from, &route.to).await;
    }
    tool_output(&answer, wording::route)
}

async fn route_with_arrivals(tools: SubwayTools, context: ToolContext, trip: Trip) -> Result<ToolOutput, ToolError> {
    let request = trip.request(now_of(&context))?;
    if request.conditions.is_planned() {
        return route(tools, context, trip).await;
    }
    let answer = tools.subway.find_route_with_arrivals(&request).await;
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
