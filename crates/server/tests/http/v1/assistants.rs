//! Assistants as models of the OpenAI API.

use serde_json::{Value, json};

use super::model::parse_data;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::server::{TestConfig, TestServer, send};

const MODEL: &str = "threadkeep/keeper";

fn chat_request(text: &str) -> Value {
    json!({ "model": MODEL, "messages": [{ "role": "user", "content": text }] })
}

fn completion_text(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap()
}

fn response_text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn assistants_are_listed_with_the_configured_model() {
    let (config, _) = super::config_with_model();
    let server = TestServer::start_with(TestConfig { assistants: vec![test_assistant("keeper").0], ..config }).await;
    let client = server.client();
    let models = client.get("/v1/models").await.expect(200);
    let ids: Vec<&str> = models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [MODEL, "echo", "lengths"]);
    for path in ["/v1/models/threadkeep/keeper", "/v1/models/threadkeep%2Fkeeper"] {
        assert_eq!(client.get(path).await.expect(200)["id"], MODEL, "{path}");
    }
    for (path, body) in [
        (
            "/v1/chat/completions",
            json!({ "model": "threadkeep/unknown", "messages": [{ "role": "user", "content": "x" }] }),
        ),
        ("/v1/responses", json!({ "model": "threadkeep/unknown", "input": "x" })),
    ] {
        assert_eq!(client.post(path, body).await.code(404), "model_not_found");
    }
    // Any other name selects the configured model.
    let body = json!({ "model": "echo", "input": "hello" });
    assert_eq!(response_text(&client.post("/v1/responses", body).await.expect(200)), "echo: hello (1 messages)");
}

#[tokio::test]
async fn completions_in_a_thread_are_turns_of_the_thread() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let ask = |text: &str, retry: &str| {
        let request = client.request("POST", "/v1/chat/completions").header("threadkeep-thread", &thread);
        send(request.header("x-stainless-retry-count", retry).json(&chat_request(text)))
    };
    let looked = ask("look lamp", "0").await;
    assert_eq!(looked.header("threadkeep-thread"), thread);
    let looked = looked.expect(200);
    assert_eq!(
        (completion_text(&looked), &looked["choices"][0]["finish_reason"]),
        (r#"Done: {"seen":"lamp"}"#, &json!("stop"))
    );
    assert_eq!((&looked["model"], &looked["usage"]["total_tokens"]), (&json!(MODEL), &json!(20)));
    assert_eq!(looked["usage"]["prompt_tokens_details"]["cached_tokens"], 10);
    assert_eq!(completion_text(&ask("look lamp", "1").await.expect(200)), completion_text(&looked));
    assert_eq!(model.request_count(), 2, "a retry does not call the model");
    let waiting = ask("delete lamp", "0").await.expect(200);
    assert!(completion_text(&waiting).contains("`rm lamp`"));
    assert_eq!(waiting["threadkeep"]["status"], "waiting_for_approval");
    let approval = waiting["threadkeep"]["approvals"][0].as_str().unwrap();
    let path = format!("/v1/threads/{thread}/approvals/{approval}");
    assert_eq!(client.get(&path).await.expect(200)["state"], "pending");
    assert_eq!(completion_text(&ask("fail", "0").await.expect(200)), {
        let texts = client.texts(&thread).await;
        texts.last().unwrap().clone()
    });
}

#[tokio::test]
async fn completions_without_a_thread_store_nothing() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let body = json!({ "model": MODEL, "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "You said: one" },
        { "role": "user", "content": "two" },
    ] });
    let answered = client.post("/v1/chat/completions", body).await;
    assert_eq!(answered.header("threadkeep-thread"), "", "the thread no longer exists");
    let answered = answered.expect(200);
    assert_eq!((completion_text(&answered), &answered["threadkeep"]["thread"]), ("You said: two", &Value::Null));
    assert_eq!(*model.requests.lock().unwrap(), ["two"]);
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
    // A turn that waits for approval is stored until the decision.
    let waiting = client.post("/v1/chat/completions", chat_request("delete lamp")).await;
    let path = format!("/v1/threads/{}", waiting.header("threadkeep-thread"));
    assert_eq!(client.get(&path).await.status, 200);
    let approvals = client.get("/v1/approvals").await.expect(200);
    let path = format!("{path}/approvals/{}", approvals["data"][0]["id"].as_str().unwrap());
    let done = client.post(&path, json!({ "decision": "approve" })).await.expect(200);
    assert_eq!(done["reply"], "Done: lamp deleted");
    for (body, param) in [
        (json!({ "model": MODEL, "messages": [{ "role": "assistant", "content": "x" }] }), "messages"),
        (
            json!({ "model": MODEL, "messages": [{ "role": "user", "content": "x" }], "tools": [{ "type": "function", "function": { "name": "look" } }] }),
            "tools",
        ),
    ] {
        assert_eq!(client.post("/v1/chat/completions", body).await.error(400)["param"], param);
    }
}

