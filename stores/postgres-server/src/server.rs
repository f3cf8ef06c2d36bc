use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use crate::database::{Database, Janitor};
use crate::programs::{copy_of_postgres_with_vectors, find_postgres, free_port, is_left_out};
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
            Self::start_in(folder, &programs, &[])
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
        Self::start_in(Supervisor::make_folder(), &find_postgres(), settings)
    }

    fn start_in(folder: PathBuf, programs: &Path, settings: &[&str]) -> Self {
        let data = folder.join("data");
        let made = as_unprivileged(programs.join("initdb"))
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .current_dir("/")
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let mut arguments = vec!["-D".to_owned(), data.display().to_string(), "-p".to_owned(), port.to_string()];
        let folder_setting = format!("unix_socket_directories={}", folder.display());
        // Nothing here outlives the machine, so nothing waits for the disk; what must is asked for in settings.
        let own = ["listen_addresses=127.0.0.1", &folder_setting, "max_connections=300", "fsync=off", "jit=off"];
        let own = own.into_iter().chain(["full_page_writes=off", "autovacuum_naptime=5s", "shared_buffers=64MB"]);
        for setting in own.chain(settings.iter().copied()) {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let supervisor = Supervisor::start(folder, "QUIT", &programs.join("postgres"), &arguments);
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
