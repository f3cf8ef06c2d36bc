//! Background responses that were interrupted because the server crashed.

use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::Scope;
use threadkeep::agent::find_running_turn;
use threadkeep_server::{KeyRole, ServerOptions};

use super::agents::wait_for_answer;
use super::background::wait_for_response;
use super::model::config_with_model;
use crate::Client;
use crate::assistants::{CommandModel, test_assistant};
use crate::server::{TestConfig, TestServer};

/// A store that contains interrupted responses.
struct Interrupted {
    url: String,
    /// The responses as returned when they were created.
    responses: Vec<Value>,
    _folder: tempfile::TempDir,
}

/// Requests a response from each model, and crashes the server while the responses are in progress.
async fn crash_during_responses(models: &[&str]) -> Interrupted {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let ((definition, assistant_model), (echo_config, echo)) = (test_assistant("keeper"), config_with_model());
    // With a second worker thread, a task could notice during the crash that others are gone, and store a failure.
    let crashing_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let memory = threadkeep::open(&url).await.unwrap();
    let config = TestConfig { assistants: vec![definition], ..echo_config };
    let server = crashing_runtime.spawn(TestServer::start_on(memory, config)).await.unwrap();
    let mut responses = Vec::new();
    for model in models {
        let body = json!({ "model": model, "input": "wait", "background": true });
        responses.push(server.client().post("/v1/responses", body).await.expect(200));
        match *model {
            "echo" => echo.blocked.notified().await,
            _ => assistant_model.wait_until_blocked().await,
        }
    }
    crashing_runtime.shutdown_background();
    Interrupted { url, responses, _folder: folder }
}

impl Interrupted {
    /// Starts another instance on the same store.
    async fn restart(&self, options: ServerOptions) -> (TestServer, Arc<CommandModel>) {
        let (definition, model) = test_assistant("keeper");
        let memory = threadkeep::open(&self.url).await.unwrap();
        let config = TestConfig { assistants: vec![definition], options, ..TestConfig::default() };
        (TestServer::start_on(memory, config).await, model)
    }

    /// Returns the path of the response with this index.
    fn response_path(&self, index: usize) -> String {
        format!("/v1/responses/{}", self.responses[index]["id"].as_str().unwrap())
    }

    /// Returns the id of the thread of the response with this index.
    fn thread_id(&self, index: usize) -> &str {
        self.responses[index]["conversation"]["id"].as_str().unwrap().trim_start_matches("conv_")
    }
}

fn options_without_resuming() -> ServerOptions {
    ServerOptions { resume_turns: false, ..TestConfig::default().options }
}

/// Sends another message to the assistant in the thread of a response.
async fn ask_more(client: &Client, response: &Value) -> Value {
    let body = json!({ "model": "threadkeep/keeper", "input": "more", "conversation": response["conversation"] });
    client.post("/v1/responses", body).await.expect(200)["output"][0]["content"][0]["text"].clone()
}

