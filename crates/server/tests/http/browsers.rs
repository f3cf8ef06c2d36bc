//! Pages of other origins: cross-origin requests, and short-lived tokens.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::json;
use threadkeep::Memory;
use threadkeep_server::{KeyRole, Keys, ServerOptions};
use tokio_tungstenite::connect_async;

use crate::TestServer;
use crate::clock::FakeClock;
use crate::server::{TIMEOUT, TestConfig, send};

const ORIGIN: &str = "https://app.example";

async fn start() -> TestServer {
    let config = TestConfig::default();
    let options = ServerOptions { browser_origins: vec![ORIGIN.to_owned()], ..config.options };
    TestServer::start_with(TestConfig { options, ..config }).await
}

#[tokio::test]
async fn pages_of_configured_origins_may_call_the_server() {
    let server = start().await;
    let client = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let preflight = |origin: &str| {
        let request = server.anonymous_client().request("OPTIONS", "/v1/threads/x/messages").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        send(request.header("access-control-request-headers", "authorization,content-type"))
    };
    let allowed = preflight(ORIGIN).await;
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, ORIGIN));
    assert_eq!(allowed.header("access-control-allow-headers"), "authorization,content-type");
    assert!(allowed.header("access-control-allow-methods").contains("PATCH"));
    assert_eq!(allowed.header("access-control-allow-credentials"), "", "cookies are not valid for other origins");
    assert_eq!(preflight("https://evil.example").await.header("access-control-allow-origin"), "");
    for (origin, expected) in [(ORIGIN, ORIGIN), ("https://evil.example", "")] {
        for path in ["/v1/threads", "/v1/threads/unknown", "/nowhere"] {
            let answer = send(client.request("GET", path).header("origin", origin)).await;
            assert_eq!(answer.header("access-control-allow-origin"), expected, "{path}");
        }
    }
    let answer = send(client.request("GET", "/v1/threads").header("origin", ORIGIN)).await;
    assert!(answer.header("access-control-expose-headers").contains("x-request-id"));
    // Off by default.
    let without = TestServer::start().await;
    let request = without.client().request("OPTIONS", "/v1/threads").header("origin", ORIGIN);
    let refused = send(request.header("access-control-request-method", "GET")).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (405, ""));
}

