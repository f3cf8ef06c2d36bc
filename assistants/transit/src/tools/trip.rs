//! The arguments of tools that find routes.

use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::Deserialize;
use threadkeep::FnTool;
use threadkeep::core::ToolError;
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::{Direction, find_times};

use super::{MAX_STATION_BYTES, TextArgument};
use crate::{RouteRequest, System, TripConditions};

/// Maximum length in bytes of a time.
const MAX_TIME_BYTES: usize = 80;

/// The arguments of a tool that finds a route.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TripArguments {
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
    /// Lines of which the route uses no other, such as "D".
    only_lines: Option<TextArgument>,
    /// Whether to use only platforms that a wheelchair can reach.
    step_free: Option<bool>,
    /// Whether fewer changes of trains matter more than a shorter time.
    fewest_changes: Option<bool>,
}

impl TripArguments {
    /// Returns the origin and the destination.
    ///
    /// # Errors
    /// One of them is empty or too long.
    pub fn ends(&self) -> Result<(&str, &str), ToolError> {
        let from = self.from_station.required("from_station", MAX_STATION_BYTES)?;
        Ok((from, self.to_station.required("to_station", MAX_STATION_BYTES)?))
    }

    /// Returns the request for a route.
    ///
    /// # Errors
    /// An argument is empty or too long, or is not a line or a time.
    pub fn request(&self, system: &System, now: Timestamp) -> Result<RouteRequest<'_>, ToolError> {
        let (from, to) = self.ends()?;
        let avoid = self.avoid_lines.as_ref().and_then(TextArgument::non_empty).unwrap_or_default();
        let only = self.only_lines.as_ref().and_then(TextArgument::non_empty).unwrap_or_default();
        let conditions = TripConditions {
            leave_at: time_of(system, "leave_at", self.leave_at.as_ref(), now)?,
            arrive_by: time_of(system, "arrive_by", self.arrive_by.as_ref(), now)?,
            step_free: self.step_free.unwrap_or_default(),
            avoid: lines_named(system, "avoid_lines", avoid)?,
            only: lines_named(system, "only_lines", only)?,
            fewest_changes: self.fewest_changes.unwrap_or_default(),
        };
        Ok(RouteRequest { from, to, now, conditions })
    }
}

/// Reads a list of lines, separated by commas, slashes or spaces.
fn lines_named(system: &System, argument: &str, list: &str) -> Result<Vec<String>, ToolError> {
    let mut names = Vec::new();
    for part in list.split([',', '/']).map(str::trim).filter(|part| !part.is_empty()) {
        match (system.find_lines)(part) {
            Ok(lines) => names.push(lines[0].name.clone()),
            Err(_) => {
                for word in part.split_whitespace() {
                    let unknown = |_| ToolError::Arguments(format!("{argument}: {word} is not a line"));
                    names.push((system.find_lines)(word).map_err(unknown)?[0].name.clone());
                }
            }
        }
    }
    Ok(names)
}

/// Reads a time as the user says it, or as a local date and time.
fn time_of(
    system: &System,
    name: &str,
    text: Option<&TextArgument>,
    now: Timestamp,
) -> Result<Option<Timestamp>, ToolError> {
    let Some(text) = text.filter(|text| text.non_empty().is_some()) else { return Ok(None) };
    let text = text.required(name, MAX_TIME_BYTES)?;
    let now = now.to_zoned((system.zone)());
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Some(at));
    }
    if let Ok(local) = text.parse::<DateTime>()
        && let Ok(at) = local.to_zoned((system.zone)())
    {
        return Ok(Some(at.timestamp()));
    }
    let found = find_times(&Utterance::new(format!("at {text}"))).into_iter().next();
    let found = found.or_else(|| find_times(&Utterance::new(text)).into_iter().next());
    // A day without a time of day means the current time of day on that day.
    let at = found.and_then(|found| {
        let (time, direction) = (found.time, Direction::Future);
        let on_day = || {
            let (start, end) = time.span(&now, direction)?;
            let day = start.or(end)?.date();
            day.to_datetime(now.time()).to_zoned((system.zone)()).ok()
        };
        time.instant(&now, direction).or_else(on_day)
    });
    let at = at.ok_or_else(|| ToolError::Arguments(format!("{name}: {text:?} is not a time")))?;
    Ok(Some(at.timestamp()))
}

/// Adds the names under which models also write the ends of a trip.
#[must_use]
pub fn with_trip_aliases(tool: FnTool) -> FnTool {
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
