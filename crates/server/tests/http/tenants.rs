//! Another tenant's or user's ids, keys and cursors answer exactly as those that nobody has, on every route there is.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, RouteInfo, Server};

use crate::Client;
use crate::server::{Answer, send};
use crate::v1::with_model;

/// How a route is asked for somebody's thing and for nobody's.
struct Case {
    route: (&'static str, &'static str),
    /// The request with somebody's names in it, and the same with names that nobody has.
    probes: Vec<(Probe, Probe)>,
}

#[derive(Clone, Debug, Default)]
struct Probe {
    path: String,
    body: Option<Value>,
    headers: Vec<(&'static str, String)>,
}

/// What the owner has.
struct Owned {
    thread: String,
    message: String,
    key: String,
    cursors: Vec<(&'static str, String)>,
    /// One without a conversation, and one in one.
    responses: Vec<String>,
    user: &'static str,
}

const NO_RESPONSE: &str = "resp_0190b4e2000070008000000000000000";
const NOBODY: &str = "0190b4e2-0000-7000-8000-000000000000";

/// Routes on which nothing of anyone's can be named.
const NAMES_NOTHING: [(&str, &str); 10] = [
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs/"),
    ("GET", "/docs/{file}"),
    ("POST", "/v1/import"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("POST", "/v1/embeddings"),
];

fn at(path: impl Into<String>) -> Probe {
    Probe { path: path.into(), ..Probe::default() }
}

fn with(path: impl Into<String>, body: Value) -> Probe {
    Probe { path: path.into(), body: Some(body), ..Probe::default() }
}

/// A probe of every place in a path or body where an id of a thread or message stands.
fn cases(owned: &Owned) -> Vec<Case> {
    let (thread, message) = (owned.thread.as_str(), owned.message.as_str());
    let of = |rest: &str| format!("/v1/threads/{thread}{rest}");
    let none = |rest: &str| format!("/v1/threads/{NOBODY}{rest}");
    let both = |rest: &str| vec![(at(of(rest)), at(none(rest)))];
    let both_with = |rest: &str, body: Value| vec![(with(of(rest), body.clone()), with(none(rest), body))];
    let cursor = |list: &str| {
        let found = owned.cursors.iter().find(|(name, _)| *name == list);
        found.map(|(_, cursor)| cursor.clone()).expect("the owner has one of each")
    };
    let text = json!({ "role": "user", "text": "mine" });
    let conversation = format!("conv_{}", thread.replace('-', ""));
    let no_conversation = format!("conv_{}", NOBODY.replace('-', ""));
    let item = format!("msg_{}", message.replace('-', ""));
    let no_item = format!("msg_{}", NOBODY.replace('-', ""));
    let probe = |path: String, body: &Option<Value>| Probe { path, body: body.clone(), headers: Vec::new() };
    let conversations = |rest: &str, body: Option<Value>| {
        let of = |id: &str| probe(format!("/v1/conversations/{id}{rest}"), &body);
        vec![(of(&conversation), of(&no_conversation))]
    };
    let responses = |rest: &str, body: Option<Value>| {
        let of = |id: &str| probe(format!("/v1/responses/{id}{rest}"), &body);
        owned.responses.iter().map(|response| (of(response), of(NO_RESPONSE))).collect()
    };
    let chat = |thread: &str| Probe {
        headers: vec![("threadkeep-thread", thread.to_owned())],
        ..with("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "x" }] }))
    };
    let compat = || vec![(at(format!("/conversations/{thread}")), at(format!("/conversations/{NOBODY}")))];
    let case = |method, path, probes| Case { route: (method, path), probes };
    vec![
        // The ids of another tenant's threads are free: both make a thread of the caller's own.
        case(
            "POST",
            "/v1/threads",
            vec![(with("/v1/threads", json!({ "id": thread })), with("/v1/threads", json!({ "id": NOBODY })))],
        ),
        case(
            "GET",
            "/v1/threads",
            vec![
                (at(format!("/v1/threads?key={}", owned.key)), at("/v1/threads?key=nobodys")),
                (at(format!("/v1/threads?user={}", owned.user)), at("/v1/threads?user=nobody")),
                (
                    at(format!("/v1/threads?order=created&after={}", cursor("threads"))),
                    at("/v1/threads?order=created&after=bm9ib2R5"),
                ),
            ],
        ),
        case("GET", "/conversations/{threadId}", compat()),
        case("DELETE", "/conversations/{threadId}", compat()),
        case("GET", "/v1/threads/{id}", both("")),
        case("PATCH", "/v1/threads/{id}", both_with("", json!({ "title": "mine" }))),
        case("DELETE", "/v1/threads/{id}", both("")),
        case("POST", "/v1/threads/{id}/fork", both_with("/fork", json!({}))),
        case("POST", "/v1/threads/{id}/messages", both_with("/messages", json!({ "messages": [text] }))),
        case("GET", "/v1/threads/{id}/messages", both("/messages")),
        case("GET", "/v1/threads/{id}/messages/{message}", both(&format!("/messages/{message}"))),
        case("PUT", "/v1/threads/{id}/messages/{message}", both_with(&format!("/messages/{message}"), text)),
        case("DELETE", "/v1/threads/{id}/messages/{message}", both(&format!("/messages/{message}"))),
        case(
            "POST",
            "/v1/threads/{id}/context",
            both_with("/context", json!({ "question": "paraffin", "policy": { "recall_from": "user" } })),
        ),
        case("GET", "/v1/threads/{id}/context/{turn}", both("/context/t-1")),
        case(
            "POST",
            "/v1/search",
            vec![
                (
                    with("/v1/search", json!({ "query": "paraffin", "thread": thread })),
                    with("/v1/search", json!({ "query": "paraffin", "thread": NOBODY })),
                ),
                (
                    with("/v1/search", json!({ "query": "paraffin" })),
                    with("/v1/search", json!({ "query": "xylophone" })),
                ),
            ],
        ),
        case(
            "POST",
            "/v1/recall",
            vec![
                (
                    with("/v1/recall", json!({ "question": "paraffin", "thread": thread })),
                    with("/v1/recall", json!({ "question": "paraffin", "thread": NOBODY })),
                ),
                (
                    with("/v1/recall", json!({ "question": "paraffin" })),
                    with("/v1/recall", json!({ "question": "xylophone" })),
                ),
            ],
        ),
        case("GET", "/v1/preferences", vec![(at("/v1/preferences"), at("/v1/preferences"))]),
        case("GET", "/v1/preferences/{key}", vec![(at("/v1/preferences/home"), at("/v1/preferences/nothing"))]),
        case(
            "PUT",
            "/v1/preferences/{key}",
            vec![(
                with("/v1/preferences/mine", json!({ "value": 1 })),
                with("/v1/preferences/mine", json!({ "value": 1 })),
            )],
        ),
        case("DELETE", "/v1/preferences/{key}", vec![(at("/v1/preferences/home"), at("/v1/preferences/nothing"))]),
        case(
            "GET",
            "/v1/documents/{namespace}",
            vec![
                (at("/v1/documents/notes"), at("/v1/documents/nothing")),
                (at("/v1/documents/notes?owner=tenant"), at("/v1/documents/nothing?owner=tenant")),
                (
                    at(format!("/v1/documents/notes?after={}", cursor("documents"))),
                    at("/v1/documents/notes?after=bm9ib2R5"),
                ),
            ],
        ),
        case(
            "GET",
            "/v1/documents/{namespace}/{key}",
            vec![(at("/v1/documents/notes/a"), at("/v1/documents/notes/z"))],
        ),
        case(
            "PUT",
            "/v1/documents/{namespace}/{key}",
            vec![(
                with("/v1/documents/mine/a", json!({ "value": 1 })),
                with("/v1/documents/mine/a", json!({ "value": 1 })),
            )],
        ),
        case(
            "DELETE",
            "/v1/documents/{namespace}/{key}",
            vec![(at("/v1/documents/notes/a"), at("/v1/documents/notes/z"))],
        ),
        case("GET", "/v1/threads/{id}/documents/{namespace}", both("/documents/notes")),
        case("GET", "/v1/threads/{id}/documents/{namespace}/{key}", both("/documents/notes/a")),
        case(
            "PUT",
            "/v1/threads/{id}/documents/{namespace}/{key}",
            both_with("/documents/notes/a", json!({ "value": 1 })),
        ),
        case("DELETE", "/v1/threads/{id}/documents/{namespace}/{key}", both("/documents/notes/a")),
        case(
            "GET",
            "/v1/analytics",
            vec![(at(format!("/v1/analytics?thread={thread}")), at(format!("/v1/analytics?thread={NOBODY}")))],
        ),
        case(
            "GET",
            "/v1/export",
            vec![(at(format!("/v1/export?thread={thread}")), at(format!("/v1/export?thread={NOBODY}")))],
        ),
        case(
            "POST",
            "/v1/erase",
            vec![(with("/v1/erase", json!({ "user": owned.user })), with("/v1/erase", json!({ "user": "nobody" })))],
        ),
        case("GET", "/v1/threads/{id}/events", both("/events?after=0")),
        case("GET", "/v1/live", vec![(at("/v1/live"), at("/v1/live"))]),
        case(
            "POST",
            "/v1/conversations",
            vec![(
                with("/v1/conversations", json!({ "items": [{ "role": "user", "content": "x", "id": item }] })),
                with("/v1/conversations", json!({ "items": [{ "role": "user", "content": "x", "id": no_item }] })),
            )],
        ),
        case("GET", "/v1/conversations/{id}", conversations("", None)),
        case("POST", "/v1/conversations/{id}", conversations("", Some(json!({ "metadata": { "a": "b" } })))),
        case("DELETE", "/v1/conversations/{id}", conversations("", None)),
        case(
            "POST",
            "/v1/conversations/{id}/items",
            conversations("/items", Some(json!({ "items": [{ "role": "user", "content": "x" }] }))),
        ),
        case(
            "GET",
            "/v1/conversations/{id}/items",
            [conversations("/items", None), conversations(&format!("/items?after={item}"), None)].concat(),
        ),
        case("GET", "/v1/conversations/{id}/items/{item}", conversations(&format!("/items/{item}"), None)),
        case("DELETE", "/v1/conversations/{id}/items/{item}", conversations(&format!("/items/{item}"), None)),
        case(
            "POST",
            "/v1/responses",
            vec![
                (
                    with("/v1/responses", json!({ "input": "x", "conversation": conversation })),
                    with("/v1/responses", json!({ "input": "x", "conversation": no_conversation })),
                ),
                (
                    with("/v1/responses", json!({ "input": "x", "previous_response_id": owned.responses[0] })),
                    with("/v1/responses", json!({ "input": "x", "previous_response_id": NO_RESPONSE })),
                ),
            ],
        ),
        case("GET", "/v1/responses/{id}", responses("", None)),
        case("DELETE", "/v1/responses/{id}", responses("", None)),
        case("POST", "/v1/responses/{id}/cancel", responses("/cancel", Some(json!({})))),
        case("GET", "/v1/responses/{id}/input_items", responses("/input_items", None)),
        case(
            "POST",
            "/v1/chat/completions",
            vec![(chat(thread), chat(NOBODY)), (chat(&conversation), chat(&no_conversation))],
        ),
    ]
}

async fn ask(client: &Client, method: &str, probe: &Probe) -> Answer {
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
    for minted in ["id", "created_at", "updated_at", "version"] {
        if let Some(members) = body.as_object_mut() {
            members.remove(minted);
        }
    }
    (answer.status, body.to_string())
}

/// The answer to the one is the answer to the other, but for the names that were asked for.
fn is_same(found: &Answer, unknown: &Answer, names: &[String]) -> bool {
    let blank = |answer: &Answer| {
        let (status, text) = told(answer);
        (status, names.iter().fold(text, |text, name| text.replace(name.as_str(), "…")))
    };
    blank(found) == blank(unknown)
}

/// Every name that a probe may hold.
fn names(owned: &Owned) -> Vec<String> {
    let simple = |id: &str| id.replace('-', "");
    let mut names = owned.responses.clone();
    names.push(NO_RESPONSE.to_owned());
    names.extend([simple(&owned.thread), simple(&owned.message), simple(NOBODY)]);
    names.extend([owned.thread.clone(), NOBODY.to_owned()]);
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
    for path in ["/v1/documents/notes/a", "/v1/documents/notes/b", "/v1/preferences/home"] {
        client.send("PUT", path, json!({ "value": "mine" })).await.expect(200);
    }
    client.send("PUT", &format!("{base}/documents/notes/a"), json!({ "value": "mine" })).await.expect(200);
    tenant.send("PUT", "/v1/documents/notes/a", json!({ "value": "ours" })).await.expect(200);
    let next = |page: Value| page["next"].as_str().unwrap().to_owned();
    let threads = next(client.get("/v1/threads?order=created&limit=1").await.expect(200));
    let documents = next(client.get("/v1/documents/notes?limit=1").await.expect(200));
    let cursors = vec![("threads", threads), ("documents", documents)];
    let mut responses = Vec::new();
    for conversation in [Value::Null, json!(format!("conv_{}", thread.replace('-', "")))] {
        let body = json!({ "input": "hello", "conversation": conversation });
        let response = client.post("/v1/responses", body).await.expect(200);
        responses.push(response["id"].as_str().unwrap().to_owned());
    }
    Owned { responses, thread, message, key: "web:1".to_owned(), cursors, user }
}

#[test]
fn every_route_has_a_case() {
    let owned = Owned {
        thread: NOBODY.to_owned(),
        message: NOBODY.to_owned(),
        key: "k".to_owned(),
        cursors: vec![("threads", String::new()), ("documents", String::new())],
        responses: vec![NO_RESPONSE.to_owned()],
        user: "ana",
    };
    let cased: BTreeSet<(String, String)> = cases(&owned)
        .iter()
        .map(|case| case.route)
        .chain(NAMES_NOTHING)
        .map(|(method, path)| (method.to_owned(), path.to_owned()))
        .collect();
    let routes: BTreeSet<(String, String)> =
        Server::routes().into_iter().map(|RouteInfo { method, path, .. }| (method, path)).collect();
    assert_eq!(routes.symmetric_difference(&cased).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
}

#[tokio::test]
async fn what_is_another_tenants_answers_as_what_is_nobodys() {
    let (server, _) = with_model().await;
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
    let (server, _) = with_model().await;
    let tenant = server.keyed("acme", None, &[KeyRole::Admin]).await;
    let ana = server.keyed("acme", Some("ana"), &[KeyRole::Write]).await;
    let owned = own(&ana, &tenant, "ana").await;
    let before = content(&ana).await;
    let eve = server.keyed("acme", Some("eve"), &[KeyRole::Write]).await;
    for case in cases(&owned) {
        let (method, path) = case.route;
        // An id is unique in its tenant: one that is taken cannot be had, and a deleted one neither. The tenant's
        // documents are for all its users to read.
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
    let shared = owner.get("/v1/documents/notes?owner=tenant").await;
    exported.text.lines().skip(1).map(str::to_owned).chain([shared.text]).collect()
}
