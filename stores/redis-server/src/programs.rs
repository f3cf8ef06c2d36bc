use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Whether tests that need a program are skipped: `cargo xtask test` requests this if it cannot install the program.
#[must_use]
pub fn is_left_out(program: &str) -> bool {
    std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == program))
}

pub(crate) fn find_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!("Redis is not installed: `cargo xtask test` installs it as root on Debian; otherwise install the package redis-server")
    })
}

/// Returns the user and group that servers run as if the tests run as root.
pub(crate) fn unprivileged() -> Option<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let users = if is_root { fs::read_to_string("/etc/passwd").unwrap_or_default() } else { String::new() };
    let line = users.lines().find(|line| line.split(':').next() == Some("nobody"))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Ports for test servers: below the range from which the system assigns ephemeral ports. A cluster also uses the port 10,000 higher.
const PORTS: std::ops::Range<u16> = 11_000..20_000;

/// Returns a free port, reserved until this process ends.
///
/// The reservation is a locked file. Without it, a server that is restarting or has not started yet could lose its port to the
/// server of another test process.
pub(crate) fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = std::env::temp_dir().join("threadkeep-test-ports");
    fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    // Processes start at different ports, so that few of them try the same.
    let first = std::process::id() as usize * 7 % PORTS.len();
    let ports = PORTS.cycle().skip(first).take(PORTS.len());
    let (port, files) = ports
        .filter_map(|port| Some((port, [reserve(&folder, port)?, reserve(&folder, port + 10_000)?])))
        .find(|(port, _)| is_free(*port) && is_free(port + 10_000))
        .expect("this machine has a free port");
    reserved.extend(files);
    port
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// `None` if this or another process has reserved the port.
fn reserve(folder: &Path, port: u16) -> Option<File> {
    let file = File::options().create(true).append(true).open(folder.join(port.to_string())).ok()?;
    file.try_lock().is_ok().then_some(file)
}
