//! The HTTP server, which makes the library available to clients of many tenants.
//!
//! Start with [`Server`], which serves a list of [`Door`]s. A door is one HTTP API: its routes with their access rules, its error
//! format, and test cases for tenant isolation. Each built-in door has a folder (`rest`, `live`, `webhooks`, `openai`, `mcp`,
//! `compat`, `page`, `operations`) with one file per action; `routes` combines the doors. A request passes through `middleware`
//! (request id, log, metrics, trace, error format), then `route_layer` (authentication and authorisation by `security`, time
//! limits by `limits`), then reaches its action. Everything that does not depend on HTTP is in `threadkeep_service`.
//!
//! The server retains no state between requests that another instance would need; idempotency records, for example, are in the
//! store. It does not depend on particular assistants or backends.
#![warn(missing_docs)]

mod app;
mod compat;
mod connections;
mod cursor;
mod door;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod input;
mod limits;
mod live;
mod mcp;
mod middleware;
mod openai;
mod operations;
mod output;
mod page;
mod rest;
mod route_layer;
mod routes;
mod security;
mod server;
mod thread_names;
mod tls;
mod turns;
mod webhooks;

pub use app::{App, ServerOptions};
pub use compat::access::SharedKey;
pub use door::{Door, ErrorFormat, OwnedIds, Probe, RouteInfo, Rule, SenderAuthenticator, TenantCase};
pub use error::ApiError;
pub use input::{FormBody, JsonBody, RawBody, read_identity};
pub use middleware::request_id;
pub use output::json;
pub use page::Page;
pub use routes::check_assistant_name;
pub use security::local::{LocalAccess, LocalToken, LocalTokenError, is_generated as is_local_token};
pub use server::{DoorError, ServeError, Server};
pub use threadkeep_service::webhooks::WebhookOptions;
pub use threadkeep_service::{
    AssistantNameError, Assistants, AuditFinding, AuditLog, AuditRecord, AuditVerification, IssuerError, KeyError,
    KeyRecord, KeyRole, KeySecret, Keys, NewKey, OutgoingProxy, Quota, RateLimit, TelemetryOptions, TrustedIssuer,
};
pub use tls::{Tls, TlsError};
