//! Responses in the background whose server is gone.

use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::Scope;
use threadkeep::agent::find_running_turn;
use threadkeep_server::{KeyRole, ServerOptions};

use super::agents::answered;
use super::background::over;
use super::model::config_with_model;
use crate::Client;
use crate::assistants::{Keeper, keeper};
use crate::server::{TestConfig, TestServer};

/// A store in which responses were left, by the models that were asked for them.
struct Left {
    url: String,
    responses: Vec<Value>,
    _folder: tempfile::TempDir,
}

/// Cuts a server off, as by a crash, while models are asked.
async fn left_by(models: &[&str]) -> Left {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let ((definition, keeper), (echo, echoing)) = (keeper("keeper"), config_with_model());
    // One thread: another could see what goes first in the middle of it, and store that as a failure.
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
    Left { url, responses, _folder: folder }
}

impl Left {
    /// Another instance over the same store.
    async fn go_on(&self, options: ServerOptions) -> (TestServer, Arc<Keeper>) {
        let (definition, keeper) = keeper("keeper");
        let memory = threadkeep::open(&self.url).await.unwrap();
        let config = TestConfig { assistants: vec![definition], options, ..TestConfig::default() };
        (TestServer::over(memory, config).await, keeper)
    }

    fn path(&self, place: usize) -> String {
        format!("/v1/responses/{}", self.responses[place]["id"].as_str().unwrap())
    }

    fn thread(&self, place: usize) -> &str {
        self.responses[place]["conversation"]["id"].as_str().unwrap().trim_start_matches("conv_")
    }
}

fn unattended() -> ServerOptions {
    ServerOptions { resume_turns: false, ..TestConfig::default().options }
}

/// Asks the assistant in the thread of a response.
async fn ask_more(client: &Client, response: &Value) -> Value {
    let body = json!({ "model": "threadkeep/keeper", "input": "more", "conversation": response["conversation"] });
    client.post("/v1/responses", body).await.expect(200)["output"][0]["content"][0]["text"].clone()
}

#[tokio::test]
async fn another_instance_cancels_what_it_goes_on_with() {
    let left = left_by(&["threadkeep/keeper"]).await;
    let (server, keeper) = left.go_on(TestConfig::default().options).await;
    let client = server.client();
    keeper.wait_until_blocked().await;
    let cancelled = client.post(&format!("{}/cancel", left.path(0)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    answered(&server, left.thread(0)).await;
    assert_eq!(client.get(&left.path(0)).await.expect(200), cancelled);
    assert_eq!(client.post(&format!("{}/cancel", left.path(0)), json!({})).await.expect(200), cancelled);
    assert!(!client.texts(left.thread(0)).await.contains(&"You said: wait".to_owned()));
    assert_eq!(ask_more(&client, &left.responses[0]).await, "You said: more");
    assert_eq!(*keeper.requests.lock().unwrap(), ["wait", "more"]);
}

/// Nobody goes on with what a model alone was asked: it has failed, and cancelling does not change that.
#[tokio::test]
async fn what_failed_with_its_server_is_told_so_by_cancelling_too() {
    let left = left_by(&["echo"]).await;
    let (server, _) = left.go_on(TestConfig::default().options).await;
    let client = server.client();
    let told = client.post(&format!("{}/cancel", left.path(0)), json!({})).await.expect(200);
    assert_eq!((&told["status"], &told["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert_eq!(client.get(&left.path(0)).await.expect(200), told);
    assert_eq!(client.delete(&left.path(0)).await.expect(200)["deleted"], true);
    assert_eq!(client.get(&left.path(0)).await.code(404), "not_found");
}

#[tokio::test]
async fn where_turns_are_left_a_response_goes_on_once_it_is_asked_for() {
    let left = left_by(&["threadkeep/keeper", "threadkeep/keeper"]).await;
    let (server, keeper) = left.go_on(unattended()).await;
    let client = server.client();
    let other = json!({ "model": "threadkeep/keeper", "input": "hello" });
    client.post("/v1/responses", other).await.expect(200);
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello"], "nobody asked for the others");
    assert_eq!(client.get(&left.path(0)).await.expect(200)["status"], "in_progress");
    keeper.wait_until_blocked().await;
    keeper.unblock();
    let response = over(&client, left.responses[0]["id"].as_str().unwrap()).await;
    assert_eq!((&response["status"], &response["background"]), (&json!("completed"), &json!(true)));
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: wait");
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello", "wait"], "the other one is left still");

    let cancelled = client.post(&format!("{}/cancel", left.path(1)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    assert_eq!(client.get(&left.path(1)).await.expect(200), cancelled);
    assert_eq!(ask_more(&client, &left.responses[1]).await, "You said: more");
    assert!(!client.texts(left.thread(1)).await.contains(&"You said: wait".to_owned()));
    assert_eq!(client.get(&left.path(1)).await.expect(200), cancelled);
}

/// Reading is no leave to have models asked, tools called or anything stored.
#[tokio::test]
async fn who_may_only_read_drives_nothing_by_looking() {
    let left = left_by(&["threadkeep/keeper"]).await;
    let (server, keeper) = left.go_on(unattended()).await;
    let scope = Scope::user("local", "me").unwrap();
    let thread = left.thread(0).parse().unwrap();
    let running = find_running_turn(&server.memory, &scope, thread).await.unwrap().unwrap();
    let turn = format!("/v1/threads/{thread}/turns/{}", running.turn);
    let reader = server.keyed("local", Some("me"), &[KeyRole::Read, KeyRole::Approve]).await;
    let writer = server.keyed("local", Some("me"), &[KeyRole::Write]).await;
    let change = async || server.memory.get_thread(&scope, thread).await.unwrap().positions.change;
    let before = change().await;
    for _ in 0..3 {
        assert_eq!(reader.get(&turn).await.expect(202)["status"], "running");
        assert_eq!(reader.get(&left.path(0)).await.expect(200)["status"], "in_progress");
    }
    let streaming = reader.request("GET", &format!("{}?stream=true", left.path(0)));
    let stream = streaming.send().await.unwrap();
    // What would have been set going had as much time as a whole turn takes.
    let other = json!({ "model": "threadkeep/keeper", "input": "hello" });
    writer.post("/v1/responses", other).await.expect(200);
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello"]);
    assert_eq!(change().await, before, "nothing was written");
    drop(stream);
    assert_eq!(writer.get(&turn).await.expect(202)["status"], "running");
    keeper.wait_until_blocked().await;
    keeper.unblock();
    over(&reader, left.responses[0]["id"].as_str().unwrap()).await;
    assert_eq!(*keeper.requests.lock().unwrap(), ["hello", "wait"]);
    assert_eq!(reader.get(&turn).await.expect(200)["reply"], "You said: wait");
}
