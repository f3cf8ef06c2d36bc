use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use threadkeep_core::{Result, StoreError};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Which server certificates are accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// Whether the server's certificate is verified; `sslmode=require` only encrypts.
    pub(crate) is_verified: bool,
    /// A PEM file with the root certificates. Default: Mozilla's root certificates.
    pub(crate) root_file: Option<PathBuf>,
}

/// Creates the TLS connector.
pub(crate) fn connector(trust: &Trust) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::invalid("TLS", error.to_string()))?;
    let config = if trust.is_verified {
        builder.with_root_certificates(roots(trust)?).with_no_client_auth()
    } else {
        let verifier = Arc::new(AcceptAnyCertificate { provider });
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(trust: &Trust) -> Result<RootCertStore> {
    let Some(file) = &trust.root_file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let invalid = |reason: String| StoreError::invalid("sslrootcert", reason);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| invalid(error.to_string()))? {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
    }
    if roots.is_empty() { Err(invalid("the file contains no certificate".to_owned())) } else { Ok(roots) }
}

/// Accepts any certificate, as libpq does unless `sslmode` is `verify-ca` or `verify-full`. Signatures are still
/// verified.
#[derive(Debug)]
struct AcceptAnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