#[tokio::test]
async fn resumed_responses_can_be_cancelled() {
    let interrupted = crash_during_responses(&["threadkeep/keeper"]).await;
    let (server, model) = interrupted.restart(TestConfig::default().options).await;
    let client = server.client();
    model.wait_until_blocked().await;
    let cancelled = client.post(&format!("{}/cancel", interrupted.response_path(0)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    wait_for_answer(&server, interrupted.thread_id(0)).await;
    assert_eq!(client.get(&interrupted.response_path(0)).await.expect(200), cancelled);
    assert_eq!(
        client.post(&format!("{}/cancel", interrupted.response_path(0)), json!({})).await.expect(200),
        cancelled
    );
    assert!(!client.texts(interrupted.thread_id(0)).await.contains(&"You said: wait".to_owned()));
    assert_eq!(ask_more(&client, &interrupted.responses[0]).await, "You said: more");
    assert_eq!(*model.requests.lock().unwrap(), ["wait", "more"]);
}

/// A response from a model without an assistant is not resumed. Its status is failed, and cancelling does not change the status.
#[tokio::test]
async fn cancelling_returns_the_failure_of_a_crashed_response() {
    let interrupted = crash_during_responses(&["echo"]).await;
    let (server, _) = interrupted.restart(TestConfig::default().options).await;
    let client = server.client();
    let response = client.post(&format!("{}/cancel", interrupted.response_path(0)), json!({})).await.expect(200);
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert_eq!(client.get(&interrupted.response_path(0)).await.expect(200), response);
    assert_eq!(client.delete(&interrupted.response_path(0)).await.expect(200)["deleted"], true);
    assert_eq!(client.get(&interrupted.response_path(0)).await.code(404), "not_found");
}

#[tokio::test]
async fn without_automatic_resumption_responses_resume_when_they_are_read() {
    let interrupted = crash_during_responses(&["threadkeep/keeper", "threadkeep/keeper"]).await;
    let (server, model) = interrupted.restart(options_without_resuming()).await;
    let client = server.client();
    let other = json!({ "model": "threadkeep/keeper", "input": "hello" });
    client.post("/v1/responses", other).await.expect(200);
    assert_eq!(*model.requests.lock().unwrap(), ["hello"], "the interrupted responses were not resumed");
    assert_eq!(client.get(&interrupted.response_path(0)).await.expect(200)["status"], "in_progress");
    model.wait_until_blocked().await;
    model.unblock();
    let response = wait_for_response(&client, interrupted.responses[0]["id"].as_str().unwrap()).await;
    assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: wait");
    assert_eq!(*model.requests.lock().unwrap(), ["hello", "wait"], "the second response is still interrupted");

    let cancelled = client.post(&format!("{}/cancel", interrupted.response_path(1)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    assert_eq!(client.get(&interrupted.response_path(1)).await.expect(200), cancelled);
    assert_eq!(ask_more(&client, &interrupted.responses[1]).await, "You said: more");
    assert!(!client.texts(interrupted.thread_id(1)).await.contains(&"You said: wait".to_owned()));
    assert_eq!(client.get(&interrupted.response_path(1)).await.expect(200), cancelled);
}

/// A client that may only read must not cause calls to models or tools, or writes.
#[tokio::test]
async fn reads_with_the_read_role_do_not_resume_turns() {
    let interrupted = crash_during_responses(&["threadkeep/keeper"]).await;
    let (server, model) = interrupted.restart(options_without_resuming()).await;
    let scope = Scope::user("local", "me").unwrap();
    let thread = interrupted.thread_id(0).parse().unwrap();
    let running = find_running_turn(&server.memory, &scope, thread).await.unwrap().unwrap();
    let turn = format!("/v1/threads/{thread}/turns/{}", running.turn);
    let reader = server.client_with_new_key("local", Some("me"), &[KeyRole::Read, KeyRole::Approve]).await;
    let writer = server.client_with_new_key("local", Some("me"), &[KeyRole::Write]).await;
    let change_number = async || server.memory.get_thread(&scope, thread).await.unwrap().positions.change;
    let before = change_number().await;
    for _ in 0..3 {
        assert_eq!(reader.get(&turn).await.expect(202)["status"], "running");
        assert_eq!(reader.get(&interrupted.response_path(0)).await.expect(200)["status"], "in_progress");
    }
    let streaming = reader.request("GET", &format!("{}?stream=true", interrupted.response_path(0)));
    let stream = streaming.send().await.unwrap();
    // If the turn had been resumed, its model would be called before this whole turn ends.
    let other = json!({ "model": "threadkeep/keeper", "input": "hello" });
    writer.post("/v1/responses", other).await.expect(200);
    assert_eq!(*model.requests.lock().unwrap(), ["hello"]);
    assert_eq!(change_number().await, before, "reading does not change the thread");
    drop(stream);
    assert_eq!(writer.get(&turn).await.expect(202)["status"], "running");
    model.wait_until_blocked().await;
    model.unblock();
    wait_for_response(&reader, interrupted.responses[0]["id"].as_str().unwrap()).await;
    assert_eq!(*model.requests.lock().unwrap(), ["hello", "wait"]);
    assert_eq!(reader.get(&turn).await.expect(200)["reply"], "You said: wait");
}
