//! Questions with a wrong premise, or about names: lines that do not exist, and stations that share a name.

use serde_json::json;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};
use threadkeep_transit::Place;
use threadkeep_transit::offline::{ENDS, lines_of, station, with_saved};

use super::corridor::places;
use super::speech::SPEECH;
use crate::place::view_of;
use crate::system::network;

/// Finds a letter or a digit that is called a train but names no line: "the K train".
pub(super) fn find_unknown_line(message: &Utterance) -> Vec<Mention> {
    let is_unknown = |at: &usize| {
        // "K" is an abbreviation of "ok" otherwise.
        let word = message.said(*at..*at + 1).to_lowercase();
        let word = word.as_str();
        let is_sign = word.len() == 1 && !matches!(word, "a" | "i" | "s" | "h");
        let is_known = network().lines().iter().any(|line| line.name.eq_ignore_ascii_case(word));
        let before = at.checked_sub(1).map_or("", |at| message.word(at));
        let is_named = matches!(message.word(at + 1), "train" | "trains" | "line");
        is_sign && !is_known && is_named && matches!(before, "the" | "next" | "a" | "any" | "uptown" | "downtown")
    };
    let found = (0..message.words().len()).find(is_unknown).into_iter();
    found
        .map(|at| {
            let name = message.said(at..at + 1);
            Mention::new(at..at + 2, vec![Choice::new(name.to_uppercase(), name)])
        })
        .collect()
}

/// Refuses a question about a line that does not exist, instead of answering it for another one.
pub(super) fn unknown_line() -> Intent {
    Intent::new("unknown_line")
        .decided_by("unknown_line", |_, _| true)
        .slot(Slot::required("name", "unknown_line").fresh())
        .slot(Slot::optional("from_station", "station").after(["from", "at"]))
        .slot(Slot::optional("to_station", "station"))
        .slot(Slot::optional("lines", "lines"))
        .slot(Slot::optional("direction", "direction"))
        .says(|outcome| {
            let mut names: Vec<&str> = network().lines().iter().map(|line| line.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let name = outcome.slots().value("name").as_str().unwrap_or_default().to_owned();
            format!(
                "There is no {name} train on the subway: I do not know that line. The lines are {}.",
                names.join(" ")
            )
        })
}

/// Finds words that ask whether names mean one station: "one and the same", "separate stations".
pub(super) fn find_sameness(message: &Utterance) -> Vec<Mention> {
    const PHRASES: [&[&str]; 17] = [
        &["connected", "with"],
        &["connected", "to"],
        &["inside", "the", "station"],
        &["separate", "station"],
        &["same", "complex"],
        &["one", "complex"],
        &["without", "leaving"],
        &["without", "exiting"],
        &["without", "going", "outside"],
        &["one", "station"],
        &["same", "station"],
        &["same", "subway", "station"],
        &["same", "stop"],
        &["separate", "stations"],
        &["different", "stations"],
        &["two", "stations"],
        &["one", "and", "the", "same"],
    ];
    let count = message.words().len();
    let asks = (0..2).any(|at| matches!(message.word(at), "is" | "are" | "can" | "could"));
    let is_here = |at: usize| {
        PHRASES.iter().any(|phrase| phrase.iter().enumerate().all(|(i, word)| message.word(at + i) == *word))
    };
    let at = (0..count).find(|at| is_here(*at)).filter(|_| asks);
    // "Are they one station" has nothing to compare.
    let is_about = || !SPEECH.find_stations(message).is_empty() || !SPEECH.find_lines(message).is_empty();
    let at = at.filter(|_| is_about());
    at.map(|at| Mention::incidental(at..at + 1, vec![Choice::new(true, message.word(at))])).into_iter().collect()
}

/// "Are the 1 and the A at Penn one station?"
pub(super) fn same_station() -> Intent {
    let intent = Intent::new("same_station")
        .decided_by("sameness", |_, _| true)
        // Without these words, the intent does not apply.
        .slot(Slot::required("sameness", "sameness").fresh().momentary())
        .slot(
            Slot::required("from_station", "station")
                .carried_from("station_name")
                .carried_from("station")
                .asks("At which station?"),
        )
        // "Is that the same station as 86th on the 6?"
        .slot(Slot::optional("to_station", "station").after(["as"]))
        .slot(Slot::optional("rivals", "rivals"))
        .slot(Slot::optional("lines", "lines"))
        // "From the L to the 4": the value of each mention has all lines.
        .slot(Slot::optional("other_lines", "lines"));
    with_saved(intent, &ENDS)
        .then_calls("get_station_info", |outcome| Some(json!({"station": station(outcome, "from_station")?})))
        .says(whether_same)
}

fn whether_same(outcome: &Outcome<'_>) -> String {
    let choices = |slot: &str| {
        outcome.slots().get(slot).map(|choice| {
            let all = std::iter::once(choice).chain(&choice.others);
            all.filter_map(|choice| places(choice.value.as_str()?).into_iter().next()).collect::<Vec<Place>>()
        })
    };
    let first = choices("from_station").unwrap_or_default();
    let mut meant: Vec<Place> = match choices("to_station") {
        Some(second) => first.into_iter().take(1).chain(second.into_iter().take(1)).collect(),
        None => first,
    };
    meant.dedup_by(|one, other| one.complex == other.complex);
    let names: Vec<String> = meant
        .iter()
        .map(|place| {
            let view = view_of(place);
            format!("{} ({})", view.name, view.lines.join(" "))
        })
        .collect();
    let lines = lines_of(&outcome.slots().value("lines"));
    match (&names[..], &meant[..]) {
        ([], _) => "I do not know these stations.".to_owned(),
        ([_], [place]) if !lines.is_empty() => whether_in_complex(&lines, place),
        ([one], _) => format!("Yes, it is one station: {one}."),
        (several, _) => format!("No, they are separate stations: {}.", several.join(" and ")),
    }
}

/// Says which of the lines stop in the complex of a place, where riders change without leaving it.
fn whether_in_complex(lines: &[String], place: &Place) -> String {
    let stop_of = |line: &String| {
        network()
            .stations_of(&place.complex)
            .find(|station| station.lines.contains(line))
            .map(|stop| stop.name.as_str())
    };
    let here = view_of(place).name;
    let missing: Vec<&str> = lines.iter().filter(|line| stop_of(line).is_none()).map(String::as_str).collect();
    if !missing.is_empty() {
        return format!("No, the {} does not stop in the same complex as {here}.", missing.join(" and the "));
    }
    let stops: Vec<String> =
        lines.iter().filter_map(|line| Some(format!("the {line} at {}", stop_of(line)?))).collect();
    format!("Yes, it is one complex, with passages between the platforms: {}.", stops.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_exist_are_recognised() {
        let found = |text: &str| {
            find_unknown_line(&Utterance::new(text)).first().map(|found| found.choices[0].value.to_string())
        };
        assert_eq!(found("next P train at Canal St").as_deref(), Some("\"P\""));
        for text in ["the C train", "is there a train at Canal", "take the 7 line", "i train at the gym"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn questions_about_one_station_are_recognised() {
        let asks = |text: &str| !find_sameness(&Utterance::new(text)).is_empty();
        assert!(asks("is Canal St on the 6 the same station as Canal St on the A?"));
        assert!(asks("is the E in the same complex?"));
        assert!(asks("can we get from the J to the 6 without going outside?"));
        assert!(!asks("get to Canal St without leaving the bike behind"));
        assert!(!asks("next train from the same station"));
    }
}
