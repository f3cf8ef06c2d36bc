//! The server as a program: where it listens, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use super::Cli;

/// A server that is told to stop when the test is over.
pub(super) struct Server {
    child: Child,
    pub(super) address: String,
}

impl Server {
    fn start(cli: &Cli) -> Self {
        Self::start_with(cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline"]))
    }

    pub(super) fn start_with(mut command: Command) -> Self {
        let mut child = command.env_remove("RUST_LOG").spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        // Whoever logs must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address: address.unwrap() }
    }

    /// Sends a request and gives the answer's status line and body.
    fn ask(&self, request: &str, body: &str) -> Option<(String, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let length = body.len();
        let head = format!(
            "{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n",
            self.address
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.lines().next()?.to_owned(), body.to_owned()))
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended by itself in most tests.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn thread(server: &Server) -> String {
    let (status, body) = server.ask("POST /v1/threads", "{}").unwrap();
    assert_eq!(status, "HTTP/1.1 201 Created", "{body}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

/// Says things from several sides at once until the server is gone. Gives what was acknowledged.
fn said_until_gone(server: &Server, thread: &str, signal: &str) -> Vec<String> {
    let (heard, hears) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let heard = heard.clone();
                scope.spawn(move || {
                    let mut acknowledged = Vec::new();
                    for count in 0.. {
                        let text = format!("{writer}/{count}");
                        let body = format!(r#"{{"messages":[{{"role":"user","text":"{text}"}}]}}"#);
                        match server.ask(&format!("POST /v1/threads/{thread}/messages"), &body) {
                            Some((status, _)) if status.contains("201") => acknowledged.push(text),
                            _ => break,
                        }
                        heard.send(()).unwrap();
                    }
                    acknowledged
                })
            })
            .collect();
        for _ in 0..40 {
            hears.recv_timeout(super::PATIENCE).unwrap();
        }
        server.signal(signal);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    })
}

fn assert_kept(cli: &Cli, thread: &str, acknowledged: &[String]) {
    let shown = cli.json(&["show", thread, "--all"]);
    let kept: Vec<&str> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert!(acknowledged.len() >= 40);
    assert!(acknowledged.iter().all(|text| kept.contains(&text.as_str())));
}

#[test]
fn asked_to_stop_it_loses_nothing_that_it_acknowledged() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let acknowledged = said_until_gone(&server, &thread, "-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert_kept(&cli, &thread, &acknowledged);
}

#[test]
fn killed_it_loses_nothing_that_it_acknowledged() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let acknowledged = said_until_gone(&server, &thread, "-KILL");
    assert_eq!(server.child.wait().unwrap().code(), None);
    assert_kept(&cli, &thread, &acknowledged);
}

#[test]
fn a_stream_ends_with_an_event() {
    let cli = Cli::new();
    let mut server = Server::start(&cli);
    let thread = thread(&server);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = format!("GET /v1/threads/{thread}/events HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with(": listening")));
    server.signal("-TERM");
    assert!(lines.any(|line| line.contains(r#""reason":"shutdown""#)));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_is_open_to_others_only_with_a_key() {
    let cli = Cli::new();
    let refused = cli.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("keys create"), "{refused}");
    let server = Server::start(&cli);
    assert_eq!(server.ask("GET /v1/threads", "").unwrap().0, "HTTP/1.1 200 OK");
    cli.out(&["keys", "create", "phone"]);
    assert_eq!(server.ask("GET /v1/threads", "").unwrap().0, "HTTP/1.1 401 Unauthorized");
}

/// Asks in JSON until the answer is as wanted.
fn until(server: &Server, request: &str, is_it: impl Fn(&serde_json::Value) -> bool) {
    let deadline = std::time::Instant::now() + super::PATIENCE;
    loop {
        let (_, body) = server.ask(request, "").unwrap();
        if is_it(&serde_json::from_str(&body).unwrap()) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{body}");
        std::thread::yield_now();
    }
}

const GARDENER: &str = "kind: Agent\nmetadata:\n  name: gardener\nspec:\n  instructions: You look after a garden.\n";

// S4.38
#[test]
fn what_is_written_in_a_file_is_served_without_a_restart() {
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
    until(&server, "GET /v1/agents", |agents| names(agents) == ["gardener", "general"] && tools(agents) > 1);
    cli.file("assistants/gardener.yaml", format!("{GARDENER}  tools: [recall]\n"));
    until(&server, "GET /v1/agents", |agents| tools(agents) == 1);
    // What makes no assistant leaves the one that was.
    cli.file("assistants/gardener.yaml", "kind: Agent\nspec: {tools: [none of these]}\n");
    cli.file("assistants/cook.yaml", GARDENER.replace("gardener", "cook"));
    until(&server, "GET /v1/agents", |agents| names(agents) == ["cook", "gardener", "general"]);
    std::fs::remove_file(cli.path("assistants/gardener.yaml")).unwrap();
    until(&server, "GET /v1/agents", |agents| names(agents) == ["cook", "general"]);
}

/// S2.50 and S2.51, by the program.
#[test]
fn one_assistant_alone_answers_at_the_root() {
    let cli = Cli::new();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline", "--assistant", "general"];
    let server = Server::start_with(cli.command(&arguments));
    let say = |path: &str| server.ask(&format!("POST {path}"), r#"{"message": "The hose leaks.", "user_id": "ana"}"#);
    let (status, body) = say("/chat").unwrap();
    assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
    let turn: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&turn["agent"], &turn["status"]), (&"general".into(), &"completed".into()));
    assert!(server.ask("GET /", "").unwrap().1.contains("<form"));
    drop(server);
    let mut command = cli.command(&arguments);
    command.env("SUBWAY_API_KEY", "s3cret");
    let server = Server::start_with(command);
    let say = |path: &str| server.ask(&format!("POST {path}"), r#"{"message": "What leaks?", "user_id": "ana"}"#);
    assert_eq!(say("/chat").unwrap().0, "HTTP/1.1 401 Unauthorized");
    let (status, body) = say("/chat?key=s3cret").unwrap();
    assert!(status.contains("200") && body.contains("The hose leaks."), "it was kept: {body}");
}
