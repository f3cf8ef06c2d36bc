use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let conversations = |base: &str| {
        let of = |ids: &OwnedIds| Probe::at(format!("{base}/conversations/{}", ids.thread));
        vec![(of(ids), of(&unknown))]
    };
    let preferences = |base: &str| {
        let of = |ids: &OwnedIds| Probe::at(format!("{base}/preferences/{}", ids.user));
        vec![(of(ids), of(&unknown))]
    };
    let of_user = |path: &str, body: Value| {
        let of = |ids: &OwnedIds| {
            let mut body = body.clone();
            body["user_id"] = ids.user.into();
            Probe::with(path, body)
        };
        vec![(of(ids), of(&unknown))]
    };
    let said = || json!({ "message": "hello" });
    let mut cases = vec![
        TenantCase::new("GET", "/conversations/{threadId}", conversations("")),
        TenantCase::new("DELETE", "/conversations/{threadId}", conversations("")),
        TenantCase::new("GET", "/{assistant}/conversations/{threadId}", conversations("/keeper")),
        TenantCase::new("DELETE", "/{assistant}/conversations/{threadId}", conversations("/keeper")),
        TenantCase::new("POST", "/chat", of_user("/chat", said())),
        TenantCase::new("POST", "/{assistant}/chat", of_user("/keeper/chat", said())),
        TenantCase::new("POST", "/clear", of_user("/clear", json!({}))),
        TenantCase::new("POST", "/{assistant}/clear", of_user("/keeper/clear", json!({}))),
        TenantCase::new("GET", "/preferences/{user}", preferences("")),
        TenantCase::new("GET", "/{assistant}/preferences/{user}", preferences("/keeper")),
    ];
    let nameless = [
        "/",
        "/{assistant}/",
        "/{assistant}/health",
        "/route",
        "/{assistant}/route",
        "/arrivals",
        "/{assistant}/arrivals",
        "/stations",
        "/{assistant}/stations",
    ];
    cases.extend(nameless.map(|path| TenantCase::without_names("GET", path)));
    cases
}
