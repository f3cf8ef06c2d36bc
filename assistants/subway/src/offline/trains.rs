//! Questions about one train of the last departure board: when it reaches a station, or which one the user can catch.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots};
use threadkeep_transit::offline::{AFTER, FIRST_THERE, away_from, lines_of, station, with_saved};

use super::boards::{TOWARDS, is_direction};
use super::speech::SPEECH;
use crate::direction::heading_of;
use crate::place::find;

/// The tool that lists the next trains.
const BOARD: &str = "get_train_arrivals";
/// The tool that knows how long a ride takes.
const ROUTE: &str = "get_route";
/// The slot in which an answer records the train that it reports.
pub(super) const REPORTED: &str = "reported_train";
/// Maximum number of lines whose trains are compared.
const MAX_LINES: usize = 3;

/// "If I catch the one in 2 minutes, when am I at Grand Central?"
pub(super) fn train_of_board() -> Intent {
    let towards = TOWARDS.iter().copied().filter(|cue| !matches!(*cue, "to" | "for"));
    let intent = Intent::new("train_of_board")
        .decided_by("train_question", |choice, follows| follows || choice.value == true)
        .excluded_by("ridetime")
        .alternatives("direction", "towards")
        .alternatives("direction", "to_station")
        .alternatives("towards", "to_station")
        .continued_by("route")
        .slot(
            Slot::optional("to_station", "station")
                .narrowed_by(|choices, slots| SPEECH.on_lines_or_connected(choices, slots, "station_name"))
                .narrowing_assumed(),
        )
        .slot(Slot::optional("station_name", "station").after(["from", "leaving"]).inherited_by(place_of_board))
        // Without a board that this could be about, the intent does not apply.
        .slot(Slot::required("board", "board").fresh().complemented_by(|slots| slots.get("station_name").cloned()))
        .slot(Slot::optional("lines", "lines").inherited_by(|board, own| of_same_board(board, own, "lines")))
        .slot(
            Slot::optional("direction", "direction").inherited_by(|board, own| of_same_board(board, own, "direction")),
        )
        .slot(
            Slot::optional("towards", "station")
                .after(towards)
                .opposite_by(away_from)
                .narrowed_by(|choices, slots| SPEECH.on_lines_or_connected(choices, slots, "station_name"))
                .narrowing_assumed()
                .inherited_by(|board, own| {
                    of_same_board(board, own, "towards")
                        .or_else(|| SPEECH.end_of_direct_trip(board, own, "station_name"))
                }),
        )
        .slot(Slot::optional("goal", "board").momentary().inherited_by(goal))
        .slot(Slot::optional("train", "train").momentary())
        .slot(Slot::optional("needed", "needed"))
        .slot(Slot::optional("earlier", "board").momentary().inherited_by(|board, _| board.get(REPORTED).cloned()));
    let intent = with_saved(intent, &["station_name", "to_station"]).then_calls(BOARD, board_arguments);
    let intent = (0..MAX_LINES)
        .fold(intent, |intent, number| intent.then_calls(ROUTE, move |outcome| ride_arguments(outcome, number)));
    intent.says(answer).records(REPORTED, reported).yields(line_of_train)
}

/// Returns the place of an earlier board or the start of a trip, if the station that the message names is on the way of its trains.
fn place_of_board(board: &Slots, own: &Slots) -> Option<Choice> {
    let here = board.get("station_name").or_else(|| board.get("from_station"))?;
    if let Some(to) = own.get("to_station") {
        let lines: Vec<String> = [own, board].iter().flat_map(|slots| lines_of(&slots.value("lines"))).collect();
        let heading = |direction: &str| {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let found = find(here.value.as_str()?, &lines).ok()?;
            heading_of(direction, &found.ids(), &lines).ok()
        };
        let asked =
            board.get("direction").or_else(|| board.get("towards")).and_then(|way| heading(way.value.as_str()?));
        let needed = heading(to.value.as_str()?);
        if needed.is_none() || asked.is_some() && asked != needed {
            return None;
        }
    }
    Some(Choice { others: Vec::new(), ..here.clone() })
}

