//! Protocol-independent services for all APIs of a server (doors): authentication and authorisation of callers, rate limits and
//! quotas, the audit log, detection of repeated requests, and turns of assistants.
//!
//! Start with [`Service`]. This crate has no HTTP types: a door decodes requests, calls the service, and encodes the result or the
//! [`Error`]. Outgoing calls (to fetch an issuer's keys and to export traces) go through `outgoing`,
//! webhooks through `webhooks`.
//!
//! The service retains no state between requests that another instance would need. It depends on no specific assistant or backend.
#![warn(missing_docs)]

mod assistants;
mod audit;
pub mod browser_tokens;
mod caller;
mod error;
mod guesses;
mod hex;
mod jwt;
mod keys;
mod metrics;
mod outgoing;
mod quota;
mod rate;
mod repeats;
mod service;
mod telemetry;
pub mod turns;
pub mod webhooks;

pub use assistants::{AssistantNameError, Assistants, check_assistant_name};
pub use audit::{AuditAction, AuditFinding, AuditLog, AuditRecord, AuditVerification};
pub use caller::{Caller, Credential, MayResume, Sender};
pub use error::{Error, ErrorKind, Result};
pub use guesses::{GuessLimiter, Source};
pub use hex::hex;
#[doc(hidden)]
pub use jwt::count_keys;
pub use jwt::{IssuerError, TrustedIssuer};
pub use keys::{KeyChanges, KeyError, KeyRecord, KeyRole, KeySecret, Keys, NewKey};
pub use metrics::{CountGuard, Metrics};
pub use outgoing::OutgoingProxy;
pub use quota::{Quota, next_day};
pub use rate::{RateLimit, RateStatus};
pub use repeats::{RETRY_WINDOW_MS, RequestIdentity, appended_messages};
pub use service::{Service, ServiceOptions, ShutdownGuard, too_many_error};
pub use telemetry::{Span, Telemetry, TelemetryOptions, in_current_span};
