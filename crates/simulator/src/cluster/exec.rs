//! Programs in containers, over a WebSocket on which each message begins with its channel number.

use std::collections::BTreeMap;

use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::response::Response;
use serde_json::{Value, json};

/// The protocols that the server offers.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const STDOUT: u8 = 1;
const STATUS: u8 = 3;

/// The outputs and exit codes of programs, by [`key`].
pub(crate) type Programs = BTreeMap<String, (String, i32)>;

/// Returns the key of a program in a pod.
pub(crate) fn key(namespace: &str, pod: &str, line: &str) -> String {
    format!("{namespace}/{pod} {line}")
}

/// Runs the program that a request names. The request must have been checked.
pub(crate) fn run(upgrade: WebSocketUpgrade, programs: &Programs, path: &str, query: &str) -> Response {
    let parts: Vec<&str> = path.split('/').collect();
    let (namespace, pod) = match parts[..] {
        [.., "namespaces", namespace, "pods", pod, "exec"] => (namespace.to_owned(), pod.to_owned()),
        _ => Default::default(),
    };
    let words: Vec<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "command")
        .map(|(_, value)| value.into_owned())
        .collect();
    let program = words.first().map_or("", String::as_str);
    let (output, status) = match (programs.get(&key(&namespace, &pod, &words.join(" "))), program) {
        (Some((output, code)), _) => (output.clone(), ended(*code)),
        (None, "hostname") => (format!("{pod}\n"), ended(0)),
        (None, "echo") => (format!("{}\n", words[1..].join(" ")), ended(0)),
        (None, program) => {
            let message = format!(
                "error executing command in container: exec: \"{program}\": executable file not found in $PATH"
            );
            (
                String::new(),
                json!({ "kind": "Status", "status": "Failure", "reason": "InternalError", "message": message, "code": 500 }),
            )
        }
    };
    upgrade.protocols(PROTOCOLS).on_upgrade(move |socket| write(socket, output, status))
}

fn ended(code: i32) -> Value {
    if code == 0 {
        return json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" });
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
    })
}

async fn write(mut socket: WebSocket, output: String, status: Value) {
    // The client may be gone.
    for (channel, text) in [(STDOUT, output), (STATUS, status.to_string())] {
        drop(socket.send(Message::Binary([&[channel], text.as_bytes()].concat().into())).await);
    }
    drop(socket.send(Message::Close(Some(CloseFrame { code: close_code::NORMAL, reason: "".into() }))).await);
}
