//! Managing keys, reading the audit log, and the headers of rate limits.

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, RateLimit, ServerOptions};

use crate::TestServer;
use crate::server::TestConfig;

#[tokio::test]
async fn administrators_manage_the_keys_of_their_tenant() {
    let server = TestServer::start().await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let other = server.client_with_new_key("other", None, &[KeyRole::Admin]).await;
    let body = json!({ "name": "phone", "user": "ana", "roles": ["read"], "rate": 60.0 });
    let created = admin.post("/v1/keys", body).await.expect(201);
    let (id, secret) = (created["key"]["id"].as_str().unwrap(), created["secret"].as_str().unwrap());
    assert_eq!(
        (&created["key"]["user"], &created["key"]["roles"], &created["key"]["rate"]),
        (&json!("ana"), &json!(["read"]), &json!(60))
    );
    let phone = server.anonymous_client().with_key(secret);
    let answer = phone.get("/v1/threads").await;
    assert_eq!((answer.status, answer.header("x-ratelimit-limit-requests")), (200, "60"));
    assert_eq!(phone.post("/v1/threads", json!({})).await.code(403), "role_missing");
    // Another tenant does not see the key, and cannot change it.
    let names = |keys: Value| {
        keys["data"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(admin.get("/v1/keys").await.expect(200)), ["test", "phone"]);
    assert_eq!(names(other.get("/v1/keys").await.expect(200)), ["test"]);
    assert!(!admin.get("/v1/keys").await.text.contains("secret"));
    let path = format!("/v1/keys/{id}");
    assert_eq!(other.delete(&path).await.code(404), "not_found");
    assert_eq!(other.post(&format!("{path}/rotate"), json!({})).await.code(404), "not_found");
    let rotated = admin.post(&format!("{path}/rotate"), json!({})).await.expect(200);
    assert_eq!(phone.get("/v1/threads").await.status, 401);
    let phone = phone.with_key(rotated["secret"].as_str().unwrap());
    phone.get("/v1/threads").await.expect(200);
    assert!(admin.delete(&path).await.expect(200)["revoked_at"].is_string());
    assert_eq!(phone.get("/v1/threads").await.status, 401);
    // Only an administrator of the whole tenant manages keys, and administrators cannot grant `operate`.
    for client in [admin.as_user("ana"), server.client_with_new_key("acme", None, &[KeyRole::Write]).await] {
        assert_eq!(client.get("/v1/keys").await.status, 403);
        assert_eq!(client.post("/v1/keys", json!({ "name": "x" })).await.status, 403);
    }
    assert_eq!(admin.post("/v1/keys", json!({ "name": "x", "roles": ["operate"] })).await.code(403), "role_missing");
    for wrong in [json!({ "name": "" }), json!({ "name": "x", "roles": [] }), json!({ "name": "x", "rate": 0 })] {
        assert_eq!(admin.post("/v1/keys", wrong).await.status, 400);
    }
    let log = admin.get("/v1/audit").await.expect(200);
    let acts: Vec<&str> =
        log["data"].as_array().unwrap().iter().map(|record| record["act"].as_str().unwrap()).collect();
    assert!(acts.contains(&"POST /v1/keys") && acts.contains(&"DELETE /v1/keys/{key}"), "{acts:?}");
    let log = other.get("/v1/audit").await.expect(200);
    assert!(log["data"].as_array().unwrap().iter().all(|record| record["outcome"] != "201"), "{log}");
    assert_eq!(admin.as_user("ana").get("/v1/audit").await.code(403), "tenant_key_required");
}

#[tokio::test]
async fn responses_have_the_callers_rate_limit() {
    let config = TestConfig::default();
    let options = ServerOptions { rate_limit: Some(RateLimit { per_minute: 3 }), ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    let client = server.client_with_new_key("acme", None, &[KeyRole::Read]).await;
    for remaining in ["2", "1"] {
        let answer = client.get("/v1/threads").await;
        assert_eq!((answer.status, answer.header("x-ratelimit-limit-requests")), (200, "3"));
        assert_eq!(answer.header("x-ratelimit-remaining-requests"), remaining);
        assert!(answer.header("x-ratelimit-reset-requests").ends_with('s'));
    }
    let refused = client.get("/v1/threads/unknown").await;
    assert_eq!((refused.status, refused.header("x-ratelimit-remaining-requests")), (404, "0"));
    let limited = client.get("/v1/threads").await;
    assert_eq!((limited.code(429).as_str(), limited.header("x-ratelimit-limit-requests")), ("rate_limited", "3"));
    assert_eq!(limited.header("x-ratelimit-remaining-requests"), "0");
    assert_eq!(TestServer::start().await.client().get("/v1/threads").await.header("x-ratelimit-limit-requests"), "");
}
