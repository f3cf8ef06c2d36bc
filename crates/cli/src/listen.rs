//! The address on which a server listens: an IP address or host name of this machine, and a port.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use anyhow::{Context, Result};
use tokio::net::TcpListener;

use crate::failure::Failure;

/// A host (IP address or name) and a port: `127.0.0.1:7437`, `[::1]:7437`, `localhost:7437`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    host: String,
    port: u16,
}

/// The text is not a host with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAnAddress;

impl ListenAddress {
    /// Returns the loopback address with `port`.
    pub(crate) fn loopback(port: u16) -> Self {
        Self { host: "127.0.0.1".to_owned(), port }
    }

    /// Resolves the host. A name can have several addresses.
    ///
    /// # Errors
    /// The name is unknown.
    pub(crate) fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let found: Vec<SocketAddr> = (host, self.port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
        if found.is_empty() {
            let failure = Failure::usage(format!("cannot listen on {self}: unknown host `{}`", self.host));
            return Err(failure
                .hint("use one of this machine's addresses, such as 127.0.0.1:7437 or 0.0.0.0:7437")
                .into());
        }
        Ok(found)
    }

    /// Listens on the first of `addresses` that is available.
    ///
    /// # Errors
    /// No address is available.
    pub(crate) async fn bind(&self, addresses: &[SocketAddr]) -> Result<TcpListener> {
        let bound = TcpListener::bind(addresses).await;
        bound
            .map_err(|error| self.bind_failure(error.kind(), &error))
            .with_context(|| format!("cannot listen on {self}"))
    }

    fn bind_failure(&self, kind: std::io::ErrorKind, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind;
        let (message, hint) = match kind {
            ErrorKind::AddrInUse => (
                "address already in use".to_owned(),
                "stop the other program, or choose another port with --listen (port 0 selects a free one)",
            ),
            ErrorKind::AddrNotAvailable => (
                "not an address of this machine".to_owned(),
                "use 127.0.0.1 to accept connections from this machine only, or 0.0.0.0 to listen on all of its addresses",
            ),
            ErrorKind::PermissionDenied => (
                "permission denied".to_owned(),
                "ports below 1024 require privileges: choose a higher one with --listen",
            ),
            _ => (error.to_string(), "choose another address with --listen"),
        };
        Failure::system_error(message).hint(hint)
    }
}

impl FromStr for ListenAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (host, port) = text.rsplit_once(':').ok_or(NotAnAddress)?;
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_host = !host.is_empty() && (is_bracketed || !host.contains([':', '/', '@', ' ']));
        match (is_host, port.parse()) {
            (true, Ok(port)) => Ok(Self { host: host.to_owned(), port }),
            _ => Err(NotAnAddress),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected HOST:PORT, such as 127.0.0.1:7437 or localhost:7437")
    }
}

impl std::error::Error for NotAnAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_require_a_host_and_a_port() {
        for text in ["127.0.0.1:7437", "localhost:0", "[::1]:80", "my-host.example:65535"] {
            assert_eq!(text.parse::<ListenAddress>().map(|address| address.to_string()).as_deref(), Ok(text));
        }
        for text in
            ["", "7437", ":7437", "localhost", "localhost:", "localhost:70000", "::1:80", "http://h:80", "a b:1"]
        {
            assert_eq!(text.parse::<ListenAddress>(), Err(NotAnAddress), "{text}");
        }
    }

    #[test]
    fn host_names_are_resolved() {
        let found = "localhost:80".parse::<ListenAddress>().unwrap().resolve().unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80), "{found:?}");
        assert_eq!("[::1]:9".parse::<ListenAddress>().unwrap().resolve().unwrap(), ["[::1]:9".parse().unwrap()]);
        let error = "no.such.host.invalid:80".parse::<ListenAddress>().unwrap().resolve().unwrap_err();
        assert!(error.to_string().contains("unknown host"), "{error}");
    }
}
