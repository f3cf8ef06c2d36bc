//! The options of a store, and the URLs that contain them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::{ClientTlsConfig, TlsCertificates};
use rustls::crypto::CryptoProvider;
use threadkeep_core::{Result, StoreError};

/// Options for opening a store.
#[derive(Clone)]
pub struct RedisOptions {
    /// URLs of the nodes, `redis://…` or `rediss://…`.
    pub(crate) nodes: Vec<String>,
    /// Whether the nodes form a cluster.
    pub(crate) is_cluster: bool,
    /// Whether connections are encrypted.
    pub(crate) is_tls: bool,
    /// A PEM file with the root certificates for TLS. Default: Mozilla's root certificates.
    pub root_file: Option<PathBuf>,
    /// PEM files with a client certificate and its key, for servers that require one.
    pub client_files: Option<(PathBuf, PathBuf)>,
    /// The prefix of the names of all keys. Default: `threadkeep`.
    pub prefix: String,
    /// The number of replicas that must have received a commit before it is acknowledged. Default: 0.
    pub wait_replicas: u32,
    /// How long to wait for them. Default: 1 second.
    pub wait_timeout: Duration,
    /// Accept a server that may delete data when its memory is full. Default: false.
    pub allow_eviction: bool,
    /// Index new messages in the background. Default: true.
    pub background: bool,
    /// The timeout for establishing a connection. Default: 5 seconds.
    pub connect_timeout: Duration,
    /// The timeout of a call, including retries. One attempt takes at most a quarter of it, but at least one second is allowed. Default: 30 seconds.
    pub response_timeout: Duration,
}

impl RedisOptions {
    /// Parses a URL: `redis://USER:PASSWORD@HOST:PORT/DATABASE?…` for one node, `redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT?…`
    /// for a cluster; `rediss://` and `rediss-cluster://` for TLS.
    ///
    /// Parameters: `prefix=NAME`; `wait_replicas=1` and `wait_timeout=1000` (milliseconds); `eviction=allow`; `background=off`;
    /// `connect_timeout=5` and `response_timeout=30` (seconds). With TLS, PEM files as for `redis-cli`: `cacert`, `cert` and `key`.
    ///
    /// # Errors
    /// `Invalid`, with the name of the parameter. The error does not contain the URL, which may include a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (is_cluster, is_tls, rest) = match base.split_once("://") {
            Some(("redis", rest)) => (false, false, rest),
            Some(("redis-cluster", rest)) => (true, false, rest),
            Some(("rediss", rest)) => (false, true, rest),
            Some(("rediss-cluster", rest)) => (true, true, rest),
            _ => return Err(invalid("does not start with redis://, rediss://, redis-cluster:// or rediss-cluster://")),
        };
        let nodes = nodes(rest, is_cluster, is_tls)?;
        let mut options = Self { nodes, is_cluster, is_tls, ..Self::default() };
        let (mut certificate, mut key) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| invalid("parameter without a value"))?;
            match name {
                "prefix" => options.prefix = parse_prefix(value)?,
                "wait_replicas" => options.wait_replicas = number(name, value)?,
                "wait_timeout" => options.wait_timeout = Duration::from_millis(u64::from(number(name, value)?.max(1))),
                "eviction" if value == "allow" => options.allow_eviction = true,
                "eviction" => return Err(invalid("eviction must be allow")),
                "background" => options.background = is_on(name, value)?,
                "connect_timeout" => {
                    options.connect_timeout = Duration::from_secs(u64::from(number(name, value)?.max(1)));
                }
                "response_timeout" => {
                    options.response_timeout = Duration::from_secs(u64::from(number(name, value)?.max(1)));
                }
                "cacert" | "cert" | "key" if !is_tls => return Err(invalid(format!("{name} requires rediss://"))),
                "cacert" => options.root_file = Some(PathBuf::from(value)),
                "cert" => certificate = Some(PathBuf::from(value)),
                "key" => key = Some(PathBuf::from(value)),
                _ => return Err(invalid(format!("unknown parameter {name}"))),
            }
        }
        options.client_files = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(invalid("cert and key must be set together")),
        };
        Ok(options)
    }

    /// Reads the certificate files.
    pub(crate) fn certificates(&self) -> Result<TlsCertificates> {
        let client_tls = match &self.client_files {
            Some((certificate, key)) => Some(ClientTlsConfig {
                client_cert: read_file("cert", certificate)?,
                client_key: read_file("key", key)?,
            }),
            None => None,
        };
        // The Redis client uses the process's default provider. If the application has installed one, it is kept.
        if CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let root_cert = self.root_file.as_deref().map(|file| read_file("cacert", file)).transpose()?;
        Ok(TlsCertificates { client_tls, root_cert })
    }

    /// How long to wait for a reply before the call is repeated.
    pub(crate) fn attempt_timeout(&self) -> Duration {
        (self.response_timeout / 4).max(Duration::from_secs(1))
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            nodes: vec!["redis://127.0.0.1:6379".to_owned()],
            is_cluster: false,
            is_tls: false,
            root_file: None,
            client_files: None,
            prefix: "threadkeep".to_owned(),
            wait_replicas: 0,
            wait_timeout: Duration::from_secs(1),
            allow_eviction: false,
            background: true,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(30),
        }
    }
}

