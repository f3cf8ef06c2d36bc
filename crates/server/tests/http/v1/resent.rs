//! Conversations whose clients send earlier items again, and results without calls.

use serde_json::{Value, json};
use threadkeep::{AppendOptions, Draft, Retention, Scope};

use super::model::start_with_model;
use crate::clients::node_program;
use crate::server::{Client, TIMEOUT, TOKEN};

async fn new_conversation(client: &Client) -> String {
    client.post("/v1/conversations", json!({})).await.expect(200)["id"].as_str().unwrap().to_owned()
}

/// Returns the types of a conversation's items, oldest first.
async fn item_types(client: &Client, conversation: &str) -> Vec<String> {
    let page = client.get(&format!("/v1/conversations/{conversation}/items?order=asc&limit=100")).await.expect(200);
    page["data"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
}

fn tools() -> Value {
    let parameters = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
    json!([{ "type": "function", "name": "look", "parameters": parameters }])
}

fn output(call: &Value, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": call["call_id"], "output": text })
}

#[tokio::test]
async fn items_that_are_sent_again_are_stored_once() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let question = json!({ "role": "user", "content": "call" });
    // Some clients resend all items, and some omit the calls that the server knows.
    for omits_calls in [false, true] {
        let conversation = new_conversation(&client).await;
        let ask = async |input: Value| {
            let body = json!({ "conversation": conversation, "input": input, "tools": tools() });
            client.post("/v1/responses", body).await.expect(200)["output"][0].clone()
        };
        let mut input = vec![question.clone()];
        // The output `call` makes the model call the tool again.
        for text in ["call", "call", "in 3 minutes"] {
            let call = ask(json!(input)).await;
            assert_eq!(call["type"], "function_call", "{call}");
            if !omits_calls {
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("id");
                input.push(call);
            }
            input.push(output(&call, text));
        }
        let answer = ask(json!(input)).await;
        assert_eq!(answer["content"][0]["text"], "echo: in 3 minutes (7 messages)");
        let pair = ["function_call", "function_call_output"];
        let expected = [&["message"][..], &pair, &pair, &pair, &["message"]].concat();
        assert_eq!(item_types(&client, &conversation).await, expected);
        // A question that is asked again is a new message.
        for _ in 0..2 {
            ask(json!("hi")).await;
        }
        assert_eq!(item_types(&client, &conversation).await.len(), 12);
    }
    assert_eq!(model.requests.lock().unwrap().len(), 12);
}

/// The loop of the AI SDK, whose steps send the question and all earlier outputs again.
#[tokio::test]
async fn ai_sdk_uses_tools_in_a_conversation() {
    let Some(_) = node_program("tsc") else { return };
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let modules = node_program("tsc").unwrap().ancestors().nth(2).unwrap().to_owned();
    // Modules are found relative to the script.
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let script = folder.path().join("ai_sdk.mjs");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/ai_sdk.mjs"), &script).unwrap();
    let mut command = tokio::process::Command::new("node");
    command.arg(&script).args([&server.url("/v1"), &conversation]).env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN);
    let result = tokio::time::timeout(TIMEOUT * 2, command.kill_on_drop(true).output()).await.unwrap().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let result: Value = serde_json::from_slice(&result.stdout).unwrap();
    assert_eq!((&result["text"], &result["steps"]), (&json!("echo: in 3 minutes (5 messages)"), &json!(3)));
    let pair = ["function_call", "function_call_output"];
    let expected = [&["message"][..], &pair, &pair, &["message"]].concat();
    assert_eq!(item_types(&client, &conversation).await, expected);
    assert_eq!(model.requests.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn results_without_calls_are_rejected() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let ask = |body: Value| client.post("/v1/responses", body);
    let lone = json!([{ "type": "function_call_output", "call_id": "call_0", "output": "x" }]);
    let first = ask(json!({ "input": "hello" })).await.expect(200);
    for body in [
        json!({ "input": lone }),
        json!({ "input": lone, "previous_response_id": first["id"] }),
        json!({ "input": lone, "conversation": conversation }),
    ] {
        let error = ask(body).await.error(400);
        assert_eq!((&error["code"], &error["param"]), (&json!("tool_call_not_found"), &json!("input")));
    }
    assert_eq!(item_types(&client, &conversation).await, [""; 0], "the conversation is unlocked and unchanged");
    let chat = json!({ "messages": [{ "role": "tool", "tool_call_id": "call_0", "content": "x" }] });
    assert_eq!(client.post("/v1/chat/completions", chat).await.error(400)["param"], "messages");
    // A call that is older than the context of the model is found.
    let called = ask(json!({ "input": "call", "conversation": conversation, "tools": tools() })).await.expect(200);
    let messages: Vec<Value> = (0..250).map(|number| json!({ "role": "user", "text": number.to_string() })).collect();
    client.post(&format!("/v1/threads/{conversation}/messages"), json!({ "messages": messages })).await.expect(201);
    let result = output(&called["output"][0], "late");
    ask(json!({ "input": [result], "conversation": conversation })).await.expect(200);
}

/// A result is accepted if its call may have been in the part of the thread that is gone or too far back to be read.
#[tokio::test]
async fn results_are_accepted_if_their_call_may_be_gone() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let scope = Scope::user("local", "me").unwrap();
    let lone = json!([{ "type": "function_call_output", "call_id": "call_0", "output": "x" }]);
    let ask = async |conversation: &str| {
        let body = json!({ "input": lone, "conversation": conversation });
        client.post("/v1/responses", body).await.status
    };
    let thread = client.new_thread().await;
    let id = thread.parse().unwrap();
    let options = |max_messages| {
        let retention = Retention { max_messages: Some(max_messages), ..Retention::default() };
        AppendOptions { retention: Some(retention), ..AppendOptions::default() }
    };
    let drafts = |count: usize| (0..count).map(|number| Draft::user(number.to_string())).collect::<Vec<_>>();
    server.memory.append_all(&scope, id, drafts(20), &options(100)).await.unwrap();
    assert_eq!(ask(&thread).await, 400);
    server.memory.append_all(&scope, id, drafts(20), &options(10)).await.unwrap();
    assert_eq!(ask(&thread).await, 200);
    // Three pages are searched.
    let thread = client.new_thread().await;
    let id = thread.parse().unwrap();
    for (count, status) in [(1_000, 400), (1_000, 400), (1_000, 400), (1, 200)] {
        server.memory.append_all(&scope, id, drafts(count), &AppendOptions::default()).await.unwrap();
        assert_eq!(ask(&thread).await, status, "{count}");
    }
}

/// An output text that a client sends without annotations is returned with empty ones, which clients expect.
#[tokio::test]
async fn output_texts_have_annotations() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let items = json!([
        { "role": "assistant", "content": [{ "type": "output_text", "text": "At nine." }] },
        { "role": "assistant", "phase": "final", "content": [{ "type": "output_text", "text": "At ten." }] },
    ]);
    let path = format!("/v1/conversations/{conversation}/items");
    let added = client.post(&path, json!({ "items": items })).await.expect(200);
    for item in added["data"].as_array().unwrap() {
        assert_eq!(item["content"][0]["annotations"], json!([]), "{item}");
    }
    assert_eq!(added["data"][1]["phase"], "final");
}
