//! Imports what is added to files, until Ctrl-C.
//!
//! A change is detected by the size and modification time of a file. A changed file is imported as a whole; what was imported
//! before is recognised, so a restart loses and repeats nothing. Polling works on every file system, including network file
//! systems, and costs little: between searches of all folders, only the most recently changed files are checked, and folders whose
//! search takes long are searched less often.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::files::{self, File, FileState};
use super::places;
use super::{Import, Status, threads_and_messages};

/// The time between checks of the most recently changed files.
const INTERVAL: Duration = Duration::from_secs(2);
/// The minimum time between searches of all folders. A slow search is repeated less often.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);
/// The time between the ends and beginnings of searches, as a multiple of the duration of a search.
const SEARCH_PAUSE: u32 = 400;
/// The number of files that are checked between searches.
const RECENT_FILES: usize = 32;

/// Watches paths; without paths, the places in which programs keep conversations, also those that appear later.
pub(super) async fn run(import: &Import<'_>, paths: Option<&Vec<PathBuf>>) -> Result<Status> {
    let (app, exclusions) = (import.app, &import.selection.exclusions);
    // The states of files when they were last imported. A file in an archive has none, and is imported once.
    let mut imported: HashMap<String, Option<FileState>> = HashMap::new();
    let mut known: Vec<File> = Vec::new();
    let (mut next_search, mut is_first) = (Instant::now(), true);
    while !app.interrupt.is_stop_requested() {
        let began_at = Instant::now();
        let is_search = began_at >= next_search;
        if is_search {
            // A folder can be missing temporarily.
            let places = || places::existing(exclusions).into_iter().map(|place| place.path).collect();
            let paths = paths.cloned().unwrap_or_else(places);
            known = files::find(&paths, exclusions).map_or_else(|_| Vec::new(), |found| found.files);
            known.sort_by_key(|file| std::cmp::Reverse(file.state().map(|state| state.changed_at)));
        } else {
            known.truncate(RECENT_FILES);
            known.iter_mut().for_each(File::refresh);
        }
        let changed: Vec<File> =
            known.iter().filter(|file| imported.get(&file.to_string()) != Some(&file.state())).cloned().collect();
        if is_search {
            next_search = Instant::now() + SEARCH_INTERVAL.max(began_at.elapsed() * SEARCH_PAUSE);
        }
        if !changed.is_empty() {
            import_changed(import, &changed, is_first).await?;
            // These states were read before the files, so data that was added meanwhile is noticed next time.
            imported.extend(changed.iter().map(|file| (file.to_string(), file.state())));
        }
        if is_first && !app.interrupt.is_stop_requested() {
            app.output.note("watching for new messages; press Ctrl-C to stop");
            is_first = false;
        }
        let deadline = Instant::now() + INTERVAL;
        while Instant::now() < deadline && !app.interrupt.is_stop_requested() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    Ok(Status::Done)
}

/// Imports the files that changed, and reports what is new.
async fn import_changed(import: &Import<'_>, changed: &[File], is_first: bool) -> Result<()> {
    let output = &import.app.output;
    let report = match import.run(changed).await {
        Ok(report) => report,
        // No file contains conversations yet.
        Err(error) if error.downcast_ref::<crate::failure::Failure>().is_some() => return Ok(()),
        Err(error) => return Err(error),
    };
    if is_first || output.is_json() {
        return report.print(output);
    }
    let (threads, messages) = report.added();
    if messages > 0 {
        output.line(format_args!("imported {}", threads_and_messages(threads, messages)))?;
    }
    Ok(())
}
