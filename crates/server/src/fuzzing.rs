//! What the fuzz targets call: parsers that no request reaches without a socket of its own, or a key set.

use crate::live::socket;

/// Reads a message of a WebSocket's client, and says whether it was understood.
#[must_use]
pub fn reads_socket_message(text: &str) -> bool {
    socket::is_valid_message(text)
}

/// Reads a set of public keys (JWKS), and says how many sign tokens.
#[must_use]
pub fn count_keys(bytes: &[u8]) -> Option<usize> {
    threadkeep_service::count_keys(bytes)
}
