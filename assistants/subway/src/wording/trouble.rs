use super::station::with_lines;
use crate::place::{StationView, Trouble};
use crate::system::network;

/// Candidates that are told.
const CHOICES: usize = 12;

/// What to tell or to ask the person where a question has no answer.
pub(crate) fn trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::UnknownStation { name } => {
            format!("I know no subway station called \"{name}\". Which station do you mean?")
        }
        Trouble::WhichStation { name, choices } => {
            format!("Several stations may be meant by \"{name}\". Which one?\n{}", listed(choices))
        }
        Trouble::NotOnLine { lines, name: _, choices } => {
            let (line, stops) = (lines.join("/"), if lines.len() > 1 { "do" } else { "does" });
            match choices.as_slice() {
                [only] => format!("The {line} {stops} not stop at {} by day.", with_lines(only)),
                _ => format!("The {line} {stops} not stop at any of these by day:\n{}", listed(choices)),
            }
        }
        Trouble::UnknownLine { line } => format!("There is no {line} train. The lines are {}.", all_lines()),
        Trouble::SameStation { station } => {
            format!("That is the same station: {}. No train is needed.", with_lines(station))
        }
        Trouble::NotOnTheWay { .. } | Trouble::NoRoute { .. } => {
            format!("{}.", super::capitalised(&trouble.to_string()))
        }
    }
}

fn listed(choices: &[StationView]) -> String {
    let told = choices.iter().take(CHOICES).map(|view| format!("- {}, {}", with_lines(view), view.borough));
    let more = choices.len().checked_sub(CHOICES + 1).map(|more| format!("- and {} more", more + 1));
    told.chain(more).collect::<Vec<_>>().join("\n")
}

fn all_lines() -> String {
    let mut signs: Vec<&str> = network().lines().iter().map(|line| line.name.as_str()).collect();
    signs.sort_unstable();
    signs.dedup();
    signs.join(" ")
}
