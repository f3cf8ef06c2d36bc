//! The official Python clients against the server, straight and through a proxy that loses replies.
//!
//! `cargo xtask test` installs the clients into the folder `python` of the target folder.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::assistants::with_keeper;
use crate::proxy::Proxy;
use crate::server::{PATIENCE, TOKEN, TestServer};
use crate::v1::{Echo, with_model, with_model_over_postgres};

/// Whether Python cannot be had here, which the summary of the tests says.
pub(crate) fn is_left_out() -> bool {
    std::env::var("THREADKEEP_LEFT_OUT").is_ok_and(|names| names.split(',').any(|name| name == "python"))
}

/// A program of the folder that the clients are installed in.
pub(crate) fn program(name: &str) -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(3).unwrap().join("python/bin").join(name);
    assert!(program.exists(), "`cargo xtask test` installs what tests need into {}", program.display());
    program
}

/// Has the client of OpenAI do a part of its script against an address.
async fn python(part: &str, base: &str, input: Value) -> Value {
    run(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/clients.py"), part, base, input).await
}

/// Has the Agents SDK do a part of its script.
async fn agents_sdk(part: &str, base: &str, input: Value) -> Value {
    run(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/agents_sdk.py"), part, base, input).await
}

/// Runs a script, and reads what it prints.
async fn run(script: &str, part: &str, base: &str, input: Value) -> Value {
    let mut command = tokio::process::Command::new(program("python"));
    command.args([script, part, base, &input.to_string()]).kill_on_drop(true);
    // A proxy of this machine is not meant for this machine.
    command.env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN).env("OPENAI_AGENTS_DISABLE_TRACING", "1");
    let output = tokio::time::timeout(PATIENCE * 3, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server over a file, and one over PostgreSQL.
async fn servers() -> Vec<(TestServer, Arc<Echo>)> {
    let mut servers = vec![with_model().await];
    servers.extend(with_model_over_postgres().await);
    servers
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("item {number}")).collect()
}

#[tokio::test]
async fn the_client_pages_through_a_long_conversation_both_ways() {
    if is_left_out() {
        return;
    }
    for (server, _) in servers().await {
        let told = python("items", &server.url("/v1"), json!({ "items": 263 })).await;
        let mut expected = numbered(263);
        assert_eq!(told["ascending"], json!(expected));
        expected.reverse();
        assert_eq!(told["descending"], json!(expected));
        assert_eq!(told["after_deletion"], json!(262));
        assert_eq!(told["errors"], json!([["NotFoundError", 404], ["BadRequestError", 400], ["NotFoundError", 404]]));
    }
}

#[tokio::test]
async fn the_client_asks_the_model_with_tools_and_piece_by_piece() {
    if is_left_out() {
        return;
    }
    for (server, _) in servers().await {
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
}

/// The client of OpenAI repeats every POST whose connection broke, with the number of the try in a header.
#[tokio::test]
async fn replies_that_are_lost_double_nothing_and_lose_nothing() {
    if is_left_out() {
        return;
    }
    for (server, model) in servers().await {
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

#[tokio::test]
async fn the_client_reads_errors_forms_and_events() {
    if is_left_out() {
        return;
    }
    for (server, _) in servers().await {
        let error = |status: u16, code: &str, param: Value, message: &str| json!([status, { "message": message, "type": "invalid_request_error", "param": param, "code": code }]);
        let errors = python("errors", &server.url("/v1"), json!({})).await;
        let nobody = format!("Conversation with id 'conv_{}' not found.", "0".repeat(48));
        let limit = "Invalid 'limit': integer above maximum value. Expected a value <= 100, but got 1000 instead.";
        let both = "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or 'conversation'.";
        assert_eq!(errors[0], error(404, "not_found", json!(null), &nobody));
        assert_eq!(
            errors[1],
            error(404, "not_found", json!(null), "Item with id 'msg_nobody' not found in conversation.")
        );
        assert_eq!(errors[2], error(400, "integer_above_max_value", json!("limit"), limit));
        assert_eq!(errors[3], error(400, "mutually_exclusive_parameters", json!(null), both));
        assert_eq!((&errors[4][0], &errors[4][1]["code"]), (&json!(400), &json!("invalid_json")));
        assert_eq!((&errors[5][0], &errors[5][1]["param"]), (&json!(400), &json!("input")));
        let told = python("forms", &server.url("/v1"), json!({})).await;
        assert_eq!(told["parsed"], json!(["14 St", "14 St", "14 St"]));
        assert_eq!(
            told["events"],
            json!([
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.completed",
            ])
        );
        assert_eq!(told["raw"], json!(["req_", "echo: hello (1 messages)", "echo: hello (1 messages)"]));
        assert!(told["counted"].as_u64().is_some_and(|count| count > 2));
        assert_eq!(told["after_compaction"], "echo: two (3 messages)");
        assert_eq!(told["after_reference"], "echo: two (2 messages)");
        assert_eq!(told["asynchronous"], json!((0..22).map(|number| number.to_string()).collect::<Vec<_>>()));
    }
}

/// The runner of the Agents SDK keeps its session in a conversation, and its history there is the one that it keeps itself.
#[tokio::test]
async fn the_agents_sdk_keeps_its_session_here() {
    if is_left_out() {
        return;
    }
    for (server, _) in servers().await {
        for is_lossy in [false, true] {
            let proxy = Proxy::before(server.address).await;
            let address = if is_lossy { proxy.address } else { server.address };
            // More than 20 items are several requests, none of which it repeats.
            let items = if is_lossy { 15 } else { 45 };
            let told = agents_sdk("sessions", &format!("http://{address}/v1"), json!({ "items": items })).await;
            let turn = ["message", "function_call", "function_call_output", "message"];
            assert_eq!(told["kinds"], json!([turn, turn].concat()));
            assert_eq!(told["answers"], json!(["echo: in 3 minutes (3 messages)", "echo: in 3 minutes (7 messages)"]));
            assert_eq!(told["as_sqlite"], json!([true, true, true]));
            assert_eq!(told["left"], json!(7));
            assert_eq!(told["cleared"], json!([]));
            assert_eq!(told["added"], true);
            assert_eq!(is_lossy, proxy.cut() > 0);
        }
    }
}

#[tokio::test]
async fn the_agents_sdk_runs_in_all_its_ways() {
    if is_left_out() {
        return;
    }
    for (server, _) in servers().await {
        let proxy = Proxy::before(server.address).await;
        for address in [server.address, proxy.address] {
            let told = agents_sdk("runs", &format!("http://{address}/v1"), json!({})).await;
            let answer = |count: usize| format!("echo: in 3 minutes ({count} messages)");
            let turn = ["message", "function_call", "function_call_output", "message"];
            let turns = [turn, turn].concat();
            let kinds = ["tool_called", "tool_output", "message_output_created"];
            assert_eq!(told["streamed"], json!([answer(7), kinds, 8]));
            assert_eq!(told["handed"], json!(["other", "echo: {\"assistant\": \"other\"} (3 messages)"]));
            assert_eq!(told["in_conversation"], json!([answer(7), turns]));
            assert_eq!(told["chained"], json!([answer(7), answer(3)]));
            assert_eq!(told["formed"], "14 St");
        }
        assert!(proxy.cut() > 3, "{} replies were lost", proxy.cut());
        let told = agents_sdk("compaction", &server.url("/v1"), json!({})).await;
        assert_eq!(told["answers"][3], "echo: 3 (5 messages)", "{told}");
        assert!(told["kinds"].as_array().unwrap().contains(&json!("compaction")), "{told}");
        let said = agents_sdk("locked", &server.url("/v1"), json!({ "turns": 3 })).await;
        let mut asked: Vec<String> = Vec::new();
        for (place, pair) in said.as_array().unwrap().chunks(2).enumerate() {
            let text = pair[0].as_str().unwrap();
            assert_eq!(pair[1], format!("echo: {text} ({} messages)", 2 * place + 1));
            asked.push(text.to_owned());
        }
        asked.sort();
        assert_eq!(asked, ["turn 0", "turn 1", "turn 2"]);
    }
}
