//! Turns of both kinds in one conversation: an assistant's and a model's, on two instances over one store.

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

/// Two instances over one file, each with a handle of its own, which have an assistant and a model.
struct Two {
    one: TestServer,
    other: TestServer,
    keeper: Arc<Keeper>,
    echo: Arc<Echo>,
}

impl Two {
    async fn start() -> Self {
        Self::start_with(BusyPolicy::default()).await
    }

    async fn start_with(busy: BusyPolicy) -> Self {
        let ((mut definition, keeper), (config, echo)) = (keeper("keeper"), config_with_model());
        definition.busy = busy;
        let model = config.model.clone();
        let one = TestServer::start_with(TestConfig { assistants: vec![definition.clone()], ..config }).await;
        let memory = threadkeep::open(&one.store_url()).await.unwrap();
        let other = TestServer::over(memory, TestConfig { assistants: vec![definition], model, ..TestConfig::default() }).await;
        Self { one, other, keeper, echo }
    }
}

/// Asks the assistant over REST, without waiting for the answer.
fn asks_assistant(client: &Client, thread: &str, text: &str) -> JoinHandle<crate::server::Answer> {
    let body = json!({ "text": text, "thread": thread });
    tokio::spawn(send(client.request("POST", "/v1/agents/keeper/turns").json(&body)))
}

