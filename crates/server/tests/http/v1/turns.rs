//! Turns of assistants and calls to models in one conversation, on two instances with one store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use threadkeep::agent::{BusyPolicy, find_running_turn};
use threadkeep::{Scope, ThreadId};
use threadkeep_server::KeyRole;
use tokio::task::JoinHandle;

use super::model::{Echo, config_with_model};
use crate::Client;
use crate::assistants::{CommandModel, test_assistant};
use crate::server::{TIMEOUT, TestConfig, TestServer, send};

/// Two instances on one file, each with its own store handle, an assistant and a model.
struct TwoServers {
    first: TestServer,
    second: TestServer,
    assistant_model: Arc<CommandModel>,
    echo: Arc<Echo>,
}

impl TwoServers {
    async fn start() -> Self {
        Self::start_with(BusyPolicy::default()).await
    }

    async fn start_with(busy: BusyPolicy) -> Self {
        let ((mut definition, assistant_model), (config, echo)) = (test_assistant("keeper"), config_with_model());
        definition.busy = busy;
        let model = config.model.clone();
        let first = TestServer::start_with(TestConfig { assistants: vec![definition.clone()], ..config }).await;
        let memory = threadkeep::open(&first.store_url()).await.unwrap();
        let second =
            TestServer::start_on(memory, TestConfig { assistants: vec![definition], model, ..TestConfig::default() })
                .await;
        Self { first, second, assistant_model, echo }
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
async fn find_running(server: &TestServer, scope: &Scope, thread: &str) -> Option<String> {
    let thread: ThreadId = thread.parse().unwrap();
    find_running_turn(&server.memory, scope, thread).await.unwrap().map(|running| running.turn)
}

fn local_scope() -> Scope {
    Scope::user("local", "me").unwrap()
}

#[tokio::test]
async fn assistants_wait_for_running_model_calls() {
    let servers = TwoServers::start().await;
    let (first_client, second_client) = (servers.first.client(), servers.second.client());
    for api in ["chat", "responses"] {
        let thread = first_client.new_thread().await;
        let first = ask_model(&first_client, api, &thread, "wait");
        servers.echo.blocked.notified().await;
        let second = ask_assistant(&second_client, &thread, "hello");
        // If the turn did not wait, its messages would be stored after this time.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(
            !second.is_finished() && second_client.texts(&thread).await.is_empty(),
            "{api}: the turn has not started"
        );
        servers.echo.unblock.notify_one();
        first.await.unwrap().expect(200);
        assert_eq!(second.await.unwrap().expect(200)["reply"], "You said: hello");
        assert_eq!(second_client.texts(&thread).await, ["wait", "echo: wait (1 messages)", "hello", "You said: hello"]);
    }
}

#[tokio::test]
async fn models_are_not_called_during_assistant_turns() {
    let servers = TwoServers::start().await;
    let (first_client, second_client) = (servers.first.client(), servers.second.client());
    for api in ["chat", "responses"] {
        let thread = first_client.new_thread().await;
        let first = ask_assistant(&first_client, &thread, "wait");
        servers.assistant_model.wait_until_blocked().await;
        let count = servers.echo.requests.lock().unwrap().len();
        assert_eq!(ask_model(&second_client, api, &thread, "hello").await.unwrap().code(400), "conversation_locked");
        assert_eq!(servers.echo.requests.lock().unwrap().len(), count);
        servers.assistant_model.unblock();
        assert_eq!(first.await.unwrap().expect(200)["reply"], "You said: wait");
        ask_model(&second_client, api, &thread, "hello").await.unwrap().expect(200);
        assert_eq!(second_client.texts(&thread).await[..3], ["wait", "You said: wait", "hello"]);
    }
}

#[tokio::test]
async fn assistants_with_the_refuse_policy_are_rejected() {
    let servers = TwoServers::start_with(BusyPolicy::Refuse).await;
    let (first_client, second_client) = (servers.first.client(), servers.second.client());
    let thread = first_client.new_thread().await;
    let first = ask_model(&first_client, "responses", &thread, "wait");
    servers.echo.blocked.notified().await;
    assert_eq!(ask_assistant(&second_client, &thread, "hello").await.unwrap().code(409), "busy");
    servers.echo.unblock.notify_one();
    first.await.unwrap().expect(200);
}

/// Users may not write records of a thread that belongs to the tenant. Nevertheless, a turn of one user locks out other users.
#[tokio::test]
async fn turns_of_different_users_lock_a_shared_thread() {
    let servers = TwoServers::start().await;
    let roles = [KeyRole::Write, KeyRole::Read];
    let ana = servers.first.client_with_new_key("acme", Some("ana"), &roles).await;
    let ben = servers.second.client_with_new_key("acme", Some("ben"), &roles).await;
    for api in ["chat", "responses"] {
        let body = json!({ "owner": "tenant", "key": format!("slack:{api}") });
        let thread = ana.post("/v1/threads", body).await.expect(201)["id"].as_str().unwrap().to_owned();
        // A call to a model locks out other calls to models and turns of assistants.
        let first = ask_model(&ana, api, &thread, "wait");
        servers.echo.blocked.notified().await;
        assert_eq!(ask_model(&ben, api, &thread, "me too").await.unwrap().code(400), "conversation_locked");
        let waiting = ask_assistant(&ben, &thread, "hello");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!waiting.is_finished() && ben.texts(&thread).await.is_empty());
        servers.echo.unblock.notify_one();
        first.await.unwrap().expect(200);
        waiting.await.unwrap().expect(200);
        // An assistant's turn locks out calls to models.
        let first = ask_assistant(&ana, &thread, "wait");
        servers.assistant_model.wait_until_blocked().await;
        assert_eq!(ask_model(&ben, api, &thread, "me too").await.unwrap().code(400), "conversation_locked");
        servers.assistant_model.unblock();
        first.await.unwrap().expect(200);
        let texts = ben.texts(&thread).await;
        assert_eq!(texts[2..], ["hello", "You said: hello", "wait", "You said: wait"]);
    }
}

