//! Webhooks, delivered to a real endpoint.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use serde_json::{Value, json};
use threadkeep::{Draft, Memory, Scope};
use threadkeep_server::{KeyRole, ServerOptions, WebhookOptions};
use tokio::sync::mpsc;

use crate::assistants::test_assistant;
use crate::clients::{is_skipped, program};
use crate::clock::FakeClock;
use crate::server::{TIMEOUT, TestConfig};
use crate::{Client, TestServer};

/// A request that an endpoint received.
#[derive(Debug)]
struct Received {
    headers: HeaderMap,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn id(&self) -> String {
        self.header("webhook-id").to_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the types of the events of a commit, or the type of any other event.
    fn types(&self) -> Vec<String> {
        let body = self.json();
        let types = |events: &Vec<Value>| {
            events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        match body["data"]["events"].as_array() {
            Some(events) => types(events),
            None => vec![body["type"].as_str().unwrap().to_owned()],
        }
    }
}

/// The status and a header of an answer.
type Answer = (u16, Option<(&'static str, String)>);

/// An endpoint that returns the prepared responses, and then 204.
struct Endpoint {
    address: SocketAddr,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    received: mpsc::UnboundedReceiver<Received>,
}

impl Endpoint {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::<Mutex<VecDeque<Answer>>>::default();
        let (sender, received) = mpsc::unbounded_channel();
        let prepared = Arc::clone(&answers);
        let answer = move |headers: HeaderMap, body: Bytes| async move {
            sender.send(Received { headers, body: String::from_utf8(body.to_vec()).unwrap() }).unwrap();
            let (status, header) = prepared.lock().unwrap().pop_front().unwrap_or((204, None));
            if status == 0 {
                std::future::pending::<()>().await;
            }
            let mut headers = HeaderMap::new();
            headers.extend(header.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())));
            (StatusCode::from_u16(status).unwrap(), headers)
        };
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        Self { address, answers, received }
    }

    fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// Prepares answers. The status 0 stands for no answer.
    fn prepare(&self, statuses: &[u16]) {
        self.answers.lock().unwrap().extend(statuses.iter().map(|status| (*status, None)));
    }

    async fn next(&mut self) -> Received {
        tokio::time::timeout(TIMEOUT, self.received.recv()).await.unwrap().unwrap()
    }
}

/// Returns a configuration that allows endpoints on this machine.
fn config(retry_delays: &[u64]) -> TestConfig {
    let webhooks = WebhookOptions {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        retry_delays: retry_delays.iter().copied().map(Duration::from_millis).collect(),
        poll_interval: Duration::from_millis(50),
        ..WebhookOptions::default()
    };
    let config = TestConfig::default();
    TestConfig { options: ServerOptions { webhooks, ..config.options }, ..config }
}

/// Creates a webhook, and returns its path and its secret.
async fn create(client: &Client, url: &str, events: &[&str]) -> (String, String) {
    let created = client.post("/v1/webhooks", json!({ "url": url, "events": events })).await.expect(201);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (format!("/v1/webhooks/{}", text(&created["webhook"]["id"])), text(&created["secret"]))
}

/// Waits until a delivery has the state, and returns the delivery.
async fn wait_for(client: &Client, path: &str, event: &str, state: &str) -> Value {
    let wait = async {
        loop {
            let listed = client.get(&format!("{path}/deliveries?state={state}")).await.expect(200);
            let found = listed["data"].as_array().unwrap().iter().find(|delivery| delivery["id"] == event);
            if let Some(found) = found {
                return found.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap()
}

#[tokio::test]
async fn events_have_the_format_of_live_events() {
    let mut servers = vec![TestServer::start_with(config(&[])).await];
    servers.extend(TestServer::start_on_postgres(config(&[])).await);
    servers.extend(TestServer::start_on_redis_cluster(config(&[])).await);
    for server in servers {
        check_events(&server).await;
    }
}

async fn check_events(server: &TestServer) {
    let mut endpoint = Endpoint::start().await;
    let client = server.client();
    let before = client.new_thread().await;
    client.say(&before, "Before the webhook.").await;
    let (path, secret) = create(&client, &endpoint.url(), &[]).await;
    assert!(secret.starts_with("whsec_") && !client.get(&path).await.text.contains(&secret));
    // The changes of an existing thread are sent from now on.
    client.say(&before, "The stove burns paraffin.").await;
    let received = endpoint.next().await;
    let body = received.json();
    assert_eq!((body["type"].as_str(), &body["data"]["thread"]), (Some("commit"), &json!(before)));
    assert_eq!(body["data"]["user"], "me");
    assert_eq!(body["data"]["events"][0]["messages"][0]["text"], "The stove burns paraffin.");
    let listed = client.get(&format!("/v1/threads/{before}/messages")).await.expect(200);
    assert_eq!(body["data"]["events"][0]["messages"][0], listed["data"][0], "{listed}");
    assert_eq!(received.header("content-type"), "application/json");
    let sent = wait_for(&client, &path, &received.id(), "delivered").await;
    assert_eq!((&sent["attempts"], &sent["last_status"], &sent["last_error"]), (&json!(1), &json!(204), &Value::Null));
    let thread = client.new_thread().await;
    assert_eq!(endpoint.next().await.json()["data"], json!({ "thread": thread, "user": "me" }));
    client.send("PATCH", &format!("/v1/threads/{thread}"), json!({ "title": "Tickets" })).await.expect(200);
    assert_eq!(endpoint.next().await.types(), ["patched"]);
    client.say(&thread, "draft").await;
    assert_eq!(endpoint.next().await.types(), ["appended"]);
    let message = format!("/v1/threads/{thread}/messages/1");
    client.send("PUT", &message, json!({ "role": "user", "text": "final" })).await.expect(200);
    assert_eq!(endpoint.next().await.types(), ["replaced"]);
    client.delete(&message).await;
    assert_eq!(endpoint.next().await.types(), ["erased"]);
    client.send("PUT", &format!("/v1/threads/{thread}/records/notes/a"), json!({ "value": 1 })).await.expect(200);
    assert_eq!(endpoint.next().await.types(), ["document"]);
    client.delete(&format!("/v1/threads/{thread}")).await;
    assert_eq!(endpoint.next().await.types(), ["deleted"]);
    client.delete(&path).await;
    assert_eq!(client.get(&path).await.code(404), "not_found");
}

/// Only one of two instances sends events. When it ends, the other one takes over.
#[tokio::test]
async fn two_instances_send_each_event_once_and_take_over() {
    let mut servers = vec![TestServer::start_with(config(&[])).await];
    servers.extend(TestServer::start_on_postgres(config(&[])).await);
    servers.extend(TestServer::start_on_redis_cluster(config(&[])).await);
    for second in servers {
        let mut first = TestServer::start_on(second.memory.clone(), config(&[])).await;
        let mut endpoint = Endpoint::start().await;
        // The instance that creates the first webhook sends it.
        create(&first.client(), &endpoint.url(), &["appended"]).await;
        let (client, other) = (first.client(), second.client());
        let thread = client.new_thread().await;
        for number in 0..10 {
            let client = if number % 2 == 0 { &client } else { &other };
            client.say(&thread, &number.to_string()).await;
        }
        let mut received = Vec::new();
        for _ in 0..10 {
            received.push(endpoint.next().await.id());
        }
        first.request_shutdown();
        first.wait_until_stopped().await.unwrap();
        other.say(&thread, "after the end of the first instance").await;
        let last = endpoint.next().await;
        assert!(last.body.contains("after the end of the first instance"), "{}", last.body);
        received.push(last.id());
        received.sort();
        received.dedup();
        assert_eq!(received.len(), 11, "not every event was sent exactly once");
    }
}

/// A body that would be too large contains only the types of its events.
#[tokio::test]
async fn large_bodies_contain_only_the_types_of_events() {
    let config = config(&[]);
    let options = ServerOptions { body_bytes: 4 * 1024 * 1024, ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    let (client, mut endpoint) = (server.client(), Endpoint::start().await);
    create(&client, &endpoint.url(), &["appended"]).await;
    let thread = client.new_thread().await;
    client.say(&thread, &"x".repeat(1024 * 1024)).await;
    let body = endpoint.next().await;
    assert!(body.body.len() < 1024, "{} bytes", body.body.len());
    let data = &body.json()["data"];
    assert_eq!((&data["events"], &data["truncated"]), (&json!([{ "type": "appended" }]), &json!(true)));
    client.say(&thread, "small").await;
    assert_eq!(endpoint.next().await.json()["data"]["truncated"], Value::Null);
}

/// Changes that are no longer retained when an instance sends again are reported as one `reset`.
#[tokio::test]
async fn changes_that_are_not_retained_are_sent_as_a_reset() {
    let clock = Arc::new(FakeClock::default());
    let backend = threadkeep::open("memory:").await.unwrap().backend().clone();
    let memory = Memory::with_clock(backend, clock.clone());
    let mut server = TestServer::start_on(memory.clone(), config(&[])).await;
    let (client, mut endpoint) = (server.client(), Endpoint::start().await);
    create(&client, &endpoint.url(), &[]).await;
    let thread = client.new_thread().await;
    assert_eq!(endpoint.next().await.types(), ["created"]);
    client.say(&thread, "one").await;
    assert_eq!(endpoint.next().await.types()[0], "appended");
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    let (id, scope) = (thread.parse().unwrap(), Scope::user("local", "me").unwrap());
    memory.append(&scope, id, Draft::user("two")).await.unwrap();
    let week = 7 * 24 * 60 * 60 * 1000;
    clock.set(week + 60_000);
    memory.backend().maintenance.sweep(memory.now()).await.unwrap();
    memory.append(&scope, id, Draft::user("three")).await.unwrap();
    let _server = TestServer::start_on(memory, config(&[])).await;
    let reset = loop {
        let event = endpoint.next().await;
        if event.types() == ["reset"] {
            break event.json();
        }
    };
    assert_eq!(reset["data"]["thread"], json!(thread));
}

#[tokio::test]
async fn the_official_library_verifies_signatures() {
    if is_skipped() {
        return;
    }
    let (server, mut endpoint) = (TestServer::start_with(config(&[])).await, Endpoint::start().await);
    let client = server.client();
    let (path, secret) = create(&client, &endpoint.url(), &["appended"]).await;
    let thread = client.new_thread().await;
    client.say(&thread, "Café €5").await;
    let first = endpoint.next().await;
    let rotated = client.post(&format!("{path}/rotate"), json!({})).await.expect(200);
    client.say(&thread, "again").await;
    let second = endpoint.next().await;
    assert_eq!(second.header("webhook-signature").split(' ').count(), 2);
    let delivery = |received: &Received, secret: &Value| {
        let headers: serde_json::Map<String, Value> = ["webhook-id", "webhook-timestamp", "webhook-signature"]
            .map(|name| (name.to_owned(), json!(received.header(name))))
            .into_iter()
            .collect();
        json!({ "secret": secret, "headers": headers, "body": received.body })
    };
    let deliveries =
        [delivery(&first, &json!(secret)), delivery(&second, &json!(secret)), delivery(&second, &rotated["secret"])];
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/webhooks.py");
    let mut command = tokio::process::Command::new(program("python"));
    command.args([script, &json!(deliveries).to_string()]).kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(events, json!([first.json(), second.json(), second.json()]));
}

#[tokio::test]
async fn failed_deliveries_are_repeated_and_delay_no_other_webhook() {
    let server = TestServer::start_with(config(&[10, 10, 10])).await;
    let (mut failing, mut working) = (Endpoint::start().await, Endpoint::start().await);
    let mut silent = Endpoint::start().await;
    silent.prepare(&[0; 8]);
    failing.prepare(&[503, 500]);
    let client = server.client();
    let (path, _) = create(&client, &failing.url(), &["appended"]).await;
    create(&client, &silent.url(), &[]).await;
    create(&client, &working.url(), &["appended"]).await;
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    silent.next().await;
    assert_eq!(working.next().await.types(), ["appended"]);
    let ids = [failing.next().await.id(), failing.next().await.id(), failing.next().await.id()];
    assert!(ids.iter().all(|id| *id == ids[0] && id.starts_with("evt_")), "{ids:?}");
    let sent = wait_for(&client, &path, &ids[0], "delivered").await;
    assert_eq!((&sent["attempts"], &sent["last_status"]), (&json!(3), &json!(204)));
    client.say(&thread, "again").await;
    assert_eq!(working.next().await.types(), ["appended"]);
}

#[tokio::test]
async fn failed_deliveries_can_be_replayed() {
    let (server, mut endpoint) = (TestServer::start_with(config(&[10])).await, Endpoint::start().await);
    let client = server.client();
    let (path, _) = create(&client, &endpoint.url(), &["appended"]).await;
    let target = Endpoint::start().await;
    endpoint.answers.lock().unwrap().extend([(302, Some(("location", target.url()))), (500, None)]);
    let thread = client.new_thread().await;
    let message = client.say(&thread, "hello").await["messages"][0]["id"].as_str().unwrap().to_owned();
    let id = endpoint.next().await.id();
    endpoint.next().await;
    let failed = wait_for(&client, &path, &id, "failed").await;
    assert_eq!((&failed["attempts"], &failed["last_error"]), (&json!(2), &json!("the endpoint responded with 500")));
    assert_eq!(failed["next_attempt_at"], Value::Null);
    let mut target = target;
    assert!(target.received.try_recv().is_err(), "redirects are not followed");
    let replay = format!("{path}/deliveries/{id}/replay");
    client.post(&replay, json!({})).await.expect(202);
    let replayed = endpoint.next().await;
    assert_eq!((replayed.id(), replayed.types()), (id.clone(), vec!["appended".to_owned()]));
    wait_for(&client, &path, &id, "delivered").await;
    // What was erased is not sent again.
    client.delete(&format!("/v1/threads/{thread}/messages/{message}")).await;
    client.post(&replay, json!({})).await.expect(202);
    let obsolete = wait_for(&client, &path, &id, "failed").await;
    assert_eq!(obsolete["last_error"], "the subject of the event no longer exists");
    let unknown = format!("{path}/deliveries/evt_018bcfe5687b_{}_created/replay", "0".repeat(32));
    for unknown in [unknown, format!("{path}/deliveries/unknown/replay")] {
        assert_eq!(client.post(&unknown, json!({})).await.code(404), "not_found");
    }
}

#[tokio::test]
async fn private_addresses_are_not_reached() {
    let server = TestServer::start().await;
    let client = server.client();
    for url in ["https://127.0.0.1/", "https://169.254.169.254/latest", "https://[::1]:7437/", "https://10.0.0.1/"] {
        assert_eq!(client.post("/v1/webhooks", json!({ "url": url })).await.code(400), "private_address", "{url}");
    }
    assert_eq!(client.post("/v1/webhooks", json!({ "url": "http://app.example/" })).await.code(400), "invalid_request");
    // A name is resolved when the event is sent.
    let (path, _) = create(&client, "https://localhost:1/", &["created"]).await;
    client.new_thread().await;
    let wait = async {
        loop {
            let listed = client.get(&format!("{path}/deliveries")).await.expect(200);
            if let Some(error) = listed["data"][0]["last_error"].as_str() {
                return error.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let error = tokio::time::timeout(TIMEOUT, wait).await.unwrap();
    assert_eq!(error, "the host has only private addresses");
}

#[test]
fn deliveries_survive_the_end_of_the_process() {
    let outer_runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let (mut endpoint, path, id) = {
        let endpoint = outer_runtime.block_on(Endpoint::start());
        endpoint.prepare(&[500, 0]);
        // Dropping the runtime ends all tasks of the server at once, as a crash does.
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (path, mut endpoint, server) = runtime.block_on(async {
            let memory = threadkeep::open(&url).await.unwrap();
            let server = TestServer::start_on(memory, config(&[1, 1, 1])).await;
            let client = server.client();
            let (path, _) = create(&client, &endpoint.url(), &["appended"]).await;
            let thread = client.new_thread().await;
            client.say(&thread, "hello").await;
            (path, endpoint, server)
        });
        let id = outer_runtime.block_on(endpoint.next()).id();
        assert_eq!(outer_runtime.block_on(endpoint.next()).id(), id);
        runtime.shutdown_background();
        // Dropped only now, because dropping the server asks it to stop.
        drop(server);
        (endpoint, path, id)
    };
    outer_runtime.block_on(async {
        let memory = threadkeep::open(&url).await.unwrap();
        let server = TestServer::start_on(memory, config(&[1, 1, 1])).await;
        assert_eq!(endpoint.next().await.id(), id);
        wait_for(&server.client(), &path, &id, "delivered").await;
    });
}

#[tokio::test]
async fn approvals_and_turns_are_sent() {
    let mut endpoint = Endpoint::start().await;
    let server =
        TestServer::start_with(TestConfig { assistants: vec![test_assistant("keeper").0], ..config(&[]) }).await;
    let client = server.client();
    create(&client, &endpoint.url(), &["approval", "turn"]).await;
    let turn = client.post("/v1/agents/keeper/turns", json!({ "text": "delete lamp" })).await.expect(200);
    let requested = endpoint.next().await.json();
    let approval = &requested["data"]["events"][0]["approval"];
    assert_eq!((&approval["state"], &approval["turn"]), (&json!("pending"), &turn["turn"]));
    let path =
        format!("/v1/threads/{}/approvals/{}", turn["thread"].as_str().unwrap(), approval["id"].as_str().unwrap());
    client.post(&path, json!({ "decision": "deny" })).await.expect(200);
    let mut types = Vec::new();
    while !types.contains(&"turn".to_owned()) {
        let received = endpoint.next().await;
        types.extend(received.types());
        let body = received.json();
        if let Some(ended) = body["data"]["events"].as_array().unwrap().iter().find(|event| event["type"] == "turn") {
            let members = (&ended["turn"], &ended["agent"], &ended["status"]);
            assert_eq!(members, (&turn["turn"], &json!("keeper"), &json!("completed")));
        }
    }
    assert!(types.contains(&"approval".to_owned()), "{types:?}");
}

#[tokio::test]
async fn webhooks_belong_to_their_tenant_or_user() {
    let server = TestServer::start_with(config(&[])).await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let eve = server.client_with_new_key("acme", Some("eve"), &[KeyRole::Write]).await;
    let other = server.client_with_new_key("other", None, &[KeyRole::Admin]).await;
    let (mut anas_endpoint, mut tenants_endpoint) = (Endpoint::start().await, Endpoint::start().await);
    let (path, _) = create(&ana, &anas_endpoint.url(), &["appended"]).await;
    create(&tenant, &tenants_endpoint.url(), &["appended"]).await;
    for client in [&eve, &ana] {
        let thread = client.new_thread().await;
        client.say(&thread, "hello").await;
    }
    // The tenant's webhook receives the events of all users, a user's webhook only those of the user.
    let user = |received: &Received| received.json()["data"]["user"].as_str().unwrap().to_owned();
    let mut users = [user(&tenants_endpoint.next().await), user(&tenants_endpoint.next().await)];
    users.sort();
    assert_eq!(users, ["ana", "eve"]);
    let received = anas_endpoint.next().await;
    assert_eq!(user(&received), "ana");
    let delivery = format!("{path}/deliveries/{}/replay", received.id());
    for outsider in [&eve, &other, &tenant] {
        for (method, path) in [("GET", &path), ("DELETE", &path), ("GET", &format!("{path}/deliveries"))] {
            assert_eq!(outsider.send(method, path, json!({})).await.code(404), "not_found", "{method} {path}");
        }
        assert_eq!(outsider.send("PATCH", &path, json!({ "enabled": false })).await.status, 404);
        for path in [&format!("{path}/rotate"), &delivery] {
            assert_eq!(outsider.post(path, json!({})).await.code(404), "not_found", "{path}");
        }
    }
    assert_eq!(other.get("/v1/webhooks").await.expect(200)["data"], json!([]));
    assert_eq!(ana.get("/v1/webhooks").await.expect(200)["data"].as_array().unwrap().len(), 1);
    // The webhooks of a tenant need an administrator; no webhook can be read with the role `read` alone.
    let writer = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    for client in [writer, reader] {
        assert_eq!(client.get("/v1/webhooks").await.code(403), "role_missing");
        assert_eq!(client.post("/v1/webhooks", json!({ "url": anas_endpoint.url() })).await.code(403), "role_missing");
    }
    // Erasing the user removes the webhooks and their deliveries.
    ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    assert_eq!(ana.get(&path).await.code(404), "not_found");
}

#[tokio::test]
async fn a_webhook_whose_endpoint_is_gone_is_disabled_and_its_events_are_held() {
    let (server, mut endpoint) = (TestServer::start_with(config(&[10])).await, Endpoint::start().await);
    let client = server.client();
    endpoint.prepare(&[410]);
    let (path, _) = create(&client, &endpoint.url(), &["appended"]).await;
    let thread = client.new_thread().await;
    client.say(&thread, "first").await;
    let id = endpoint.next().await.id();
    wait_for(&client, &path, &id, "failed").await;
    let webhook = client.get(&path).await.expect(200);
    let disabled = (&webhook["enabled"], &webhook["disabled_reason"]);
    assert_eq!(disabled, (&json!(false), &json!("the endpoint responded with 410 Gone")));
    client.say(&thread, "second").await;
    let enabled = client.send("PATCH", &path, json!({ "enabled": true })).await.expect(200);
    assert_eq!((&enabled["enabled"], &enabled["disabled_reason"]), (&json!(true), &Value::Null));
    let received = endpoint.next().await;
    assert_eq!(received.json()["data"]["events"][0]["messages"][0]["text"], "second");
}

/// While an endpoint fails, a limited number of deliveries is pending. Later events wait in the change log, and none is lost.
#[tokio::test]
async fn pending_deliveries_are_limited_and_later_events_wait() {
    const EVENTS: usize = 700;
    const MOST_PENDING: usize = 600;
    let clock = Arc::new(FakeClock::default());
    let backend = threadkeep::open("memory:").await.unwrap().backend().clone();
    let memory = Memory::with_clock(backend, clock.clone());
    let server = TestServer::start_on(memory.clone(), config(&[3_600_000])).await;
    let (client, mut endpoint) = (server.client(), Endpoint::start().await);
    let (path, _) = create(&client, &endpoint.url(), &["appended"]).await;
    endpoint.prepare(&[503; EVENTS]);
    let (thread, scope) = (client.new_thread().await.parse().unwrap(), Scope::user("local", "me").unwrap());
    for number in 0..EVENTS {
        memory.append(&scope, thread, Draft::user(number.to_string())).await.unwrap();
    }
    let mut refused = HashSet::new();
    while refused.len() < 500 {
        refused.insert(endpoint.next().await.id());
    }
    // Reading stops at 500 deliveries, after the page of changes that reached the limit.
    while let Ok(Some(received)) = tokio::time::timeout(Duration::from_secs(1), endpoint.received.recv()).await {
        refused.insert(received.id());
    }
    let pending = client.get(&format!("{path}/deliveries?state=pending&limit=1000")).await.expect(200);
    assert_eq!(pending["data"].as_array().unwrap().len(), refused.len());
    assert!(refused.len() <= MOST_PENDING, "{} deliveries were pending", refused.len());
    endpoint.answers.lock().unwrap().clear();
    clock.set(2 * 3_600_000);
    let mut texts = Vec::new();
    while texts.len() < EVENTS {
        let received = endpoint.next().await.json();
        texts.push(received["data"]["events"][0]["messages"][0]["text"].as_str().unwrap().parse::<usize>().unwrap());
    }
    texts.sort_unstable();
    assert_eq!(texts, (0..EVENTS).collect::<Vec<_>>());
}

#[tokio::test]
async fn webhooks_are_checked_and_limited() {
    let server = TestServer::start_with(config(&[])).await;
    let client = server.client();
    let url = "https://app.example/hooks";
    for (body, param) in [
        (json!({ "url": "app.example" }), "url"),
        (json!({ "url": format!("https://app.example/{}", "a".repeat(2_000)) }), "url"),
        (json!({ "url": url, "events": ["appended", "everything"] }), "events"),
        (json!({ "url": url, "description": "a".repeat(501) }), "description"),
    ] {
        assert_eq!(client.post("/v1/webhooks", body).await.error(400)["param"], param);
    }
    let (path, _) = create(&client, url, &[]).await;
    let deliveries = format!("{path}/deliveries");
    for query in ["?state=unknown", "?limit=0", "?limit=1001", "?after=garbage", "?page=2"] {
        assert_eq!(client.get(&format!("{deliveries}{query}")).await.status, 400, "{query}");
    }
    for _ in 1..20 {
        create(&client, url, &[]).await;
    }
    assert_eq!(client.post("/v1/webhooks", json!({ "url": url })).await.code(400), "limit_exceeded");
    client.delete(&path).await;
    create(&client, url, &[]).await;
}

#[tokio::test]
async fn deliveries_are_listed_in_pages() {
    let (server, mut endpoint) = (TestServer::start_with(config(&[3_600_000])).await, Endpoint::start().await);
    let client = server.client();
    let (path, _) = create(&client, &endpoint.url(), &["appended"]).await;
    let thread = client.new_thread().await;
    let mut expected = Vec::new();
    for number in 0..5 {
        endpoint.prepare(&[if number < 3 { 204 } else { 500 }]);
        client.say(&thread, "hello").await;
        expected.insert(0, endpoint.next().await.id());
        let state = if number < 3 { "delivered" } else { "pending" };
        wait_for(&client, &path, &expected[0], state).await;
    }
    let (mut listed, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}/deliveries?limit=2{after}")).await.expect(200);
        let ids = page["data"].as_array().unwrap().iter().map(|delivery| delivery["id"].as_str().unwrap().to_owned());
        listed.extend(ids);
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(listed, expected);
}
