//! At its most verbose level, the server's log contains the expected lines and no secrets, over a complete run.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;

use super::provider::Provider;
use super::serve::Server;
use super::{Cli, TIMEOUT};

/// Every secret of this test contains these words.
const HIDDEN: &str = "hidden";
/// An unsigned token with a name that must not be logged. The name is only encoded, not encrypted.
const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImhpZGRlbiJ9.eyJpc3MiOiJodHRwczovL2hpZGRlbi1pc3N1ZXIiLCJhdWQiOiJtZSIsImV4cCI6NDEwMjQ0NDgwMCwic3ViIjoiaGlkZGVuIn0.aGlkZGVu";

fn server(cli: &Cli, provider: &Provider, arguments: &[&str]) -> Server {
    let mut command = provider.command(cli);
    command.args(arguments);
    command.env("RUST_LOG", "trace").env("SUBWAY_API_KEY", "hidden-shared-key");
    command.env("THREADKEEP_EMBEDDER", "openai:embedding-model-name");
    let nowhere = "http://hidden-user:hidden-password@127.0.0.1:9";
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{nowhere}/hidden-path"));
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=hidden-collectors-key").env("ALL_PROXY", nowhere);
    command.args(["--token-issuer", "https://hidden-issuer", "--token-audience", "me"]);
    if arguments.is_empty() {
        command.env("THREADKEEP_TOKEN_SECRET", "hidden-secret-of-more-than-32-bytes");
    } else {
        command.args(["--token-jwks", &format!("{nowhere}/keys?key=hidden-query")]);
    }
    Server::start_with(command)
}

/// Calls all parts of the API with texts that must not be logged. Returns the ids of the requests.
fn run(server: &Server, key: &str) -> Vec<String> {
    let good = format!("x-api-key: {key}\r\n");
    let mut ids = Vec::new();
    let mut ask = |request: &str, headers: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = server.ask_with(request, headers, &body);
        let request_id = answer.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        ids.push(request_id.unwrap_or_else(|| panic!("{request}: {answer}")).to_owned());
        answer
    };
    let opened = ask("POST /v1/threads", &good, &json!({ "title": "hidden-title", "key": "web:hidden-key" }));
    assert!(opened.starts_with("HTTP/1.1 201"), "{opened}");
    let id = opened.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let message = json!({ "messages": [{ "role": "user", "text": "hidden-words", "author": "hidden-author" }] });
    let asked = |verb: &str| json!([{ "role": "user", "content": format!("{verb} hidden-words") }]);
    for (request, body) in [
        (format!("POST /v1/threads/{id}/messages"), message.clone()),
        (format!("GET /v1/threads/{id}/messages?role=hidden-role"), Value::Null),
        (format!("POST /v1/threads/{id}/context"), json!({ "question": "hidden-words" })),
        ("POST /v1/search".to_owned(), json!({ "query": "hidden-words" })),
        ("POST /v1/recall".to_owned(), json!({ "question": "hidden-words" })),
        ("GET /v1/threads?key=web:hidden-key".to_owned(), Value::Null),
        ("PUT /v1/preferences/hidden-preference".to_owned(), json!({ "value": "hidden-value" })),
        ("PUT /v1/records/notes/hidden-record".to_owned(), json!({ "value": "hidden-value" })),
        ("GET /hidden-path/hidden-words?hidden-query=1".to_owned(), Value::Null),
        ("POST /v1/threads".to_owned(), json!({ "hidden-member": "hidden-words" })),
        ("POST /v1/import".to_owned(), json!({ "hidden-line": "hidden-words" })),
        ("POST /v1/erase".to_owned(), json!({ "user": "hidden-user" })),
        ("POST /v1/conversations".to_owned(), json!({ "metadata": { "hidden-name": "hidden-value" } })),
        ("POST /v1/embeddings".to_owned(), json!({ "model": "embedding-model-name", "input": "hidden-words" })),
        (format!("GET /v1/threads/{id}/events?after=hidden-change"), Value::Null),
        ("POST /chat".to_owned(), json!({ "message": "hidden-words", "user_id": "hidden-user" })),
        ("GET /conversations/hidden-thread".to_owned(), Value::Null),
    ] {
        ask(&request, &good, &body);
    }
    for verb in ["say", "call", "fail", "refuse", "nonsense"] {
        for stream in [false, true] {
            let text = format!("{verb} hidden-words");
            ask("POST /v1/chat/completions", &good, &json!({ "messages": asked(verb), "stream": stream }));
            ask("POST /v1/responses", &good, &json!({ "input": text, "stream": stream }));
            ask(
                "POST /v1/agents/general/turns",
                &good,
                &json!({ "text": text, "stream": stream, "thread": "web:hidden" }),
            );
        }
    }
    ask("POST /chat?key=hidden-wrong-key", "", &json!({ "message": "hidden-words" }));
    ask("POST /chat?key=hidden-shared-key", "", &json!({ "message": "hidden-words", "user_id": "hidden-user" }));
    for headers in
        ["authorization: Bearer tk_hidden-wrong-key\r\n".to_owned(), format!("authorization: Bearer {TOKEN}\r\n")]
    {
        ask(
            "GET /v1/threads",
            &format!("{headers}threadkeep-user: hidden-user\r\ncookie: hidden=hidden\r\n"),
            &Value::Null,
        );
    }
    socket(server, key, &id);
    send_invalid_http(server);
    ids
}

