//! The server as a program: where it listens, what it serves, and how it stops.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use super::Cli;
use super::provider::Provider;

/// The token of the tests' servers while they have no key.
pub(super) const TOKEN: &str = "tkl_dGhlIHRva2VuIG9mIGFsbCBzZXJ2ZXJzIG9mIHRlc3Q";

/// Returns the header that contains the token.
pub(super) fn authorization() -> String {
    format!("authorization: Bearer {TOKEN}\r\n")
}

/// A running server, which is killed at the end of the test.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) address: String,
    /// The log lines so far.
    pub(super) log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn start(cli: &Cli) -> Self {
        Self::start_with(cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline"]))
    }

    /// Starts a server with the tests' token, unless the command sets another one.
    pub(super) fn start_with(mut command: Command) -> Self {
        if !command.get_envs().any(|(name, _)| name == "THREADKEEP_TOKEN") {
            command.env("THREADKEEP_TOKEN", TOKEN);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let log_lines = Arc::clone(&log);
        // Logging must not wait for a reader.
        std::thread::spawn(move || lines.for_each(|line| log_lines.lock().unwrap().push(line.unwrap())));
        Self { child, address: address.unwrap(), log }
    }

    /// Sends a request. Returns the status line and the body of the answer.
    pub(super) fn ask(&self, request: &str, body: &str) -> Option<(String, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let (length, authorization) = (body.len(), authorization());
        let head = format!(
            "{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{authorization}content-length: {length}\r\n\r\n",
            self.address
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.lines().next()?.to_owned(), body.to_owned()))
    }

    /// Sends a request with the given headers. Returns the complete answer.
    pub(super) fn ask_with(&self, request: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}", self.address);
        stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Subscribes to a thread. Returns the lines of its event stream.
    pub(super) fn listen(&self, thread: &str) -> impl Iterator<Item = String> + use<> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("GET /v1/threads/{thread}/events HTTP/1.1\r\nhost: {}\r\n", self.address);
        let request = format!("{head}{}\r\n", authorization());
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(super::TIMEOUT)).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with(": listening")));
        lines
    }

    /// Waits until the log contains the text.
    pub(super) fn wait_for_log(&self, words: &str) {
        let began = std::time::Instant::now();
        while !self.log.lock().unwrap().iter().any(|line| line.contains(words)) {
            assert!(began.elapsed() < super::TIMEOUT, "{:?}", self.log.lock().unwrap());
            std::thread::yield_now();
        }
    }

    pub(super) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // In most tests, the server has already exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(super) fn thread(server: &Server) -> String {
    let (status, body) = server.ask("POST /v1/threads", "{}").unwrap();
    assert_eq!(status, "HTTP/1.1 201 Created", "{body}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

/// Appends messages from several clients until the server is gone. Returns the acknowledged texts.
pub(super) fn append_until_down(server: &Server, thread: &str, signal: &str) -> Vec<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut acknowledged = Vec::new();
                    for count in 0.. {
                        let text = format!("{writer}/{count}");
                        let body = format!(r#"{{"messages":[{{"role":"user","text":"{text}"}}]}}"#);
                        match server.ask(&format!("POST /v1/threads/{thread}/messages"), &body) {
                            Some((status, _)) if status.contains("201") => acknowledged.push(text),
                            _ => break,
                        }
                        sender.send(()).unwrap();
                    }
                    acknowledged
                })
            })
            .collect();
        for _ in 0..40 {
            receiver.recv_timeout(super::TIMEOUT).unwrap();
        }
        server.signal(signal);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    })
}

pub(super) fn assert_stored(cli: &Cli, thread: &str, acknowledged: &[String]) {
    let shown = cli.json(&["show", thread, "--all"]);
    let stored: Vec<&str> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert!(acknowledged.len() >= 40);
    assert!(acknowledged.iter().all(|text| stored.contains(&text.as_str())));
}

#[test]
fn shutdowns_lose_no_acknowledged_messages() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let acknowledged = append_until_down(&server, &thread, "-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert_stored(&cli, &thread, &acknowledged);
}

#[test]
fn killed_servers_lose_no_acknowledged_messages() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let acknowledged = append_until_down(&server, &thread, "-KILL");
    assert_eq!(server.child.wait().unwrap().code(), None);
    assert_stored(&cli, &thread, &acknowledged);
}

