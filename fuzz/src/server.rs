//! What reaches the server: requests on every route that takes a body, tokens, key sets, messages of WebSockets.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use threadkeep::{TenantId, UserId};
use threadkeep_server::{KeyRole, Keys, NewKey, RateLimit, RouteInfo, Server, ServerOptions, TokenIssuer, fuzzing};
use tokio::sync::oneshot;

/// Requests that one server takes before another takes its place, so that what they store does not add up.
const REQUESTS: usize = 2_000;
const SECRET: &str = "a secret that has thirty-two bytes or more";

pub(crate) fn key_set(data: &[u8]) {
    let _ = fuzzing::count_keys(data);
}

pub(crate) fn socket_message(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = fuzzing::reads_socket_message(text);
    }
}

/// The routes that take a body and answer in one piece.
static ROUTES: LazyLock<Vec<RouteInfo>> = LazyLock::new(|| {
    let routes = Server::routes().into_iter();
    routes.filter(|route| matches!(route.method.as_str(), "POST" | "PUT" | "PATCH")).collect()
});

/// The first byte chooses the route, the rest is the body.
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

/// The token that a request shows.
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
    static SERVER: RefCell<Option<Running>> = const { RefCell::new(None) };
}

fn with_server(act: impl FnOnce(&mut Running)) {
    SERVER.with_borrow_mut(|server| {
        if server.as_ref().is_none_or(|server| server.requests >= REQUESTS) {
            *server = Some(Running::start());
        }
        act(server.as_mut().expect("it has just been started"));
    });
}

/// A server over a store in memory, in a thread of its own, and a connection to it.
struct Running {
    address: std::net::SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    key: String,
    thread: String,
    requests: usize,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start() -> Self {
        let (started, start) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                let memory = threadkeep::open("memory:").await.expect("a store in memory");
                let tenant = TenantId::new("acme").expect("a name");
                let user = UserId::new("ana").expect("a name");
                let key = NewKey {
                    tenant: tenant.clone(),
                    user: Some(user.clone()),
                    name: "fuzz".to_owned(),
                    roles: vec![KeyRole::Read, KeyRole::Write, KeyRole::Approve],
                    expires_at: None,
                    rate_limit: Some(RateLimit { per_minute: u32::MAX }),
                    quota: None,
                };
                let (_, key) = Box::pin(Keys::new(&memory).create(key)).await.expect("a key");
                let scope = threadkeep::Scope::User(tenant.clone(), user);
                let thread = Box::pin(memory.open_by_key(&scope, "fuzz")).await.expect("a thread").thread.id;
                let issuer = TokenIssuer::hs256(SECRET, "issuer", "audience", tenant).expect("a secret");
                let options = ServerOptions {
                    sweep_every: None,
                    token_issuers: vec![issuer],
                    rate_limit: None,
                    ..ServerOptions::default()
                };
                let address = listener.local_addr().expect("an address");
                started.send((address, key.as_str().to_owned(), thread.to_string())).expect("somebody waits");
                let server = Server::new(memory, options);
                let _ = Box::pin(server.serve(listener, async move { drop(stopped.await) })).await;
            });
        });
        let (address, key, thread) = start.recv().expect("the server starts");
        Self { address, connection: None, key, thread, requests: 0, stop: Some(stop), serving: Some(serving) }
    }

    /// Sends a request and reads the answer, whose status may be anything but that of a panic.
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
        // A connection that was closed, or an answer that goes on, is left alone.
        let Some((status, is_whole)) = read_answer(&mut connection) else { return };
        assert!(status != 500, "{method} {path} answered 500");
        self.connection = is_whole.then_some(connection);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connection = None;
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            drop(serving.join());
        }
    }
}

fn connect(address: std::net::SocketAddr) -> BufReader<TcpStream> {
    let connection = TcpStream::connect(address).expect("the server listens");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    connection.set_nodelay(true).expect("no delay");
    BufReader::new(connection)
}

/// The status, and whether the answer was read to its end.
fn read_answer(connection: &mut BufReader<TcpStream>) -> Option<(u16, bool)> {
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
    let is_whole = length.is_some_and(|length| {
        let read = std::io::copy(&mut connection.by_ref().take(length), &mut std::io::sink());
        read.is_ok_and(|read| read == length)
    });
    Some((status, is_whole && !closes))
}
