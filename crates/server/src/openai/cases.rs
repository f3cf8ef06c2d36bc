//! Requests for the tests that check that tenants cannot access each other's data.

use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let mut cases = conversations(ids);
    cases.extend(responses(ids));
    cases.extend(completions(ids));
    cases.extend(super::files::cases(ids));
    let without_ids = [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/{model}"),
        ("GET", "/v1/models/threadkeep/{name}"),
        ("POST", "/v1/embeddings"),
    ];
    cases.extend(without_ids.map(|(method, path)| TenantCase::without_ids(method, path)));
    cases
}

fn conversation_id(ids: &OwnedIds) -> String {
    format!("conv_{}", ids.thread.replace('-', ""))
}

fn item_id(ids: &OwnedIds) -> String {
    format!("msg_{}", ids.message.replace('-', ""))
}

/// Returns the id of the text message of a response without a conversation.
fn text_message_id(response: &str) -> String {
    format!("msg_{}ffff", &response["resp_".len()..][..28])
}

fn probe(path: String, body: Option<&Value>) -> Probe {
    Probe { body: body.cloned(), ..Probe::at(path) }
}

fn conversations(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let probes = |rest: &str, body: Option<Value>| {
        let probe = |ids: &OwnedIds| probe(format!("/v1/conversations/{}{rest}", conversation_id(ids)), body.as_ref());
        vec![(probe(ids), probe(&unknown))]
    };
    let create = |ids: &OwnedIds| {
        let items = json!({ "items": [{ "role": "user", "content": "x", "id": item_id(ids) }] });
        Probe::with("/v1/conversations", items)
    };
    let list_after = |ids: &OwnedIds| Probe::at(format!("/v1/conversations?after={}", conversation_id(ids)));
    let item = format!("/items/{}", item_id(ids));
    let after = format!("/items?after={}", item.trim_start_matches("/items/"));
    let items = json!({ "items": [{ "role": "user", "content": "x" }] });
    vec![
        TenantCase::new("POST", "/v1/conversations", vec![(create(ids), create(&unknown))]),
        TenantCase::new("GET", "/v1/conversations", vec![(list_after(ids), list_after(&unknown))]),
        TenantCase::new("GET", "/v1/conversations/{id}", probes("", None)),
        TenantCase::new("POST", "/v1/conversations/{id}", probes("", Some(json!({ "metadata": { "a": "b" } })))),
        TenantCase::new("DELETE", "/v1/conversations/{id}", probes("", None)),
        TenantCase::new("POST", "/v1/conversations/{id}/items", probes("/items", Some(items))),
        TenantCase::new("GET", "/v1/conversations/{id}/items", [probes("/items", None), probes(&after, None)].concat()),
        TenantCase::new("GET", "/v1/conversations/{id}/items/{item}", probes(&item, None)),
        TenantCase::new("DELETE", "/v1/conversations/{id}/items/{item}", probes(&item, None)),
    ]
}

/// Returns requests that refer to existing data, each together with the same request for data that does not exist.
fn referring_probes(ids: &OwnedIds, path: &str) -> Vec<(Probe, Probe)> {
    let reference = |id: &str| json!({ "input": [{ "type": "item_reference", "id": id }] });
    let bodies = |ids: &OwnedIds| {
        let response = &ids.responses[0];
        [
            json!({ "input": "x", "previous_response_id": response }),
            reference(&item_id(ids)),
            reference(&text_message_id(response)),
            json!({ "input": "x", "conversation": conversation_id(ids) }),
        ]
    };
    let pairs = bodies(ids).into_iter().zip(bodies(&OwnedIds::nonexistent()));
    pairs.map(|(existing, unknown)| (Probe::with(path, existing), Probe::with(path, unknown))).collect()
}

fn responses(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = &OwnedIds::nonexistent().responses[0];
    let probes = |rest: &str, body: Option<Value>| {
        let probe = |id: &str| probe(format!("/v1/responses/{id}{rest}"), body.as_ref());
        ids.responses.iter().map(|response| (probe(response), probe(unknown))).collect()
    };
    let create = |path: &str| referring_probes(ids, path);
    let list_after = |response: &str| Probe::at(format!("/v1/responses?after={response}"));
    vec![
        TenantCase::new("POST", "/v1/responses", create("/v1/responses")),
        TenantCase::new("POST", "/v1/responses/input_tokens", create("/v1/responses/input_tokens")),
        TenantCase::new("POST", "/v1/responses/compact", create("/v1/responses/compact")[..3].to_vec()),
        TenantCase::new("GET", "/v1/responses", vec![(list_after(&ids.responses[0]), list_after(unknown))]),
        TenantCase::new("GET", "/v1/responses/{id}", probes("", None)),
        TenantCase::new("DELETE", "/v1/responses/{id}", probes("", None)),
        TenantCase::new("POST", "/v1/responses/{id}/cancel", probes("/cancel", Some(json!({})))),
        TenantCase::new("GET", "/v1/responses/{id}/input_items", probes("/input_items", None)),
    ]
}

fn completions(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let probes = |rest: &str, body: Option<Value>| {
        let probe = |ids: &OwnedIds| probe(format!("/v1/chat/completions/{}{rest}", ids.completion), body.as_ref());
        vec![(probe(ids), probe(&unknown))]
    };
    let after = |ids: &OwnedIds| Probe::at(format!("/v1/chat/completions?after={}", ids.completion));
    let create = |thread: String| Probe {
        headers: vec![("threadkeep-thread", thread)],
        ..Probe::with("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "x" }] }))
    };
    vec![
        TenantCase::new("GET", "/v1/chat/completions", vec![(after(ids), after(&unknown))]),
        TenantCase::new("GET", "/v1/chat/completions/{id}", probes("", None)),
        TenantCase::new("POST", "/v1/chat/completions/{id}", probes("", Some(json!({ "metadata": { "a": "b" } })))),
        TenantCase::new("DELETE", "/v1/chat/completions/{id}", probes("", None)),
        TenantCase::new("GET", "/v1/chat/completions/{id}/messages", probes("/messages", None)),
        TenantCase::new(
            "POST",
            "/v1/chat/completions",
            vec![
                (create(ids.thread.clone()), create(unknown.thread.clone())),
                (create(conversation_id(ids)), create(conversation_id(&unknown))),
            ],
        ),
    ]
}
