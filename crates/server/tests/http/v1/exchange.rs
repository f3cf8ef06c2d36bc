use serde_json::json;

use threadkeep_server::KeyRole;

use crate::TestServer;
use crate::server::{Client, send};

#[tokio::test]
async fn exports_can_be_imported_repeatedly() {
    let (server, other_server) = (TestServer::start().await, TestServer::start().await);
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "keep this").await;
    client.send("PUT", "/v1/preferences/tone", json!({ "value": "plain" })).await.expect(200);
    let exported = client.get("/v1/export").await;
    assert_eq!((exported.status, exported.header("content-type")), (200, "application/jsonl"));
    let other = other_server.client();
    let import = || send(other.request("POST", "/v1/import").body(exported.text.clone()));
    let first = import().await.expect(200);
    assert_eq!((&first["messages"], &first["problem_count"]), (&json!({ "new": 1, "known": 0 }), &json!(0)));
    let repeated = import().await.expect(200);
    assert_eq!(repeated["messages"], json!({ "new": 0, "known": 1 }));
    assert_eq!(other.texts(&thread).await, ["keep this"]);
    assert_eq!(other.get("/v1/preferences/tone").await.expect(200)["value"], "plain");
    let unreadable = send(other.request("POST", "/v1/import").body("no conversations")).await;
    assert_eq!(unreadable.code(400), "unreadable_file");
}

/// A user can move their own history between servers without an administrator.
#[tokio::test]
async fn users_export_and_import_their_own_history() {
    let (server, other_server) = (TestServer::start().await, TestServer::start().await);
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = ana.new_thread().await;
    ana.say(&thread, "keep this").await;
    let exported = ana.get("/v1/export").await;
    assert_eq!(exported.status, 200);
    let import = |client: Client| {
        let request = client.request("POST", "/v1/import").body(exported.text.clone());
        async move { send(request).await }
    };
    let other_ana = other_server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let imported = import(other_ana.clone()).await.expect(200);
    assert_eq!(imported["messages"], json!({ "new": 1, "known": 0 }));
    assert_eq!(other_ana.texts(&thread).await, ["keep this"]);
    let reader = other_server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    assert_eq!(import(reader).await.code(403), "role_missing");
    // A key that can act for any user needs the role.
    let application = other_server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    assert_eq!(import(application.clone()).await.code(403), "role_missing");
    assert_eq!(import(application.as_user("ana")).await.code(403), "role_missing");
}

#[tokio::test]
async fn erased_users_are_not_found() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "forget me").await;
    let erased = client.post("/v1/erase", json!({ "user": "me" })).await.expect(200);
    assert_eq!((&erased["threads"], &erased["messages"], &erased["swept"]), (&json!(1), &json!(1), &json!(true)));
    assert_eq!(client.get(&format!("/v1/threads/{thread}")).await.code(404), "not_found");
    assert_eq!(client.post("/v1/search", json!({ "query": "forget" })).await.expect(200)["hits"], json!([]));
}
