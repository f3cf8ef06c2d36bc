//! Turns that resume after their server was killed.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::{Value, json};

use super::Cli;
use super::serve::{Server, authorization, thread, until};

/// An HTTP endpoint, such as a model, that replies only when the test lets it.
struct HeldEndpoint(TcpListener);

/// A request that waits for its reply.
struct HeldRequest {
    stream: TcpStream,
    text: String,
}

impl HeldEndpoint {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    fn serve(&self, cli: &Cli) -> Command {
        let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("OPENAI_BASE_URL", format!("{}/v1", self.url())).env("OPENAI_MODEL", "held");
        command.env("MTA_FEEDS", self.url()).env("NO_PROXY", "127.0.0.1");
        command
    }

    /// Waits for a request.
    fn next(&self) -> HeldRequest {
        let deadline = std::time::Instant::now() + super::TIMEOUT;
        self.0.set_nonblocking(true).unwrap();
        let (stream, _) = loop {
            match self.0.accept() {
                Ok(accepted) => break accepted,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            assert!(std::time::Instant::now() < deadline, "no request");
            std::thread::yield_now();
        };
        stream.set_nonblocking(false).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut text, mut length) = (String::new(), 0);
        while reader.read_line(&mut text).unwrap() > 2 {
            let last = text.lines().next_back().unwrap().to_ascii_lowercase();
            length = last.strip_prefix("content-length: ").map_or(length, |length| length.parse().unwrap());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        text.push_str(&String::from_utf8(body).unwrap());
        HeldRequest { stream, text }
    }

    /// Asserts that no further request has arrived.
    fn assert_no_request(&self) {
        self.0.set_nonblocking(true).unwrap();
        assert_eq!(self.0.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}

impl HeldRequest {
    /// Replies like a model, with text.
    fn answer(mut self, text: &str) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let delta = json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": text }, "finish_reason": null }] });
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        write!(self.stream, "{head}data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n").unwrap();
    }

    /// Replies like a model that calls a tool.
    fn call(mut self, tool: &str, arguments: &Value) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let function = json!({ "name": tool, "arguments": arguments.to_string() });
        let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
        let delta = json!({ "role": "assistant", "tool_calls": [call] });
        let delta = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
        write!(self.stream, "{head}data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n").unwrap();
    }

    fn refuse(mut self) {
        self.stream
            .write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
    }
}

/// Sends a request. The answer may never arrive.
fn begin(server: &Server, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let body = body.to_string();
    let (host, length, authorization) = (&server.address, body.len(), authorization());
    write!(stream, "POST {path} HTTP/1.1\r\nhost: {host}\r\n{authorization}content-length: {length}\r\n\r\n{body}")
        .unwrap();
    stream
}

/// Asks an assistant. Returns the turn when the server has acknowledged it.
fn ask(server: &Server, agent: &str, thread: &str, text: &str) -> String {
    let body = json!({ "text": text, "thread": thread, "stream": true });
    let stream = begin(server, &format!("/v1/agents/{agent}/turns"), &body);
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: turn.started"));
    let data = lines.next().unwrap();
    let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    data["turn"].as_str().unwrap().to_owned()
}

fn kill(server: &mut Server) {
    server.signal("-KILL");
    assert_eq!(server.child.wait().unwrap().code(), None);
}

fn get_json(server: &Server, path: &str) -> (String, Value) {
    let (status, body) = server.ask(&format!("GET {path}"), "").unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

fn texts(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect()
}

fn assert_turn_resumes_after_restart(cli: &Cli) {
    let model = HeldEndpoint::new();
    let mut server = Server::start_with(model.serve(cli));
    let (thread, other) = (thread(&server), thread(&server));
    let turn = ask(&server, "general", &thread, "Are you there?");
    let held = model.next();
    assert!(held.text.contains("Are you there?"));
    kill(&mut server);

    let server = Server::start_with(model.serve(cli));
    // No client requested the turn or wrote to its thread.
    let held_again = model.next();
    assert!(held_again.text.contains("Are you there?"));
    let messages = format!("/v1/threads/{thread}/messages?order=asc");
    assert_eq!(texts(&get_json(&server, &messages).1), ["Are you there?"]);
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    let (status, running) = get_json(&server, &path);
    assert_eq!((status.contains("202"), &running["status"]), (true, &json!("running")));
    // Other threads are not blocked meanwhile.
    let turn_of_other = ask(&server, "general", &other, "And you?");
    model.next().answer("So am I.");
    let is_completed = |turn: &Value| turn["status"] == "completed";
    until(&server, &format!("GET /v1/threads/{other}/turns/{turn_of_other}"), is_completed);

    held_again.answer("Here I am.");
    until(&server, &format!("GET {messages}"), |page| texts(page).len() == 2);
    let (status, turn) = get_json(&server, &path);
    assert_eq!(
        (status.contains("200"), &turn["status"], &turn["reply"]),
        (true, &json!("completed"), &json!("Here I am."))
    );
    // The thread accepts turns again.
    let next = ask(&server, "general", &thread, "Good.");
    model.next().answer("Yes.");
    until(&server, &format!("GET /v1/threads/{thread}/turns/{next}"), is_completed);
    assert_eq!(texts(&get_json(&server, &messages).1), ["Are you there?", "Here I am.", "Good.", "Yes."]);
    model.assert_no_request();
    drop(held);
}

#[test]
fn turns_resume_after_a_restart() {
    assert_turn_resumes_after_restart(&Cli::new());
}

#[test]
fn turns_resume_after_a_restart_on_postgres() {
    super::postgres::with_postgres(assert_turn_resumes_after_restart);
}

#[test]
fn turns_resume_after_a_restart_on_a_redis_cluster() {
    super::redis::with_cluster(assert_turn_resumes_after_restart);
}

/// Asserts that another instance resumes a turn if the killed instance is not restarted.
fn assert_another_instance_resumes(cli: &Cli) {
    let model = HeldEndpoint::new();
    let mut server = Server::start_with(model.serve(cli));
    let others = [Server::start_with(model.serve(cli)), Server::start_with(model.serve(cli))];
    let thread = thread(&server);
    ask(&server, "general", &thread, "Are you there?");
    let held = model.next();
    kill(&mut server);
    let messages = format!("GET /v1/threads/{thread}/messages?order=asc");
    let held_again = model.next();
    // One of the two remaining instances resumes the turn.
    model.assert_no_request();
    held_again.answer("Here I am.");
    for other in &others {
        until(other, &messages, |page| texts(page) == ["Are you there?", "Here I am."]);
    }
    model.assert_no_request();
    drop(held);
}

#[test]
fn another_instance_resumes_a_turn() {
    assert_another_instance_resumes(&Cli::new());
}

#[test]
fn another_instance_resumes_a_turn_on_postgres() {
    super::postgres::with_postgres(assert_another_instance_resumes);
}

#[test]
fn another_instance_resumes_a_turn_on_redis() {
    super::redis::with_server(assert_another_instance_resumes);
}

#[test]
fn another_instance_resumes_a_turn_on_a_redis_cluster() {
    super::redis::with_cluster(assert_another_instance_resumes);
}

/// The server is killed after the tool has run and before the model's answer. The other server completes the turn without running
/// the tool again.
fn assert_tools_run_once(cli: &Cli) {
    let model = HeldEndpoint::new();
    let mut server = Server::start_with(model.serve(cli));
    let other = Server::start_with(model.serve(cli));
    let thread = thread(&server);
    let turn = ask(&server, "general", &thread, "My boat is called Nereid.");
    model.next().call("set_preference", &json!({ "name": "boat", "value": "Nereid" }));
    let held = model.next();
    assert!(held.text.contains("call_1"), "{}", held.text);
    assert_eq!(get_json(&other, "/v1/preferences/boat").1["value"], "Nereid");
    kill(&mut server);
    // A second call of the tool would overwrite this value.
    let (status, _) = other.ask("PUT /v1/preferences/boat", r#"{"value":"Thetis"}"#).unwrap();
    assert!(status.contains("200"), "{status}");
    let held_again = model.next();
    assert!(held_again.text.contains("call_1"), "{}", held_again.text);
    held_again.answer("Noted.");
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    until(&other, &format!("GET {path}"), |turn| turn["status"] != "running");
    let turn = get_json(&other, &path).1;
    assert_eq!((&turn["status"], &turn["reply"]), (&json!("completed"), &json!("Noted.")), "{turn}");
    assert_eq!(turn["tool_calls"].as_array().unwrap().len(), 1, "{turn}");
    assert_eq!(get_json(&other, "/v1/preferences/boat").1["value"], "Thetis");
    model.assert_no_request();
    drop((held, other));
    let checked = cli.run(&["check"]);
    assert_eq!(checked.code, Some(0), "{checked}");
}

#[test]
fn tools_run_once_if_another_instance_completes_the_turn() {
    assert_tools_run_once(&Cli::new());
}

#[test]
fn tools_run_once_if_another_instance_completes_the_turn_on_postgres() {
    super::postgres::with_postgres(assert_tools_run_once);
}

// S4.33
#[test]
fn tools_run_once_if_another_instance_completes_the_turn_on_a_redis_cluster() {
    super::redis::with_cluster(assert_tools_run_once);
}

#[test]
fn turns_resume_after_a_kill_during_a_tool_call() {
    let (cli, feeds) = (Cli::new(), HeldEndpoint::new());
    let serve = || {
        let mut command = feeds.serve(&cli);
        command.arg("--model").arg("offline").env_remove("OPENAI_BASE_URL").env_remove("OPENAI_MODEL");
        command
    };
    let mut server = Server::start_with(serve());
    let thread = thread(&server);
    let turn = ask(&server, "subway", &thread, "Next uptown 6 at Astor");
    // The model has called the tool, and the tool waits for the feed of live times.
    let held = feeds.next();
    kill(&mut server);
    let server = Server::start_with(serve());
    feeds.next().refuse();
    drop(held);
    let is_over = |turn: &Value| turn["status"] != "running";
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    let deadline = std::time::Instant::now() + super::TIMEOUT;
    feeds.0.set_nonblocking(true).unwrap();
    while !is_over(&get_json(&server, &path).1) {
        // A feed may be requested more than once.
        if let Ok((mut stream, _)) = feeds.0.accept() {
            drop(stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"));
        }
        assert!(std::time::Instant::now() < deadline);
    }
    let (_, turn) = get_json(&server, &path);
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(turn["tool_calls"].as_array().unwrap().len(), 1, "{turn}");
}

#[test]
fn automatic_resumption_can_be_disabled() {
    let (cli, model) = (Cli::new(), HeldEndpoint::new());
    let mut server = Server::start_with(model.serve(&cli));
    let (thread, other) = (thread(&server), thread(&server));
    let turn = ask(&server, "general", &thread, "Are you there?");
    let held = model.next();
    kill(&mut server);
    let mut command = model.serve(&cli);
    command.env("THREADKEEP_RESUME_TURNS", "false");
    let server = Server::start_with(command);
    ask(&server, "general", &other, "And you?");
    let question = model.next();
    assert!(question.text.contains("And you?"), "{}", question.text);
    question.answer("So am I.");
    model.assert_no_request();
    // A request for the turn resumes it.
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    assert!(get_json(&server, &path).0.contains("202"));
    model.next().answer("Here I am.");
    until(&server, &format!("GET {path}"), |turn| turn["reply"] == "Here I am.");
    drop(held);
}

#[test]
fn killed_servers_release_their_conversations() {
    let (cli, model) = (Cli::new(), HeldEndpoint::new());
    let mut server = Server::start_with(model.serve(&cli));
    let (_, conversation) = server.ask("POST /v1/conversations", "{}").unwrap();
    let conversation: Value = serde_json::from_str(&conversation).unwrap();
    let body = |text: &str| json!({ "input": text, "conversation": conversation["id"] });
    let cut = begin(&server, "/v1/responses", &body("Are you there?"));
    let held = model.next();
    let (status, locked) = server.ask("POST /v1/responses", &body("And now?").to_string()).unwrap();
    assert!(status.contains("400") && locked.contains("conversation_locked"), "{status} {locked}");
    kill(&mut server);
    let server = Server::start_with(model.serve(&cli));
    let mut answered = begin(&server, "/v1/responses", &body("And now?"));
    model.next().answer("Here I am.");
    let mut answer = [0; 15];
    answered.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 200 OK");
    drop((cut, held));
}