#[tokio::test]
async fn repeated_requests_in_a_shared_thread_return_the_first_response() {
    let servers = TwoServers::start().await;
    let roles = [KeyRole::Write, KeyRole::Read];
    let ana = servers.first.client_with_new_key("acme", Some("ana"), &roles).await;
    let second_client = servers.second.client().with_key(ana.key.as_deref().unwrap());
    let body = json!({ "owner": "tenant", "key": "slack:C1" });
    let thread = ana.post("/v1/threads", body).await.expect(201)["id"].as_str().unwrap().to_owned();
    let body = json!({ "input": "hello", "conversation": format!("conv_{}", thread.replace('-', "")) });
    let ask =
        |client: &Client| send(client.request("POST", "/v1/responses").header("idempotency-key", "once").json(&body));
    let first = ask(&ana).await.expect(200);
    assert_eq!(ask(&second_client).await.expect(200), first);
    assert_eq!(servers.echo.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn model_calls_can_be_cancelled_from_any_instance() {
    let servers = TwoServers::start().await;
    let (first_client, second_client) = (servers.first.client(), servers.second.client());
    let thread = first_client.new_thread().await;
    let pending = ask_model(&first_client, "responses", &thread, "wait");
    servers.echo.blocked.notified().await;
    let turn = find_running(&servers.second, &local_scope(), &thread).await.unwrap();
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    let found = second_client.get(&path).await.expect(202);
    assert_eq!((&found["status"], &found["agent"]), (&json!("running"), &json!("")));
    let cancelled = second_client.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(pending.await.unwrap().code(400), "stopped");
    // Nothing of the cancelled call is stored, and the thread is unlocked.
    assert!(first_client.texts(&thread).await.is_empty());
    assert_eq!(second_client.get(&path).await.code(404), "not_found");
    assert_eq!(second_client.post(&format!("{path}/cancel"), json!({})).await.code(404), "not_found");
    ask_model(&second_client, "responses", &thread, "hello").await.unwrap().expect(200);
}

/// After a crash, calls to models are not repeated, and their threads are unlocked.
#[tokio::test]
async fn interrupted_model_calls_are_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let crashing_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (config, echo) = config_with_model();
    let memory = threadkeep::open(&url).await.unwrap();
    let server = crashing_runtime.spawn(TestServer::start_on(memory, config)).await.unwrap();
    let client = server.client();
    let thread = client.new_thread().await;
    let pending = ask_model(&client, "chat", &thread, "wait");
    echo.blocked.notified().await;
    crashing_runtime.shutdown_background();
    drop(pending);
    let (definition, _) = test_assistant("keeper");
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let server = TestServer::start_on(threadkeep::open(&url).await.unwrap(), config).await;
    let client = server.client();
    // The server looks for interrupted turns and unlocks their threads without a request.
    let unlocked = async {
        while find_running(&server, &local_scope(), &thread).await.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, unlocked).await.unwrap();
    assert!(client.texts(&thread).await.is_empty());
    assert_eq!(ask_assistant(&client, &thread, "hello").await.unwrap().expect(200)["reply"], "You said: hello");
}

/// Before a model is called in a thread, an interrupted turn of an assistant in the thread is ended.
#[tokio::test]
async fn interrupted_assistant_turns_end_before_a_model_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let crashing_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (definition, model) = test_assistant("keeper");
    let memory = threadkeep::open(&url).await.unwrap();
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let server = crashing_runtime.spawn(TestServer::start_on(memory, config)).await.unwrap();
    let client = server.client();
    let threads = [client.new_thread().await, client.new_thread().await];
    for thread in &threads {
        drop(ask_assistant(&client, thread, "wait"));
        model.wait_until_blocked().await;
    }
    crashing_runtime.shutdown_background();
    let (mut config, _) = config_with_model();
    config.options.resume_turns = false;
    // If the assistant is not available, the turn is closed.
    let server = TestServer::start_on(threadkeep::open(&url).await.unwrap(), config).await;
    let client = server.client();
    ask_model(&client, "chat", &threads[0], "hello").await.unwrap().expect(200);
    let texts = client.texts(&threads[0]).await;
    assert_eq!((texts.len(), &texts[0], &texts[2]), (4, &"wait".to_owned(), &"hello".to_owned()));
    // If the assistant is available, the turn is resumed.
    let (definition, model) = test_assistant("keeper");
    let (mut config, _) = config_with_model();
    config.options.resume_turns = false;
    let config = TestConfig { assistants: vec![definition], ..config };
    let server = TestServer::start_on(threadkeep::open(&url).await.unwrap(), config).await;
    let pending = ask_model(&server.client(), "chat", &threads[1], "hello");
    model.wait_until_blocked().await;
    model.unblock();
    pending.await.unwrap().expect(200);
    assert_eq!(server.client().texts(&threads[1]).await[..3], ["wait", "You said: wait", "hello"]);
}

