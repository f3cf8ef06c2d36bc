//! The server, as a separate process.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Seeded;
use super::client::Connection;
use crate::measure::{resident_kib, until_idle};

/// Timeout of the server's start and shutdown.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Poll interval while the server starts or stops.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// A running server. The process is killed when this value is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(super) key: String,
    /// Time from the start of the process to the first successful response of `/ready`.
    pub(super) ready_after: Duration,
}

impl ServerProcess {
    /// Creates an API key and starts a server. Its environment consists of `HOME` and `variables`.
    pub(crate) async fn start(binary: &Path, seeded: &Seeded, variables: &[(&str, &str)]) -> Result<Self> {
        let folder = seeded.folder()?;
        let key = create_key(binary, seeded)?;
        // If another process takes the port before the server does, the server fails to start.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let log = File::create(folder.join("log"))?;
        let mut command = command(binary, seeded)?;
        command.arg("serve").arg("--listen").arg(address.to_string()).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let began = Instant::now();
        let child = command.spawn()?;
        let mut server = Self { child, address, key, ready_after: Duration::ZERO };
        server.wait_until_ready(began, &folder.join("log")).await?;
        Ok(server)
    }

    async fn wait_until_ready(&mut self, began: Instant, log: &Path) -> Result<()> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server exited ({status}): {}", std::fs::read_to_string(log)?);
            }
            if let Ok(mut connection) = Connection::open(self.address, "").await
                && connection.request("GET", "/ready", "").await?.status == 200
            {
                self.ready_after = began.elapsed();
                return Ok(());
            }
            ensure!(began.elapsed() < TIMEOUT, "the server is not ready: {}", std::fs::read_to_string(log)?);
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        Connection::open(self.address, &self.key).await
    }

    /// Revokes the server's key, by a separate process.
    pub(super) fn revoke_key(&self, binary: &Path, seeded: &Seeded) -> Result<()> {
        let id = self.key.split('_').nth(1).context("a key without an id")?;
        let output = command(binary, seeded)?.args(["keys", "revoke", id]).output()?;
        ensure!(output.status.success(), "revoking the key failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Waits until the server has finished background work, such as indexing.
    pub(crate) async fn settle(&self) -> Result<()> {
        until_idle(self.child.id()).await
    }

    pub(super) fn resident_mb(&self) -> Result<f64> {
        Ok(self.resident_bytes()? / 1e6)
    }

    pub(crate) fn resident_bytes(&self) -> Result<f64> {
        Ok(resident_kib(self.child.id())?.0 as f64 * 1024.0)
    }

    /// Stops the server with SIGTERM, and waits for its graceful shutdown.
    pub(crate) fn stop(mut self) -> Result<()> {
        let status = Command::new("kill").arg(self.child.id().to_string()).status()?;
        ensure!(status.success(), "sending SIGTERM to the server failed");
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server exited with {status}");
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        bail!("the server did not stop in time");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(binary: &Path, seeded: &Seeded) -> Result<Command> {
    let mut command = Command::new(binary);
    command.env_clear().env("HOME", seeded.folder()?);
    command.args(["--tenant", "bench"]).arg("--store").arg(&seeded.store);
    Ok(command)
}

fn create_key(binary: &Path, seeded: &Seeded) -> Result<String> {
    let output = command(binary, seeded)?.args(["keys", "create", "load", "--for-user", "user"]).output()?;
    ensure!(output.status.success(), "creating a key failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().next().context("no key in the output")?.to_owned())
}
