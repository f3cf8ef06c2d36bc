//! Targets for the server: request bodies on every route, tokens, key sets, and WebSocket messages.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use threadkeep::{TenantId, UserId};
use threadkeep_server::{KeyRole, Keys, NewKey, RateLimit, RouteInfo, Server, ServerOptions, TrustedIssuer, fuzzing};
use tokio::sync::oneshot;

/// The number of requests after which the server is replaced, so that stored data does not accumulate.
const MAX_REQUESTS: usize = 2_000;
const SECRET: &str = "a secret that has thirty-two bytes or more";

pub(crate) fn key_set(data: &[u8]) {
    let _ = fuzzing::count_keys(data);
}

pub(crate) fn socket_message(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = fuzzing::reads_socket_message(text);
    }
}

/// The routes with a request body.
static ROUTES: LazyLock<Vec<RouteInfo>> = LazyLock::new(|| {
    let routes = Server::routes().into_iter();
    routes.filter(|route| matches!(route.method.as_str(), "POST" | "PUT" | "PATCH")).collect()
});

/// Sends a request. The first byte selects the route, the rest is the body.
pub(crate) fn request(data: &[u8]) {
    let Some((route, body)) = data.split_first() else { return };
    let route = &ROUTES[usize::from(*route) % ROUTES.len()];
    with_server(|server| {
        let path = route.path.split('/').map(|part| if part.starts_with('{') { server.thread.as_str() } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let key = server.key.clone();
        server.send(&route.method, &path, &key, body);
    });
}

/// Sends a request with a bearer token.
pub(crate) fn token(data: &[u8]) {
    let is_header = |byte: &u8| matches!(byte, 0x21..=0x7e);
    if let Ok(token) = std::str::from_utf8(data)
        && data.iter().all(is_header)
        && data.len() < 16 * 1024
    {
        with_server(|server| server.send("GET", "/v1/threads", token, b""));
    }
}

thread_local! {
    static SERVER: RefCell<Option<TestServer>> = const { RefCell::new(None) };
}

fn with_server(run: impl FnOnce(&mut TestServer)) {
    SERVER.with_borrow_mut(|server| {
        if server.as_ref().is_none_or(|server| server.requests >= MAX_REQUESTS) {
            *server = Some(TestServer::start());
        }
        run(server.as_mut().expect("the server is running"));
    });
}

/// A server with an in-memory store, which runs in a separate thread, and a connection to it.
struct TestServer {
    address: std::net::SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    key: String,
    thread: String,
    requests: usize,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<thread::JoinHandle<()>>,
}

impl TestServer {
    fn start() -> Self {
        let (started, start) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("failed to create a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("no free port");
                let memory = threadkeep::open("memory:").await.expect("failed to open an in-memory store");
                let tenant = TenantId::new("acme").expect("a valid name");
                let user = UserId::new("ana").expect("a valid name");
                let key = NewKey {
                    tenant: tenant.clone(),
                    user: Some(user.clone()),
                    name: "fuzz".to_owned(),
                    roles: vec![KeyRole::Read, KeyRole::Write, KeyRole::Approve],
                    expires_at: None,
                    rate_limit: Some(RateLimit { per_minute: u32::MAX }),
                    quota: None,
                };
                let (_, key) = Box::pin(Keys::new(&memory).create(key)).await.expect("failed to create a key");
                let scope = threadkeep::Scope::User(tenant.clone(), user);
                let thread =
                    Box::pin(memory.open_by_key(&scope, "fuzz")).await.expect("failed to open a thread").thread.id;
                let issuer = TrustedIssuer::hs256(SECRET, "issuer", "audience", tenant).expect("a valid secret");
                let options = ServerOptions {
                    sweep_every: None,
                    token_issuers: vec![issuer],
                    rate_limit: None,
                    ..ServerOptions::default()
                };
                let address = listener.local_addr().expect("a bound listener has an address");
                started.send((address, key.as_str().to_owned(), thread.to_string())).expect("the receiver waits");
                let server = Server::new(memory, options);
                let _ = Box::pin(server.serve(listener, async move { drop(stopped.await) })).await;
            });
        });
        let (address, key, thread) = start.recv().expect("failed to start the server");
        Self { address, connection: None, key, thread, requests: 0, stop: Some(stop), serving: Some(serving) }
    }

    /// Sends a request and checks that the response status is not 500, which indicates a panic.
    fn send(&mut self, method: &str, path: &str, key: &str, body: &[u8]) {
        self.requests += 1;
        let mut connection = self.connection.take().unwrap_or_else(|| connect(self.address));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let sent = [head.as_bytes(), body].concat();
        if connection.get_mut().write_all(&sent).is_err() {
            return;
        }
        // The connection is reused only if it is open and the response was read completely.
        let Some((status, is_complete)) = read_response(&mut connection) else { return };
        assert!(status != 500, "{method} {path} answered 500");
        self.connection = is_complete.then_some(connection);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.connection = None;
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            drop(serving.join());
        }
    }
}

fn connect(address: std::net::SocketAddr) -> BufReader<TcpStream> {
    let connection = TcpStream::connect(address).expect("failed to connect");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("failed to set the timeout");
    connection.set_nodelay(true).expect("failed to set TCP_NODELAY");
    BufReader::new(connection)
}

/// Returns the status, and whether the response was read completely.
fn read_response(connection: &mut BufReader<TcpStream>) -> Option<(u16, bool)> {
    let mut line = String::new();
    connection.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let (mut length, mut closes) = (None, false);
    loop {
        line.clear();
        connection.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name {
            "content-length" => length = value.parse::<u64>().ok(),
            "connection" => closes = value == "close",
            _ => {}
        }
    }
    let length = length.or((status == 204).then_some(0));
    let is_complete = length.is_some_and(|length| {
        let read = std::io::copy(&mut connection.by_ref().take(length), &mut std::io::sink());
        read.is_ok_and(|read| read == length)
    });
    Some((status, is_complete && !closes))
}
