use serde_json::{Value, json};

use crate::pausable_store::{PausePoint, StoreControl};
use crate::server::{Answer, TestConfig, send};
use crate::{Client, TestServer};

/// Appends a user message with additional request headers.
async fn append(client: &Client, thread: &str, text: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({ "messages": [{ "role": "user", "text": text }] });
    let mut request = client.request("POST", &format!("/v1/threads/{thread}/messages")).json(&body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

const RETRY_HEADER: (&str, &str) = ("x-stainless-retry-count", "1");

#[tokio::test]
async fn repeated_requests_with_a_key_are_executed_once() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let key = ("idempotency-key", "one");
    let first = append(&client, &thread, "hello", &[key]).await.expect(201);
    client.say(&thread, "something else").await;
    let repeated = append(&client, &thread, "hello", &[key]).await;
    assert_eq!(repeated.header("idempotency-replayed"), "true");
    let repeated = repeated.expect(201);
    assert_eq!((&first["messages"], &first["change"]), (&repeated["messages"], &repeated["change"]));
    assert_eq!(append(&client, &thread, "goodbye", &[key]).await.code(409), "idempotency_key_reused");
    assert_eq!(client.texts(&thread).await, ["hello", "something else"]);
    let invalid = append(&client, &thread, "hello", &[("idempotency-key", "")]).await;
    assert_eq!(invalid.error(400)["param"], "Idempotency-Key");
}

#[tokio::test]
async fn without_a_key_only_retries_of_the_last_append_are_recognised() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let first = append(&client, &thread, "yes", &[]).await.expect(201);
    let lost = append(&client, &thread, "yes", &[RETRY_HEADER]).await.expect(201);
    assert_eq!((&lost["messages"], &lost["replayed"]), (&first["messages"], &json!(true)));
    // Identical requests that are not retries are all stored.
    append(&client, &thread, "yes", &[]).await.expect(201);
    assert_eq!(client.texts(&thread).await, ["yes", "yes"]);
    // A retry is not recognised if its first attempt is no longer the last append.
    append(&client, &thread, "no", &[]).await.expect(201);
    append(&client, &thread, "yes", &[RETRY_HEADER]).await.expect(201);
    assert_eq!(client.texts(&thread).await, ["yes", "yes", "no", "yes"]);
    // The message of a retry is stored if the first attempt never reached the server.
    append(&client, &thread, "maybe", &[RETRY_HEADER]).await.expect(201);
    assert_eq!(client.texts(&thread).await, ["yes", "yes", "no", "yes", "maybe"]);
}

// The first attempt, whose client has stopped waiting, commits while the retry looks for it.
#[tokio::test]
async fn retries_concurrent_with_their_first_attempt_are_recognised() {
    let store_control = StoreControl::default();
    let server = TestServer::start_with_control(&store_control, TestConfig::default()).await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "before").await;
    let (is_paused, resume) = store_control.pause_at(PausePoint::Thread);
    let retry = {
        let (client, thread) = (client.clone(), thread.clone());
        tokio::spawn(async move { append(&client, &thread, "yes", &[RETRY_HEADER]).await })
    };
    is_paused.await.unwrap();
    let first = append(&client, &thread, "yes", &[]).await.expect(201);
    resume.send(()).unwrap();
    let retry = retry.await.unwrap().expect(201);
    assert_eq!((&retry["messages"], &retry["replayed"]), (&first["messages"], &json!(true)));
    assert_eq!(client.texts(&thread).await, ["before", "yes"]);
}

#[tokio::test]
async fn concurrent_identical_requests_are_all_stored() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let appends = (0..24).map(|_| append(&client, &thread, "yes", &[]));
    for answer in futures::future::join_all(appends).await {
        assert_eq!(answer.expect(201)["replayed"], false);
    }
    assert_eq!(client.texts(&thread).await.len(), 24);
}

#[tokio::test]
async fn repeated_thread_creation_is_recognised_by_key_only() {
    let server = TestServer::start().await;
    let client = server.client();
    let create = |key: Option<&str>, body: Value| {
        let mut request = client.request("POST", "/v1/threads").header(RETRY_HEADER.0, RETRY_HEADER.1).json(&body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        send(request)
    };
    let (first, second) = (create(None, json!({})).await.expect(201), create(None, json!({})).await.expect(201));
    assert_ne!(first["id"], second["id"]);
    let first = create(Some("k"), json!({ "title": "T" })).await.expect(201);
    assert_eq!(create(Some("k"), json!({ "title": "T" })).await.expect(200)["id"], first["id"]);
    assert_eq!(create(Some("k"), json!({ "title": "U" })).await.code(409), "idempotency_key_reused");
}

/// The data by which retries are recognised is in the store, so any instance recognises them.
#[tokio::test]
async fn appends_through_several_instances_are_not_mistaken_for_retries() {
    let server = TestServer::start().await;
    let other = TestServer::start_on(server.memory.clone(), crate::server::TestConfig::default()).await;
    let (client, other_client) = (server.client(), other.client());
    let thread = client.new_thread().await;
    for sender in [&client, &client, &other_client, &client, &other_client, &other_client] {
        let appended = append(sender, &thread, "yes", &[]).await.expect(201);
        assert_eq!(appended["replayed"], json!(false));
    }
    assert_eq!(client.texts(&thread).await, ["yes"; 6]);
    // The last append went through the other instance.
    let lost = append(&client, &thread, "yes", &[RETRY_HEADER]).await.expect(201);
    assert_eq!(lost["replayed"], json!(true));
    other_client.request("DELETE", &format!("/v1/threads/{thread}")).send().await.unwrap();
    assert_eq!(append(&client, &thread, "yes", &[]).await.code(404), "not_found");
}
