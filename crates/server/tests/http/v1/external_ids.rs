//! Appending messages whose external ids the thread already contains.

use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use crate::TestServer;
use crate::server::send;

fn outcomes(appended: &Value) -> Vec<(u64, &str)> {
    let messages = appended["messages"].as_array().unwrap().iter();
    messages.map(|message| (message["seq"].as_u64().unwrap(), message["outcome"].as_str().unwrap())).collect()
}

// S1.11
#[tokio::test]
async fn a_message_with_a_known_external_id_is_not_added_again() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/messages");
    let draft = |id: &str, text: &str| json!({ "role": "user", "text": text, "external_id": id });
    let post = |messages: Value| client.post(&path, json!({ "messages": messages }));
    let first = post(json!([draft("a", "one"), draft("b", "two")])).await.expect(201);
    assert_eq!(outcomes(&first), [(1, "added"), (2, "added")]);
    let again = post(json!([draft("a", "one"), draft("b", "two")])).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let again = again.expect(201);
    assert_eq!((outcomes(&again), &again["count"]), (vec![(1, "unchanged"), (2, "unchanged")], &json!(0)));
    assert_eq!(again["change"], first["change"]);
    let mixed = post(json!([draft("c", "three"), draft("a", "one, again"), draft("b", "two")])).await.expect(201);
    assert_eq!(outcomes(&mixed), [(3, "added"), (1, "replaced"), (2, "unchanged")]);
    assert_eq!(client.texts(&thread).await, ["one, again", "two", "three"]);
    assert_eq!(client.get(&format!("{path}/1")).await.expect(200)["revision"], 1);
    // With an idempotency key, a repeated request adds no messages, even if they have no external ids.
    let messages = json!([draft("a", "one, at last"), { "role": "user", "text": "four" }]);
    for is_repeated in [false, true] {
        let body = json!({ "messages": messages });
        let answer = send(client.request("POST", &path).header("idempotency-key", "k").json(&body)).await;
        assert_eq!(answer.header("idempotency-replayed") == "true", is_repeated);
        assert_eq!(outcomes(&answer.expect(201)).iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 4]);
    }
    assert_eq!(client.texts(&thread).await, ["one, at last", "two", "three", "four"]);
    let conflict = json!({ "messages": [draft("a", "x")], "expected_seq": 1 });
    assert_eq!(client.post(&path, conflict).await.code(409), "seq_conflict");
}

/// A user may not replace messages of a thread that the users of the tenant share.
#[tokio::test]
async fn other_content_is_a_conflict_for_callers_who_may_not_replace_it() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let thread = tenant.new_thread().await;
    let ana = tenant.as_user("ana");
    let path = format!("/v1/threads/{thread}/messages");
    let body = |text: &str| json!({ "messages": [{ "role": "user", "text": text, "external_id": "a" }] });
    ana.post(&path, body("one")).await.expect(201);
    assert_eq!(outcomes(&ana.post(&path, body("one")).await.expect(201)), [(1, "unchanged")]);
    let refused = ana.post(&path, body("two")).await.error(409);
    assert_eq!((&refused["code"], &refused["param"]), (&json!("external_id_taken"), &json!("external_id")));
    assert!(refused["message"].as_str().unwrap().contains("may not replace"), "{refused}");
    assert_eq!(outcomes(&tenant.post(&path, body("two")).await.expect(201)), [(1, "replaced")]);
}
