//! How riders talk about the subway.

use std::borrow::Cow;

use threadkeep::dialogue::{Mention, Utterance};
use threadkeep_transit::Station;
use threadkeep_transit::offline::{BoardTool, Speech};

use super::{conditions, lines};
use crate::system::{SUBWAY, network};

/// The names of New York.
pub(super) const SPEECH: Speech = Speech {
    system: SUBWAY,
    line_runs: lines::runs,
    exact_names: ferry_terminal,
    whole_name: name_of,
    line_words: &[],
    directions: conditions::directions,
    board: BoardTool { name: "get_train_arrivals", station: "station_name", direction: "direction" },
    example_station: "Jay St",
};

/// Finds "the ferry" or "the boat" used as a place: in a message about the Staten Island Railway it means the terminal at St
/// George, and in one about Manhattan that at South Ferry.
fn ferry_terminal(message: &Utterance) -> Vec<Mention> {
    const CUES: [&str; 8] = ["off", "from", "to", "toward", "towards", "at", "for", "the"];
    const RAILWAY: &str = "SIR";
    let is_ferry = |at: &usize| {
        matches!(message.word(*at), "ferry" | "boat")
            && CUES.contains(&message.word(at - 1))
            && !is_ferry_question(message.word(at + 1))
    };
    let Some(at) = (1..message.words().len()).find(is_ferry) else { return Vec::new() };
    let is_railway = |station: &&Station| station.lines.iter().any(|line| line == RAILWAY);
    let names = network().stations().iter().filter(is_railway).map(|station| Utterance::new(station.name.as_str()));
    let mut names = names.filter(|name| name.words().len() > 1);
    let is_named = names.any(|name| {
        let word = |start: usize, offset: usize| message.word(start + offset) == name.word(offset);
        (0..message.words().len()).any(|start| (0..name.words().len()).all(|offset| word(start, offset)))
    });
    let is_manhattan = (0..message.words().len()).any(|at| message.word(at) == "manhattan");
    let terminal = if is_named { "St George" } else { "staten island ferry" };
    let choice = SPEECH.choices_of(terminal, &[]).into_iter().next().filter(|_| is_named || is_manhattan);
    let end = if matches!(message.word(at + 1), "terminal" | "station") { at + 2 } else { at + 1 };
    choice.map(|choice| Mention::new(at..end, vec![choice])).into_iter().collect()
}

/// Whether a word after "ferry" asks about the boat.
fn is_ferry_question(word: &str) -> bool {
    matches!(word, "ticket" | "run" | "runs" | "leave" | "leaves" | "go" | "goes" | "schedule" | "times" | "cost")
}

/// Returns the name that a user means: "125" is 125 St, not the stop with the id 125.
fn name_of(text: &str) -> Cow<'_, str> {
    // The resolver ignores "line", so it would find High St, which is another place.
    if matches!(text, "high line" | "the high line") {
        return Cow::Borrowed("highline");
    }
    // A message's "u" is read as "you".
    let avenue = text.strip_suffix(" you").filter(|avenue| matches!(*avenue, "avenue" | "ave" | "av"));
    if let Some(avenue) = avenue {
        return Cow::Owned(format!("{avenue} u"));
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Cow::Owned(format!("{text} St")) } else { Cow::Borrowed(text) }
}

/// Corrects the spelling of a word.
pub(super) fn correct(message: &Utterance, at: usize) -> Option<String> {
    SPEECH.correct(message, at)
}

#[cfg(test)]
mod tests {
    use threadkeep::dialogue::Utterance;
    use threadkeep_transit::{Place, Resolution};

    use super::SPEECH;
    use crate::system::{names, network};

    fn found(text: &str) -> Vec<(String, usize)> {
        let message = Utterance::new(text);
        SPEECH
            .find_stations(&message)
            .into_iter()
            .map(|mention| (message.said(mention.words).to_owned(), mention.choices.len()))
            .collect()
    }

    #[test]
    fn find_separates_stations_from_other_words() {
        for (text, expected) in [
            ("how do i get from penn to yankee stadium", &[("penn", 1), ("yankee stadium", 1)][..]),
            (
                "Take me from 57th St and 7th Ave to Brighton Beach",
                &[("57th St and 7th Ave", 1), ("Brighton Beach", 1)],
            ),
            ("is it faster to get to hogwarts", &[("hogwarts", 1)]),
            ("what time is the next train", &[]),
            ("trains at 50th st", &[("50th st", 3)]),
            ("trains at Avenue U", &[("Avenue U", 3)]),
            ("the 5 between Wall St and 125", &[("Wall St", 1), ("125", 1)]),
            ("between penn and yankee stadium", &[("penn", 1), ("yankee stadium", 1)]),
            ("translate hello to spanish", &[]),
            ("get me home from astor pl", &[("home", 1), ("astor pl", 1)]),
        ] {
            let expected: Vec<(String, usize)> =
                expected.iter().map(|(name, choices)| ((*name).to_owned(), *choices)).collect();
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn text_of_every_place_resolves_to_it() {
        for station in network().stations() {
            let ids = network().stations_of(&station.complex).map(|station| station.id.clone()).collect();
            let text = SPEECH.text_of(&Place { complex: station.complex.clone(), stations: ids });
            let resolved = names().resolve(&text);
            assert!(
                matches!(&resolved, Resolution::Certain(found) if found.complex == station.complex),
                "{text}: {resolved:?}"
            );
        }
    }

    #[test]
    fn parse_preference_splits_name_and_value() {
        for (setting, expected) in [
            ("home station is jay st", Some(("home station", "Jay St-MetroTech"))),
            ("work station to union square", Some(("work station", "14 St-Union Sq"))),
            ("work is at wtc", Some(("work station", "World Trade Center"))),
            ("favorite line is the Q", Some(("favorite line", "Q"))),
            ("favourite line is the G btw", Some(("favorite line", "G"))),
            ("astor pl as my gym stop", Some(("gym stop", "Astor Pl"))),
            ("gym stop as 23rd st on the F", Some(("gym stop", "23 St (F M)"))),
            ("home station", None),
        ] {
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(SPEECH.parse_preference(setting), expected, "{setting}");
        }
    }
}
