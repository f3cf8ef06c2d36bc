use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use threadkeep_subway::{GTFS_ADDRESS, GtfsError, Timetable, download_gtfs, knows_today, read_gtfs, read_gtfs_at};

use super::backup::Unfinished;
use super::{App, Status};
use crate::clock::clock;
use crate::failure::{Failure, join};
use crate::private;
use crate::progress;
use crate::subway::options;
use crate::table::{counted, number};

/// Look after the timetable of New York's subway
///
/// The subway's assistant works without a timetable, at two minutes a stop. With one it knows the hours of the day and what
/// each ride takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep subway fetch                       the timetable that the MTA publishes
  threadkeep subway fetch gtfs_subway.zip       a file or folder that you have")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Bring the current timetable, check it, and keep it
    ///
    /// The timetable that was kept before stays until the new one is whole.
    Fetch {
        /// An address, a zip archive or a folder of GTFS [default: MTA_GTFS_URL, else where the MTA publishes it]
        #[arg(value_name = "FROM")]
        from: Option<String>,
    },
}

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

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let Action::Fetch { from } = arguments.action;
    let from = from.or_else(|| app.settings.get("MTA_GTFS_URL")).unwrap_or_else(|| GTFS_ADDRESS.to_owned());
    let file = options(&app.settings).timetable.ok_or_else(|| {
        Failure::usage("there is no home folder to keep a timetable in").hint("name a file with MTA_TIMETABLE")
    })?;
    let origin = origin(from);
    let timetable = read(&origin).await.map_err(|error| failure(&error, &origin, &file))?;
    let bytes = keep(app, &file, &timetable)?;
    let fetched = summary(app, file, bytes, &timetable);
    if app.output.is_json() {
        app.output.json(&fetched)?;
    } else {
        tell(app, &fetched)?;
    }
    Ok(Status::Done)
}

fn origin(from: String) -> Origin {
    let is_address = ["http://", "https://"].iter().any(|scheme| from.to_ascii_lowercase().starts_with(scheme));
    if is_address { Origin::Address(from) } else { Origin::Path(PathBuf::from(from)) }
}

async fn read(origin: &Origin) -> Result<Timetable, GtfsError> {
    let path = match origin {
        Origin::Address(address) => {
            let bytes = download(address).await?;
            return checked(move || read_gtfs(bytes)).await;
        }
        Origin::Path(path) => path.clone(),
    };
    checked(move || read_gtfs_at(&path)).await
}

async fn download(address: &str) -> Result<Vec<u8>, GtfsError> {
    let asking = progress::spinner("asking for the timetable");
    let mut bar = None;
    let bytes = download_gtfs(address, |come, total| {
        asking.finish_and_clear();
        bar.get_or_insert_with(|| progress::bytes(total.unwrap_or(0))).set_position(come);
    });
    let bytes = bytes.await;
    asking.finish_and_clear();
    bar.inspect(|bar| bar.finish_and_clear());
    bytes
}

/// Reads a feed where it holds up nobody.
async fn checked(read: impl FnOnce() -> Result<Timetable, GtfsError> + Send + 'static) -> Result<Timetable, GtfsError> {
    let bar = progress::spinner("checking the timetable");
    let timetable = tokio::task::spawn_blocking(read).await;
    bar.finish_and_clear();
    timetable.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// Puts a timetable in the place of the one before, when all of it is written.
fn keep(app: &App, file: &Path, timetable: &Timetable) -> Result<u64> {
    let unwritten = || format!("{} cannot be written", file.display());
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::make_folder(folder).with_context(unwritten)?;
    }
    let bytes = timetable.to_cache();
    let unfinished = Unfinished::beside(app, file)?;
    std::fs::write(unfinished.path(), &bytes).with_context(unwritten)?;
    // It is public: whoever could read the file goes on reading it.
    unfinished.rename(file)?;
    Ok(bytes.len() as u64)
}

fn summary(app: &App, file: PathBuf, bytes: u64, timetable: &Timetable) -> Fetched {
    let days = timetable.valid_dates();
    let (from, to) = days.map(|(from, to)| (from.to_string(), to.to_string())).unzip();
    Fetched {
        file,
        bytes,
        stations: timetable.stations().len(),
        lines: timetable.routes().len(),
        trips: timetable.trip_count(),
        from,
        to,
        is_current: knows_today(timetable, clock(app.global.now).now()),
    }
}

fn tell(app: &App, fetched: &Fetched) -> Result<()> {
    let trips = format!("{} trips", number(fetched.trips as u64));
    let lines = counted(fetched.lines as u64, "line");
    let days = fetched.from.as_ref().zip(fetched.to.as_ref());
    let days = days.map_or_else(String::new, |(from, to)| format!(", {from} to {to}"));
    let (file, size) = (fetched.file.display(), HumanBytes(fetched.bytes));
    app.output.line(format_args!("kept the subway's timetable: {trips} on {lines}{days}; {size} in {file}"))?;
    if !fetched.is_current {
        app.output.note(format_args!(
            "{} today is none of its days: its times are taken for those of the same weekday",
            app.output.hint_label("note:")
        ));
    }
    Ok(())
}

/// What went wrong, whose turn it is, and that nothing was lost.
fn failure(error: &GtfsError, origin: &Origin, file: &Path) -> Failure {
    let causes = std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source());
    let what = join(causes);
    let kept = if file.exists() { "; the timetable of before is still there" } else { "" };
    let elsewhere = "name another address, or a zip archive that you have: `threadkeep subway fetch FROM`";
    match (error, origin) {
        (GtfsError::Unreachable(_), _) => {
            Failure::other_side(what).hint(format!("look at the connection, or {elsewhere}{kept}"))
        }
        (GtfsError::Status(_) | GtfsError::TooLarge, Origin::Address(_)) => {
            Failure::other_side(what).hint(format!("{elsewhere}{kept}"))
        }
        (GtfsError::Address(_), _) => Failure::usage(what).hint(format!("{elsewhere}{kept}")),
        (GtfsError::File { .. }, _) => Failure::yours(what).hint(format!("look at the name, or {elsewhere}{kept}")),
        _ => Failure::yours(what).hint(format!("{elsewhere}{kept}")),
    }
}
