//! Parts of the tools that a model calls.
//!
//! Each tool returns text that can be passed to the user unchanged, and the same facts as JSON. A [`QueryError`], such as an
//! unknown station or an ambiguous name, is a successful result whose text explains the problem and asks the user to
//! clarify. Tool errors are reserved for invalid arguments and failures.

mod personal;
mod text_argument;
mod trip;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{JsonText, MemoryError};

pub use personal::personal_tools;
pub use text_argument::TextArgument;
pub use trip::{TripArguments, with_trip_aliases};

use crate::{QueryError, System, meeting, wording};

/// Maximum length in bytes of a station name.
pub const MAX_STATION_BYTES: usize = 300;
/// Maximum length in bytes of a line name.
pub const MAX_LINE_BYTES: usize = 40;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct NoArguments {}

/// Returns the output for an answer or a query error.
///
/// # Errors
/// The answer cannot be written as JSON.
pub fn tool_output<T: Serialize>(
    system: &System,
    answer: &Result<T, QueryError>,
    text: impl Fn(&T) -> String,
) -> Result<ToolOutput, ToolError> {
    let (text, value) = match answer {
        Ok(answer) => (text(answer), JsonText::of(answer)),
        Err(error) => (wording::query_error(system, error), JsonText::of(error)),
    };
    let value = value.map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(ToolOutput { text, value: Some(value), ..ToolOutput::default() })
}

/// Returns where one can change from a line to another, if a call names the other line.
///
/// # Errors
/// An argument is too long.
pub fn changes(
    system: &System,
    line: &TextArgument,
    change_to: Option<&TextArgument>,
    near: Option<&TextArgument>,
) -> Result<Option<ToolOutput>, ToolError> {
    let Some(other) = change_to.filter(|other| other.non_empty().is_some()) else { return Ok(None) };
    let (line, other) = (line.required("line", MAX_LINE_BYTES)?, other.required("change_to", MAX_LINE_BYTES)?);
    let near = match near.filter(|near| near.non_empty().is_some()) {
        Some(near) => Some(near.required("near", MAX_STATION_BYTES)?),
        None => None,
    };
    // A place that is unknown or ambiguous only decides the order.
    let found = meeting(system, line, other, near).or_else(|_| meeting(system, line, other, None));
    tool_output(system, &found, |found| wording::meeting(system, found)).map(Some)
}

/// Returns the time of the call.
#[must_use]
pub fn now_of(context: &ToolContext) -> Timestamp {
    instant(context.now)
}

/// Converts a Threadkeep timestamp to jiff's type.
///
/// # Panics
/// Never: both types end with the year 9999, and jiff's begins earlier.
#[must_use]
pub fn instant(at: threadkeep::Timestamp) -> Timestamp {
    let same = Timestamp::from_microsecond(at.as_micros());
    same.expect("both types end with the year 9999, and jiff's begins earlier")
}

fn unavailable(error: MemoryError) -> ToolError {
    ToolError::Unavailable(error.to_string())
}