/// Subscribes by WebSocket and sends invalid messages.
fn socket(server: &Server, key: &str, id: &str) {
    use tungstenite::client::IntoClientRequest;
    let mut request = format!("ws://{}/v1/live", server.address).into_client_request().unwrap();
    request.headers_mut().insert("x-api-key", key.parse().unwrap());
    let (mut socket, _) = tungstenite::client(request, TcpStream::connect(&server.address).unwrap()).unwrap();
    for message in [json!({ "type": "subscribe", "thread": id, "after": 0 }), json!({ "hidden": "hidden-words" })] {
        socket.send(tungstenite::Message::text(message.to_string())).unwrap();
        socket.read().unwrap();
    }
    drop(socket.close(None));
}

/// Sends bytes that are not HTTP.
fn send_invalid_http(server: &Server) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"hidden-words\0\r\nhidden: hidden\r\n\r\n").unwrap();
    drop(std::io::Read::read_to_end(&mut stream, &mut Vec::new()));
}

#[test]
fn logs_contain_no_secrets_and_no_messages() {
    for form in [&["--log-json"][..], &[]] {
        let (cli, provider) = (Cli::new(), Provider::start());
        let roles = ["--role", "admin"];
        let key = cli
            .out(&[&["keys", "create", "phone", "--for-user", "hidden-user"], &roles[..]].concat())
            .trim()
            .to_owned();
        let mut server = server(&cli, &provider, form);
        let ids = run(&server, &key);
        server.signal("-TERM");
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        let wants = |log: &str| ids.iter().all(|id| log.contains(id.as_str()));
        let began = std::time::Instant::now();
        while !wants(&server.log.lock().unwrap().join("\n")) {
            assert!(began.elapsed() < TIMEOUT, "{:?}", server.log.lock().unwrap());
            std::thread::yield_now();
        }
        let log = server.log.lock().unwrap().clone();
        if !form.is_empty() {
            for line in &log {
                let line: Value = serde_json::from_str(line).unwrap();
                assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
            }
        }
        let text = log.join("\n");
        let mut expected_texts = vec!["/v1/threads/{id}/messages", "TRACE", "DEBUG"];
        expected_texts.push("Processing natural language input for agent general");
        if !form.is_empty() {
            expected_texts.push("cannot read the keys of a token issuer");
        }
        for expected in expected_texts {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // Lines that are logged during a request contain the id that the client received.
        let erased = log.iter().find(|line| line.contains("a user was erased")).unwrap();
        assert!(ids.iter().any(|id| erased.contains(id.as_str())), "{erased}");
        for hidden in [HIDDEN, key.rsplit('_').next().unwrap(), TOKEN] {
            let line = log.iter().find(|line| line.contains(hidden));
            assert_eq!(line, None, "{hidden}");
        }
    }
}
