//! The erasure ledger: a file outside the store that records what was erased, so that restoring an older backup does not
//! bring it back.
//!
//! It is JSON Lines, only ever appended to, by any number of processes. Names are not in it, only their keyed hashes; the key
//! is in a file beside it. `line` is what a line holds, `ledger` writes them, `known` reads them, `applying` erases from a restored
//! store.

mod applying;
mod key;
mod known;
mod ledger;
mod line;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use applying::{Applied, apply, load};
pub(crate) use key::key_file;
pub(crate) use known::Known;
pub(crate) use ledger::{FileLedger, Unwritten};

use crate::store::Location;

const FILE_NAME: &str = "erasures.jsonl";
/// What turns the ledger off.
const OFF: &str = "none";

/// Where the ledger is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where somebody said: it belongs to the stores that it is given for.
    Given(PathBuf),
    /// In the user's state folder, for all of the user's stores.
    Standard(PathBuf),
    /// Nothing is recorded.
    Off,
}

impl Place {
    /// What `--erasure-ledger`, the environment or the configuration file says, else the user's state folder.
    pub(crate) fn find(given: Option<&Path>) -> Self {
        match given {
            Some(given) if given == Path::new(OFF) => Self::Off,
            Some(given) => Self::Given(given.to_owned()),
            None => {
                let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
                state_folder(variable).map_or(Self::Off, |folder| Self::Standard(folder.join(FILE_NAME)))
            }
        }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Given(file) | Self::Standard(file) => Some(file),
            Self::Off => None,
        }
    }

    /// The ledger that erasures in a store are recorded in. What is only kept in memory has no backups.
    pub(crate) fn ledger(&self, store: &Location) -> Option<FileLedger> {
        let file = self.file().filter(|_| !store.is_in_memory())?;
        Some(FileLedger::new(file.to_owned(), store.identity()))
    }
}

/// The platform's folder for what a program keeps between runs and what is not the user's data.
fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = |rest: &str| variable("HOME").map(|home| PathBuf::from(home).join(rest));
    let state = if cfg!(windows) {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else {
        let given = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        given.or_else(|| home(".local/state"))
    };
    state.map(|folder| folder.join("threadkeep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_or_standard_or_off() {
        assert_eq!(Place::find(Some(Path::new("none"))), Place::Off);
        assert_eq!(Place::find(Some(Path::new("/x/l.jsonl"))), Place::Given(PathBuf::from("/x/l.jsonl")));
    }

    #[cfg(unix)]
    #[test]
    fn the_standard_place_is_not_where_stores_are() {
        let folder = |xdg: &str, home: &str| {
            state_folder(|name| match name {
                "XDG_STATE_HOME" if !xdg.is_empty() => Some(OsString::from(xdg)),
                "HOME" if !home.is_empty() => Some(OsString::from(home)),
                _ => None,
            })
        };
        assert_eq!(folder("/state", "/home/ana"), Some(PathBuf::from("/state/threadkeep")));
        assert_eq!(folder("relative", "/home/ana"), Some(PathBuf::from("/home/ana/.local/state/threadkeep")));
        assert_eq!(folder("", ""), None);
    }
}
