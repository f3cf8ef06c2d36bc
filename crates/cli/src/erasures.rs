//! The erasure ledger: a file outside the store that records erasures. With it, restoring an older backup does not bring
//! erased data back.
//!
//! The ledger is an append-only JSON Lines file, to which any number of processes can write. It contains keyed hashes
//! instead of names; the key is in a separate file next to it. `line` encodes and decodes lines, `ledger` appends them,
//! `contents` reads them, and `apply` erases the recorded data from a restored store.

mod apply;
mod contents;
mod key;
mod ledger;
mod line;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use apply::{Applied, apply, load};
pub(crate) use contents::LedgerContents;
pub(crate) use key::key_file;
pub(crate) use ledger::{ErasureLedger, LedgerWriteError};

use crate::store::Location;

const FILE_NAME: &str = "erasures.jsonl";
/// The value of `--erasure-ledger` that disables the ledger.
const DISABLED: &str = "none";

/// The location of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LedgerLocation {
    /// Set by an option or a setting. All of its entries, even those for other stores, apply to every store it is used with.
    Explicit(PathBuf),
    /// In the user's state folder. Contains the erasures in all of the user's stores.
    Default(PathBuf),
    /// Erasures are not recorded.
    Disabled,
}

impl LedgerLocation {
    /// Returns the location that `--erasure-ledger`, the environment or the configuration file sets, or otherwise the
    /// default.
    pub(crate) fn find(given: Option<&Path>) -> Self {
        match given {
            Some(given) if given == Path::new(DISABLED) => Self::Disabled,
            Some(given) => Self::Explicit(given.to_owned()),
            None => {
                let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
                state_folder(variable).map_or(Self::Disabled, |folder| Self::Default(folder.join(FILE_NAME)))
            }
        }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Explicit(file) | Self::Default(file) => Some(file),
            Self::Disabled => None,
        }
    }

    /// Returns the ledger for erasures in a store. An in-memory store has none, because there are no backups of it.
    pub(crate) fn ledger(&self, store: &Location) -> Option<ErasureLedger> {
        let file = self.file().filter(|_| !store.is_in_memory())?;
        Some(ErasureLedger::new(file.to_owned(), store.identity()))
    }
}

/// Returns the platform's folder for state that is not user data and persists between runs.
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
    fn explicit_locations_can_be_disabled() {
        assert_eq!(LedgerLocation::find(Some(Path::new("none"))), LedgerLocation::Disabled);
        assert_eq!(
            LedgerLocation::find(Some(Path::new("/x/l.jsonl"))),
            LedgerLocation::Explicit(PathBuf::from("/x/l.jsonl"))
        );
    }

    #[cfg(unix)]
    #[test]
    fn default_ledger_is_in_the_state_folder() {
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
