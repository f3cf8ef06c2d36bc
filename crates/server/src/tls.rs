//! TLS for servers that are not behind a proxy.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How often the files are checked for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A certificate and its private key, which are reloaded when their files change. Cheap to clone; clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
}

struct Inner {
    certificates: PathBuf,
    key: PathBuf,
    /// The stamp of the files when they were last loaded, even if they were invalid.
    loaded: RwLock<Stamp>,
    config: RwLock<Arc<ServerConfig>>,
}

/// Modification time and size of both files, which change when a file is replaced.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(…)")
    }
}

/// The reason why a certificate or a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read or contains no certificate.
    #[error("cannot read a certificate in PEM format from {0}")]
    Certificate(String),
    /// The file cannot be read or contains no private key.
    #[error("cannot read a private key in PEM format from {0}")]
    Key(String),
    /// The key does not belong to the certificate, or has an unsupported type.
    #[error("the private key does not match the certificate or has an unsupported type")]
    KeyMismatch(#[source] rustls::Error),
}

impl Tls {
    /// Reads a certificate chain, which begins with the server's own certificate, and the private key of that certificate. While
    /// the server runs, it reloads the files when they change: new connections use a renewed certificate within a few seconds;
    /// open connections are not affected.
    ///
    /// # Errors
    /// `Certificate` or `Key` if a file cannot be read or has other content, `KeyMismatch` if the key does not match
    /// the certificate.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let (certificates, key) = (certificates.to_owned(), key.to_owned());
        let loaded = RwLock::new(stamp(&certificates, &key));
        let config = RwLock::new(read(&certificates, &key)?);
        Ok(Self { inner: Arc::new(Inner { certificates, key, loaded, config }) })
    }

    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> std::io::Result<TlsStream<S>> {
        let config = Arc::clone(&self.inner.config.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Reloads the files whenever they change. If they are invalid, the previous certificate stays in use. Never returns.
    pub(crate) async fn reload_changes(self) -> Infallible {
        let Inner { certificates, key, loaded, config } = &*self.inner;
        let mut seen = *loaded.read().unwrap_or_else(PoisonError::into_inner);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let before = std::mem::replace(&mut seen, stamp(certificates, key));
            // The files are replaced one after the other, so they are loaded only when neither has changed for one interval.
            let is_loaded = *loaded.read().unwrap_or_else(PoisonError::into_inner) == seen;
            if is_loaded || before != seen {
                continue;
            }
            match read(certificates, key) {
                Ok(renewed) => {
                    *config.write().unwrap_or_else(PoisonError::into_inner) = renewed;
                    tracing::info!("reloaded the TLS certificate");
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                    tracing::error!(%error, cause, "the changed TLS certificate or key is invalid; keeping the previous certificate");
                }
            }
            *loaded.write().unwrap_or_else(PoisonError::into_inner) = seen;
        }
    }
}

fn read(certificates: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let invalid = || TlsError::Certificate(certificates.display().to_string());
    let chain = CertificateDer::pem_file_iter(certificates).map_err(|_| invalid())?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|_| invalid())?;
    if chain.is_empty() {
        return Err(invalid());
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_| TlsError::Key(key.display().to_string()))?;
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
    let config = config.map_err(TlsError::KeyMismatch)?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, key).map_err(TlsError::KeyMismatch)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn stamp(certificates: &Path, key: &Path) -> Stamp {
    [certificates, key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}
