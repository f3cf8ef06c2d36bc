//! Failures of providers: waits, retries, errors, and closed connections.

use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_core::ModelError;
use threadkeep_models::{ConnectError, HttpOptions, Ping, Provider, ProviderConfig, ProviderModel, Secret};

use crate::server::{KEY, RecordingPacing, Reply, Server, ask, config, event, model, named_event, request_with, short};

fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn text_reply(text: &str) -> Reply {
    Reply::stream([event(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}))])
}

fn waits(pacing: &RecordingPacing) -> Vec<u64> {
    let waits = pacing.0.lock().expect("the lock is not poisoned");
    waits.iter().map(|wait| u64::try_from(wait.as_millis()).expect("the wait fits")).collect()
}

/// Returns the error of a call that gets these replies, and the waits before the error.
async fn failing(provider: Provider, replies: Vec<Reply>) -> (ModelError, Vec<u64>) {
    let server = Server::start(replies).await;
    let (model, pacing) = model(config(provider, &server, "m"));
    let error = ask(&model, &request_with("Hi")).await.0.expect_err("every reply is a failure");
    assert!(server.has_answered_all(), "{error}");
    assert!(!format!("{error:?}").contains(KEY));
    (error, waits(&pacing))
}

#[tokio::test]
async fn temporary_failures_are_retried_after_the_requested_wait() {
    let limited = error("tokens", Some("rate_limit_exceeded"), "Rate limit reached");
    for (first, expected) in [
        (Reply::json(429, &limited).header("retry-after", "7"), 7_000),
        (Reply::json(429, &limited).header("retry-after-ms", "20"), 20),
        (Reply::json(429, &limited), 500),
        (Reply::json(500, &error("server_error", None, "boom")), 500),
        (Reply::new(503, "text/html", ["<html>down</html>"]), 500),
        (
            Reply::json(529, &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
            500,
        ),
        (Reply::json(400, &error("x", None, "try again")).header("x-should-retry", "true"), 500),
        (Reply::stream(["data: {\"choices\":[]}\n\n"]), 500),
        (Reply::new(200, "application/json", [""; 0]).header("content-length", "10"), 500),
    ] {
        let server = Server::start([first.clone(), text_reply("Hello.")]).await;
        let (model, pacing) = model(config(Provider::Compatible, &server, "m"));
        let answer = ask(&model, &request_with("Hi")).await.0;
        assert_eq!(short(&answer.unwrap()), ["Hello."], "{first:?}");
        assert_eq!(waits(&pacing), [expected], "{first:?}");
        let requests = server.requests();
        assert_eq!(requests[0].body, requests[1].body, "the retry repeats the request");
    }
}

#[tokio::test]
async fn retries_are_limited() {
    let down = || Reply::json(503, &error("server_error", None, "down"));
    let (error, waits) = failing(Provider::OpenAi, vec![down(), down(), down()]).await;
    assert_eq!(waits, [500, 1_000]);
    assert_eq!(error.to_string(), "model m unavailable: down");
    let long_wait = Reply::json(429, &Value::Null).header("retry-after", "3600");
    let (error, waits) = failing(Provider::OpenAi, vec![long_wait]).await;
    assert!(waits.is_empty());
    match error {
        ModelError::RateLimited { retry_after, .. } => assert_eq!(retry_after, Some(Duration::from_secs(3600))),
        other => panic!("{other}"),
    }
    let never = down().header("x-should-retry", "false");
    assert_eq!(failing(Provider::OpenAi, vec![never]).await.1, [0; 0]);
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let too_long =
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
    for (status, body, code, detail) in [
        (400, error("invalid_request_error", None, "bad temperature"), "model_refused", "bad temperature"),
        (
            401,
            error("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided: sk-test-0123456789."),
            "model_unauthorized",
            "Incorrect API key provided: [key].",
        ),
        (403, json!({"error": "no access"}), "model_unauthorized", "no access"),
        (
            404,
            error("invalid_request_error", Some("model_not_found"), "no such model"),
            "model_refused",
            "no such model",
        ),
        (
            429,
            error("insufficient_quota", Some("insufficient_quota"), "You exceeded your quota"),
            "model_refused",
            "exceeded your quota",
        ),
        (
            400,
            error("invalid_request_error", Some("context_length_exceeded"), too_long),
            "context_too_long",
            "too long",
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
            "context_too_long",
            "too long",
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error", "n_ctx": 4096}}),
            "context_too_long",
            "too long",
        ),
        (
            413,
            json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
            "context_too_long",
            "too long",
        ),
        (400, Value::String("plain words".to_owned()), "model_refused", "plain words"),
        (422, json!({"detail": "missing field"}), "model_refused", "missing field"),
        (302, json!({}), "model_refused", "{}"),
    ] {
        let (error, waits) =
            failing(Provider::OpenAi, vec![Reply::json(status, &body).header("location", "http://elsewhere.test/")])
                .await;
        assert_eq!(error.code(), code, "{body}");
        assert!(error.to_string().contains(detail), "{error}");
        assert!(waits.is_empty() && !error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn rejected_optional_parameters_are_omitted() {
    let refusal = |name: &str| {
        let error = json!({"error": {
            "message": format!("Unsupported value: '{name}' is not supported with this model."),
            "type": "invalid_request_error", "param": name, "code": "unsupported_value",
        }});
        Reply::json(400, &error)
    };
    let refusals = [refusal("temperature"), refusal("reasoning_effort")];
    let server =
        Server::start(refusals.into_iter().chain([text_reply("Hello."), text_reply("Again."), refusal("stop")])).await;
    let (model, pacing) = model(config(Provider::OpenAi, &server, "m"));
    let request = threadkeep_core::ChatRequest {
        temperature: Some(0.1),
        reasoning_effort: Some("low".to_owned()),
        sampling: threadkeep_core::Sampling { stop: vec!["END".to_owned()], ..Default::default() },
        ..request_with("Hi")
    };
    assert_eq!(short(&ask(&model, &request).await.0.unwrap()), ["Hello."]);
    assert_eq!(short(&ask(&model, &request).await.0.unwrap()), ["Again."]);
    let error = ask(&model, &request).await.0.unwrap_err();
    assert_eq!(error.code(), "model_refused", "`stop` is not optional");
    let requests = server.requests();
    let is_sent = |name: &str| requests.iter().map(|request| request.body.get(name).is_some()).collect::<Vec<_>>();
    assert_eq!(
        is_sent("temperature"),
        [true, false, false, false, false],
        "later requests omit the rejected parameter"
    );
    assert_eq!(is_sent("reasoning_effort"), [true, true, false, false, false]);
    assert_eq!(is_sent("stop"), [true; 5]);
    assert!(waits(&pacing).is_empty());
}

#[tokio::test]
async fn errors_within_a_stream_are_errors() {
    let openai = |error: Value| Reply::stream([event(&json!({"error": error}))]);
    let (error, waits) = failing(
        Provider::Groq,
        vec![openai(json!({"message": "no", "type": "invalid_request_error", "status_code": 400}))],
    )
    .await;
    assert_eq!((error.to_string().as_str(), waits.len()), ("model m rejected the request (400): no", 0));
    let overloaded = || {
        Reply::stream([
            named_event(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}}),
            ),
            named_event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
        ])
    };
    let (error, waits) = failing(Provider::Anthropic, vec![overloaded(), overloaded(), overloaded()]).await;
    assert_eq!((error.to_string().as_str(), waits.len()), ("model m unavailable: Overloaded", 2));
}

#[tokio::test]
async fn text_before_a_lost_connection_is_discarded() {
    let cut = Reply::stream([event(
        &json!({"choices": [{"index": 0, "delta": {"content": "It is n"}, "finish_reason": null}]}),
    )]);
    let server = Server::start([cut, text_reply("It is noon.")]).await;
    let (model, pacing) = model(config(Provider::Compatible, &server, "m"));
    let (answer, streamed) = ask(&model, &request_with("What time?")).await;
    assert_eq!(short(&answer.unwrap()), ["It is noon."]);
    assert_eq!(streamed, ["It is n", "RESTARTED", "It is noon."]);
    assert_eq!(waits(&pacing), [500]);
}

#[tokio::test]
async fn invalid_answers_are_reported() {
    for (reply, detail) in [
        (Reply::new(200, "application/json", ["<html>"]), "not valid JSON"),
        (Reply::json(200, &json!({})), "no choices"),
        (Reply::json(200, &json!({"choices": [{}]})), "no message in the first choice"),
        (Reply::stream(["data: {\n\n"]), "an event is not valid JSON"),
    ] {
        let (error, _) = failing(Provider::Compatible, vec![reply]).await;
        assert!(error.to_string().starts_with("model m returned an invalid answer"), "{error}");
        assert!(error.to_string().contains(detail), "{error}");
    }
    let (error, _) = failing(Provider::Anthropic, vec![Reply::json(200, &json!({"content": "x"}))]).await;
    assert!(error.to_string().contains("no content"), "{error}");
}

#[tokio::test]
async fn an_endless_answer_is_rejected() {
    let word = event(&json!({"choices": [{"index": 0, "delta": {"content": "word "}}]}));
    let endless = [
        Reply::stream([word.repeat(2_000)]).then_hangs(),
        Reply::stream(["data: ".to_owned() + &"x".repeat(200_000)]).then_hangs(),
        Reply::new(200, "application/json", ["x".repeat(200_000)]).then_hangs(),
    ];
    for reply in endless {
        let mut server = Server::start([reply]).await;
        let mut config = config(Provider::Compatible, &server, "m");
        config.http.answer_bytes = 100_000;
        let (model, _) = model(config);
        let error = ask(&model, &request_with("Hi")).await.0.unwrap_err();
        assert_eq!(error.to_string(), "model m returned an invalid answer: the response exceeds the size limit");
        server.closed.recv().await.unwrap();
    }
}

#[tokio::test]
async fn timeouts_limit_silence_and_total_time() {
    let silent = || Reply::stream([event(&json!({"choices": []}))]).then_hangs();
    let server = Server::start([silent(), silent(), silent()]).await;
    let mut silence = config(Provider::Compatible, &server, "m");
    silence.http.silence_timeout = Duration::from_millis(40);
    let error = ask(&model(silence).0, &request_with("Hi")).await.0.unwrap_err();
    assert_eq!(error.to_string(), "model m did not respond within 40 ms");
    assert!(server.has_answered_all(), "timeouts are retried");
    let mut server = Server::start([silent()]).await;
    let mut total = config(Provider::Compatible, &server, "m");
    total.http.total_timeout = Duration::from_millis(40);
    let error = ask(&model(total).0, &request_with("Hi")).await.0.unwrap_err();
    assert_eq!(error.to_string(), "model m did not respond within 40 ms");
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let word = event(&json!({"choices": [{"index": 0, "delta": {"content": "Well"}}]}));
    let mut server = Server::start([Reply::stream([word]).then_hangs()]).await;
    let (model, _) = model(config(Provider::OpenAi, &server, "m"));
    let request = request_with("Hi");
    let (delta_sender, mut deltas) = tokio::sync::mpsc::unbounded_channel();
    let mut sink = move |_| delta_sender.send(()).unwrap();
    {
        use threadkeep_core::ChatModel;
        let call = model.answer(&request, &mut sink);
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            first = deltas.recv() => first.unwrap(),
        }
    }
    server.closed.recv().await.unwrap();
    assert_eq!(server.requests().len(), 1, "nothing was retried");
}

