use crate::door::{OwnedIds, TenantCase};

/// Requests to these routes do not identify resources of users.
pub(super) fn cases(_: &OwnedIds) -> Vec<TenantCase> {
    let routes = [
        ("GET", "/metrics"),
        ("GET", "/health"),
        ("GET", "/ready"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/docs"),
        ("GET", "/docs/"),
        ("GET", "/docs/{file}"),
        ("GET", "/v1/session"),
        ("POST", "/v1/session"),
    ];
    routes.map(|(method, path)| TenantCase::without_ids(method, path)).to_vec()
}
