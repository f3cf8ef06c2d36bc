//! TLS, for a server that is met without a proxy.

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

/// How often the files are looked at.
const MOMENT: Duration = Duration::from_secs(1);

/// What a server shows and encrypts with: a certificate and its key, as their files have them. Cheap to clone; all clones
/// are the same.
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
}

struct Inner {
    certificates: PathBuf,
    key: PathBuf,
    /// The files as they were when they were read.
    read_as: RwLock<Stamp>,
    config: RwLock<Arc<ServerConfig>>,
}

/// What tells two files from the same ones before.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(…)")
    }
}

/// Why a certificate or a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no certificate in the file.
    #[error("{0} holds no certificate in PEM")]
    Certificate(String),
    /// There is no private key in the file.
    #[error("{0} holds no private key in PEM")]
    Key(String),
    /// They do not belong together, or are of a kind that is not known.
    #[error("the certificate and the key cannot be used together")]
    Pair(#[source] rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and the private key of that. A server that has them follows
    /// the files: new connections see a renewed certificate within a few seconds, those that are open go on.
    ///
    /// # Errors
    /// A file cannot be read or holds something else, or the two do not belong together.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let (certificates, key) = (certificates.to_owned(), key.to_owned());
        let read_as = RwLock::new(stamp(&certificates, &key));
        let config = RwLock::new(read(&certificates, &key)?);
        Ok(Self { inner: Arc::new(Inner { certificates, key, read_as, config }) })
    }

    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> std::io::Result<TlsStream<S>> {
        let config = Arc::clone(&self.inner.config.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Follows the files for as long as it is waited for. What cannot be used leaves what was.
    pub(crate) async fn follow(self) -> Infallible {
        let Inner { certificates, key, read_as, config } = &*self.inner;
        let mut seen = *read_as.read().unwrap_or_else(PoisonError::into_inner);
        loop {
            tokio::time::sleep(MOMENT).await;
            let before = std::mem::replace(&mut seen, stamp(certificates, key));
            // Two files are not written at once: they are read when they have come to rest.
            let is_known = *read_as.read().unwrap_or_else(PoisonError::into_inner) == seen;
            if is_known || before != seen {
                continue;
            }
            match read(certificates, key) {
                Ok(renewed) => {
                    *config.write().unwrap_or_else(PoisonError::into_inner) = renewed;
                    tracing::info!("the certificate was renewed");
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                    tracing::error!(%error, cause, "a renewed certificate cannot be used; the one before goes on");
                }
            }
            *read_as.write().unwrap_or_else(PoisonError::into_inner) = seen;
        }
    }
}

fn read(certificates: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let unread = || TlsError::Certificate(certificates.display().to_string());
    let chain = CertificateDer::pem_file_iter(certificates).map_err(|_| unread())?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|_| unread())?;
    if chain.is_empty() {
        return Err(unread());
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_| TlsError::Key(key.display().to_string()))?;
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
    let config = config.map_err(TlsError::Pair)?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn stamp(certificates: &Path, key: &Path) -> Stamp {
    [certificates, key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}
