//! Replies of the chat completions API, in the documented forms of OpenAI, Groq, Ollama and others.

use serde_json::{Value, json};
use threadkeep_core::{ChatMessage, ChatRequest, Finish, JsonText, Part, Role, TokenDetails};
use threadkeep_models::Provider;

use crate::server::{Reply, Server, ask, config, event, model, request_with, short};

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    event(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "on_demand", "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    }))
}

const DONE: &str = "data: [DONE]\n\n";

fn usage(usage: &Value) -> String {
    event(&json!({"id": "chatcmpl-1", "model": "gpt-4o-mini-2024-07-18", "choices": [], "usage": usage}))
}

fn call(index: u64, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let Some(id) = id {
        call["id"] = json!(id);
        call["type"] = json!("function");
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    json!({"tool_calls": [call]})
}

#[tokio::test]
async fn text_and_split_calls_are_assembled() {
    let stream = [
        chunk(&json!({"role": "assistant", "content": "", "refusal": null}), None),
        chunk(&json!({"content": "Let me "}), None),
        chunk(&json!({"content": "look."}), None),
        chunk(&call(0, Some("call_a"), Some("arrivals"), ""), None),
        chunk(&call(0, None, None, "{\"station\""), None),
        chunk(&call(1, Some("call_b"), Some("arrivals"), "{\"station\": \"Córd"), None),
        chunk(&call(0, None, None, ":  \"Times Sq\"}"), None),
        chunk(&call(1, None, None, "oba\"}"), None),
        chunk(&json!({}), Some("tool_calls")),
        usage(&json!({"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240, "prompt_tokens_details": {"cached_tokens": 1000}, "completion_tokens_details": {"reasoning_tokens": 30}})),
        DONE.to_owned(),
    ]
    .concat();
    // The chunks split a line and a character.
    let pieces: Vec<Vec<u8>> = stream.as_bytes().chunks(37).map(<[u8]>::to_vec).collect();
    let server = Server::start([Reply::stream(pieces)]).await;
    let (model, _) = model(config(Provider::OpenAi, &server, "gpt-4o-mini"));
    let (answer, streamed) = ask(&model, &request_with("When?")).await;
    let answer = answer.unwrap();
    let expected =
        ["Let me look.", r#"call_a arrivals {"station":  "Times Sq"}"#, r#"call_b arrivals {"station": "Córdoba"}"#];
    assert_eq!(short(&answer), expected);
    assert_eq!(streamed.concat(), "Let me look.");
    assert_eq!((answer.finish, answer.model.as_str()), (Finish::ToolCalls, "gpt-4o-mini-2024-07-18"));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (1200, 40));
    assert_eq!(usage.details, TokenDetails { cached_input: 1000, reasoning: 30, ..TokenDetails::default() });
    // 200 plain, 1,000 cached and 40 output tokens at $0.15, $0.075 and $0.60 per million.
    assert!((usage.cost_usd.unwrap() - 0.000_129).abs() < 1e-12, "{usage:?}");
    assert!(usage.duration_ms.is_some());
}

#[tokio::test]
async fn nul_characters_are_replaced() {
    let stream = [
        chunk(&json!({"content": "a\0b", "reasoning": "\0"}), None),
        chunk(&json!({"content": "c"}), Some("stop")),
        DONE.to_owned(),
    ];
    let server = Server::start([Reply::stream(stream)]).await;
    let (model, _) = model(config(Provider::OpenAi, &server, "gpt-4o-mini"));
    let (answer, streamed) = ask(&model, &request_with("Hi")).await;
    assert_eq!(short(&answer.unwrap()).last().unwrap(), "a\u{fffd}bc");
    assert!(!streamed.concat().contains('\0') && streamed.concat().contains("a\u{fffd}b"), "{streamed:?}");
}

#[tokio::test]
async fn a_model_without_a_price_has_no_cost() {
    let stream = [
        chunk(&json!({"content": "Hi"}), Some("stop")),
        usage(&json!({"prompt_tokens": 3, "completion_tokens": 1})),
        DONE.to_owned(),
    ];
    let server = Server::start([Reply::stream(stream)]).await;
    let (model, _) = model(config(Provider::Compatible, &server, "my-model"));
    let usage = ask(&model, &request_with("Hi")).await.0.unwrap().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.cost_usd), (3, None));
}

#[tokio::test]
async fn nonstandard_call_pieces_are_assembled() {
    let no_index = |mut call: Value| {
        call["tool_calls"][0].as_object_mut().unwrap().remove("index");
        call
    };
    let streams = [
        // Without an index.
        vec![
            chunk(&no_index(call(0, Some("a"), Some("arrivals"), "{\"station\"")), None),
            chunk(&no_index(call(0, None, None, ": \"x\"}")), None),
            chunk(&no_index(call(0, Some("b"), Some("arrivals"), "{}")), Some("stop")),
        ],
        // The same index for all calls.
        vec![
            chunk(&call(0, Some("a"), Some("arrivals"), "{\"station\": \"x\"}"), None),
            chunk(&call(0, Some("b"), Some("arrivals"), "{}"), Some("tool_calls")),
        ],
        // Id and name repeated in each piece.
        vec![
            chunk(&call(0, Some("a"), Some("arrivals"), "{\"station\":"), None),
            chunk(&call(0, Some("a"), Some("arrivals"), " \"x\"}"), None),
            chunk(&call(1, Some("b"), Some("arrivals"), ""), Some("tool_calls")),
        ],
        // Arguments as an object.
        vec![
            chunk(
                &json!({"tool_calls": [{"id": "a", "function": {"name": "arrivals", "arguments": {"station": "x"}}}]}),
                None,
            ),
            chunk(
                &json!({"tool_calls": [{"id": "b", "function": {"name": "arrivals", "arguments": null}}]}),
                Some("stop"),
            ),
        ],
    ];
    for stream in streams {
        let server = Server::start([Reply::stream(stream.clone())]).await;
        let (model, _) = model(config(Provider::Ollama, &server, "m"));
        let answer = ask(&model, &request_with("When?")).await.0.unwrap();
        let calls: Vec<String> = short(&answer).iter().map(|call| call.replace(' ', "")).collect();
        assert_eq!(calls, [r#"aarrivals{"station":"x"}"#, "barrivals{}"], "{stream:?}");
        assert_eq!(answer.finish, Finish::ToolCalls);
    }
}

#[tokio::test]
async fn an_answer_without_streaming_is_parsed() {
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "openai/gpt-oss-120b",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
            "role": "assistant", "content": "One moment.", "reasoning": "They ask for trains.",
            "tool_calls": [{"id": "call_a", "type": "function", "function": {"name": "arrivals", "arguments": "{\"station\":\"x\"}"}}],
        }}],
        "usage": {"queue_time": 0.1, "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        "service_tier": "on_demand", "x_groq": {"id": "req_1"},
    });
    let server = Server::start([Reply::json(200, &body)]).await;
    let (model, _) = model(config(Provider::Groq, &server, "openai/gpt-oss-120b"));
    let (answer, streamed) = ask(&model, &request_with("When?")).await;
    let answer = answer.unwrap();
    let expected = ["(They ask for trains.)", "One moment.", r#"call_a arrivals {"station":"x"}"#];
    assert_eq!(short(&answer), expected);
    assert_eq!(streamed, ["One moment."], "without streaming, the text is one piece");
    let cost = answer.usage.unwrap().cost_usd.unwrap();
    assert!((cost - (10.0 * 0.15 + 5.0 * 0.6) / 1e6).abs() < 1e-15);
}

#[tokio::test]
async fn reasoning_refusals_and_finish_reasons_are_parsed() {
    for (deltas, reason, expected, finish) in [
        (
            vec![
                json!({"reasoning_content": "Hm. "}),
                json!({"reasoning_content": "Yes."}),
                json!({"content": "Yes."}),
            ],
            "stop",
            vec!["(Hm. Yes.)", "Yes."],
            Finish::Stop,
        ),
        (vec![json!({"reasoning": "Hm."}), json!({"content": "No"})], "length", vec!["(Hm.)", "No"], Finish::Length),
        (vec![json!({"refusal": "I will not."})], "stop", vec!["I will not."], Finish::Stop),
        (vec![json!({"content": "As"})], "content_filter", vec!["As"], Finish::Filtered),
        (vec![json!({"content": "x"})], "a_reason_of_next_year", vec!["x"], Finish::Stop),
        (vec![json!({"content": [{"type": "text", "text": "parts"}]})], "stop", vec!["parts"], Finish::Stop),
    ] {
        let mut stream: Vec<String> = deltas.iter().map(|delta| chunk(delta, None)).collect();
        stream.push(chunk(&json!({}), Some(reason)));
        // The finish reason ends the answer, even without OpenAI's final `[DONE]`.
        let server = Server::start([Reply::stream(stream)]).await;
        let (model, _) = model(config(Provider::Compatible, &server, "m"));
        let (answer, streamed) = ask(&model, &request_with("When?")).await;
        let answer = answer.unwrap();
        assert_eq!((short(&answer), answer.finish), (expected.iter().map(|&text| text.to_owned()).collect(), finish));
        assert_eq!(streamed.concat().replace(")(", ""), expected.concat());
        assert_eq!(answer.usage, None);
    }
}

#[tokio::test]
async fn groqs_separate_usage_is_parsed() {
    let last = event(&json!({
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "x_groq": {"id": "req_1", "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    }));
    let server = Server::start([Reply::stream([chunk(&json!({"content": "Hi"}), None), last, DONE.to_owned()])]).await;
    let (model, _) = model(config(Provider::Groq, &server, "openai/gpt-oss-20b"));
    let usage = ask(&model, &request_with("Hi")).await.0.unwrap().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 2));
}

#[tokio::test]
async fn files_and_audio_are_sent_only_to_providers_that_support_them() {
    let part = |format: &str, json: &Value| Part::Raw { format: format.to_owned(), json: JsonText::from(json) };
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}});
    let file = json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}});
    let as_item = json!({"type": "input_file", "file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"});
    let parts = vec![
        Part::Text("What is it?".to_owned()),
        part("openai.chat", &sound),
        part("openai.content", &as_item),
        part("openai.content", &json!({"type": "input_file", "file_url": "https://x.test/a.pdf"})),
        part("openai.item", &file),
    ];
    for (provider, supports_files) in [(Provider::OpenAi, true), (Provider::Compatible, true), (Provider::Groq, false)]
    {
        let server =
            Server::start([Reply::stream([chunk(&json!({"content": "A."}), Some("stop")), DONE.to_owned()])]).await;
        let (model, _) = model(config(provider, &server, "m"));
        let message = ChatMessage { parts: parts.clone(), ..ChatMessage::text(Role::User, "") };
        let request = ChatRequest { messages: vec![message], ..ChatRequest::default() };
        ask(&model, &request).await.0.unwrap();
        let content = &server.requests()[0].body["messages"][0]["content"];
        let parts_json = json!([{"type": "text", "text": "What is it?"}, sound, file]);
        assert_eq!(*content, if supports_files { parts_json } else { json!("What is it?") }, "{provider:?}");
    }
}
