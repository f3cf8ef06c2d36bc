//! Arithmetic: finds calculations in messages, and evaluates expressions.

mod expression;
mod finder;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText};

use expression::evaluate;
pub(crate) use finder::{find, number, whole};

/// The name of the calculator.
pub(crate) const CALCULATOR: &str = "calculator";

#[derive(Debug, Deserialize, JsonSchema)]
struct Calculation {
    /// Numbers with + - * / ^ % (per cent) and parentheses, such as `(800-640)/640*100`.
    expression: String,
}

/// Creates the calculator.
pub(crate) fn calculator() -> FnTool {
    FnTool::new(
        CALCULATOR,
        "Evaluates an arithmetic expression.",
        |_: ToolContext, arguments: Calculation| async move {
            let value = evaluate(&arguments.expression).map_err(|error| ToolError::Arguments(error.to_string()))?;
            let result = json!({"expression": arguments.expression, "result": formatted(value)});
            Ok(ToolOutput::json(JsonText::from(&result)))
        },
    )
}

/// Formats a result with at most ten decimals, without trailing zeros.
fn formatted(number: f64) -> String {
    let text = format!("{number:.10}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_no_trailing_zeros() {
        for (number, text) in [(26.25, "26.25"), (0.1 + 0.2, "0.3"), (1_440_000.0, "1440000"), (-0.0, "0")] {
            assert_eq!(formatted(number), text);
        }
    }
}
