//! Cursors of lists: opaque, and good only for the list and the scope that they were given for.
//!
//! The mark is no secret. It keeps a cursor of one tenant, user or list from being taken for another's, where it would
//! name some other place; what a request may see is decided by its scope alone.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use threadkeep::Scope;

use crate::error::ApiError;

const MARK_BYTES: usize = 8;

/// Wraps what a store or a wire calls the next place.
pub(crate) fn give(scope: &Scope, list: &str, place: &str) -> String {
    let mut bytes = mark(scope, list).to_vec();
    bytes.extend_from_slice(place.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Takes a cursor back. One of another list or scope answers as one that nobody gave.
pub(crate) fn take(scope: &Scope, list: &str, param: &str, cursor: &str) -> Result<String, ApiError> {
    let unknown = || ApiError::invalid(param, "not a cursor of this list").code("invalid_cursor");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| unknown())?;
    let (given, place) = bytes.split_at_checked(MARK_BYTES).ok_or_else(unknown)?;
    if given != mark(scope, list) {
        return Err(unknown());
    }
    String::from_utf8(place.to_vec()).map_err(|_| unknown())
}

fn mark(scope: &Scope, list: &str) -> [u8; MARK_BYTES] {
    let (tenant, user) = match scope {
        Scope::Tenant(tenant) => (tenant, None),
        Scope::User(tenant, user) => (tenant, Some(user)),
    };
    let named = format!("{tenant}\n{}\n{list}", user.map_or("", threadkeep::UserId::as_str));
    let digest = Sha256::digest(named.as_bytes());
    let mut mark = [0; MARK_BYTES];
    mark.copy_from_slice(&digest[..MARK_BYTES]);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_list_and_scope_only() {
        let (ana, tenant) = (Scope::user("acme", "ana").unwrap(), Scope::tenant("acme").unwrap());
        let cursor = give(&ana, "threads", "c17");
        assert_eq!(take(&ana, "threads", "after", &cursor).unwrap(), "c17");
        for (scope, list) in [(&tenant, "threads"), (&ana, "records"), (&Scope::user("b", "ana").unwrap(), "threads")]
        {
            let refused = take(scope, list, "after", &cursor).unwrap_err();
            assert_eq!((refused.code, refused.param.as_deref()), ("invalid_cursor", Some("after")));
        }
        assert_eq!(take(&ana, "threads", "after", "garbage").unwrap_err().code, "invalid_cursor");
    }
}