/// Returns the value of a slot of an earlier question about the same station.
fn of_same_board(board: &Slots, own: &Slots, slot: &str) -> Option<Choice> {
    let here = board.get("station_name").or_else(|| board.get("from_station"))?;
    let is_same = own.get("station_name").is_some_and(|own| own.value == here.value);
    let is_replaced = matches!(slot, "direction" | "towards") && own.get("to_station").is_some();
    board.get(slot).filter(|_| is_same && !is_replaced).cloned()
}

/// Returns where an earlier question went, if trains of the lines go there without a change.
fn goal(board: &Slots, own: &Slots) -> Option<Choice> {
    let here = own.get("station_name")?;
    let is_free = own.get("to_station").is_none() && own.get("towards").is_none_or(|towards| goes_to(board, towards));
    let to =
        board.get("to_station").or_else(|| board.get("goal")).or_else(|| board.get("towards")).filter(|_| is_free)?;
    (to.value != here.value && ride_is_direct(here, to, &lines_of(&own.value("lines")))).then(|| to.clone())
}

fn goes_to(board: &Slots, towards: &Choice) -> bool {
    ["to_station", "goal", "towards"].iter().any(|slot| board.get(slot).is_some_and(|to| to.value == towards.value))
}

fn ride_is_direct(here: &Choice, to: &Choice, lines: &[String]) -> bool {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (Some(here), Some(to)) = (here.value.as_str(), to.value.as_str()) else { return false };
    find(here, &lines).is_ok_and(|found| heading_of(to, &found.ids(), &lines).is_ok())
}

/// Returns the station whose arrival time the answer gives: named in the message, or by an earlier question.
fn destination(outcome: &Outcome<'_>) -> Option<String> {
    let way = |place: &str| {
        let here = station(outcome, "station_name")?;
        heading(&json!({"station_name": here, "direction": place}))
    };
    let goal = || {
        let goal = station(outcome, "goal")?;
        // The goal of an earlier question is not on the way of trains to another place.
        let is_on_way = station(outcome, "towards").is_none_or(|towards| way(&towards) == way(&goal));
        is_on_way.then_some(goal)
    };
    station(outcome, "to_station").or_else(goal)
}

fn board_arguments(outcome: &Outcome<'_>) -> Option<Value> {
    let name = station(outcome, "station_name")?;
    let lines = meant_lines(outcome);
    let mut arguments = json!({"station_name": name});
    if let [line] = &lines[..] {
        arguments["line"] = json!(line);
    }
    let direction = outcome.slots().value("direction").as_str().map(str::to_owned);
    let towards = station(outcome, "towards");
    let direction = destination(outcome).or(direction).or(towards);
    if let Some(direction) = direction.filter(|direction| is_direction(direction, &arguments)) {
        arguments["direction"] = json!(direction);
    }
    Some(arguments)
}

/// A train of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    line: String,
    end: String,
    /// Minutes after midnight.
    at: i64,
    /// Minutes from now.
    wait: i64,
}

/// Reads the trains from the text of a board, soonest first.
fn rows(text: &str) -> Vec<Row> {
    let minutes = |clock: &str| {
        let (hours, minutes) = clock.get(..5)?.split_once(':')?;
        Some(hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?)
    };
    let now = text.lines().find_map(|row| minutes(row.split_once("(live, ")?.1));
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("- ")?.split_once(" to ")?;
        let (end, time) = rest.rsplit_once(" in ")?;
        let at = minutes(time.split_once(" (")?.1)?;
        let wait = time.split(' ').next()?.parse().unwrap_or(0);
        Some(Row { line: name.to_owned(), end: end.to_owned(), at, wait })
    };
    let mut rows: Vec<Row> = text.lines().filter_map(row).collect();
    // The board of each direction is sorted; a train after midnight has a smaller time.
    rows.sort_by_key(|row| now.map_or(row.wait, |now| (row.at - now).rem_euclid(24 * 60)));
    rows
}

/// Returns the lines that the question is about; empty if it is about all. One line is not compared with itself.
fn meant_lines(outcome: &Outcome<'_>) -> Vec<String> {
    let lines = lines_of(&outcome.slots().value("lines"));
    if lines.len() == 1 && outcome.slots().value("train") == FIRST_THERE { Vec::new() } else { lines }
}

fn board_text(outcome: &Outcome<'_>) -> String {
    outcome.result(BOARD).as_str().unwrap_or_default().to_owned()
}

