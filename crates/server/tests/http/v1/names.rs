//! Names of threads: every request that names a thread may contain an id, a conversation id or a key.

use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use super::model::start_with_model;
use crate::TestServer;
use crate::server::send;

#[tokio::test]
async fn a_thread_is_named_by_its_id_conversation_id_or_key() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let opened = client.post("/v1/threads", json!({ "key": "web:42" })).await.expect(201);
    let id = opened["id"].as_str().unwrap();
    client.say(id, "hello").await;
    let conversation = format!("conv_{}", id.replace('-', ""));
    for name in [id, &conversation, "web:42"] {
        let path = format!("/v1/threads/{name}");
        assert_eq!(client.get(&path).await.expect(200)["id"], id);
        assert_eq!(client.texts(name).await.first().map(String::as_str), Some("hello"));
        client.post(&format!("{path}/context"), json!({})).await.expect(200);
        client.send("PUT", &format!("{path}/records/notes/a"), json!({ "value": name })).await.expect(200);
        client.send("PATCH", &path, json!({ "title": name })).await.expect(200);
        let hits = client.post("/v1/search", json!({ "query": "hello", "thread": name })).await.expect(200);
        assert_eq!(hits["hits"][0]["thread"], id);
        let recalled = client.post("/v1/recall", json!({ "question": "hello", "thread": name })).await.expect(200);
        assert_eq!(recalled["turns"][0]["thread"], id);
        assert_eq!(client.get(&format!("/v1/analytics?thread={name}")).await.expect(200)["threads"], 1);
        assert_eq!(client.get(&format!("/v1/approvals?thread={name}")).await.expect(200)["data"], json!([]));
        assert!(client.get(&format!("/v1/export?thread={name}")).await.text.contains("hello"));
        assert_eq!(client.get(&format!("/v1/conversations/{name}")).await.expect(200)["id"], conversation);
        let response = client.post("/v1/responses", json!({ "input": "x", "conversation": name })).await.expect(200);
        assert_eq!(response["conversation"]["id"], conversation);
        let items = client.get(&format!("/v1/conversations/{name}/items")).await.expect(200);
        assert_eq!(items["data"].as_array().map(Vec::len).map(|count| count > 2), Some(true));
    }
    for path in
        ["/v1/threads/web:43", "/v1/threads/web:43/messages", "/v1/conversations/web:43", "/v1/analytics?thread=web:43"]
    {
        assert_eq!(client.get(path).await.code(404), "not_found", "{path}");
    }
    client.delete("/v1/threads/web:42").await.expect(204);
    assert_eq!(client.get("/v1/threads/web:42").await.code(404), "not_found");
}

/// A client keeps its conversations with one header: the first request with a new name creates the thread.
#[tokio::test]
async fn completions_open_the_thread_that_their_header_names() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let ask = |text: &str, streamed: bool| {
        let body = json!({ "messages": [{ "role": "user", "content": text }], "stream": streamed });
        send(client.request("POST", "/v1/chat/completions").header("threadkeep-thread", "año:1").json(&body))
    };
    let first = ask("one", false).await;
    assert_eq!(first.expect(200)["choices"][0]["message"]["content"], "echo: one (1 messages)");
    let second = ask("two", true).await;
    assert_eq!((second.status, second.header("threadkeep-thread")), (200, first.header("threadkeep-thread")));
    let id = first.header("threadkeep-thread");
    assert_eq!(client.texts(id).await, ["one", "echo: one (1 messages)", "two", "echo: two (3 messages)"]);
    assert_eq!(client.get(&format!("/v1/threads/{id}")).await.expect(200)["key"], "año:1");
    // An invalid request creates no thread.
    let body = json!({ "messages": [{ "role": "user", "content": "x" }], "stop": 7 });
    let request = client.request("POST", "/v1/chat/completions").header("threadkeep-thread", "new").json(&body);
    assert_eq!(send(request).await.status, 400);
    assert_eq!(client.get("/v1/threads/new").await.status, 404);
}

/// The header selects the conversation of a response in the same way.
#[tokio::test]
async fn responses_open_the_thread_that_their_header_names() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let ask = |body: Value, name: &str| {
        send(client.request("POST", "/v1/responses").header("threadkeep-thread", name).json(&body))
    };
    let first = ask(json!({ "input": "one" }), "año:2").await.expect(200);
    let conversation = first["conversation"]["id"].as_str().unwrap().to_owned();
    let second = ask(json!({ "input": "two", "stream": true }), &conversation).await;
    assert_eq!(second.status, 200);
    let third = ask(json!({ "input": "three" }), "año:2").await.expect(200);
    assert_eq!(third["conversation"]["id"], conversation);
    assert_eq!(third["output"][0]["content"][0]["text"], "echo: three (5 messages)");
    assert_eq!(client.get(&format!("/v1/threads/{conversation}")).await.expect(200)["key"], "año:2");
    for other in [json!({ "conversation": conversation }), json!({ "previous_response_id": first["id"] })] {
        let mut body = json!({ "input": "x" });
        body.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert_eq!(ask(body, "año:2").await.code(400), "mutually_exclusive_parameters");
    }
    // Neither an invalid request nor an unknown id creates a thread.
    assert_eq!(ask(json!({ "input": 7 }), "new").await.status, 400);
    assert_eq!(client.get("/v1/threads/new").await.status, 404);
    assert_eq!(ask(json!({ "input": "x" }), "conv_00000000000000000000000000000000").await.status, 404);
    // A repeated request with a different header is a different request.
    let repeat = |name: &str| {
        let request = client.request("POST", "/v1/responses").header("idempotency-key", "k");
        send(request.header("threadkeep-thread", name).json(&json!({ "input": "x" })))
    };
    let repeated = repeat("año:2").await.expect(200);
    assert_eq!(repeat("año:2").await.expect(200)["id"], repeated["id"]);
}

/// A key belongs to its owner. A user can also name a thread that the users of the tenant share by its key.
#[tokio::test]
async fn keys_name_only_threads_that_the_caller_can_read() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = tenant.as_user("ana");
    let shared = tenant.post("/v1/threads", json!({ "key": "channel" })).await.expect(201);
    let own = ana.post("/v1/threads", json!({ "key": "mine" })).await.expect(201);
    assert_eq!(ana.get("/v1/threads/channel").await.expect(200)["id"], shared["id"]);
    assert_eq!(ana.get("/v1/threads/mine").await.expect(200)["id"], own["id"]);
    assert_eq!(tenant.as_user("eve").get("/v1/threads/mine").await.code(404), "not_found");
    let other = server.client_with_new_key("other", None, &[KeyRole::Write]).await;
    assert_eq!(other.get("/v1/threads/channel").await.code(404), "not_found");
}
