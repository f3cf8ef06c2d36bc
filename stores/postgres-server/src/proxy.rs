use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Server;

/// A door before a server that can be shut at a chosen moment.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    cut: Arc<AtomicU8>,
}

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Not at all.
    Never = 0,
    /// With the next request, before the server has it.
    BeforeRequest = 1,
    /// With the next request, in its middle.
    InRequest = 2,
    /// With the next answer, which the client does not get.
    BeforeReply = 3,
}

impl Proxy {
    /// Opens a door before a server, on this machine. It is open for as long as the runtime lives.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn before(server: &Server) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("this machine has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let cut = Arc::new(AtomicU8::new(0));
        let (shared, target) = (Arc::clone(&cut), server.port);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, target, Arc::clone(&shared)));
            }
        });
        Self { port, cut }
    }

    /// The URL of a database behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Cuts whichever connection is used next, once.
    pub fn cut(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Whether the cut was made.
    #[must_use]
    pub fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == Cut::Never as u8
    }
}

async fn pass(client: TcpStream, target: u16, cut: Arc<AtomicU8>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_due = |moment: Cut| cut.compare_exchange(moment as u8, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    let there = async {
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
    let back = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
            if is_due(Cut::BeforeReply) || to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    // Whichever ends takes both connections along.
    tokio::select! { () = there => {}, () = back => {} }
}
