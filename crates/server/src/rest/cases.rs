//! Requests for the tests that check that tenants cannot access each other's data.

use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let mut cases = threads(ids);
    cases.extend(messages(ids));
    cases.extend(searches(ids));
    cases.extend(preferences());
    cases.extend(records(ids));
    cases.extend(thread_records(ids));
    cases.extend(whole_scope(ids));
    cases.extend(turns(ids));
    cases.extend(approvals(ids));
    cases
}

/// Returns a request for a path below the owner's thread, and the same request for a thread that does not exist.
fn thread_probes(ids: &OwnedIds, rest: &str) -> Vec<(Probe, Probe)> {
    let probe = |ids: &OwnedIds| Probe::at(format!("/v1/threads/{}{rest}", ids.thread));
    vec![(probe(ids), probe(&OwnedIds::nonexistent()))]
}

fn thread_probes_with_body(ids: &OwnedIds, rest: &str, body: &Value) -> Vec<(Probe, Probe)> {
    let with_body = |probe: Probe| Probe { body: Some(body.clone()), ..probe };
    thread_probes(ids, rest).into_iter().map(|(existing, unknown)| (with_body(existing), with_body(unknown))).collect()
}

fn threads(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let open = |ids: &OwnedIds| Probe::with("/v1/threads", json!({ "id": ids.thread }));
    let key = |ids: &OwnedIds| Probe::at(format!("/v1/threads?key={}", ids.key));
    let user = |ids: &OwnedIds| Probe::at(format!("/v1/threads?user={}", ids.user));
    let after = |ids: &OwnedIds| Probe::at(format!("/v1/threads?order=created&after={}", ids.cursor("threads")));
    vec![
        // The caller can use the id of another tenant's thread, so both requests create a thread.
        TenantCase::new("POST", "/v1/threads", vec![(open(ids), open(&unknown))]),
        TenantCase::new(
            "GET",
            "/v1/threads",
            vec![(key(ids), key(&unknown)), (user(ids), user(&unknown)), (after(ids), after(&unknown))],
        ),
        TenantCase::new("GET", "/v1/threads/{id}", thread_probes(ids, "")),
        TenantCase::new("PATCH", "/v1/threads/{id}", thread_probes_with_body(ids, "", &json!({ "title": "mine" }))),
        TenantCase::new("DELETE", "/v1/threads/{id}", thread_probes(ids, "")),
        TenantCase::new("POST", "/v1/threads/{id}/fork", thread_probes_with_body(ids, "/fork", &json!({}))),
        TenantCase::new("GET", "/v1/threads/{id}/tools", thread_probes(ids, "/tools")),
        TenantCase::new(
            "PUT",
            "/v1/threads/{id}/tools/{name}",
            thread_probes_with_body(ids, "/tools/recall", &json!({ "enabled": false })),
        ),
    ]
}

fn messages(ids: &OwnedIds) -> Vec<TenantCase> {
    let text = json!({ "role": "user", "text": "mine" });
    let message = format!("/messages/{}", ids.message);
    let question = json!({ "question": "paraffin", "policy": { "recall_from": "user" } });
    vec![
        TenantCase::new(
            "POST",
            "/v1/threads/{id}/messages",
            thread_probes_with_body(ids, "/messages", &json!({ "messages": [text] })),
        ),
        TenantCase::new("GET", "/v1/threads/{id}/messages", thread_probes(ids, "/messages")),
        TenantCase::new("GET", "/v1/threads/{id}/messages/{message}", thread_probes(ids, &message)),
        TenantCase::new("PUT", "/v1/threads/{id}/messages/{message}", thread_probes_with_body(ids, &message, &text)),
        TenantCase::new("DELETE", "/v1/threads/{id}/messages/{message}", thread_probes(ids, &message)),
        TenantCase::new("POST", "/v1/threads/{id}/context", thread_probes_with_body(ids, "/context", &question)),
        TenantCase::new("GET", "/v1/threads/{id}/context/{turn}", thread_probes(ids, "/context/t-1")),
    ]
}

