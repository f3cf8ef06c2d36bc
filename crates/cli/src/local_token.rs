//! The token with which clients authenticate while a server has no API key. An option or the environment can set the token.
//! Otherwise it is generated once and stored in the user's state folder, where other users cannot read it.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use threadkeep_server::{LocalToken, LocalTokenError};

use crate::failure::Failure;
use crate::settings::Settings;

/// The variable that sets the token.
const VARIABLE: &str = "THREADKEEP_TOKEN";
const FILE_NAME: &str = "token";
/// The maximum number of bytes that are read from a token file.
const FILE_BYTES: u64 = 4096;

/// A token, and where it was found.
pub(crate) struct ServerToken {
    pub(crate) text: String,
    pub(crate) token: LocalToken,
    /// The file that contains the token, if the token was neither given nor set.
    pub(crate) file: Option<PathBuf>,
}

/// Returns the given token, or otherwise the token in the settings, or otherwise the stored one. Generates a token if none
/// is stored.
pub(crate) fn find(given: Option<&str>, settings: &Settings) -> Result<ServerToken> {
    let given = given.map(str::to_owned).or_else(|| settings.get(VARIABLE));
    let (text, file) = match given {
        Some(text) => (text, None),
        None => {
            let file = file().ok_or_else(|| {
                let failure = Failure::usage("no home folder in which to store the server's token");
                failure.hint("set XDG_STATE_HOME to a folder, or set THREADKEEP_TOKEN to a token")
            })?;
            (load_or_generate(&file)?, Some(file))
        }
    };
    let token = LocalToken::new(&text).map_err(|error| unusable(error, file.as_deref()))?;
    Ok(ServerToken { text, token, file })
}

/// Checks the token in the settings, if there is one.
pub(crate) fn check_setting(settings: &Settings) -> Result<()> {
    let Some(text) = settings.get(VARIABLE) else { return Ok(()) };
    LocalToken::new(&text).map(drop).map_err(|error| unusable(error, None).into())
}

/// Returns the file for the user's token, or `None` without a home folder.
pub(crate) fn file() -> Option<PathBuf> {
    let folder = state_folder(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from));
    folder.map(|folder| folder.join(FILE_NAME))
}

/// Returns the platform's folder for state that persists between runs.
fn state_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let home = |rest: &str| variable("HOME").map(|home| home.join(rest));
    let folder = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support")
    } else {
        // The XDG specification requires relative paths to be ignored.
        variable("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(|| home(".local/state"))
    };
    folder.map(|folder| folder.join("threadkeep"))
}

fn unusable(error: LocalTokenError, file: Option<&Path>) -> Failure {
    match (error, file) {
        (LocalTokenError::InvalidFormat, Some(file)) => {
            Failure::usage(format!("invalid token in {}: {error}", file.display()))
                .hint("delete the file: the server generates a new token the next time it starts")
        }
        (LocalTokenError::InvalidFormat, None) => Failure::usage(format!("invalid token: {error}"))
            .hint("omit --token and unset THREADKEEP_TOKEN to generate a random token"),
        _ => Failure::system_error(format!("cannot generate a token: {error}")),
    }
}

/// Returns the token in the file. If the file does not exist, generates the token. Concurrent callers get the same token.
fn load_or_generate(path: &Path) -> Result<String> {
    if let Some(text) = read(path)? {
        return Ok(text);
    }
    let cannot_store = || format!("cannot store the server's token in {}", path.display());
    let text = LocalToken::mint().map_err(|error| unusable(error, None))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder(folder).with_context(cannot_store)?;
    // The permissions at creation allow access by the owner only.
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(cannot_store)?;
    file.write_all(format!("{text}\n").as_bytes()).with_context(cannot_store)?;
    file.as_file().sync_all().with_context(cannot_store)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(text),
        Err(failed) if failed.error.kind() == std::io::ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| Failure::system_error(cannot_store()).into())
        }
        Err(failed) => Err(failed.error).with_context(cannot_store),
    }
}

/// Reads the file. Returns `None` if it does not exist.
///
/// # Errors
/// The file cannot be read, or other users can read or replace it and so may know the token.
fn read(path: &Path) -> Result<Option<String>> {
    let cannot_read = || format!("cannot read the server's token in {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(cannot_read),
    };
    if let Some(problem) = open_to_others(path, &file).with_context(cannot_read)? {
        return Err(problem.into());
    }
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text).with_context(cannot_read)?;
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
    let or_regenerate = "or delete the file to generate a new token if the old one may have leaked";
    if file.metadata()?.mode() & 0o077 != 0 {
        let failure = Failure::usage(format!("other users can access the server's token in {}", path.display()));
        return Ok(Some(failure.hint(format!("run `chmod 600 {}`, {or_regenerate}", path.display()))));
    }
    if folder.metadata()?.mode() & 0o022 != 0 {
        let failure =
            Failure::usage(format!("other users can write to {}, which contains the server's token", folder.display()));
        return Ok(Some(failure.hint(format!("run `chmod 700 {}`", folder.display()))));
    }
    Ok(None)
}

/// On other systems, users' folders are already protected from other users.
#[cfg(not(unix))]
fn open_to_others(_: &Path, _: &File) -> std::io::Result<Option<Failure>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn token_file_is_in_the_state_folder() {
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
    fn token_is_generated_once_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/threadkeep/token");
        // Concurrent callers get the same token.
        let found: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| load_or_generate(&path).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|text| text == &found[0] && threadkeep_server::is_local_token(text)), "{found:?}");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file remains");

        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(load_or_generate(&path).unwrap_err().to_string().contains("other users can access"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(load_or_generate(&path).unwrap_err().to_string().contains("other users can write"));
        std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(load_or_generate(&path).unwrap(), found[0]);
    }
}
