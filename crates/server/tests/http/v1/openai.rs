//! Details of the OpenAI API that clients depend on.

use serde_json::{Value, json};
use threadkeep::core::{AnswerFormat, RecordQuery};
use threadkeep::{Part, RecordOwner, Role, Scope, UserId};

use super::model::start_with_model;
use crate::server::{Client, send};

fn response_text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

async fn new_conversation(client: &Client) -> String {
    client.post("/v1/conversations", json!({})).await.expect(200)["id"].as_str().unwrap().to_owned()
}

/// Returns the items of a conversation, oldest first.
async fn list_items(client: &Client, conversation: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/conversations/{conversation}/items?order=asc&limit=100")).await.expect(200);
    page["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn request_options_are_passed_to_the_model() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let schema = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
    let responses_format = json!({ "type": "json_schema", "name": "place", "schema": schema, "strict": true });
    let chat_format =
        json!({ "type": "json_schema", "json_schema": { "name": "place", "schema": schema, "strict": true } });
    let function = json!({ "name": "look", "parameters": { "type": "object" }, "strict": true });
    let mut responses_tool = function.clone();
    responses_tool["type"] = json!("function");
    let response = json!({ "input": "x", "tools": [responses_tool], "text": { "format": responses_format }, "top_p": 0.5, "parallel_tool_calls": false,
        "reasoning": { "effort": "low" }, "max_output_tokens": 9, "temperature": 0.25, "prompt_cache_key": "k", "user": "u" });
    let response = client.post("/v1/responses", response).await.expect(200);
    assert_eq!(
        (&response["text"]["format"], &response["prompt_cache_key"], &response["user"]),
        (&responses_format, &json!("k"), &json!("u"))
    );
    let messages = json!([{ "role": "user", "content": "x" }]);
    let chat = json!({ "messages": messages, "tools": [{ "type": "function", "function": function }],
        "response_format": chat_format, "top_p": 0.5, "parallel_tool_calls": false,
        "reasoning_effort": "low", "max_completion_tokens": 9, "temperature": 0.25 });
    client.post("/v1/chat/completions", chat).await.expect(200);
    let chat = json!({ "messages": messages, "response_format": { "type": "json_object" }, "stop": "END", "seed": 7,
        "frequency_penalty": 0.5, "presence_penalty": -0.5 });
    client.post("/v1/chat/completions", chat).await.expect(200);
    for (path, invalid_body) in [
        ("/v1/responses", json!({ "input": "x", "text": { "format": { "type": "json_schema", "name": "a b" } } })),
        ("/v1/chat/completions", json!({ "messages": messages, "response_format": { "type": "xml" } })),
        ("/v1/chat/completions", json!({ "messages": messages, "stop": [1] })),
        ("/v1/responses", json!({ "input": "x", "prompt": { "id": "pmpt_1" } })),
        ("/v1/responses", json!({ "input": "x", "text": "plain" })),
        ("/v1/responses", json!({ "input": "x", "reasoning": "low" })),
        ("/v1/embeddings", json!({ "input": [1, 2] })),
        ("/v1/embeddings", json!({ "input": [[1], [2]] })),
    ] {
        assert_eq!(client.post(path, invalid_body).await.code(400), "invalid_request");
    }
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0], requests[1], "both APIs send the model the same request");
    let Some(AnswerFormat::Schema { name, schema: received, is_strict, .. }) = &requests[0].format else { panic!() };
    assert_eq!((name.as_str(), received.read::<Value>().unwrap(), *is_strict), ("place", schema, Some(true)));
    assert_eq!((requests[0].parallel_tool_calls, requests[0].reasoning_effort.as_deref()), (Some(false), Some("low")));
    assert_eq!((requests[0].sampling.top_p, requests[0].max_tokens), (Some(0.5), Some(9)));
    assert_eq!((requests[0].tools[0].is_strict, requests[2].tools.len()), (Some(true), 0));
    assert_eq!(requests[2].format, Some(AnswerFormat::Json));
    assert_eq!((requests[2].sampling.seed, requests[2].sampling.stop.as_slice()), (Some(7), &["END".to_owned()][..]));
}

