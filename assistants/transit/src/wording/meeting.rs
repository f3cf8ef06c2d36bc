use crate::{Change, Meeting, System};

/// Maximum number of stations that an answer names.
const MAX_NAMED: usize = 8;

/// Formats where one can change from a line to another.
#[must_use]
pub fn meeting(system: &System, meeting: &Meeting) -> String {
    let (line, other, usually) = (&meeting.line, &meeting.other, system.words.usually);
    let station = |change: &Change| {
        let from = super::place(system, &change.from);
        match change.from.stop_ids == change.to.stop_ids || change.from.name == change.to.name {
            true => from,
            false => format!("{from} (the {other} is at {} in the same complex)", change.to.name),
        }
    };
    let named: Vec<String> = meeting.changes.iter().take(MAX_NAMED).map(station).collect();
    match meeting.changes.len() {
        0 => format!("The {line} and the {other} do not meet at any station{usually}."),
        1 => format!("You can change from the {line} to the {other}{usually} at {}.", named.join("")),
        count if count > MAX_NAMED => format!(
            "The {line} and the {other} meet at {count} stations{usually}, among them {}.",
            super::join_with_and(&named)
        ),
        count => format!(
            "You can change from the {line} to the {other}{usually} at {count} stations: {}.",
            super::join_with_and(&named)
        ),
    }
}