impl std::fmt::Debug for RedisOptions {
    /// Omits the addresses and the credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOptions")
            .field("is_cluster", &self.is_cluster)
            .field("prefix", &self.prefix)
            .field("wait_replicas", &self.wait_replicas)
            .finish_non_exhaustive()
    }
}

fn read_file(name: &str, path: &Path) -> Result<Vec<u8>> {
    let pem = std::fs::read(path).map_err(|error| invalid(format!("{name}: {}: {error}", path.display())))?;
    let is_pem = pem.windows(11).any(|bytes| bytes == b"-----BEGIN ");
    if is_pem { Ok(pem) } else { Err(invalid(format!("{name}: {} is not a PEM file", path.display()))) }
}

fn nodes(rest: &str, is_cluster: bool, is_tls: bool) -> Result<Vec<String>> {
    let (login, hosts) = match rest.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), rest),
    };
    let hosts: Vec<&str> = if is_cluster { hosts.trim_end_matches('/').split(',').collect() } else { vec![hosts] };
    if hosts.iter().any(|host| host.is_empty() || host.starts_with(['/', ':'])) {
        return Err(invalid("names no host"));
    }
    if is_cluster && hosts.iter().any(|host| host.contains('/')) {
        return Err(invalid("a Redis Cluster URL must not contain a database number"));
    }
    let scheme = if is_tls { "rediss" } else { "redis" };
    Ok(hosts.into_iter().map(|host| format!("{scheme}://{login}{host}")).collect())
}

fn parse_prefix(value: &str) -> Result<String> {
    let is_valid = (1..=64).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if is_valid {
        return Ok(value.to_owned());
    }
    Err(invalid("prefix must be 1 to 64 letters, digits, -, _ or ."))
}

pub(crate) fn invalid(reason: impl Into<String>) -> StoreError {
    StoreError::invalid("Redis URL", reason)
}

fn number(name: &str, value: &str) -> Result<u32> {
    value.parse().map_err(|_| invalid(format!("{name} is not a number")))
}

fn is_on(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(invalid(format!("{name} must be on or off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_contain_nodes_and_options() {
        let options = RedisOptions::from_url("redis://u:p@host:1/2?prefix=a-b&wait_replicas=1").unwrap();
        assert_eq!((options.nodes, options.is_cluster), (vec!["redis://u:p@host:1/2".to_owned()], false));
        assert_eq!((options.prefix.as_str(), options.wait_replicas), ("a-b", 1));
        let options = RedisOptions::from_url("redis-cluster://u:p@a:1,b,c:3").unwrap();
        assert_eq!(options.nodes, ["redis://u:p@a:1", "redis://u:p@b", "redis://u:p@c:3"]);
        assert!(options.is_cluster);
        let options = RedisOptions::from_url("rediss-cluster://a:1,b?cacert=ca.pem&cert=c.pem&key=k.pem").unwrap();
        assert_eq!(options.nodes, ["rediss://a:1", "rediss://b"]);
        assert_eq!(options.root_file, Some("ca.pem".into()));
        assert_eq!(options.client_files, Some(("c.pem".into(), "k.pem".into())));
    }

    #[test]
    fn invalid_urls_are_rejected_without_being_quoted() {
        for url in [
            "redis:",
            "redis://",
            "http://host",
            "redis://host?prefix=a:s3cret",
            "redis://host?s3cret",
            "redis://u:s3cret@host?wait_replicas=many",
            "redis-cluster://a,,b",
            "redis-cluster://a/1",
            "redis://u:s3cret@host?cacert=ca.pem",
            "rediss://u:s3cret@host?cert=c.pem",
        ] {
            let error = RedisOptions::from_url(url).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