/// A response names a thread only if the thread is retained.
#[tokio::test]
async fn unstored_answers_name_only_retained_threads() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    for (question, is_retained) in [("hello", false), ("delete lamp", true)] {
        let mut chat = chat_request(question);
        let mut response = json!({ "model": MODEL, "input": question, "store": false });
        let mut named = Vec::new();
        for is_streamed in [false, true] {
            chat["stream"] = is_streamed.into();
            response["stream"] = is_streamed.into();
            let chat = client.post("/v1/chat/completions", chat.clone()).await;
            assert_eq!(chat.header("threadkeep-thread").is_empty(), is_streamed || !is_retained, "{question}");
            let response = client.post("/v1/responses", response.clone()).await;
            let (chat, response) = if is_streamed {
                let last = |text: &str| parse_data(text).pop().unwrap();
                (last(&chat.text), last(&response.text)["response"].clone())
            } else {
                (chat.expect(200), response.expect(200))
            };
            let conversation = response["conversation"]["id"].as_str().map(str::to_owned);
            assert_eq!(conversation.is_some(), is_retained, "{response}");
            named.extend([chat["threadkeep"]["thread"].clone(), response["threadkeep"]["thread"].clone()]);
            named.extend(conversation.map(Value::from));
        }
        let threads: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
        assert_eq!(threads.len(), if is_retained { 6 } else { 0 }, "{named:?}");
        for thread in threads {
            client.get(&format!("/v1/threads/{thread}")).await.expect(200);
        }
    }
}

/// An assistant determines how its model is called. Options that it would ignore are rejected by name.
#[tokio::test]
async fn options_that_an_assistant_would_ignore_are_rejected() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let image = json!([{ "type": "text", "text": "x" },
        { "type": "image_url", "image_url": { "url": "https://example.org/a.png" } }]);
    let chat = json!({ "messages": [{ "role": "user", "content": "x" }] });
    let schema = json!({ "type": "json_schema", "name": "a", "schema": { "type": "object" } });
    for (path, base, name, value, param) in [
        ("/v1/chat/completions", &chat, "response_format", json!({ "type": "json_object" }), "response_format"),
        ("/v1/chat/completions", &chat, "stop", json!("END"), "stop"),
        ("/v1/chat/completions", &chat, "max_tokens", json!(5), "max_tokens"),
        ("/v1/chat/completions", &chat, "max_completion_tokens", json!(5), "max_completion_tokens"),
        ("/v1/chat/completions", &chat, "tool_choice", json!("required"), "tool_choice"),
        ("/v1/chat/completions", &chat, "logit_bias", json!({ "1": 5 }), "logit_bias"),
        ("/v1/chat/completions", &chat, "frequency_penalty", json!(0.5), "frequency_penalty"),
        ("/v1/chat/completions", &chat, "seed", json!(7), "seed"),
        ("/v1/chat/completions", &chat, "messages", json!([{ "role": "user", "content": image }]), "messages"),
        ("/v1/responses", &json!({ "input": "x" }), "instructions", json!("Be brief."), "instructions"),
        ("/v1/responses", &json!({ "input": "x" }), "text", json!({ "format": schema }), "text.format"),
        ("/v1/responses", &json!({ "input": "x" }), "text", json!({ "verbosity": "low" }), "text.verbosity"),
        ("/v1/responses", &json!({ "input": "x" }), "max_output_tokens", json!(5), "max_output_tokens"),
    ] {
        let mut body = base.clone();
        body["model"] = MODEL.into();
        body[name] = value;
        let error = client.post(path, body).await.error(400);
        assert_eq!((&error["code"], &error["param"]), (&json!("unsupported_option"), &json!(param)), "{path} {name}");
    }
    assert_eq!(model.request_count(), 0);
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
    // Defaults and hints are accepted.
    let mut body = chat;
    for (name, value) in [
        ("model", json!(MODEL)),
        ("temperature", json!(0.5)),
        ("tool_choice", json!("auto")),
        ("response_format", json!({ "type": "text" })),
        ("seed", Value::Null),
    ] {
        body[name] = value;
    }
    client.post("/v1/chat/completions", body).await.expect(200);
}

#[tokio::test]
async fn completions_from_assistants_can_be_streamed() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    for (question, expected) in
        [("hello", "You said: hello"), ("delete lamp", "⚠️ This action requires approval\n`rm lamp`")]
    {
        let mut body = chat_request(question);
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
        let answer = client.post("/v1/chat/completions", body).await;
        assert!(answer.text.ends_with("data: [DONE]\n\n"));
        let chunks = parse_data(&answer.text);
        let deltas = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
        assert_eq!(deltas.collect::<String>(), expected);
        assert_eq!(chunks.last().unwrap()["usage"]["prompt_tokens"], 7);
    }
    let mut body = chat_request("hello");
    body["stream"] = true.into();
    let unknown = client.request("POST", "/v1/chat/completions");
    let unknown = unknown.header("threadkeep-thread", "0190b4e2-0000-7000-8000-000000000000").json(&body);
    assert_eq!(send(unknown).await.code(404), "not_found");
}

