//! The REST API under /v1. It offers clients the same functions that the library offers programs.
//!
//! Each path has a folder and each action a file. JSON types that several actions share are in `json`.

pub(crate) mod agents;
pub(crate) mod analytics;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod caller;
mod cases;
pub(crate) mod context;
pub(crate) mod erase;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod preferences;
pub(crate) mod quotas;
pub(crate) mod recall;
pub(crate) mod records;
pub(crate) mod search;
pub(crate) mod tenants;
pub(crate) mod thread_records;
pub(crate) mod thread_tools;
pub(crate) mod threads;
pub(crate) mod tokens;
pub(crate) mod turns;
pub(crate) mod users;

use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::security::KeyRole;

const READ: Rule = Rule::role(KeyRole::Read);
const WRITE: Rule = Rule::role(KeyRole::Write);
const ADMIN: Rule = Rule::role(KeyRole::Admin);
const OPERATE: Rule = Rule::role(KeyRole::Operate);
const APPROVE: Rule = Rule::role(KeyRole::Approve);

/// Returns the door of the REST API.
pub(crate) fn door() -> Door {
    Door::new("rest")
        .route(WRITE, || routes!(threads::open::open))
        .route(READ, || routes!(threads::list::list))
        .route(READ, || routes!(threads::get::get))
        .route(WRITE, || routes!(threads::patch::patch))
        .route(WRITE, || routes!(threads::delete::delete))
        .route(WRITE, || routes!(threads::fork::fork))
        .route(WRITE, || routes!(messages::append::append))
        .route(READ, || routes!(messages::list::list))
        .route(READ, || routes!(messages::get::get))
        .route(WRITE, || routes!(messages::replace::replace))
        .route(WRITE, || routes!(messages::erase::erase))
        .route(READ, || routes!(context::assemble::assemble))
        .route(READ, || routes!(context::report::report))
        .route(READ, || routes!(search::search))
        .route(READ, || routes!(recall::recall))
        .route(READ, || routes!(preferences::list::list))
        .route(READ, || routes!(preferences::get::get))
        .route(WRITE, || routes!(preferences::put::put))
        .route(WRITE, || routes!(preferences::delete::delete))
        .route(READ, || routes!(records::list::list))
        .route(READ, || routes!(records::get::get))
        .route(WRITE, || routes!(records::put::put))
        .route(WRITE, || routes!(records::delete::delete))
        .route(READ, || routes!(thread_records::list::list))
        .route(READ, || routes!(thread_records::get::get))
        .route(WRITE, || routes!(thread_records::put::put))
        .route(WRITE, || routes!(thread_records::delete::delete))
        .route(READ, || routes!(thread_tools::get::get))
        .route(WRITE, || routes!(thread_tools::put::put))
        .route(READ, || routes!(analytics::analytics))
        .route(READ.without_time_limit(), || routes!(export::export))
        // Users may import and erase their own data. For any other data, the actions check the role.
        .route(WRITE.without_time_limit().audited(), || routes!(import::import))
        .route(WRITE.without_time_limit().audited(), || routes!(erase::erase))
        .route(WRITE.without_time_limit(), || routes!(bulk::delete_threads::delete_threads))
        .route(WRITE.without_time_limit(), || routes!(bulk::patch_threads::patch_threads))
        .route(WRITE.without_time_limit(), || routes!(bulk::put_records::put_records))
        .route(ADMIN, || routes!(keys::list::list))
        .route(ADMIN, || routes!(keys::create::create))
        .route(ADMIN, || routes!(keys::patch::patch))
        .route(ADMIN, || routes!(keys::revoke::revoke))
        .route(ADMIN, || routes!(keys::rotate::rotate))
        .route(ADMIN, || routes!(audit::list))
        .route(ADMIN, || routes!(quotas::list))
        .route(ADMIN, || routes!(users::list::list))
        .route(ADMIN.without_time_limit(), || routes!(users::get::get))
        .route(ADMIN.without_time_limit(), || routes!(users::erase::erase))
        .route(OPERATE, || routes!(tenants::list))
        .route(READ, || routes!(tokens::create))
        .route(READ, || routes!(caller::get))
        .route(READ, || routes!(agents::list::list))
        .route(READ, || routes!(agents::get::get))
        .route(READ, || routes!(agents::map::map))
        .route(READ, || routes!(agents::source::source))
        .route(WRITE.without_time_limit(), || routes!(agents::ask::ask))
        .route(WRITE.without_time_limit(), || routes!(agents::run::run))
        .route(READ, || routes!(turns::get::get))
        .route(WRITE, || routes!(turns::cancel::cancel))
        .route(READ, || routes!(approvals::list::list))
        .route(READ, || routes!(approvals::get::get))
        .route(APPROVE.without_time_limit(), || routes!(approvals::decide::decide))
        // Key-value records were called documents in earlier versions.
        .alias("/v1/documents/{namespace}", "/v1/records/{namespace}")
        .alias("/v1/documents/{namespace}/{key}", "/v1/records/{namespace}/{key}")
        .alias("/v1/threads/{id}/documents/{namespace}", "/v1/threads/{id}/records/{namespace}")
        .alias("/v1/threads/{id}/documents/{namespace}/{key}", "/v1/threads/{id}/records/{namespace}/{key}")
        .cases(cases::cases)
}
