//! Turns of assistants and of models in one conversation, on two instances over one store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use threadkeep::agent::{BusyPolicy, find_running_turn};
use threadkeep::{Scope, ThreadId};
use threadkeep_server::KeyRole;
use tokio::task::JoinHandle;

use super::model::{Echo, config_with_model};
use crate::Client;
use crate::assistants::{Keeper, keeper};
use crate::server::{PATIENCE, TestConfig, TestServer, send};

/// Two instances over one file, each with its own store handle, an assistant and a model.
struct TwoServers {
    one: TestServer,
    other: TestServer,
    keeper: Arc<Keeper>,
    echo: Arc<Echo>,
}

impl TwoServers {
    async fn start() -> Self {
        Self::start_with(BusyPolicy::default()).await
    }

    async fn start_with(busy: BusyPolicy) -> Self {
        let ((mut definition, keeper), (config, echo)) = (keeper("keeper"), config_with_model());
        definition.busy = busy;
        let model = config.model.clone();
        let one = TestServer::start_with(TestConfig { assistants: vec![definition.clone()], ..config }).await;
        let memory = threadkeep::open(&one.store_url()).await.unwrap();
        let other =
            TestServer::over(memory, TestConfig { assistants: vec![definition], model, ..TestConfig::default() }).await;
        Self { one, other, keeper, echo }
    }
}

/// Sends a message to the assistant over REST, without waiting for the response.
fn ask_assistant(client: &Client, thread: &str, text: &str) -> JoinHandle<crate::server::Answer> {
    let body = json!({ "text": text, "thread": thread });
    tokio::spawn(send(client.request("POST", "/v1/agents/keeper/turns").json(&body)))
}

/// Sends a message to the model over the OpenAI API, without waiting for the response.
fn ask_model(client: &Client, api: &str, thread: &str, text: &str) -> JoinHandle<crate::server::Answer> {
    let (path, body) = match api {
        "chat" => {
            let messages = json!([{ "role": "user", "content": text }]);
            ("/v1/chat/completions", json!({ "messages": messages, "metadata": { "thread": thread } }))
        }
        _ => {
            let conversation = format!("conv_{}", thread.replace('-', ""));
            ("/v1/responses", json!({ "input": text, "conversation": conversation }))
        }
    };
    tokio::spawn(send(client.request("POST", path).json(&body)))
}

/// Returns the running turn of a thread.
async fn running(server: &TestServer, scope: &Scope, thread: &str) -> Option<String> {
    let thread: ThreadId = thread.parse().unwrap();
    find_running_turn(&server.memory, scope, thread).await.unwrap().map(|running| running.turn)
}

fn local() -> Scope {
    Scope::user("local", "me").unwrap()
}

#[tokio::test]
async fn assistants_wait_for_running_calls_of_models() {
    let servers = TwoServers::start().await;
    let (one, other) = (servers.one.client(), servers.other.client());
    for api in ["chat", "responses"] {
        let thread = one.new_thread().await;
        let first = ask_model(&one, api, &thread, "wait");
        servers.echo.blocked.notified().await;
        let second = ask_assistant(&other, &thread, "hello");
        // Long enough for a turn that does not wait to be stored.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!second.is_finished() && other.texts(&thread).await.is_empty(), "{api}: the turn has not started");
        servers.echo.unblock.notify_one();
        first.await.unwrap().expect(200);
        assert_eq!(second.await.unwrap().expect(200)["reply"], "You said: hello");
        assert_eq!(other.texts(&thread).await, ["wait", "echo: wait (1 messages)", "hello", "You said: hello"]);
    }
}

#[tokio::test]
async fn models_are_not_called_during_turns_of_assistants() {
    let servers = TwoServers::start().await;
    let (one, other) = (servers.one.client(), servers.other.client());
    for api in ["chat", "responses"] {
        let thread = one.new_thread().await;
        let first = ask_assistant(&one, &thread, "wait");
        servers.keeper.wait_until_blocked().await;
        let count = servers.echo.requests.lock().unwrap().len();
        assert_eq!(ask_model(&other, api, &thread, "hello").await.unwrap().code(400), "conversation_locked");
        assert_eq!(servers.echo.requests.lock().unwrap().len(), count);
        servers.keeper.unblock();
        assert_eq!(first.await.unwrap().expect(200)["reply"], "You said: wait");
        ask_model(&other, api, &thread, "hello").await.unwrap().expect(200);
        assert_eq!(other.texts(&thread).await[..3], ["wait", "You said: wait", "hello"]);
    }
}