#[tokio::test]
async fn an_unreachable_provider_is_unavailable() {
    let server = Server::start([]).await;
    let mut config = config(Provider::Ollama, &server, "m");
    // Nothing listens on the port of a dropped listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    config.base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (model, pacing) = model(config);
    let error = ask(&model, &request_with("Hi")).await.0.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("refused"), "{error}");
    assert_eq!(waits(&pacing), [500, 1_000]);
    assert!(matches!(model.ping().await, Ping::Unreachable(detail) if detail.contains("refused")));
}

#[tokio::test]
async fn a_ping_reports_the_state_of_the_provider() {
    let models = json!({"object": "list", "data": [{"id": "llama3.2:latest", "object": "model"}, {"id": "m"}]});
    for (model_name, reply, expected) in [
        ("m", Reply::json(200, &models), Ping::Ready),
        ("llama3.2", Reply::json(200, &models), Ping::Ready),
        (
            "other",
            Reply::json(200, &models),
            Ping::UnknownModel { known: vec!["llama3.2:latest".to_owned(), "m".to_owned()] },
        ),
        ("m", Reply::json(404, &Value::Null), Ping::NoModelList),
        ("m", Reply::json(200, &Value::Null), Ping::NoModelList),
        (
            "m",
            Reply::json(401, &error("x", None, "bad key sk-test-0123456789")),
            Ping::Unauthorized("bad key [key]".to_owned()),
        ),
        ("m", Reply::json(500, &error("x", None, "boom")), Ping::Unreachable("boom".to_owned())),
    ] {
        let server = Server::start([reply]).await;
        assert_eq!(model(config(Provider::Groq, &server, model_name)).0.ping().await, expected);
        let recorded = &server.requests()[0];
        assert_eq!(recorded.line, "GET /v1/models HTTP/1.1");
        assert_eq!(recorded.headers["authorization"], format!("Bearer {KEY}"));
    }
}

#[test]
fn invalid_addresses_and_proxies_are_rejected_early() {
    let config = |base_url: &str| ProviderConfig {
        base_url: base_url.to_owned(),
        ..ProviderConfig::new(Provider::Compatible, "m", Secret::new(KEY))
    };
    assert_eq!(ProviderModel::new(config("")).unwrap_err(), ConnectError::Address(String::new()));
    let http = HttpOptions { proxy: Some("::".to_owned()), ..HttpOptions::default() };
    let proxied = ProviderConfig { http, ..config("https://example.com/v1") };
    assert!(matches!(ProviderModel::new(proxied).unwrap_err(), ConnectError::Proxy(_)));
    let model = ProviderModel::new(config("https://example.com/v1")).unwrap();
    assert!(!format!("{model:?} {:?}", config("x")).contains(KEY));
}
