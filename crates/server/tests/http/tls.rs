//! TLS with real clients, some of which do not trust the server's certificate.

use std::time::Duration;

use threadkeep_server::{ServerOptions, Tls, TlsError};
use tokio::io::AsyncReadExt;

use crate::TestServer;
use crate::log::Log;
use crate::server::{TIMEOUT, TOKEN, TestConfig};

/// Writes a new self-signed certificate and its key. Returns the paths of both files, and the certificate in PEM format.
fn write_certificate(folder: &std::path::Path) -> (std::path::PathBuf, std::path::PathBuf, String) {
    let generated = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, generated.cert.pem()).unwrap();
    std::fs::write(&key, generated.signing_key.serialize_pem()).unwrap();
    (certificate, key, generated.cert.pem())
}

#[tokio::test]
async fn only_clients_that_trust_the_certificate_are_served() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key, pem) = write_certificate(folder.path());
    let tls = Some(Tls::from_pem_files(&certificate, &key).unwrap());
    let read_timeout = Duration::from_millis(300);
    let options = ServerOptions { tls, read_timeout, sweep_every: None, ..TestConfig::default().options };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let port = server.address.port();
    let url = format!("https://localhost:{port}/v1/threads");
    let root = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
    let trusting = reqwest::Client::builder().tls_certs_only([root]).no_proxy();
    let trusting = trusting.resolve("localhost", server.address).build().unwrap();
    let get = || trusting.get(&url).bearer_auth(TOKEN);
    let answer = get().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    // Pages that this server serves have an https origin.
    let from_own_page = get().header("origin", format!("https://localhost:{port}")).send().await.unwrap();
    assert_eq!(from_own_page.status(), 200);
    let distrusting = reqwest::Client::builder().no_proxy().resolve("localhost", server.address).build().unwrap();
    assert!(distrusting.get(&url).send().await.is_err(), "the client does not trust the certificate");
    assert!(
        distrusting.get(format!("http://localhost:{port}/v1/threads")).send().await.is_err(),
        "plain HTTP is rejected"
    );
    // A client that sends nothing is disconnected.
    let mut silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let read = tokio::time::timeout(TIMEOUT, silent.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(get().send().await.unwrap().status(), 200);
}

/// Writes a new certificate with this serial number, and its key. Returns the certificate in PEM format.
fn renew_certificate(folder: &std::path::Path, serial: &[u8]) -> String {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.serial_number = Some(rcgen::SerialNumber::from(serial.to_vec()));
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    certificate.pem()
}

/// New connections use a renewed certificate, open connections are not affected, and invalid files are ignored.
#[tokio::test]
async fn renewed_certificates_are_used_without_a_restart() {
    const FIRST: [u8; 8] = *b"\x11serial1";
    const SECOND: [u8; 8] = *b"\x11serial2";
    drop(rustls::crypto::ring::default_provider().install_default());
    let (log, _guard) = Log::capture();
    let folder = tempfile::tempdir().unwrap();
    let first = renew_certificate(folder.path(), &FIRST);
    let tls = Tls::from_pem_files(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let options = ServerOptions { tls: Some(tls), sweep_every: None, ..TestConfig::default().options };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let url = format!("https://localhost:{}/v1/threads", server.address.port());
    let client = |pem: &str| {
        let root = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
        let client = reqwest::Client::builder().tls_certs_only([root]).no_proxy().tls_info(true);
        client.resolve("localhost", server.address).build().unwrap()
    };
    // Whether the client trusts the server's certificate, and the certificate has this serial number.
    let presents = async |client: &reqwest::Client, serial: &[u8]| {
        let Ok(answer) = client.get(&url).bearer_auth(TOKEN).send().await else { return false };
        assert_eq!(answer.status(), 200);
        let certificate = answer.extensions().get::<reqwest::tls::TlsInfo>().unwrap().peer_certificate().unwrap();
        certificate.windows(serial.len()).any(|bytes| bytes == serial)
    };
    let connected = client(&first);
    assert!(presents(&connected, &FIRST).await);

    std::fs::write(folder.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
        .unwrap();
    log.wait_for("the changed TLS certificate or key is invalid").await;
    assert!(presents(&client(&first), &FIRST).await, "the previous certificate stays in use");
    let second = renew_certificate(folder.path(), &SECOND);
    let other_key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let key = std::fs::read_to_string(folder.path().join("key.pem")).unwrap();
    std::fs::write(folder.path().join("key.pem"), other_key).unwrap();
    log.wait_for("the private key does not match the certificate or has an unsupported type").await;
    assert!(presents(&client(&first), &FIRST).await);

    std::fs::write(folder.path().join("key.pem"), key).unwrap();
    log.wait_for("reloaded the TLS certificate").await;
    assert!(presents(&client(&second), &SECOND).await);
    assert!(!presents(&client(&first), &FIRST).await, "the old certificate is no longer presented");
    assert!(presents(&connected, &FIRST).await, "open connections are not affected");
}

#[tokio::test]
async fn errors_name_the_invalid_file() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key, _) = write_certificate(folder.path());
    let other_folder = tempfile::tempdir().unwrap();
    let (_, other_key, _) = write_certificate(other_folder.path());
    let missing = folder.path().join("missing.pem");
    assert!(matches!(Tls::from_pem_files(&missing, &key), Err(TlsError::Certificate(_))));
    assert!(matches!(Tls::from_pem_files(&key, &key), Err(TlsError::Certificate(_))));
    assert!(matches!(Tls::from_pem_files(&certificate, &certificate), Err(TlsError::Key(_))));
    assert!(matches!(Tls::from_pem_files(&certificate, &other_key), Err(TlsError::KeyMismatch(_))));
}