#[tokio::test]
async fn items_can_be_referenced_by_id() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let reference = |item: &Value| json!({ "type": "item_reference", "id": item["id"] });
    let first = client.post("/v1/responses", json!({ "input": "one" })).await.expect(200);
    let item = &first["output"][0];
    let input = json!([{ "role": "user", "content": "one" }, reference(item), { "role": "user", "content": "two" }]);
    let second = client.post("/v1/responses", json!({ "input": input })).await.expect(200);
    assert_eq!(response_text(&second), "echo: two (3 messages)");
    assert_eq!(model.requests.lock().unwrap()[1].messages[1].plain_text(), "echo: one (1 messages)");
    // Items that the chain of previous responses already contains are not repeated.
    let body = json!({ "previous_response_id": first["id"], "input": [{ "id": item["id"] }, { "role": "user", "content": "two" }] });
    assert_eq!(response_text(&client.post("/v1/responses", body).await.expect(200)), "echo: two (3 messages)");
    let tools = json!([{ "type": "function", "name": "look", "parameters": { "type": "object" } }]);
    let called = client.post("/v1/responses", json!({ "input": "call", "tools": tools })).await.expect(200);
    let call = &called["output"][0];
    let output = json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "now" });
    let body = json!({ "input": [{ "role": "user", "content": "call" }, reference(call), output] });
    assert_eq!(response_text(&client.post("/v1/responses", body).await.expect(200)), "echo: now (3 messages)");

    let conversation = new_conversation(&client).await;
    let items_path = format!("/v1/conversations/{conversation}/items");
    let added =
        client.post(&items_path, json!({ "items": [reference(item), { "role": "user", "content": "x" }] })).await;
    let added = added.expect(200);
    assert_eq!((&added["data"][0], added["data"].as_array().unwrap().len()), (item, 2));
    let added_again = client.post(&items_path, json!({ "items": [reference(item)] })).await.expect(200);
    assert_eq!((&added_again["data"][0], list_items(&client, &conversation).await.len()), (item, 2));
    // Items that the conversation already contains are neither sent nor stored twice.
    let input = json!([reference(item), added["data"][1], { "role": "user", "content": "y" }]);
    let response =
        client.post("/v1/responses", json!({ "conversation": conversation, "input": input })).await.expect(200);
    assert_eq!(response_text(&response), "echo: y (3 messages)");
    assert_eq!(list_items(&client, &conversation).await.len(), 4);
    let mut changed = added["data"][1].clone();
    changed["content"] = json!("something else");
    let with_taken_id = json!({ "conversation": conversation, "input": [changed] });
    assert_eq!(client.post("/v1/responses", with_taken_id).await.code(400), "message_id_taken");

    let unknown = json!({ "input": [{ "type": "item_reference", "id": "msg_0123" }] });
    assert_eq!(client.post("/v1/responses", unknown).await.code(404), "not_found");
    client.delete(&format!("/v1/responses/{}", first["id"].as_str().unwrap())).await.expect(200);
    let with_deleted_item = json!({ "input": [reference(item), { "role": "user", "content": "two" }] });
    assert_eq!(client.post("/v1/responses", with_deleted_item).await.code(404), "not_found");
}

