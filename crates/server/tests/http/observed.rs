//! Metrics for Prometheus, and traces that a real local collector receives.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use threadkeep::context::{RecallFrom, RecallPolicy};
use threadkeep::{Definition, FnTool, JsonText, ToolError, ToolOutput};
use threadkeep_server::{KeyRole, ServerOptions, TelemetryOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::TestServer;
use crate::assistants::test_assistant;
use crate::server::{TIMEOUT, TestConfig, send};
use crate::v1::{Echo, LengthEmbedder};

#[tokio::test]
async fn metrics_count_requests_and_model_calls_without_names() {
    let config = TestConfig { model: Some(Arc::new(Echo::default())), ..TestConfig::default() };
    let server = TestServer::start_with(config).await;
    let admin = server.client_with_new_key("acme-tenant", None, &[KeyRole::Admin]).await;
    let reader = server.client_with_new_key("acme-tenant", Some("ana-user"), &[KeyRole::Write]).await;
    let thread = reader.new_thread().await;
    reader.new_thread().await;
    reader.get("/v1/threads/no-such-thread").await.error(404);
    let request = json!({ "model": "echo", "messages": [{ "role": "user", "content": "The safe opens with 1234." }] });
    reader.post("/v1/chat/completions", request.clone()).await.expect(200);
    reader
        .post("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "fail" }] }))
        .await
        .error(503);
    let operator = server.client_with_new_key("acme-tenant", None, &[KeyRole::Operate]).await;
    for tenant_client in [&reader, &admin] {
        assert_eq!(tenant_client.get("/metrics").await.code(403), "role_missing");
    }
    assert_eq!(server.anonymous_client().get("/metrics").await.code(401), "invalid_key");
    let metrics = operator.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    for line in [
        "threadkeep_requests_total{method=\"POST\",route=\"/v1/threads\",status=\"201\"} 2",
        "threadkeep_requests_total{method=\"GET\",route=\"/v1/threads/{id}\",status=\"404\"} 1",
        "threadkeep_request_seconds_count{route=\"/v1/threads\"} 2",
        "threadkeep_model_calls_total{model=\"echo\",outcome=\"answered\"} 1",
        "threadkeep_model_tokens_total{model=\"echo\",kind=\"input\"} 7",
        "threadkeep_model_tokens_total{model=\"echo\",kind=\"output\"} 3",
        "# EOF",
    ] {
        assert!(metrics.text.lines().any(|found| found == line), "{line}: {}", metrics.text);
    }
    for hidden in [thread.as_str(), "safe", "ana-user", "acme-tenant", "no-such-thread"] {
        assert!(!metrics.text.contains(hidden), "{hidden}");
    }
    assert_eq!(operator.get("/v1/threads").await.code(403), "role_missing", "the role only permits reading metrics");
}

/// A collector that records what it receives.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    /// The head and the body of each request.
    pub(crate) received: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let recorded = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, Arc::clone(&recorded)));
            }
        });
        Self { endpoint, received }
    }

    /// Returns the options of a server that sends traces to this collector.
    pub(crate) fn options(&self) -> ServerOptions {
        let telemetry = TelemetryOptions {
            endpoint: self.endpoint.clone(),
            headers: vec![("api-key".to_owned(), "collector-key".to_owned())],
            service: "threadkeep-test".to_owned(),
            proxy: None,
        };
        ServerOptions { telemetry: Some(telemetry), sweep_every: None, ..TestConfig::default().options }
    }

    /// Returns the spans of all requests, in the order of their arrival.
    fn spans(&self) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let spans = |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        received.iter().flat_map(|(_, body)| spans(body)).collect()
    }
}

/// Receives requests over one connection until the client closes it.
async fn receive(mut stream: TcpStream, received: Arc<Mutex<Vec<(String, Value)>>>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.unwrap().parse().unwrap();
            if body.len() >= length {
                received.lock().unwrap().push((head.to_owned(), serde_json::from_str(&body[..length]).unwrap()));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
                bytes.clear();
            }
        }
        let mut piece = [0; 8192];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

