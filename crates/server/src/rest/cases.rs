//! Requests for the tests that tenants cannot reach each other's data.

use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(owned: &OwnedIds) -> Vec<TenantCase> {
    let mut cases = threads(owned);
    cases.extend(messages(owned));
    cases.extend(searches(owned));
    cases.extend(preferences());
    cases.extend(records(owned));
    cases.extend(thread_records(owned));
    cases.extend(all_data(owned));
    cases.extend(turns(owned));
    cases.extend(approvals(owned));
    cases
}

/// Requests for a path of the owner's thread, and of a thread that does not exist.
fn both(owned: &OwnedIds, rest: &str) -> Vec<(Probe, Probe)> {
    let of = |owned: &OwnedIds| Probe::at(format!("/v1/threads/{}{rest}", owned.thread));
    vec![(of(owned), of(&OwnedIds::nonexistent()))]
}

fn both_with(owned: &OwnedIds, rest: &str, body: &Value) -> Vec<(Probe, Probe)> {
    let with_body = |probe: Probe| Probe { body: Some(body.clone()), ..probe };
    both(owned, rest).into_iter().map(|(existing, unknown)| (with_body(existing), with_body(unknown))).collect()
}

fn threads(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let open = |owned: &OwnedIds| Probe::with("/v1/threads", json!({ "id": owned.thread }));
    let key = |owned: &OwnedIds| Probe::at(format!("/v1/threads?key={}", owned.key));
    let user = |owned: &OwnedIds| Probe::at(format!("/v1/threads?user={}", owned.user));
    let after = |owned: &OwnedIds| Probe::at(format!("/v1/threads?order=created&after={}", owned.cursor("threads")));
    vec![
        // The ids of another tenant's threads are not taken: both requests create a thread of the caller.
        TenantCase::new("POST", "/v1/threads", vec![(open(owned), open(&unknown))]),
        TenantCase::new(
            "GET",
            "/v1/threads",
            vec![(key(owned), key(&unknown)), (user(owned), user(&unknown)), (after(owned), after(&unknown))],
        ),
        TenantCase::new("GET", "/v1/threads/{id}", both(owned, "")),
        TenantCase::new("PATCH", "/v1/threads/{id}", both_with(owned, "", &json!({ "title": "mine" }))),
        TenantCase::new("DELETE", "/v1/threads/{id}", both(owned, "")),
        TenantCase::new("POST", "/v1/threads/{id}/fork", both_with(owned, "/fork", &json!({}))),
    ]
}

fn messages(owned: &OwnedIds) -> Vec<TenantCase> {
    let text = json!({ "role": "user", "text": "mine" });
    let message = format!("/messages/{}", owned.message);
    let question = json!({ "question": "paraffin", "policy": { "recall_from": "user" } });
    vec![
        TenantCase::new(
            "POST",
            "/v1/threads/{id}/messages",
            both_with(owned, "/messages", &json!({ "messages": [text] })),
        ),
        TenantCase::new("GET", "/v1/threads/{id}/messages", both(owned, "/messages")),
        TenantCase::new("GET", "/v1/threads/{id}/messages/{message}", both(owned, &message)),
        TenantCase::new("PUT", "/v1/threads/{id}/messages/{message}", both_with(owned, &message, &text)),
        TenantCase::new("DELETE", "/v1/threads/{id}/messages/{message}", both(owned, &message)),
        TenantCase::new("POST", "/v1/threads/{id}/context", both_with(owned, "/context", &question)),
        TenantCase::new("GET", "/v1/threads/{id}/context/{turn}", both(owned, "/context/t-1")),
    ]
}

fn searches(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let requests = |path: &'static str, param: &'static str| {
        let within = |owned: &OwnedIds| Probe::with(path, json!({ (param): "paraffin", "thread": owned.thread }));
        let anywhere = |text: &str| Probe::with(path, json!({ (param): text }));
        vec![(within(owned), within(&unknown)), (anywhere("paraffin"), anywhere("xylophone"))]
    };
    vec![
        TenantCase::new("POST", "/v1/search", requests("/v1/search", "query")),
        TenantCase::new("POST", "/v1/recall", requests("/v1/recall", "question")),
    ]
}

fn preferences() -> Vec<TenantCase> {
    let put = || Probe::with("/v1/preferences/mine", json!({ "value": 1 }));
    let named = || vec![(Probe::at("/v1/preferences/home"), Probe::at("/v1/preferences/nothing"))];
    vec![
        TenantCase::new("GET", "/v1/preferences", vec![(Probe::at("/v1/preferences"), Probe::at("/v1/preferences"))]),
        TenantCase::new("GET", "/v1/preferences/{key}", named()),
        TenantCase::new("PUT", "/v1/preferences/{key}", vec![(put(), put())]),
        TenantCase::new("DELETE", "/v1/preferences/{key}", named()),
    ]
}

