//! Imports what is added to files, until Ctrl-C.
//!
//! A change is detected by the size and modification time of a file. A changed file is imported as a whole; what was imported
//! before is recognised, so a restart loses and repeats nothing. Polling works on every file system, including network file
//! systems, and costs little: between searches of all folders, only the most recently changed files are checked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;

use super::files::{self, File};
use super::{Import, Status, threads_and_messages};

/// The time between checks of the most recently changed files.
const INTERVAL: Duration = Duration::from_secs(2);
/// The minimum time between searches of all folders. A slow search is repeated less often.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);
/// The number of files that are checked between searches.
const RECENT_FILES: usize = 32;

/// The size and modification time of a file. `None` for a file in an archive, which is imported once.
type FileState = Option<(u64, SystemTime)>;

pub(super) async fn run(import: &Import<'_>, paths: &[PathBuf]) -> Result<Status> {
    let (app, exclusions) = (import.app, &import.selection.exclusions);
    let mut imported: HashMap<String, FileState> = HashMap::new();
    let mut known: Vec<File> = Vec::new();
    let (mut next_search, mut is_first) = (Instant::now(), true);
    while !app.interrupt.is_stop_requested() {
        if Instant::now() >= next_search {
            let began_at = Instant::now();
            // A folder can be missing temporarily.
            known = files::find(paths, exclusions).map_or_else(|_| Vec::new(), |found| found.files);
            known.sort_by_cached_key(|file| std::cmp::Reverse(state(file).map(|(_, changed_at)| changed_at)));
            next_search = Instant::now() + SEARCH_INTERVAL.max(began_at.elapsed() * 200);
        } else {
            known.truncate(RECENT_FILES);
        }
        let changed: Vec<File> =
            known.iter().filter(|file| imported.get(&file.to_string()) != Some(&state(file))).cloned().collect();
        if !changed.is_empty() {
            // The states are recorded before the files are read, so that data added meanwhile is noticed next time.
            let states: Vec<_> = changed.iter().map(|file| (file.to_string(), state(file))).collect();
            import_changed(import, &changed, is_first).await?;
            imported.extend(states);
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

fn state(file: &File) -> FileState {
    let found = std::fs::metadata(file.path()?).ok()?;
    Some((found.len(), found.modified().ok()?))
}