fn rows_of(outcome: &Outcome<'_>) -> Vec<Row> {
    let lines = meant_lines(outcome);
    let is_meant = |row: &Row| lines.is_empty() || lines.contains(&row.line);
    rows(&board_text(outcome)).into_iter().filter(is_meant).collect()
}

/// The train that the message means, and its place on the board.
fn chosen(outcome: &Outcome<'_>) -> Option<(usize, Row)> {
    let rows = rows_of(outcome);
    let train = outcome.slots().value("train");
    let earlier = earlier_train(outcome);
    let position = match &train {
        Value::String(reference) if reference == AFTER => match earlier {
            Some(at) => rows.iter().position(|row| is_later(row.at, at))?,
            None => 1,
        },
        Value::Object(train) => {
            match (train.get("nth").and_then(Value::as_u64), train.get("in").and_then(Value::as_i64)) {
                (Some(nth), _) => usize::try_from(nth).ok()?.checked_sub(1)?,
                (None, Some(minutes)) => {
                    const TOLERANCE: i64 = 1;
                    rows.iter()
                        .position(|row| (row.wait - minutes).abs() == 0)
                        .or_else(|| rows.iter().position(|row| (row.wait - minutes).abs() <= TOLERANCE))?
                }
                _ => 0,
            }
        }
        _ => match (needed(outcome), earlier) {
            (Some(minutes), _) => rows.iter().position(|row| row.wait >= minutes)?,
            (None, Some(at)) => rows.iter().position(|row| row.at == at || is_later(row.at, at))?,
            (None, None) => 0,
        },
    };
    Some((position, rows.get(position)?.clone()))
}

/// Whether a time of day is later than another one, within half a day.
fn is_later(one: i64, other: i64) -> bool {
    (1..12 * 60).contains(&(one - other).rem_euclid(24 * 60))
}

/// The minutes that the user needs to the platform.
fn needed(outcome: &Outcome<'_>) -> Option<i64> {
    outcome.slots().value("needed").as_i64()
}

/// Returns the time of the train that the last answer reported, if it is a train of the same board.
fn earlier_train(outcome: &Outcome<'_>) -> Option<i64> {
    let reported = outcome.slots().value("earlier");
    let name = station(outcome, "station_name")?;
    let way = heading_in(outcome);
    let is_same = reported["station_name"] == name
        && (way.is_none() || reported["direction"].is_null() || reported["heading"] == json!(way));
    reported["at"].as_i64().filter(|_| is_same)
}

/// Returns the heading of the trains of the board in this turn.
fn heading_in(outcome: &Outcome<'_>) -> Option<String> {
    let call = outcome.exchanges().iter().rev().find(|exchange| exchange.call.name == BOARD)?;
    heading(&call.arguments())
}

fn heading(arguments: &Value) -> Option<String> {
    let lines: Vec<&str> = arguments["line"].as_str().into_iter().collect();
    let found = find(arguments["station_name"].as_str()?, &lines).ok()?;
    heading_of(arguments["direction"].as_str()?, &found.ids(), &lines).ok()
}

/// Records which train an answer reports, so that "that one" and "the one after" mean it and the next one.
fn reported(outcome: &Outcome<'_>) -> Option<Choice> {
    let (_, row) = chosen(outcome)?;
    Some(reported_train(outcome, &row))
}

/// Makes the line of the train available to follow-ups such as "does that one stop at …?"
fn line_of_train(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let row = chosen(outcome).map(|(_, row)| row);
    row.map(|row| ("lines".to_owned(), Choice::new(json!([row.line]), row.line.as_str()))).into_iter().collect()
}

fn reported_train(outcome: &Outcome<'_>, row: &Row) -> Choice {
    let call = outcome.exchanges().iter().rev().find(|exchange| exchange.call.name == BOARD);
    let arguments = call.map(threadkeep::dialogue::Exchange::arguments).unwrap_or_default();
    let value = json!({
        "at": row.at,
        "station_name": arguments["station_name"],
        "direction": arguments["direction"],
        "heading": heading(&arguments),
    });
    Choice::new(value, "the train")
}

/// Records the first train of a board, or the one for which the user asked.
pub(super) fn first_reported(outcome: &Outcome<'_>) -> Option<Choice> {
    let row = nth_row(outcome)?;
    Some(reported_train(outcome, &row))
}

