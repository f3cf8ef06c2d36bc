use crate::door::{Owned, TenantCase};

/// Nothing of anyone's can be named here.
pub(super) fn cases(_: &Owned) -> Vec<TenantCase> {
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
    routes.map(|(method, path)| TenantCase::names_nothing(method, path)).to_vec()
}
