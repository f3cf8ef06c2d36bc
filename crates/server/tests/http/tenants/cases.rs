//! What is asked on every route.

use serde_json::{Value, json};

/// How a route is asked for somebody's thing and for nobody's.
pub(super) struct Case {
    pub(super) route: (&'static str, &'static str),
    /// The request with somebody's names in it, and the same with names that nobody has.
    pub(super) probes: Vec<(Probe, Probe)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Probe {
    pub(super) path: String,
    pub(super) body: Option<Value>,
    pub(super) headers: Vec<(&'static str, String)>,
}

/// What the owner has.
pub(super) struct Owned {
    pub(super) thread: String,
    pub(super) message: String,
    pub(super) key: String,
    pub(super) cursors: Vec<(&'static str, String)>,
    /// One without a conversation, and one in one.
    pub(super) responses: Vec<String>,
    /// One that is stored.
    pub(super) completion: String,
    /// One that waits for an approval.
    pub(super) turn: String,
    pub(super) approval: String,
    pub(super) user: &'static str,
}

pub(super) const NO_RESPONSE: &str = "resp_0190b4e2000070008000000000000000";
pub(super) const NO_COMPLETION: &str = "chatcmpl-0190b4e2000070008000000000000000";
pub(super) const NOBODY: &str = "0190b4e2-0000-7000-8000-000000000000";

/// Routes on which nothing of anyone's can be named.
pub(super) const NAMES_NOTHING: [(&str, &str); 24] = [
    ("GET", "/metrics"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs/"),
    ("GET", "/docs/{file}"),
    ("GET", "/v1/session"),
    ("POST", "/v1/session"),
    ("POST", "/v1/import"),
    ("GET", "/"),
    ("GET", "/{assistant}/"),
    ("GET", "/{assistant}/health"),
    ("GET", "/route"),
    ("GET", "/{assistant}/route"),
    ("GET", "/arrivals"),
    ("GET", "/{assistant}/arrivals"),
    ("GET", "/stations"),
    ("GET", "/{assistant}/stations"),
    ("GET", "/v1/agents"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("GET", "/v1/models/threadkeep/{name}"),
    ("POST", "/v1/embeddings"),
];

/// The words of a response without a conversation.
pub(super) fn item_of(response: &str) -> String {
    format!("msg_{}ffff", &response["resp_".len()..][..28])
}

pub(super) fn at(path: impl Into<String>) -> Probe {
    Probe { path: path.into(), ..Probe::default() }
}

pub(super) fn with(path: impl Into<String>, body: Value) -> Probe {
    Probe { path: path.into(), body: Some(body), ..Probe::default() }
}

/// A probe of every place in a path or body where an id of a thread or message stands.
pub(super) fn cases(owned: &Owned) -> Vec<Case> {
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
    let completions = |rest: &str, body: Option<Value>| {
        let of = |id: &str| probe(format!("/v1/chat/completions/{id}{rest}"), &body);
        vec![(of(&owned.completion), of(NO_COMPLETION))]
    };
    let asked = |path: &str| {
        let pair = |theirs: Value, nobodys: Value| (with(path, theirs), with(path, nobodys));
        let reference = |id: &str| json!({ "input": [{ "type": "item_reference", "id": id }] });
        vec![
            pair(
                json!({ "input": "x", "previous_response_id": owned.responses[0] }),
                json!({ "input": "x", "previous_response_id": NO_RESPONSE }),
            ),
            pair(reference(&item), reference(&no_item)),
            pair(reference(&item_of(&owned.responses[0])), reference(&item_of(NO_RESPONSE))),
            pair(
                json!({ "input": "x", "conversation": conversation }),
                json!({ "input": "x", "conversation": no_conversation }),
            ),
        ]
    };
    let chat = |thread: &str| Probe {
        headers: vec![("threadkeep-thread", thread.to_owned())],
        ..with("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "x" }] }))
    };
    let compat =
        |base: &str| vec![(at(format!("{base}/conversations/{thread}")), at(format!("{base}/conversations/{NOBODY}")))];
    let preferences =
        |base: &str| vec![(at(format!("{base}/preferences/{}", owned.user)), at(format!("{base}/preferences/nobody")))];
    let said = json!({ "message": "hello" });
    let of_user = |path: &str, body: &Value| {
        let named = |user: &str| {
            let mut body = body.clone();
            body["user_id"] = user.into();
            with(path, body)
        };
        vec![(named(owned.user), named("nobody"))]
    };
    let ask = |thread: &str| with("/v1/agents/keeper/turns", json!({ "text": "hello", "thread": thread }));
    let (turn, approval) = (format!("/turns/{}", owned.turn), format!("/approvals/{}", owned.approval));
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
        case("GET", "/conversations/{threadId}", compat("")),
        case("DELETE", "/conversations/{threadId}", compat("")),
        case("GET", "/{assistant}/conversations/{threadId}", compat("/keeper")),
        case("DELETE", "/{assistant}/conversations/{threadId}", compat("/keeper")),
        case("POST", "/chat", of_user("/chat", &said)),
        case("POST", "/{assistant}/chat", of_user("/keeper/chat", &said)),
        case("POST", "/clear", of_user("/clear", &json!({}))),
        case("POST", "/{assistant}/clear", of_user("/keeper/clear", &json!({}))),
        case("GET", "/preferences/{user}", preferences("")),
        case("GET", "/{assistant}/preferences/{user}", preferences("/keeper")),
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
        case(
            "POST",
            "/v1/agents/{name}/turns",
            [thread, owned.key.as_str()]
                .into_iter()
                .zip([NOBODY, "nobodys"])
                .map(|(theirs, nobodys)| (ask(theirs), ask(nobodys)))
                .collect(),
        ),
        case("GET", "/v1/threads/{id}/turns/{turn}", both(&turn)),
        case("POST", "/v1/threads/{id}/turns/{turn}/cancel", both_with(&format!("{turn}/cancel"), json!({}))),
        case(
            "GET",
            "/v1/approvals",
            vec![
                (at(format!("/v1/approvals?thread={thread}")), at(format!("/v1/approvals?thread={NOBODY}"))),
                (at("/v1/approvals?all=true"), at("/v1/approvals")),
                (at(format!("/v1/approvals?after={}", cursor("threads"))), at("/v1/approvals?after=bm9ib2R5")),
            ],
        ),
        case("GET", "/v1/threads/{id}/approvals/{approval}", both(&approval)),
        case("POST", "/v1/threads/{id}/approvals/{approval}", both_with(&approval, json!({ "decision": "approve" }))),
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
        case("POST", "/v1/responses", asked("/v1/responses")),
        case("POST", "/v1/responses/input_tokens", asked("/v1/responses/input_tokens")),
        case("POST", "/v1/responses/compact", asked("/v1/responses/compact")[..3].to_vec()),
        case("GET", "/v1/responses/{id}", responses("", None)),
        case("DELETE", "/v1/responses/{id}", responses("", None)),
        case("POST", "/v1/responses/{id}/cancel", responses("/cancel", Some(json!({})))),
        case("GET", "/v1/responses/{id}/input_items", responses("/input_items", None)),
        case(
            "GET",
            "/v1/chat/completions",
            vec![(
                at(format!("/v1/chat/completions?after={}", owned.completion)),
                at(format!("/v1/chat/completions?after={NO_COMPLETION}")),
            )],
        ),
        case("GET", "/v1/chat/completions/{id}", completions("", None)),
        case("POST", "/v1/chat/completions/{id}", completions("", Some(json!({ "metadata": { "a": "b" } })))),
        case("DELETE", "/v1/chat/completions/{id}", completions("", None)),
        case("GET", "/v1/chat/completions/{id}/messages", completions("/messages", None)),
        case(
            "POST",
            "/v1/chat/completions",
            vec![(chat(thread), chat(NOBODY)), (chat(&conversation), chat(&no_conversation))],
        ),
    ]
}