#[tokio::test]
async fn assistants_with_the_refuse_policy_are_rejected() {
    let servers = TwoServers::start_with(BusyPolicy::Refuse).await;
    let (one, other) = (servers.one.client(), servers.other.client());
    let thread = one.new_thread().await;
    let first = ask_model(&one, "responses", &thread, "wait");
    servers.echo.blocked.notified().await;
    assert_eq!(ask_assistant(&other, &thread, "hello").await.unwrap().code(409), "busy");
    servers.echo.unblock.notify_one();
    first.await.unwrap().expect(200);
}

/// The thread belongs to the tenant, so users may not write its records; turns of different users lock each other nevertheless.
#[tokio::test]
async fn turns_of_different_users_lock_a_shared_thread() {
    let servers = TwoServers::start().await;
    let roles = [KeyRole::Write, KeyRole::Read];
    let ana = servers.one.keyed("acme", Some("ana"), &roles).await;
    let ben = servers.other.keyed("acme", Some("ben"), &roles).await;
    for api in ["chat", "responses"] {
        let body = json!({ "owner": "tenant", "key": format!("slack:{api}") });
        let thread = ana.post("/v1/threads", body).await.expect(201)["id"].as_str().unwrap().to_owned();
        // A model's turn locks out both kinds.
        let first = ask_model(&ana, api, &thread, "wait");
        servers.echo.blocked.notified().await;
        assert_eq!(ask_model(&ben, api, &thread, "me too").await.unwrap().code(400), "conversation_locked");
        let waiting = ask_assistant(&ben, &thread, "hello");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!waiting.is_finished() && ben.texts(&thread).await.is_empty());
        servers.echo.unblock.notify_one();
        first.await.unwrap().expect(200);
        waiting.await.unwrap().expect(200);
        // An assistant's turn locks out a model's.
        let first = ask_assistant(&ana, &thread, "wait");
        servers.keeper.wait_until_blocked().await;
        assert_eq!(ask_model(&ben, api, &thread, "me too").await.unwrap().code(400), "conversation_locked");
        servers.keeper.unblock();
        first.await.unwrap().expect(200);
        let texts = ben.texts(&thread).await;
        assert_eq!(texts[2..], ["hello", "You said: hello", "wait", "You said: wait"]);
    }
}

