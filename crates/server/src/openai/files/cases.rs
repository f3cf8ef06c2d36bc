//! Requests for the tests that check that tenants cannot access each other's files.

use serde_json::json;

use crate::door::{OwnedIds, Probe, TenantCase};

pub(in crate::openai) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let probes = |rest: &str| {
        let probe = |ids: &OwnedIds| Probe::at(format!("/v1/files/{}{rest}", ids.file));
        vec![(probe(ids), probe(&unknown))]
    };
    let after = |ids: &OwnedIds| Probe::at(format!("/v1/files?after={}", ids.file));
    let all = || Probe::at("/v1/files");
    let empty = || Probe::at("/v1/files?library=nothing");
    let search = |query: &str| Probe::with("/v1/files/search", json!({ "query": query }));
    vec![
        TenantCase::without_ids("POST", "/v1/files"),
        TenantCase::new("GET", "/v1/files", vec![(after(ids), after(&unknown)), (all(), empty())]),
        TenantCase::new("POST", "/v1/files/search", vec![(search("paraffin"), search("xylophone"))]),
        TenantCase::new("GET", "/v1/files/{id}", probes("")),
        TenantCase::new("GET", "/v1/files/{id}/content", probes("/content")),
        TenantCase::new("DELETE", "/v1/files/{id}", probes("")),
    ]
}
