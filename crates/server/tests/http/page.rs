//! The page at the root, and the routes that exist for it.

use serde_json::json;
use threadkeep_server::{KeyRole, Page, ServerOptions};

use crate::TestServer;
use crate::assistants::start_with_test_assistant;
use crate::server::TestConfig;

const FILES: &[(&str, &[u8])] = &[
    ("assets/code-1.js", b"1"),
    ("assets/look-1.css", b"a{}"),
    ("index.html", b"<!doctype html><p>the page</p>"),
    ("offline/engine/engine.wasm", b"\0asm"),
    ("offline/index.html", b"<!doctype html><p>the offline page</p>"),
    ("offline/worker.js", b"1"),
];

async fn start() -> TestServer {
    let config = TestConfig::default();
    let options = ServerOptions { page: Page::new(FILES), ..config.options };
    TestServer::start_with(TestConfig { options, ..config }).await
}

#[tokio::test]
async fn the_page_is_served_without_credentials_and_allows_only_its_own_code() {
    let server = start().await;
    let client = server.anonymous_client();
    let index = client.get("/").await;
    assert_eq!((index.status, index.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(index.text.contains("the page"));
    assert_eq!((index.header("cache-control"), index.header("referrer-policy")), ("no-cache", "no-referrer"));
    let policy = index.header("content-security-policy");
    assert!(!policy.contains("unsafe") && policy.contains("script-src 'self'; style-src 'self'"), "{policy}");
    assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
    let code = client.get("/assets/code-1.js").await;
    assert_eq!((code.status, code.header("content-type")), (200, "text/javascript; charset=utf-8"));
    assert_eq!(code.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(client.get("/assets/look-1.css").await.header("content-type"), "text/css; charset=utf-8");
    for unknown in ["/assets/code-2.js", "/assets/..%2findex.html", "/assets/%2e%2e%2findex.html"] {
        assert_eq!(client.get(unknown).await.code(404), "not_found", "{unknown}");
    }
    // Signing in leads to the page.
    assert!(client.get("/v1/session").await.text.contains("true ? \"#/chat?assistant=\""));
    assert!(Page::new(&[]).is_none(), "a program that was built without the page has none");
}

#[tokio::test]
async fn only_the_offline_page_may_compile_an_engine() {
    let server = start().await;
    let client = server.anonymous_client();
    let index = client.get("/offline/").await;
    assert_eq!((index.status, index.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(index.text.contains("the offline page"));
    let policy = index.header("content-security-policy");
    assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval'; style-src 'self'"), "{policy}");
    assert!(policy.contains("worker-src 'self'") && policy.contains("trusted-types threadkeep-offline"), "{policy}");
    assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{policy}");
    let engine = client.get("/offline/engine/engine.wasm").await;
    assert_eq!((engine.status, engine.header("content-type")), (200, "application/wasm"));
    let worker = client.get("/offline/worker.js").await;
    // A new version of the page has another worker under the same name.
    assert_eq!((worker.status, worker.header("cache-control")), (200, "no-cache"));
    for unknown in ["/offline/other.js", "/offline/engine/..%2findex.html", "/offline/%2e%2e%2findex.html"] {
        assert_eq!(client.get(unknown).await.code(404), "not_found", "{unknown}");
    }
}

#[tokio::test]
async fn without_the_page_a_plain_page_says_how_to_get_it() {
    let server = TestServer::start().await;
    let start = server.anonymous_client().get("/").await;
    assert_eq!(start.status, 200);
    assert!(start.text.contains("cargo xtask web") && start.text.contains("docs/"), "{}", start.text);
    assert!(start.header("content-security-policy").contains("default-src 'none'"));
    assert_eq!(server.anonymous_client().get("/assets/code-1.js").await.code(404), "not_found");
    let offline = server.anonymous_client().get("/offline/").await;
    assert_eq!(offline.code(404), "not_found");
    assert!(offline.text.contains("cargo xtask web --offline"), "{}", offline.text);
    let (single, _) = start_with_test_assistant().await;
    let chat = single.anonymous_client().get("/").await;
    assert!(chat.text.contains("keeper"), "{}", chat.text);
}

#[tokio::test]
async fn callers_can_look_up_their_identity_and_roles() {
    let server = TestServer::start().await;
    let local = server.client().get("/v1/caller").await.expect(200);
    assert_eq!((&local["tenant"], &local["user"]), (&json!("local"), &json!("me")));
    assert!(local["roles"].as_array().unwrap().contains(&json!("approve")));
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let expected = json!({ "tenant": "acme", "user": "ana", "roles": ["read"] });
    assert_eq!(reader.get("/v1/caller").await.expect(200), expected);
    let backend = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let expected = json!({ "tenant": "acme", "user": null, "roles": ["read", "write"] });
    assert_eq!(backend.get("/v1/caller").await.expect(200), expected);
    assert_eq!(backend.as_user("ben").get("/v1/caller").await.expect(200)["user"], "ben");
    assert_eq!(server.anonymous_client().get("/v1/caller").await.status, 401);
}

/// The policy in the description of an assistant can be sent back to assemble a context.
#[tokio::test]
async fn assistants_show_their_graph_and_policy() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let agent = client.get("/v1/agents/keeper").await.expect(200);
    assert_eq!(agent["name"], "keeper");
    assert!(agent["graph"]["mermaid"].as_str().unwrap().starts_with("flowchart TD"), "{agent}");
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let body = json!({ "question": "what now?", "policy": agent["context"] });
    let context = client.post(&format!("/v1/threads/{thread}/context"), body).await.expect(200);
    assert!(context["report"]["tokens"]["history"].as_u64().unwrap() > 0, "{context}");
    assert_eq!(client.get("/v1/agents/unknown").await.code(404), "not_found");
}

#[tokio::test]
async fn recalled_messages_have_the_parts_of_their_scores() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "Mila is allergic to nuts.").await;
    client.say(&thread, "Sam brings the stove.").await;
    let found = client.post("/v1/recall", json!({ "question": "What is Mila allergic to?" })).await.expect(200);
    let first = &found["turns"][0];
    let parts =
        ["words", "passage", "neighbours", "speaker", "time"].map(|part| first["parts"][part].as_f64().unwrap());
    assert!(parts[0] > 0.0, "{first}");
    let score = first["score"].as_f64().unwrap();
    assert!((parts.iter().sum::<f64>() - score).abs() < 1e-6, "{first}");
}