#[tokio::test]
async fn repeated_requests_in_a_shared_thread_return_the_first_response() {
    let servers = TwoServers::start().await;
    let roles = [KeyRole::Write, KeyRole::Read];
    let ana = servers.one.keyed("acme", Some("ana"), &roles).await;
    let again = servers.other.client().with_key(ana.key.as_deref().unwrap());
    let body = json!({ "owner": "tenant", "key": "slack:C1" });
    let thread = ana.post("/v1/threads", body).await.expect(201)["id"].as_str().unwrap().to_owned();
    let body = json!({ "input": "hello", "conversation": format!("conv_{}", thread.replace('-', "")) });
    let ask =
        |client: &Client| send(client.request("POST", "/v1/responses").header("idempotency-key", "once").json(&body));
    let first = ask(&ana).await.expect(200);
    assert_eq!(ask(&again).await.expect(200), first);
    assert_eq!(servers.echo.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn calls_of_models_can_be_cancelled_from_any_instance() {
    let servers = TwoServers::start().await;
    let (one, other) = (servers.one.client(), servers.other.client());
    let thread = one.new_thread().await;
    let pending = ask_model(&one, "responses", &thread, "wait");
    servers.echo.blocked.notified().await;
    let turn = running(&servers.other, &local(), &thread).await.unwrap();
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    let found = other.get(&path).await.expect(202);
    assert_eq!((&found["status"], &found["agent"]), (&json!("running"), &json!("")));
    let cancelled = other.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(pending.await.unwrap().code(400), "stopped");
    // Nothing of it is stored, and the thread is unlocked.
    assert!(one.texts(&thread).await.is_empty());
    assert_eq!(other.get(&path).await.code(404), "not_found");
    assert_eq!(other.post(&format!("{path}/cancel"), json!({})).await.code(404), "not_found");
    ask_model(&other, "responses", &thread, "hello").await.unwrap().expect(200);
}

/// After a crash, the call of a model is not repeated, and its thread is unlocked.
#[tokio::test]
async fn interrupted_calls_of_models_are_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let crashing = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (config, echo) = config_with_model();
    let memory = threadkeep::open(&url).await.unwrap();
    let server = crashing.spawn(TestServer::over(memory, config)).await.unwrap();
    let client = server.client();
    let thread = client.new_thread().await;
    let pending = ask_model(&client, "chat", &thread, "wait");
    echo.blocked.notified().await;
    crashing.shutdown_background();
    drop(pending);
    let (definition, _) = keeper("keeper");
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let server = TestServer::over(threadkeep::open(&url).await.unwrap(), config).await;
    let client = server.client();
    // The search for interrupted turns unlocks the thread without a request.
    let freed = async {
        while running(&server, &local(), &thread).await.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.unwrap();
    assert!(client.texts(&thread).await.is_empty());
    assert_eq!(ask_assistant(&client, &thread, "hello").await.unwrap().expect(200)["reply"], "You said: hello");
}

/// An interrupted turn of an assistant ends before a model is called in its thread.
#[tokio::test]
async fn interrupted_turns_end_before_a_model_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let crashing = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (definition, model) = keeper("keeper");
    let memory = threadkeep::open(&url).await.unwrap();
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let server = crashing.spawn(TestServer::over(memory, config)).await.unwrap();
    let client = server.client();
    let threads = [client.new_thread().await, client.new_thread().await];
    for thread in &threads {
        drop(ask_assistant(&client, thread, "wait"));
        model.wait_until_blocked().await;
    }
    crashing.shutdown_background();
    let (mut config, _) = config_with_model();
    config.options.resume_turns = false;
    // Without its assistant, the turn is closed.
    let server = TestServer::over(threadkeep::open(&url).await.unwrap(), config).await;
    let client = server.client();
    ask_model(&client, "chat", &threads[0], "hello").await.unwrap().expect(200);
    let texts = client.texts(&threads[0]).await;
    assert_eq!((texts.len(), &texts[0], &texts[2]), (4, &"wait".to_owned(), &"hello".to_owned()));
    // With its assistant, the turn is resumed.
    let (definition, model) = keeper("keeper");
    let (mut config, _) = config_with_model();
    config.options.resume_turns = false;
    let config = TestConfig { assistants: vec![definition], ..config };
    let server = TestServer::over(threadkeep::open(&url).await.unwrap(), config).await;
    let pending = ask_model(&server.client(), "chat", &threads[1], "hello");
    model.wait_until_blocked().await;
    model.unblock();
    pending.await.unwrap().expect(200);
    assert_eq!(server.client().texts(&threads[1]).await[..3], ["wait", "You said: wait", "hello"]);
}

/// Stored turns can be read without their assistant.
#[tokio::test]
async fn turns_are_found_without_their_assistant() {
    let servers = TwoServers::start().await;
    let client = servers.one.client();
    let ask = |text: &str| client.post("/v1/agents/keeper/turns", json!({ "text": text }));
    let (finished, waiting) = (ask("hello").await.expect(200), ask("delete lamp").await.expect(200));
    assert_eq!(waiting["status"], "waiting_for_approval");
    let memory = threadkeep::open(&servers.one.store_url()).await.unwrap();
    let bare = TestServer::over(memory, TestConfig::default()).await;
    let bare = bare.client();
    let path = |turn: &Value| {
        format!("/v1/threads/{}/turns/{}", turn["thread"].as_str().unwrap(), turn["turn"].as_str().unwrap())
    };
    for turn in [&finished, &waiting] {
        assert_eq!(bare.get(&path(turn)).await.expect(200), client.get(&path(turn)).await.expect(200));
    }
    let approval = waiting["approvals"][0]["id"].as_str().unwrap();
    let listed = bare.get("/v1/approvals").await.expect(200);
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["id"]), (1, &json!(approval)));
    let found = format!("/v1/threads/{}/approvals/{approval}", waiting["thread"].as_str().unwrap());
    assert_eq!(bare.get(&found).await.expect(200)["state"], "pending");
    assert_eq!(bare.post(&found, json!({ "decision": "approve" })).await.code(409), "assistant_not_here");
    let cancelled = bare.post(&format!("{}/cancel", path(&waiting)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!((&cancelled["usage"], &cancelled["model"]), (&waiting["usage"], &waiting["model"]));
    assert_eq!(bare.get(&found).await.expect(200)["state"], "replaced");
    assert_eq!(bare.get(&path(&waiting)).await.expect(200), cancelled);
}
