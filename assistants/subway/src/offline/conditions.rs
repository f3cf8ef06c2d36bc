//! Recognises directions in a message.

use threadkeep::dialogue::{Choice, Mention, Utterance};

/// Directions on signs, with the word for the opposite.
const DIRECTIONS: [(&str, &str); 8] = [
    ("inbound", "outbound"),
    ("outbound", "inbound"),
    ("uptown", "downtown"),
    ("downtown", "uptown"),
    ("northbound", "southbound"),
    ("southbound", "northbound"),
    ("eastbound", "westbound"),
    ("westbound", "eastbound"),
];

/// Areas that directions are named after.
const BOROUGHS: [&str; 6] = ["manhattan", "brooklyn", "bronx", "queens", "staten island", "city"];

/// Finds directions: "uptown", "Queens-bound", "toward Manhattan".
pub(super) fn directions(message: &Utterance) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for at in 0..message.words().len() {
        if found.last().is_none_or(|last| last.words.end <= at) {
            found.extend(direction_at(message, at));
        }
    }
    found
}

fn direction_at(message: &Utterance, at: usize) -> Option<Mention> {
    if let Some((word, opposite)) = DIRECTIONS.iter().find(|(word, _)| *word == message.word(at)) {
        return Some(Mention::new(at..at + 1, vec![Choice::new(*word, *word).opposite_of(*opposite, *opposite)]));
    }
    let is_after_cue = matches!(message.word(at), "toward" | "towards" | "into" | "to" | "for");
    let start = if is_after_cue { at + 1 } else { at };
    let start = if message.word(start) == "the" { start + 1 } else { start };
    let length = BOROUGHS.iter().find_map(|borough| {
        let count = borough.split(' ').count();
        borough.split(' ').enumerate().all(|(i, word)| message.word(start + i) == word).then_some(count)
    })?;
    let name = start..start + length;
    let is_bound = message.word(name.end) == "bound";
    if !is_after_cue && !is_bound {
        return None;
    }
    // "New York City" is no direction.
    if message.word(name.start) == "city"
        && (message.word(name.start - 1) == "york" || message.word(name.end) == "hall")
    {
        return None;
    }
    let said = message.word(name.start);
    let said = if said == "city" {
        "manhattan"
    } else if length == 1 {
        said
    } else {
        message.said(name.clone())
    };
    let (name, end) = (said, if is_bound { name.end + 1 } else { name.end });
    let away = format!("away from {name}");
    Some(Mention::new(at..end, vec![Choice::new(name, name).opposite_of(away.as_str(), away.as_str())]))
}
