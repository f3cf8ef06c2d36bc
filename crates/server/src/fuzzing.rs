//! Entry points of the fuzz targets: parsers that a plain HTTP request does not reach.

use crate::live::socket;

/// Parses a message from a WebSocket client. Returns whether the message is valid.
#[must_use]
pub fn reads_socket_message(text: &str) -> bool {
    socket::is_valid_message(text)
}

/// Parses a set of public keys (JWKS). Returns the number of keys that can verify tokens; `None` if it is not a valid set.
#[must_use]
pub fn count_keys(bytes: &[u8]) -> Option<usize> {
    threadkeep_service::count_keys(bytes)
}
