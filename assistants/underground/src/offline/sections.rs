//! Whether a station is on a section of a line that TfL names: "no service between Wembley Park and Stanmore".

use threadkeep::dialogue::{Extractor as _, Utterance};

use super::SPEECH;
use crate::network::{gazetteer, network};

/// Says whether a station is on the sections that the state of its line names; `None` if it names none, or the line does not stop there.
pub(super) fn place_on_sections(line: &str, station: &str, text: &str) -> Option<String> {
    let sections = sections(text);
    let here = ids(station);
    if sections.is_empty() || !here.iter().any(|id| network().calls_at(line, id)) {
        return None;
    }
    let section = sections.iter().find(|(from, to)| here.iter().any(|here| is_between(line, here, from, to)));
    Some(match (section, &sections[..]) {
        (Some((from, to)), _) => format!("{station} is affected: it is on the section between {from} and {to}."),
        (None, [(from, to)]) => {
            format!("{station} is on the rest of the line, outside the section between {from} and {to}.")
        }
        (None, _) => format!("{station} is on the rest of the line, outside these sections."),
    })
}

/// Returns the ends of the sections that a text names.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for rest in text.split("between ").skip(1) {
        let message = Utterance::new(rest);
        let places = gazetteer().find(&message);
        if let [first, second, ..] = &places[..]
            && first.words.start == 0
            && second.words.start == first.words.end + 1
            && message.word(first.words.end) == "and"
        {
            let name = |words: std::ops::Range<usize>| message.said(words).to_owned();
            let section = (name(first.words.clone()), name(second.words.clone()));
            if !found.contains(&section) {
                found.push(section);
            }
        }
    }
    found
}

fn ids(name: &str) -> Vec<String> {
    SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect()
}

/// Whether trains of a line pass a station on the way from one place to another, or start or end there.
fn is_between(line: &str, here: &String, from: &str, to: &str) -> bool {
    let (from, to) = (ids(from), ids(to));
    let passes = |from: &String, to: &String| {
        let ride = network().ride(line, from, to);
        ride.is_some_and(|ride| ride.stations.iter().any(|station| station.id == *here))
    };
    from.iter().any(|from| to.iter().any(|to| passes(from, to) || passes(to, from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_are_on_the_sections_of_a_state_or_not() {
        let text = "Victoria Line: No service between Seven Sisters and Walthamstow Central due to flooding. Good service elsewhere.";
        let says = |station: &str| place_on_sections("victoria", station, text).unwrap_or_default();
        assert!(says("Blackhorse Road").starts_with("Blackhorse Road is affected"));
        assert!(
            says("Brixton")
                .contains("rest of the line, outside the section between Seven Sisters and Walthamstow Central")
        );
        assert_eq!(says("Bank"), "");
        assert_eq!(place_on_sections("victoria", "Brixton", "Severe delays due to a fire at Oval."), None);
    }
}