fn nth_row(outcome: &Outcome<'_>) -> Option<Row> {
    let nth = outcome.slots().value("train")["nth"].as_u64().unwrap_or(1);
    rows_of(outcome).into_iter().nth(usize::try_from(nth).ok()?.checked_sub(1)?)
}

/// Says when the train leaves for which a follow-up to a board asks: "and the second one?"
pub(super) fn nth_train(outcome: &Outcome<'_>) -> Option<String> {
    outcome.slots().get("train")?;
    let row = nth_row(outcome)?;
    Some(format!("That is the {} to {} in {}.", row.line, row.end, time(&row)))
}

fn ride_arguments(outcome: &Outcome<'_>, number: usize) -> Option<Value> {
    let (from, to) = (station(outcome, "station_name")?, destination(outcome)?);
    let line = match outcome.slots().value("train") == FIRST_THERE {
        true => distinct_lines(&rows_of(outcome)).into_iter().nth(number)?,
        false => chosen(outcome).filter(|_| number == 0)?.1.line,
    };
    Some(json!({"from_station": from, "to_station": to, "only_lines": line}))
}

fn distinct_lines(rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        if !lines.contains(&row.line) {
            lines.push(row.line.clone());
        }
    }
    lines
}

/// Returns the minutes of the ride on a line, from the text of the route without changes.
fn ride_minutes(outcome: &Outcome<'_>, line: &str) -> Option<(i64, String)> {
    let route = outcome
        .exchanges()
        .iter()
        .find(|exchange| exchange.call.name == ROUTE && exchange.arguments()["only_lines"].as_str() == Some(line))?;
    let value = route.value();
    let text = value.as_str()?;
    let row = text.lines().find(|row| row.contains(": about ") && row.contains(", no changes"))?;
    let minutes = row.split_once(": about ")?.1.split(' ').next()?.parse().ok()?;
    Some((minutes, text.to_owned()))
}