#[tokio::test]
async fn tool_results_are_stored_with_their_calls() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let calls = ["", "not JSON", r#"{"b": 1.0,"a":2}"#];
    let input: Vec<Value> = calls
        .iter()
        .enumerate()
        .flat_map(|(number, arguments)| {
            let call_id = format!("call_{number}");
            let output = json!([{ "type": "input_text", "text": "one" }, { "type": "input_text", "text": "two" }]);
            [
                json!({ "type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments, "id": null }),
                json!({ "type": "function_call_output", "call_id": call_id, "output": output }),
            ]
        })
        .collect();
    client.post(&format!("/v1/conversations/{conversation}/items"), json!({ "items": input })).await.expect(200);
    let stored = list_items(&client, &conversation).await;
    let arguments: Vec<&str> = stored.iter().filter_map(|item| item["arguments"].as_str()).collect();
    assert_eq!(arguments, calls);
    assert_eq!(stored[1]["output"][1]["text"], "two");
    client.post("/v1/responses", json!({ "conversation": conversation, "input": "x" })).await.expect(200);
    client.post("/v1/responses", json!({ "input": stored })).await.expect(200);
    let tool_call = |(number, arguments): (usize, &&str)| json!({ "id": format!("call_{number}"), "type": "function", "function": { "name": "look", "arguments": arguments } });
    let messages: Vec<Value> = calls
        .iter()
        .enumerate()
        .flat_map(|call| {
            let answer = json!({ "role": "tool", "tool_call_id": format!("call_{}", call.0), "content": "one\ntwo" });
            [json!({ "role": "assistant", "content": null, "tool_calls": [tool_call(call)] }), answer]
        })
        .collect();
    client.post("/v1/chat/completions", json!({ "messages": messages })).await.expect(200);
    for request in model.requests.lock().unwrap().iter() {
        let calls = request.messages.iter().flat_map(|message| message.tool_calls());
        let arguments: Vec<&str> = calls.map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, ["{}", r#""not JSON""#, r#"{"b": 1.0,"a":2}"#]);
        let results: Vec<&str> = request
            .messages
            .iter()
            .flat_map(|message| message.tool_results())
            .map(|result| result.output.as_str())
            .collect();
        assert_eq!(results, ["one\ntwo"; 3]);
    }
}

#[tokio::test]
async fn items_without_an_id_are_assigned_one() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let without_id =
        json!({ "type": "mcp_approval_response", "id": null, "approve": true, "approval_request_id": "mcpr_1" });
    let with_id =
        json!({ "type": "web_search_call", "id": "ws_0123456789abcdef0123456789abcdef", "status": "completed" });
    let body = json!({ "items": [without_id, with_id] });
    let added = client.post(&format!("/v1/conversations/{conversation}/items"), body).await.expect(200);
    for item in added["data"].as_array().unwrap() {
        let id = item["id"].as_str().unwrap();
        let path = format!("/v1/conversations/{conversation}/items/{id}");
        assert_eq!(client.get(&path).await.expect(200), *item);
    }
    assert_eq!((&added["data"][0]["approve"], &added["data"][1]), (&json!(true), &with_id));
    let after = format!("/v1/conversations/{conversation}/items?order=desc&after={}", with_id["id"].as_str().unwrap());
    assert_eq!(client.get(&after).await.expect(200)["data"][0], added["data"][0]);
}

#[tokio::test]
async fn rejected_requests_do_not_lock_the_conversation() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let item = json!({ "type": "message", "role": "user", "content": "x", "id": "msg_mine" });
    let body = json!({ "conversation": conversation, "input": [item, item] });
    assert_eq!(client.post("/v1/responses", body).await.code(400), "invalid_request");
    let long = "x".repeat(4 * 1024 * 1024 + 1);
    for (text, code) in [("a\0b", "invalid_request"), (&long, "limit_exceeded")] {
        let body = json!({ "conversation": conversation, "input": text, "stream": true });
        assert_eq!(client.post("/v1/responses", body).await.code(400), code);
        let messages = json!([{ "role": "user", "content": text }]);
        let body = json!({ "messages": messages, "metadata": { "thread": conversation }, "stream": true });
        assert_eq!(client.post("/v1/chat/completions", body).await.code(400), code);
    }
    assert!(model.requests.lock().unwrap().is_empty(), "the model is not called for input that cannot be stored");
    assert!(list_items(&client, &conversation).await.is_empty());
    client.post("/v1/responses", json!({ "conversation": conversation, "input": "y" })).await.expect(200);
    let count = model.requests.lock().unwrap().len();
    assert_eq!(client.post("/v1/responses", json!({})).await.code(400), "missing_required_parameter");
    assert_eq!(client.post("/v1/responses", json!({ "input": [] })).await.code(400), "missing_required_parameter");
    assert_eq!(model.requests.lock().unwrap().len(), count, "empty requests do not call the model");
}

/// The client retries after its connection failed, while the server is still executing the first attempt.
#[tokio::test]
async fn retries_wait_for_the_first_attempt() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    for path in ["/v1/responses", "/v1/chat/completions"] {
        let ask = |retry: u64| {
            let body = if path.ends_with("responses") {
                json!({ "conversation": conversation, "input": "wait" })
            } else {
                json!({ "metadata": { "thread": conversation }, "messages": [{ "role": "user", "content": "wait" }] })
            };
            let request = client.request("POST", path).header("x-stainless-retry-count", retry.to_string());
            tokio::spawn(send(request.json(&body)))
        };
        let before = list_items(&client, &conversation).await.len();
        let first = ask(0);
        model.blocked.notified().await;
        assert_eq!(ask(0).await.unwrap().code(400), "conversation_locked");
        let second = ask(1);
        // The first connection is closed before the server responds.
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        model.unblock.notify_one();
        let response = second.await.unwrap().expect(200);
        assert!(response.to_string().contains("echo: wait"), "{response}");
        assert_eq!(list_items(&client, &conversation).await.len(), before + 2, "{path}");
    }
    assert_eq!(model.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn input_tokens_are_counted_without_calling_the_model() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let count = async |body: Value| {
        let response = client.post("/v1/responses/input_tokens", body).await.expect(200);
        assert_eq!(response["object"], "response.input_tokens");
        response["input_tokens"].as_u64().unwrap()
    };
    let input_only = count(json!({ "input": "one two three" })).await;
    let with_instructions = count(json!({ "input": "one two three", "instructions": "Be brief." })).await;
    let tools = json!([{ "type": "function", "name": "look", "parameters": { "type": "object" } }]);
    assert!(
        input_only > 3
            && with_instructions > input_only
            && count(json!({ "input": "one two three", "tools": tools })).await > input_only
    );
    let with_empty_conversation = count(json!({ "conversation": conversation, "input": "x" })).await;
    let item = json!({ "items": [{ "role": "user", "content": "a longer sentence" }] });
    client.post(&format!("/v1/conversations/{conversation}/items"), item).await.expect(200);
    assert!(count(json!({ "conversation": conversation, "input": "x" })).await > with_empty_conversation);
    let unknown = json!({ "conversation": format!("conv_{}", "0".repeat(32)), "input": "x" });
    assert_eq!(client.post("/v1/responses/input_tokens", unknown).await.code(404), "not_found");
    assert!(model.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn inputs_are_compacted_on_request() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let input = json!([
        { "role": "user", "content": "Where is the 7?" },
        { "type": "function_call", "call_id": "c", "name": "look", "arguments": "{\"line\":\"7\"}" },
        { "type": "function_call_output", "call_id": "c", "output": "at Queensboro Plaza" },
        { "role": "assistant", "content": "At Queensboro Plaza." },
        { "role": "user", "content": "Thanks." },
    ]);
    let compacted = client.post("/v1/responses/compact", json!({ "model": "m", "input": input })).await.expect(200);
    assert_eq!(
        (&compacted["object"], &compacted["usage"]["total_tokens"]),
        (&json!("response.compaction"), &json!(10))
    );
    let output = compacted["output"].as_array().unwrap();
    let kinds: Vec<&str> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "message", "compaction"]);
    assert_eq!(output[1]["content"][0]["text"], "Thanks.");
    let notes = model.requests.lock().unwrap()[0].messages[1].plain_text();
    for text in ["called look({\"line\":\"7\"})", "at Queensboro Plaza", "At Queensboro Plaza."] {
        assert!(notes.contains(text), "{notes}");
    }
    // The output can be sent as the next input, and can be stored in a conversation, which returns it unchanged.
    let mut next = output.clone();
    next.push(json!({ "role": "user", "content": "And now?" }));
    client.post("/v1/responses", json!({ "input": next })).await.expect(200);
    let conversation = new_conversation(&client).await;
    client.post(&format!("/v1/conversations/{conversation}/items"), json!({ "items": output })).await.expect(200);
    client.post("/v1/responses", json!({ "conversation": conversation, "input": "And now?" })).await.expect(200);
    assert_eq!(list_items(&client, &conversation).await[..3], output[..]);
    let requests = model.requests.lock().unwrap().clone();
    for request in &requests[1..] {
        let message = request.messages.iter().find(|message| message.role == Role::System).unwrap();
        let Some(Part::Text(text)) = message.parts.first() else { panic!() };
        assert!(text.starts_with("Notes on the earlier conversation:\necho: The notes so far"), "{text}");
    }
    // Compaction items that other servers created are accepted, although this server cannot decode them.
    let from_other_server = json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAB" });
    let body = json!({ "input": [from_other_server, { "role": "user", "content": "x" }] });
    assert_eq!(response_text(&client.post("/v1/responses", body).await.expect(200)), "echo: x (2 messages)");
    assert_eq!(client.post("/v1/responses/compact", json!({})).await.code(400), "missing_required_parameter");
    let with_conversation = json!({ "conversation": conversation, "input": "x" });
    assert_eq!(client.post("/v1/responses/compact", with_conversation).await.code(400), "invalid_request");
}