fn searches(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let requests = |path: &'static str, param: &'static str| {
        let in_thread = |ids: &OwnedIds| Probe::with(path, json!({ (param): "paraffin", "thread": ids.thread }));
        let in_all_threads = |text: &str| Probe::with(path, json!({ (param): text }));
        vec![(in_thread(ids), in_thread(&unknown)), (in_all_threads("paraffin"), in_all_threads("xylophone"))]
    };
    vec![
        TenantCase::new("POST", "/v1/search", requests("/v1/search", "query")),
        TenantCase::new("POST", "/v1/recall", requests("/v1/recall", "question")),
    ]
}

fn preferences() -> Vec<TenantCase> {
    let put = || Probe::with("/v1/preferences/mine", json!({ "value": 1 }));
    let by_key = || vec![(Probe::at("/v1/preferences/home"), Probe::at("/v1/preferences/nothing"))];
    vec![
        TenantCase::new("GET", "/v1/preferences", vec![(Probe::at("/v1/preferences"), Probe::at("/v1/preferences"))]),
        TenantCase::new("GET", "/v1/preferences/{key}", by_key()),
        TenantCase::new("PUT", "/v1/preferences/{key}", vec![(put(), put())]),
        TenantCase::new("DELETE", "/v1/preferences/{key}", by_key()),
    ]
}

fn records(ids: &OwnedIds) -> Vec<TenantCase> {
    let after = |ids: &OwnedIds| Probe::at(format!("/v1/records/notes?after={}", ids.cursor("records")));
    let pair = |existing: &str, unknown: &str| {
        let probe = |rest: &str| Probe::at(format!("/v1/records/{rest}"));
        (probe(existing), probe(unknown))
    };
    let put = || Probe::with("/v1/records/mine/a", json!({ "value": 1 }));
    vec![
        TenantCase::new(
            "GET",
            "/v1/records/{namespace}",
            vec![
                pair("notes", "nothing"),
                pair("notes?owner=tenant", "nothing?owner=tenant"),
                (after(ids), after(&OwnedIds::nonexistent())),
            ],
        ),
        TenantCase::new("GET", "/v1/records/{namespace}/{key}", vec![pair("notes/a", "notes/z")]),
        TenantCase::new("PUT", "/v1/records/{namespace}/{key}", vec![(put(), put())]),
        TenantCase::new("DELETE", "/v1/records/{namespace}/{key}", vec![pair("notes/a", "notes/z")]),
    ]
}

fn thread_records(ids: &OwnedIds) -> Vec<TenantCase> {
    const RECORD: &str = "/v1/threads/{id}/records/{namespace}/{key}";
    let value = json!({ "value": 1 });
    vec![
        TenantCase::new("GET", "/v1/threads/{id}/records/{namespace}", thread_probes(ids, "/records/notes")),
        TenantCase::new("GET", RECORD, thread_probes(ids, "/records/notes/a")),
        TenantCase::new("PUT", RECORD, thread_probes_with_body(ids, "/records/notes/a", &value)),
        TenantCase::new("DELETE", RECORD, thread_probes(ids, "/records/notes/a")),
    ]
}

