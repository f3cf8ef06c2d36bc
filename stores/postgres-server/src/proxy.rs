use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Server;

/// A TCP proxy in front of a server that can cut a connection at a chosen point.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    cut: Arc<AtomicU8>,
}

/// The point at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The connection is not cut.
    Never = 0,
    /// At the next request, before any of it reaches the server.
    BeforeRequest = 1,
    /// In the middle of the next request.
    InRequest = 2,
    /// At the next reply, before any of it reaches the client.
    BeforeReply = 3,
}

impl Proxy {
    /// Starts a proxy in front of a server. It runs as long as the runtime.
    ///
    /// # Panics
    /// No port is free.
    pub async fn start(server: &Server) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("this machine has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let cut = Arc::new(AtomicU8::new(0));
        let (shared, target) = (Arc::clone(&cut), server.port);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, target, Arc::clone(&shared)));
            }
        });
        Self { port, cut }
    }

    /// Returns the URL of a database through the proxy.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Cuts the next connection that reaches the given point, once.
    pub fn cut(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Whether the requested cut has been made.
    #[must_use]
    pub fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == Cut::Never as u8
    }
}

async fn forward(client: TcpStream, target: u16, cut: Arc<AtomicU8>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_due = |moment: Cut| cut.compare_exchange(moment as u8, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    let requests = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            if is_due(Cut::BeforeRequest) {
                return;
            }
            let is_cut = is_due(Cut::InRequest);
            let count = if is_cut { count / 2 } else { count };
            if to_server.write_all(&bytes[..count]).await.is_err() || is_cut {
                return;
            }
        }
    };
    let replies = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
            if is_due(Cut::BeforeReply) || to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    // When one direction ends, both connections are closed.
    tokio::select! { () = requests => {}, () = replies => {} }
}
