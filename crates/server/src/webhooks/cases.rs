use crate::door::{OwnedIds, TenantCase};

/// Returns the cases of the door. Webhooks have random ids; the test file `webhooks.rs` uses ids of other tenants and users.
pub(super) fn cases(_: &OwnedIds) -> Vec<TenantCase> {
    vec![
        TenantCase::without_ids("POST", "/v1/webhooks"),
        TenantCase::without_ids("GET", "/v1/webhooks"),
        TenantCase::without_ids("GET", "/v1/webhooks/{webhook}"),
        TenantCase::without_ids("PATCH", "/v1/webhooks/{webhook}"),
        TenantCase::without_ids("DELETE", "/v1/webhooks/{webhook}"),
        TenantCase::without_ids("POST", "/v1/webhooks/{webhook}/rotate"),
        TenantCase::without_ids("GET", "/v1/webhooks/{webhook}/deliveries"),
        TenantCase::without_ids("POST", "/v1/webhooks/{webhook}/deliveries/{event}/replay"),
    ]
}
