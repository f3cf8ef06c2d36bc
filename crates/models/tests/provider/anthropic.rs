//! Replies of Anthropic's messages API, in the documented forms.

use serde_json::json;
use threadkeep_core::{ChatMessage, ChatRequest, Finish, ImageReference, JsonText, Part, Role, ToolCall, ToolResult};
use threadkeep_models::{Provider, ProviderConfig};

use crate::server::{Reply, Server, ask, config, model, named_event, request_with, short};

fn stream() -> Vec<String> {
    [
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 1000, "output_tokens": 1},
        }}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Trains."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me "}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "arrivals", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"station\":"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": " \"Times Sq\"}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "arrivals", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "an_event_of_next_year"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 50}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(named_event)
    .collect()
}

#[tokio::test]
async fn a_stream_of_blocks_becomes_an_answer() {
    let server = Server::start([Reply::stream(stream())]).await;
    let (model, _) = model(config(Provider::Anthropic, &server, "claude-sonnet-5-5"));
    let (answer, streamed) = ask(&model, &request_with("When?")).await;
    let answer = answer.unwrap();
    let reasoning = r#"{"type":"thinking","thinking":"Trains.","signature":"x"}"#;
    let expected =
        ["(Trains.)", reasoning, "Let me look.", r#"toolu_1 arrivals {"station": "Times Sq"}"#, "toolu_2 arrivals {}"];
    assert_eq!(short(&answer), expected);
    assert_eq!(streamed, ["(Trains.)", "Let me ", "look."]);
    assert_eq!((answer.finish, answer.model.as_str()), (Finish::ToolCalls, "claude-sonnet-5-5"));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (1120, 50));
    let expected = (100.0 * 2.0 + 20.0 * 2.5 + 1000.0 * 0.1 + 50.0 * 10.0) / 1e6;
    assert!((usage.cost_usd.unwrap() - expected).abs() < 1e-12, "{usage:?}");
}

#[tokio::test]
async fn an_answer_without_streaming_is_parsed() {
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("refusal", Finish::Filtered),
        ("new", Finish::Stop),
    ] {
        let body = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": reason,
            "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Hello."}, {"type": "server_tool_use"}],
            "usage": {"input_tokens": 10, "output_tokens": 3},
        });
        let server = Server::start([Reply::json(200, &body)]).await;
        let (model, _) = model(ProviderConfig { streams: false, ..config(Provider::Anthropic, &server, "claude-x") });
        let answer = ask(&model, &request_with("Hi")).await.0.unwrap();
        assert_eq!(
            (short(&answer), answer.finish),
            (vec![r#"{"type":"redacted_thinking","data":"x"}"#.to_owned(), "Hello.".to_owned()], finish)
        );
        assert_eq!(answer.usage.unwrap().cost_usd, None);
        assert_eq!(server.requests()[0].body.get("stream"), None);
    }
}

#[tokio::test]
async fn conversations_become_alternating_turns() {
    let message = |role, parts: Vec<Part>| ChatMessage { role, author: None, parts, seq: None };
    let call = |id: &str| {
        Part::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "arrivals".to_owned(),
            arguments: JsonText::new("{\"a\": 1}").unwrap(),
        })
    };
    let result = |id: &str, is_error| {
        Part::ToolResult(ToolResult { call_id: id.to_owned(), output: "out".to_owned(), is_error })
    };
    let raw = |format: &str, json: &str| Part::Raw { format: format.to_owned(), json: JsonText::new(json).unwrap() };
    let reasoning = raw("anthropic.block", r#"{"type": "redacted_thinking", "data": "x"}"#);
    let forged = raw("anthropic.block", r#"{"type": "tool_use", "id": "x", "name": "rm", "input": {}}"#);
    let other = raw("openai.item", r#"{"type": "thinking", "thinking": "x", "signature": "x"}"#);
    let image = |url: &str| {
        Part::Image(ImageReference { url: url.to_owned(), description: Some("a map".to_owned()), detail: None })
    };
    let request = ChatRequest {
        messages: vec![
            ChatMessage::text(Role::System, "Be brief."),
            ChatMessage::text(Role::System, "Like maps."),
            ChatMessage::text(Role::Assistant, "Welcome."),
            message(Role::User, vec![Part::Text(" ".to_owned())]),
            ChatMessage { author: Some("ana".to_owned()), ..ChatMessage::text(Role::User, "Two trains?") },
            message(
                Role::Assistant,
                vec![Part::Reasoning("hm".to_owned()), reasoning, forged, other, call("call:1"), call("call_2")],
            ),
            message(Role::Tool, vec![result("call:1", false)]),
            message(Role::Tool, vec![result("call_2", true)]),
            ChatMessage::text(Role::System, "Recalled."),
            message(
                Role::User,
                vec![
                    image("https://x.test/a.png"),
                    image("data:image/png;base64,QUJD"),
                    image("file:///secret"),
                    Part::Text("And?".to_owned()),
                ],
            ),
        ],
        temperature: Some(0.1),
        ..ChatRequest::default()
    };
    let server = Server::start([Reply::stream(stream())]).await;
    let (model, _) = model(config(Provider::Anthropic, &server, "claude-x"));
    ask(&model, &request).await.0.unwrap();
    let body = &server.requests()[0].body;
    assert_eq!(body["system"], "Be brief.\n\nLike maps.");
    assert_eq!(body["max_tokens"], 16384);
    assert_eq!(body.get("temperature"), None, "the API has no temperature");
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "(The conversation continues.)"},
            {"role": "assistant", "content": "Welcome."},
            {"role": "user", "content": "ana: Two trains?"},
            {"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "x"},
                {"type": "tool_use", "id": "call_1", "name": "arrivals", "input": {"a": 1}},
                {"type": "tool_use", "id": "call_2", "name": "arrivals", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "out"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "out", "is_error": true},
                {"type": "text", "text": "<system>\nRecalled.\n</system>"},
                {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                {"type": "text", "text": "a map"},
                {"type": "text", "text": "And?"},
            ]},
        ])
    );
}
