//! Creates files and directories that only the current user can read.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a directory and its missing parents, accessible only to the current user. Existing directories keep their permissions.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates an empty file, which SQLite treats as a new database, unless the file exists. SQLite gives its log and its shared
/// memory file the database's permissions: <https://sqlite.org/src/file/src/os_unix.c>, `findCreateFileMode`. Errors are
/// ignored, because SQLite then fails for the same reason and reports it.
pub(crate) fn create_file(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}
