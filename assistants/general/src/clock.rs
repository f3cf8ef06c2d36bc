//! A tool that returns the time.

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Memory};

/// The name of the tool.
pub(crate) const CURRENT_TIME: &str = "current_time";

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArguments {}

/// Creates the tool. It reads the memory's clock.
pub(crate) fn current_time(memory: Memory) -> FnTool {
    FnTool::new(CURRENT_TIME, "Returns the date and the time in UTC.", move |_: ToolContext, _: NoArguments| {
        let now = memory.now();
        async move {
            let now = jiff::Timestamp::from_microsecond(now.as_micros())
                .map_err(|error| ToolError::Failed(error.to_string()))?
                .to_zoned(TimeZone::UTC);
            let text = |format: &str| now.strftime(format).to_string();
            let result = json!({"date": text("%Y-%m-%d"), "time": text("%H:%M"), "weekday": text("%A"), "zone": "UTC"});
            Ok(ToolOutput::json(JsonText::from(&result)))
        }
    })
}
