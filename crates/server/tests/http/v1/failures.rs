//! Failures of streamed requests, options that are not supported, and error messages.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use threadkeep::Part;
use threadkeep::core::ImageReference;
use threadkeep_server::ServerOptions;

use super::model::{config_with_model, parse_data, start_with_model};
use crate::clients::{is_skipped, program};
use crate::server::{TIMEOUT, TOKEN, TestConfig, TestServer, send};

fn chat(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// A stream that fails before its first event has the status of the request without streaming.
#[tokio::test]
async fn a_failure_before_the_first_token_has_its_own_status() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    assert_eq!(ServerOptions::default().stream_head, std::time::Duration::from_secs(10));
    let response = |text: &str| json!({ "input": text });
    for (path, body, param) in
        [("/v1/chat/completions", &chat as &dyn Fn(&str) -> Value, "messages"), ("/v1/responses", &response, "input")]
    {
        for body in [body("limit"), streamed(body("limit"))] {
            let answer = client.post(path, body).await;
            let error = answer.error(429);
            assert_eq!((&error["code"], answer.header("retry-after")), (&json!("model_rate_limited"), "7"), "{path}");
            assert!(
                error["message"].as_str().unwrap().starts_with("the provider's rate limit for model echo"),
                "{error}"
            );
        }
        for body in [body("fail"), streamed(body("fail"))] {
            assert_eq!(client.post(path, body).await.code(503), "model_unavailable", "{path}");
        }
        assert_eq!(client.post(path, streamed(body(""))).await.error(400)["param"], param);
        // Once something was sent, the stream reports the failure.
        let broken = client.post(path, streamed(body("break"))).await;
        assert_eq!((broken.status, broken.header("content-type")), (200, "text/event-stream"));
        let last = parse_data(&broken.text).pop().unwrap();
        let error = if last["error"].is_object() { &last["error"] } else { &last["response"]["error"] };
        assert!(error["message"].as_str().unwrap().contains("the connection was lost"), "{last}");
    }
}

/// A background response is created before the model is called, so its failure is part of the response.
#[tokio::test]
async fn failures_of_background_responses_are_in_the_response() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let body = json!({ "input": "limit", "background": true, "stream": true });
    let answer = client.post("/v1/responses", body).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
    let events = parse_data(&answer.text);
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events.last().unwrap()["type"], "response.failed");
}

/// The head of a stream is not delayed indefinitely: if the model is slow, the client receives the head before the first token.
#[tokio::test]
async fn the_head_of_a_stream_is_held_for_a_limited_time() {
    let (config, model) = config_with_model();
    let options = ServerOptions { stream_head: std::time::Duration::from_millis(1), ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    let client = server.client();
    for (path, body) in [("/v1/chat/completions", chat("wait")), ("/v1/responses", json!({ "input": "wait" }))] {
        let request = client.request("POST", path).json(&streamed(body)).send();
        let response = tokio::time::timeout(TIMEOUT, request).await.unwrap().unwrap();
        assert_eq!(response.status().as_u16(), 200);
        model.unblock.notify_one();
        assert!(response.text().await.unwrap().contains("(1 messages)"), "{path}");
    }
}

/// The official client raises the same exceptions for streamed and for other requests.
#[tokio::test]
async fn client_raises_the_same_exceptions_for_streams() {
    if is_skipped() {
        return;
    }
    let (server, _) = start_with_model().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/failures.py");
    let mut command = tokio::process::Command::new(program("python"));
    command.args([script, &server.url("/v1")]).env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN).kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT * 2, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let raised: Value = serde_json::from_slice(&output.stdout).unwrap();
    let limit = json!(["RateLimitError", 429, "7"]);
    let expected = json!({ "chat": limit, "chat_stream": limit, "responses": limit, "responses_stream": limit,
        "embeddings": limit });
    assert_eq!(raised, expected);
}