/// Returns an attribute; null if it is missing.
fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| attribute["value"].clone())
}

/// Returns a text attribute; empty if it is missing.
fn text<'a>(span: &'a Value, key: &str) -> &'a str {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.and_then(|attribute| attribute["value"]["stringValue"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn model_calls_are_child_spans_of_requests() {
    let collector = Collector::start().await;
    let options = collector.options();
    let config = TestConfig { options, model: Some(Arc::new(Echo::default())), ..TestConfig::default() };
    let mut server = TestServer::start_with(config).await;
    let client = server.client();
    let send_chat = |text: &str, is_streamed: bool| {
        let body = json!({ "messages": [{ "role": "user", "content": text }], "stream": is_streamed, "max_tokens": 9 });
        let request = client.request("POST", "/v1/chat/completions").json(&body);
        send(request.header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
    };
    let answered = send_chat("The safe opens with 1234.", false).await;
    assert_eq!(
        (answered.status, send_chat("hello", true).await.status, send_chat("fail", false).await.status),
        (200, 200, 503)
    );
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    let spans = collector.spans();
    let received = collector.received.lock().unwrap().clone();
    assert!(
        received
            .iter()
            .all(|(head, _)| head.starts_with("POST /v1/traces ") && head.contains("api-key: collector-key"))
    );
    let resource = &received[0].1["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(resource, &json!({ "key": "service.name", "value": { "stringValue": "threadkeep-test" } }));
    let requests: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 2).collect();
    let calls: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 3).collect();
    assert_eq!((requests.len(), calls.len()), (3, 3), "{spans:?}");
    for call in &calls {
        assert_eq!(
            (&call["name"], &call["traceId"]),
            (&json!("chat echo"), &json!("0af7651916cd43dd8448eb211c80319c"))
        );
        let parent = requests.iter().find(|request| request["spanId"] == call["parentSpanId"]).unwrap();
        assert_eq!(parent["name"], "POST /v1/chat/completions");
        assert_eq!(parent["parentSpanId"], "b7ad6b7169203331");
        assert_eq!(attribute(call, "gen_ai.operation.name"), json!({ "stringValue": "chat" }));
        assert_eq!(attribute(call, "gen_ai.request.model"), json!({ "stringValue": "echo" }));
        assert_eq!(attribute(call, "gen_ai.request.max_tokens"), json!({ "intValue": "9" }));
        let nanoseconds = |name: &str| call[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(nanoseconds("startTimeUnixNano") <= nanoseconds("endTimeUnixNano"));
    }
    let succeeded: Vec<_> = calls.iter().filter(|call| call["status"] == json!({})).collect();
    assert_eq!(succeeded.len(), 2);
    assert_eq!(attribute(succeeded[0], "gen_ai.usage.input_tokens"), json!({ "intValue": "7" }));
    assert_eq!(attribute(succeeded[0], "gen_ai.usage.output_tokens"), json!({ "intValue": "3" }));
    assert_eq!(attribute(succeeded[0], "gen_ai.response.model"), json!({ "stringValue": "echo-1" }));
    let failed = calls.iter().find(|call| call["status"] == json!({ "code": 2 })).unwrap();
    assert!(attribute(failed, "error.type")["stringValue"].is_string());
    let ids: Vec<Value> = requests.iter().map(|span| attribute(span, "threadkeep.request_id")).collect();
    assert!(ids.contains(&json!({ "stringValue": answered.header("x-request-id") })));
    let text = serde_json::to_string(&spans).unwrap();
    assert!(!text.contains("safe") && !text.contains("hello"), "{text}");
}

