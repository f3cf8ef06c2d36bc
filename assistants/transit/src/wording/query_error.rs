use super::station::with_lines;
use crate::{QueryError, StationView, System};

/// Maximum number of stations listed.
const MAX_CHOICES: usize = 12;

/// Returns the reply to the user for a query without an answer.
#[must_use]
pub fn query_error(system: &System, error: &QueryError) -> String {
    let words = &system.words;
    match error {
        QueryError::UnknownStation { name } => {
            format!("I do not know a {} called \"{name}\". Which station do you mean?", words.station)
        }
        QueryError::WhichStation { name, choices } => {
            format!("Several stations match \"{name}\". Which one do you mean?\n{}", listed(system, choices))
        }
        QueryError::NotOnLine { lines, name: _, choices } => {
            let names: Vec<String> = lines.iter().map(|line| system.line_name(line)).collect();
            let (line, stops) = (names.join("/"), if lines.len() > 1 { "do" } else { "does" });
            let usually = words.usually;
            match choices.as_slice() {
                [only] => format!("The {line} {stops} not stop at {}{usually}.", with_lines(system, only)),
                _ => format!("The {line} {stops} not stop at any of these{usually}:\n{}", listed(system, choices)),
            }
        }
        QueryError::UnknownLine { line } => {
            format!("There is no {line} {}. The lines are {}.", words.line, all_lines(system))
        }
        QueryError::UnknownDirection { direction, signs } => {
            format!("I do not know which direction \"{direction}\" is there. The signs say: {}.", signs.join(", "))
        }
        QueryError::SameStation { station } => {
            format!("That is the same station: {}. No train is needed.", with_lines(system, station))
        }
        QueryError::NoRoute { conditions, from, to } => {
            format!("There is no {} from {from} to {to}{conditions}.", words.route)
        }
        QueryError::NotOnTheWay { .. } => format!("{}.", super::capitalised(&error.to_string())),
    }
}

fn listed(system: &System, choices: &[StationView]) -> String {
    let lines = choices.iter().take(MAX_CHOICES).map(|view| format!("- {}, {}", with_lines(system, view), view.area));
    let more = choices.len().checked_sub(MAX_CHOICES + 1).map(|more| format!("- and {} more", more + 1));
    lines.chain(more).collect::<Vec<_>>().join("\n")
}

fn all_lines(system: &System) -> String {
    let mut lines: Vec<String> = (system.network)().lines().iter().map(|line| line.name.clone()).collect();
    lines.sort_unstable();
    lines.dedup();
    (system.lines_text)(&lines)
}
