//! Figures and traces: what Prometheus reads, and what a real local collector receives.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, ServerOptions, TelemetryOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::TestServer;
use crate::server::{Parts, send};
use crate::v1::Echo;

#[tokio::test]
async fn figures_count_requests_and_models_and_name_nobody() {
    let parts = Parts { model: Some(Arc::new(Echo::default())), ..Parts::default() };
    let server = TestServer::start_with(parts).await;
    let admin = server.keyed("acme-tenant", None, &[KeyRole::Admin]).await;
    let reader = server.keyed("acme-tenant", Some("ana-user"), &[KeyRole::Write]).await;
    let thread = reader.new_thread().await;
    reader.new_thread().await;
    reader.get("/v1/threads/no-such-thread").await.error(404);
    let asked = json!({ "model": "echo", "messages": [{ "role": "user", "content": "The safe opens with 1234." }] });
    reader.post("/v1/chat/completions", asked.clone()).await.expect(200);
    reader
        .post("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "fail" }] }))
        .await
        .error(503);
    assert_eq!(reader.get("/metrics").await.code(403), "role_missing");
    assert_eq!(server.client().get("/metrics").await.code(401), "invalid_key");
    let told = admin.get("/metrics").await;
    assert_eq!(told.status, 200);
    assert!(told.header("content-type").starts_with("application/openmetrics-text"));
    for line in [
        "threadkeep_requests_total{method=\"POST\",route=\"/v1/threads\",status=\"201\"} 2",
        "threadkeep_requests_total{method=\"GET\",route=\"/v1/threads/{id}\",status=\"404\"} 1",
        "threadkeep_request_seconds_count{route=\"/v1/threads\"} 2",
        "threadkeep_model_calls_total{model=\"echo\",outcome=\"answered\"} 1",
        "threadkeep_model_tokens_total{model=\"echo\",kind=\"input\"} 7",
        "threadkeep_model_tokens_total{model=\"echo\",kind=\"output\"} 3",
        "# EOF",
    ] {
        assert!(told.text.lines().any(|told| told == line), "{line}: {}", told.text);
    }
    for hidden in [thread.as_str(), "safe", "ana-user", "acme-tenant", "no-such-thread"] {
        assert!(!told.text.contains(hidden), "{hidden}");
    }
}

/// A collector: keeps what it is sent.
struct Collector {
    endpoint: String,
    received: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let keeps = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, Arc::clone(&keeps)));
            }
        });
        Self { endpoint, received }
    }

    fn spans(&self) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let spans = |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        received.iter().flat_map(|(_, body)| spans(body)).collect()
    }
}

async fn receive(mut stream: TcpStream, keeps: Arc<Mutex<Vec<(String, Value)>>>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let named = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = named.unwrap().parse().unwrap();
            if body.len() >= length {
                keeps.lock().unwrap().push((head.to_owned(), serde_json::from_str(&body[..length]).unwrap()));
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

fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| attribute["value"].clone())
}

#[tokio::test]
async fn a_collector_receives_requests_with_the_models_calls_below_them() {
    let collector = Collector::start().await;
    let telemetry = TelemetryOptions {
        endpoint: collector.endpoint.clone(),
        headers: vec![("api-key".to_owned(), "collectors-own".to_owned())],
        service: "threadkeep-test".to_owned(),
    };
    let options = ServerOptions { telemetry: Some(telemetry), sweep_every: None, ..ServerOptions::default() };
    let parts = Parts { options, model: Some(Arc::new(Echo::default())), ..Parts::default() };
    let mut server = TestServer::start_with(parts).await;
    let client = server.client();
    let chat = |words: &str, is_streamed: bool| {
        let body =
            json!({ "messages": [{ "role": "user", "content": words }], "stream": is_streamed, "max_tokens": 9 });
        let request = client.request("POST", "/v1/chat/completions").json(&body);
        send(request.header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
    };
    let answered = chat("The safe opens with 1234.", false).await;
    assert_eq!((answered.status, chat("hello", true).await.status, chat("fail", false).await.status), (200, 200, 503));
    server.ask_to_stop();
    server.stopped().await.unwrap();
    let spans = collector.spans();
    let received = collector.received.lock().unwrap().clone();
    assert!(
        received
            .iter()
            .all(|(head, _)| head.starts_with("POST /v1/traces ") && head.contains("api-key: collectors-own"))
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
        let above = requests.iter().find(|request| request["spanId"] == call["parentSpanId"]).unwrap();
        assert_eq!(above["name"], "POST /v1/chat/completions");
        assert_eq!(above["parentSpanId"], "b7ad6b7169203331");
        assert_eq!(attribute(call, "gen_ai.operation.name"), json!({ "stringValue": "chat" }));
        assert_eq!(attribute(call, "gen_ai.request.model"), json!({ "stringValue": "echo" }));
        assert_eq!(attribute(call, "gen_ai.request.max_tokens"), json!({ "intValue": "9" }));
        let nanoseconds = |name: &str| call[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(nanoseconds("startTimeUnixNano") <= nanoseconds("endTimeUnixNano"));
    }
    let good: Vec<_> = calls.iter().filter(|call| call["status"] == json!({})).collect();
    assert_eq!(good.len(), 2);
    assert_eq!(attribute(good[0], "gen_ai.usage.input_tokens"), json!({ "intValue": "7" }));
    assert_eq!(attribute(good[0], "gen_ai.usage.output_tokens"), json!({ "intValue": "3" }));
    assert_eq!(attribute(good[0], "gen_ai.response.model"), json!({ "stringValue": "echo-1" }));
    let failed = calls.iter().find(|call| call["status"] == json!({ "code": 2 })).unwrap();
    assert!(attribute(failed, "error.type")["stringValue"].is_string());
    let ids: Vec<Value> = requests.iter().map(|span| attribute(span, "threadkeep.request_id")).collect();
    assert!(ids.contains(&json!({ "stringValue": answered.header("x-request-id") })));
    let text = serde_json::to_string(&spans).unwrap();
    assert!(!text.contains("safe") && !text.contains("hello"), "{text}");
}

#[tokio::test]
async fn a_collector_that_is_away_harms_nobody() {
    let telemetry = TelemetryOptions {
        endpoint: "http://127.0.0.1:9".to_owned(),
        headers: vec![],
        service: "threadkeep".to_owned(),
    };
    let options = ServerOptions { telemetry: Some(telemetry), sweep_every: None, ..ServerOptions::default() };
    let mut server = TestServer::start_with(Parts { options, ..Parts::default() }).await;
    let client = server.client();
    for _ in 0..50 {
        client.new_thread().await;
    }
    server.ask_to_stop();
    server.stopped().await.unwrap();
}
