//! The server shuts down under load: every client is informed, and no acknowledged data is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::frame::coding::CloseCode;

use super::provider::Provider;
use super::serve::{Server, TOKEN, authorization, thread};
use super::{Cli, TIMEOUT};

/// Sends a request. Returns a thread that reads the answer to its end.
fn begin(server: &Server, path: &str, body: &Value) -> JoinHandle<String> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let (address, body) = (&server.address, body.to_string());
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n{}", authorization());
    let head = format!("{head}content-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    std::thread::spawn(move || {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    })
}

/// Sends half of a request body. Returns a thread that reads the answer.
fn upload_half(server: &Server, thread: &str) -> JoinHandle<String> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!("POST /v1/threads/{thread}/messages HTTP/1.1\r\nhost: {}\r\n", server.address);
    let head = head + &authorization();
    stream.write_all(format!("{head}expect: 100-continue\r\ncontent-length: 1000\r\n\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 100"), "{line}");
    stream.write_all(br#"{"messages":["#).unwrap();
    std::thread::spawn(move || {
        let mut answer = String::new();
        reader.read_to_string(&mut answer).unwrap();
        answer
    })
}

/// Subscribes to a thread by WebSocket. Returns the last message, and the code and reason with which the connection was
/// closed.
fn listen(server: &Server, thread: &str) -> JoinHandle<(Value, CloseCode, String)> {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut request = format!("ws://{}/v1/live", server.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let (mut socket, _) = tungstenite::client(request, stream).unwrap();
    let subscribe = json!({ "type": "subscribe", "thread": thread, "after": 0 }).to_string();
    socket.send(tungstenite::Message::text(subscribe)).unwrap();
    let first: Value = serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
    assert_eq!(first["type"], "subscribed");
    std::thread::spawn(move || {
        let mut last = Value::Null;
        loop {
            match socket.read().unwrap() {
                tungstenite::Message::Text(text) => last = serde_json::from_str(&text).unwrap(),
                tungstenite::Message::Close(frame) => {
                    let frame = frame.unwrap();
                    return (last, frame.code, frame.reason.to_string());
                }
                _ => {}
            }
        }
    })
}

/// Asks questions in a separate conversation until the server is gone. Returns the thread and the acknowledged questions.
fn ask_until_gone(server: &Server, number: usize, sender: &Sender<()>) -> (String, Vec<String>) {
    let (mut thread, mut acknowledged) = (String::new(), Vec::new());
    for count in 0.. {
        let text = format!("asked {number}/{count}");
        let body = json!({ "text": text, "thread": format!("web:{number}") }).to_string();
        let Some((status, body)) = server.ask("POST /v1/agents/general/turns", &body) else { break };
        let turn: Value = serde_json::from_str(&body).unwrap();
        if !status.contains("200") {
            assert_eq!((status.contains("503"), &turn["error"]["code"]), (true, &json!("shutdown")), "{body}");
            break;
        }
        assert_eq!(turn["status"], "completed", "{body}");
        thread = turn["thread"].as_str().unwrap().to_owned();
        acknowledged.push(text);
        sender.send(()).unwrap();
    }
    (thread, acknowledged)
}

fn server(cli: &Cli, provider: &Provider, grace_seconds: &str) -> Server {
    let mut command = provider.command(cli);
    command.env("THREADKEEP_GRACE_SECONDS", grace_seconds);
    Server::start_with(command)
}

#[test]
fn shutdown_under_load_loses_nothing_and_informs_every_client() {
    const ASKING: usize = 3;
    let (cli, provider) = (Cli::new(), Provider::start());
    let mut server = server(&cli, &provider, "4");
    let watched = thread(&server);
    let mut events: Vec<_> = (0..3).map(|_| server.listen(&watched)).collect();
    let sockets: Vec<_> = (0..3).map(|_| listen(&server, &watched)).collect();
    let asked = json!([{ "role": "user", "content": "wait" }]);
    let waiting = [
        (begin(&server, "/v1/chat/completions", &json!({ "messages": asked, "stream": true })), r#""code":"shutdown""#),
        (
            begin(
                &server,
                "/v1/chat/completions",
                &json!({ "model": "threadkeep/general", "messages": asked, "stream": true }),
            ),
            r#""code":"shutdown""#,
        ),
        (begin(&server, "/v1/responses", &json!({ "input": "wait", "stream": true })), "event: error\n"),
        (
            begin(&server, "/v1/responses", &json!({ "model": "threadkeep/general", "input": "wait", "stream": true })),
            "event: error\n",
        ),
        (begin(&server, "/v1/agents/general/turns", &json!({ "text": "wait", "stream": true })), "event: end\n"),
        (begin(&server, "/v1/agents/general/turns", &json!({ "text": "wait" })), "HTTP/1.1 503"),
        (begin(&server, "/v1/chat/completions", &json!({ "messages": asked })), "HTTP/1.1 503"),
    ];
    provider.wait_for(waiting.len());
    let upload = upload_half(&server, &watched);
    let mut silent = TcpStream::connect(&server.address).unwrap();
    silent.write_all(b"GET /health HTTP/1.1\r\nhost:").unwrap();
    let (sender, receiver) = channel();
    let acknowledged: Vec<_> = std::thread::scope(|scope| {
        let server = &server;
        let asking: Vec<_> = (0..ASKING)
            .map(|number| (number, sender.clone()))
            .map(|(number, sender)| scope.spawn(move || ask_until_gone(server, number, &sender)))
            .collect();
        let appending = scope.spawn(move || {
            let body = r#"{"messages":[{"role":"user","text":"said"}]}"#;
            let append = || server.ask(&format!("POST /v1/threads/{watched}/messages"), body);
            std::iter::from_fn(append).take_while(|(status, _)| status.contains("201")).count()
        });
        for _ in 0..ASKING * 5 {
            receiver.recv_timeout(TIMEOUT).unwrap();
        }
        server.signal("-TERM");
        assert!(appending.join().unwrap() > 0);
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    for lines in &mut events {
        assert!(lines.any(|line| line.contains(r#""reason":"shutdown""#)));
    }
    for socket in sockets {
        let (last, code, reason) = socket.join().unwrap();
        assert_eq!((&last["type"], &last["reason"]), (&json!("end"), &json!("shutdown")));
        assert_eq!((code, reason.as_str()), (CloseCode::Away, "shutdown"), "1001");
    }
    for (answer, end) in waiting {
        let answer = answer.join().unwrap();
        assert!(answer.contains(end) && answer.contains("shutdown"), "{end}: {answer}");
    }
    let upload = upload.join().unwrap();
    assert!(upload.contains("HTTP/1.1 503") && upload.contains("shutdown"), "{upload}");
    let mut rest = Vec::new();
    assert!(
        silent.read_to_end(&mut rest).is_err() || rest.is_empty(),
        "a connection without a complete request is closed"
    );
    // Turns that waited for their model were interrupted, which the exit code reports. Their journals allow them to resume
    // later.
    assert_eq!(server.child.wait().unwrap().code(), Some(3));
    for (thread, acknowledged) in acknowledged {
        let shown = cli.json(&["show", &thread, "--all"]);
        let texts: Vec<&str> = shown["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|message| message["parts"][0]["text"].as_str())
            .collect();
        assert!(acknowledged.len() >= 2);
        for text in &acknowledged {
            assert!(texts.contains(&text.as_str()), "{text}: {texts:?}");
            assert!(texts.contains(&format!("Let me see. \"{text}\"").as_str()), "{text}: {texts:?}");
        }
    }
}

#[test]
fn second_signals_exit_immediately() {
    for signals in [["-TERM", "-TERM"], ["-INT", "-TERM"], ["-TERM", "-INT"], ["-INT", "-INT"]] {
        let (cli, provider) = (Cli::new(), Provider::start());
        let mut server = server(&cli, &provider, "600");
        let waiting = begin(&server, "/v1/agents/general/turns", &json!({ "text": "wait" }));
        provider.wait_for(1);
        server.signal(signals[0]);
        // The server accepts no connections while it is shutting down.
        while TcpStream::connect(&server.address).is_ok() {
            std::thread::yield_now();
        }
        server.signal(signals[1]);
        assert_eq!(server.child.wait().unwrap().code(), Some(130), "{signals:?}");
        drop(waiting);
    }
}
