//! Background responses that were interrupted by a crash of their server.

use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::Scope;
use threadkeep::agent::find_running_turn;
use threadkeep_server::{KeyRole, ServerOptions};

use super::agents::answered;
use super::background::wait_for_response;
use super::model::config_with_model;
use crate::Client;
use crate::assistants::{Keeper, keeper};
use crate::server::{TestConfig, TestServer};

/// A store with interrupted responses.
struct Interrupted {
    url: String,
    responses: Vec<Value>,
    _folder: tempfile::TempDir,
}

/// Creates a response of each model, and crashes the server while they are in progress.
async fn crash_during(models: &[&str]) -> Interrupted {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let ((definition, keeper), (echo, echoing)) = (keeper("keeper"), config_with_model());
    // One thread: during the crash, a second one could store the loss of the first as a failure.
    let crashing = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let memory = threadkeep::open(&url).await.unwrap();
    let config = TestConfig { assistants: vec![definition], ..echo };
    let server = crashing.spawn(TestServer::over(memory, config)).await.unwrap();
    let mut responses = Vec::new();
    for model in models {
        let body = json!({ "model": model, "input": "wait", "background": true });
        responses.push(server.client().post("/v1/responses", body).await.expect(200));
        match *model {
            "echo" => echoing.blocked.notified().await,
            _ => keeper.wait_until_blocked().await,
        }
    }
    crashing.shutdown_background();
    Interrupted { url, responses, _folder: folder }
}

impl Interrupted {
    /// Starts another instance over the same store.
    async fn restart(&self, options: ServerOptions) -> (TestServer, Arc<Keeper>) {
        let (definition, keeper) = keeper("keeper");
        let memory = threadkeep::open(&self.url).await.unwrap();
        let config = TestConfig { assistants: vec![definition], options, ..TestConfig::default() };
        (TestServer::over(memory, config).await, keeper)
    }

    fn path(&self, index: usize) -> String {
        format!("/v1/responses/{}", self.responses[index]["id"].as_str().unwrap())
    }

    fn thread(&self, index: usize) -> &str {
        self.responses[index]["conversation"]["id"].as_str().unwrap().trim_start_matches("conv_")
    }
}

fn without_resuming() -> ServerOptions {
    ServerOptions { resume_turns: false, ..TestConfig::default().options }
}

/// Sends another message to the assistant in the thread of a response.
async fn ask_more(client: &Client, response: &Value) -> Value {
    let body = json!({ "model": "threadkeep/keeper", "input": "more", "conversation": response["conversation"] });
    client.post("/v1/responses", body).await.expect(200)["output"][0]["content"][0]["text"].clone()
}

#[tokio::test]
async fn resumed_responses_can_be_cancelled() {
    let interrupted = crash_during(&["threadkeep/keeper"]).await;
    let (server, keeper) = interrupted.restart(TestConfig::default().options).await;
    let client = server.client();
    keeper.wait_until_blocked().await;
    let cancelled = client.post(&format!("{}/cancel", interrupted.path(0)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    answered(&server, interrupted.thread(0)).await;
    assert_eq!(client.get(&interrupted.path(0)).await.expect(200), cancelled);
    assert_eq!(client.post(&format!("{}/cancel", interrupted.path(0)), json!({})).await.expect(200), cancelled);
    assert!(!client.texts(interrupted.thread(0)).await.contains(&"You said: wait".to_owned()));
    assert_eq!(ask_more(&client, &interrupted.responses[0]).await, "You said: more");
    assert_eq!(*keeper.requests.lock().unwrap(), ["wait", "more"]);
}

/// A response of a model alone is not resumed: it has failed, and cancelling does not change that.
#[tokio::test]
async fn cancelling_returns_the_failure_of_a_crashed_response() {
    let interrupted = crash_during(&["echo"]).await;
    let (server, _) = interrupted.restart(TestConfig::default().options).await;
    let client = server.client();
    let response = client.post(&format!("{}/cancel", interrupted.path(0)), json!({})).await.expect(200);
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert_eq!(client.get(&interrupted.path(0)).await.expect(200), response);
    assert_eq!(client.delete(&interrupted.path(0)).await.expect(200)["deleted"], true);
    assert_eq!(client.get(&interrupted.path(0)).await.code(404), "not_found");
}

#[tokio::test]
async fn without_automatic_resumption_responses_resume_when_they_are_read() {
    let interrupted = crash_during(&["threadkeep/keeper", "threadkeep/keeper"]).await;
    let (server, keeper) = interrupted.restart(without_resuming()).await;
    let client = server.client();
    let other = json!({ "model": "threadkeep/keeper", "input": "hello" });
    client.post("/v1/responses", other).await.expect(200);
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello"], "the others were not resumed");
    assert_eq!(client.get(&interrupted.path(0)).await.expect(200)["status"], "in_progress");
    keeper.wait_until_blocked().await;
    keeper.unblock();
    let response = wait_for_response(&client, interrupted.responses[0]["id"].as_str().unwrap()).await;
    assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: wait");
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello", "wait"], "the other one is still interrupted");

    let cancelled = client.post(&format!("{}/cancel", interrupted.path(1)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    assert_eq!(client.get(&interrupted.path(1)).await.expect(200), cancelled);
    assert_eq!(ask_more(&client, &interrupted.responses[1]).await, "You said: more");
    assert!(!client.texts(interrupted.thread(1)).await.contains(&"You said: wait".to_owned()));
    assert_eq!(client.get(&interrupted.path(1)).await.expect(200), cancelled);
}

/// The permission to read does not include calling models or tools, or storing anything.
#[tokio::test]
async fn reading_with_the_read_role_resumes_nothing() {
    let interrupted = crash_during(&["threadkeep/keeper"]).await;
    let (server, keeper) = interrupted.restart(without_resuming()).await;
    let scope = Scope::user("local", "me").unwrap();
    let thread = interrupted.thread(0).parse().unwrap();
    let running = find_running_turn(&server.memory, &scope, thread).await.unwrap().unwrap();
    let turn = format!("/v1/threads/{thread}/turns/{}", running.turn);
    let reader = server.keyed("local", Some("me"), &[KeyRole::Read, KeyRole::Approve]).await;
    let writer = server.keyed("local", Some("me"), &[KeyRole::Write]).await;
    let change = async || server.memory.get_thread(&scope, thread).await.unwrap().positions.change;
    let before = change().await;
    for _ in 0..3 {
        assert_eq!(reader.get(&turn).await.expect(202)["status"], "running");
        assert_eq!(reader.get(&interrupted.path(0)).await.expect(200)["status"], "in_progress");
    }
    let streaming = reader.request("GET", &format!("{}?stream=true", interrupted.path(0)));
    let stream = streaming.send().await.unwrap();
    // A resumed turn would have had as much time as this whole turn.
    let other = json!({ "model": "threadkeep/keeper", "input": "hello" });
    writer.post("/v1/responses", other).await.expect(200);
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello"]);
    assert_eq!(change().await, before, "nothing was written");
    drop(stream);
    assert_eq!(writer.get(&turn).await.expect(202)["status"], "running");
    keeper.wait_until_blocked().await;
    keeper.unblock();
    wait_for_response(&reader, interrupted.responses[0]["id"].as_str().unwrap()).await;
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello", "wait"]);
    assert_eq!(reader.get(&turn).await.expect(200)["reply"], "You said: wait");
}