#[tokio::test]
async fn options_are_passed_on_or_rejected_by_name() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    for (path, body, name, value) in [
        ("/v1/chat/completions", chat("x"), "logprobs", json!(true)),
        ("/v1/chat/completions", chat("x"), "top_logprobs", json!(2)),
        ("/v1/chat/completions", chat("x"), "prediction", json!({ "type": "content", "content": "x" })),
        ("/v1/chat/completions", chat("x"), "functions", json!([{ "name": "look" }])),
        ("/v1/chat/completions", chat("x"), "web_search_options", json!({ "search_context_size": "low" })),
        ("/v1/responses", json!({ "input": "x" }), "top_logprobs", json!(2)),
        ("/v1/responses", json!({ "input": "x" }), "include", json!(["message.output_text.logprobs"])),
    ] {
        let error = client.post(path, with(body, name, value)).await.error(400);
        assert_eq!((&error["code"], &error["param"]), (&json!("unsupported_option"), &json!(name)), "{path}");
    }
    // The defaults of these options are accepted, and so are whole numbers with a fraction.
    let image = json!({ "type": "image_url", "image_url": { "url": "https://example.org/a.png", "detail": "low" } });
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": "x" }, image] });
    let body = json!({ "messages": [message], "logprobs": false, "top_logprobs": 0, "prediction": null, "functions": [],
        "logit_bias": { "50256": -100 }, "verbosity": "low", "max_completion_tokens": 497.0, "seed": 7.0, "n": 1.0 });
    client.post("/v1/chat/completions", body).await.expect(200);
    let part = json!({ "type": "input_image", "image_url": "https://example.org/a.png", "detail": "low" });
    let input = json!([{ "role": "user", "content": [{ "type": "input_text", "text": "x" }, part] }]);
    let body = json!({ "input": input, "text": { "verbosity": "low" }, "max_output_tokens": 497.0 });
    let response = client.post("/v1/responses", body).await.expect(200);
    assert_eq!((&response["top_logprobs"], &response["reasoning"]["summary"]), (&json!(0), &Value::Null));
    assert!(response["reasoning"].as_object().unwrap().contains_key("summary"));
    let fraction = client.post("/v1/responses", json!({ "input": "x", "max_output_tokens": 1.5 })).await;
    assert_eq!(fraction.error(400)["param"], "max_output_tokens");
    let requests = model.requests.lock().unwrap();
    for request in requests.iter() {
        assert_eq!((request.max_tokens, request.sampling.verbosity.as_deref()), (Some(497), Some("low")));
        let url = "https://example.org/a.png".to_owned();
        let image = ImageReference { url, description: None, detail: Some("low".to_owned()) };
        assert!(request.messages[0].parts.contains(&Part::Image(image)));
    }
    assert_eq!((requests[0].sampling.logit_bias["50256"].as_i64(), requests[0].sampling.seed), (Some(-100), Some(7)));
}

/// Options and content that the model would ignore are rejected by name, before a thread is created.
#[tokio::test]
async fn options_that_the_model_would_ignore_are_rejected() {
    let (server, model) = start_with_model().await;
    model.is_limited.store(true, Ordering::SeqCst);
    let client = server.client();
    let file = json!([{ "type": "text", "text": "x" }, { "type": "file", "file": { "file_id": "file-1" } }]);
    let input_file = json!([{ "type": "input_file", "file_url": "https://example.org/a.pdf" }]);
    let chat_file = json!({ "messages": [{ "role": "user", "content": file }] });
    let input_file = json!({ "input": [{ "role": "user", "content": input_file }] });
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let schema = json!({ "type": "json_schema", "name": "a", "schema": { "type": "object" } });
    for (path, body, param) in [
        ("/v1/chat/completions", with(chat("x"), "logit_bias", json!({ "1": 5 })), "logit_bias"),
        ("/v1/chat/completions", with(chat("x"), "verbosity", json!("low")), "verbosity"),
        ("/v1/chat/completions", with(chat("x"), "seed", json!(7)), "seed"),
        (
            "/v1/chat/completions",
            with(chat("x"), "response_format", json!({ "type": "json_object" })),
            "response_format",
        ),
        ("/v1/chat/completions", chat_file, "messages"),
        ("/v1/responses", json!({ "input": "x", "text": { "verbosity": "low" } }), "text.verbosity"),
        ("/v1/responses", json!({ "input": "x", "text": { "format": schema } }), "text.format"),
        ("/v1/responses", input_file, "input"),
    ] {
        for body in [body.clone(), streamed(body)] {
            let request = client.request("POST", path).header("threadkeep-thread", "new").json(&body);
            let error = send(request).await.error(400);
            assert_eq!(
                (&error["code"], &error["param"]),
                (&json!("unsupported_option"), &json!(param)),
                "{path} {body}"
            );
        }
    }
    assert_eq!(client.get("/v1/threads/new").await.status, 404);
    let hints =
        json!({ "messages": [{ "role": "user", "content": "x" }], "temperature": 0.5, "reasoning_effort": "low" });
    client.post("/v1/chat/completions", hints).await.expect(200);
    client
        .post("/v1/responses", json!({ "input": "x", "top_p": 0.5, "text": { "verbosity": "medium" } }))
        .await
        .expect(200);
}

