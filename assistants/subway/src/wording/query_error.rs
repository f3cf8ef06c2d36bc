use super::station::with_lines;
use crate::place::{QueryError, StationView};
use crate::system::network;

/// Maximum number of stations listed.
const MAX_CHOICES: usize = 12;

/// Returns the reply to the user for a query without an answer.
pub(crate) fn query_error(error: &QueryError) -> String {
    match error {
        QueryError::UnknownStation { name } => {
            format!("I do not know a subway station called \"{name}\". Which station do you mean?")
        }
        QueryError::WhichStation { name, choices } => {
            format!("Several stations match \"{name}\". Which one do you mean?\n{}", listed(choices))
        }
        QueryError::NotOnLine { lines, name: _, choices } => {
            let (line, stops) = (lines.join("/"), if lines.len() > 1 { "do" } else { "does" });
            match choices.as_slice() {
                [only] => format!("The {line} {stops} not stop at {} by day.", with_lines(only)),
                _ => format!("The {line} {stops} not stop at any of these by day:\n{}", listed(choices)),
            }
        }
        QueryError::UnknownLine { line } => format!("There is no {line} train. The lines are {}.", all_lines()),
        QueryError::UnknownDirection { direction, signs } => {
            format!("I do not know which direction \"{direction}\" is there. The signs say: {}.", signs.join(", "))
        }
        QueryError::SameStation { station } => {
            format!("That is the same station: {}. No train is needed.", with_lines(station))
        }
        QueryError::NotOnTheWay { .. } | QueryError::NoRoute { .. } => {
            format!("{}.", super::capitalised(&error.to_string()))
        }
    }
}

fn listed(choices: &[StationView]) -> String {
    let lines = choices.iter().take(MAX_CHOICES).map(|view| format!("- {}, {}", with_lines(view), view.borough));
    let more = choices.len().checked_sub(MAX_CHOICES + 1).map(|more| format!("- and {} more", more + 1));
    lines.chain(more).collect::<Vec<_>>().join("\n")
}

fn all_lines() -> String {
    let mut signs: Vec<&str> = network().lines().iter().map(|line| line.name.as_str()).collect();
    signs.sort_unstable();
    signs.dedup();
    signs.join(" ")
}
