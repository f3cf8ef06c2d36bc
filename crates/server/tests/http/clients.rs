//! Tests with the official Python clients, directly and through a proxy that drops responses.
//!
//! `cargo xtask test` installs the clients into the folder `python` of the target folder.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, ServerOptions};

use crate::assistants::start_with_test_assistant;
use crate::proxy::Proxy;
use crate::server::{TIMEOUT, TOKEN, TestConfig, TestServer};
use crate::v1::{
    Echo, config_with_model, start_with_model, start_with_model_on_postgres, start_with_model_on_redis,
    start_with_model_on_redis_cluster,
};

/// Whether tests with Python are skipped because it is not available. The test summary reports that.
pub(crate) fn is_skipped() -> bool {
    std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == "python"))
}

/// Returns the path of a program in the folder that contains the installed clients.
pub(crate) fn program(name: &str) -> std::path::PathBuf {
    installed("python/bin", name)
}

/// Returns the path of a program in the folder that contains the installed packages of Node.js; `None` if tests with Node.js are
/// skipped because it is not available. The test summary reports that.
pub(crate) fn node_program(name: &str) -> Option<std::path::PathBuf> {
    let is_skipped =
        std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == "node"));
    (!is_skipped).then(|| installed("node/node_modules/.bin", name))
}

/// Returns the path of a program in a subfolder of the target folder.
fn installed(folder: &str, name: &str) -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(3).unwrap().join(folder).join(name);
    assert!(program.exists(), "`cargo xtask test` installs what tests need into {}", program.display());
    program
}

