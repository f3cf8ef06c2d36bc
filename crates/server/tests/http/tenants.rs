//! Another tenant's or user's ids, keys and cursors answer exactly as those that nobody has, on every route there is.

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, Owned, Probe, Server, TenantCase};

use crate::Client;
use crate::assistants::keeper;
use crate::server::{Answer, Parts, TestServer, send};
use crate::v1::parts_with_model;

/// A server with everything that can be asked.
async fn served() -> TestServer {
    let assistants = vec![keeper("keeper").0];
    TestServer::start_with(Parts { assistants, ..parts_with_model().0 }).await
}

pub(crate) async fn ask(client: &Client, method: &str, probe: &Probe) -> Answer {
    let mut request = client.request(method, &probe.path);
    if let Some(body) = &probe.body {
        request = request.json(body);
    }
    for (name, value) in &probe.headers {
        request = request.header(*name, value);
    }
    send(request).await
}

/// What a caller can tell from an answer, without what differs between any two.
fn told(answer: &Answer) -> (u16, String) {
    let Ok(mut body) = serde_json::from_str::<Value>(&answer.text) else { return (answer.status, answer.text.clone()) };
    if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("request_id");
    }
    for minted in ["id", "created_at", "updated_at", "version", "thread", "turn", "started_at", "duration_ms"] {
        if let Some(members) = body.as_object_mut() {
            members.remove(minted);
        }
    }
    (answer.status, body.to_string())
}

/// The answer to the one is the answer to the other, but for the names that were asked for.
pub(crate) fn is_same(found: &Answer, unknown: &Answer, names: &[String]) -> bool {
    let blank = |answer: &Answer| {
        let (status, text) = told(answer);
        (status, names.iter().fold(text, |text, name| text.replace(name.as_str(), "…")))
    };
    blank(found) == blank(unknown)
}

/// The cases of all doors.
fn cases(owned: &Owned) -> Vec<TenantCase> {
    Server::doors().iter().flat_map(|door| door.tenant_cases(owned)).collect()
}

/// Every name that a probe may hold.
fn names(owned: &Owned) -> Vec<String> {
    let nobody = Owned::nonexistent();
    let mut names = Vec::new();
    for Owned { thread, message, responses, completion, .. } in [owned, &nobody] {
        names.extend(responses.iter().chain([completion, thread]).cloned());
        names.extend([thread, message].map(|id| id.replace('-', "")));
        // What the words of a response without a conversation are called by.
        names.push(responses[0]["resp_".len()..][..28].to_owned());
    }
    names
}

/// Something of every kind, owned by a user.
async fn own(client: &Client, tenant: &Client, user: &'static str) -> Owned {
    let opened = client.post("/v1/threads", json!({ "key": "web:1" })).await.expect(201);
    let thread = opened["id"].as_str().unwrap().to_owned();
    let said = client.say(&thread, "The stove burns paraffin.").await;
    let message = said["messages"][0]["id"].as_str().unwrap().to_owned();
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
    let asked = json!({ "text": "delete lamp", "thread": thread });
    let turn = client.post("/v1/agents/keeper/turns", asked).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (approval, turn) = (text(&turn["approvals"][0]["id"]), text(&turn["turn"]));
    let completion = text(&completion["id"]);
    Owned { approval, turn, responses, completion, thread, message, key: "web:1".to_owned(), cursors, user }
}

#[test]
fn every_route_has_a_case() {
    for door in Server::doors() {
        assert_eq!(door.routes_without_cases(), [], "{}", door.name());
    }
    let doors = Server::doors();
    let without = doors.last().unwrap().clone().cases(|_| Vec::new());
    assert_eq!(
        without.routes_without_cases().len(),
        without.routes().len(),
        "a door without cases has none for any route"
    );
}

#[tokio::test]
async fn what_is_another_tenants_answers_as_what_is_nobodys() {
    let server = served().await;
    let tenant = server.keyed("acme", None, &[KeyRole::Admin]).await;
    let ana = server.keyed("acme", Some("ana"), &[KeyRole::Admin]).await;
    let owned = own(&ana, &tenant, "ana").await;
    let before = content(&ana).await;
    for user in [None, Some("eve")] {
        let stranger = server.keyed("other", user, &[KeyRole::Admin]).await;
        for case in cases(&owned) {
            for (theirs, nobodys) in case.probes {
                let (method, path) = case.route;
                let (found, unknown) = (ask(&stranger, method, &theirs).await, ask(&stranger, method, &nobodys).await);
                let is_same = is_same(&found, &unknown, &names(&owned));
                assert!(is_same, "{method} {path} {theirs:?} of {user:?}: {found:?} {unknown:?}");
            }
        }
    }
    assert_eq!(content(&ana).await, before, "nothing of it was touched");
}

#[tokio::test]
async fn what_is_another_users_answers_as_what_is_nobodys() {
    let server = served().await;
    let tenant = server.keyed("acme", None, &[KeyRole::Admin]).await;
    let ana = server.keyed("acme", Some("ana"), &[KeyRole::Write, KeyRole::Approve]).await;
    let owned = own(&ana, &tenant, "ana").await;
    let before = content(&ana).await;
    let eve = server.keyed("acme", Some("eve"), &[KeyRole::Write, KeyRole::Approve]).await;
    for case in cases(&owned) {
        let (method, path) = case.route;
        // An id is unique in its tenant: one that is taken cannot be had, and a deleted one neither. The tenant's
        // records are for all its users to read.
        if (method, path) == ("POST", "/v1/threads") {
            assert_eq!(ask(&eve, method, &case.probes[0].0).await.code(404), "not_found");
            continue;
        }
        for (theirs, nobodys) in case.probes.iter().filter(|(theirs, _)| !theirs.path.contains("owner=tenant")) {
            let (found, unknown) = (ask(&eve, method, theirs).await, ask(&eve, method, nobodys).await);
            let is_same = is_same(&found, &unknown, &names(&owned));
            assert!(is_same, "{method} {path} {theirs:?}: {found:?} {unknown:?}");
        }
    }
    assert_eq!(content(&ana).await, before, "nothing of it was touched");
}

/// Everything that the owner has, but for the header of the export.
async fn content(owner: &Client) -> Vec<String> {
    let exported = owner.get("/v1/export").await;
    assert_eq!(exported.status, 200);
    let shared = owner.get("/v1/records/notes?owner=tenant").await;
    exported.text.lines().skip(1).map(str::to_owned).chain([shared.text]).collect()
}
