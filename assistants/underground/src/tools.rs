//! The tools that a model calls.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use threadkeep::core::{Tool, ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Memory, MessageQuery, Scope};
use threadkeep_transit::tools::{
    MAX_LINE_BYTES, MAX_STATION_BYTES, TextArgument, TripArguments, changes, now_of, personal_tools, tool_output,
    with_trip_aliases,
};
use threadkeep_transit::{QueryError, RiderMemory, RouteAnswer};

use crate::assistant::NAME;
use crate::lines::{LINES, LineInfo, find_line, find_network_lines};
use crate::network::{LONDON, network};
use crate::station::{find_stations_on_line, train_times};
use crate::status::StatusAnswer;
use crate::underground::Underground;
use crate::wording::{self, TimesAspect};

/// The names of all tools.
pub const TOOLS: [&str; 10] = [
    "get_line_status",
    "get_next_trains",
    "get_route",
    "get_station_info",
    "find_stations_on_line",
    "get_train_times",
    "find_nearest_station",
    "save_preference",
    "get_preference",
    "get_common_trips",
];

/// Maximum number of messages to search for the last known status.
const MESSAGES_SEARCHED: usize = 40;
/// Maximum length in bytes of a list of lines.
const MAX_LINES_BYTES: usize = 300;

/// The tools, which use TfL's service, the built-in network and the memory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct UndergroundTools {
    underground: Arc<Underground>,
    memory: Memory,
    rider: RiderMemory,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Lines {
    /// The lines, separated by commas: names or ids such as "Victoria" or "hammersmith-city". All lines if left out.
    lines: Option<TextArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Board {
    /// The station as the user says it.
    station: TextArgument,
    /// Only this line; all lines if left out.
    line: Option<TextArgument>,
    /// Only this direction: "northbound", or a station that the trains go to; "northbound via Bank" for a branch.
    towards: Option<TextArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Station {
    /// The station as the user says it.
    station: TextArgument,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Line {
    /// The line, such as "Victoria", "Elizabeth" or "DLR".
    line: TextArgument,
    /// Only the stations where one can change to this line; all stations if left out.
    change_to: Option<TextArgument>,
    /// With `change_to`: a station; those nearest to it come first.
    near: Option<TextArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Times {
    /// The station as the user says it; left out if the question is about the Night Tube as a whole.
    station: Option<TextArgument>,
    /// Only this line; all lines if left out.
    line: Option<TextArgument>,
    /// `first`, `last`, `frequency` or `night`.
    what: TextArgument,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Position {
    /// Degrees north.
    latitude: f64,
    /// Degrees east; negative in the west of London.
    longitude: f64,
}

impl UndergroundTools {
    /// Creates the tools. `memory` must be the memory of the agent.
    #[must_use]
    pub fn new(memory: &Memory, underground: Arc<Underground>) -> Self {
        Self { underground, memory: memory.clone(), rider: RiderMemory::new(memory.clone(), NAME) }
    }

    /// Returns all tools, in the order of [`TOOLS`].
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        let status =
            "The live status of lines: delays, closures and their reasons. Use it for every question about delays.";
        let arrivals = "The next trains at a station, live, on all lines or on one, in all directions or in one.";
        let route = "The best route between two stations: which lines, where to change, how long.";
        let info = "Information about a station: its lines, zone, step-free access, and what is disrupted there.";
        let stations = "All stations of a line, in order; or those where one can change from it to another line.";
        let times = "First and last trains, or how often trains run, at a station; or whether the Night Tube runs.";
        let nearest = "The stations nearest to a position.";
        let tools = [
            self.tool("get_line_status", status, line_status).with_alias("line", "lines"),
            self.tool("get_next_trains", arrivals, board)
                .with_alias("station_name", "station")
                .with_alias("direction", "towards"),
            with_trip_aliases(self.tool("get_route", route, get_route)),
            self.tool("get_station_info", info, station_info).with_alias("station_name", "station"),
            self.tool("find_stations_on_line", stations, stations_on_line),
            self.tool("get_train_times", times, get_train_times),
            self.tool("find_nearest_station", nearest, nearest_station),
        ];
        let all = tools.into_iter().chain(personal_tools(&self.rider));
        all.map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect()
    }

    fn tool<A, R>(&self, name: &str, description: &str, work: fn(Self, ToolContext, A) -> R) -> FnTool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let tools = self.clone();
        FnTool::new(name, description, move |context, arguments: A| work(tools.clone(), context, arguments))
    }

    /// Returns the most recent status of the lines that the conversation contains.
    async fn last_known(&self, context: &ToolContext, lines: &[&'static LineInfo]) -> Option<StatusAnswer> {
        let query = MessageQuery::newest(MESSAGES_SEARCHED);
        let page = self.memory.messages(&context.scope, context.thread, &query).await.ok()?;
        page.messages.iter().rev().find_map(|message| {
            let data: serde_json::Value = message.content.data.as_ref()?.read().ok()?;
            let results = data["results"].as_array()?.iter().rev();
            let mut known = results.filter_map(|result| serde_json::from_value::<StatusAnswer>(result.clone()).ok());
            let mut answer = known.find(|answer| answer.as_of.is_some())?;
            answer.statuses.retain(|status| lines.is_empty() || lines.iter().any(|line| line.id == status.line));
            Some(answer).filter(|answer| !answer.statuses.is_empty())
        })
    }

    /// Counts a trip for the user; does nothing in a tenant's scope. Ignores errors: the answer matters more than the count.
    async fn count(&self, context: &ToolContext, route: &RouteAnswer) {
        if matches!(context.scope, Scope::User(..)) {
            let name = |view| threadkeep_transit::wording::whole_place(&LONDON, view);
            drop(self.rider.count_trip(&context.scope, &name(&route.from), &name(&route.to), &context.turn).await);
        }
    }
}

async fn line_status(tools: UndergroundTools, context: ToolContext, asked: Lines) -> Result<ToolOutput, ToolError> {
    let lines = match asked.lines.as_ref().filter(|lines| lines.non_empty().is_some()) {
        Some(lines) => lines_named(lines.required("lines", MAX_LINES_BYTES)?)?,
        None => Vec::new(),
    };
    let now = now_of(&context);
    match tools.underground.line_status(&lines, now).await {
        Some(answer) => {
            let value = JsonText::of(&answer).map_err(|error| ToolError::Failed(error.to_string()))?;
            Ok(ToolOutput { text: wording::status(&answer), value: Some(value), ..ToolOutput::default() })
        }
        None => {
            let last = tools.last_known(&context, &lines).await;
            let value = JsonText::from(&json!({"unreachable": true, "last_known": last}));
            let text = wording::status_unreachable(last.as_ref());
            Ok(ToolOutput { text, value: Some(value), ..ToolOutput::default() })
        }
    }
}

/// Parses a list of lines; "all" and "tube" mean all lines.
fn lines_named(text: &str) -> Result<Vec<&'static LineInfo>, ToolError> {
    let mut lines = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if matches!(name.to_lowercase().as_str(), "all" | "tube" | "the tube" | "underground") {
            return Ok(Vec::new());
        }
        if matches!(name.to_lowercase().as_str(), "overground" | "london overground") {
            lines.extend(LINES.iter().filter(|line| !line.has_timetable && !matches!(line.id, "elizabeth" | "dlr")));
            continue;
        }
        let line = find_line(name).ok_or_else(|| ToolError::Arguments(format!("lines: {name} is not a line")))?;
        lines.push(line);
    }
    Ok(lines)
}

/// Parses an optional line. An unknown line is the inner error, which is explained to the user.
fn line_named(line: Option<&TextArgument>) -> Result<Result<Option<&'static LineInfo>, QueryError>, ToolError> {
    let Some(line) = line.filter(|line| line.non_empty().is_some()) else { return Ok(Ok(None)) };
    let name = line.required("line", MAX_LINE_BYTES)?;
    Ok(find_network_lines(name).map(|lines| lines.first().and_then(|line| find_line(&line.id))))
}

async fn board(tools: UndergroundTools, context: ToolContext, board: Board) -> Result<ToolOutput, ToolError> {
    let station = board.station.required("station", MAX_STATION_BYTES)?;
    let towards = match board.towards.as_ref().filter(|towards| towards.non_empty().is_some()) {
        Some(towards) => Some(towards.required("towards", MAX_STATION_BYTES)?),
        None => None,
    };
    let now = now_of(&context);
    let answer = match line_named(board.line.as_ref())? {
        Ok(line) => tools.underground.arrivals(station, line, towards, now).await,
        Err(error) => Err(error),
    };
    tool_output(&LONDON, &answer, |answer| wording::arrivals(answer, now))
}

async fn get_route(
    tools: UndergroundTools,
    context: ToolContext,
    trip: TripArguments,
) -> Result<ToolOutput, ToolError> {
    let answer = tools.underground.plan_route(&trip.request(&LONDON, now_of(&context))?).await;
    if let Ok(route) = &answer {
        tools.count(&context, route).await;
    }
    tool_output(&LONDON, &answer, |route| threadkeep_transit::wording::route(&LONDON, route))
}

async fn station_info(tools: UndergroundTools, context: ToolContext, named: Station) -> Result<ToolOutput, ToolError> {
    let station = named.station.required("station", MAX_STATION_BYTES)?;
    let answer = tools.underground.station_info(station, now_of(&context)).await;
    tool_output(&LONDON, &answer, wording::station_info)
}

async fn stations_on_line(_: UndergroundTools, _: ToolContext, named: Line) -> Result<ToolOutput, ToolError> {
    if let Some(found) = changes(&LONDON, &named.line, named.change_to.as_ref(), named.near.as_ref())? {
        return Ok(found);
    }
    let found = find_network_lines(named.line.required("line", MAX_LINE_BYTES)?);
    let unknown = |name: &str| QueryError::UnknownLine { line: name.to_owned() };
    let answer = found.and_then(|lines| {
        let id = lines.first().map_or("", |line| line.id.as_str());
        find_line(id).map(find_stations_on_line).ok_or_else(|| unknown(id))
    });
    tool_output(&LONDON, &answer, wording::line_stations)
}

async fn get_train_times(_: UndergroundTools, _: ToolContext, asked: Times) -> Result<ToolOutput, ToolError> {
    let aspect = match asked.what.required("what", MAX_LINE_BYTES)? {
        "first" => TimesAspect::First,
        "last" => TimesAspect::Last,
        "frequency" => TimesAspect::Frequency,
        "night" => TimesAspect::Night,
        other => {
            return Err(ToolError::Arguments(format!("what: {other} is invalid; use first, last, frequency or night")));
        }
    };
    let Some(station) = asked.station.as_ref().filter(|station| station.non_empty().is_some()) else {
        return Ok(ToolOutput { text: wording::night_tube(), ..ToolOutput::default() });
    };
    let station = station.required("station", MAX_STATION_BYTES)?;
    let answer = match line_named(asked.line.as_ref())? {
        Ok(line) => train_times(station, line),
        Err(error) => Err(error),
    };
    tool_output(&LONDON, &answer, |times| wording::train_times(times, aspect))
}

async fn nearest_station(_: UndergroundTools, _: ToolContext, at: Position) -> Result<ToolOutput, ToolError> {
    if !(-90.0..=90.0).contains(&at.latitude) || !(-180.0..=180.0).contains(&at.longitude) {
        return Err(ToolError::Arguments("latitude must be from -90 to 90 and longitude from -180 to 180".to_owned()));
    }
    let nearest = nearest_stations(at.latitude, at.longitude, 3);
    let texts: Vec<String> = nearest.iter().map(|(name, metres)| format!("{name} ({metres} m)")).collect();
    Ok(ToolOutput { text: format!("Nearest stations: {}.", texts.join(", ")), ..ToolOutput::default() })
}

/// Returns the names of the stations nearest to a position, with their straight-line distances in metres.
#[must_use]
pub fn nearest_stations(latitude: f64, longitude: f64, count: usize) -> Vec<(String, u64)> {
    const METRES_A_DEGREE: f64 = 111_200.0;
    let mut all: Vec<(String, u64)> = Vec::new();
    for station in network().stations() {
        let north = (station.latitude - latitude) * METRES_A_DEGREE;
        let east = (station.longitude - longitude) * METRES_A_DEGREE * latitude.to_radians().cos();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "distances on earth are small")]
        let metres = north.hypot(east).round() as u64;
        match all.iter_mut().find(|(name, _)| *name == station.name) {
            Some((_, known)) => *known = metres.min(*known),
            None => all.push((station.name.clone(), metres)),
        }
    }
    all.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    all.truncate(count);
    all
}
