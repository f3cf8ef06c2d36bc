use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let conversations = |base: &str| {
        let probe = |ids: &OwnedIds| Probe::at(format!("{base}/conversations/{}", ids.thread));
        vec![(probe(ids), probe(&unknown))]
    };
    let insights = |base: &str| {
        let probe = |ids: &OwnedIds| Probe::at(format!("{base}/conversations/{}/insights", ids.thread));
        vec![(probe(ids), probe(&unknown))]
    };
    let query = |base: &str| {
        let probe = |ids: &OwnedIds| {
            Probe::with(format!("{base}/api/chat"), json!({ "query": "hello", "threadId": ids.thread }))
        };
        vec![(probe(ids), probe(&unknown))]
    };
    let preferences = |base: &str| {
        let probe = |ids: &OwnedIds| Probe::at(format!("{base}/preferences/{}", ids.user));
        vec![(probe(ids), probe(&unknown))]
    };
    let with_user = |path: &str, body: Value| {
        let probe = |ids: &OwnedIds| {
            let mut body = body.clone();
            body["user_id"] = ids.user.into();
            Probe::with(path, body)
        };
        vec![(probe(ids), probe(&unknown))]
    };
    let message = || json!({ "message": "hello" });
    let mut cases = vec![
        TenantCase::new("GET", "/conversations/{threadId}", conversations("")),
        TenantCase::new("DELETE", "/conversations/{threadId}", conversations("")),
        TenantCase::new("GET", "/{assistant}/conversations/{threadId}", conversations("/keeper")),
        TenantCase::new("DELETE", "/{assistant}/conversations/{threadId}", conversations("/keeper")),
        TenantCase::new("GET", "/conversations/{threadId}/insights", insights("")),
        TenantCase::new("GET", "/{assistant}/conversations/{threadId}/insights", insights("/keeper")),
        TenantCase::new("POST", "/api/chat", query("")),
        TenantCase::new("POST", "/{assistant}/api/chat", query("/keeper")),
        TenantCase::new("POST", "/chat", with_user("/chat", message())),
        TenantCase::new("POST", "/{assistant}/chat", with_user("/keeper/chat", message())),
        TenantCase::new("POST", "/clear", with_user("/clear", json!({}))),
        TenantCase::new("POST", "/{assistant}/clear", with_user("/keeper/clear", json!({}))),
        TenantCase::new("GET", "/preferences/{user}", preferences("")),
        TenantCase::new("GET", "/{assistant}/preferences/{user}", preferences("/keeper")),
    ];
    let routes_without_ids = [
        "/{assistant}/",
        "/{assistant}/health",
        "/route",
        "/{assistant}/route",
        "/arrivals",
        "/{assistant}/arrivals",
        "/stations",
        "/{assistant}/stations",
        "/lines",
        "/{assistant}/lines",
    ];
    cases.extend(routes_without_ids.map(|path| TenantCase::without_ids("GET", path)));
    cases
}
