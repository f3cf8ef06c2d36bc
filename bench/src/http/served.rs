//! The program that serves, in a process of its own.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::wire::Connection;
use super::{Bench, Seeded};
use crate::measure::{resident_kib, until_idle};

/// How long the server may take to be ready, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a server that is starting.
const MOMENT: Duration = Duration::from_micros(500);

/// A server over a store, as `threadkeep serve` starts it. It ends with this value.
pub(super) struct Served {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) key: String,
    /// From the start of the process to the first answer that says it is ready.
    pub(super) ready_after: Duration,
}

impl Served {
    /// Makes a key and starts a server. `variables` are all of its environment, but for its home.
    pub(super) async fn start(bench: &Bench<'_>, seeded: &Seeded, variables: &[(&str, &str)]) -> Result<Self> {
        let folder = seeded.folder()?;
        let key = make_key(&bench.binary, seeded)?;
        // Whoever else takes a port in between is met with an error.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let log = File::create(folder.join("log"))?;
        let mut command = command(&bench.binary, seeded)?;
        command.arg("serve").arg("--listen").arg(address.to_string()).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let began = Instant::now();
        let child = command.spawn()?;
        let mut served = Self { child, address, key, ready_after: Duration::ZERO };
        served.wait_until_ready(began, &folder.join("log")).await?;
        Ok(served)
    }

    async fn wait_until_ready(&mut self, began: Instant, log: &Path) -> Result<()> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended ({status}): {}", std::fs::read_to_string(log)?);
            }
            if let Ok(mut connection) = Connection::open(self.address, "").await
                && connection.ask("GET", "/ready", "").await?.status == 200
            {
                self.ready_after = began.elapsed();
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "the server is not ready: {}", std::fs::read_to_string(log)?);
            tokio::time::sleep(MOMENT).await;
        }
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        Connection::open(self.address, &self.key).await
    }

    /// Revokes the key that was made for it, by a process of its own.
    pub(super) fn revoke_key(&self, binary: &Path, seeded: &Seeded) -> Result<()> {
        let id = self.key.split('_').nth(1).context("a key without an id")?;
        let output = command(binary, seeded)?.args(["keys", "revoke", id]).output()?;
        ensure!(output.status.success(), "the key was not revoked: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Waits until it has done what it left for later, such as the index.
    pub(super) async fn settle(&self) -> Result<()> {
        until_idle(self.child.id()).await
    }

    pub(super) fn resident_mb(&self) -> Result<f64> {
        Ok(self.resident_bytes()? / 1e6)
    }

    pub(super) fn resident_bytes(&self) -> Result<f64> {
        Ok(resident_kib(self.child.id())?.0 as f64 * 1024.0)
    }

    /// Ends it as an operator does, and waits until it has finished what it accepted.
    pub(super) fn stop(mut self) -> Result<()> {
        let status = Command::new("kill").arg(self.child.id().to_string()).status()?;
        ensure!(status.success(), "the server could not be asked to stop");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server ended with {status}");
                return Ok(());
            }
            std::thread::sleep(MOMENT);
        }
        bail!("the server did not end");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
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

fn make_key(binary: &Path, seeded: &Seeded) -> Result<String> {
    let output = command(binary, seeded)?.args(["keys", "create", "load", "--for-user", "user"]).output()?;
    ensure!(output.status.success(), "no key was made: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().next().context("the key was not told")?.to_owned())
}
