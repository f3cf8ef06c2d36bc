use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use crate::database::{CleanupWorker, Database};
use crate::programs::{copy_postgres_with_vectors, find_libfaketime, find_postgres, free_port, is_skipped};
use crate::supervisor::{Supervisor, as_unprivileged};

/// The maximum time that a server takes to start, with a margin for busy machines.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running PostgreSQL server.
#[derive(Debug)]
pub struct Server {
    /// The URL without a database name.
    base_url: String,
    supervisor: Option<Supervisor>,
    pub(crate) port: u16,
    pub(crate) cleanup: CleanupWorker,
}

impl Server {
    /// Returns the shared server of this process. The first call starts it. Returns `None` if tests with PostgreSQL are skipped.
    ///
    /// # Panics
    /// PostgreSQL is not installed or does not start. The message says how to fix it.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED
            .get_or_init(|| match std::env::var("THREADKEEP_TEST_POSTGRES_URL") {
                Ok(url) => Some(Self::existing(&url)),
                Err(_) if is_skipped("postgres") => None,
                Err(_) => Some(Self::start(&[])),
            })
            .as_ref()
    }

    /// Returns the shared server of this process that supports pgvector (`CREATE EXTENSION vector`). The first call starts it.
    /// Returns `None` if tests with Python are skipped: the server is part of a Python package, which `cargo xtask test` installs.
    ///
    /// # Panics
    /// The server is not installed or does not start. The message says how to fix it.
    pub fn with_vectors() -> Option<&'static Self> {
        static WITH_VECTORS: OnceLock<Option<Server>> = OnceLock::new();
        let start = || {
            let folder = Supervisor::make_folder();
            let programs = copy_postgres_with_vectors(&folder);
            Self::start_in(folder, &programs, &[], &[])
        };
        WITH_VECTORS.get_or_init(|| (!is_skipped("python")).then(start)).as_ref()
    }

    fn existing(url: &str) -> Self {
        let config: Config = url.parse().expect("THREADKEEP_TEST_POSTGRES_URL is a PostgreSQL URL");
        let base_url = url.split_once('?').map_or(url, |(base, _)| base).rsplit_once('/');
        let base_url = base_url.expect("THREADKEEP_TEST_POSTGRES_URL names a database").0.to_owned();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Self { cleanup: CleanupWorker::new(base_url.clone()), base_url, supervisor: None, port }
    }

    /// Starts a separate server with additional settings (`name=value`). It stops when this value is dropped.
    ///
    /// # Panics
    /// In the same cases as [`Server::shared`].
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(Supervisor::make_folder(), &find_postgres(), &[], settings)
    }

    /// Starts a separate server with a small file system, mounted at [`Server::small_folder`]. Returns `None` if such tests are
    /// skipped.
    ///
    /// # Panics
    /// In the same cases as [`Server::shared`].
    #[must_use]
    pub fn start_with_small_folder(size: &str) -> Option<Self> {
        if is_skipped("unshare") {
            return None;
        }
        let folder = Supervisor::make_folder();
        let small = folder.join("small");
        let status = as_unprivileged("mkdir").arg(&small).status().expect("mkdir starts");
        assert!(status.success(), "the folder is writable");
        // The separate mount namespace unmounts the file system when the server ends.
        let mounting = format!("mount -t tmpfs -o size={size},mode=700 tmpfs {} && exec \"$@\"", small.display());
        let wrapper =
            ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", &mounting, "sh"];
        // Autovacuum would free the space of failed writes at an unpredictable time.
        Some(Self::start_in(folder, &find_postgres(), &wrapper, &["autovacuum=off"]))
    }

    /// Starts a separate server with a fake clock that [`Server::set_clock`] moves. Returns `None` if such tests are skipped.
    ///
    /// # Panics
    /// In the same cases as [`Server::shared`].
    #[must_use]
    pub fn start_with_clock() -> Option<Self> {
        if is_skipped("faketime") {
            return None;
        }
        let folder = Supervisor::make_folder();
        let clock = format!("FAKETIME_TIMESTAMP_FILE={}", folder.join("clock").display());
        let library = format!("LD_PRELOAD={}", find_libfaketime().display());
        fs::write(folder.join("clock"), "+0\n").expect("the folder is writable");
        // The file is read on every call. Only the wall clock is fake, so that timeouts and waits are not affected.
        let wrapper = ["env", &clock, &library, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
        Some(Self::start_in(folder, &find_postgres(), &wrapper, &[]))
    }

    /// Starts a replica, which follows the primary until it is promoted.
    ///
    /// # Panics
    /// In the same cases as [`Server::shared`].
    #[must_use]
    pub fn start_replica(primary: &Self) -> Self {
        let folder = Supervisor::make_folder();
        let copied = as_unprivileged(find_postgres().join("pg_basebackup"))
            .args([
                "--no-sync",
                "--checkpoint=fast",
                "--write-recovery-conf",
                "-h",
                "127.0.0.1",
                "-U",
                "postgres",
                "-p",
            ])
            .arg(primary.port.to_string())
            .arg("-D")
            .arg(folder.join("data"))
            .current_dir("/")
            .output()
            .expect("pg_basebackup starts");
        assert!(copied.status.success(), "pg_basebackup failed: {}", String::from_utf8_lossy(&copied.stderr));
        Self::run(folder, &find_postgres(), &[], &[])
    }

    fn start_in(folder: PathBuf, programs: &Path, wrapper: &[&str], settings: &[&str]) -> Self {
        let output = as_unprivileged(programs.join("initdb"))
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(folder.join("data"))
            .current_dir("/")
            .output()
            .expect("initdb starts");
        assert!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
        Self::run(folder, programs, wrapper, settings)
    }

    /// Runs a server on the data in a folder. `wrapper` is empty or a command that runs its last arguments, such as `env`.
    fn run(folder: PathBuf, programs: &Path, wrapper: &[&str], settings: &[&str]) -> Self {
        let port = free_port();
        let program = programs.join("postgres").display().to_string();
        let mut command: Vec<String> = wrapper.iter().map(ToString::to_string).collect();
        command.extend([program, "-D".to_owned(), folder.join("data").display().to_string()]);
        command.extend(["-p".to_owned(), port.to_string()]);
        let folder_setting = format!("unix_socket_directories={}", folder.display());
        // Test data need not survive a power failure. Tests that need durability set it in `settings`.
        let defaults = ["listen_addresses=127.0.0.1", &folder_setting, "max_connections=600", "fsync=off", "jit=off"];
        let defaults =
            defaults.into_iter().chain(["full_page_writes=off", "autovacuum_naptime=5s", "shared_buffers=64MB"]);
        for setting in defaults.chain(settings.iter().copied()) {
            command.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let (program, arguments) = command.split_first().expect("a command has a program");
        let supervisor = Supervisor::start(folder, "QUIT", Path::new(program), arguments);
        let base_url = format!("postgres://postgres@127.0.0.1:{port}");
        let cleanup = CleanupWorker::new(base_url.clone());
        let server = Self { base_url, supervisor: Some(supervisor), port, cleanup };
        server.wait_until_ready();
        server
    }

    /// Returns the URL of a database on this server.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.base_url)
    }

    /// Returns a URL that lists two servers, for a database on both. Clients connect to the server that accepts writes.
    #[must_use]
    pub fn url_of_either(&self, other: &Self, database: &str) -> String {
        let (port, other) = (self.port, other.port);
        format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{other}/{database}?target_session_attrs=read-write")
    }

    /// Returns the folder where the small file system is mounted.
    ///
    /// # Panics
    /// This is an existing server (`THREADKEEP_TEST_POSTGRES_URL`).
    #[must_use]
    pub fn small_folder(&self) -> PathBuf {
        self.supervisor().folder.join("small")
    }

    /// Sets the offset of the server's fake clock from the real time, in seconds.
    ///
    /// # Panics
    /// This is an existing server (`THREADKEEP_TEST_POSTGRES_URL`).
    pub fn set_clock(&self, seconds: i64) {
        fs::write(self.supervisor().folder.join("clock"), format!("{seconds:+}\n")).expect("the folder is writable");
    }

    /// Creates an empty database, which is removed when it is dropped.
    pub async fn create_database(&self) -> Database {
        Database::create(self).await
    }

    /// Returns a prepared database and reuses it after it is dropped, which is much faster than a new database per test.
    /// `prepare` sets up a new database, given its URL. The SQL text `empty` empties it for the next use.
    pub async fn lend_database<F: Future<Output = ()>>(
        &self,
        prepare: impl FnOnce(String) -> F,
        empty: &'static str,
    ) -> Database {
        if let Some(name) = self.cleanup.take_emptied() {
            return Database::reusable(self, name, empty);
        }
        let database = Database::create(self).await;
        prepare(database.url()).await;
        Database::reusable(self, database.into_name(), empty)
    }

    /// Kills the server's processes without a shutdown.
    ///
    /// # Panics
    /// This is an existing server (`THREADKEEP_TEST_POSTGRES_URL`).
    pub fn kill(&self) {
        self.supervisor().send("kill");
    }

    /// Starts the server again and waits until it accepts connections.
    ///
    /// # Panics
    /// The server does not start, or this is an existing server (`THREADKEEP_TEST_POSTGRES_URL`).
    pub fn restart(&self) {
        self.wait_until_ready();
    }

    fn supervisor(&self) -> &Supervisor {
        self.supervisor.as_ref().expect("the server was started by this process")
    }

    fn wait_until_ready(&self) {
        let url = self.url("postgres");
        let waiting = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the runtime starts");
            let connecting = async {
                while connect(&url).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            runtime.block_on(async { tokio::time::timeout(START_TIMEOUT, connecting).await })
        });
        while !waiting.is_finished() {
            // Has no effect while the server runs. If the server failed to start because of remnants of a killed one,
            // it is started again.
            self.supervisor().send("start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let connected = waiting.join().expect("waiting does not fail");
        assert!(connected.is_ok(), "PostgreSQL does not accept connections; its log:\n{}", self.supervisor().log());
    }
}

/// Connects without a pool.
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