fn clock(minutes: i64) -> String {
    let minutes = minutes.rem_euclid(24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

fn time(row: &Row) -> String {
    format!("{} min ({})", row.wait, clock(row.at))
}

fn answer(outcome: &Outcome<'_>) -> String {
    if let Some(missing) = SPEECH.missing(outcome, &["station_name", "to_station"]) {
        return missing;
    }
    let board = board_text(outcome);
    let rows = rows_of(outcome);
    if rows.is_empty() {
        return board;
    }
    if outcome.slots().value("train") == FIRST_THERE {
        return first_there(outcome, &rows);
    }
    let here = outcome.slots().label("station_name");
    let Some((position, row)) = chosen(outcome) else {
        let last = rows.last().map(time).unwrap_or_default();
        let reason = match needed(outcome) {
            Some(minutes) if outcome.slots().get("train").is_none() => format!("in {minutes} min or later"),
            _ => "that fits".to_owned(),
        };
        return format!("No train {reason} is announced at {here} yet: the last one announced is in {last}.\n{board}");
    };
    let name = format!("{} to {}", row.line, row.end);
    let mut sentences = match needed(outcome).filter(|_| outcome.slots().get("train").is_none()) {
        Some(minutes) => {
            vec![format!("If you need {minutes} min, you can catch the {name} that leaves {here} in {}.", time(&row))]
        }
        None => vec![format!("The {name} leaves {here} in {}.", time(&row))],
    };
    let late = needed(outcome).filter(|minutes| row.wait < *minutes && outcome.slots().get("train").is_some());
    if let Some(minutes) = late {
        sentences.push(format!("You need {minutes} min, so you would miss it."));
    }
    if let Some(to) = destination(outcome) {
        match ride_minutes(outcome, &row.line) {
            Some((minutes, text)) => {
                sentences.push(format!(
                    "The ride to {to} takes about {minutes} min, so you are there at about {}, {} min from now.",
                    clock(row.at + minutes),
                    row.wait + minutes
                ));
                sentences.push(source(&text).to_owned());
            }
            None => sentences.push(format!("It does not go to {to}, so I cannot say when you are there.")),
        }
    }
    if let Some(next) = rows.iter().skip(position + 1).find(|next| next.end == row.end || next.line == row.line) {
        sentences.push(format!("The next one after it: the {} in {}.", next.line, time(next)));
    }
    let notes = board.lines().filter(|line| line.starts_with("I took ") || line.starts_with("Live times"));
    [sentences.join(" ")].into_iter().chain(notes.map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

/// Says where the times come from.
fn source(route: &str) -> &'static str {
    if route.contains("estimates") {
        "The departure is live, the ride is an estimate."
    } else {
        "The departure is live."
    }
}

/// Says which of the next trains of several lines arrives first.
fn first_there(outcome: &Outcome<'_>, rows: &[Row]) -> String {
    let Some(to) = destination(outcome) else { return board_text(outcome) };
    let first = |line: &String| rows.iter().find(|row| row.line == *line);
    let timed = distinct_lines(rows).into_iter().filter_map(|line| {
        let (minutes, text) = ride_minutes(outcome, &line)?;
        Some((first(&line)?.clone(), minutes, text))
    });
    let mut timed: Vec<(Row, i64, String)> = timed.collect();
    timed.sort_by_key(|(row, minutes, _)| row.wait + minutes);
    let Some((best, _, text)) = timed.first() else { return board_text(outcome) };
    let options = timed.iter().map(|(row, minutes, _)| {
        format!("- {}: leaves in {}, and is at {to} at about {}.", row.line, time(row), clock(row.at + minutes))
    });
    let head = format!("The {} gets you to {to} first:", best.line);
    [head].into_iter().chain(options).chain([source(text).to_owned()]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use threadkeep::dialogue::Utterance;

    use super::*;

    fn train(text: &str) -> Option<String> {
        SPEECH.find_train(&Utterance::new(text)).first().map(|found| found.choices[0].value.to_string())
    }

    fn asks(text: &str) -> Option<bool> {
        SPEECH.find_train_question(&Utterance::new(text)).first().and_then(|found| found.choices[0].value.as_bool())
    }

    #[test]
    fn a_train_of_the_board_is_recognised() {
        for (text, expected) in [
            ("if I take the one in 7 min, when am I at Canal St?", r#"{"in":7}"#),
            ("suppose I catch the third, when do I reach Bowling Green", r#"{"nth":3}"#),
            ("what if I miss the first one?", r#"{"nth":2}"#),
            ("and if we miss it?", r#""after""#),
            ("when does the second one get to Chambers St", r#"{"nth":2}"#),
            ("which gets me to Canal St sooner?", r#""first there""#),
        ] {
            assert_eq!(train(text).as_deref(), Some(expected), "{text}");
            assert_eq!(asks(text), Some(true), "{text}");
        }
        assert_eq!(train("and the third one?").as_deref(), Some(r#"{"nth":3}"#));
        assert_eq!(asks("and the third one?"), Some(false));
        assert_eq!(asks("when would that one be at Bedford Av"), Some(true));
        for text in [
            "if I take the next G, how long will I wait for the L?",
            "should I take the next one or wait for the 4?",
            "when is the next train at Astor Pl",
            "take the second street",
            "which train goes to Canal St",
        ] {
            assert_eq!(asks(text), None, "{text}");
        }
    }

    #[test]
    fn minutes_to_the_platform_are_recognised() {
        let needed = |text: &str| {
            let found = SPEECH.find_needed(&Utterance::new(text));
            Some((found.first()?.choices[0].value.as_i64()?, asks(text)?))
        };
        assert_eq!(needed("it takes me 6 minutes to walk to the platform"), Some((6, true)));
        assert_eq!(needed("and if I need ten?"), Some((10, false)));
        assert_eq!(needed("half an hour?"), Some((30, false)));
        assert_eq!(needed("is there one in 5 minutes"), None);
        assert_eq!(needed("how long is the wait"), None);
    }

    #[test]
    fn the_trains_of_a_board_are_read_in_order() {
        let text = "Next trains of the L at Bedford Av (live, 23:58):\nManhattan:\n- L to 8 Av in 3 min (00:01)\n\
                    Brooklyn:\n- L to Canarsie-Rockaway Pkwy in less than a minute (23:58; not moving at present)";
        let found: Vec<(String, i64, i64)> = rows(text).into_iter().map(|row| (row.end, row.at, row.wait)).collect();
        assert_eq!(found, [("Canarsie-Rockaway Pkwy".to_owned(), 1438, 0), ("8 Av".to_owned(), 1, 3)]);
        assert!(is_later(1, 1438) && !is_later(1438, 1));
    }
}