#[test]
fn streams_end_with_an_event() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let mut lines = server.listen(&thread);
    server.signal("-TERM");
    assert!(lines.any(|line| line.contains(r#""reason":"shutdown""#)));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn other_hosts_require_a_key() {
    let cli = Cli::new();
    let refused = cli.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("keys create"), "{refused}");
    let server = Server::start(&cli);
    assert_eq!(server.ask("GET /v1/threads", "").unwrap().0, "HTTP/1.1 200 OK");
    cli.out(&["keys", "create", "phone"]);
    assert_eq!(server.ask("GET /v1/threads", "").unwrap().0, "HTTP/1.1 401 Unauthorized");
}

/// Repeats a request until the JSON of the answer is as expected.
pub(super) fn until(server: &Server, request: &str, is_expected: impl Fn(&serde_json::Value) -> bool) {
    let deadline = std::time::Instant::now() + super::TIMEOUT;
    loop {
        let (_, body) = server.ask(request, "").unwrap();
        if is_expected(&serde_json::from_str(&body).unwrap()) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{body}");
        std::thread::yield_now();
    }
}

const GARDENER: &str = "kind: Agent\nmetadata:\n  name: gardener\nspec:\n  instructions: You look after a garden.\n";

// S4.38
#[test]
fn changed_assistant_files_are_served_without_a_restart() {
    let cli = Cli::new();
    cli.file("assistants/gardener.yaml", GARDENER);
    let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline"]);
    command.env("THREADKEEP_ASSISTANTS", cli.path("assistants"));
    let server = Server::start_with(command);
    let names = |agents: &serde_json::Value| {
        let agents = agents["data"].as_array().unwrap().iter();
        agents.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let tools = |agents: &serde_json::Value| agents["data"][0]["tools"].as_array().unwrap().len();
    until(&server, "GET /v1/agents", |agents| {
        names(agents) == ["gardener", "general", "kubeops", "subway", "tesis", "underground"] && tools(agents) > 1
    });
    cli.file("assistants/gardener.yaml", format!("{GARDENER}  tools: [recall]\n"));
    until(&server, "GET /v1/agents", |agents| tools(agents) == 1);
    // An invalid file leaves the previous version of the assistant in use.
    cli.file("assistants/gardener.yaml", "kind: Agent\nspec: {tools: [none of these]}\n");
    cli.file("assistants/cook.yaml", GARDENER.replace("gardener", "cook"));
    until(&server, "GET /v1/agents", |agents| {
        names(agents) == ["cook", "gardener", "general", "kubeops", "subway", "tesis", "underground"]
    });
    std::fs::remove_file(cli.path("assistants/gardener.yaml")).unwrap();
    until(&server, "GET /v1/agents", |agents| {
        names(agents) == ["cook", "general", "kubeops", "subway", "tesis", "underground"]
    });
}

/// S2.50 and S2.51, with the built program.
#[test]
fn a_single_assistant_is_served_at_the_root() {
    let cli = Cli::new();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline", "--assistant", "general"];
    let server = Server::start_with(cli.command(&arguments));
    let say = |path: &str| server.ask(&format!("POST {path}"), r#"{"message": "The hose leaks.", "user_id": "ana"}"#);
    let (status, body) = say("/chat").unwrap();
    assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
    let turn: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&turn["agent"], &turn["status"]), (&"general".into(), &"completed".into()));
    // The chat page of one assistant, or the page in `web` if it was built into the program.
    let page = server.ask("GET /", "").unwrap().1;
    assert!(page.contains("<form") || page.contains("/assets/"), "{page}");
    drop(server);
    let mut command = cli.command(&arguments);
    command.env("SUBWAY_API_KEY", "s3cret");
    let server = Server::start_with(command);
    let body = r#"{"message": "What leaks?", "user_id": "ana"}"#;
    let say = |path: &str| server.ask_with(&format!("POST {path}"), "", body);
    assert!(say("/chat").starts_with("HTTP/1.1 401 Unauthorized"));
    let answer = say("/chat?key=s3cret");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("The hose leaks."),
        "the conversation was stored: {answer}"
    );
    // The server's own token is accepted as well.
    assert_eq!(server.ask("POST /chat", body).unwrap().0, "HTTP/1.1 200 OK");
}

