//! Cursors of lists. A cursor is opaque, and valid only for the list and the scope for which it was created.
//!
//! A cursor begins with a checksum of its scope and list, so that it is rejected for any other scope or list, where it would refer
//! to another position. The checksum is not a secret: access control depends on the scope of the request alone.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use threadkeep::Scope;

use crate::error::ApiError;

const CHECKSUM_BYTES: usize = 8;

/// Encodes a position in a list as a cursor.
pub(crate) fn encode(scope: &Scope, list: &str, position: &str) -> String {
    let mut bytes = checksum(scope, list).to_vec();
    bytes.extend_from_slice(position.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a cursor and returns the position. A cursor of another list or scope results in the same error as a malformed cursor;
/// the error names `param`.
pub(crate) fn decode(scope: &Scope, list: &str, param: &str, cursor: &str) -> Result<String, ApiError> {
    let invalid_cursor_error = || ApiError::invalid(param, "invalid cursor for this list").code("invalid_cursor");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid_cursor_error())?;
    let (actual, position) = bytes.split_at_checked(CHECKSUM_BYTES).ok_or_else(invalid_cursor_error)?;
    if actual != checksum(scope, list) {
        return Err(invalid_cursor_error());
    }
    String::from_utf8(position.to_vec()).map_err(|_| invalid_cursor_error())
}

fn checksum(scope: &Scope, list: &str) -> [u8; CHECKSUM_BYTES] {
    let (tenant, user) = match scope {
        Scope::Tenant(tenant) => (tenant, None),
        Scope::User(tenant, user) => (tenant, Some(user)),
    };
    let identity = format!("{tenant}\n{}\n{list}", user.map_or("", threadkeep::UserId::as_str));
    let digest = Sha256::digest(identity.as_bytes());
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&digest[..CHECKSUM_BYTES]);
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_valid_only_for_their_list_and_scope() {
        let (ana, tenant) = (Scope::user("acme", "ana").unwrap(), Scope::tenant("acme").unwrap());
        let cursor = encode(&ana, "threads", "c17");
        assert_eq!(decode(&ana, "threads", "after", &cursor).unwrap(), "c17");
        for (scope, list) in [(&tenant, "threads"), (&ana, "records"), (&Scope::user("b", "ana").unwrap(), "threads")] {
            let error = decode(scope, list, "after", &cursor).unwrap_err();
            assert_eq!((error.code, error.param.as_deref()), ("invalid_cursor", Some("after")));
        }
        assert_eq!(decode(&ana, "threads", "after", "garbage").unwrap_err().code, "invalid_cursor");
    }
}