/// The trace context that callers send.
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The assistant of [`test_assistant`], with recall by embeddings and a tool that fails.
fn recalling_assistant() -> Definition {
    let (mut definition, _) = test_assistant("keeper");
    definition.embedder = Some(Arc::new(LengthEmbedder));
    definition.context.window = Some(1);
    definition.context.recall = RecallPolicy { from: RecallFrom::Thread, ..RecallPolicy::default() };
    let schema = JsonText::new(r#"{"type":"object"}"#).unwrap();
    let broken = FnTool::with_schema("delete", "Fails", schema, |_, _| async {
        Err::<ToolOutput, _>(ToolError::Unavailable("the secret shed is locked".to_owned()))
    });
    definition.tools.truncate(1);
    definition.with_tool(broken)
}

/// The test starts turns through every API.
#[tokio::test]
async fn turns_record_calls_to_models_tools_and_embedders() {
    let collector = Collector::start().await;
    let config = TestConfig {
        options: collector.options(),
        embedder: Some(Arc::new(LengthEmbedder)),
        assistants: vec![recalling_assistant()],
        ..TestConfig::default()
    };
    let mut server = TestServer::start_with(config).await;
    let client = server.client();
    let ask =
        |path: &str, body: Value| send(client.request("POST", path).header("traceparent", TRACEPARENT).json(&body));
    let start_turn = |text: &str| ask("/v1/agents/keeper/turns", json!({ "text": text, "thread": "web:shed" }));
    start_turn("the lamp in the shed is red").await.expect(200);
    start_turn("nothing else is in there").await.expect(200);
    let recalled = start_turn("look lamp").await.expect(200);
    let failing = start_turn("delete lamp").await.expect(200);
    assert_eq!((&recalled["status"], &failing["tool_calls"][0]["ok"]), (&json!("completed"), &json!(false)));
    ask("/keeper/chat", json!({ "message": "fail", "user_id": "ana-user" })).await.expect(200);
    ask(
        "/v1/chat/completions",
        json!({ "model": "threadkeep/keeper", "messages": [{ "role": "user", "content": "hello there" }] }),
    )
    .await
    .expect(200);
    let response = json!({ "model": "threadkeep/keeper", "input": "hello again", "background": true });
    let response = ask("/v1/responses", response).await.expect(200);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let finished = async { while client.get(&path).await.expect(200)["status"] == "in_progress" {} };
    tokio::time::timeout(TIMEOUT, finished).await.unwrap();
    ask("/v1/embeddings", json!({ "model": "lengths", "input": "of the secret shed" })).await.expect(200);
    let metrics = client.get("/metrics").await.text;
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    for line in [
        r#"threadkeep_turns_total{assistant="keeper",outcome="completed"} 6"#,
        r#"threadkeep_turns_total{assistant="keeper",outcome="model_unavailable"} 1"#,
        r#"threadkeep_turn_seconds_count{assistant="keeper"} 7"#,
        r#"threadkeep_model_calls_total{model="keeper",outcome="answered"} 8"#,
        r#"threadkeep_model_calls_total{model="keeper",outcome="model_unavailable"} 1"#,
        r#"threadkeep_model_tokens_total{model="keeper",kind="input"} 56"#,
        r#"threadkeep_tool_calls_total{tool="look",outcome="answered"} 1"#,
        r#"threadkeep_tool_calls_total{tool="delete",outcome="unavailable"} 1"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let embedded = metrics
        .lines()
        .find_map(|line| line.strip_prefix(r#"threadkeep_embedder_calls_total{model="lengths",outcome="answered"} "#));
    let embedded: usize = embedded.unwrap().parse().unwrap();
    let spans = collector.spans();
    let spans_of = |operation: &str| -> Vec<Value> {
        let matches = |span: &&Value| text(span, "gen_ai.operation.name") == operation;
        spans.iter().filter(matches).cloned().collect()
    };
    let parent = |span: &Value| spans.iter().find(|parent| parent["spanId"] == span["parentSpanId"]).unwrap();
    let (agents, chats, tools, embeddings) =
        (spans_of("invoke_agent"), spans_of("chat"), spans_of("execute_tool"), spans_of("embeddings"));
    assert_eq!((agents.len(), chats.len(), tools.len(), embeddings.len()), (7, 9, 2, embedded), "{spans:#?}");
    assert!(agents.iter().chain(&chats).chain(&tools).chain(&embeddings).all(|span| {
        span["traceId"] == "0af7651916cd43dd8448eb211c80319c" && text(span, "gen_ai.provider.name") == "threadkeep"
            || text(span, "gen_ai.operation.name") == "execute_tool"
    }));
    for agent in &agents {
        assert_eq!((&agent["name"], &agent["kind"]), (&json!("invoke_agent keeper"), &json!(1)));
        assert_eq!((text(agent, "gen_ai.agent.name"), text(agent, "gen_ai.request.model")), ("keeper", "keeper"));
        assert_eq!(parent(agent)["kind"], 2, "the parent of a turn is a request");
    }
    let with_tool = &agents[2];
    assert_eq!(text(with_tool, "gen_ai.conversation.id"), recalled["thread"]);
    assert_eq!(attribute(with_tool, "gen_ai.usage.input_tokens"), json!({ "intValue": "14" }));
    let failed: Vec<&Value> = agents.iter().filter(|span| span["status"] == json!({ "code": 2 })).collect();
    assert_eq!((failed.len(), text(failed[0], "error.type")), (1, "model_unavailable"));
    for chat in &chats {
        assert_eq!((&chat["name"], &chat["kind"]), (&json!("chat keeper"), &json!(3)));
        assert_eq!(text(parent(chat), "gen_ai.operation.name"), "invoke_agent");
    }
    for tool in &tools {
        assert_eq!(tool["kind"], 1);
        assert_eq!(text(parent(tool), "gen_ai.operation.name"), "invoke_agent");
    }
    assert_eq!((&tools[0]["name"], &tools[1]["name"]), (&json!("execute_tool look"), &json!("execute_tool delete")));
    assert_eq!((text(&tools[0], "gen_ai.tool.name"), text(&tools[1], "error.type")), ("look", "unavailable"));
    let recall_count =
        embeddings.iter().filter(|span| text(parent(span), "gen_ai.operation.name") == "invoke_agent").count();
    assert_eq!((recall_count > 0, recall_count + 1), (true, embedded), "one embedding was requested directly");
    assert_eq!(attribute(&embeddings[0], "gen_ai.embeddings.dimension.count"), json!({ "intValue": "2" }));
    let sent = serde_json::to_string(&spans).unwrap();
    for hidden in ["shed", "lamp", "locked", "hello", "ana-user"] {
        assert!(!sent.contains(hidden) && !metrics.contains(hidden), "{hidden}");
    }
}

/// Cancelled model calls are counted although the model never answers.
#[tokio::test]
async fn cancelled_model_calls_are_counted() {
    let collector = Collector::start().await;
    let (definition, model) = test_assistant("keeper");
    let config = TestConfig { options: collector.options(), assistants: vec![definition], ..TestConfig::default() };
    let mut server = TestServer::start_with(config).await;
    let client = server.client();
    let response = json!({ "model": "threadkeep/keeper", "input": "wait", "background": true });
    let response = client.post("/v1/responses", response).await.expect(200);
    model.wait_until_blocked().await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    client.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    let line = r#"threadkeep_model_calls_total{model="keeper",outcome="cancelled"} 1"#;
    let counted = async { while !client.get("/metrics").await.text.lines().any(|found| found == line) {} };
    tokio::time::timeout(TIMEOUT, counted).await.unwrap();
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    let spans = collector.spans();
    let chat = spans.iter().find(|span| span["name"] == "chat keeper").unwrap();
    assert_eq!((text(chat, "error.type"), &chat["status"]), ("cancelled", &json!({ "code": 2 })));
    let turn = spans.iter().find(|span| span["name"] == "invoke_agent keeper").unwrap();
    assert_eq!(text(turn, "error.type"), "stopped");
}

#[tokio::test]
async fn an_unavailable_collector_does_not_affect_requests() {
    let telemetry = TelemetryOptions {
        endpoint: "http://127.0.0.1:9".to_owned(),
        headers: vec![],
        service: "threadkeep".to_owned(),
        proxy: None,
    };
    let options = ServerOptions { telemetry: Some(telemetry), sweep_every: None, ..TestConfig::default().options };
    let mut server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let client = server.client();
    for _ in 0..50 {
        client.new_thread().await;
    }
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
}
