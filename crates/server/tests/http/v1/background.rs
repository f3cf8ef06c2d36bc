//! Background responses, verified by the requests that the model server receives.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::models::{PriceTable, ProviderModel, Selected, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::agents::wait_for_answer;
use super::model::{config_with_model, parse_data};
use crate::Client;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::pausable_store::{PausePoint, StoreControl};
use crate::server::{TIMEOUT, TestConfig, TestServer, send};

/// An event at the model server.
#[derive(Debug, PartialEq)]
pub(super) enum ModelEvent {
    /// The model received a complete request.
    Requested,
    /// The client closed the connection before it received the response.
    Closed,
}

/// A model server that implements the API of OpenAI. The test controls its responses.
pub(super) struct ModelServer {
    address: SocketAddr,
    events: mpsc::UnboundedReceiver<ModelEvent>,
    /// Sends the text of the next response. `call NAME` instead calls the tool NAME with the argument `lamp`.
    pub(super) answers: mpsc::UnboundedSender<&'static str>,
}

impl ModelServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((sender, events), (answers, mut queued)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve_request(stream, &sender, &mut queued).await;
            }
        });
        Self { address, events, answers }
    }

    pub(super) async fn next_event(&mut self) -> ModelEvent {
        tokio::time::timeout(TIMEOUT, self.events.recv()).await.unwrap().unwrap()
    }

    /// Returns a model that calls this server.
    pub(super) fn model(&self) -> Arc<ProviderModel> {
        let base = format!("http://{}/v1", self.address);
        let environment = |name: &str| match name {
            "OPENAI_API_KEY" => Some("sk-test".to_owned()),
            "OPENAI_BASE_URL" => Some(base.clone()),
            "OPENAI_MODEL" => Some("lamp-1".to_owned()),
            _ => None,
        };
        let Selected::Provider(found) = select(Some("openai"), &environment).unwrap() else { panic!("no provider") };
        Arc::new(ProviderModel::new(found.config(PriceTable::default())).unwrap())
    }
}

