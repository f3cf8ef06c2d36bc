use serde_json::json;

use crate::TestServer;
use crate::log::Log;

#[tokio::test]
async fn every_error_has_the_standard_format_and_a_request_id() {
    let server = TestServer::start().await;
    let client = server.client();
    let unknown = client.get("/nowhere").await;
    assert_eq!(unknown.code(404), "unknown_route");
    let wrong = client.delete("/v1/threads").await;
    assert_eq!(wrong.code(405), "method_not_allowed");
    assert_eq!(wrong.header("allow"), "POST,GET,HEAD");
    let missing = client.get("/v1/threads/00000000-0000-0000-0000-000000000000").await.error(404);
    assert_eq!(
        (missing["code"].as_str(), missing["type"].as_str()),
        (Some("not_found"), Some("invalid_request_error"))
    );
    let invalid = client.post("/v1/threads", json!({ "title": 7 })).await.error(400);
    assert_eq!((invalid["code"].as_str(), invalid["param"].as_str()), (Some("invalid_request"), Some("title")));
    let thread = client.new_thread().await;
    let missing_members = [
        (format!("/v1/threads/{thread}/messages"), json!({ "messages": [{ "text": "Hi" }] }), "messages[0].role"),
        (format!("/v1/threads/{thread}/messages"), json!({}), "messages"),
        ("/v1/search".to_owned(), json!({}), "query"),
    ];
    for (path, body, param) in missing_members {
        assert_eq!(client.post(&path, body).await.error(400)["param"], param);
    }
    let misspelt = client.get("/v1/threads?limt=3").await.error(400);
    assert_eq!((misspelt["code"].as_str(), misspelt["param"].as_str()), (Some("unknown_parameter"), Some("limt")));
    let (first, second) = (client.get("/health").await, client.get("/health").await);
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
}

#[tokio::test]
async fn client_errors_are_not_logged_as_errors() {
    let (log, _guard) = Log::capture();
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    for (method, path, body) in [
        ("GET", "/nowhere", json!({})),
        ("POST", "/v1/threads", json!({ "title": 7 })),
        ("POST", "/v1/search", json!({ "query": "x", "metadata": { "a": null } })),
        ("POST", "/v1/chat/completions", json!({ "messages": "hello" })),
        ("POST", "/v1/responses", json!({ "input": 5 })),
        ("GET", "/v1/threads/00000000-0000-0000-0000-000000000000", json!({})),
        ("PATCH", &format!("/v1/threads/{thread}"), json!({ "expires_at": "tomorrow" })),
    ] {
        let refused = client.send(method, path, body).await;
        assert!((400..500).contains(&refused.status), "{method} {path}: {refused:?}");
    }
    log.wait_for("/v1/threads/{id}").await;
    assert!(!log.text().contains(" ERROR "), "{}", log.text());
}
