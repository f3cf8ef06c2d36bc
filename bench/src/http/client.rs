//! A minimal HTTP client, for checking responses and receiving events.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Maximum length of a WebSocket frame.
const MAX_FRAME_BYTES: usize = 1 << 20;

/// A connection for sequential requests.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    headers: String,
}

pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Response {
    /// Returns the body of a successful response, as JSON.
    pub(super) fn json(&self) -> Result<Value> {
        ensure!((200..300).contains(&self.status), "{}: {}", self.status, String::from_utf8_lossy(&self.body));
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Connection {
    /// Opens a connection. Every request contains the key, unless it is empty.
    pub(super) async fn open(address: SocketAddr, key: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let authorization = if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
        // The buffer is small, because thousands of connections are open at the same time.
        let stream = BufReader::with_capacity(2_048, stream);
        Ok(Self { stream, headers: format!("Host: {address}\r\n{authorization}") })
    }

    pub(super) async fn request(&mut self, method: &str, path: &str, body: &str) -> Result<Response> {
        let headers = &self.headers;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        let (status, length) = self.head().await?;
        let mut body = vec![0; length.context("missing content-length")?];
        self.stream.read_exact(&mut body).await?;
        Ok(Response { status, body })
    }

    /// Requests an event stream and reads until it starts.
    pub(super) async fn listen(&mut self, path: &str) -> Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\n{}\r\n", self.headers);
        self.stream.write_all(request.as_bytes()).await?;
        let (status, _) = self.head().await?;
        ensure!(status == 200, "the server refused the event stream: {status}");
        while !self.line().await?.starts_with(": listening") {}
        Ok(())
    }

    /// Waits for the next event. Returns its change.
    pub(super) async fn next_event(&mut self) -> Result<u64> {
        loop {
            let line = self.line().await?;
            if let Some(id) = line.strip_prefix("id: ") {
                // A tag follows the number: `17-a1b2c3d4`.
                let change = id.trim().split('-').next().unwrap_or_default().parse()?;
                while !self.line().await?.starts_with("data: ") {}
                return Ok(change);
            }
        }
    }

    /// Upgrades the connection to a WebSocket.
    pub(super) async fn upgrade(&mut self) -> Result<()> {
        let headers = &self.headers;
        let request = format!(
            "GET /v1/live HTTP/1.1\r\n{headers}Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        self.stream.write_all(request.as_bytes()).await?;
        let (status, _) = self.head().await?;
        ensure!(status == 101, "the server refused the WebSocket: {status}");
        Ok(())
    }

    pub(super) async fn send_text(&mut self, text: &str) -> Result<()> {
        // Clients must mask frames; a mask of zeros leaves the text unchanged.
        let length = u16::try_from(text.len())?;
        let mut frame = vec![0x81];
        if length < 126 {
            frame.push(0x80 | text.len() as u8);
        } else {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        Ok(self.stream.write_all(&frame).await?)
    }

    /// Waits for the next text frame of a WebSocket. Pings and pongs are ignored.
    pub(super) async fn next_text(&mut self) -> Result<Vec<u8>> {
        loop {
            let kind = self.stream.read_u8().await?;
            let length = match self.stream.read_u8().await? {
                126 => usize::from(self.stream.read_u16().await?),
                127 => usize::try_from(self.stream.read_u64().await?)?,
                short => usize::from(short),
            };
            ensure!(length <= MAX_FRAME_BYTES, "a frame is too long: {length} bytes");
            let mut text = vec![0; length];
            self.stream.read_exact(&mut text).await?;
            match kind {
                0x81 => return Ok(text),
                0x89 | 0x8a => {}
                _ => bail!("the WebSocket was closed"),
            }
        }
    }

    async fn head(&mut self) -> Result<(u16, Option<usize>)> {
        let first = self.line().await?;
        let status = first.split(' ').nth(1).context("missing status")?.parse()?;
        let mut length = None;
        loop {
            let line = self.line().await?;
            match line.trim_end().split_once(": ") {
                None => return Ok((status, length)),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = Some(value.parse()?),
                Some(_) => {}
            }
        }
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line).await? > 0, "the connection was closed");
        Ok(line)
    }
}
