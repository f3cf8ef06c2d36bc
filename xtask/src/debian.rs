//! Installing programs from Debian packages.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::cargo;

/// Returns the reason why packages cannot be installed on this machine, if there is one.
pub(crate) fn installation_problem() -> Option<&'static str> {
    if !Path::new("/etc/debian_version").exists() || !is_on_path("apt-get") {
        Some("this system is not Debian")
    } else if !is_root() {
        Some("installing packages requires root")
    } else {
        None
    }
}

/// Runs apt-get in a folder; returns whether it succeeded. If it fails, updates the package lists and tries again: a
/// new Debian image has no lists, and the lists of an older image are outdated.
pub(crate) fn apt_get(arguments: &[&str], folder: &Path) -> bool {
    run_apt_get(arguments, folder) || (run_apt_get(&["update"], folder) && run_apt_get(arguments, folder))
}

fn run_apt_get(arguments: &[&str], folder: &Path) -> bool {
    let mut command = Command::new("apt-get");
    command.args(arguments).current_dir(folder).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    cargo::run(&mut command).inspect_err(|error| println!("{error:#}")).is_ok()
}

/// Returns the files of the packages that were downloaded into a folder.
pub(crate) fn packages_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
}

/// Whether a program is on the `PATH`.
pub(crate) fn is_on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
