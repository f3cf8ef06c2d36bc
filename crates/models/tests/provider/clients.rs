//! Compares our clients with the official Python clients of OpenAI and Anthropic. For the same conversations, the requests
//! must be equal, and replies, which are built with the official types, must be parsed to the same result.
//!
//! `cargo xtask test` installs the clients into the folder `python` of the target folder.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep_core::{
    AnswerFormat, ChatAnswer, ChatMessage, ChatRequest, Embedder, ImageReference, JsonText, Map, Part, Role, Sampling,
    ToolCall, ToolChoice, ToolDescription, ToolResult,
};
use threadkeep_models::{EmbedderConfig, EmbeddingModel, Provider, ProviderConfig, Secret};

use crate::server::{KEY, RecordedRequest, RecordingPacing, Reply, Server, ask, config, model, tool};

/// Runs the script and parses its output.
fn python(mode: &str, input: &Value) -> Value {
    let test = std::env::current_exe().expect("the test has a path");
    let target = test.ancestors().nth(3).expect("the test is in target/PROFILE/deps");
    let python = target.join("python/bin/python");
    assert!(python.exists(), "`cargo xtask test` installs the official clients into {}", python.display());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/provider/clients.py");
    let mut command = Command::new(python);
    command.args([script, mode]).stdin(Stdio::piped()).stdout(Stdio::piped());
    // The server is local: bypass any configured proxy.
    command.env("NO_PROXY", "*");
    let mut child = command.spawn().expect("Python starts");
    let mut pipe = child.stdin.take().expect("the input is piped");
    pipe.write_all(input.to_string().as_bytes()).expect("the script reads its input");
    drop(pipe);
    let output = child.wait_with_output().expect("the script ends");
    assert!(output.status.success(), "the script failed");
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

fn conversation(provider: Provider) -> ChatRequest {
    let message = |role, parts| ChatMessage { role, author: None, parts, seq: None };
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "arrivals".to_owned(),
        arguments: JsonText::new(r#"{"station": "Times Sq"}"#).expect("this is JSON"),
    };
    let result = ToolResult { call_id: "call_1".to_owned(), output: "in 3 minutes".to_owned(), is_error: false };
    // Anthropic's API does not support `detail` for images.
    let detail = (provider != Provider::Anthropic).then(|| "low".to_owned());
    let image = ImageReference { url: "https://example.com/map.png".to_owned(), description: None, detail };
    let thought = Part::Raw {
        format: "anthropic.block".to_owned(),
        json: JsonText::new(r#"{"type":"thinking","thinking":"Trains.","signature":"c2lnbmVk"}"#)
            .expect("this is JSON"),
    };
    // Anthropic's API has no author names.
    let author = (provider != Provider::Anthropic).then(|| "ana".to_owned());
    ChatRequest {
        messages: vec![
            ChatMessage::text(Role::System, "Be brief."),
            ChatMessage { author, ..ChatMessage::text(Role::User, "Next train?") },
            message(Role::Assistant, vec![thought, Part::Text("Let me look.".to_owned()), Part::ToolCall(call)]),
            message(Role::Tool, vec![Part::ToolResult(result)]),
            ChatMessage::text(Role::Assistant, "In 3 minutes."),
            message(Role::User, vec![Part::Text("And here?".to_owned()), Part::Image(image)]),
        ],
        tools: vec![ToolDescription {
            is_strict: (provider != Provider::Anthropic).then_some(true),
            ..tool("arrivals")
        }],
        ..ChatRequest::default()
    }
}

/// Returns the provider and request of a case, and whether it is streamed.
fn request(case: &str) -> (Provider, ChatRequest, bool) {
    let with_limits = |provider| ChatRequest {
        tool_choice: ToolChoice::Required,
        // Anthropic's current API does not support a temperature.
        temperature: (provider != Provider::Anthropic).then_some(0.25),
        max_tokens: Some(500),
        ..conversation(provider)
    };
    let schema = || {
        let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"], "additionalProperties": false});
        JsonText::from(&schema)
    };
    let with_format = |provider| ChatRequest {
        format: Some(AnswerFormat::Schema {
            name: "place".to_owned(),
            description: None,
            schema: schema(),
            is_strict: (provider == Provider::OpenAi).then_some(true),
        }),
        parallel_tool_calls: Some(false),
        reasoning_effort: Some("low".to_owned()),
        sampling: match provider {
            // Of these parameters, Anthropic's current API supports only stop sequences.
            Provider::Anthropic => Sampling { stop: vec!["END".to_owned()], ..Sampling::default() },
            _ => Sampling {
                top_p: Some(0.5),
                frequency_penalty: Some(0.25),
                presence_penalty: Some(-0.5),
                seed: Some(7),
                stop: vec!["END".to_owned()],
                logit_bias: Map::from_iter([("50256".to_owned(), json!(-100))]),
                verbosity: Some("low".to_owned()),
            },
        },
        ..conversation(provider)
    };
    let named =
        |provider| ChatRequest { tool_choice: ToolChoice::Named("arrivals".to_owned()), ..conversation(provider) };
    match case {
        "openai_whole" => (Provider::OpenAi, with_limits(Provider::OpenAi), false),
        "openai_stream" => (Provider::OpenAi, named(Provider::OpenAi), true),
        "anthropic_whole" => (Provider::Anthropic, with_limits(Provider::Anthropic), false),
        "anthropic_stream" => (Provider::Anthropic, named(Provider::Anthropic), true),
        "openai_json_schema" => (Provider::OpenAi, with_format(Provider::OpenAi), false),
        "anthropic_json_schema" => (Provider::Anthropic, with_format(Provider::Anthropic), false),
        "groq_stream" => {
            let messages = vec![ChatMessage::text(Role::User, "Hi")];
            (Provider::Groq, ChatRequest { messages, max_tokens: Some(500), ..ChatRequest::default() }, true)
        }
        other => panic!("unknown case {other}"),
    }
}

const CASES: [&str; 7] = [
    "openai_whole",
    "openai_stream",
    "openai_json_schema",
    "groq_stream",
    "anthropic_whole",
    "anthropic_stream",
    "anthropic_json_schema",
];

/// Returns the parsed answer in the form of the script's output.
fn parsed_answer(answer: &ChatAnswer, case: &str) -> Value {
    let calls: Vec<Value> =
        answer.tool_calls().map(|call| json!([call.id, call.name, call.arguments.as_str()])).collect();
    let usage = answer.usage.as_ref().expect("every reply includes usage");
    let mut parsed_answer = json!({
        "text": answer.text(),
        "calls": if case == "groq_stream" { Value::Null } else { json!(calls) },
        "tokens": [usage.input_tokens, usage.output_tokens],
        "model": answer.model,
    });
    if case.starts_with("anthropic") {
        let thoughts = answer.parts.iter().filter_map(|part| match part {
            Part::Raw { json, .. } => Some(json.read::<Value>().expect("a block is JSON")),
            _ => None,
        });
        parsed_answer["thoughts"] = thoughts.collect();
    }
    parsed_answer
}

/// Parses the arguments of calls, because the whitespace in Anthropic's arguments is not significant.
fn with_parsed_arguments(mut parsed_answer: Value) -> Value {
    for call in parsed_answer["calls"].as_array_mut().into_iter().flatten() {
        let arguments = call[2].as_str().unwrap_or_default();
        call[2] = serde_json::from_str(arguments).expect("arguments are JSON");
    }
    parsed_answer
}

fn assert_equal_requests(case: &str, ours: &RecordedRequest, theirs: &RecordedRequest) {
    assert_eq!(ours.line, theirs.line, "{case}");
    assert_eq!(ours.body, theirs.body, "{case}");
    for header in ["authorization", "x-api-key", "anthropic-version", "content-type"] {
        assert_eq!(ours.headers.get(header), theirs.headers.get(header), "{case}: {header}");
    }
}

#[tokio::test]
async fn requests_and_replies_match_the_official_clients() {
    if std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == "python")) {
        return;
    }
    let replies = python("replies", &Value::Null);
    let reply = |case: &str| {
        let text = replies[case].as_str().expect("there is a reply for each case");
        if text.starts_with('{') { Reply::new(200, "application/json", [text]) } else { Reply::stream([text]) }
    };
    let mut servers = BTreeMap::new();
    let mut ours = BTreeMap::new();
    for case in CASES {
        let server = Server::start([reply(case), reply(case)]).await;
        let (provider, request, streams) = request(case);
        let name = if provider == Provider::Anthropic { "claude-sonnet-5-5" } else { "gpt-4o-mini" };
        let config = ProviderConfig { streams, ..config(provider, &server, name) };
        let answer = ask(&model(config).0, &request).await.0.expect("the reply is valid");
        ours.insert(case, parsed_answer(&answer, case));
        servers.insert(case, server);
    }
    let server = Server::start([reply("embeddings"), reply("embeddings")]).await;
    let config = EmbedderConfig {
        base_url: format!("{}/v1", server.url),
        dimensions: Some(2),
        ..EmbedderConfig::new(Provider::OpenAi, "text-embedding-3-small", Secret::new(KEY))
    };
    let embedder =
        EmbeddingModel::with_pacing(config, Arc::new(RecordingPacing::default())).expect("the address is valid");
    let embeddings = embedder.embed(&["one".to_owned(), "two".to_owned()]).await.expect("the reply is valid");
    let vectors: Vec<Value> = embeddings.iter().map(|embedding| json!(embedding.vector)).collect();
    ours.insert("embeddings", json!({"vectors": vectors}));
    servers.insert("embeddings", server);

    let urls: BTreeMap<&str, &str> = servers.iter().map(|(case, server)| (*case, server.url.as_str())).collect();
    let urls = json!(urls);
    let theirs = tokio::task::spawn_blocking(move || python("send", &urls)).await.expect("the script does not panic");
    for (case, server) in &servers {
        let requests = server.requests();
        assert_equal_requests(case, &requests[0], &requests[1]);
        assert_eq!(with_parsed_arguments(ours[case].clone()), with_parsed_arguments(theirs[*case].clone()), "{case}");
    }
}
