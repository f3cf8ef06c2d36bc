//! TLS, for a server that is met without a proxy.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What a server shows and encrypts with.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
}

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
    /// Reads a chain of certificates, the server's own first, and the private key of that.
    ///
    /// # Errors
    /// A file cannot be read or holds something else, or the two do not belong together.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
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
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> std::io::Result<TlsStream<S>> {
        self.acceptor.accept(stream).await
    }
}
