//! TLS, met by a real client that trusts the certificate and by one that does not.

use std::time::Duration;

use threadkeep_server::{ServerOptions, Tls, TlsError};
use tokio::io::AsyncReadExt;

use crate::TestServer;
use crate::server::{PATIENCE, Parts};

fn files(folder: &std::path::Path) -> (std::path::PathBuf, std::path::PathBuf, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (certificate, key, made.cert.pem())
}

#[tokio::test]
async fn a_client_that_trusts_the_certificate_is_served_and_no_other() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key, pem) = files(folder.path());
    let tls = Some(Tls::from_pem_files(&certificate, &key).unwrap());
    let read_timeout = Duration::from_millis(300);
    let options = ServerOptions { tls, read_timeout, sweep_every: None, ..ServerOptions::default() };
    let server = TestServer::start_with(Parts { options, ..Parts::default() }).await;
    let port = server.address.port();
    let url = format!("https://localhost:{port}/v1/threads");
    let root = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
    let trusting = reqwest::Client::builder().tls_certs_only([root]).no_proxy();
    let trusting = trusting.resolve("localhost", server.address).build().unwrap();
    let answer = trusting.get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    // A page of this server calls over https.
    let own = trusting.get(&url).header("origin", format!("https://localhost:{port}")).send().await.unwrap();
    assert_eq!(own.status(), 200);
    let other = reqwest::Client::builder().no_proxy().resolve("localhost", server.address).build().unwrap();
    assert!(other.get(&url).send().await.is_err(), "it does not trust the certificate");
    assert!(other.get(format!("http://localhost:{port}/v1/threads")).send().await.is_err(), "it speaks no TLS");
    // Who says nothing is sent away.
    let mut silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let read = tokio::time::timeout(PATIENCE, silent.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(trusting.get(&url).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key, _) = files(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let (_, other_key, _) = files(elsewhere.path());
    let missing = folder.path().join("missing.pem");
    assert!(matches!(Tls::from_pem_files(&missing, &key), Err(TlsError::Certificate(_))));
    assert!(matches!(Tls::from_pem_files(&key, &key), Err(TlsError::Certificate(_))));
    assert!(matches!(Tls::from_pem_files(&certificate, &certificate), Err(TlsError::Key(_))));
    assert!(matches!(Tls::from_pem_files(&certificate, &other_key), Err(TlsError::Pair(_))));
}
