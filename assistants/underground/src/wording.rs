//! The text of answers about London.

use jiff::Timestamp;
use threadkeep_transit::wording::{assumption, join_lines, join_with_and, place, time_until, with_lines};

use crate::arrivals::{ArrivalsAnswer, Train};
use crate::network::{LONDON, lines_text};
use crate::services::{Service, TIMETABLE_DATE, night_lines};
use crate::station::{LineStations, StationInfo, TrainTimes};
use crate::status::{LineStatusView, StatusAnswer};

/// The text for answers without live data because TfL cannot be reached.
pub(crate) const UNREACHABLE: &str = "I cannot get live data: TfL's service cannot be reached at the moment.";
/// Maximum number of trains per platform in the text; the data has more.
const MAX_TRAINS_PER_PLATFORM: usize = 4;

/// Formats the status of lines.
pub(crate) fn status(answer: &StatusAnswer) -> String {
    let (good, bad): (Vec<&LineStatusView>, Vec<&LineStatusView>) =
        answer.statuses.iter().partition(|status| status.is_good);
    if answer.statuses.is_empty() {
        return "TfL gives no status for that now.".to_owned();
    }
    if !answer.is_network {
        return join_lines(answer.statuses.iter().map(|status| Some(line_status(status))));
    }
    let head = match bad.len() {
        0 => "Good service on all lines.".to_owned(),
        _ if good.is_empty() => "No line has a good service now.".to_owned(),
        _ => format!("Good service on {} lines; these have problems:", good.len()),
    };
    let planned = good.iter().filter(|status| !status.planned.is_empty()).map(|status| status.name.as_str());
    let planned: Vec<&str> = planned.collect();
    let planned = (!planned.is_empty()).then(|| format!("Works are planned on the {}.", join_with_and(&planned)));
    join_lines([Some(head)].into_iter().chain(bad.iter().map(|status| Some(line_status(status)))).chain([planned]))
}

/// Formats the status of a line with its reasons, and what is planned.
fn line_status(status: &LineStatusView) -> String {
    let closed = status.is_good && status.headline == "Service Closed";
    let headline = match status.is_good {
        _ if closed => "closed for the night, as usual".to_owned(),
        true if status.reasons.is_empty() => "good service".to_owned(),
        _ => status.headline.to_lowercase(),
    };
    let reasons = status.reasons.iter().map(|reason| format!(" {reason}")).collect::<String>();
    let planned = status.planned.iter().map(|reason| format!("\n  Planned, not now: {reason}")).collect::<String>();
    format!("{}: {headline}.{reasons}{planned}", status.name)
}

/// Formats the last known status, for when TfL cannot be reached.
pub(crate) fn status_unreachable(last: Option<&StatusAnswer>) -> String {
    let Some(last) = last.filter(|last| !last.statuses.is_empty()) else {
        return format!("{UNREACHABLE} I do not know the status and will not guess. See tfl.gov.uk/status.");
    };
    let at = last.as_of.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    let at = at.map(|at| at.to_zoned((LONDON.zone)()).strftime("%-d %B at %H:%M").to_string()).unwrap_or_default();
    let lines: Vec<String> = last.statuses.iter().map(line_status).collect();
    format!("{UNREACHABLE} When I last knew it, on {at}:\n{}", lines.join("\n"))
}

/// Formats the next trains at a station.
pub(crate) fn arrivals(answer: &ArrivalsAnswer, now: Timestamp) -> String {
    let what = answer.line.as_ref().map_or_else(String::new, |line| format!(" of the {}", LONDON.line_name(line)));
    let towards = answer.towards.as_ref().map_or_else(String::new, |towards| {
        let is_direction = towards.ends_with("bound") || towards.contains("bound via ");
        match is_direction {
            true => format!(", {towards}"),
            false if towards.starts_with("via ") => format!(" {towards}"),
            false => format!(" towards {towards}"),
        }
    });
    let station = place(&LONDON, &answer.station);
    let assumed = answer.assumption.as_ref().map(|assumed| assumption(&LONDON, assumed));
    if answer.trains.is_empty() {
        let none = match answer.is_live {
            true => format!("No train{what}{towards} is announced at {station} now."),
            false => format!("{UNREACHABLE} So I do not know the next trains{what} at {station}."),
        };
        return join_lines([Some(none), assumed]);
    }
    let head = format!("Next trains{what} at {station}{towards} (live, {}):", LONDON.clock(now));
    let mut platforms: Vec<(&str, Vec<&Train>)> = Vec::new();
    for train in &answer.trains {
        match platforms.iter_mut().find(|(platform, _)| *platform == train.platform) {
            Some((_, trains)) => trains.push(train),
            None => platforms.push((&train.platform, vec![train])),
        }
    }
    let boards = platforms.iter().map(|(platform, trains)| {
        let lines: Vec<String> = trains.iter().take(MAX_TRAINS_PER_PLATFORM).map(|train| train_text(train)).collect();
        let platform = if platform.is_empty() { "Platform not announced" } else { platform };
        Some(format!("{platform}:\n{}", lines.join("\n")))
    });
    join_lines([Some(head)].into_iter().chain(boards).chain([assumed]))
}

