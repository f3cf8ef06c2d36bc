//! The floor of reading: a route of the same framework that returns bytes which lie in memory.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::any;
use axum::serve::ListenerExt;

/// Arguments of the process that serves bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file with the bytes
    file: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let bytes = Bytes::from(std::fs::read(&args.file)?);
    let answer = move || std::future::ready(([(header::CONTENT_TYPE, "application/json")], bytes.clone()));
    let router = Router::new()
        .route("/v1/threads/{id}/messages", any(answer.clone()))
        .route("/v1/threads/{id}/context", any(answer));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, router).await?)
}

/// The floor in a process of its own, as the server is. It ends with this value.
pub(super) struct Floor {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Floor {
    pub(super) fn start(body: &[u8], file: &Path) -> Result<Self> {
        std::fs::write(file, body)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("http-floor").arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the floor says nothing")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().parse().context("the floor told no address")? })
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
