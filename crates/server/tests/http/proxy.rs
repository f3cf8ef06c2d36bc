//! A proxy that drops responses: it closes the connection of every third POST after the server has executed it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    posts: Arc<AtomicUsize>,
    dropped_responses: Arc<AtomicUsize>,
}

impl Proxy {
    /// Starts a proxy in front of a server.
    pub(crate) async fn start_in_front_of(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Self { address, posts: Arc::default(), dropped_responses: Arc::default() };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let proxy = accepting.clone();
                tokio::spawn(async move { proxy.forward(client, server).await });
            }
        });
        proxy
    }

    /// Returns how many responses were dropped.
    pub(crate) fn dropped_responses(&self) -> usize {
        self.dropped_responses.load(Ordering::SeqCst)
    }

    /// Forwards one request and its response, unless this response is to be dropped.
    async fn forward(&self, mut client: TcpStream, server: SocketAddr) {
        let Some(request) = read_request(&mut client).await else { return };
        let mut upstream = TcpStream::connect(server).await.unwrap();
        upstream.write_all(&request).await.unwrap();
        let mut reply = Vec::new();
        upstream.read_to_end(&mut reply).await.unwrap();
        let is_post = request.starts_with(b"POST ");
        if is_post && (self.posts.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(3) {
            self.dropped_responses.fetch_add(1, Ordering::SeqCst);
            return;
        }
        // The client may have disconnected.
        drop(client.write_all(&reply).await);
    }
}

/// Reads a complete request, and adds `connection: close`.
async fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 8192];
        let count = client.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            let lines = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
            let head: Vec<&str> = lines.collect();
            let head = format!("{}\r\nconnection: close\r\n\r\n", head.join("\r\n"));
            return Some([head.as_bytes(), &bytes[end + 4..]].concat());
        }
    }
}
