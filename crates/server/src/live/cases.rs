//! Requests for the tests that check that tenants cannot access each other's data.

use crate::door::{OwnedIds, Probe, TenantCase};

pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let events = |thread: &str| Probe::at(format!("/v1/threads/{thread}/events?after=0"));
    vec![
        TenantCase::new(
            "GET",
            "/v1/threads/{id}/events",
            vec![(events(&ids.thread), events(&OwnedIds::nonexistent().thread))],
        ),
        TenantCase::new("GET", "/v1/live", vec![(Probe::at("/v1/live"), Probe::at("/v1/live"))]),
    ]
}
