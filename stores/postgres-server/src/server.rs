use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use crate::database::{Database, Janitor};
use crate::programs::{copy_of_postgres_with_vectors, find_false_clock, find_postgres, free_port, is_left_out};
use crate::supervisor::{Supervisor, as_unprivileged};

/// Longer than a server takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running PostgreSQL server.
#[derive(Debug)]
pub struct Server {
    /// Up to the database's name.
    base_url: String,
    supervisor: Option<Supervisor>,
    pub(crate) port: u16,
    pub(crate) janitor: Janitor,
}

impl Server {
    /// The one server of this process, started by whoever asks first; `None` where it is to be left out.
    ///
    /// # Panics
    /// When it is not installed or does not start, with what to do about it.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED
            .get_or_init(|| match std::env::var("THREADKEEP_TEST_POSTGRES_URL") {
                Ok(url) => Some(Self::named(&url)),
                Err(_) if is_left_out("postgres") => None,
                Err(_) => Some(Self::start(&[])),
            })
            .as_ref()
    }

    /// A server of this process that can be given the extension pgvector (`CREATE EXTENSION vector`), started by whoever asks
    /// first; `None` where it is to be left out. It comes with a Python package, which `cargo xtask test` installs.
    ///
    /// # Panics
    /// When it is not installed or does not start, with what to do about it.
    pub fn with_vectors() -> Option<&'static Self> {
        static WITH_VECTORS: OnceLock<Option<Server>> = OnceLock::new();
        let start = || {
            let folder = Supervisor::make_folder();
            let programs = copy_of_postgres_with_vectors(&folder);
            Self::start_in(folder, &programs, &[], &[])
        };
        WITH_VECTORS.get_or_init(|| (!is_left_out("python")).then(start)).as_ref()
    }

    fn named(url: &str) -> Self {
        let config: Config = url.parse().expect("THREADKEEP_TEST_POSTGRES_URL is a URL of PostgreSQL");
        let base_url = url.split_once('?').map_or(url, |(place, _)| place).rsplit_once('/');
        let base_url = base_url.expect("a URL with a database").0.to_owned();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Self { janitor: Janitor::new(base_url.clone()), base_url, supervisor: None, port }
    }

    /// Starts a server of one's own, with settings beside its own (`name=value`); it is gone when this is dropped.
    ///
    /// # Panics
    /// As [`Server::shared`].
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(Supervisor::make_folder(), &find_postgres(), &[], settings)
    }

    /// Starts one that has a small file system beside its data; [`Server::small_folder`] is where. `None` where that is to
    /// be left out.
    ///
    /// # Panics
    /// As [`Server::shared`].
    #[must_use]
    pub fn start_with_small_folder(size: &str) -> Option<Self> {
        if is_left_out("unshare") {
            return None;
        }
        let folder = Supervisor::make_folder();
        let small = folder.join("small");
        let made = as_unprivileged("mkdir").arg(&small).status().expect("mkdir starts");
        assert!(made.success(), "the folder can be written");
        // In a name space of the server's own, so that nothing is left mounted when it ends.
        let mounting = format!("mount -t tmpfs -o size={size},mode=700 tmpfs {} && exec \"$@\"", small.display());
        let before = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", &mounting, "sh"];
        // What was refused leaves room behind when it is tidied up, and it is not to be foreseen when.
        Some(Self::start_in(folder, &find_postgres(), &before, &["autovacuum=off"]))
    }

    /// Starts one whose clock is a file's ([`Server::set_clock`]); `None` where that is to be left out.
    ///
    /// # Panics
    /// As [`Server::shared`].
    #[must_use]
    pub fn start_with_clock() -> Option<Self> {
        if is_left_out("faketime") {
            return None;
        }
        let folder = Supervisor::make_folder();
        let clock = format!("FAKETIME_TIMESTAMP_FILE={}", folder.join("clock").display());
        let library = format!("LD_PRELOAD={}", find_false_clock().display());
        fs::write(folder.join("clock"), "+0\n").expect("the folder can be written");
        // Read again each time that the clock is asked, and only the clock: whoever waits, waits as long as others.
        let before = ["env", &clock, &library, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
        Some(Self::start_in(folder, &find_postgres(), &before, &[]))
    }

    /// Makes a copy of a server that follows it until it is promoted.
    ///
    /// # Panics
    /// As [`Server::shared`].
    #[must_use]
    pub fn start_replica(of: &Self) -> Self {
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
            .arg(of.port.to_string())
            .arg("-D")
            .arg(folder.join("data"))
            .current_dir("/")
            .output()
            .expect("pg_basebackup starts");
        assert!(copied.status.success(), "pg_basebackup failed: {}", String::from_utf8_lossy(&copied.stderr));
        Self::run(folder, &find_postgres(), &[], &[])
    }

    fn start_in(folder: PathBuf, programs: &Path, before: &[&str], settings: &[&str]) -> Self {
        let made = as_unprivileged(programs.join("initdb"))
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(folder.join("data"))
            .current_dir("/")
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        Self::run(folder, programs, before, settings)
    }

    /// Runs the data that is in a folder, by a command that takes the server's as its last arguments.
    fn run(folder: PathBuf, programs: &Path, before: &[&str], settings: &[&str]) -> Self {
        let port = free_port();
        let program = programs.join("postgres").display().to_string();
        let mut command: Vec<String> = before.iter().map(ToString::to_string).collect();
        command.extend([program, "-D".to_owned(), folder.join("data").display().to_string()]);
        command.extend(["-p".to_owned(), port.to_string()]);
        let folder_setting = format!("unix_socket_directories={}", folder.display());
        // Nothing here outlives the machine, so nothing waits for the disk; what must is asked for in settings.
        let own = ["listen_addresses=127.0.0.1", &folder_setting, "max_connections=600", "fsync=off", "jit=off"];
        let own = own.into_iter().chain(["full_page_writes=off", "autovacuum_naptime=5s", "shared_buffers=64MB"]);
        for setting in own.chain(settings.iter().copied()) {
            command.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let (program, arguments) = command.split_first().expect("a command has a program");
        let supervisor = Supervisor::start(folder, "QUIT", Path::new(program), arguments);
        let base_url = format!("postgres://postgres@127.0.0.1:{port}");
        let janitor = Janitor::new(base_url.clone());
        let server = Self { base_url, supervisor: Some(supervisor), port, janitor };
        server.wait_until_it_answers();
        server
    }

    /// The URL of a database here.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.base_url)
    }

    /// The URL of a database on whichever of two servers takes writes.
    #[must_use]
    pub fn url_of_either(&self, other: &Self, database: &str) -> String {
        let (port, other) = (self.port, other.port);
        format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{other}/{database}?target_session_attrs=read-write")
    }

    /// Where the small file system is.
    ///
    /// # Panics
    /// Over a server that was named by its URL.
    #[must_use]
    pub fn small_folder(&self) -> PathBuf {
        self.supervisor().folder.join("small")
    }

    /// Moves the clock of a server that has one of its own, by seconds from what it is.
    ///
    /// # Panics
    /// Over a server that was named by its URL.
    pub fn set_clock(&self, seconds: i64) {
        fs::write(self.supervisor().folder.join("clock"), format!("{seconds:+}\n")).expect("the folder can be written");
    }

    /// Makes an empty database, which is gone when it is dropped.
    pub async fn create_database(&self) -> Database {
        Database::create(self).await
    }

    /// Lends a database that `prepare` filled, given its URL, or one that was lent before and then emptied again by `empty`,
    /// a text of SQL: much quicker than a database for each of very many tests.
    pub async fn lend_database<F: Future<Output = ()>>(
        &self,
        prepare: impl FnOnce(String) -> F,
        empty: &'static str,
    ) -> Database {
        if let Some(name) = self.janitor.take_emptied() {
            return Database::lent(self, name, empty);
        }
        let database = Database::create(self).await;
        prepare(database.url()).await;
        Database::lent(self, database.keep(), empty)
    }

    /// Kills the server as a power cut would its processes.
    ///
    /// # Panics
    /// Over a server that was named by its URL.
    pub fn kill(&self) {
        self.supervisor().say("kill");
    }

    /// Starts it again, and waits until it answers.
    ///
    /// # Panics
    /// When it does not, and as [`Server::kill`].
    pub fn restart(&self) {
        self.wait_until_it_answers();
    }

    fn supervisor(&self) -> &Supervisor {
        self.supervisor.as_ref().expect("a server of one's own")
    }

    fn wait_until_it_answers(&self) {
        let url = self.url("postgres");
        let waiting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let answering = async {
                while connect(&url).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            runtime.block_on(async { tokio::time::timeout(PATIENCE, answering).await })
        });
        while !waiting.is_finished() {
            // It is a no-op while the server runs; one that died over what its predecessor left is started again.
            self.supervisor().say("start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let answered = waiting.join().expect("waiting does not fail");
        assert!(answered.is_ok(), "PostgreSQL does not answer; its log:\n{}", self.supervisor().log());
    }
}

/// Connects without a pool.
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
