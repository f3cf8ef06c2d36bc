//! Requests for the tests that tenants cannot reach each other's data.

use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(owned: &OwnedIds) -> Vec<TenantCase> {
    let mut cases = conversations(owned);
    cases.extend(responses(owned));
    cases.extend(completions(owned));
    let without_names = [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/{model}"),
        ("GET", "/v1/models/threadkeep/{name}"),
        ("POST", "/v1/embeddings"),
    ];
    cases.extend(without_names.map(|(method, path)| TenantCase::without_names(method, path)));
    cases
}

fn conversation(owned: &OwnedIds) -> String {
    format!("conv_{}", owned.thread.replace('-', ""))
}

fn item(owned: &OwnedIds) -> String {
    format!("msg_{}", owned.message.replace('-', ""))
}

/// Returns the id of the text message of a response without a conversation.
fn text_message(response: &str) -> String {
    format!("msg_{}ffff", &response["resp_".len()..][..28])
}

fn probe(path: String, body: Option<&Value>) -> Probe {
    Probe { body: body.cloned(), ..Probe::at(path) }
}

fn conversations(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let of = |rest: &str, body: Option<Value>| {
        let of = |owned: &OwnedIds| probe(format!("/v1/conversations/{}{rest}", conversation(owned)), body.as_ref());
        vec![(of(owned), of(&unknown))]
    };
    let create = |owned: &OwnedIds| {
        let items = json!({ "items": [{ "role": "user", "content": "x", "id": item(owned) }] });
        Probe::with("/v1/conversations", items)
    };
    let item = format!("/items/{}", item(owned));
    let after = format!("/items?after={}", item.trim_start_matches("/items/"));
    let items = json!({ "items": [{ "role": "user", "content": "x" }] });
    vec![
        TenantCase::new("POST", "/v1/conversations", vec![(create(owned), create(&unknown))]),
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
fn referring(owned: &OwnedIds, path: &str) -> Vec<(Probe, Probe)> {
    let reference = |id: &str| json!({ "input": [{ "type": "item_reference", "id": id }] });
    let of = |owned: &OwnedIds| {
        let response = &owned.responses[0];
        [
            json!({ "input": "x", "previous_response_id": response }),
            reference(&item(owned)),
            reference(&text_message(response)),
            json!({ "input": "x", "conversation": conversation(owned) }),
        ]
    };
    let pairs = of(owned).into_iter().zip(of(&OwnedIds::nonexistent()));
    pairs.map(|(existing, unknown)| (Probe::with(path, existing), Probe::with(path, unknown))).collect()
}

fn responses(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = &OwnedIds::nonexistent().responses[0];
    let of = |rest: &str, body: Option<Value>| {
        let of = |id: &str| probe(format!("/v1/responses/{id}{rest}"), body.as_ref());
        owned.responses.iter().map(|response| (of(response), of(unknown))).collect()
    };
    let create = |path: &str| referring(owned, path);
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

fn completions(owned: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let of = |rest: &str, body: Option<Value>| {
        let of = |owned: &OwnedIds| probe(format!("/v1/chat/completions/{}{rest}", owned.completion), body.as_ref());
        vec![(of(owned), of(&unknown))]
    };
    let after = |owned: &OwnedIds| Probe::at(format!("/v1/chat/completions?after={}", owned.completion));
    let create = |thread: String| Probe {
        headers: vec![("threadkeep-thread", thread)],
        ..Probe::with("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "x" }] }))
    };
    vec![
        TenantCase::new("GET", "/v1/chat/completions", vec![(after(owned), after(&unknown))]),
        TenantCase::new("GET", "/v1/chat/completions/{id}", of("", None)),
        TenantCase::new("POST", "/v1/chat/completions/{id}", of("", Some(json!({ "metadata": { "a": "b" } })))),
        TenantCase::new("DELETE", "/v1/chat/completions/{id}", of("", None)),
        TenantCase::new("GET", "/v1/chat/completions/{id}/messages", of("/messages", None)),
        TenantCase::new(
            "POST",
            "/v1/chat/completions",
            vec![
                (create(owned.thread.clone()), create(unknown.thread.clone())),
                (create(conversation(owned)), create(conversation(&unknown))),
            ],
        ),
    ]
}
