use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A TCP proxy in front of a server. The proxy can stop forwarding as if a cable had been pulled.
///
/// It listens on another loopback address, on the same port as the server, so that a cluster can announce this address to clients while its
/// nodes reach each other directly.
#[derive(Debug)]
pub struct Proxy {
    is_cut: Arc<AtomicBool>,
    /// Both ends of every connection.
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

/// The address on which proxies listen.
pub(crate) const ADDRESS: &str = "127.0.0.2";

impl Proxy {
    /// Starts a proxy in front of the server at `127.0.0.1:PORT`. It runs until the test process ends.
    pub(crate) fn start(port: u16) -> Self {
        let listener = TcpListener::bind((ADDRESS, port)).expect("the port is free on the other address");
        let (is_cut, connections) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (cut_flag, open_connections) = (Arc::clone(&is_cut), Arc::clone(&connections));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let mut open_connections = open_connections.lock().unwrap_or_else(PoisonError::into_inner);
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    let is_cut = Arc::clone(&cut_flag);
                    thread::spawn(move || forward(from, to, &is_cut));
                }
                open_connections.extend([client, server]);
            }
        });
        Self { is_cut, connections }
    }

    /// Stops forwarding. Connections stay open, and new ones are accepted, but no data arrives.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    /// Resumes forwarding, and closes the existing connections.
    pub fn repair(&self) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_cut.store(false, Ordering::SeqCst);
        for connection in connections.drain(..) {
            // Fails if the connection is already closed.
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        // Bytes that arrive while the proxy is cut are lost, so `repair` closes the connection.
        if !is_cut.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}
