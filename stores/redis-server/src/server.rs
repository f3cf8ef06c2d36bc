use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Certificates;
use crate::programs::{find_program, free_port, is_left_out};
use crate::supervisor::Supervisor;

/// How long a server may take to start or to finish a task, with a margin for busy machines.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A running Redis server. Stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    supervisor: Supervisor,
    port: u16,
    tls_port: Option<u16>,
}

impl Server {
    /// Returns the shared server of this process. The first call starts it. Returns `None` if tests with Redis are skipped.
    ///
    /// # Panics
    /// Redis is not installed or does not start. The message says how to fix it.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[])).as_ref()
    }

    /// Starts a server with additional settings (`name`, `value`). Returns `None` if tests with Redis are skipped.
    ///
    /// # Panics
    /// Redis is not installed or does not start. The message says how to fix it.
    #[must_use]
    pub fn start(settings: &[(&str, &str)]) -> Option<Self> {
        Self::start_with(settings, None)
    }

    /// Starts a server that also has a TLS port, on which it requires client certificates.
    ///
    /// # Panics
    /// In the same cases as [`Server::start`].
    #[must_use]
    pub fn start_with_tls(certificates: &Certificates, settings: &[(&str, &str)]) -> Option<Self> {
        let (authority, certificate, key) = (certificates.authority(), certificates.certificate(), certificates.key());
        let (port, files) = (free_port(), [authority, certificate, key].map(|path| path.display().to_string()));
        let port_text = port.to_string();
        let tls = [
            ("tls-port", port_text.as_str()),
            ("tls-ca-cert-file", &files[0]),
            ("tls-cert-file", &files[1]),
            ("tls-key-file", &files[2]),
        ];
        Self::start_with(&[&tls[..], settings].concat(), Some(port))
    }

    fn start_with(settings: &[(&str, &str)], tls_port: Option<u16>) -> Option<Self> {
        if is_left_out("redis") {
            return None;
        }
        let (folder, port) = (Supervisor::make_folder(), free_port());
        let mut arguments = vec!["--port".to_owned(), port.to_string()];
        let folder_name = folder.display().to_string();
        let defaults = [
            ("bind", "127.0.0.1"),
            ("dir", folder_name.as_str()),
            ("save", ""),
            ("appendonly", "yes"),
            ("appendfsync", "everysec"),
        ];
        for (name, value) in defaults.iter().chain(settings) {
            arguments.extend([format!("--{name}"), (*value).to_owned()]);
        }
        let supervisor = Supervisor::start(folder, &find_program("redis-server"), &arguments);
        let server = Self { supervisor, port, tls_port };
        server.wait_until_ready();
        Some(server)
    }

    /// Returns the address, `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the address of the TLS port, `127.0.0.1:PORT`.
    ///
    /// # Panics
    /// The server has no TLS port.
    #[must_use]
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.tls_port.expect("the server was started with TLS"))
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs `redis-cli` on this server and returns its output.
    ///
    /// # Panics
    /// `redis-cli` is not installed.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> String {
        let Output { stdout, stderr, .. } = Command::new(find_program("redis-cli"))
            .args(["-h", "127.0.0.1", "-p"])
            .arg(self.port.to_string())
            .args(arguments)
            .output()
            .expect("redis-cli starts");
        format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)).trim().to_owned()
    }

    /// Kills the server with SIGKILL and starts it again with the same files.
    ///
    /// # Panics
    /// The server does not start.
    pub fn restart(&self) {
        self.kill();
        self.supervisor.send("start");
        self.wait_until_ready();
    }

    /// Kills the server with SIGKILL and starts it again without its data.
    ///
    /// # Panics
    /// The data cannot be removed, or the server does not start.
    pub fn restart_empty(&self) {
        self.kill();
        fs::remove_dir_all(self.supervisor.folder.join("appendonlydir")).expect("the data can be removed");
        self.supervisor.send("start");
        self.wait_until_ready();
    }

    /// Makes the server reject replicas, as if the network between them had failed. Client connections remain.
    pub fn disconnect_replicas(&self) {
        drop(self.run(&["config", "set", "requirepass", "none-knows-it"]));
        drop(self.run(&["-a", "none-knows-it", "--no-auth-warning", "client", "kill", "type", "replica"]));
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&self) {
        self.supervisor.send("kill");
        self.wait_until("the server is killed", || self.run(&["ping"]) != "PONG");
    }

    /// Lists the files of the server that can contain data.
    ///
    /// # Panics
    /// The folder cannot be read.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.supervisor.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }

    /// Waits until Redis has removed the append-only files that a rewrite replaced, which it does in the background.
    ///
    /// # Panics
    /// They still exist after a minute.
    pub fn wait_until_old_files_are_removed(&self) {
        self.wait_until("replaced append-only files are removed", || {
            let files = self.files();
            let manifest = files.iter().find(|file| file.extension().is_some_and(|end| end == "manifest"));
            let manifest = manifest.map(|file| fs::read_to_string(file).unwrap_or_default()).unwrap_or_default();
            let logs = files.iter().filter_map(|file| file.file_name()?.to_str());
            logs.filter(|name| name.starts_with("appendonly") && !name.ends_with("manifest"))
                .all(|name| manifest.contains(&format!("file {name} ")))
        });
    }

    fn wait_until_ready(&self) {
        self.wait_until("the server starts", || self.run(&["ping"]) == "PONG");
    }

    pub(crate) fn wait_until(&self, what: &str, is_met: impl Fn() -> bool) {
        let end = Instant::now() + TIMEOUT;
        while !is_met() {
            assert!(Instant::now() < end, "timed out: {what}; its log:\n{}", self.supervisor.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