/// Returns the cases for routes that cover all data in a caller's scope.
fn whole_scope(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let analytics = |ids: &OwnedIds| Probe::at(format!("/v1/analytics?thread={}", ids.thread));
    let export = |ids: &OwnedIds| Probe::at(format!("/v1/export?thread={}", ids.thread));
    let delete_many = |ids: &OwnedIds| Probe::with("/v1/bulk/threads/delete", json!({ "threads": [ids.thread] }));
    let patch_many =
        |ids: &OwnedIds| Probe::with("/v1/bulk/threads/patch", json!({ "threads": [ids.thread], "title": "mine" }));
    let put_many =
        || Probe::with("/v1/bulk/records", json!({ "records": [{ "namespace": "mine", "key": "a", "value": 1 }] }));
    let user = |ids: &OwnedIds| Probe::at(format!("/v1/users/{}", ids.user));
    let erase = |ids: &OwnedIds| Probe::with("/v1/erase", json!({ "user": ids.user }));
    vec![
        TenantCase::new("GET", "/v1/analytics", vec![(analytics(ids), analytics(&unknown))]),
        TenantCase::new("GET", "/v1/export", vec![(export(ids), export(&unknown))]),
        TenantCase::without_ids("POST", "/v1/import"),
        TenantCase::without_ids("POST", "/v1/tokens"),
        TenantCase::without_ids("GET", "/v1/caller"),
        TenantCase::new("POST", "/v1/bulk/threads/delete", vec![(delete_many(ids), delete_many(&unknown))]),
        TenantCase::new("POST", "/v1/bulk/threads/patch", vec![(patch_many(ids), patch_many(&unknown))]),
        TenantCase::new("POST", "/v1/bulk/records", vec![(put_many(), put_many())]),
        // Keys belong to a tenant, and their ids are random. The test file `keys.rs` uses keys of another tenant.
        TenantCase::without_ids("GET", "/v1/audit"),
        TenantCase::without_ids("GET", "/v1/keys"),
        TenantCase::without_ids("POST", "/v1/keys"),
        TenantCase::without_ids("PATCH", "/v1/keys/{key}"),
        TenantCase::without_ids("DELETE", "/v1/keys/{key}"),
        TenantCase::without_ids("POST", "/v1/keys/{key}/rotate"),
        TenantCase::without_ids("GET", "/v1/quotas"),
        TenantCase::without_ids("GET", "/v1/tenants"),
        TenantCase::without_ids("GET", "/v1/users"),
        TenantCase::new("GET", "/v1/users/{user}", vec![(user(ids), user(&unknown))]),
        TenantCase::new("DELETE", "/v1/users/{user}", vec![(user(ids), user(&unknown))]),
        TenantCase::new("POST", "/v1/erase", vec![(erase(ids), erase(&unknown))]),
    ]
}

fn turns(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let ask = |thread: &str| Probe::with("/v1/agents/keeper/turns", json!({ "text": "hello", "thread": thread }));
    let run = |conversation: &str, user: &str| {
        let body = json!({ "user_query": "hello", "conversation_id": conversation, "user_id": user });
        Probe::with("/v1/agents/keeper/run", body)
    };
    let turn = format!("/turns/{}", ids.turn);
    vec![
        TenantCase::without_ids("GET", "/v1/agents"),
        TenantCase::without_ids("GET", "/v1/agents/{name}"),
        TenantCase::without_ids("GET", "/v1/agents/{name}/map"),
        TenantCase::without_ids("GET", "/v1/agents/{name}/source"),
        TenantCase::new(
            "POST",
            "/v1/agents/{name}/turns",
            vec![(ask(&ids.thread), ask(&unknown.thread)), (ask(&ids.key), ask(&unknown.key))],
        ),
        TenantCase::new(
            "POST",
            "/v1/agents/{name}/run",
            vec![(run(&ids.thread, ids.user), run(&unknown.thread, ids.user))],
        ),
        TenantCase::new("GET", "/v1/threads/{id}/turns/{turn}", thread_probes(ids, &turn)),
        TenantCase::new(
            "POST",
            "/v1/threads/{id}/turns/{turn}/cancel",
            thread_probes_with_body(ids, &format!("{turn}/cancel"), &json!({})),
        ),
    ]
}

fn approvals(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let in_thread = |ids: &OwnedIds| Probe::at(format!("/v1/approvals?thread={}", ids.thread));
    let after = |ids: &OwnedIds| Probe::at(format!("/v1/approvals?after={}", ids.cursor("threads")));
    let approval = format!("/approvals/{}", ids.approval);
    let decision = json!({ "decision": "approve" });
    vec![
        TenantCase::new(
            "GET",
            "/v1/approvals",
            vec![
                (in_thread(ids), in_thread(&unknown)),
                (Probe::at("/v1/approvals?all=true"), Probe::at("/v1/approvals")),
                (after(ids), after(&unknown)),
            ],
        ),
        TenantCase::new("GET", "/v1/threads/{id}/approvals/{approval}", thread_probes(ids, &approval)),
        TenantCase::new(
            "POST",
            "/v1/threads/{id}/approvals/{approval}",
            thread_probes_with_body(ids, &approval, &decision),
        ),
    ]
}
