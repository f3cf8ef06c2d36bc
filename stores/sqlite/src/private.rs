//! Files and folders that nobody but the user may read.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder, and those above it, where they are missing. What we make is the user's alone.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes an empty file, which SQLite takes for a new database, where there is none. SQLite gives its log and its shared memory the
/// rights of the database: <https://sqlite.org/src/file/src/os_unix.c>, `findCreateFileMode`. What keeps the file from being made
/// keeps SQLite from it too, which says why.
pub(crate) fn make_file(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}
