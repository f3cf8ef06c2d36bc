//! Isolation between tenants and users: on every route, identifiers of another tenant or user get the same response as identifiers
//! that do not exist.

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, OwnedIds, Probe, Server, TenantCase};

use crate::Client;
use crate::assistants::test_assistant;
use crate::server::{Answer, TestConfig, TestServer, send};
use crate::v1::config_with_model;
use crate::v1::files::upload;

/// Starts a server with a model and an assistant.
async fn start() -> TestServer {
    let assistants = vec![test_assistant("keeper").0];
    TestServer::start_with(TestConfig { assistants, ..config_with_model().0 }).await
}

pub(crate) async fn send_probe(client: &Client, method: &str, probe: &Probe) -> Answer {
    let mut request = client.request(method, &probe.path);
    if let Some(body) = &probe.body {
        request = request.json(body);
    }
    for (name, value) in &probe.headers {
        request = request.header(*name, value);
    }
    send(request).await
}

/// Returns the status and body of a response, without fields that differ between any two responses.
fn normalize(answer: &Answer) -> (u16, String) {
    let Ok(mut body) = serde_json::from_str::<Value>(&answer.text) else { return (answer.status, answer.text.clone()) };
    if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("request_id");
    }
    let generated_members = [
        "id",
        "created_at",
        "updated_at",
        "version",
        "thread",
        "threadId",
        "turn",
        "started_at",
        "timestamp",
        "duration_ms",
    ];
    for generated in generated_members {
        if let Some(members) = body.as_object_mut() {
            members.remove(generated);
        }
    }
    (answer.status, body.to_string())
}

/// Whether two responses are the same, apart from the names that their requests contained.
pub(crate) fn is_same(found: &Answer, missing: &Answer, names: &[String]) -> bool {
    let redacted = |answer: &Answer| {
        let (status, text) = normalize(answer);
        (status, names.iter().fold(text, |text, name| text.replace(name.as_str(), "…")))
    };
    redacted(found) == redacted(missing)
}

/// Returns the cases of all doors.
fn list_tenant_cases(owned: &OwnedIds) -> Vec<TenantCase> {
    Server::doors().iter().flat_map(|door| door.tenant_cases(owned)).collect()
}

/// Returns every identifier that a probe can contain.
fn list_names(owned: &OwnedIds) -> Vec<String> {
    let unknown = OwnedIds::nonexistent();
    let mut names = Vec::new();
    for OwnedIds { thread, message, responses, completion, file, .. } in [owned, &unknown] {
        names.extend(responses.iter().chain([completion, thread, file]).cloned());
        names.extend([thread, message].map(|id| id.replace('-', "")));
        // Responses without a conversation contain message ids with this prefix.
        names.push(responses[0]["resp_".len()..][..28].to_owned());
    }
    names
}

/// Creates a resource of every kind on behalf of a user, and a record that the tenant owns.
async fn create_resources(client: &Client, tenant: &Client, user: &'static str) -> OwnedIds {
    let opened = client.post("/v1/threads", json!({ "key": "web:1" })).await.expect(201);
    let thread = opened["id"].as_str().unwrap().to_owned();
    let appended = client.say(&thread, "The stove burns paraffin.").await;
    let message = appended["messages"][0]["id"].as_str().unwrap().to_owned();
    client.new_thread().await;
    let base = format!("/v1/threads/{thread}");
    client.post(&format!("{base}/context"), json!({ "turn": "t-1" })).await.expect(200);
    for path in ["/v1/records/notes/a", "/v1/records/notes/b", "/v1/preferences/home"] {
        client.send("PUT", path, json!({ "value": "mine" })).await.expect(200);
    }
    client.send("PUT", &format!("{base}/records/notes/a"), json!({ "value": "mine" })).await.expect(200);
    tenant.send("PUT", "/v1/records/notes/a", json!({ "value": "ours" })).await.expect(200);
    let next = |page: Value| page["next"].as_str().unwrap().to_owned();
    let threads = next(client.get("/v1/threads?order=created&limit=1").await.expect(200));
    let records = next(client.get("/v1/records/notes?limit=1").await.expect(200));
    let cursors = vec![("threads", threads), ("records", records)];
    let mut responses = Vec::new();
    for conversation in [Value::Null, json!(format!("conv_{}", thread.replace('-', "")))] {
        let body = json!({ "input": "hello", "conversation": conversation });
        let response = client.post("/v1/responses", body).await.expect(200);
        responses.push(response["id"].as_str().unwrap().to_owned());
    }
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }], "store": true });
    let completion = client.post("/v1/chat/completions", body).await.expect(200);
    let request = json!({ "text": "delete lamp", "thread": thread });
    let turn = client.post("/v1/agents/keeper/turns", request).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (approval, turn) = (text(&turn["approvals"][0]["id"]), text(&turn["turn"]));
    let completion = text(&completion["id"]);
    let uploaded = upload(client, "stove.md", b"The stove burns paraffin.", &[]).await.expect(200);
    let file = text(&uploaded["id"]);
    OwnedIds { approval, turn, responses, completion, file, thread, message, key: "web:1".to_owned(), cursors, user }
}

