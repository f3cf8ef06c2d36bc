//! The baseline (floor) of reads: a route of the same web framework that returns fixed bytes from memory.

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

/// Arguments of the floor's process.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to serve
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

/// The floor, as a separate process like the server. It is killed when this value is dropped.
pub(crate) struct Floor {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Floor {
    pub(crate) fn start(body: &[u8], file: &Path) -> Result<Self> {
        std::fs::write(file, body)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("http-floor").arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("stdout is not piped")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().parse().context("the floor printed no address")? })
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