#[tokio::test]
async fn long_responses_are_stored_in_full() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let picture = |fill: &str| {
        let url = format!("data:image/png;base64,{}", fill.repeat(3_000_000));
        let part = json!({ "type": "input_image", "detail": "auto", "image_url": url });
        json!({ "role": "user", "content": [part, { "type": "input_text", "text": "What is \"this\"? \u{1f600}" }] })
    };
    let mut input: Vec<Value> = (0..600).map(|n| json!({ "role": "user", "content": n.to_string() })).collect();
    input.extend([picture("A"), picture("B")]);
    let first = client.post("/v1/responses", json!({ "input": input })).await.expect(200);
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.expect(200), first);
    let input_items = client.get(&format!("{path}/input_items?limit=2")).await.expect(200);
    assert_eq!(input_items["data"][0]["content"], picture("B")["content"]);
    let second = json!({ "input": "next", "previous_response_id": first["id"] });
    assert_eq!(response_text(&client.post("/v1/responses", second).await.expect(200)), "echo: next (604 messages)");
    let requests = model.requests.lock().unwrap().clone();
    assert_eq!(requests[1].messages[601].parts, requests[0].messages[601].parts);
    let record_count = || async {
        let scope = Scope::user("local", "me").unwrap();
        let query = RecordQuery::of(RecordOwner::User(UserId::new("me").unwrap()));
        let store = &server.memory.backend().store;
        store.list_records(&scope, &query, server.memory.now()).await.unwrap().len()
    };
    let before = record_count().await;
    assert_eq!(client.delete(&path).await.expect(200)["deleted"], true);
    assert_eq!((before, record_count().await), (4 + 1, 1), "all pieces of the response are deleted");
    // A conversation stores each picture as one message, so the size limit for messages applies: one picture of 3 MB
    // fits.
    let conversation = new_conversation(&client).await;
    client
        .post(&format!("/v1/conversations/{conversation}/items"), json!({ "items": [picture("C")] }))
        .await
        .expect(200);
    assert_eq!(list_items(&client, &conversation).await[0]["content"], picture("C")["content"]);
    // A request can add at most 500 messages to a conversation.
    let many: Vec<Value> = (0..501).map(|n| json!({ "role": "user", "content": n.to_string() })).collect();
    let body = json!({ "conversation": conversation, "input": many });
    assert_eq!(client.post("/v1/responses", body).await.code(400), "invalid_request");
    client.post("/v1/responses", json!({ "conversation": conversation, "input": "x" })).await.expect(200);
}

