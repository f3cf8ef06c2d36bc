//! A reverse proxy in front of a server that requires no API key: nginx with one `proxy_pass`, which sends `Host: 127.0.0.1` and no
//! headers about the client.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use threadkeep_server::{LocalAccess, RouteInfo, Server, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::assistants::test_assistant;
use crate::server::{TIMEOUT, TOKEN, TestConfig, TestServer};
use crate::v1::config_with_model;

/// The routes without access control: health, documentation and pages.
const OPEN_ROUTES: [(&str, &str); 14] = [
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs/"),
    ("GET", "/docs/{file}"),
    ("GET", "/v1/session"),
    ("GET", "/{assistant}/health"),
    ("GET", "/"),
    ("GET", "/assets/{file}"),
    ("GET", "/offline/"),
    ("GET", "/offline/{file}"),
    ("GET", "/offline/engine/{file}"),
    ("GET", "/{assistant}/"),
];

const UPGRADE_HEADERS: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn is_skipped() -> bool {
    std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == "nginx"))
}

fn authorization_header() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

struct Nginx {
    folder: tempfile::TempDir,
    _child: Child,
}

impl Nginx {
    /// Starts nginx in front of a server. The configuration contains `location / { proxy_pass …; directives }`.
    async fn start_in_front_of(server: SocketAddr, directives: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {at}/{name};\n"))
            .collect();
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}\
             server {{ listen unix:{at}/socket; location / {{ proxy_pass http://{server}; {directives} }} }}\n}}\n"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        // On Debian, nginx is not in the PATH of users.
        let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].map(PathBuf::from).into_iter();
        let program = program.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("nginx"));
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file).arg("-e").arg(folder.path().join("log"));
        let child = command.kill_on_drop(true).stdout(Stdio::null()).spawn().expect("nginx starts");
        let nginx = Self { folder, _child: child };
        let listens = async {
            while nginx.connect().await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, listens).await.expect("nginx listens");
        nginx
    }

    async fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.folder.path().join("socket")).await
    }

    /// Sends a request and returns the status of the response.
    async fn send(&self, method: &str, path: &str, headers: &str) -> u16 {
        let mut stream = self.connect().await.unwrap();
        let (body, close) = match (method, headers.contains("Upgrade")) {
            ("GET" | "DELETE", true) => ("", ""),
            ("GET" | "DELETE", false) => ("", "Connection: close\r\n"),
            _ => ("{}", "Connection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"),
        };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: threadkeep.example\r\n{close}{headers}\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let head = async {
            while !answer.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{method} {path}: the response is incomplete");
            }
        };
        tokio::time::timeout(TIMEOUT, head).await.unwrap_or_else(|_| panic!("{method} {path}: no response"));
        let answer = String::from_utf8_lossy(&answer);
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// Starts a server with a model and an assistant, so that no route lacks what it needs.
async fn start_server() -> TestServer {
    let assistants = vec![test_assistant("keeper").0];
    TestServer::start_with(TestConfig { assistants, ..config_with_model().0 }).await
}

/// Returns each route's method, its path with values for the parameters, and whether the route is in [`OPEN_ROUTES`].
fn list_requests() -> impl Iterator<Item = (String, String, bool)> {
    Server::routes().into_iter().map(|RouteInfo { method, path, .. }| {
        let is_open = OPEN_ROUTES.contains(&(method.as_str(), path.as_str()));
        let parts = path.split('/').map(|part| match part {
            "{assistant}" => "keeper",
            "{file}" => "index.html",
            part if part.starts_with('{') => "0190b4e2-0000-7000-8000-000000000000",
            part => part,
        });
        (method, parts.collect::<Vec<_>>().join("/"), is_open)
    })
}

#[test]
fn only_listed_routes_are_open() {
    let open: Vec<_> = Server::routes().into_iter().filter(|route| route.role.is_none()).collect();
    for RouteInfo { method, path, .. } in &open {
        // The POST route that exchanges the token for a cookie checks the token itself.
        let is_known = OPEN_ROUTES.contains(&(method.as_str(), path.as_str())) || path == "/v1/session";
        assert!(is_known, "{method} {path} is open");
    }
    assert_eq!(open.len(), OPEN_ROUTES.len() + 1);
}

#[tokio::test]
async fn plain_proxies_grant_no_access_without_the_token() {
    if is_skipped() {
        return;
    }
    let server = start_server().await;
    let nginx = Nginx::start_in_front_of(server.address, "").await;
    let mut refused = 0;
    for (method, path, is_open) in list_requests() {
        let status = nginx.send(&method, &path, "").await;
        assert_eq!(status == 401, !is_open, "{method} {path}: {status}");
        refused += usize::from(status == 401);
        // Invalid credentials are rejected too. Open routes ignore them.
        let invalid_credentials = "Authorization: Bearer sk-any\r\nCookie: threadkeep-7437=x\r\n";
        let status = nginx.send(&method, &path, invalid_credentials).await;
        assert_eq!(matches!(status, 401 | 429), !is_open, "{method} {path}: {status}");
    }
    assert!(refused > 80, "only {refused} requests were rejected");
    assert_eq!(nginx.send("GET", "/v1/live", UPGRADE_HEADERS).await, 401);
    // A client with the token is admitted from anywhere.
    for (method, path, _) in list_requests() {
        // The token acts for a user, who may not call the routes for administrators. Tokens are disabled by default.
        let refused_to_users = ["/v1/keys", "/v1/audit", "/v1/tokens", "/v1/quotas", "/v1/tenants", "/v1/users"];
        let is_refused_to_users = refused_to_users.iter().any(|start| path.starts_with(start));
        if path == "/v1/session" || is_refused_to_users {
            continue;
        }
        let status = nginx.send(&method, &path, &authorization_header()).await;
        assert!(!matches!(status, 401 | 403 | 429 | 502), "{method} {path}: {status}");
    }
    let thread = server.client().new_thread().await;
    assert_eq!(nginx.send("GET", &format!("/v1/threads/{thread}/events"), &authorization_header()).await, 200);
}

#[tokio::test]
async fn plain_proxies_grant_no_access_to_sockets_without_the_token() {
    if is_skipped() {
        return;
    }
    let server = TestServer::start().await;
    let upgrades = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
                    proxy_set_header Connection $http_connection;";
    let nginx = Nginx::start_in_front_of(server.address, upgrades).await;
    assert_eq!(nginx.send("GET", "/v1/live", UPGRADE_HEADERS).await, 401);
    // A page of another origin sends such a request from a browser that has the cookie of another server.
    let from_page = format!("{UPGRADE_HEADERS}Origin: http://threadkeep.example\r\nCookie: threadkeep-80=1.x\r\n");
    assert_eq!(nginx.send("GET", "/v1/live", &from_page).await, 401);
    assert_eq!(nginx.send("GET", "/v1/live", &format!("{UPGRADE_HEADERS}{}", authorization_header())).await, 101);
}

/// This is why the local token exists: without it, a server cannot distinguish clients of a plain proxy from local callers.
#[tokio::test]
async fn plain_proxies_grant_access_to_servers_without_a_token() {
    if is_skipped() {
        return;
    }
    let options = ServerOptions { local_access: LocalAccess::ThisMachine, ..TestConfig::default().options };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let nginx = Nginx::start_in_front_of(server.address, "").await;
    assert_eq!(nginx.send("GET", "/v1/threads", "").await, 200);
    let with_client_header =
        Nginx::start_in_front_of(server.address, "proxy_set_header X-Forwarded-For $remote_addr;").await;
    assert_eq!(with_client_header.send("GET", "/v1/threads", "").await, 403);
}