/// Stored turns can be read on a server that does not have their assistant.
#[tokio::test]
async fn turns_can_be_read_without_their_assistant() {
    let servers = TwoServers::start().await;
    let client = servers.first.client();
    let ask = |text: &str| client.post("/v1/agents/keeper/turns", json!({ "text": text }));
    let (finished, waiting) = (ask("hello").await.expect(200), ask("delete lamp").await.expect(200));
    assert_eq!(waiting["status"], "waiting_for_approval");
    let memory = threadkeep::open(&servers.first.store_url()).await.unwrap();
    let server_without_assistant = TestServer::start_on(memory, TestConfig::default()).await;
    let client_without_assistant = server_without_assistant.client();
    let path = |turn: &Value| {
        format!("/v1/threads/{}/turns/{}", turn["thread"].as_str().unwrap(), turn["turn"].as_str().unwrap())
    };
    for turn in [&finished, &waiting] {
        assert_eq!(
            client_without_assistant.get(&path(turn)).await.expect(200),
            client.get(&path(turn)).await.expect(200)
        );
    }
    let approval = waiting["approvals"][0]["id"].as_str().unwrap();
    let listed = client_without_assistant.get("/v1/approvals").await.expect(200);
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["id"]), (1, &json!(approval)));
    let approval_path = format!("/v1/threads/{}/approvals/{approval}", waiting["thread"].as_str().unwrap());
    assert_eq!(client_without_assistant.get(&approval_path).await.expect(200)["state"], "pending");
    assert_eq!(
        client_without_assistant.post(&approval_path, json!({ "decision": "approve" })).await.code(409),
        "assistant_not_here"
    );
    let cancelled = client_without_assistant.post(&format!("{}/cancel", path(&waiting)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!((&cancelled["usage"], &cancelled["model"]), (&waiting["usage"], &waiting["model"]));
    assert_eq!(client_without_assistant.get(&approval_path).await.expect(200)["state"], "replaced");
    assert_eq!(client_without_assistant.get(&path(&waiting)).await.expect(200), cancelled);
}
