//! The names of a thread: its id, its conversation id, or its key.

use axum::http::HeaderMap;
use threadkeep::core::{StoreExt, ThreadRef};
use threadkeep::{Owner, Scope, Thread, ThreadId, ThreadKey};

use crate::app::App;
use crate::error::{ApiError, Result};

/// The header that selects the thread of a request to the OpenAI API. In a response, it contains the thread's id.
pub(crate) const THREAD_HEADER: &str = "threadkeep-thread";
/// The prefix of the ids of conversations. The OpenAI API represents each thread as a conversation.
pub(crate) const CONVERSATION_PREFIX: &str = "conv_";
/// The number of digits of a conversation id.
const DIGITS: usize = 32;

/// Returns the thread name in [`THREAD_HEADER`]; `None` if the header is missing.
pub(crate) fn in_header(headers: &HeaderMap) -> Option<&str> {
    // Header values are bytes; keys with non-ASCII characters are sent as UTF-8.
    headers.get(THREAD_HEADER).map(|value| std::str::from_utf8(value.as_bytes()).unwrap_or_default())
}

/// Reads the id of a thread, or of its conversation; `None` if the name is neither.
pub(crate) fn parse_id(name: &str) -> Option<ThreadId> {
    match name.strip_prefix(CONVERSATION_PREFIX) {
        Some(digits) if digits.len() == DIGITS => digits.parse().ok(),
        Some(_) => None,
        None => name.parse().ok(),
    }
}

/// Returns the id of the thread with this name. An id is returned without a look-up, so the thread may not exist.
///
/// # Errors
/// `not_found` if the name is neither an id nor the key of a thread that the caller owns or that is shared in the tenant; errors
/// from the store.
pub(crate) async fn resolve(app: &App, scope: &Scope, name: &str) -> Result<ThreadId> {
    match parse_id(name) {
        Some(id) => Ok(id),
        None => Ok(find_by_key(app, scope, name).await?.ok_or_else(|| ApiError::not_found("thread"))?.id),
    }
}

/// Like [`resolve`], but the thread must exist. Returns `None` if there is no name.
///
/// # Errors
/// `not_found` if there is no such thread; errors from the store.
pub(crate) async fn resolve_existing(app: &App, scope: &Scope, name: Option<&str>) -> Result<Option<ThreadId>> {
    let Some(name) = name else { return Ok(None) };
    let id = resolve(app, scope, name).await?;
    Ok(Some(app.memory().get_thread(scope, id).await?.id))
}

/// Like [`resolve`], but creates a thread with the key if there is none.
///
/// # Errors
/// `invalid_request` or `limit_exceeded` if the name is neither an id nor a valid key; errors from the store.
pub(crate) async fn resolve_or_open(app: &App, scope: &Scope, name: &str) -> Result<ThreadId> {
    if let Some(id) = parse_id(name) {
        return Ok(id);
    }
    if name.starts_with(CONVERSATION_PREFIX) {
        return Err(ApiError::not_found("thread"));
    }
    match find_by_key(app, scope, name).await? {
        Some(thread) => Ok(thread.id),
        None => Ok(app.memory().open_by_key(scope, name).await?.thread.id),
    }
}

/// Finds the thread with this key among the threads of the caller, or else among those that the users of the tenant share.
async fn find_by_key(app: &App, scope: &Scope, key: &str) -> Result<Option<Thread>> {
    // No thread has an invalid key.
    let Ok(key) = ThreadKey::new(key) else { return Ok(None) };
    let (memory, owner) = (app.memory(), scope.default_owner());
    let is_user = owner != Owner::Tenant;
    let store = &memory.backend().store;
    let own = store.find_thread(scope, &ThreadRef::Key(owner, key.clone()), memory.now()).await?;
    match own {
        None if is_user => Ok(store.find_thread(scope, &ThreadRef::Key(Owner::Tenant, key), memory.now()).await?),
        found => Ok(found),
    }
}
