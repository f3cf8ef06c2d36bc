//! Responses in the background, proved by what a model's server sees.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::models::{PriceTable, ProviderModel, Selected, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::agents::answered;
use super::model::{data_of, config_with_model};
use crate::Client;
use crate::assistants::{keeper, with_keeper};
use crate::pausable_store::{PausePoint, StoreControl};
use crate::server::{PATIENCE, TestConfig, TestServer, send};

/// What the server of a model sees.
#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    Asked,
    /// The connection was closed before it had answered.
    Closed,
}

/// A server that speaks as OpenAI's does, and answers when it is told to.
pub(super) struct ModelServer {
    address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    /// What it says next; `call NAME` calls a tool about a lamp.
    pub(super) answers: mpsc::UnboundedSender<&'static str>,
}

impl ModelServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((sees, seen), (answers, mut wanted)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                answer(stream, &sees, &mut wanted).await;
            }
        });
        Self { address, seen, answers }
    }

    pub(super) async fn seen(&mut self) -> Seen {
        tokio::time::timeout(PATIENCE, self.seen.recv()).await.unwrap().unwrap()
    }

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

async fn answer(
    mut stream: TcpStream,
    sees: &mpsc::UnboundedSender<Seen>,
    wanted: &mut mpsc::UnboundedReceiver<&'static str>,
) {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while !is_whole(&request) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "a request that broke off");
        request.extend_from_slice(&buffer[..count]);
    }
    sees.send(Seen::Asked).unwrap();
    tokio::select! {
        // Nothing follows a request but its end.
        _ = stream.read(&mut buffer) => sees.send(Seen::Closed).unwrap(),
        text = wanted.recv() => {
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

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0_usize)
}

async fn with_model_server() -> (TestServer, ModelServer) {
    let model = ModelServer::start().await;
    let config = TestConfig { model: Some(model.model()), ..TestConfig::default() };
    (TestServer::start_with(config).await, model)
}

