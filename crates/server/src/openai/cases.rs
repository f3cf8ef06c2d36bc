//! Requests for the tests that tenants cannot reach each other's data.

use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let mut cases = conversations(ids);
    cases.extend(responses(ids));
    cases.extend(completions(ids));
    let without_names = [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/{model}"),
        ("GET", "/v1/models/threadkeep/{name}"),
        ("POST", "/v1/embeddings"),
    ];
    cases.extend(without_names.map(|(method, path)| TenantCase::without_names(method, path)));
    cases
}

fn conversation(ids: &OwnedIds) -> String {
    format!("conv_{}", ids.thread.replace('-', ""))
}

fn item(ids: &OwnedIds) -> String {
    format!("msg_{}", ids.message.replace('-', ""))
}

/// Returns the id of the text message of a response without a conversation.
fn text_message(response: &str) -> String {
    format!("msg_{}ffff", &response["resp_".len()..][..28])
}

fn probe(path: String, body: Option<&Value>) -> Probe {
    Probe { body: body.cloned(), ..Probe::at(path) }
}

fn conversations(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let of = |rest: &str, body: Option<Value>| {
        let of = |ids: &OwnedIds| probe(format!("/v1/conversations/{}{rest}", conversation(ids)), body.as_ref());
        vec![(of(ids), of(&unknown))]
    };
    let create = |ids: &OwnedIds| {
        let items = json!({ "items": [{ "role": "user", "content": "x", "id": item(ids) }] });
        Probe::with("/v1/conversations", items)
    };
    let item = format!("/items/{}", item(ids));
    let after = format!("/items?after={}", item.trim_start_matches("/items/"));
    let items = json!({ "items": [{ "role": "user", "content": "x" }] });
    vec![
        TenantCase::new("POST", "/v1/conversations", vec![(create(ids), create(&unknown))]),
        TenantCase::new("GET", "/v1/conversations/{id}", of("", None)),
        TenantCase::new("POST", "/v1/conversations/{id}", of("", Some(json!({ "metadata": { "a": "b" } })))),
        TenantCase::new("DELETE", "/v1/conversations/{id}", of("", None)),
        TenantCase::new("POST", "/v1/conversations/{id}/items", of("/items", Some(items))),
        TenantCase::new("GET", "/v1/conversations/{id}/items", [of("/items", None), of(&after, None)].concat()),
        TenantCase::new("GET", "/v1/conversations/{id}/items/{item}", of(&item, None)),
        TenantCase::new("DELETE", "/v1/conversations/{id}/items/{item}", of(&item, None)),
    ]
}

/// Returns requests that refer to existing data, each with the same request for data that does not exist.
fn referring(ids: &OwnedIds, path: &str) -> Vec<(Probe, Probe)> {
    let reference = |id: &str| json!({ "input": [{ "type": "item_reference", "id": id }] });
    let of = |ids: &OwnedIds| {
        let response = &ids.responses[0];
        [
            json!({ "input": "x", "previous_response_id": response }),
            reference(&item(ids)),
            reference(&text_message(response)),
            json!({ "input": "x", "conversation": conversation(ids) }),
        ]
    };
    let pairs = of(ids).into_iter().zip(of(&OwnedIds::nonexistent()));
    pairs.map(|(existing, unknown)| (Probe::with(path, existing), Probe::with(path, unknown))).collect()
}

fn responses(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = &OwnedIds::nonexistent().responses[0];
    let of = |rest: &str, body: Option<Value>| {
        let of = |id: &str| probe(format!("/v1/responses/{id}{rest}"), body.as_ref());
        ids.responses.iter().map(|response| (of(response), of(unknown))).collect()
    };
    let create = |path: &str| referring(ids, path);
    vec![
        TenantCase::new("POST", "/v1/responses", create("/v1/responses")),
        TenantCase::new("POST", "/v1/responses/input_tokens", create("/v1/responses/input_tokens")),
        TenantCase::new("POST", "/v1/responses/compact", create("/v1/responses/compact")[..3].to_vec()),
        TenantCase::new("GET", "/v1/responses/{id}", of("", None)),
        TenantCase::new("DELETE", "/v1/responses/{id}", of("", None)),
        TenantCase::new("POST", "/v1/responses/{id}/cancel", of("/cancel", Some(json!({})))),
        TenantCase::new("GET", "/v1/responses/{id}/input_items", of("/input_items", None)),
    ]
}

fn completions(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let of = |rest: &str, body: Option<Value>| {
        let of = |ids: &OwnedIds| probe(format!("/v1/chat/completions/{}{rest}", ids.completion), body.as_ref());
        vec![(of(ids), of(&unknown))]
    };
    let after = |ids: &OwnedIds| Probe::at(format!("/v1/chat/completions?after={}", ids.completion));
    let create = |thread: String| Probe {
        headers: vec![("threadkeep-thread", thread)],
        ..Probe::with("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "x" }] }))
    };
    vec![
        TenantCase::new("GET", "/v1/chat/completions", vec![(after(ids), after(&unknown))]),
        TenantCase::new("GET", "/v1/chat/completions/{id}", of("", None)),
        TenantCase::new("POST", "/v1/chat/completions/{id}", of("", Some(json!({ "metadata": { "a": "b" } })))),
        TenantCase::new("DELETE", "/v1/chat/completions/{id}", of("", None)),
        TenantCase::new("GET", "/v1/chat/completions/{id}/messages", of("/messages", None)),
        TenantCase::new(
            "POST",
            "/v1/chat/completions",
            vec![
                (create(ids.thread.clone()), create(unknown.thread.clone())),
                (create(conversation(ids)), create(conversation(&unknown))),
            ],
        ),
    ]
}
