use std::fs;
use std::time::Duration;

use crate::programs::{find_pooler, free_port, is_skipped};
use crate::server::{Server, connect};
use crate::supervisor::Supervisor;

/// The maximum time that PgBouncer takes to start, with a margin for busy machines.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running PgBouncer in transaction mode.
#[derive(Debug)]
pub struct Pooler {
    supervisor: Supervisor,
    port: u16,
}

impl Pooler {
    /// Starts PgBouncer in front of a server. Returns `None` if tests with PgBouncer are skipped.
    ///
    /// # Panics
    /// PgBouncer is not installed or does not start.
    pub async fn start(server: &Server) -> Option<Self> {
        if is_skipped("pgbouncer") {
            return None;
        }
        let folder = Supervisor::make_folder();
        let port = free_port();
        let file = folder.join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = transaction\nmax_client_conn = 2000\n\
             default_pool_size = 10\nserver_idle_timeout = 2\nunix_socket_dir =\n",
            server.port
        );
        fs::write(&file, settings).expect("the folder is writable");
        let supervisor = Supervisor::start(folder, "TERM", &find_pooler(), &[file.display().to_string()]);
        let pooler = Self { supervisor, port };
        pooler.wait_until_ready().await;
        Some(pooler)
    }

    /// Returns the URL of a database through the pooler.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Kills PgBouncer and starts it again.
    pub async fn restart(&self) {
        self.supervisor.send("kill");
        self.supervisor.send("start");
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&self) {
        let url = self.url("postgres");
        let connecting = async {
            while connect(&url).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let connected = tokio::time::timeout(START_TIMEOUT, connecting).await;
        assert!(connected.is_ok(), "PgBouncer does not accept connections; its log:\n{}", self.supervisor.log());
    }
}