#[tokio::test]
async fn responses_from_assistants_continue_in_their_thread() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let ask = |text: &str, previous: &Value| {
        client.post("/v1/responses", json!({ "model": MODEL, "input": text, "previous_response_id": previous }))
    };
    let first = ask("one", &Value::Null).await.expect(200);
    assert_eq!((response_text(&first), &first["status"]), ("You said: one", &json!("completed")));
    let second = ask("two", &first["id"]).await.expect(200);
    assert_eq!(second["conversation"], first["conversation"]);
    let path = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    for response in [&first, &second] {
        assert_eq!(client.get(&path(response)).await.expect(200), *response);
    }
    let items = client.get(&format!("{}/input_items", path(&second))).await.expect(200);
    assert_eq!(items["data"][0]["content"][0]["text"], "two");
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let items = client.get(&format!("/v1/conversations/{conversation}/items?order=asc")).await.expect(200);
    assert_eq!(items["data"].as_array().unwrap().len(), 4);
    // The thread has continued since the first response.
    assert_eq!(ask("three", &first["id"]).await.code(400), "previous_response_not_last");
    let ask_with_key = || {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.json(&json!({ "model": MODEL, "input": "look lamp" })))
    };
    let first_with_key = ask_with_key().await.expect(200);
    assert_eq!(ask_with_key().await.expect(200), first_with_key);
    assert_eq!(model.request_count(), 4);
    let failed = ask("fail", &Value::Null).await.expect(200);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("server_error")));
    let unstored = json!({ "model": MODEL, "input": "x", "store": false });
    let unstored = client.post("/v1/responses", unstored).await.expect(200);
    assert_eq!((response_text(&unstored), client.get(&path(&unstored)).await.status), ("You said: x", 404));
    client.delete(&format!("/v1/conversations/{conversation}")).await.expect(200);
    assert_eq!(client.get(&path(&second)).await.code(404), "not_found");
}

#[tokio::test]
async fn responses_from_assistants_can_be_streamed() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let body = json!({ "model": MODEL, "input": "hello", "stream": true, "conversation": conversation["id"] });
    let events = parse_data(&client.post("/v1/responses", body).await.text);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == "response.output_text.delta").count(), 2);
    let response = &events.last().unwrap()["response"];
    assert_eq!((*kinds.last().unwrap(), response_text(response)), ("response.completed", "You said: hello"));
    for event in events.iter().filter(|event| event["item_id"].is_string()) {
        assert_eq!(event["item_id"], response["output"][0]["id"], "all events of an item have its id");
    }
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.expect(200)["output"], response["output"]);
}

#[tokio::test]
async fn running_assistant_turns_lock_the_conversation() {
    let (mut definition, model) = test_assistant("keeper");
    definition.busy = threadkeep::agent::BusyPolicy::Refuse;
    let server = TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let ask = |text: &str| {
        let body = json!({ "model": MODEL, "input": text, "conversation": conversation["id"] });
        send(client.request("POST", "/v1/responses").json(&body))
    };
    let first = tokio::spawn(ask("wait"));
    model.wait_until_blocked().await;
    let locked = ask("two").await.error(400);
    assert_eq!((&locked["code"], &locked["param"]), (&json!("conversation_locked"), &json!("conversation")));
    model.unblock();
    assert_eq!(response_text(&first.await.unwrap().expect(200)), "You said: wait");
}

#[tokio::test]
async fn ephemeral_threads_are_not_listed() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let completion = client.post("/v1/chat/completions", chat_request("delete lamp")).await.expect(200);
    let thread = completion["threadkeep"]["thread"].as_str().unwrap();
    let found = client.get(&format!("/v1/threads/{thread}")).await.expect(200);
    assert_eq!(found["metadata"], json!({ "threadkeep.ephemeral": true }));
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
    let query = json!({ "query": "lamp" });
    assert_eq!(client.post("/v1/search", query).await.expect(200)["hits"], json!([]));
    let approvals = client.get("/v1/approvals").await.expect(200);
    let approval = approvals["data"][0]["id"].as_str().unwrap();
    let path = format!("/v1/threads/{thread}/approvals/{approval}");
    client.post(&path, json!({ "decision": "approve" })).await.expect(200);
    assert_eq!(client.post("/v1/search", json!({ "query": "lamp" })).await.expect(200)["hits"], json!([]));
}