fn train_text(train: &Train) -> String {
    let via = train.via.as_ref().map_or_else(String::new, |via| format!(" via {via}"));
    format!("- {} to {}{via} {} ({})", train.line, train.destination, time_until(train.minutes), train.clock)
}

/// Formats what is known about a station.
pub(crate) fn station_info(info: &StationInfo) -> String {
    let head = format!("{}, {}: {}.", info.station.name, info.station.area, lines_text(&info.station.lines));
    let access = match (info.step_free.as_slice(), info.with_steps.as_slice()) {
        ([], _) => "It has no step-free access from street to platform.".to_owned(),
        (_, []) => "It has step-free access from street to all platforms.".to_owned(),
        (with, without) => format!(
            "It has step-free access from street to platform for the {}, but not for the {}.",
            lines_text(with),
            lines_text(without)
        ),
    };
    let disruptions = match &info.disruptions {
        None => Some("I cannot check whether lifts work now: TfL's service cannot be reached.".to_owned()),
        Some(all) if all.is_empty() => Some("No disruption is reported there now.".to_owned()),
        Some(all) => Some(format!("Reported there now: {}", all.join(" "))),
    };
    let assumed = info.assumption.as_ref().map(|assumed| assumption(&LONDON, assumed));
    join_lines([Some(head), Some(access), disruptions, assumed])
}

/// Formats the stations of a line.
pub(crate) fn line_stations(line: &LineStations) -> String {
    threadkeep_transit::wording::line_stations(&LONDON, &line.line, std::slice::from_ref(&line.stations))
}

/// What a question about train times asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimesAspect {
    First,
    Last,
    Frequency,
    Night,
}

/// Formats first or last trains, or trains per hour.
pub(crate) fn train_times(times: &TrainTimes, aspect: TimesAspect) -> String {
    let station = with_lines(&LONDON, &times.station);
    let head = match aspect {
        TimesAspect::First => format!("First trains at {station}:"),
        TimesAspect::Last => format!("Last trains at {station}:"),
        TimesAspect::Frequency => format!("Trains per hour and direction at {station}:"),
        TimesAspect::Night => format!("Trains at night at {station}:"),
    };
    let mut rows: Vec<String> = Vec::new();
    for service in &times.services {
        let row = match aspect {
            TimesAspect::Frequency => frequency(service, &times.services),
            _ => Some(first_or_last(service, aspect)),
        };
        rows.extend(row.filter(|row| !rows.contains(row)));
    }
    let source = format!(
        "From TfL's timetables of {TIMETABLE_DATE}, for trains that start at the ends of the line: earlier or later \
         trains may start partway along it."
    );
    let unknown =
        (!times.unknown.is_empty()).then(|| format!("I have no timetable of the {}.", lines_text(&times.unknown)));
    let assumed = times.assumption.as_ref().map(|assumed| assumption(&LONDON, assumed));
    if rows.is_empty() {
        return join_lines([unknown.or_else(|| Some(format!("I have no timetable of {station}."))), assumed]);
    }
    join_lines([Some(head)].into_iter().chain(rows.into_iter().map(Some)).chain([Some(source), unknown, assumed]))
}

fn first_or_last(service: &Service, aspect: TimesAspect) -> String {
    let line = LONDON.line_name(&service.line);
    let time = match aspect {
        _ if service.all_night => "trains run through the night (Night Tube)".to_owned(),
        TimesAspect::First => service.first.clone(),
        _ => service.last.clone(),
    };
    format!("- {line} {}, {}: {time}", service.direction, service.days)
}

/// Formats the trains per hour of a line, with the larger count of the two directions: trains run equally often in both, but
/// in one of them they may not start at the end of the line, where the timetables count them.
fn frequency(service: &Service, all: &[Service]) -> Option<String> {
    let same = || all.iter().filter(|other| other.line == service.line && other.days == service.days);
    let most = |of: fn(&Service) -> u32| same().map(of).max().unwrap_or(0);
    let (peak, midday, evening) =
        (most(|service| service.peak), most(|service| service.midday), most(|service| service.evening));
    (peak + midday + evening > 0).then(|| {
        let line = LONDON.line_name(&service.line);
        let every = 60_u32.checked_div(midday);
        let every = every.map_or_else(String::new, |minutes| format!("; during the day about every {minutes} min"));
        format!(
            "- {line}, {}: {peak} from 7 to 10, {midday} from 10 to 16, {evening} from 19 to 23{every}",
            service.days
        )
    })
}

/// States on which lines the Night Tube runs.
pub(crate) fn night_tube() -> String {
    let lines: Vec<String> = night_lines().into_iter().map(str::to_owned).collect();
    format!(
        "According to TfL's timetables of {TIMETABLE_DATE}, the Night Tube runs on parts of the {} on Friday and Saturday \
         nights. The other lines of the Tube close at night.",
        lines_text(&lines)
    )
}
