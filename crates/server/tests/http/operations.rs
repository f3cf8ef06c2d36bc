use std::time::Duration;

use serde_json::{Value, json};
use threadkeep::Scope;
use threadkeep::core::OpenThread;
use threadkeep_server::{Server, ServerOptions};

use crate::TestServer;
use crate::assistants::with_keeper;
use crate::server::{PATIENCE, TestConfig};

#[tokio::test]
async fn it_tells_that_it_lives_and_serves() {
    let server = TestServer::start().await;
    let client = server.client();
    assert_eq!(client.get("/health").await.expect(200), json!({ "status": "ok" }));
    assert_eq!(client.get("/ready").await.expect(200), json!({ "status": "ready" }));
}

#[tokio::test]
async fn the_document_names_every_route_and_its_viewer_needs_no_network() {
    let server = TestServer::start().await;
    let client = server.client();
    let document: Value = client.get("/v1/openapi.json").await.expect(200);
    for route in Server::routes() {
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        // Hosts, credentials, rates and sizes are looked at on every route.
        let refused = &operation["responses"]["4XX"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(refused, "#/components/schemas/ErrorEnvelope", "{} {}", route.method, route.path);
        assert_eq!(operation["security"].is_array(), route.role.is_some(), "{} {}", route.method, route.path);
    }
    let page = client.get("/docs/").await;
    assert_eq!(page.status, 200);
    assert!(!page.text.replace(' ', "").contains("<script>"), "its policy lets no script in the page itself run");
    let start = client.get("/docs").await;
    assert_eq!(start.status, 200, "it leads to the page");
    for part in page.text.split(['"', '\'']).filter(|part| part.ends_with(".js") || part.ends_with(".css")) {
        assert!(!part.contains("//"), "{part} is elsewhere");
        assert_eq!(client.get(&format!("/docs/{}", part.trim_start_matches("./"))).await.status, 200, "{part}");
    }
    assert!(client.get("/docs/swagger-initializer.js").await.text.contains("/v1/openapi.json"));
    assert_eq!(client.get("/docs/..%2f..%2fetc%2fpasswd").await.code(404), "not_found");
}

/// What a browser shows may load nothing from elsewhere and stand in nobody's frame.
#[tokio::test]
async fn every_page_has_a_policy() {
    let (server, _) = with_keeper().await;
    let client = server.client();
    let mut pages = Vec::new();
    for route in Server::routes().iter().filter(|route| route.method == "GET" && route.role.is_none()) {
        let path = route.path.replace("{assistant}", "keeper").replace("{file}", "swagger-ui-bundle.js");
        let answer = client.get(&path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        let kind = answer.header("content-type");
        if ["html", "javascript"].iter().any(|shown| kind.contains(shown)) {
            let policy = answer.header("content-security-policy");
            for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            pages.push(path);
        }
    }
    for page in ["/docs/", "/docs/swagger-ui-bundle.js", "/", "/keeper/"] {
        assert!(pages.iter().any(|seen| seen == page), "{page} is no page: {pages:?}");
    }
}

#[tokio::test]
async fn what_was_accepted_is_finished_before_it_stops() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let mut writers = tokio::task::JoinSet::new();
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    for writer in 0..8 {
        let (client, thread, heard) = (client.clone(), thread.clone(), heard.clone());
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
                heard.send(()).unwrap();
            }
            acknowledged
        });
    }
    for _ in 0..40 {
        hears.recv().await.unwrap();
    }
    let memory = server.memory.clone();
    server.request_shutdown();
    server.stopped().await.unwrap();
    let acknowledged: Vec<String> = writers.join_all().await.into_iter().flatten().collect();
    let scope = threadkeep::Scope::user("local", "me").unwrap();
    let kept = memory.newest(&scope, thread.parse().unwrap(), 1000).await.unwrap();
    let kept: std::collections::HashSet<String> =
        kept.iter().map(|message| message.plain_text().into_owned()).collect();
    assert!(acknowledged.len() >= 40);
    assert!(acknowledged.iter().all(|text| kept.contains(text)));
}

/// Two servers over one database see one another's changes, and what is over is swept out by one of them.
#[tokio::test(flavor = "multi_thread")]
async fn two_servers_over_one_database_are_one() {
    let parts = || {
        let options = ServerOptions { sweep_every: Some(Duration::from_millis(40)), ..TestConfig::default().options };
        TestConfig { options, ..TestConfig::default() }
    };
    let Some(one) = TestServer::start_over_postgres(parts()).await else { return };
    let other = TestServer::over(threadkeep::open(&one.database_url()).await.unwrap(), parts()).await;
    let (here, there) = (one.client(), other.client());
    let thread = here.new_thread().await;
    there.say(&thread, "hello").await;
    assert_eq!(here.texts(&thread).await, ["hello"]);

    let owner = Scope::user("local", "me").unwrap();
    let expires_at = Some(one.memory.now().plus_ms(1));
    let open = OpenThread { expires_at, ..OpenThread::new(&owner, one.memory.mint_thread_id()) };
    let expiring = one.memory.open_thread(&owner, open).await.unwrap().thread.id;
    let maintenance = &one.memory.backend().maintenance;
    let is_there = async || maintenance.dump_thread(owner.tenant_id(), expiring, None, 1).await.is_ok();
    let swept = async {
        while is_there().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, swept).await.expect("what has expired is swept out");
}
