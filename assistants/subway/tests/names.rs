//! Two hundred ways to name a station. Every third one was held out while the name resolution was tuned.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use threadkeep_subway::{names, network};
use threadkeep_transit::{Place, Resolution};

/// Names, each with the station ids to which it refers. After a question mark: the ids from which the user must choose.
const CASES: &str = include_str!("names/ways.tsv");

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    /// Ambiguous, with the right place among the choices.
    PrepareRequest,
    /// Neither resolved to the right place nor ambiguous with it among the choices.
    Missed,
    /// Resolved to another place without stating an assumption.
    SilentlyWrong,
}

fn judge(text: &str, expected: &str) -> Verdict {
    let is_open = expected.starts_with('?');
    let ids: Vec<&str> = expected.trim_start_matches('?').split_whitespace().collect();
    assert!(ids.iter().all(|id| network().find_station(id).is_some()), "{text}: {expected}");
    let is_expected = |place: &Place| ids.iter().any(|id| place.stations.iter().any(|station| station == id));
    match names().resolve(text) {
        Resolution::Certain(place) if is_expected(&place) && !is_open => Verdict::Right,
        Resolution::Certain(_) => Verdict::SilentlyWrong,
        Resolution::Assumed { taken, .. } if is_expected(&taken) => Verdict::Right,
        Resolution::Several(places) if places.iter().any(is_expected) => Verdict::PrepareRequest,
        _ => Verdict::Missed,
    }
}

fn judged(is_chosen: impl Fn(usize) -> bool) -> Vec<(&'static str, &'static str, Verdict)> {
    let cases = CASES.lines().enumerate().filter(|(number, _)| is_chosen(*number));
    let split = cases.map(|(_, line)| line.split_once('\t').unwrap());
    split.map(|(text, expected)| (text, expected, judge(text, expected))).collect()
}

fn check(judged: &[(&str, &str, Verdict)]) {
    let wrong: Vec<_> =
        judged.iter().filter(|(.., verdict)| matches!(verdict, Verdict::Missed | Verdict::SilentlyWrong)).collect();
    let details: Vec<_> = wrong.iter().map(|(text, expected, _)| (text, expected, names().resolve(text))).collect();
    assert!(!judged.iter().any(|(.., verdict)| *verdict == Verdict::SilentlyWrong), "{details:#?}");
    assert!(wrong.len() * 100 <= judged.len() * 3, "{} of {} are wrong: {details:#?}", wrong.len(), judged.len());
}

#[test]
fn qualifiers_take_precedence_over_aliases() {
    let stations = |text: &str| match names().resolve(text) {
        Resolution::Certain(place) | Resolution::Assumed { taken: place, .. } => place.stations,
        other => panic!("{text}: {other:?}"),
    };
    // S2.24, S2.25
    assert_eq!(stations("14th st")[0], "635");
    assert_eq!(stations("14th St on the 1"), ["132"]);
    assert_eq!(stations("96th st lexington"), ["625"]);
    assert_eq!(stations("Avenue J"), ["D33"]);
    assert_eq!(stations("avenue u on the N"), ["N09"]);
    assert_eq!(stations("127")[0], "127", "an id is also a name");
    assert!(matches!(names().resolve("14th st"), Resolution::Assumed { others, .. } if others.len() == 2));
    assert!(matches!(names().resolve("96 St on the 4"), Resolution::NotOnLine { lines, .. } if lines == ["4"]));
    assert_eq!(names().resolve("the moon"), Resolution::Unknown);
    assert_eq!(names().resolve(""), Resolution::Unknown);
}

#[test]
fn names_resolve_to_the_right_station() {
    check(&judged(|number| number % 3 != 2));
}

#[test]
fn held_out_names_resolve_to_the_right_station() {
    check(&judged(|number| number % 3 == 2));
}
