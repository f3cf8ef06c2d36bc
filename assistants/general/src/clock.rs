//! The tool that returns the time.

mod zones;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Memory};

pub(crate) use zones::zone_of;

/// The name of the tool.
pub(crate) const CURRENT_TIME: &str = "current_time";

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// A large city, such as Tokyo. If it is missing, the time is in UTC.
    #[serde(default)]
    place: Option<String>,
}

/// Creates the tool, which reads the memory's clock.
pub(crate) fn current_time(memory: Memory) -> FnTool {
    let description = "Returns the date and the time in UTC or in a large city.";
    FnTool::new(CURRENT_TIME, description, move |_: ToolContext, arguments: Place| {
        let now = memory.now();
        async move {
            let place = arguments.place.filter(|place| !place.trim().is_empty());
            let (name, zone) = match &place {
                None => ("UTC", jiff::tz::TimeZone::UTC),
                Some(place) => zone_of(place).ok_or_else(|| {
                    ToolError::Arguments(format!("unknown place {place}; use the name of a large city"))
                })?,
            };
            let now = jiff::Timestamp::from_microsecond(now.as_micros())
                .map_err(|error| ToolError::Failed(error.to_string()))?
                .to_zoned(zone);
            let text = |format: &str| now.strftime(format).to_string();
            let result = json!({"date": text("%Y-%m-%d"), "time": text("%H:%M"), "weekday": text("%A"), "zone": name});
            Ok(ToolOutput::json(JsonText::from(&result)))
        }
    })
}