#[test]
fn settings_of_the_api_reach_the_server() {
    let (cli, provider) = (Cli::new(), Provider::start());
    let preflight = |server: &Server| {
        let headers = "origin: https://app.example\r\naccess-control-request-method: POST\r\n";
        server.ask_with("OPTIONS /v1/threads", headers, "")
    };
    let chat = r#"{"model": "gpt-9", "messages": [{"role": "user", "content": "hello"}]}"#;
    let webhook = r#"{"url": "http://127.0.0.1:9/hook"}"#;
    let server = Server::start_with(provider.command(&cli));
    assert!(!preflight(&server).contains("access-control-allow-origin"));
    assert_eq!(server.ask("POST /v1/chat/completions", chat).unwrap().0, "HTTP/1.1 200 OK");
    assert!(server.ask("POST /v1/webhooks", webhook).unwrap().1.contains("must begin with https://"));
    drop(server);
    let mut command = provider.command(&cli);
    command.env("THREADKEEP_BROWSER_ORIGINS", "https://app.example").env("THREADKEEP_STRICT_MODELS", "true");
    command.env("THREADKEEP_WEBHOOK_NETWORKS", "127.0.0.1");
    let server = Server::start_with(command);
    let allowed = preflight(&server);
    assert!(allowed.contains("access-control-allow-origin: https://app.example"), "{allowed}");
    let (status, body) = server.ask("POST /v1/chat/completions", chat).unwrap();
    assert!(status.contains(" 404 ") && body.contains("model_not_found"), "{status} {body}");
    assert_eq!(server.ask("POST /v1/webhooks", webhook).unwrap().0, "HTTP/1.1 201 Created");
}

