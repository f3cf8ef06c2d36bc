//! `get_line_status`: what TfL says about the service on lines.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use crate::lines::{LINES, LineInfo, find_line};
use crate::network::LONDON;
use crate::tfl::{LineStatus, StatusOfLine};
use crate::underground::Underground;

/// Severities that are not a problem: good service, no issues, information.
const FINE: [i64; 3] = [10, 18, 19];
/// The severity of a line that is not running, which is normal at night.
const SERVICE_CLOSED: i64 = 20;

/// The status of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusAnswer {
    /// The lines, in the order of the question.
    pub statuses: Vec<LineStatusView>,
    /// Whether all lines were asked about.
    pub is_network: bool,
    /// When TfL was asked; `None` if it could not be reached.
    pub as_of: Option<String>,
}

/// The status of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineStatusView {
    /// The id of the line.
    pub line: String,
    /// Its name.
    pub name: String,
    /// The worst status in force, such as "Minor Delays".
    pub headline: String,
    /// The severity of the worst status in force.
    pub severity: i64,
    /// Whether trains run as they should.
    pub is_good: bool,
    /// The reasons of the statuses in force.
    pub reasons: Vec<String>,
    /// The reasons of planned statuses that are not in force yet.
    pub planned: Vec<String>,
}

impl Underground {
    /// Returns the status of the given lines, or of all lines if none are given. Returns `None` if TfL cannot be reached.
    pub async fn line_status(&self, lines: &[&'static LineInfo], now: Timestamp) -> Option<StatusAnswer> {
        let ids: Vec<&str> = lines.iter().map(|line| line.id).collect();
        let answer = match ids.as_slice() {
            [] => self.tfl.status_of_modes(now).await,
            ids => self.tfl.status_of_lines(ids, now).await,
        };
        let answer = answer.ok()?;
        let statuses = answer.iter().filter(|line| ids.is_empty() || ids.contains(&line.id.as_str()));
        let mut statuses: Vec<LineStatusView> = statuses.map(|line| view_of(line, now)).collect();
        let order = |view: &LineStatusView| {
            let position = ids.iter().position(|id| *id == view.line);
            position.or_else(|| LINES.iter().position(|line| line.id == view.line)).unwrap_or(usize::MAX)
        };
        statuses.sort_by_key(order);
        Some(StatusAnswer { statuses, is_network: ids.is_empty(), as_of: Some(now.to_string()) })
    }
}

/// Returns the status of a line at the given time. Of the statuses in force, the one with the lowest number is the headline.
#[must_use]
pub fn view_of(line: &StatusOfLine, now: Timestamp) -> LineStatusView {
    let (current, planned): (Vec<&LineStatus>, Vec<&LineStatus>) =
        line.line_statuses.iter().partition(|status| is_in_force(status, now));
    let worst = current.iter().filter(|status| !is_fine(status, now)).min_by_key(|status| status.status_severity);
    let leading = worst.or_else(|| current.iter().min_by_key(|status| status.status_severity));
    let reasons = |statuses: &[&LineStatus]| {
        let mut reasons: Vec<String> = Vec::new();
        for reason in statuses.iter().filter_map(|status| status.reason.as_deref()).map(one_line) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    };
    LineStatusView {
        line: line.id.clone(),
        name: find_line(&line.id).map_or_else(|| line.name.clone(), |known| known.name.to_owned()),
        headline: leading.map_or_else(|| "Good Service".to_owned(), |status| description(status)),
        severity: leading.map_or(FINE[0], |status| status.status_severity),
        is_good: worst.is_none(),
        reasons: reasons(&current),
        planned: reasons(&planned),
    }
}

fn description(status: &LineStatus) -> String {
    match status.status_severity_description.trim() {
        "" => format!("Status {}", status.status_severity),
        known => known.to_owned(),
    }
}

/// Whether trains run as they should. A line that is closed at night is not disrupted.
fn is_fine(status: &LineStatus, now: Timestamp) -> bool {
    let hour = now.to_zoned((LONDON.zone)()).hour();
    FINE.contains(&status.status_severity) || status.status_severity == SERVICE_CLOSED && (1..5).contains(&hour)
}

/// Whether a status applies now: it has no periods, or now is within one.
fn is_in_force(status: &LineStatus, now: Timestamp) -> bool {
    let periods = &status.validity_periods;
    periods.is_empty()
        || periods.iter().any(|period| match (instant(&period.from_date), instant(&period.to_date)) {
            (Some(from), Some(to)) => (from..=to).contains(&now),
            _ => period.is_now,
        })
}

/// Parses an instant. TfL writes instants in UTC, with or without the zone.
fn instant(text: &str) -> Option<Timestamp> {
    text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.parse().ok()?;
        local.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
