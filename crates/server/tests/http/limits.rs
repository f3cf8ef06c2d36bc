//! Invalid requests: each is rejected with 4xx, and the server keeps running.

use std::time::Duration;

use serde_json::json;
use threadkeep_server::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::TestServer;
use crate::server::{TIMEOUT, TOKEN, TestConfig, send};

/// The number of malformed requests that are sent.
const REQUESTS: usize = 2_000;

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    /// Returns a number below a bound.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn pick<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.below(options.len())]
    }
}

const BODIES: [&str; 8] = [
    r#"{"messages":[{"role":"user","text":"hello","metadata":{"a":[1,2.5,null,true]}}]}"#,
    r#"{"query":"hello","limit":5,"roles":["user"]}"#,
    r#"{"question":"hello","policy":{"window":3,"budget":500}}"#,
    r#"{"title":"hello","metadata":{"k":"v"}}"#,
    r#"{"value":{"deep":[{"deeper":[1]}]}}"#,
    r#"{"through_seq":3}"#,
    r#"{"user":"unknown"}"#,
    r#"{"items":[{"role":"user","content":"hello"}]}"#,
];

/// Corrupts a body. The result is either not JSON or does not match the schema of any route.
fn corrupt(random: &mut Random, body: &str) -> Vec<u8> {
    let mut bytes = body.as_bytes().to_vec();
    match random.below(9) {
        0 => bytes.truncate(1 + random.below(bytes.len() - 1)),
        1 => bytes.insert(random.below(bytes.len()), 0xff),
        2 => bytes = [vec![b'['; 65 + random.below(5_000)], bytes].concat(),
        3 => bytes = body.replacen(':', ":-", 1).into_bytes(),
        4 => bytes.extend_from_slice(b"}"),
        5 => bytes = body.replacen('"', "\"unknown member\":1,\"", 1).replacen('{', "[", 1).into_bytes(),
        6 => bytes = format!(r#"{{"unknown_{}":1e999}}"#, random.below(100)).into_bytes(),
        7 => bytes = body.replacen("hello", "\\ud800", 1).replacen('{', "{\u{1}", 1).into_bytes(),
        _ => {
            bytes = random
                .pick(&["7", "\"text\"", "[]", "null", "tru", "{\"a\":1,}", "{'a':1}", "NaN", "\u{feff}{}x"])
                .into()
        }
    }
    bytes
}

#[tokio::test]
async fn malformed_requests_are_rejected() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let mut random = Random(20_261_121);
    for count in 0..REQUESTS {
        let answer = match random.below(4) {
            0 => {
                let path = [
                    format!("/v1/threads/{}", random.pick(&["x", "%ff", "..%2f..", "0", "%00", "💥", "7f000001-0"])),
                    format!(
                        "/v1/threads?limit={}",
                        random.pick(&["0", "-1", "1e9", "9999999999999999999999", "x", ""])
                    ),
                    format!("/v1/threads?after={}", random.pick(&["x", "%ff", "AAAA", "c1", "bm9ib2R5"])),
                    format!("/v1/threads/{thread}/messages?before={}", random.pick(&["-1", "x", "2026-13-01", "%00"])),
                    format!("/v1/threads/{thread}/messages?order={}", random.pick(&["up", "", "asc,desc"])),
                    format!("/v1/threads/{thread}/messages?limit=1&limit={}", random.below(9)),
                    format!("/v1/threads/{thread}/events?after={}", random.pick(&["-1", "x", "1.5"])),
                    format!("/v1/export?thread={}", random.pick(&["x", "%ff", "0"])),
                ];
                client.get(&path[random.below(path.len())]).await
            }
            1 => {
                let (name, value) = [
                    ("if-match", "1"),
                    ("if-match", "\"x\""),
                    ("if-match", "W/\"1\""),
                    ("content-type", "text/xml"),
                    ("content-type", "multipart/form-data"),
                    ("threadkeep-user", "\u{ff}"),
                    ("idempotency-key", ""),
                ][random.below(7)];
                let path = format!("/v1/threads/{thread}/messages");
                let request = client.request("POST", &path).header(name, value.as_bytes());
                let request =
                    if name == "content-type" { request } else { request.header("content-type", "application/json") };
                send(request.body(r#"{"messages":[]}"#)).await
            }
            _ => {
                let (method, path) = [
                    ("POST", "/v1/threads".to_owned()),
                    ("PATCH", format!("/v1/threads/{thread}")),
                    ("POST", format!("/v1/threads/{thread}/messages")),
                    ("PUT", format!("/v1/threads/{thread}/messages/1")),
                    ("POST", format!("/v1/threads/{thread}/context")),
                    ("POST", format!("/v1/threads/{thread}/fork")),
                    ("POST", "/v1/search".to_owned()),
                    ("POST", "/v1/recall".to_owned()),
                    ("PUT", "/v1/records/notes/a".to_owned()),
                    ("PUT", "/v1/preferences/a".to_owned()),
                    ("POST", "/v1/erase".to_owned()),
                    ("POST", "/v1/import".to_owned()),
                ][random.below(12)]
                .clone();
                let body = corrupt(&mut random, BODIES[count % BODIES.len()]);
                send(client.request(method, &path).header("content-type", "application/json").body(body)).await
            }
        };
        assert!((400..500).contains(&answer.status), "request {count}: {} {}", answer.status, answer.text);
        answer.error(answer.status);
    }
    assert_eq!(client.texts(&thread).await, ["hello"]);
}

/// Sends raw bytes, and reads until the server closes the connection.
async fn send_raw(server: &TestServer, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for piece in pieces {
        // The server may close the connection before all bytes are sent.
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap();
    drop(read);
    String::from_utf8_lossy(&answer).into_owned()
}

fn is_rejected(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 4")
}

#[tokio::test]
async fn invalid_http_is_rejected() {
    let server = TestServer::start().await;
    let flood = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x-flood: 1\r\n".repeat(500));
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    let path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "y".repeat(100_000));
    for request in [
        "\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
        "POST /v1/threads HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
        &flood,
        &long,
        &path,
    ] {
        let answer = send_raw(&server, &[request.as_bytes()]).await;
        assert!(is_rejected(&answer), "{:?}: {answer:?}", &request[..request.len().min(60)]);
    }
    server.client().get("/health").await.expect(200);
}

/// The documented limit applies to request line and headers together, regardless of how they are split.
#[tokio::test]
async fn heads_of_more_than_64_kib_are_rejected() {
    const MAX_HEAD_BYTES: usize = 64 * 1024;
    let server = TestServer::start().await;
    let header_of = |bytes: usize| format!("x: {}\r\n", "y".repeat(bytes.saturating_sub(5)));
    let many_headers_of = |bytes: usize| (0..80).map(|_| header_of(bytes / 80)).collect::<String>();
    let head = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")
    };
    let available_bytes = MAX_HEAD_BYTES - head("/health", "").len();
    for fits in [
        head("/health", &header_of(available_bytes)),
        head("/health", &many_headers_of(available_bytes - 80)),
        head("/health?", &header_of(available_bytes / 2)),
    ] {
        assert!(fits.len() <= MAX_HEAD_BYTES);
        let answer = send_raw(&server, &[fits.as_bytes()]).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{} bytes: {answer:?}", fits.len());
    }
    for over in [
        head("/health", &header_of(available_bytes + 1)),
        head("/health", &header_of(100_000)),
        head("/health", &many_headers_of(100_000)),
        head(&format!("/health?{}", "y".repeat(40_000)), &header_of(40_000)),
    ] {
        let sent_whole = send_raw(&server, &[over.as_bytes()]).await;
        let pieces: Vec<&[u8]> = over.as_bytes().chunks(4_000).collect();
        let sent_in_pieces = send_raw(&server, &pieces).await;
        for answer in [sent_whole, sent_in_pieces] {
            // The connection may be reset before a client that is still sending reads the response.
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{} bytes: {answer:?}", over.len());
        }
    }
    let refused = send_raw(&server, &[head("/health", &header_of(available_bytes + 1)).as_bytes()]).await;
    assert!(refused.starts_with("HTTP/1.1 431"), "{refused:?}");
    server.client().get("/health").await.expect(200);
}

#[tokio::test]
async fn slow_and_large_bodies_are_rejected() {
    let options = ServerOptions {
        read_timeout: Duration::from_millis(300),
        body_bytes: 10_000,
        sweep_every: None,
        ..TestConfig::default().options
    };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let head = format!(
        "POST /v1/threads HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\
         content-length: 100\r\n\r\n{{"
    );
    let answer = send_raw(&server, &[head.as_bytes()]).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("slow_body"), "{answer}");
    let unfinished = send_raw(&server, &[b"GET / HTTP/1.1\r\nhost: local"]).await;
    assert!(unfinished.is_empty() || is_rejected(&unfinished), "{unfinished}");
    let large = json!({ "title": "x".repeat(20_000) });
    assert_eq!(server.client().post("/v1/threads", large).await.code(413), "body_too_large");
    server.client().get("/health").await.expect(200);
}
