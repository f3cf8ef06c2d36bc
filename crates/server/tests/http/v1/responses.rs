use serde_json::{Value, json};
use threadkeep::{MessageRef, Scope};

use super::model::{parse_data, start_with_model};
use crate::server::send;

fn response_text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn responses_continue_from_previous_ones() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let first =
        client.post("/v1/responses", json!({ "model": "m", "input": "one", "instructions": "Be brief." })).await;
    let first = first.expect(200);
    assert_eq!((response_text(&first), &first["status"]), ("echo: one (2 messages)", &json!("completed")));
    for member in [
        "id",
        "created_at",
        "error",
        "incomplete_details",
        "instructions",
        "metadata",
        "model",
        "output",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "tool_choice",
        "tools",
        "usage",
    ] {
        assert!(first.get(member).is_some(), "{member}");
    }
    assert_eq!(first["usage"]["input_tokens_details"], json!({ "cached_tokens": 5, "cache_write_tokens": 0 }));
    assert_eq!(first["usage"]["output_tokens_details"], json!({ "reasoning_tokens": 2 }));
    let body = json!({ "input": [{ "role": "user", "content": "two" }], "previous_response_id": first["id"] });
    let second = client.post("/v1/responses", body).await.expect(200);
    // The instructions of the previous response do not apply.
    assert_eq!(response_text(&second), "echo: two (3 messages)");
    let id = second["id"].as_str().unwrap();
    assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200), second);
    let items = client.get(&format!("/v1/responses/{id}/input_items")).await.expect(200);
    assert_eq!(items["data"][0]["content"][0]["text"], "two");
    assert_eq!(client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.code(400), "not_in_background");
    assert_eq!(client.delete(&format!("/v1/responses/{id}")).await.expect(200)["deleted"], true);
    assert_eq!(client.get(&format!("/v1/responses/{id}")).await.code(404), "not_found");
    let unstored = client.post("/v1/responses", json!({ "input": "x", "store": false })).await.expect(200);
    assert_eq!(client.get(&format!("/v1/responses/{}", unstored["id"].as_str().unwrap())).await.code(404), "not_found");
    assert_eq!(model.requests.lock().unwrap()[1].messages.len(), 3);
    let ask_with_key = |input: &str| {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.json(&json!({ "input": input })))
    };
    let first_with_key = ask_with_key("one").await.expect(200);
    assert_eq!(ask_with_key("one").await.expect(200), first_with_key);
    assert_eq!(ask_with_key("two").await.code(400), "idempotency_key_reused");
}

#[tokio::test]
async fn responses_in_a_conversation_are_stored_there() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let id = conversation["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/conversations/{id}/items?order=asc");
    let items = || client.get(&path);
    let tools = json!([{ "type": "function", "name": "look", "parameters": { "type": "object" } }]);
    let ask = |input: Value, retry: &str| {
        let body = json!({ "input": input, "conversation": id, "tools": tools });
        send(client.request("POST", "/v1/responses").header("x-stainless-retry-count", retry).json(&body))
    };
    ask(json!("hello"), "0").await.expect(200);
    let called = ask(json!("call"), "0").await.expect(200);
    assert_eq!(
        (&called["output"][0]["type"], &called["output"][0]["call_id"]),
        (&json!("function_call"), &json!("call_2"))
    );
    let output = json!([{ "type": "function_call_output", "call_id": "call_2", "output": "in 3 minutes" }]);
    let answered = ask(output.clone(), "0").await.expect(200);
    assert_eq!(response_text(&answered), "echo: in 3 minutes (5 messages)");
    let retried = ask(output, "1").await.expect(200);
    assert_eq!((&retried["id"], &retried["output"]), (&answered["id"], &answered["output"]));
    assert_eq!(model.requests.lock().unwrap().len(), 3, "a retry does not call the model");
    let page = items().await.expect(200);
    let kinds: Vec<&str> = page["data"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "message", "message", "function_call", "function_call_output", "message"]);
    assert_eq!(page["data"][5], answered["output"][0]);
    let with_both = json!({ "input": "x", "conversation": { "id": id }, "previous_response_id": "resp_1" });
    assert_eq!(client.post("/v1/responses", with_both).await.code(400), "mutually_exclusive_parameters");
    assert_eq!(ask(json!("fail"), "0").await.code(503), "model_unavailable");
    assert_eq!(items().await.expect(200)["data"].as_array().unwrap().len(), 6, "failed requests store nothing");
    // A response no longer contains items that are deleted from its conversation.
    let item = answered["output"][0]["id"].as_str().unwrap();
    client.delete(&format!("/v1/conversations/{id}/items/{item}")).await.expect(200);
    let path = format!("/v1/responses/{}", answered["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.expect(200)["output"], json!([]));
    client.delete(&format!("/v1/conversations/{id}")).await.expect(200);
    assert_eq!(client.get(&path).await.code(404), "not_found");
    assert_eq!(ask(json!("late"), "0").await.code(404), "not_found");
}

#[tokio::test]
async fn conversations_are_locked_by_a_stored_lease() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let id = conversation["id"].as_str().unwrap().to_owned();
    let ask = |text: &str| client.post("/v1/responses", json!({ "input": text, "conversation": id }));
    // The lease is stored, so the conversation is locked on all instances.
    let (scope, thread) = (Scope::user("local", "me").unwrap(), id.trim_start_matches("conv_").parse().unwrap());
    let name = threadkeep::RecordName { namespace: "system/server".parse().unwrap(), key: "lease".to_owned() };
    let value = threadkeep::JsonText::new("true").unwrap();
    let put = threadkeep::core::PutRecord { name: name.clone(), value, expires_at: None };
    server.memory.batch().put(put).commit(&scope, thread).await.unwrap();
    let locked = ask("hello").await.error(400);
    assert_eq!((&locked["code"], &locked["param"]), (&json!("conversation_locked"), &json!("conversation")));
    server.memory.batch().delete(name).commit(&scope, thread).await.unwrap();
    ask("hello").await.expect(200);
    ask("again").await.expect(200);
    assert!(server.memory.find_messages(&scope, thread, &[MessageRef::Seq(4)]).await.unwrap().len() == 1);
}

#[tokio::test]
async fn responses_can_be_streamed() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let ask = |text: &str| {
        let tools = json!([{ "type": "function", "name": "look", "parameters": { "type": "object" } }]);
        client.post("/v1/responses", json!({ "input": text, "tools": tools, "stream": true }))
    };
    let events = parse_data(&ask("hello").await.text);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
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
        ]
    );
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let item = &events.last().unwrap()["response"]["output"][0];
    for event in &events[3..8] {
        assert_eq!(event["item_id"], item["id"], "all events of an item have its id");
    }
    assert_eq!(events[8]["item"], *item);
    let called = parse_data(&ask("call").await.text);
    let kinds: Vec<&str> = called[2..].iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let failed = parse_data(&ask("break").await.text);
    assert_eq!(failed.last().unwrap()["response"]["status"], "failed");
}