/// Asks the model on the OpenAI wire, without waiting for the answer.
fn asks_model(client: &Client, door: &str, thread: &str, text: &str) -> JoinHandle<crate::server::Answer> {
    let (path, body) = match door {
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

/// The turn that holds a thread.
async fn running(server: &TestServer, scope: &Scope, thread: &str) -> Option<String> {
    let thread: ThreadId = thread.parse().unwrap();
    find_running_turn(&server.memory, scope, thread).await.unwrap().map(|running| running.turn)
}

fn local() -> Scope {
    Scope::user("local", "me").unwrap()
}

#[tokio::test]
async fn an_assistant_waits_for_the_answer_of_a_model() {
    let two = Two::start().await;
    let (one, other) = (two.one.client(), two.other.client());
    for door in ["chat", "responses"] {
        let thread = one.new_thread().await;
        let first = asks_model(&one, door, &thread, "wait");
        two.echo.blocked.notified().await;
        let second = asks_assistant(&other, &thread, "hello");
        // Long enough for what does not wait to be stored.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!second.is_finished() && other.texts(&thread).await.is_empty(), "{door}: it begins nothing");
        two.echo.go.notify_one();
        first.await.unwrap().expect(200);
        assert_eq!(second.await.unwrap().expect(200)["reply"], "You said: hello");
        assert_eq!(other.texts(&thread).await, ["wait", "echo: wait (1 messages)", "hello", "You said: hello"]);
    }
}

#[tokio::test]
async fn a_model_is_not_asked_while_an_assistant_answers() {
    let two = Two::start().await;
    let (one, other) = (two.one.client(), two.other.client());
    for door in ["chat", "responses"] {
        let thread = one.new_thread().await;
        let first = asks_assistant(&one, &thread, "wait");
        two.keeper.wait_until_blocked().await;
        let asked = two.echo.requests.lock().unwrap().len();
        assert_eq!(asks_model(&other, door, &thread, "hello").await.unwrap().code(400), "conversation_locked");
        assert_eq!(two.echo.requests.lock().unwrap().len(), asked);
        two.keeper.unblock();
        assert_eq!(first.await.unwrap().expect(200)["reply"], "You said: wait");
        asks_model(&other, door, &thread, "hello").await.unwrap().expect(200);
        assert_eq!(other.texts(&thread).await[..3], ["wait", "You said: wait", "hello"]);
    }
}

#[tokio::test]
async fn an_assistant_that_does_not_wait_is_refused() {
    let two = Two::start_with(BusyPolicy::Refuse).await;
    let (one, other) = (two.one.client(), two.other.client());
    let thread = one.new_thread().await;
    let first = asks_model(&one, "responses", &thread, "wait");
    two.echo.blocked.notified().await;
    assert_eq!(asks_assistant(&other, &thread, "hello").await.unwrap().code(409), "busy");
    two.echo.go.notify_one();
    first.await.unwrap().expect(200);
}

/// The thread is the tenant's, and its users may write none of its documents: they lock each other all the same.
#[tokio::test]
async fn users_who_share_a_thread_lock_each_other() {
    let two = Two::start().await;
    let roles = [KeyRole::Write, KeyRole::Read];
    let ana = two.one.keyed("acme", Some("ana"), &roles).await;
    let ben = two.other.keyed("acme", Some("ben"), &roles).await;
    for door in ["chat", "responses"] {
        let body = json!({ "owner": "tenant", "key": format!("slack:{door}") });
        let thread = ana.post("/v1/threads", body).await.expect(201)["id"].as_str().unwrap().to_owned();
        // A model's turn against both kinds.
        let first = asks_model(&ana, door, &thread, "wait");
        two.echo.blocked.notified().await;
        assert_eq!(asks_model(&ben, door, &thread, "me too").await.unwrap().code(400), "conversation_locked");
        let waits = asks_assistant(&ben, &thread, "hello");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!waits.is_finished() && ben.texts(&thread).await.is_empty());
        two.echo.go.notify_one();
        first.await.unwrap().expect(200);
        waits.await.unwrap().expect(200);
        // An assistant's turn against a model's.
        let first = asks_assistant(&ana, &thread, "wait");
        two.keeper.wait_until_blocked().await;
        assert_eq!(asks_model(&ben, door, &thread, "me too").await.unwrap().code(400), "conversation_locked");
        two.keeper.unblock();
        first.await.unwrap().expect(200);
        let texts = ben.texts(&thread).await;
        assert_eq!(texts[2..], ["hello", "You said: hello", "wait", "You said: wait"]);
    }
}

#[tokio::test]
async fn a_repetition_in_a_shared_thread_is_told_the_first_answer() {
    let two = Two::start().await;
    let roles = [KeyRole::Write, KeyRole::Read];
    let ana = two.one.keyed("acme", Some("ana"), &roles).await;
    let again = two.other.client().with_key(ana.key.as_deref().unwrap());
    let body = json!({ "owner": "tenant", "key": "slack:C1" });
    let thread = ana.post("/v1/threads", body).await.expect(201)["id"].as_str().unwrap().to_owned();
    let body = json!({ "input": "hello", "conversation": format!("conv_{}", thread.replace('-', "")) });
    let ask =
        |client: &Client| send(client.request("POST", "/v1/responses").header("idempotency-key", "once").json(&body));
    let first = ask(&ana).await.expect(200);
    assert_eq!(ask(&again).await.expect(200), first);
    assert_eq!(two.echo.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_of_a_model_is_cancelled_from_any_instance() {
    let two = Two::start().await;
    let (one, other) = (two.one.client(), two.other.client());
    let thread = one.new_thread().await;
    let asking = asks_model(&one, "responses", &thread, "wait");
    two.echo.blocked.notified().await;
    let turn = running(&two.other, &local(), &thread).await.unwrap();
    let path = format!("/v1/threads/{thread}/turns/{turn}");
    let told = other.get(&path).await.expect(202);
    assert_eq!((&told["status"], &told["agent"]), (&json!("running"), &json!("")));
    let cancelled = other.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(asking.await.unwrap().code(400), "stopped");
    // Nothing of it is kept, and the thread is free.
    assert!(one.texts(&thread).await.is_empty());
    assert_eq!(other.get(&path).await.code(404), "not_found");
    assert_eq!(other.post(&format!("{path}/cancel"), json!({})).await.code(404), "not_found");
    asks_model(&other, "responses", &thread, "hello").await.unwrap().expect(200);
}

/// What a crash cut off: a model is not asked again, and its thread is free for whoever comes next.
#[tokio::test]
async fn a_call_of_a_model_that_a_crash_cut_off_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let crashing = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (config, echo) = config_with_model();
    let memory = threadkeep::open(&url).await.unwrap();
    let server = crashing.spawn(TestServer::over(memory, config)).await.unwrap();
    let client = server.client();
    let thread = client.new_thread().await;
    let asking = asks_model(&client, "chat", &thread, "wait");
    echo.blocked.notified().await;
    crashing.shutdown_background();
    drop(asking);
    let (definition, _) = keeper("keeper");
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let server = TestServer::over(threadkeep::open(&url).await.unwrap(), config).await;
    let client = server.client();
    // Whoever looks for turns that were cut frees it; nobody has to ask for that.
    let freed = async {
        while running(&server, &local(), &thread).await.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.unwrap();
    assert!(client.texts(&thread).await.is_empty());
    assert_eq!(asks_assistant(&client, &thread, "hello").await.unwrap().expect(200)["reply"], "You said: hello");
}

/// A turn of an assistant that a crash cut off ends before a model is asked in its thread.
#[tokio::test]
async fn what_a_crash_cut_off_ends_before_a_model_is_asked() {
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
        drop(asks_assistant(&client, thread, "wait"));
        model.wait_until_blocked().await;
    }
    crashing.shutdown_background();
    let (mut config, _) = config_with_model();
    config.options.resume_turns = false;
    // Where its assistant is not served it is closed.
    let server = TestServer::over(threadkeep::open(&url).await.unwrap(), config).await;
    let client = server.client();
    asks_model(&client, "chat", &threads[0], "hello").await.unwrap().expect(200);
    let texts = client.texts(&threads[0]).await;
    assert_eq!((texts.len(), &texts[0], &texts[2]), (4, &"wait".to_owned(), &"hello".to_owned()));
    // Else it is gone on with.
    let (definition, model) = keeper("keeper");
    let (mut config, _) = config_with_model();
    config.options.resume_turns = false;
    let config = TestConfig { assistants: vec![definition], ..config };
    let server = TestServer::over(threadkeep::open(&url).await.unwrap(), config).await;
    let asking = asks_model(&server.client(), "chat", &threads[1], "hello");
    model.wait_until_blocked().await;
    model.unblock();
    asking.await.unwrap().expect(200);
    assert_eq!(server.client().texts(&threads[1]).await[..3], ["wait", "You said: wait", "hello"]);
}

/// Stored turns are the thread's, whoever is served.
#[tokio::test]
async fn turns_are_found_where_no_assistant_is_served() {
    let two = Two::start().await;
    let client = two.one.client();
    let ask = |text: &str| client.post("/v1/agents/keeper/turns", json!({ "text": text }));
    let (over, waits) = (ask("hello").await.expect(200), ask("delete lamp").await.expect(200));
    assert_eq!(waits["status"], "waiting_for_approval");
    let memory = threadkeep::open(&two.one.store_url()).await.unwrap();
    let bare = TestServer::over(memory, TestConfig::default()).await;
    let bare = bare.client();
    let path = |turn: &Value| {
        format!("/v1/threads/{}/turns/{}", turn["thread"].as_str().unwrap(), turn["turn"].as_str().unwrap())
    };
    for turn in [&over, &waits] {
        assert_eq!(bare.get(&path(turn)).await.expect(200), client.get(&path(turn)).await.expect(200));
    }
    let approval = waits["approvals"][0]["id"].as_str().unwrap();
    let listed = bare.get("/v1/approvals").await.expect(200);
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["id"]), (1, &json!(approval)));
    let found = format!("/v1/threads/{}/approvals/{approval}", waits["thread"].as_str().unwrap());
    assert_eq!(bare.get(&found).await.expect(200)["state"], "pending");
    assert_eq!(bare.post(&found, json!({ "decision": "approve" })).await.code(409), "assistant_not_here");
    let cancelled = bare.post(&format!("{}/cancel", path(&waits)), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!((&cancelled["usage"], &cancelled["model"]), (&waits["usage"], &waits["model"]));
    assert_eq!(bare.get(&found).await.expect(200)["state"], "replaced");
    assert_eq!(bare.get(&path(&waits)).await.expect(200), cancelled);
}