fn records(owned: &OwnedIds) -> Vec<TenantCase> {
    let after = |owned: &OwnedIds| Probe::at(format!("/v1/records/notes?after={}", owned.cursor("records")));
    let pair = |existing: &str, unknown: &str| {
        let of = |rest: &str| Probe::at(format!("/v1/records/{rest}"));
        (of(existing), of(unknown))
    };
    let put = || Probe::with("/v1/records/mine/a", json!({ "value": 1 }));
    vec![
        TenantCase::new(
            "GET",
            "/v1/records/{namespace}",
            vec![
                pair("notes", "nothing"),
                pair("notes?owner=tenant", "nothing?owner=tenant"),
                (after(owned), after(&OwnedIds::nonexistent())),
            ],
        ),
        TenantCase::new("GET", "/v1/records/{namespace}/{key}", vec![pair("notes/a", "notes/z")]),
        TenantCase::new("PUT", "/v1/records/{namespace}/{key}", vec![(put(), put())]),
        TenantCase::new("DELETE", "/v1/records/{namespace}/{key}", vec![pair("notes/a", "notes/z")]),
    ]
}

fn thread_records(owned: &OwnedIds) -> Vec<TenantCase> {
    const ONE: &str = "/v1/threads/{id}/records/{namespace}/{key}";
    let value = json!({ "value": 1 });
    vec![
        TenantCase::new("GET", "/v1/threads/{id}/records/{namespace}", both(owned, "/records/notes")),
        TenantCase::new("GET", ONE, both(owned, "/records/notes/a")),
        TenantCase::new("PUT", ONE, both_with(owned, "/records/notes/a", &value)),
        TenantCase::new("DELETE", ONE, both(owned, "/records/notes/a")),
    ]
}

/// Requests about all data of a caller.
fn all_data(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let analytics = |owned: &OwnedIds| Probe::at(format!("/v1/analytics?thread={}", owned.thread));
    let export = |owned: &OwnedIds| Probe::at(format!("/v1/export?thread={}", owned.thread));
    let erase = |owned: &OwnedIds| Probe::with("/v1/erase", json!({ "user": owned.user }));
    vec![
        TenantCase::new("GET", "/v1/analytics", vec![(analytics(owned), analytics(&unknown))]),
        TenantCase::new("GET", "/v1/export", vec![(export(owned), export(&unknown))]),
        TenantCase::without_names("POST", "/v1/import"),
        TenantCase::new("POST", "/v1/erase", vec![(erase(owned), erase(&unknown))]),
    ]
}

fn turns(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let ask = |thread: &str| Probe::with("/v1/agents/keeper/turns", json!({ "text": "hello", "thread": thread }));
    let turn = format!("/turns/{}", owned.turn);
    vec![
        TenantCase::without_names("GET", "/v1/agents"),
        TenantCase::new(
            "POST",
            "/v1/agents/{name}/turns",
            vec![(ask(&owned.thread), ask(&unknown.thread)), (ask(&owned.key), ask(&unknown.key))],
        ),
        TenantCase::new("GET", "/v1/threads/{id}/turns/{turn}", both(owned, &turn)),
        TenantCase::new(
            "POST",
            "/v1/threads/{id}/turns/{turn}/cancel",
            both_with(owned, &format!("{turn}/cancel"), &json!({})),
        ),
    ]
}

fn approvals(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let of_thread = |owned: &OwnedIds| Probe::at(format!("/v1/approvals?thread={}", owned.thread));
    let after = |owned: &OwnedIds| Probe::at(format!("/v1/approvals?after={}", owned.cursor("threads")));
    let approval = format!("/approvals/{}", owned.approval);
    let approved = json!({ "decision": "approve" });
    vec![
        TenantCase::new(
            "GET",
            "/v1/approvals",
            vec![
                (of_thread(owned), of_thread(&unknown)),
                (Probe::at("/v1/approvals?all=true"), Probe::at("/v1/approvals")),
                (after(owned), after(&unknown)),
            ],
        ),
        TenantCase::new("GET", "/v1/threads/{id}/approvals/{approval}", both(owned, &approval)),
        TenantCase::new("POST", "/v1/threads/{id}/approvals/{approval}", both_with(owned, &approval, &approved)),
    ]
}
