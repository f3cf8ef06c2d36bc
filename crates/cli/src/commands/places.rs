//! The folders in which the programs of a user keep their files.

use std::path::PathBuf;

/// An operating system. Programs keep their files in different folders on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// Returns the system that this program was built for.
    pub(super) const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }

    /// Returns the user's home folder; `None` if the environment does not specify it.
    pub(super) fn home(self, variable: &impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        variable(if self == Self::Windows { "USERPROFILE" } else { "HOME" })
    }

    /// Returns the folder in which programs keep the data of the user.
    pub(super) fn application_data(self, variable: &impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        match self {
            Self::Windows => variable("APPDATA"),
            Self::MacOs => Some(self.home(variable)?.join("Library/Application Support")),
            Self::Linux => {
                // The XDG specification requires relative paths to be ignored.
                let given = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
                given.or_else(|| Some(self.home(variable)?.join(".config")))
            }
        }
    }
}

/// Returns the path in an environment variable, if it is not empty.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
