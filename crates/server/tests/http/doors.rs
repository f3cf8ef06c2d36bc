//! Custom doors (sets of routes and background tasks that an application adds to the server), which use only the public API.

mod letters;
mod lines;

use serde_json::json;
use threadkeep::TenantId;
use threadkeep_server::{
    AssistantNameError, AuditLog, Door, DoorError, KeyRole, OwnedIds, RateLimit, Rule, ServeError, Server,
    ServerOptions, TenantCase,
};
use utoipa_axum::routes;

use crate::assistants::test_assistant;
use crate::server::{TIMEOUT, TestConfig, TestServer, new_key};
use crate::tenants::{is_same, send_probe};
pub(crate) use letters::letters_door;
use letters::{Letter, send_letter};
use lines::lines_door;

fn default_options() -> ServerOptions {
    TestConfig::default().options
}

#[tokio::test]
async fn senders_are_authenticated_by_a_signature_of_the_body() {
    let (assistant, model) = test_assistant("keeper");
    let config = TestConfig { assistants: vec![assistant], doors: vec![letters_door()], ..TestConfig::default() };
    let server = TestServer::start_with(config).await;
    let letter = Letter { team: "acme", event: "E1", text: "good+morning" };
    let answered = send_letter(&server, "/letters/events", &letter.body(), None).await;
    assert_eq!(answered.expect(200), json!({ "ok": true, "reply": "You said: good morning", "replayed": false }));
    let repeated = send_letter(&server, "/letters/events", &letter.body(), None).await;
    assert_eq!(repeated.expect(200), json!({ "ok": true, "reply": "You said: good morning", "replayed": true }));
    assert_eq!(model.request_count(), 1, "a repeated event is processed once");
    let other = Letter { text: "good evening", ..letter };
    let other = send_letter(&server, "/letters/events", &other.body(), None).await;
    assert_eq!(other.expect(409), json!({ "ok": false, "error": "idempotency_key_reused" }));

    // The same fields in another encoding are rejected, because the signature covers the bytes.
    let changed = letter.body().replace('+', "%20");
    let refused = send_letter(&server, "/letters/events", &changed, Some(&letter.body())).await;
    assert_eq!(refused.expect(401), json!({ "ok": false, "error": "bad_signature" }));
    let key = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let with_key = key.request("POST", "/letters/events").body(letter.body());
    assert_eq!(
        crate::server::send(with_key).await.expect(401)["error"],
        "bad_signature",
        "a key does not replace the signature"
    );
    // The team owns the thread: the tenant's key can list it through another door.
    assert_eq!(key.get("/v1/threads?key=letters:E").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn rate_limits_and_roles_apply_to_senders_of_a_door() {
    let options = ServerOptions { rate_limit: Some(RateLimit { per_minute: 2 }), ..default_options() };
    let config = TestConfig {
        options,
        assistants: vec![test_assistant("keeper").0],
        doors: vec![letters_door()],
        ..TestConfig::default()
    };
    let server = TestServer::start_with(config).await;
    let letter = Letter { team: "acme", event: "E1", text: "hello" };
    // Members of a team do not have the role `Admin`.
    let refused = send_letter(&server, "/letters/settings", &letter.body(), None).await;
    assert_eq!(refused.expect(403), json!({ "ok": false, "error": "role_missing" }));
    send_letter(&server, "/letters/events", &letter.body(), None).await.expect(200);
    let refused = send_letter(&server, "/letters/events", &letter.body(), None).await;
    assert_eq!(refused.expect(429), json!({ "ok": false, "error": "rate_limited" }));
    assert!((1..=30).contains(&refused.header("retry-after").parse::<u64>().unwrap()));
    let letter = Letter { team: "other", ..letter };
    send_letter(&server, "/letters/events", &letter.body(), None).await.expect(200);
}

#[tokio::test]
async fn audited_routes_of_a_door_are_written_to_the_audit_log() {
    let config = TestConfig {
        assistants: vec![test_assistant("keeper").0],
        doors: vec![letters_door()],
        ..TestConfig::default()
    };
    let server = TestServer::start_with(config).await;
    let letter = Letter { team: "acme", event: "E1", text: "hello" };
    send_letter(&server, "/letters/events", &letter.body(), None).await.expect(200);
    send_letter(&server, "/letters/forget", &letter.body(), None).await.expect(200);
    let log = AuditLog::new(&server.memory).list(&TenantId::new("acme").unwrap(), 10).await.unwrap();
    let entries: Vec<_> = log.iter().map(|record| (&*record.by, &*record.act, &*record.outcome)).collect();
    let act = "POST /letters/forget";
    assert_eq!(entries, [("letters acme", act, "begun"), ("letters acme", act, "200")]);
}

#[tokio::test]
async fn custom_routes_isolate_tenants_and_are_documented() {
    let server = TestServer::start_with(TestConfig { doors: vec![letters_door()], ..TestConfig::default() }).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = ana.new_thread().await;
    ana.say(&thread, "The stove burns paraffin.").await;
    let owned = OwnedIds { thread: thread.clone(), ..OwnedIds::nonexistent() };
    assert_eq!(ana.get(&format!("/letters/{thread}")).await.expect(200)["texts"][0], "The stove burns paraffin.");
    let mut probe_count = 0;
    for (tenant, user) in [("other", None), ("acme", Some("eve"))] {
        let outsider = server.client_with_new_key(tenant, user, &[KeyRole::Admin]).await;
        for case in letters_door().tenant_cases(&owned) {
            for (existing, nonexistent) in case.probes {
                let (method, _) = case.route;
                let (found, unknown) =
                    (send_probe(&outsider, method, &existing).await, send_probe(&outsider, method, &nonexistent).await);
                assert!(
                    is_same(&found, &unknown, std::slice::from_ref(&thread)),
                    "{existing:?}: {found:?} {unknown:?}"
                );
                assert_eq!(found.expect(404), json!({ "ok": false, "error": "not_found" }));
                probe_count += 1;
            }
        }
    }
    assert_eq!(probe_count, 2);
    let document = ana.get("/v1/openapi.json").await.expect(200);
    for route in letters_door().routes() {
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        assert!(operation["responses"]["4XX"].is_object(), "{} {}", route.method, route.path);
    }
}

#[tokio::test]
async fn doors_without_cases_or_with_colliding_routes_are_rejected() {
    let memory = threadkeep::open("memory:").await.unwrap();
    let server = || Server::new(memory.clone(), default_options());
    let without_cases = letters_door().cases(|_| Vec::new());
    assert_eq!(without_cases.routes_without_cases().len(), 4);
    assert!(matches!(server().with_door(without_cases), Err(DoorError::TenantCaseMismatch { door: "letters", .. })));
    let with_other_cases = letters_door().cases(|_| vec![TenantCase::without_ids("GET", "/letters/nowhere")]);
    assert!(matches!(server().with_door(with_other_cases), Err(DoorError::TenantCaseMismatch { .. })));
    let duplicate = server().with_door(letters_door()).unwrap().with_door(letters_door());
    assert!(matches!(duplicate, Err(DoorError::RouteCollision { door: "letters", .. })));
    let colliding = Door::new("rest again")
        .route(Rule::role(KeyRole::Read), || routes!(letters::colliding_route))
        .cases(|_| vec![TenantCase::without_ids("GET", "/v1/threads/{thread}")]);
    assert!(
        matches!(server().with_door(colliding), Err(DoorError::RouteCollision { .. })),
        "only the name of the parameter differs"
    );

    let assistants = Server::assistants();
    assistants.put(threadkeep::Agent::new(memory.clone(), test_assistant("letters").0)).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = server().with_door(letters_door()).unwrap().with_assistants(assistants.clone());
    let ended = server.serve(listener, std::future::pending()).await;
    assert!(matches!(ended, Err(ServeError::AssistantName(AssistantNameError::Reserved { .. }))), "{ended:?}");
    assert!(
        assistants.put(threadkeep::Agent::new(memory, test_assistant("letters").0)).is_err(),
        "the name stays reserved"
    );
}

#[tokio::test]
async fn background_tasks_use_the_same_service_without_http() {
    let (door, console) = lines_door();
    let options = ServerOptions { rate_limit: Some(RateLimit { per_minute: 4 }), ..default_options() };
    let (assistant, model) = test_assistant("keeper");
    let config = TestConfig { options, assistants: vec![assistant], doors: vec![door], ..TestConfig::default() };
    let mut server = TestServer::start_with(config).await;
    let keys = threadkeep_server::Keys::new(&server.memory);
    let (_, writer) = keys.create(new_key("acme", Some("ana"), &[KeyRole::Write])).await.unwrap();
    let (_, reader) = keys.create(new_key("acme", Some("ana"), &[KeyRole::Read])).await.unwrap();
    assert_eq!(console.send_line("unknown 1 hello").await, "error invalid_key");
    assert_eq!(console.send_line(&format!("{} 1 hello", reader.as_str())).await, "error role_missing");
    let line = |rest: &str| format!("{} {rest}", writer.as_str());
    assert_eq!(console.send_line(&line("1 hello")).await, "You said: hello");
    assert_eq!(console.send_line(&line("1 hello")).await, "You said: hello (again)");
    assert_eq!(console.send_line(&line("1 good-bye")).await, "error idempotency_key_reused");
    assert_eq!(model.request_count(), 1);
    // Accepted requests finish before the server stops, including requests that a background task executes.
    let waiting = tokio::spawn({
        let (console, line) = (console.clone(), line("2 wait"));
        async move { console.send_line(&line).await }
    });
    model.wait_until_blocked().await;
    server.request_shutdown();
    let closed = async {
        while tokio::net::TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, closed).await.unwrap();
    model.unblock();
    assert_eq!(waiting.await.unwrap(), "You said: wait");
    server.wait_until_stopped().await.unwrap();
}

#[tokio::test]
async fn rate_limits_apply_to_background_tasks() {
    let (door, console) = lines_door();
    let options = ServerOptions { rate_limit: Some(RateLimit { per_minute: 1 }), ..default_options() };
    let config = TestConfig {
        options,
        assistants: vec![test_assistant("keeper").0],
        doors: vec![door],
        ..TestConfig::default()
    };
    let server = TestServer::start_with(config).await;
    let keys = threadkeep_server::Keys::new(&server.memory);
    let (_, key) = keys.create(new_key("acme", None, &[KeyRole::Write])).await.unwrap();
    assert_eq!(console.send_line(&format!("{} 1 hello", key.as_str())).await, "You said: hello");
    assert_eq!(console.send_line(&format!("{} 2 hello", key.as_str())).await, "error rate_limited");
}
