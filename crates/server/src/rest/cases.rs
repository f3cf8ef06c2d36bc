use serde_json::{Value, json};

use crate::door::{Owned, Probe, TenantCase};

pub(super) fn cases(owned: &Owned) -> Vec<TenantCase> {
    let mut cases = threads(owned);
    cases.extend(messages(owned));
    cases.extend(finding(owned));
    cases.extend(preferences());
    cases.extend(documents(owned));
    cases.extend(thread_documents(owned));
    cases.extend(whole(owned));
    cases.extend(turns(owned));
    cases.extend(approvals(owned));
    cases
}

/// The owner's thread, and one that nobody has, at a path within it.
fn both(owned: &Owned, rest: &str) -> Vec<(Probe, Probe)> {
    let of = |owned: &Owned| Probe::at(format!("/v1/threads/{}{rest}", owned.thread));
    vec![(of(owned), of(&Owned::nobody()))]
}

fn both_with(owned: &Owned, rest: &str, body: &Value) -> Vec<(Probe, Probe)> {
    let with_body = |probe: Probe| Probe { body: Some(body.clone()), ..probe };
    both(owned, rest).into_iter().map(|(theirs, nobodys)| (with_body(theirs), with_body(nobodys))).collect()
}

fn threads(owned: &Owned) -> Vec<TenantCase> {
    let nobody = Owned::nobody();
    let made = |owned: &Owned| Probe::with("/v1/threads", json!({ "id": owned.thread }));
    let key = |owned: &Owned| Probe::at(format!("/v1/threads?key={}", owned.key));
    let user = |owned: &Owned| Probe::at(format!("/v1/threads?user={}", owned.user));
    let after = |owned: &Owned| Probe::at(format!("/v1/threads?order=created&after={}", owned.cursor("threads")));
    vec![
        // The ids of another tenant's threads are free: both make a thread of the caller's own.
        TenantCase::new("POST", "/v1/threads", vec![(made(owned), made(&nobody))]),
        TenantCase::new(
            "GET",
            "/v1/threads",
            vec![(key(owned), key(&nobody)), (user(owned), user(&nobody)), (after(owned), after(&nobody))],
        ),
        TenantCase::new("GET", "/v1/threads/{id}", both(owned, "")),
        TenantCase::new("PATCH", "/v1/threads/{id}", both_with(owned, "", &json!({ "title": "mine" }))),
        TenantCase::new("DELETE", "/v1/threads/{id}", both(owned, "")),
        TenantCase::new("POST", "/v1/threads/{id}/fork", both_with(owned, "/fork", &json!({}))),
    ]
}

fn messages(owned: &Owned) -> Vec<TenantCase> {
    let text = json!({ "role": "user", "text": "mine" });
    let message = format!("/messages/{}", owned.message);
    let asked = json!({ "question": "paraffin", "policy": { "recall_from": "user" } });
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
        TenantCase::new("POST", "/v1/threads/{id}/context", both_with(owned, "/context", &asked)),
        TenantCase::new("GET", "/v1/threads/{id}/context/{turn}", both(owned, "/context/t-1")),
    ]
}

