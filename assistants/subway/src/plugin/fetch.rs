//! `subway fetch`: downloads the timetable, checks it, and caches it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use threadkeep::JsonText;
use threadkeep::agent::plugin::{CommandCall, CommandFuture, CommandHost, CommandOutcome, FailureKind, PluginError};

use super::{FEED, TIMETABLE};
use crate::Timetable;
use crate::gtfs::{GTFS_ADDRESS, GtfsError, covers_today, download_gtfs, read_gtfs, read_gtfs_at};

/// The name of the argument that gives the source of the timetable.
pub(super) const FROM: &str = "from";

/// The source of a feed.
enum Source {
    Address(String),
    Path(PathBuf),
}

#[derive(Serialize)]
struct Fetched {
    file: PathBuf,
    bytes: u64,
    stations: usize,
    lines: usize,
    trips: usize,
    /// The first date that the timetable covers.
    from: Option<String>,
    /// The last date that the timetable covers.
    to: Option<String>,
    /// Whether the timetable covers today.
    is_current: bool,
}

pub(super) fn run(call: CommandCall<'_>) -> CommandFuture<'_> {
    Box::pin(fetch(call))
}

async fn fetch(call: CommandCall<'_>) -> Result<CommandOutcome, PluginError> {
    let from = call.arguments.get(FROM).or_else(|| call.settings.get(&FEED)).unwrap_or(GTFS_ADDRESS);
    let file = call.settings.file(&TIMETABLE).ok_or_else(|| {
        PluginError::new(FailureKind::Usage, "no folder for the timetable: the home folder is unknown")
            .with_hint("set MTA_TIMETABLE to a file")
    })?;
    let source = source_of(from);
    let timetable = read(call.host, &source).await.map_err(|error| failure(error, &source, &file))?;
    let bytes = timetable.to_cache();
    // The timetable is public, so the file's permissions do not need to be restricted.
    call.host.replace_file(&file, &bytes)?;
    let (from, to) = timetable.valid_dates().map(|(from, to)| (from.to_string(), to.to_string())).unzip();
    let fetched = Fetched {
        file,
        bytes: bytes.len() as u64,
        stations: timetable.stations().len(),
        lines: timetable.routes().len(),
        trips: timetable.trip_count(),
        from,
        to,
        is_current: covers_today(&timetable, call.now),
    };
    let json = JsonText::of(&fetched).map_err(|error| PluginError::new(FailureKind::Setup, error))?;
    let outdated = "the timetable does not cover today; using the times of the same weekday";
    let notes = if fetched.is_current { Vec::new() } else { vec![outdated.to_owned()] };
    Ok(CommandOutcome { text: text(&fetched, call.host), notes, json, has_findings: false })
}

fn source_of(from: &str) -> Source {
    let is_address = ["http://", "https://"].iter().any(|scheme| from.to_ascii_lowercase().starts_with(scheme));
    if is_address { Source::Address(from.to_owned()) } else { Source::Path(PathBuf::from(from)) }
}

async fn read(host: &dyn CommandHost, source: &Source) -> Result<Timetable, GtfsError> {
    match source {
        Source::Address(address) => {
            host.begin_step("downloading the timetable");
            let bytes = download_gtfs(address, |received, total| host.show_bytes(received, total)).await?;
            checked(host, move || read_gtfs(bytes)).await
        }
        Source::Path(path) => {
            let path = path.clone();
            checked(host, move || read_gtfs_at(&path)).await
        }
    }
}

/// Reads a feed on a blocking thread, so that parsing does not delay other tasks.
async fn checked(
    host: &dyn CommandHost,
    read: impl FnOnce() -> Result<Timetable, GtfsError> + Send + 'static,
) -> Result<Timetable, GtfsError> {
    host.begin_step("checking the timetable");
    let timetable = tokio::task::spawn_blocking(read).await;
    timetable.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

fn text(fetched: &Fetched, host: &dyn CommandHost) -> String {
    let (trips, lines) = (host.format_number(fetched.trips as u64), host.format_number(fetched.lines as u64));
    let ending = if fetched.lines == 1 { "" } else { "s" };
    let days = fetched.from.as_ref().zip(fetched.to.as_ref());
    let days = days.map_or_else(String::new, |(from, to)| format!(", {from} to {to}"));
    let (file, size) = (fetched.file.display(), host.format_size(fetched.bytes));
    format!("saved the subway timetable: {trips} trips on {lines} line{ending}{days}; {size} in {file}")
}

/// Converts an error, with a hint that says what to do and whether the previous timetable is still in use.
fn failure(error: GtfsError, source: &Source, file: &Path) -> PluginError {
    let previous = if file.exists() { "; the previous timetable is unchanged" } else { "" };
    let retry = "pass another URL or a local zip archive: `threadkeep subway fetch FROM`";
    let (kind, check) = match (&error, source) {
        (GtfsError::Unreachable(_), _) => (FailureKind::External, "check the connection, or "),
        (GtfsError::Status(_) | GtfsError::TooLarge, Source::Address(_)) => (FailureKind::External, ""),
        (GtfsError::Address(_), _) => (FailureKind::Usage, ""),
        (GtfsError::File { .. }, _) => (FailureKind::Setup, "check the path, or "),
        _ => (FailureKind::Setup, ""),
    };
    PluginError::new(kind, error).with_hint(format!("{check}{retry}{previous}"))
}
