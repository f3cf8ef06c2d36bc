use serde_json::{Value, json};

use crate::pausable_store::{PausePoint, StoreControl};
use crate::server::{Answer, TestConfig, send};
use crate::{Client, TestServer};

async fn say(client: &Client, thread: &str, text: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({ "messages": [{ "role": "user", "text": text }] });
    let mut request = client.request("POST", &format!("/v1/threads/{thread}/messages")).json(&body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

const RETRY: (&str, &str) = ("x-stainless-retry-count", "1");

#[tokio::test]
async fn a_key_makes_a_repetition_count_once() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let key = ("idempotency-key", "one");
    let first = say(&client, &thread, "hello", &[key]).await.expect(201);
    client.say(&thread, "something else").await;
    let again = say(&client, &thread, "hello", &[key]).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let again = again.expect(201);
    assert_eq!((&first["messages"], &first["change"]), (&again["messages"], &again["change"]));
    assert_eq!(say(&client, &thread, "goodbye", &[key]).await.code(409), "idempotency_key_reused");
    assert_eq!(client.texts(&thread).await, ["hello", "something else"]);
    let odd = say(&client, &thread, "hello", &[("idempotency-key", "")]).await;
    assert_eq!(odd.error(400)["param"], "Idempotency-Key");
}

#[tokio::test]
async fn without_a_key_only_a_repetition_of_the_tail_counts_once() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let first = say(&client, &thread, "yes", &[]).await.expect(201);
    let lost = say(&client, &thread, "yes", &[RETRY]).await.expect(201);
    assert_eq!((&lost["messages"], &lost["replayed"]), (&first["messages"], &json!(true)));
    // A second honest "yes" is kept.
    say(&client, &thread, "yes", &[]).await.expect(201);
    assert_eq!(client.texts(&thread).await, ["yes", "yes"]);
    // What is no longer the tail is not believed to be repeated.
    say(&client, &thread, "no", &[]).await.expect(201);
    say(&client, &thread, "yes", &[RETRY]).await.expect(201);
    assert_eq!(client.texts(&thread).await, ["yes", "yes", "no", "yes"]);
    // A retry whose first try never came is kept.
    say(&client, &thread, "maybe", &[RETRY]).await.expect(201);
    assert_eq!(client.texts(&thread).await, ["yes", "yes", "no", "yes", "maybe"]);
}

// The first try, whose client gave up waiting, comes through while its repetition looks for it.
#[tokio::test]
async fn a_first_try_that_is_on_its_way_counts_once() {
    let store_control = StoreControl::default();
    let server = TestServer::start_with_control(&store_control, TestConfig::default()).await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "before").await;
    let (is_looking, go_on) = store_control.pause_at(PausePoint::Thread);
    let repetition = {
        let (client, thread) = (client.clone(), thread.clone());
        tokio::spawn(async move { say(&client, &thread, "yes", &[RETRY]).await })
    };
    is_looking.await.unwrap();
    let first = say(&client, &thread, "yes", &[]).await.expect(201);
    go_on.send(()).unwrap();
    let repetition = repetition.await.unwrap().expect(201);
    assert_eq!((&repetition["messages"], &repetition["replayed"]), (&first["messages"], &json!(true)));
    assert_eq!(client.texts(&thread).await, ["before", "yes"]);
}

#[tokio::test]
async fn many_who_say_the_same_at_once_are_all_heard() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let said = (0..24).map(|_| say(&client, &thread, "yes", &[]));
    for answer in futures::future::join_all(said).await {
        assert_eq!(answer.expect(201)["replayed"], false);
    }
    assert_eq!(client.texts(&thread).await.len(), 24);
}

#[tokio::test]
async fn making_a_thread_is_matched_by_its_key_and_never_by_its_body() {
    let server = TestServer::start().await;
    let client = server.client();
    let make = |key: Option<&str>, body: Value| {
        let mut request = client.request("POST", "/v1/threads").header(RETRY.0, RETRY.1).json(&body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        send(request)
    };
    let (one, other) = (make(None, json!({})).await.expect(201), make(None, json!({})).await.expect(201));
    assert_ne!(one["id"], other["id"]);
    let first = make(Some("k"), json!({ "title": "T" })).await.expect(201);
    assert_eq!(make(Some("k"), json!({ "title": "T" })).await.expect(200)["id"], first["id"]);
    assert_eq!(make(Some("k"), json!({ "title": "U" })).await.code(409), "idempotency_key_reused");
}

/// What tells a repetition lies in the store, so it does not matter which instance was asked before.
#[tokio::test]
async fn instances_that_append_in_turn_lose_nothing_and_take_nothing_for_a_repetition() {
    let server = TestServer::start().await;
    let other = TestServer::over(server.memory.clone(), crate::server::TestConfig::default()).await;
    let (one, another) = (server.client(), other.client());
    let thread = one.new_thread().await;
    for client in [&one, &one, &another, &one, &another, &another] {
        let said = say(client, &thread, "yes", &[]).await.expect(201);
        assert_eq!(said["replayed"], json!(false));
    }
    assert_eq!(one.texts(&thread).await, ["yes"; 6]);
    // The last one was said to the other instance.
    let lost = say(&one, &thread, "yes", &[RETRY]).await.expect(201);
    assert_eq!(lost["replayed"], json!(true));
    another.request("DELETE", &format!("/v1/threads/{thread}")).send().await.unwrap();
    assert_eq!(say(&one, &thread, "yes", &[]).await.code(404), "not_found");
}