#[test]
fn every_route_has_a_tenant_case() {
    for door in Server::doors() {
        assert_eq!(door.routes_without_cases(), [], "{}", door.name());
    }
    let doors = Server::doors();
    let without_cases = doors.last().unwrap().clone().cases(|_| Vec::new());
    assert_eq!(
        without_cases.routes_without_cases().len(),
        without_cases.routes().len(),
        "without cases, all routes are reported"
    );
}

#[tokio::test]
async fn resources_of_other_tenants_appear_not_to_exist() {
    let server = start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Admin]).await;
    let owned = create_resources(&ana, &tenant, "ana").await;
    let before = content(&ana).await;
    for user in [None, Some("eve")] {
        let outsider = server.client_with_new_key("other", user, &[KeyRole::Admin]).await;
        for case in list_tenant_cases(&owned) {
            for (existing, nonexistent) in case.probes {
                let (method, path) = case.route;
                let (found, unknown) =
                    (send_probe(&outsider, method, &existing).await, send_probe(&outsider, method, &nonexistent).await);
                let is_same = is_same(&found, &unknown, &list_names(&owned));
                assert!(is_same, "{method} {path} {existing:?} of {user:?}: {found:?} {unknown:?}");
            }
        }
    }
    assert_eq!(content(&ana).await, before, "the owner's data is unchanged");
}

#[tokio::test]
async fn resources_of_other_users_appear_not_to_exist() {
    let server = start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write, KeyRole::Approve]).await;
    let owned = create_resources(&ana, &tenant, "ana").await;
    let before = content(&ana).await;
    let eve = server.client_with_new_key("acme", Some("eve"), &[KeyRole::Write, KeyRole::Approve]).await;
    for case in list_tenant_cases(&owned) {
        let (method, path) = case.route;
        // Thread ids are unique in a tenant, and ids of deleted threads are not reused: creating a thread with Ana's id fails.
        if (method, path) == ("POST", "/v1/threads") {
            assert_eq!(send_probe(&eve, method, &case.probes[0].0).await.code(404), "not_found");
            continue;
        }
        // All users of a tenant can read records that the tenant owns.
        for (existing, nonexistent) in
            case.probes.iter().filter(|(existing, _)| !existing.path.contains("owner=tenant"))
        {
            let (found, unknown) =
                (send_probe(&eve, method, existing).await, send_probe(&eve, method, nonexistent).await);
            let is_same = is_same(&found, &unknown, &list_names(&owned));
            assert!(is_same, "{method} {path} {existing:?}: {found:?} {unknown:?}");
        }
    }
    assert_eq!(content(&ana).await, before, "the owner's data is unchanged");
}

/// Returns all data of the owner, without the header of the export.
async fn content(owner: &Client) -> Vec<String> {
    let exported = owner.get("/v1/export").await;
    assert_eq!(exported.status, 200);
    let shared = owner.get("/v1/records/notes?owner=tenant").await;
    exported.text.lines().skip(1).map(str::to_owned).chain([shared.text]).collect()
}
