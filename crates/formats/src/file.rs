//! What the path of a file says about its conversations.

use std::path::Path;
use std::time::UNIX_EPOCH;

use threadkeep_core::Timestamp;

/// The name of a file and of its folder, and when it was changed. Empty for a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileName {
    /// The name of the file.
    pub name: Option<String>,
    /// The name of the folder that contains the file.
    pub folder: Option<String>,
    /// When the file was last changed, in whole seconds.
    pub changed_at: Option<Timestamp>,
}

impl FileName {
    /// Returns the names in a path. Reads the time from the file system.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok();
        let seconds = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
        let micros = seconds.and_then(|seconds| i64::try_from(seconds).ok()?.checked_mul(1_000_000));
        Self { changed_at: micros.and_then(|micros| Timestamp::from_micros(micros).ok()), ..Self::of_entry(path) }
    }

    /// Returns the names in the path of an archive's entry.
    #[must_use]
    pub fn of_entry(path: &Path) -> Self {
        let text = |name: Option<&std::ffi::OsStr>| name.map(|name| name.to_string_lossy().into_owned());
        Self { name: text(path.file_name()), folder: text(path.parent().and_then(Path::file_name)), changed_at: None }
    }
}