/// Runs part of the script for OpenAI's client against a base URL.
async fn run_openai_client(part: &str, base: &str, input: Value) -> Value {
    run_script(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/clients.py"), part, base, input).await
}

/// Runs parts of the script for the Agents SDK, each with an address of a server and an input. Returns their results.
async fn run_agents_sdk<const N: usize>(parts: [(&str, SocketAddr, Value); N]) -> [Value; N] {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/agents_sdk.py");
    let parts = parts.map(|(part, address, input)| json!([part, format!("http://{address}/v1"), input]));
    let results = run_python(&[script, &json!(parts.as_slice()).to_string()], TOKEN).await;
    serde_json::from_value::<Vec<Value>>(results).unwrap().try_into().unwrap()
}

/// Runs a script and parses its output.
async fn run_script(script: &str, part: &str, base: &str, input: Value) -> Value {
    run_script_with_key(script, part, base, input, TOKEN).await
}

async fn run_script_with_key(script: &str, part: &str, base: &str, input: Value, key: &str) -> Value {
    run_python(&[script, part, base, &input.to_string()], key).await
}

async fn run_python(arguments: &[&str], key: &str) -> Value {
    let mut command = tokio::process::Command::new(program("python"));
    command.args(arguments).kill_on_drop(true);
    // Proxies in the environment must not be used for the loopback interface.
    command.env("NO_PROXY", "*").env("OPENAI_API_KEY", key).env("OPENAI_AGENTS_DISABLE_TRACING", "1");
    let output = tokio::time::timeout(TIMEOUT * 3, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Starts a server on a file and, unless tests on them are skipped, servers on PostgreSQL, Redis and a Redis Cluster.
async fn start_servers() -> Vec<(TestServer, Arc<Echo>)> {
    let mut servers = vec![start_with_model().await];
    servers.extend(start_with_model_on_postgres().await);
    servers.extend(start_with_model_on_redis().await);
    servers.extend(start_with_model_on_redis_cluster().await);
    servers
}

fn numbered_items(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("item {number}")).collect()
}

#[tokio::test]
async fn client_pages_through_a_long_conversation_in_both_directions() {
    if is_skipped() {
        return;
    }
    for (server, _) in start_servers().await {
        let result = run_openai_client("items", &server.url("/v1"), json!({ "items": 263 })).await;
        let mut expected = numbered_items(263);
        assert_eq!(result["ascending"], json!(expected));
        expected.reverse();
        assert_eq!(result["descending"], json!(expected));
        assert_eq!(result["after_deletion"], json!(262));
        assert_eq!(result["errors"], json!([["NotFoundError", 404], ["BadRequestError", 400], ["NotFoundError", 404]]));
    }
}

#[tokio::test]
async fn client_calls_the_model_with_tools_and_streaming() {
    if is_skipped() {
        return;
    }
    for (server, _) in start_servers().await {
        let result = run_openai_client("model", &server.url("/v1"), json!({})).await;
        assert_eq!(
            result,
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

/// The client's exceptions name the parameter that the server rejects.
#[tokio::test]
async fn client_errors_name_the_rejected_parameter() {
    if is_skipped() {
        return;
    }
    let (config, model) = config_with_model();
    let options = ServerOptions { strict_models: true, ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    model.is_limited.store(true, Ordering::SeqCst);
    let result = run_openai_client("refusals", &server.url("/v1"), json!({})).await;
    assert_eq!(
        result,
        json!([
            ["BadRequestError", "tool_call_not_found", "input"],
            ["BadRequestError", "unsupported_option", "logprobs"],
            ["BadRequestError", "invalid_request", "n"],
            ["BadRequestError", "unsupported_option", "top_logprobs"],
            ["BadRequestError", "unsupported_option", "verbosity"],
            ["BadRequestError", "unsupported_option", "messages"],
            ["NotFoundError", "model_not_found", "model"],
        ])
    );
}

/// A client without Threadkeep-specific code has memory if it sends one header.
#[tokio::test]
async fn client_has_memory_with_one_header() {
    if is_skipped() {
        return;
    }
    let (server, _) = start_with_model().await;
    let result = run_openai_client("memory", &server.url("/v1"), json!({ "key": "memory:1" })).await;
    assert_eq!(
        result,
        json!({
            "chats": ["echo: one (1 messages)", "echo: two (3 messages)"],
            "response": "echo: three (5 messages)",
            "streamed": "echo: four (7 messages)",
            "models": ["echo", "echo"],
            "defaults": [0, null, []],
            "key": "memory:1",
        })
    );
}

/// Routes that OpenAI's API lacks are available through the client's generic requests.
#[tokio::test]
async fn client_can_call_routes_that_openai_lacks() {
    if is_skipped() {
        return;
    }
    let (config, _) = config_with_model();
    let server = TestServer::start_with(config).await;
    let key = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await.key.unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/clients.py");
    let result = run_script_with_key(script, "administration", &server.url("/v1"), json!({}), &key).await;
    assert_eq!(
        result,
        json!({
            "headers": ["60", true, true],
            "patched": { "env": "prod", "new": 2 },
            "external_ids": [true, 1, ["kerosene"]],
            "search": [1, []],
            "lists": [true, true],
            "deleted": [204, 404],
            "forbidden": ["PermissionDeniedError", 403],
        })
    );
}

/// OpenAI's client retries every POST whose connection failed, and sends the number of retries in a header.
#[tokio::test]
async fn lost_responses_neither_duplicate_nor_lose_data() {
    if is_skipped() {
        return;
    }
    for (server, model) in start_servers().await {
        let proxy = Proxy::start_in_front_of(server.address).await;
        let base = format!("http://{}/v1", proxy.address);
        let result = run_openai_client("lossy", &base, json!({ "items": 41, "turns": 5 })).await;
        assert!(proxy.dropped_responses() >= 10, "{} responses were dropped", proxy.dropped_responses());
        assert_eq!(result["items"], json!(numbered_items(41)));
        let turns: Vec<String> = (0..5)
            .flat_map(|turn| [format!("turn {turn}"), format!("echo: turn {turn} ({} messages)", 2 * turn + 1)])
            .collect();
        assert_eq!(result["turns"], json!(turns));
        assert_eq!(result["answers"], json!(turns.iter().skip(1).step_by(2).collect::<Vec<_>>()));
        assert_eq!(result["chat"], json!(turns));
        assert_eq!(model.requests.lock().unwrap().len(), 10, "no turn was executed twice");
        // Identical messages that are not retries are all stored.
        assert_eq!(result["yes"], json!(["yes", "yes", "yes", "yes"]));
    }
}

/// Clients can use an assistant as a model. Its turns are not repeated if responses are lost.
#[tokio::test]
async fn client_uses_an_assistant_as_a_model() {
    if is_skipped() {
        return;
    }
    let (server, model) = start_with_test_assistant().await;
    let proxy = Proxy::start_in_front_of(server.address).await;
    for address in [server.address, proxy.address] {
        let result = run_openai_client("assistants", &format!("http://{address}/v1"), json!({ "turns": 4 })).await;
        let answers: Vec<String> = (0..4).map(|turn| format!("You said: turn {turn}")).collect();
        let stored: Vec<String> =
            answers.iter().enumerate().flat_map(|(turn, answer)| [format!("turn {turn}"), answer.clone()]).collect();
        assert_eq!((&result["turns"], &result["stored"]), (&json!(answers), &json!(stored)));
        assert_eq!(result["streamed_chat"], "You said: hello");
        assert_eq!(result["responses"], json!(["You said: one", "You said: two", "You said: three"]));
        assert_eq!((&result["same_conversation"], &result["cancelled"]), (&json!(true), &json!("cancelled")));
        assert_eq!(result["model"], "threadkeep/keeper");
    }
    assert!(proxy.dropped_responses() > 2, "{} responses were dropped", proxy.dropped_responses());
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests.iter().filter(|text| text.starts_with("turn")).count(), 8, "no turn was executed twice");
}

#[tokio::test]
async fn client_reads_errors_structured_outputs_and_events() {
    if is_skipped() {
        return;
    }
    for (server, _) in start_servers().await {
        let error = |status: u16, code: &str, param: Value, message: &str| json!([status, { "message": message, "type": "invalid_request_error", "param": param, "code": code }]);
        let errors = run_openai_client("errors", &server.url("/v1"), json!({})).await;
        let unknown = format!("Conversation with id 'conv_{}' not found.", "0".repeat(48));
        let limit = "Invalid 'limit': integer above maximum value. Expected a value <= 100, but got 1000 instead.";
        let mutually_exclusive = "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or 'conversation'.";
        assert_eq!(errors[0], error(404, "not_found", json!(null), &unknown));
        assert_eq!(
            errors[1],
            error(404, "not_found", json!(null), "Item with id 'msg_unknown' not found in conversation.")
        );
        assert_eq!(errors[2], error(400, "integer_above_max_value", json!("limit"), limit));
        assert_eq!(errors[3], error(400, "mutually_exclusive_parameters", json!(null), mutually_exclusive));
        assert_eq!((&errors[4][0], &errors[4][1]["code"]), (&json!(400), &json!("invalid_json")));
        assert_eq!((&errors[5][0], &errors[5][1]["param"]), (&json!(400), &json!("input")));
        let result = run_openai_client("formats", &server.url("/v1"), json!({})).await;
        assert_eq!(result["parsed"], json!(["14 St", "14 St", "14 St"]));
        assert_eq!(
            result["events"],
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
        assert_eq!(result["raw"], json!(["req_", "echo: hello (1 messages)", "echo: hello (1 messages)"]));
        assert!(result["input_tokens"].as_u64().is_some_and(|count| count > 2));
        assert_eq!(result["after_compaction"], "echo: two (3 messages)");
        assert_eq!(result["after_reference"], "echo: two (2 messages)");
        assert_eq!(result["asynchronous"], json!((0..22).map(|number| number.to_string()).collect::<Vec<_>>()));
    }
}

#[tokio::test]
async fn client_uploads_lists_and_deletes_files() {
    if is_skipped() {
        return;
    }
    for (server, _) in start_servers().await {
        let result = run_openai_client("files", &server.url("/v1"), json!({})).await;
        assert_eq!(result["file"], json!(["file", "processed", "handbook.md", "assistants", 38]));
        assert_eq!(result["listed"], json!(["handbook.md", "0.txt", "1.txt", "2.txt"]));
        assert_eq!(result["purposes"], json!(["0.txt", "1.txt", "2.txt"]));
        assert_eq!((&result["same"], &result["content"]), (&json!(true), &json!([true, true])));
        assert_eq!(result["found"], json!([true, "handbook.md"]));
        assert_eq!(result["deleted"], json!([true, true, "file"]));
        let not_found = json!(["NotFoundError", 404]);
        assert_eq!(result["errors"], json!([not_found, not_found, "purpose", "unsupported_file"]));
    }
}

/// A session that the Agents SDK stores in a conversation has the same history as a session in the SDK's own SQLite store.
#[tokio::test]
async fn agents_sdk_stores_its_session_in_a_conversation() {
    if is_skipped() {
        return;
    }
    for (server, _) in start_servers().await {
        let proxy = Proxy::start_in_front_of(server.address).await;
        // The SDK sends more than 20 items in several requests, and does not retry them.
        let parts =
            [("sessions", server.address, json!({ "items": 45 })), ("sessions", proxy.address, json!({ "items": 15 }))];
        for result in run_agents_sdk(parts).await {
            let turn = ["message", "function_call", "function_call_output", "message"];
            assert_eq!(result["kinds"], json!([turn, turn].concat()));
            assert_eq!(
                result["answers"],
                json!(["echo: in 3 minutes (3 messages)", "echo: in 3 minutes (7 messages)"])
            );
            assert_eq!(result["as_sqlite"], json!([true, true, true]));
            assert_eq!(result["remaining"], json!(7));
            assert_eq!(result["cleared"], json!([]));
            assert_eq!(result["added"], true);
        }
        assert!(proxy.dropped_responses() > 0);
    }
}

#[tokio::test]
async fn agents_sdk_runs_in_all_modes() {
    if is_skipped() {
        return;
    }
    for (server, _) in start_servers().await {
        let proxy = Proxy::start_in_front_of(server.address).await;
        let parts = [
            ("runs", server.address, json!({})),
            ("runs", proxy.address, json!({})),
            ("compaction", server.address, json!({})),
            ("locked", server.address, json!({ "turns": 3 })),
        ];
        let [direct, lossy, compaction, locked] = run_agents_sdk(parts).await;
        for result in [direct, lossy] {
            let answer = |count: usize| format!("echo: in 3 minutes ({count} messages)");
            let turn = ["message", "function_call", "function_call_output", "message"];
            let turns = [turn, turn].concat();
            let kinds = ["tool_called", "tool_output", "message_output_created"];
            assert_eq!(result["streamed"], json!([answer(7), kinds, 8]));
            assert_eq!(result["handed_off"], json!(["other", "echo: {\"assistant\": \"other\"} (3 messages)"]));
            assert_eq!(result["in_conversation"], json!([answer(7), turns]));
            assert_eq!(result["chained"], json!([answer(7), answer(3)]));
            assert_eq!(result["structured"], "14 St");
        }
        assert!(proxy.dropped_responses() > 3, "{} responses were dropped", proxy.dropped_responses());
        assert_eq!(compaction["answers"][3], "echo: 3 (5 messages)", "{compaction}");
        assert!(compaction["kinds"].as_array().unwrap().contains(&json!("compaction")), "{compaction}");
        let mut turns: Vec<String> = Vec::new();
        for (index, pair) in locked.as_array().unwrap().chunks(2).enumerate() {
            let text = pair[0].as_str().unwrap();
            assert_eq!(pair[1], format!("echo: {text} ({} messages)", 2 * index + 1));
            turns.push(text.to_owned());
        }
        turns.sort();
        assert_eq!(turns, ["turn 0", "turn 1", "turn 2"]);
    }
}