#[tokio::test]
async fn responses_in_a_conversation_can_be_continued() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let conversation = new_conversation(&client).await;
    let in_conversation = async |input: &str| {
        client.post("/v1/responses", json!({ "conversation": conversation, "input": input })).await.expect(200)
    };
    let (first, second) = (in_conversation("one").await, in_conversation("two").await);
    let continue_from = |previous: &Value| {
        client.post("/v1/responses", json!({ "previous_response_id": previous["id"], "input": "x" }))
    };
    let third = continue_from(&first).await.expect(200);
    assert_eq!(
        (response_text(&third), response_text(&continue_from(&second).await.expect(200))),
        ("echo: x (3 messages)", "echo: x (5 messages)")
    );
    let fourth = continue_from(&third).await.expect(200);
    assert_eq!(response_text(&fourth), "echo: x (5 messages)");
    let texts: Vec<String> =
        model.requests.lock().unwrap()[4].messages.iter().map(|message| message.plain_text()).collect();
    assert_eq!(texts, ["one", "echo: one (1 messages)", "x", "echo: x (3 messages)", "x"]);
    assert_eq!(list_items(&client, &conversation).await.len(), 4, "the continuation is not part of the conversation");
    client.delete(&format!("/v1/conversations/{conversation}")).await.expect(200);
    assert_eq!(continue_from(&fourth).await.code(400), "previous_response_not_found");
    assert_eq!(continue_from(&json!({ "id": "resp_1" })).await.code(400), "previous_response_not_found");
}