/// The server's model answers requests for any model, and the answer contains its name; a strict server rejects other names.
#[tokio::test]
async fn answers_name_the_model_that_answered() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let body = |mut body: Value, model: &str| {
        body["model"] = json!(model);
        body
    };
    let (config, _) = config_with_model();
    let options = ServerOptions { strict_models: true, ..config.options };
    let strict = TestServer::start_with(TestConfig { options, ..config }).await;
    for (path, request) in [("/v1/chat/completions", chat("x")), ("/v1/responses", json!({ "input": "x" }))] {
        let answer = client.post(path, body(request.clone(), "gpt-9")).await.expect(200);
        assert_eq!(answer["model"], "echo");
        let chunks = parse_data(&client.post(path, streamed(body(request.clone(), "gpt-9"))).await.text);
        let model = if chunks[0]["model"].is_string() { &chunks[0]["model"] } else { &chunks[0]["response"]["model"] };
        assert_eq!(model, "echo");
        let refused = strict.client().post(path, body(request.clone(), "gpt-9")).await.error(404);
        assert_eq!((&refused["code"], &refused["param"]), (&json!("model_not_found"), &json!("model")));
        strict.client().post(path, body(request.clone(), "echo")).await.expect(200);
        strict.client().post(path, request).await.expect(200);
    }
    let embedding = json!({ "input": "x", "model": "other" });
    assert_eq!(strict.client().post("/v1/embeddings", embedding).await.code(404), "model_not_found");
}

/// A function tool of a response is strict if its schema can be closed, as in OpenAI's API.
#[tokio::test]
async fn tools_of_responses_are_strict_if_possible() {
    let (server, model) = start_with_model().await;
    let open = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
    let free = json!({ "type": "object", "properties": {}, "additionalProperties": true });
    let tools = json!([
        { "type": "function", "name": "look", "parameters": open },
        { "type": "function", "name": "note", "parameters": free },
        { "type": "function", "name": "own", "parameters": open, "strict": false },
    ]);
    let response = server.client().post("/v1/responses", json!({ "input": "x", "tools": tools })).await.expect(200);
    let strictness: Vec<_> = (0..3).map(|index| response["tools"][index]["strict"].clone()).collect();
    assert_eq!(strictness, [json!(true), json!(false), json!(false)]);
    assert_eq!(response["tools"][0]["parameters"]["additionalProperties"], false);
    assert_eq!(response["tools"][0]["parameters"]["required"], json!(["at"]));
    assert_eq!((&response["tools"][1]["parameters"], &response["tools"][2]["parameters"]), (&free, &open));
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests[0].tools[0].is_strict, Some(true));
    assert_eq!(requests[0].tools[0].parameters.read::<Value>().unwrap(), response["tools"][0]["parameters"]);
}

#[tokio::test]
async fn error_messages_use_the_terms_of_json() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    for (path, body, message) in [
        ("/v1/threads", json!({ "title": [] }), "invalid body: invalid type: array, expected a string"),
        ("/v1/search", json!({}), "invalid body: missing field `query`"),
        (
            "/v1/search",
            json!({ "query": "x", "limit": "3" }),
            "invalid body: invalid type: string \"3\", expected a number",
        ),
    ] {
        let error = client.post(path, body).await.error(400);
        let text = error["message"].as_str().unwrap();
        assert!(text.starts_with(message), "{text}");
        assert!(!text.contains(" at line ") && !text.contains("field"), "{text}");
    }
    let request = client.request("POST", "/v1/search").header("content-type", "application/json").body("{\"query\": }");
    let error = send(request).await.error(400);
    assert_eq!(error["message"], "invalid JSON body: expected value (line 1, column 11)");
}