/// Receives one request, and answers it with the next queued text unless the client closes the connection first.
async fn serve_request(
    mut stream: TcpStream,
    sender: &mpsc::UnboundedSender<ModelEvent>,
    queued: &mut mpsc::UnboundedReceiver<&'static str>,
) {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while !is_complete(&request) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "incomplete request");
        request.extend_from_slice(&buffer[..count]);
    }
    sender.send(ModelEvent::Requested).unwrap();
    tokio::select! {
        // The client sends nothing after the request, so the read completes when the client closes the connection.
        _ = stream.read(&mut buffer) => sender.send(ModelEvent::Closed).unwrap(),
        text = queued.recv() => {
            let Some(text) = text else { return };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let (delta, reason) = match text.strip_prefix("call ") {
                Some(tool) => {
                    let function = json!({ "name": tool, "arguments": r#"{"thing":"lamp"}"# });
                    let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
                    (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
                }
                None => (json!({ "role": "assistant", "content": text }), "stop"),
            };
            let delta = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
            let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
            let answer = format!("{head}data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }
}

/// Whether these bytes are a complete HTTP request.
fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0_usize)
}

async fn start_with_model_server() -> (TestServer, ModelServer) {
    let model = ModelServer::start().await;
    let config = TestConfig { model: Some(model.model()), ..TestConfig::default() };
    (TestServer::start_with(config).await, model)
}

/// Polls a response until it is no longer in progress, and returns it.
pub(super) async fn wait_for_response(client: &Client, id: &str) -> Value {
    let waiting = async {
        loop {
            let response = client.get(&format!("/v1/responses/{id}")).await.expect(200);
            if response["status"] != "in_progress" {
                return response;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
}

#[tokio::test]
async fn background_responses_can_be_retrieved_once_they_are_complete() {
    let (server, mut model) = start_with_model_server().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    for conversation in [Value::Null, conversation["id"].clone()] {
        let body = json!({ "input": "hello", "background": true, "conversation": conversation });
        let started = client.post("/v1/responses", body).await.expect(200);
        assert_eq!((&started["status"], &started["background"]), (&json!("in_progress"), &json!(true)));
        assert_eq!((&started["output"], &started["object"]), (&json!([]), &json!("response")));
        let id = started["id"].as_str().unwrap();
        assert_eq!(model.next_event().await, ModelEvent::Requested);
        assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200)["status"], "in_progress");
        model.answers.send("a lamp").unwrap();
        let response = wait_for_response(&client, id).await;
        assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
        assert_eq!(response["output"][0]["content"][0]["text"], "a lamp");
        // Cancelling a complete response returns it unchanged.
        let cancelled = client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.expect(200);
        assert_eq!(cancelled, response);
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_to_the_model() {
    let (server, mut model) = start_with_model_server().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let conversation_id = conversation["id"].as_str().unwrap();
    for conversation in [Value::Null, conversation["id"].clone()] {
        let body = json!({ "input": "hello", "background": true, "conversation": conversation });
        let started = client.post("/v1/responses", body).await.expect(200);
        let path = format!("/v1/responses/{}", started["id"].as_str().unwrap());
        assert_eq!(model.next_event().await, ModelEvent::Requested);
        let cancelled = client.post(&format!("{path}/cancel"), json!({})).await.expect(200);
        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(model.next_event().await, ModelEvent::Closed);
        assert_eq!(client.get(&path).await.expect(200)["status"], "cancelled");
        assert_eq!(client.post(&format!("{path}/cancel"), json!({})).await.expect(200)["status"], "cancelled");
        assert_eq!(client.delete(&path).await.expect(200)["deleted"], true);
        assert_eq!(client.get(&path).await.code(404), "not_found");
    }
    let items = client.get(&format!("/v1/conversations/{conversation_id}/items")).await.expect(200);
    assert_eq!(items["data"], json!([]), "nothing is stored of cancelled responses");
}

#[tokio::test]
async fn deleting_a_running_response_cancels_it() {
    let (server, mut model) = start_with_model_server().await;
    let client = server.client();
    let started = client.post("/v1/responses", json!({ "input": "hello", "background": true })).await.expect(200);
    let path = format!("/v1/responses/{}", started["id"].as_str().unwrap());
    assert_eq!(model.next_event().await, ModelEvent::Requested);
    client.delete(&path).await.expect(200);
    assert_eq!(model.next_event().await, ModelEvent::Closed);
    assert_eq!(client.get(&path).await.code(404), "not_found");
}

#[tokio::test]
async fn background_responses_must_be_stored() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    for stream in [false, true] {
        let body = json!({ "model": "threadkeep/keeper", "input": "hello", "background": true, "store": false, "stream": stream });
        assert_eq!(client.post("/v1/responses", body).await.error(400)["param"], "store");
    }
}

#[tokio::test]
async fn repeated_requests_return_the_first_response() {
    let (server, mut model) = start_with_model_server().await;
    let client = server.client();
    let ask = || {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.json(&json!({ "input": "hello", "background": true })))
    };
    let started = ask().await.expect(200);
    assert_eq!(model.next_event().await, ModelEvent::Requested);
    assert_eq!(ask().await.expect(200)["id"], started["id"]);
    model.answers.send("a lamp").unwrap();
    let id = started["id"].as_str().unwrap();
    assert_eq!(wait_for_response(&client, id).await, ask().await.expect(200));
}

#[tokio::test]
async fn concurrent_repeated_requests_start_one_response() {
    let mut model = ModelServer::start().await;
    let store_control = StoreControl::default();
    let config = TestConfig { model: Some(model.model()), ..TestConfig::default() };
    let server = TestServer::start_with_control(&store_control, config).await;
    let client = server.client();
    let ask = || {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.json(&json!({ "input": "hello", "background": true })))
    };
    let (is_paused, resume) = store_control.pause_at(PausePoint::Record("openai.background"));
    let delayed = tokio::spawn(ask());
    is_paused.await.unwrap();
    let started = ask().await.expect(200);
    assert_eq!(model.next_event().await, ModelEvent::Requested);
    resume.send(()).unwrap();
    assert_eq!(delayed.await.unwrap().expect(200)["id"], started["id"]);
    model.answers.send("a lamp").unwrap();
    assert_eq!(wait_for_response(&client, started["id"].as_str().unwrap()).await["status"], "completed");
}

#[tokio::test]
async fn background_responses_from_assistants_can_be_cancelled() {
    let (definition, model) = test_assistant("keeper");
    let server = TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = server.client();
    let ask = |text: &str| json!({ "model": "threadkeep/keeper", "input": text, "background": true });
    let started = client.post("/v1/responses", ask("wait")).await.expect(200);
    model.wait_until_blocked().await;
    let id = started["id"].as_str().unwrap();
    client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.expect(200);
    let thread = started["conversation"]["id"].as_str().unwrap().trim_start_matches("conv_").to_owned();
    wait_for_answer(&server, &thread).await;
    assert_eq!(wait_for_response(&client, id).await["status"], "cancelled");
    let started = client.post("/v1/responses", ask("hello")).await.expect(200);
    let response = wait_for_response(&client, started["id"].as_str().unwrap()).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: hello");
}

/// A client that received `in_progress` does not have to repeat the request, even if the server crashes.
#[tokio::test]
async fn requests_to_assistants_are_stored_before_in_progress_is_returned() {
    let (definition, _) = test_assistant("keeper");
    let store_control = StoreControl::default();
    let server = TestServer::start_with_control(
        &store_control,
        TestConfig { assistants: vec![definition], ..TestConfig::default() },
    )
    .await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let (is_paused, resume) = store_control.pause_at(PausePoint::Commit);
    let body = json!({
        "model": "threadkeep/keeper", "input": "hello", "conversation": conversation["id"], "background": true,
    });
    let pending = tokio::spawn(send(client.request("POST", "/v1/responses").json(&body)));
    is_paused.await.unwrap();
    // If the response did not wait for the commit, it would arrive during these requests.
    for _ in 0..50 {
        client.get("/health").await.expect(200);
    }
    assert!(!pending.is_finished());
    resume.send(()).unwrap();
    let started = pending.await.unwrap().expect(200);
    let response = wait_for_response(&client, started["id"].as_str().unwrap()).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: hello");
}

/// After a crash, another server resumes the turns of assistants, but does not repeat calls to a model without an assistant.
#[tokio::test]
async fn responses_from_assistants_resume_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let ((definition, first_model), (echo_config, _)) = (test_assistant("keeper"), config_with_model());
    let crashing_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let memory = threadkeep::open(&url).await.unwrap();
    let config = TestConfig { assistants: vec![definition], ..echo_config };
    let first = crashing_runtime.spawn(TestServer::start_on(memory, config)).await.unwrap();
    let ask = |model: &str| json!({ "model": model, "input": "wait", "background": true });
    let started = first.client().post("/v1/responses", ask("threadkeep/keeper")).await.expect(200);
    let without_assistant = first.client().post("/v1/responses", ask("echo")).await.expect(200);
    first_model.wait_until_blocked().await;
    crashing_runtime.shutdown_background();

    let (definition, resumed_model) = test_assistant("keeper");
    let memory = threadkeep::open(&url).await.unwrap();
    let second =
        TestServer::start_on(memory, TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = second.client();
    let id = started["id"].as_str().unwrap();
    resumed_model.wait_until_blocked().await;
    assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200)["status"], "in_progress");
    resumed_model.unblock();
    let response = wait_for_response(&client, id).await;
    assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: wait");
    assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200), response);
    let streamed = client.get(&format!("/v1/responses/{id}?stream=true")).await;
    assert_eq!(parse_data(&streamed.text).last().unwrap()["response"], response);
    // Later responses can continue from the resumed response.
    let next = json!({ "model": "threadkeep/keeper", "input": "more", "previous_response_id": id });
    let next = client.post("/v1/responses", next).await.expect(200);
    assert_eq!(next["output"][0]["content"][0]["text"], "You said: more");

    let failed = wait_for_response(&client, without_assistant["id"].as_str().unwrap()).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("server_error")));
}
