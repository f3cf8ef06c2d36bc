use std::time::Duration;

use serde_json::{Value, json};
use threadkeep::Scope;
use threadkeep::core::OpenThread;
use threadkeep_server::{Server, ServerOptions};

use crate::TestServer;
use crate::assistants::start_with_test_assistant;
use crate::server::{TIMEOUT, TestConfig, redis_cluster_url, redis_url};

#[tokio::test]
async fn health_and_readiness_are_reported() {
    let server = TestServer::start().await;
    let client = server.client();
    assert_eq!(client.get("/health").await.expect(200), json!({ "status": "ok" }));
    assert_eq!(client.get("/ready").await.expect(200), json!({ "status": "ready" }));
}

#[tokio::test]
async fn openapi_document_is_complete_and_its_viewer_works_offline() {
    let server = TestServer::start().await;
    let client = server.client();
    let document: Value = client.get("/v1/openapi.json").await.expect(200);
    for route in Server::routes() {
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        // Every route can reject a request because of its host, credentials, rate limit or body size.
        let refused = &operation["responses"]["4XX"]["content"]["application/json"]["schema"]["$ref"];
        // These routes document errors in the form of their protocol: JSON-RPC, and the API that `/api/chat` replicates.
        let has_own_errors = route.path == "/mcp" || route.path.ends_with("/api/chat");
        assert!(has_own_errors || refused == "#/components/schemas/ErrorEnvelope", "{} {}", route.method, route.path);
        assert_eq!(operation["security"].is_array(), route.role.is_some(), "{} {}", route.method, route.path);
    }
    let page = client.get("/docs/").await;
    assert_eq!(page.status, 200);
    assert!(!page.text.replace(' ', "").contains("<script>"), "the policy blocks inline scripts");
    let start = client.get("/docs").await;
    assert_eq!(start.status, 200, "the client follows a redirect to the page");
    for part in page.text.split(['"', '\'']).filter(|part| part.ends_with(".js") || part.ends_with(".css")) {
        assert!(!part.contains("//"), "{part} is on another host");
        assert_eq!(client.get(&format!("/docs/{}", part.trim_start_matches("./"))).await.status, 200, "{part}");
    }
    assert!(client.get("/docs/swagger-initializer.js").await.text.contains("/v1/openapi.json"));
    assert_eq!(client.get("/docs/..%2f..%2fetc%2fpasswd").await.code(404), "not_found");
}

/// Pages cannot load resources from other hosts, and cannot be embedded in frames.
#[tokio::test]
async fn every_page_has_a_content_security_policy() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let mut pages = Vec::new();
    for route in Server::routes().iter().filter(|route| route.method == "GET" && route.role.is_none()) {
        let path = route.path.replace("{assistant}", "keeper").replace("{file}", "swagger-ui-bundle.js");
        let answer = client.get(&path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        let kind = answer.header("content-type");
        if ["html", "javascript"].iter().any(|rendered| kind.contains(rendered)) {
            let policy = answer.header("content-security-policy");
            for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            pages.push(path);
        }
    }
    for page in ["/docs/", "/docs/swagger-ui-bundle.js", "/", "/keeper/"] {
        assert!(pages.iter().any(|seen| seen == page), "{page} is missing: {pages:?}");
    }
}

#[tokio::test]
async fn accepted_requests_finish_before_the_server_stops() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let mut writers = tokio::task::JoinSet::new();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for writer in 0..8 {
        let (client, thread, sender) = (client.clone(), thread.clone(), sender.clone());
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for count in 0.. {
                let text = format!("{writer}/{count}");
                let body = json!({ "messages": [{ "role": "user", "text": text }] });
                let request = client.request("POST", &format!("/v1/threads/{thread}/messages")).json(&body);
                match request.send().await {
                    Ok(answer) if answer.status() == 201 => acknowledged.push(text),
                    Ok(answer) => panic!("{}", answer.status()),
                    Err(_) => break,
                }
                sender.send(()).unwrap();
            }
            acknowledged
        });
    }
    for _ in 0..40 {
        receiver.recv().await.unwrap();
    }
    let memory = server.memory.clone();
    server.request_shutdown();
    server.wait_until_stopped().await.unwrap();
    let acknowledged: Vec<String> = writers.join_all().await.into_iter().flatten().collect();
    let scope = threadkeep::Scope::user("local", "me").unwrap();
    let stored = memory.newest(&scope, thread.parse().unwrap(), 1000).await.unwrap();
    let stored: std::collections::HashSet<String> =
        stored.iter().map(|message| message.plain_text().into_owned()).collect();
    assert!(acknowledged.len() >= 40);
    assert!(acknowledged.iter().all(|text| stored.contains(text)));
}

fn sweeping_often() -> TestConfig {
    let options = ServerOptions { sweep_every: Some(Duration::from_millis(40)), ..TestConfig::default().options };
    TestConfig { options, ..TestConfig::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_on_one_database_share_their_state() {
    let Some(one) = TestServer::start_on_postgres(sweeping_often()).await else { return };
    let url = one.database_url();
    assert_shares_its_state(one, &url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_on_one_redis_share_their_state() {
    for url in [redis_url().await, redis_cluster_url().await].into_iter().flatten() {
        let memory = threadkeep::open(&url).await.unwrap();
        assert_shares_its_state(TestServer::start_on(memory, sweeping_often()).await, &url).await;
    }
}

/// Two servers on one store see each other's changes, and one of them sweeps expired data.
async fn assert_shares_its_state(one: TestServer, url: &str) {
    let other = TestServer::start_on(threadkeep::open(url).await.unwrap(), sweeping_often()).await;
    let (client, other_client) = (one.client(), other.client());
    let thread = client.new_thread().await;
    other_client.say(&thread, "hello").await;
    assert_eq!(client.texts(&thread).await, ["hello"]);

    let owner = Scope::user("local", "me").unwrap();
    let expires_at = Some(one.memory.now().plus_ms(1));
    let open = OpenThread { expires_at, ..OpenThread::new(&owner, one.memory.generate_thread_id()) };
    let expiring = one.memory.open_thread(&owner, open).await.unwrap().thread.id;
    let maintenance = &one.memory.backend().maintenance;
    let is_stored = async || maintenance.dump_thread(owner.tenant_id(), expiring, None, 1).await.is_ok();
    let swept = async {
        while is_stored().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, swept).await.expect("the expired thread is swept");
}
