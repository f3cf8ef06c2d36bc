//! Converts Redis errors into store errors.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use threadkeep_core::{Reason, StoreError};

use crate::options::invalid;

/// Whether the same call may succeed soon: during a failover, while slots move, or after a lost connection.
pub(crate) fn is_transient(error: &RedisError) -> bool {
    if is_about_certificates(error) {
        return false;
    }
    let is_connection = error.is_io_error() || error.is_connection_dropped() || error.is_timeout();
    is_connection
        || matches!(
            error.kind(),
            ErrorKind::ClusterConnectionNotFound
                | ErrorKind::Server(
                    ServerErrorKind::Moved
                        | ServerErrorKind::Ask
                        | ServerErrorKind::TryAgain
                        | ServerErrorKind::ClusterDown
                        | ServerErrorKind::BusyLoading
                        | ServerErrorKind::MasterDown
                        | ServerErrorKind::ReadOnly
                )
        )
        || matches!(error.code(), Some("BUSY" | "NOREPLICAS" | "UNBLOCKED"))
}

/// Whether one side of a TLS connection rejected the other side's certificate.
fn is_about_certificates(error: &RedisError) -> bool {
    error.is_io_error() && error.to_string().to_ascii_lowercase().contains("certificate")
}

/// Whether a call that failed with this error may have been executed.
pub(crate) fn may_be_applied(error: &RedisError) -> bool {
    (error.is_io_error() || error.is_connection_dropped() || error.is_timeout()) && !error.is_connection_refusal()
}

/// Whether the server does not have the functions.
pub(crate) fn is_missing_function(error: &RedisError) -> bool {
    let text = error.to_string();
    text.contains("Function not found")
}

/// Converts an error. `maybe_applied` is for writes whose outcome is unknown.
pub(crate) fn translate(error: RedisError, maybe_applied: bool) -> StoreError {
    let reason = match error.kind() {
        ErrorKind::AuthenticationFailed => return invalid("the server rejected the user or the password"),
        ErrorKind::InvalidClientConfig => return invalid("not a valid Redis address"),
        ErrorKind::Server(ServerErrorKind::NoPerm) => {
            return invalid(format!("the user lacks a permission: {}", detail(&error)));
        }
        ErrorKind::Server(ServerErrorKind::ReadOnly) => Reason::ReadOnly,
        ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::TryAgain) => Reason::Busy,
        _ if is_about_certificates(&error) => {
            return invalid(format!(
                "a certificate was rejected: {error}; cacert names the root certificates that are accepted, cert and key the \
                 certificate of the client"
            ));
        }
        _ if error.is_timeout() => Reason::Timeout,
        _ if is_transient(&error) => Reason::Disconnected,
        _ => match error.code() {
            Some("NOAUTH" | "WRONGPASS") => return invalid("the server rejected the user or the password"),
            Some("OOM") => Reason::Full,
            Some("MISCONF") => Reason::Io,
            Some("WRONGTYPE") => return StoreError::corrupt("key", detail(&error)),
            _ if detail(&error).contains("OOM") => Reason::Full,
            _ => Reason::Io,
        },
    };
    StoreError::Unavailable { reason, maybe_applied, source: Some(Box::new(error)) }
}

fn detail(error: &RedisError) -> String {
    error.detail().map_or_else(|| error.to_string(), str::to_owned)
}
