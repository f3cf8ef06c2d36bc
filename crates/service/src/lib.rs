//! What every door needs, whatever wire it speaks: who calls and what they may do, how often, what is written down of it, what
//! tells a repeated request from two, and the turns of assistants.
//!
//! Start with [`Service`]. No type of HTTP is here: a door reads its own wire, asks the service, and writes the answer or the
//! [`Error`]. What is called from here (an issuer's keys, a collector of traces) goes through `outgoing`.
//!
//! The service keeps nothing between two requests that another instance would need. It knows no assistant by name and no
//! backend at all.
#![warn(missing_docs)]

mod assistants;
mod audit;
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

pub use assistants::{AssistantNameError, Assistants, check_assistant_name};
pub use audit::{Act, AuditFinding, AuditLog, AuditRecord, AuditVerification};
pub use caller::{Caller, Credential, MayResume, Sender};
pub use error::{Error, ErrorKind, Result};
pub use guesses::{Guesses, Source};
pub use hex::hex;
#[doc(hidden)]
pub use jwt::count_keys;
pub use jwt::{IssuerError, TokenIssuer};
pub use keys::{KeyError, KeyRecord, KeyRole, KeySecret, Keys, NewKey};
pub use metrics::{Counted, Metrics};
pub use outgoing::OutgoingProxy;
pub use quota::Quota;
pub use rate::RateLimit;
pub use repeats::{Attempt, WINDOW_MS, placed};
pub use service::{Hold, Service, ServiceOptions, too_many};
pub use telemetry::{Span, Telemetry, TelemetryOptions, carried};
