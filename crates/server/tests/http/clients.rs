//! The official Python clients against the server, straight and through a proxy that loses replies.
//!
//! `cargo xtask test` installs the clients into the folder `python` of the target folder.

use serde_json::{Value, json};

use crate::assistants::with_keeper;
use crate::proxy::Proxy;
use crate::server::PATIENCE;
use crate::v1::with_model;

/// Whether Python cannot be had here, which the summary of the tests says.
fn is_left_out() -> bool {
    std::env::var("THREADKEEP_LEFT_OUT").is_ok_and(|names| names.split(',').any(|name| name == "python"))
}

/// Runs a part of the script against an address, and reads what it prints.
async fn python(part: &str, base: &str, input: Value) -> Value {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    let python = target.join("python/bin/python");
    assert!(python.exists(), "`cargo xtask test` installs the official clients into {}", python.display());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/clients.py");
    let mut command = tokio::process::Command::new(python);
    command.args([script, part, base, &input.to_string()]).kill_on_drop(true);
    // A proxy of this machine is not meant for this machine.
    command.env("NO_PROXY", "*").env("OPENAI_AGENTS_DISABLE_TRACING", "1");
    let output = tokio::time::timeout(PATIENCE * 3, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("item {number}")).collect()
}

#[tokio::test]
async fn the_client_pages_through_a_long_conversation_both_ways() {
    if is_left_out() {
        return;
    }
    let (server, _) = with_model().await;
    let told = python("items", &server.url("/v1"), json!({ "items": 263 })).await;
    let mut expected = numbered(263);
    assert_eq!(told["ascending"], json!(expected));
    expected.reverse();
    assert_eq!(told["descending"], json!(expected));
    assert_eq!(told["after_deletion"], json!(262));
    assert_eq!(told["errors"], json!([["NotFoundError", 404], ["BadRequestError", 400], ["NotFoundError", 404]]));
}

#[tokio::test]
async fn the_client_asks_the_model_with_tools_and_piece_by_piece() {
    if is_left_out() {
        return;
    }
    let (server, _) = with_model().await;
    let told = python("model", &server.url("/v1"), json!({})).await;
    assert_eq!(
        told,
        json!({
            "models": ["echo", "lengths"],
            "embedding": [5.0, 0.5],
            "response": "echo: hello (1 messages)",
            "streamed_response": "echo: hello (1 messages)",
            "response_call": ["look", "{\"at\":\"14 St\"}"],
            "after_call": "echo: in 3 minutes (3 messages)",
            "chat": "echo: hello (1 messages)",
            "streamed_chat": "echo: hello (1 messages)",
            "chat_call": ["look", "{\"at\":\"14 St\"}"],
            "streamed_call": ["look", "{\"at\":\"14 St\"}"],
            "total_tokens": 10,
        })
    );
}

/// The client of OpenAI repeats every POST whose connection broke, with the number of the try in a header.
#[tokio::test]
async fn replies_that_are_lost_double_nothing_and_lose_nothing() {
    if is_left_out() {
        return;
    }
    let (server, model) = with_model().await;
    let proxy = Proxy::before(server.address).await;
    let base = format!("http://{}/v1", proxy.address);
    let told = python("lossy", &base, json!({ "items": 41, "turns": 5 })).await;
    assert!(proxy.cut() >= 10, "{} replies were lost", proxy.cut());
    assert_eq!(told["items"], json!(numbered(41)));
    let turns: Vec<String> = (0..5)
        .flat_map(|turn| [format!("turn {turn}"), format!("echo: turn {turn} ({} messages)", 2 * turn + 1)])
        .collect();
    assert_eq!(told["turns"], json!(turns));
    assert_eq!(told["answers"], json!(turns.iter().skip(1).step_by(2).collect::<Vec<_>>()));
    assert_eq!(told["chat"], json!(turns));
    assert_eq!(model.asked.lock().unwrap().len(), 10, "no turn was asked twice");
    // A second honest "yes" is kept.
    assert_eq!(told["yes"], json!(["yes", "yes", "yes", "yes"]));
}

/// An assistant is a model to the client, and replies that are lost double no turn of it.
#[tokio::test]
async fn the_client_talks_with_an_assistant() {
    if is_left_out() {
        return;
    }
    let (server, model) = with_keeper().await;
    let proxy = Proxy::before(server.address).await;
    for address in [server.address, proxy.address] {
        let told = python("assistants", &format!("http://{address}/v1"), json!({ "turns": 4 })).await;
        let answers: Vec<String> = (0..4).map(|turn| format!("You said: turn {turn}")).collect();
        let kept: Vec<String> =
            answers.iter().enumerate().flat_map(|(turn, answer)| [format!("turn {turn}"), answer.clone()]).collect();
        assert_eq!((&told["turns"], &told["kept"]), (&json!(answers), &json!(kept)));
        assert_eq!(told["streamed_chat"], "You said: hello");
        assert_eq!(told["responses"], json!(["You said: one", "You said: two", "You said: three"]));
        assert_eq!((&told["same_conversation"], &told["cancelled"]), (&json!(true), &json!("cancelled")));
        assert_eq!(told["model"], "threadkeep/keeper");
    }
    assert!(proxy.cut() > 2, "{} replies were lost", proxy.cut());
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|asked| asked.starts_with("turn")).count(), 8, "no turn was asked twice");
}

/// The runner of the Agents SDK keeps its session in a conversation.
#[tokio::test]
async fn the_agents_sdk_keeps_its_session_here() {
    if is_left_out() {
        return;
    }
    let (server, _) = with_model().await;
    for is_lossy in [false, true] {
        let proxy = Proxy::before(server.address).await;
        let address = if is_lossy { proxy.address } else { server.address };
        let told = python("agents", &format!("http://{address}/v1"), json!({})).await;
        assert_eq!(
            told["kinds"],
            json!([
                "message",
                "function_call",
                "function_call_output",
                "message",
                "message",
                "function_call",
                "function_call_output",
                "message",
            ])
        );
        assert_eq!(told["answers"], json!(["echo: in 3 minutes (3 messages)", "echo: in 3 minutes (7 messages)"]));
        assert_eq!(told["latest"], json!(2));
        assert_eq!(told["after_pop"], json!(7));
        assert_eq!(is_lossy, proxy.cut() > 0);
    }
}
