//! The server's own outgoing requests, through a real local proxy.

use threadkeep::TenantId;
use threadkeep_server::{OutgoingProxy, ServerOptions, TelemetryOptions, TrustedIssuer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::TestServer;
use crate::observed::Collector;
use crate::server::{TIMEOUT, TestConfig};

fn proxy_at(endpoint: &str, no_proxy: Option<&str>) -> OutgoingProxy {
    let url = endpoint.replace("http://", "http://ana:proxy-password@");
    OutgoingProxy { url, exceptions: no_proxy.map(str::to_owned) }
}

/// Sends the trace of one request to a collector that only the proxy can reach.
async fn send_trace(options: ServerOptions, proxy: OutgoingProxy) {
    let telemetry = TelemetryOptions {
        endpoint: "http://collector.invalid:4318".to_owned(),
        proxy: Some(proxy),
        ..options.telemetry.clone().unwrap()
    };
    let options = ServerOptions { telemetry: Some(telemetry), ..options };
    let mut server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    server.client().new_thread().await;
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
}

#[tokio::test]
async fn traces_bypass_the_proxy_if_no_proxy_names_the_collector() {
    // The collector also acts as the proxy, and records the requests that it receives in either role.
    let collector = Collector::start().await;
    send_trace(collector.options(), proxy_at(&collector.endpoint, Some("other.invalid"))).await;
    let received = std::mem::take(&mut *collector.received.lock().unwrap());
    let head = received[0].0.to_ascii_lowercase();
    assert!(head.starts_with("post http://collector.invalid:4318/v1/traces "), "{head}");
    assert!(head.contains("proxy-authorization: basic ") && head.contains("api-key: collector-key"), "{head}");
    send_trace(collector.options(), proxy_at(&collector.endpoint, Some("other.invalid,collector.invalid"))).await;
    assert_eq!(collector.received.lock().unwrap().len(), 0);
    // Collectors on this machine are reached directly.
    let unreachable = OutgoingProxy { url: "http://127.0.0.1:9".to_owned(), exceptions: None };
    let telemetry = TelemetryOptions { proxy: Some(unreachable), ..collector.options().telemetry.unwrap() };
    let options = ServerOptions { telemetry: Some(telemetry), ..collector.options() };
    let mut server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    server.client().new_thread().await;
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    assert_eq!(collector.received.lock().unwrap().len(), 1);
    assert!(!format!("{:?}", proxy_at(&collector.endpoint, None)).contains("proxy-password"));
}

/// The server uses a tunnel, so that the proxy sees the host but not the content.
#[tokio::test]
async fn an_issuers_keys_are_fetched_through_the_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = proxy_at(&format!("http://{}", listener.local_addr().unwrap()), None);
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).await.unwrap();
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    let tenant = TenantId::new("acme").unwrap();
    let issuer =
        TrustedIssuer::jwks("https://issuer.invalid/keys", Some(&proxy), "https://issuer", "me", tenant).unwrap();
    let options = ServerOptions { token_issuers: vec![issuer], ..TestConfig::default().options };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    // Keys are fetched when a token refers to an unknown key.
    let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2lzc3VlciIsImF1ZCI6Im1lIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhbmEifQ.AAAA";
    server.client().with_key(token).get("/v1/threads").await.error(401);
    let request = tokio::time::timeout(TIMEOUT, request).await.unwrap().unwrap();
    assert!(request.starts_with("CONNECT issuer.invalid:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.to_ascii_lowercase().contains("proxy-authorization: basic "), "{request}");
}