fn finding(owned: &Owned) -> Vec<TenantCase> {
    let nobody = Owned::nobody();
    let asked = |path: &'static str, word: &'static str| {
        let within = |owned: &Owned| Probe::with(path, json!({ (word): "paraffin", "thread": owned.thread }));
        let anywhere = |asked: &str| Probe::with(path, json!({ (word): asked }));
        vec![(within(owned), within(&nobody)), (anywhere("paraffin"), anywhere("xylophone"))]
    };
    vec![
        TenantCase::new("POST", "/v1/search", asked("/v1/search", "query")),
        TenantCase::new("POST", "/v1/recall", asked("/v1/recall", "question")),
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

fn documents(owned: &Owned) -> Vec<TenantCase> {
    let after = |owned: &Owned| Probe::at(format!("/v1/documents/notes?after={}", owned.cursor("documents")));
    let pair = |theirs: &str, nobodys: &str| {
        let of = |rest: &str| Probe::at(format!("/v1/documents/{rest}"));
        (of(theirs), of(nobodys))
    };
    let put = || Probe::with("/v1/documents/mine/a", json!({ "value": 1 }));
    vec![
        TenantCase::new(
            "GET",
            "/v1/documents/{namespace}",
            vec![
                pair("notes", "nothing"),
                pair("notes?owner=tenant", "nothing?owner=tenant"),
                (after(owned), after(&Owned::nobody())),
            ],
        ),
        TenantCase::new("GET", "/v1/documents/{namespace}/{key}", vec![pair("notes/a", "notes/z")]),
        TenantCase::new("PUT", "/v1/documents/{namespace}/{key}", vec![(put(), put())]),
        TenantCase::new("DELETE", "/v1/documents/{namespace}/{key}", vec![pair("notes/a", "notes/z")]),
    ]
}

fn thread_documents(owned: &Owned) -> Vec<TenantCase> {
    const ONE: &str = "/v1/threads/{id}/documents/{namespace}/{key}";
    let value = json!({ "value": 1 });
    vec![
        TenantCase::new("GET", "/v1/threads/{id}/documents/{namespace}", both(owned, "/documents/notes")),
        TenantCase::new("GET", ONE, both(owned, "/documents/notes/a")),
        TenantCase::new("PUT", ONE, both_with(owned, "/documents/notes/a", &value)),
        TenantCase::new("DELETE", ONE, both(owned, "/documents/notes/a")),
    ]
}

/// Of all that somebody has.
fn whole(owned: &Owned) -> Vec<TenantCase> {
    let nobody = Owned::nobody();
    let analytics = |owned: &Owned| Probe::at(format!("/v1/analytics?thread={}", owned.thread));
    let export = |owned: &Owned| Probe::at(format!("/v1/export?thread={}", owned.thread));
    let erase = |owned: &Owned| Probe::with("/v1/erase", json!({ "user": owned.user }));
    vec![
        TenantCase::new("GET", "/v1/analytics", vec![(analytics(owned), analytics(&nobody))]),
        TenantCase::new("GET", "/v1/export", vec![(export(owned), export(&nobody))]),
        TenantCase::names_nothing("POST", "/v1/import"),
        TenantCase::new("POST", "/v1/erase", vec![(erase(owned), erase(&nobody))]),
    ]
}

fn turns(owned: &Owned) -> Vec<TenantCase> {
    let nobody = Owned::nobody();
    let ask = |thread: &str| Probe::with("/v1/agents/keeper/turns", json!({ "text": "hello", "thread": thread }));
    let turn = format!("/turns/{}", owned.turn);
    vec![
        TenantCase::names_nothing("GET", "/v1/agents"),
        TenantCase::new(
            "POST",
            "/v1/agents/{name}/turns",
            vec![(ask(&owned.thread), ask(&nobody.thread)), (ask(&owned.key), ask(&nobody.key))],
        ),
        TenantCase::new("GET", "/v1/threads/{id}/turns/{turn}", both(owned, &turn)),
        TenantCase::new(
            "POST",
            "/v1/threads/{id}/turns/{turn}/cancel",
            both_with(owned, &format!("{turn}/cancel"), &json!({})),
        ),
    ]
}

fn approvals(owned: &Owned) -> Vec<TenantCase> {
    let nobody = Owned::nobody();
    let of_thread = |owned: &Owned| Probe::at(format!("/v1/approvals?thread={}", owned.thread));
    let after = |owned: &Owned| Probe::at(format!("/v1/approvals?after={}", owned.cursor("threads")));
    let approval = format!("/approvals/{}", owned.approval);
    let approved = json!({ "decision": "approve" });
    vec![
        TenantCase::new(
            "GET",
            "/v1/approvals",
            vec![
                (of_thread(owned), of_thread(&nobody)),
                (Probe::at("/v1/approvals?all=true"), Probe::at("/v1/approvals")),
                (after(owned), after(&nobody)),
            ],
        ),
        TenantCase::new("GET", "/v1/threads/{id}/approvals/{approval}", both(owned, &approval)),
        TenantCase::new("POST", "/v1/threads/{id}/approvals/{approval}", both_with(owned, &approval, &approved)),
    ]
}