#[tokio::test]
async fn pages_sign_in_with_short_lived_tokens() {
    let server = start().await;
    let backend = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = backend.as_user("ana");
    let thread = ana.new_thread().await;
    let token = ana.post("/v1/tokens", json!({})).await.expect(201)["token"].as_str().unwrap().to_owned();
    let page = server.anonymous_client();
    // EventSource and WebSocket cannot send headers.
    let events = page.request("GET", &format!("/v1/threads/{thread}/events?token={token}")).send();
    let response = tokio::time::timeout(TIMEOUT, events).await.unwrap().unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let mut stream = response.bytes_stream();
    ana.say(&thread, "hello").await;
    let mut text = String::new();
    while !text.contains("hello") {
        let bytes = tokio::time::timeout(TIMEOUT, stream.next()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    let (_socket, upgraded) = connect_async(format!("ws://{}/v1/live?token={token}", server.address)).await.unwrap();
    assert_eq!(upgraded.status().as_u16(), 101);
    // In a header, the token is valid for all requests that its roles allow, for its user only.
    let signed_in = page.clone().with_key(&token);
    assert_eq!(signed_in.get("/v1/threads").await.expect(200)["data"][0]["id"], thread);
    assert_eq!(signed_in.post("/v1/threads", json!({})).await.code(403), "role_missing");
    assert_eq!(signed_in.as_user("eve").get("/v1/threads").await.code(403), "other_user");
    assert_eq!(signed_in.post("/v1/tokens", json!({})).await.code(403), "token_refused");
    // In the query, a token is accepted only for streams, and a key is never accepted.
    assert_eq!(page.get(&format!("/v1/threads?token={token}")).await.status, 401);
    let key = backend.key.clone().unwrap();
    assert_eq!(page.get(&format!("/v1/threads/{thread}/events?token={key}")).await.status, 401);
    let mut changed = token.clone();
    changed.replace_range(8..9, if &token[8..9] == "A" { "B" } else { "A" });
    for wrong in ["", "tkb_x.y", &changed] {
        assert_eq!(page.get(&format!("/v1/threads/{thread}/events?token={wrong}")).await.status, 401, "{wrong}");
    }
    // A token is valid until its creator's key is revoked.
    let other = TestServer::start_on(server.memory.clone(), TestConfig::default()).await;
    other.anonymous_client().with_key(&token).get("/v1/threads").await.expect(200);
    let keys = Keys::new(&server.memory);
    let record = keys.list(None).await.unwrap().pop().unwrap();
    keys.revoke(&record.tenant, &record.id).await.unwrap();
    assert_eq!(signed_in.get("/v1/threads").await.status, 401);
}

#[tokio::test]
async fn tokens_expire_and_lose_the_roles_that_their_key_loses() {
    let clock = Arc::new(FakeClock::default());
    let backend = threadkeep::open("memory:").await.unwrap().backend().clone();
    let config = TestConfig::default();
    let options = ServerOptions { browser_origins: vec![ORIGIN.to_owned()], ..config.options };
    let memory = Memory::with_clock(backend, clock.clone());
    let server = TestServer::start_on(memory, TestConfig { options, ..config }).await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let created = admin.post("/v1/keys", json!({ "name": "page", "roles": ["write"] })).await.expect(201);
    let writer = server.anonymous_client().with_key(created["secret"].as_str().unwrap());
    let thread = writer.new_thread().await;
    let token = async |roles: serde_json::Value| {
        let created = writer.post("/v1/tokens", json!({ "roles": roles, "expires_in": 300 })).await.expect(201);
        created["token"].as_str().unwrap().to_owned()
    };
    let (reading, writing) = (token(json!(["read"])).await, token(json!(["write"])).await);
    let page = server.anonymous_client();
    let events = |token: &str| page.request("GET", &format!("/v1/threads/{thread}/events?token={token}"));
    page.clone().with_key(&writing).new_thread().await;
    // The token keeps only the roles that its key still has.
    let path = format!("/v1/keys/{}", created["key"]["id"].as_str().unwrap());
    admin.send("PATCH", &path, json!({ "roles": ["read"] })).await.expect(200);
    assert_eq!(page.clone().with_key(&writing).post("/v1/threads", json!({})).await.code(403), "role_missing");
    assert_eq!(page.clone().with_key(&reading).get("/v1/threads").await.status, 200);
    clock.set(299_000);
    assert_eq!(page.clone().with_key(&reading).get("/v1/threads").await.status, 200);
    clock.set(301_000);
    assert_eq!(page.clone().with_key(&reading).get("/v1/threads").await.code(401), "invalid_key");
    assert_eq!(send(events(&reading)).await.code(401), "invalid_key");
}

#[tokio::test]
async fn tokens_are_limited_to_an_hour_and_the_roles_of_their_creator() {
    let server = start().await;
    let writer = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let writing = writer.post("/v1/tokens", json!({ "roles": ["write"], "expires_in": 3600 })).await.expect(201);
    let signed_in = server.anonymous_client().with_key(writing["token"].as_str().unwrap());
    signed_in.new_thread().await;
    assert_eq!(writer.post("/v1/tokens", json!({ "roles": ["approve"] })).await.code(403), "role_missing");
    for wrong in [
        json!({ "expires_in": 0 }),
        json!({ "expires_in": 3601 }),
        json!({ "roles": [] }),
        json!({ "roles": ["admin"] }),
    ] {
        assert_eq!(writer.post("/v1/tokens", wrong).await.status, 400);
    }
    let without = TestServer::start().await;
    assert_eq!(without.client().post("/v1/tokens", json!({})).await.code(403), "tokens_disabled");
}