/// Asks for a response until it is over.
pub(super) async fn over(client: &Client, id: &str) -> Value {
    let waiting = async {
        loop {
            let response = client.get(&format!("/v1/responses/{id}")).await.expect(200);
            if response["status"] != "in_progress" {
                return response;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

#[tokio::test]
async fn a_response_in_the_background_is_retrieved_when_it_is_over() {
    let (server, mut model) = with_model_server().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    for conversation in [Value::Null, conversation["id"].clone()] {
        let body = json!({ "input": "hello", "background": true, "conversation": conversation });
        let begun = client.post("/v1/responses", body).await.expect(200);
        assert_eq!((&begun["status"], &begun["background"]), (&json!("in_progress"), &json!(true)));
        assert_eq!((&begun["output"], &begun["object"]), (&json!([]), &json!("response")));
        let id = begun["id"].as_str().unwrap();
        assert_eq!(model.seen().await, Seen::Asked);
        assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200)["status"], "in_progress");
        model.answers.send("a lamp").unwrap();
        let response = over(&client, id).await;
        assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
        assert_eq!(response["output"][0]["content"][0]["text"], "a lamp");
        // What is over is told as it is.
        let cancelled = client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.expect(200);
        assert_eq!(cancelled, response);
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_to_the_model() {
    let (server, mut model) = with_model_server().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let conversation_id = conversation["id"].as_str().unwrap();
    for conversation in [Value::Null, conversation["id"].clone()] {
        let body = json!({ "input": "hello", "background": true, "conversation": conversation });
        let begun = client.post("/v1/responses", body).await.expect(200);
        let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
        assert_eq!(model.seen().await, Seen::Asked);
        let cancelled = client.post(&format!("{path}/cancel"), json!({})).await.expect(200);
        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(model.seen().await, Seen::Closed);
        assert_eq!(client.get(&path).await.expect(200)["status"], "cancelled");
        assert_eq!(client.post(&format!("{path}/cancel"), json!({})).await.expect(200)["status"], "cancelled");
        assert_eq!(client.delete(&path).await.expect(200)["deleted"], true);
        assert_eq!(client.get(&path).await.code(404), "not_found");
    }
    let items = client.get(&format!("/v1/conversations/{conversation_id}/items")).await.expect(200);
    assert_eq!(items["data"], json!([]), "nothing of it is kept");
}

#[tokio::test]
async fn deleting_one_that_is_in_progress_cancels_it() {
    let (server, mut model) = with_model_server().await;
    let client = server.client();
    let begun = client.post("/v1/responses", json!({ "input": "hello", "background": true })).await.expect(200);
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    assert_eq!(model.seen().await, Seen::Asked);
    client.delete(&path).await.expect(200);
    assert_eq!(model.seen().await, Seen::Closed);
    assert_eq!(client.get(&path).await.code(404), "not_found");
}

#[tokio::test]
async fn what_the_background_does_not_take_is_refused() {
    let (server, _) = with_keeper().await;
    let client = server.client();
    for stream in [false, true] {
        let body = json!({ "model": "threadkeep/keeper", "input": "hello", "background": true, "store": false, "stream": stream });
        assert_eq!(client.post("/v1/responses", body).await.error(400)["param"], "store");
    }
}

#[tokio::test]
async fn a_repeated_request_gets_the_response_of_the_first() {
    let (server, mut model) = with_model_server().await;
    let client = server.client();
    let ask = || {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.json(&json!({ "input": "hello", "background": true })))
    };
    let begun = ask().await.expect(200);
    assert_eq!(model.seen().await, Seen::Asked);
    assert_eq!(ask().await.expect(200)["id"], begun["id"]);
    model.answers.send("a lamp").unwrap();
    let id = begun["id"].as_str().unwrap();
    assert_eq!(over(&client, id).await, ask().await.expect(200));
}

// Two instances take the same request at the same time.
#[tokio::test]
async fn a_request_that_comes_twice_at_once_begins_one_response() {
    let mut model = ModelServer::start().await;
    let store_control = StoreControl::default();
    let config = TestConfig { model: Some(model.model()), ..TestConfig::default() };
    let server = TestServer::start_with_control(&store_control, config).await;
    let client = server.client();
    let ask = || {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.json(&json!({ "input": "hello", "background": true })))
    };
    let (is_looking, go_on) = store_control.pause_at(PausePoint::Record("openai.background"));
    let late = tokio::spawn(ask());
    is_looking.await.unwrap();
    let begun = ask().await.expect(200);
    assert_eq!(model.seen().await, Seen::Asked);
    go_on.send(()).unwrap();
    assert_eq!(late.await.unwrap().expect(200)["id"], begun["id"]);
    model.answers.send("a lamp").unwrap();
    assert_eq!(over(&client, begun["id"].as_str().unwrap()).await["status"], "completed");
}

#[tokio::test]
async fn an_assistant_answers_in_the_background_and_is_cancelled() {
    let (definition, model) = keeper("keeper");
    let server = TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = server.client();
    let ask = |text: &str| json!({ "model": "threadkeep/keeper", "input": text, "background": true });
    let begun = client.post("/v1/responses", ask("wait")).await.expect(200);
    model.wait_until_blocked().await;
    let id = begun["id"].as_str().unwrap();
    client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.expect(200);
    let thread = begun["conversation"]["id"].as_str().unwrap().trim_start_matches("conv_").to_owned();
    answered(&server, &thread).await;
    assert_eq!(over(&client, id).await["status"], "cancelled");
    let begun = client.post("/v1/responses", ask("hello")).await.expect(200);
    let response = over(&client, begun["id"].as_str().unwrap()).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: hello");
}

/// A client that was told so need not ask again, whatever becomes of the server.
#[tokio::test]
async fn what_an_assistant_is_asked_is_stored_before_it_is_told_to_be_in_progress() {
    let (definition, _) = keeper("keeper");
    let store_control = StoreControl::default();
    let server = TestServer::start_with_control(&store_control, TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    let (is_storing, go_on) = store_control.pause_at(PausePoint::Commit);
    let body = json!({
        "model": "threadkeep/keeper", "input": "hello", "conversation": conversation["id"], "background": true,
    });
    let asking = tokio::spawn(send(client.request("POST", "/v1/responses").json(&body)));
    is_storing.await.unwrap();
    // Time enough for an answer that waits for nothing.
    for _ in 0..50 {
        client.get("/health").await.expect(200);
    }
    assert!(!asking.is_finished());
    go_on.send(()).unwrap();
    let begun = asking.await.unwrap().expect(200);
    let response = over(&client, begun["id"].as_str().unwrap()).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: hello");
}

/// A server is cut off as by a crash, and another one goes on with the turn; nobody goes on with what a model alone was asked.
#[tokio::test]
async fn a_response_becomes_what_its_turn_becomes() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let ((definition, keeper_of_first), (echo, _)) = (keeper("keeper"), config_with_model());
    let crashing = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let memory = threadkeep::open(&url).await.unwrap();
    let config = TestConfig { assistants: vec![definition], ..echo };
    let first = crashing.spawn(TestServer::over(memory, config)).await.unwrap();
    let ask = |model: &str| json!({ "model": model, "input": "wait", "background": true });
    let begun = first.client().post("/v1/responses", ask("threadkeep/keeper")).await.expect(200);
    let alone = first.client().post("/v1/responses", ask("echo")).await.expect(200);
    keeper_of_first.wait_until_blocked().await;
    crashing.shutdown_background();

    let (definition, keeper) = keeper("keeper");
    let memory = threadkeep::open(&url).await.unwrap();
    let second = TestServer::over(memory, TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = second.client();
    let id = begun["id"].as_str().unwrap();
    keeper.wait_until_blocked().await;
    assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200)["status"], "in_progress");
    keeper.unblock();
    let response = over(&client, id).await;
    assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: wait");
    assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200), response);
    let streamed = client.get(&format!("/v1/responses/{id}?stream=true")).await;
    assert_eq!(data_of(&streamed.text).last().unwrap()["response"], response);
    // Its thread goes on from it.
    let next = json!({ "model": "threadkeep/keeper", "input": "more", "previous_response_id": id });
    let next = client.post("/v1/responses", next).await.expect(200);
    assert_eq!(next["output"][0]["content"][0]["text"], "You said: more");

    let failed = over(&client, alone["id"].as_str().unwrap()).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("server_error")));
}