// S4.45
#[test]
fn server_reads_yaml_and_toml_configuration() {
    let cli = Cli::new();
    for (name, content) in [
        ("config.yaml", "server:\n  listen: 127.0.0.1:0\nmodel: offline\nuser: ana\n"),
        ("threadkeep.toml", "model = 'offline'\nuser = 'ana'\n[server]\nlisten = '127.0.0.1:0'\n"),
    ] {
        let file = cli.file(name, content);
        let mut command = cli.command(&["serve", "--config", &file]);
        command.env("RUST_LOG", "debug");
        let server = Server::start_with(command);
        let (status, body) = server.ask("POST /v1/threads", "{}").unwrap();
        assert_eq!(
            (status.as_str(), body.contains(r#""owner":{"user":"ana"}"#)),
            ("HTTP/1.1 201 Created", true),
            "{body}"
        );
    }
}

/// Event streams of both kinds under load. Each ends with an event that contains the reason and the position at which to
/// resume.
#[test]
fn streams_under_load_end_with_an_event_and_lose_nothing() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let streams: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let head = format!("GET /v1/threads/{thread}/events HTTP/1.1\r\nhost: {}\r\n", server.address);
            let request = format!("{head}{}\r\n", authorization());
            stream.write_all(request.as_bytes()).unwrap();
            let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
            assert!(lines.any(|line| line.starts_with(": listening")));
            std::thread::spawn(move || {
                let received: Vec<String> = lines.collect();
                let ids = received.iter().filter_map(|line| line.strip_prefix("id: ")?.split_once('-'));
                let positions = ids.map(|(number, _tag)| number.parse::<u64>().unwrap());
                let last = received.iter().rev().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
                (positions.collect::<Vec<_>>(), last)
            })
        })
        .collect();
    let acknowledged = append_until_down(&server, &thread, "-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert_stored(&cli, &thread, &acknowledged);
    for stream in streams {
        let (mut positions, last) = stream.join().unwrap();
        assert!(last.contains(r#""reason":"shutdown""#), "{last}");
        // The last event has the id of the last commit that was sent.
        let resumed_after = positions.pop();
        assert_eq!(resumed_after, positions.last().copied());
        let first = positions[0];
        let gapless: Vec<u64> = (first..).take(positions.len()).collect();
        assert_eq!(positions, gapless, "no commit is missing before the end");
    }
}

#[test]
fn tls_requires_a_certificate_and_a_key() {
    let cli = Cli::new();
    let alone = cli.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem"]);
    assert_eq!((alone.code, alone.err.contains("--tls-key")), (Some(2), true), "{alone}");
    let missing = cli.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert_eq!(
        (missing.code, missing.err.contains("cannot read a certificate") && missing.err.contains("cert.pem")),
        (Some(2), true),
        "{missing}"
    );
}

#[test]
fn tokens_require_an_audience_and_keys() {
    let cli = Cli::new();
    let (no_key, invalid) = ("no key or secret to verify the tokens of https://issuer", "invalid token settings: ");
    for (arguments, expected) in [
        (&["--token-issuer", "https://issuer"][..], no_key),
        (&["--token-issuer", "https://issuer", "--token-audience", "a"], no_key),
        (&["--token-issuer", "https://issuer", "--token-jwks", "https://issuer/keys"], invalid),
        (&["--token-issuer", "https://issuer", "--token-audience", "a", "--token-jwks", "http://issuer/keys"], invalid),
    ] {
        let output = cli.run(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_eq!((output.code, output.err.contains(expected)), (Some(2), true), "{arguments:?}: {output}");
    }
}

/// Returns one of many kinds of malformed requests.
fn malformed(number: usize, thread: &str) -> (String, String, Vec<u8>) {
    let append = format!("POST /v1/threads/{thread}/messages");
    let post = |body: Vec<u8>| (append.clone(), String::new(), body);
    match number % 10 {
        0 => post(b"{\"messages\":[{\"role\":\"user\",\"text\":\"unfinished".to_vec()),
        1 => post([vec![b'['; 100 + number], vec![b']'; 100 + number]].concat()),
        2 => post(br#"{"messages":{"role":7}}"#.to_vec()),
        3 => post(format!(r#"{{"expected_seq":{}e999,"messages":[]}}"#, number + 1).into_bytes()),
        4 => post(b"{\"messages\":[{\"role\":\"user\",\"text\":\"\xff\xfe\"}]}".to_vec()),
        5 => post(br#"{"messages":[{"role":"user","text":"\ud800"}]}"#.to_vec()),
        6 => ("GET /health".to_owned(), "x-flood: 1\r\n".repeat(150 + number % 500), Vec::new()),
        7 => ("GET /health".to_owned(), format!("x-long: {}\r\n", "y".repeat(200_000 + number)), Vec::new()),
        8 => (format!("GET /v1/threads?limit={number}00000"), String::new(), Vec::new()),
        _ => (format!("GET /v1/threads/%ff{number}"), String::new(), Vec::new()),
    }
}

/// Returns the resident memory of a process in KiB.
#[cfg(target_os = "linux")]
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn malformed_requests_are_rejected_and_leak_no_memory() {
    const WARM_UP: usize = 500;
    const REQUESTS: usize = 2_000;
    const MAX_GROWTH_KIB: u64 = 8 * 1024;
    let cli = Cli::new();
    let server = Server::start(&cli);
    let thread = thread(&server);
    let mut before = 0;
    for number in 0..WARM_UP + REQUESTS {
        if number == WARM_UP {
            before = resident(server.child.id());
        }
        let (request, headers, body) = malformed(number, &thread);
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}", server.address);
        let head = head + &authorization();
        let bytes = [format!("{head}content-length: {length}\r\n\r\n").into_bytes(), body].concat();
        // If the server closes the connection before it has read the request, its answer may be lost.
        let was_sent = stream.write_all(&bytes).is_ok();
        let mut answer = Vec::new();
        let was_read = stream.read_to_end(&mut answer).is_ok();
        let answer = String::from_utf8_lossy(&answer);
        let is_refused = answer.starts_with("HTTP/1.1 4");
        let is_lost = answer.is_empty() && !(was_sent && was_read) && matches!(number % 10, 6 | 7);
        assert!(is_refused || is_lost, "{number}: {answer}");
    }
    let after = resident(server.child.id());
    assert!(after < before + MAX_GROWTH_KIB, "{before} KiB grew to {after} KiB");
    assert_eq!(server.ask("GET /v1/threads", "").unwrap().0, "HTTP/1.1 200 OK");
}

#[test]
fn server_listens_on_a_host_name() {
    let cli = Cli::new();
    let server = Server::start_with(cli.command(&["serve", "--listen", "localhost:0", "--model", "offline"]));
    let address: std::net::SocketAddr = server.address.parse().unwrap();
    assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
}
