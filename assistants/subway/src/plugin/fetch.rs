//! `subway fetch`: brings the timetable, checks it, and keeps it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use threadkeep::JsonText;
use threadkeep::agent::plugin::{CommandCall, CommandFuture, CommandHost, CommandOutcome, Fault, PluginError};

use super::{FEED, TIMETABLE};
use crate::Timetable;
use crate::gtfs::{GTFS_ADDRESS, GtfsError, download_gtfs, knows_today, read_gtfs, read_gtfs_at};

/// The argument that names where the timetable comes from.
pub(super) const FROM: &str = "from";

/// Where a feed comes from.
enum Origin {
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
    /// The first and the last day that it knows of.
    from: Option<String>,
    to: Option<String>,
    /// Whether today is one of its days.
    is_current: bool,
}

pub(super) fn run(call: CommandCall<'_>) -> CommandFuture<'_> {
    Box::pin(fetch(call))
}

async fn fetch(call: CommandCall<'_>) -> Result<CommandOutcome, PluginError> {
    let from = call.arguments.get(FROM).or_else(|| call.settings.get(&FEED)).unwrap_or(GTFS_ADDRESS);
    let file = call.settings.file(&TIMETABLE).ok_or_else(|| {
        PluginError::new(Fault::Usage, "there is no home folder to keep a timetable in")
            .with_hint("name a file with MTA_TIMETABLE")
    })?;
    let origin = origin(from);
    let timetable = read(call.host, &origin).await.map_err(|error| failure(error, &origin, &file))?;
    let bytes = timetable.to_cache();
    // It is public: whoever could read the file goes on reading it.
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
        is_current: knows_today(&timetable, call.now),
    };
    let json = JsonText::of(&fetched).map_err(|error| PluginError::new(Fault::Caller, error))?;
    let old = "today is none of its days: its times are taken for those of the same weekday";
    let notes = if fetched.is_current { Vec::new() } else { vec![old.to_owned()] };
    Ok(CommandOutcome { text: text(&fetched, call.host), notes, json, has_findings: false })
}

fn origin(from: &str) -> Origin {
    let is_address = ["http://", "https://"].iter().any(|scheme| from.to_ascii_lowercase().starts_with(scheme));
    if is_address { Origin::Address(from.to_owned()) } else { Origin::Path(PathBuf::from(from)) }
}

async fn read(host: &dyn CommandHost, origin: &Origin) -> Result<Timetable, GtfsError> {
    match origin {
        Origin::Address(address) => {
            host.begin_step("asking for the timetable");
            let bytes = download_gtfs(address, |come, total| host.show_bytes(come, total)).await?;
            checked(host, move || read_gtfs(bytes)).await
        }
        Origin::Path(path) => {
            let path = path.clone();
            checked(host, move || read_gtfs_at(&path)).await
        }
    }
}

/// Reads a feed where it holds up nobody.
async fn checked(
    host: &dyn CommandHost,
    read: impl FnOnce() -> Result<Timetable, GtfsError> + Send + 'static,
) -> Result<Timetable, GtfsError> {
    host.begin_step("checking the timetable");
    let timetable = tokio::task::spawn_blocking(read).await;
    timetable.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

fn text(fetched: &Fetched, host: &dyn CommandHost) -> String {
    let (trips, lines) = (host.number(fetched.trips as u64), host.number(fetched.lines as u64));
    let ending = if fetched.lines == 1 { "" } else { "s" };
    let days = fetched.from.as_ref().zip(fetched.to.as_ref());
    let days = days.map_or_else(String::new, |(from, to)| format!(", {from} to {to}"));
    let (file, size) = (fetched.file.display(), host.size(fetched.bytes));
    format!("kept the subway's timetable: {trips} trips on {lines} line{ending}{days}; {size} in {file}")
}

/// What went wrong, whose turn it is, and that nothing was lost.
fn failure(error: GtfsError, origin: &Origin, file: &Path) -> PluginError {
    let kept = if file.exists() { "; the timetable of before is still there" } else { "" };
    let elsewhere = "name another address, or a zip archive that you have: `threadkeep subway fetch FROM`";
    let (fault, look_first) = match (&error, origin) {
        (GtfsError::Unreachable(_), _) => (Fault::OtherSide, "look at the connection, or "),
        (GtfsError::Status(_) | GtfsError::TooLarge, Origin::Address(_)) => (Fault::OtherSide, ""),
        (GtfsError::Address(_), _) => (Fault::Usage, ""),
        (GtfsError::File { .. }, _) => (Fault::Caller, "look at the name, or "),
        _ => (Fault::Caller, ""),
    };
    PluginError::new(fault, error).with_hint(format!("{look_first}{elsewhere}{kept}"))
}
