//! The server: what the library gives a program, given to every client over HTTP, safely for many tenants.
//!
//! Start with [`Server`], which mounts [`Door`]s. Each of its own is a folder (`rest`, `live`, `openai`, `compat`, `operations`), each
//! action in it a file, and `routes` puts them together. A request passes, in this order: `edge` (request id, log, metrics, trace, the
//! door's form of an error), its `gate` (`security`: who calls, on whose behalf, with which role; `limits`: how long it may take),
//! and the action. What is not about HTTP is in `threadkeep_service`.
//!
//! The server keeps nothing between two requests that another instance would need: what makes a repeated request count
//! once lies in the store. It knows no assistant by name and no backend at all.
#![warn(missing_docs)]

mod app;
mod compat;
mod connections;
mod cursor;
mod door;
mod edge;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod input;
mod limits;
mod live;
mod openai;
mod operations;
mod output;
mod rest;
mod routes;
mod security;
mod server;
mod tls;
mod turns;

pub use app::{App, ServerOptions};
pub use compat::access::SharedKey;
pub use door::{Door, Owned, Probe, Recognise, RouteInfo, Rule, TenantCase, Wire};
pub use edge::request_id;
pub use error::ApiError;
pub use input::{FormBody, JsonBody, RawBody, attempt};
pub use output::json;
pub use routes::check_assistant_name;
pub use security::local::{LocalAccess, LocalToken, LocalTokenError, is_minted as is_local_token};
pub use server::{DoorError, ServeError, Server};
pub use threadkeep_service::{
    AssistantNameError, Assistants, AuditFinding, AuditLog, AuditRecord, AuditVerification, IssuerError, KeyError,
    KeyRecord, KeyRole, KeySecret, Keys, NewKey, OutgoingProxy, Quota, RateLimit, TelemetryOptions, TokenIssuer,
};
pub use tls::{Tls, TlsError};
