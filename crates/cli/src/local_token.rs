//! The token that clients show to a server which has no key yet: given by an option or the environment, else made once and
//! kept in the user's state folder, where neither other users nor a stranger behind a proxy can read it.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use threadkeep_server::{LocalToken, LocalTokenError};

use crate::failure::Failure;
use crate::settings::Settings;

/// The variable that fixes it.
const VARIABLE: &str = "THREADKEEP_TOKEN";
const FILE_NAME: &str = "token";
/// Bytes of a file that can hold a token.
const FILE_BYTES: u64 = 4096;

/// A token, and where it comes from.
pub(crate) struct Found {
    pub(crate) text: String,
    pub(crate) token: LocalToken,
    /// The file that keeps it, if it was not given.
    pub(crate) file: Option<PathBuf>,
}

/// The token that is typed, else that of the environment, else the user's own, which is made where there is none.
pub(crate) fn find(typed: Option<&str>, settings: &Settings) -> Result<Found> {
    let given = typed.map(str::to_owned).or_else(|| settings.get(VARIABLE));
    let (text, file) = match given {
        Some(text) => (text, None),
        None => {
            let file = file().ok_or_else(|| {
                let failure = Failure::usage("there is no home folder to keep the server's token in");
                failure.hint("set XDG_STATE_HOME to a folder, or the token itself by THREADKEEP_TOKEN")
            })?;
            (kept(&file)?, Some(file))
        }
    };
    let token = LocalToken::new(&text).map_err(|error| unusable(error, file.as_deref()))?;
    Ok(Found { text, token, file })
}

/// Says what is wrong with the token of the environment, where there is one.
pub(crate) fn check_given(settings: &Settings) -> Result<()> {
    let Some(text) = settings.get(VARIABLE) else { return Ok(()) };
    LocalToken::new(&text).map(drop).map_err(|error| unusable(error, None).into())
}

/// The file that keeps the user's own token; `None` where nobody has a home.
pub(crate) fn file() -> Option<PathBuf> {
    let folder = state_folder(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from));
    folder.map(|folder| folder.join(FILE_NAME))
}

/// The platform's folder for what a program keeps of its own between runs.
fn state_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let home = |rest: &str| variable("HOME").map(|home| home.join(rest));
    let folder = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support")
    } else {
        // The XDG specification has relative paths ignored.
        variable("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(|| home(".local/state"))
    };
    folder.map(|folder| folder.join("threadkeep"))
}

fn unusable(error: LocalTokenError, file: Option<&Path>) -> Failure {
    match (error, file) {
        (LocalTokenError::Form, Some(file)) => Failure::usage(format!("{} holds no token: {error}", file.display()))
            .hint("remove the file, and the next start makes a new token"),
        (LocalTokenError::Form, None) => Failure::usage(format!("the token cannot be used: {error}"))
            .hint("leave out --token and THREADKEEP_TOKEN, and one is made that nobody guesses"),
        _ => Failure::other_side(format!("no token can be made: {error}")),
    }
}

/// The token that the file keeps. The first who looks makes it; of several at once, one.
fn kept(path: &Path) -> Result<String> {
    if let Some(text) = read(path)? {
        return Ok(text);
    }
    let unwritten = || format!("the server's token cannot be kept in {}", path.display());
    let text = LocalToken::mint().map_err(|error| unusable(error, None))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder(folder).with_context(unwritten)?;
    // A file of this kind is its owner's alone from its first moment on.
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(unwritten)?;
    file.write_all(format!("{text}\n").as_bytes()).with_context(unwritten)?;
    file.as_file().sync_all().with_context(unwritten)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(text),
        Err(failed) if failed.error.kind() == std::io::ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| Failure::other_side(unwritten()).into())
        }
        Err(failed) => Err(failed.error).with_context(unwritten),
    }
}

/// Reads the file; `None` where there is none. One that others can read or replace is refused: they may know the token.
fn read(path: &Path) -> Result<Option<String>> {
    let unread = || format!("the server's token in {} cannot be read", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(unread),
    };
    if let Some(problem) = open_to_others(path, &file).with_context(unread)? {
        return Err(problem.into());
    }
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text).with_context(unread)?;
    Ok(Some(text.trim().to_owned()))
}

#[cfg(unix)]
fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn private_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

#[cfg(unix)]
fn open_to_others(path: &Path, file: &File) -> std::io::Result<Option<Failure>> {
    use std::os::unix::fs::MetadataExt;
    let folder = path.parent().unwrap_or(Path::new("."));
    let again = "and remove it for a new token if somebody may have seen it";
    if file.metadata()?.mode() & 0o077 != 0 {
        let failure = Failure::usage(format!("the server's token in {} is not its owner's alone", path.display()));
        return Ok(Some(failure.hint(format!("run `chmod 600 {}`, {again}", path.display()))));
    }
    if folder.metadata()?.mode() & 0o022 != 0 {
        let failure =
            Failure::usage(format!("others can write to {}, which keeps the server's token", folder.display()));
        return Ok(Some(failure.hint(format!("run `chmod 700 {}`", folder.display()))));
    }
    Ok(None)
}

/// Where a system has no such rights, the user's own folders are the user's.
#[cfg(not(unix))]
fn open_to_others(_: &Path, _: &File) -> std::io::Result<Option<Failure>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_file_is_in_the_state_folder() {
        let folder = |xdg: &str, home: &str| {
            state_folder(|name| match name {
                "XDG_STATE_HOME" if !xdg.is_empty() => Some(PathBuf::from(xdg)),
                "HOME" if !home.is_empty() => Some(PathBuf::from(home)),
                _ => None,
            })
        };
        assert_eq!(folder("/state", "/home/ana"), Some(PathBuf::from("/state/threadkeep")));
        for relative in ["relative", ""] {
            assert_eq!(folder(relative, "/home/ana"), Some(PathBuf::from("/home/ana/.local/state/threadkeep")));
        }
        assert_eq!(folder("", ""), None);
    }

    #[cfg(unix)]
    #[test]
    fn it_is_made_once_and_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/threadkeep/token");
        // Whoever comes at once finds the same one.
        let found: Vec<String> = std::thread::scope(|scope| {
            let finding: Vec<_> = (0..8).map(|_| scope.spawn(|| kept(&path).unwrap())).collect();
            finding.into_iter().map(|finding| finding.join().unwrap()).collect()
        });
        assert!(found.iter().all(|text| text == &found[0] && threadkeep_server::is_local_token(text)), "{found:?}");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");

        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(kept(&path).unwrap_err().to_string().contains("not its owner's alone"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(kept(&path).unwrap_err().to_string().contains("others can write"));
        std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(kept(&path).unwrap(), found[0]);
    }
}
