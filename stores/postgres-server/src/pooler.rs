use std::fs;
use std::time::Duration;

use crate::programs::{find_pooler, free_port, is_left_out};
use crate::server::{Server, connect};
use crate::supervisor::Supervisor;

const PATIENCE: Duration = Duration::from_secs(30);

/// A running PgBouncer in transaction mode.
#[derive(Debug)]
pub struct Pooler {
    supervisor: Supervisor,
    port: u16,
}

impl Pooler {
    /// Starts one before a server; `None` where it is to be left out.
    ///
    /// # Panics
    /// When it is not installed or does not start.
    pub async fn start(server: &Server) -> Option<Self> {
        if is_left_out("pgbouncer") {
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
        fs::write(&file, settings).expect("the folder can be written");
        let supervisor = Supervisor::start(folder, &find_pooler(), &[file.display().to_string()]);
        let pooler = Self { supervisor, port };
        pooler.wait_until_it_answers().await;
        Some(pooler)
    }

    /// The URL of a database behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Stops it and starts it again.
    pub async fn restart(&self) {
        self.supervisor.say("kill");
        self.supervisor.say("start");
        self.wait_until_it_answers().await;
    }

    async fn wait_until_it_answers(&self) {
        let url = self.url("postgres");
        let answering = async {
            while connect(&url).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let answered = tokio::time::timeout(PATIENCE, answering).await;
        assert!(answered.is_ok(), "PgBouncer does not answer; its log:\n{}", self.supervisor.log());
    }
}
