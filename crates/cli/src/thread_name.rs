//! Finds threads by id, by key, or by an unambiguous prefix of an id.

use anyhow::Result;
use threadkeep::core::{Kind, StoreExt, limits};
use threadkeep::{Memory, Owner, Scope, StoreError, Thread, ThreadId, ThreadKey, ThreadOrder, ThreadQuery};

use crate::failure::Failure;
use crate::output::printable_line;
use crate::table::cut;

/// The length of an id prefix that is unique in practice: it contains the milliseconds and the first random characters.
pub(crate) const SHORT_ID_CHARS: usize = 18;
/// The minimum length of an id prefix.
const MIN_PREFIX_CHARS: usize = 4;
/// The maximum number of threads that are listed for an ambiguous prefix.
const MAX_LISTED: usize = 5;
/// The prefix of the keys of imported threads.
const IMPORT_KEY: &str = "import:";

/// Returns the thread with this id, key or id prefix.
///
/// A full id takes precedence over a key, and a key over an id prefix. Keys of the caller's threads take precedence over
/// keys of shared threads.
///
/// # Errors
/// No thread has this name, or several ids start with it.
pub(crate) async fn get(memory: &Memory, scope: &Scope, name: &str) -> Result<Thread> {
    if let Some(thread) = find(memory, scope, name).await? {
        return Ok(thread);
    }
    let shown = cut(&printable_line(name), 60);
    let failure = Failure::user_error(format!("thread `{shown}` not found"));
    Err(failure
        .hint("`threadkeep threads` lists threads; specify one by its id, a prefix of the id, or its key")
        .into())
}

/// Like [`get`], but returns `None` if no thread has the name.
pub(crate) async fn find(memory: &Memory, scope: &Scope, name: &str) -> Result<Option<Thread>> {
    if let Ok(id) = name.parse::<ThreadId>()
        && let Some(thread) = memory.find_thread(scope, id).await?
    {
        return Ok(Some(thread));
    }
    if let Ok(key) = ThreadKey::new(name) {
        if let Some(thread) = memory.find_thread_by_key(scope, name).await? {
            return Ok(Some(thread));
        }
        let shared = threadkeep::core::ThreadRef::Key(Owner::Tenant, key);
        if let Some(thread) = memory.backend().store.find_thread(scope, &shared, memory.now()).await? {
            return Ok(Some(thread));
        }
    }
    if !is_id_prefix(name) {
        return Ok(None);
    }
    let mut found = find_by_prefix(memory, scope, &name.to_ascii_lowercase()).await?;
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(ambiguous(name, &found).into()),
    }
}

fn is_id_prefix(name: &str) -> bool {
    let is_hexadecimal = name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (MIN_PREFIX_CHARS..36).contains(&name.len()) && is_hexadecimal
}

async fn find_by_prefix(memory: &Memory, scope: &Scope, prefix: &str) -> Result<Vec<Thread>, StoreError> {
    let mut query = ThreadQuery::new(ThreadOrder::Created, limits::PAGE);
    let mut found = Vec::new();
    loop {
        let page = memory.backend().store.list_threads(scope, &query, memory.now()).await?;
        found.extend(page.threads.into_iter().filter(|thread| thread.id.to_string().starts_with(prefix)));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

fn ambiguous(name: &str, found: &[Thread]) -> Failure {
    let named = found.iter().take(MAX_LISTED).map(|thread| format!("\n  {}  {}", thread.id, cut(&title(thread), 50)));
    let more = found.len().saturating_sub(MAX_LISTED);
    let rest = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let message = format!("{} thread ids start with `{name}`:{}{rest}", found.len(), named.collect::<String>());
    Failure::user_error(message).hint("type more characters of the id")
}

/// Returns the title of a thread, or otherwise its key, or otherwise a placeholder.
pub(crate) fn title(thread: &Thread) -> String {
    let key = thread.key.as_ref().map(ThreadKey::as_str);
    printable_line(thread.title.as_deref().or(key).unwrap_or("(no title)"))
}

/// Returns where a thread comes from: the format of an import, or the beginning of its key, such as `slack`. Empty if unknown.
pub(crate) fn source(thread: &Thread) -> String {
    let key = thread.key.as_ref().map_or("", ThreadKey::as_str);
    let source = key.strip_prefix(IMPORT_KEY).unwrap_or(key).split_once(':').map_or("", |(source, _)| source);
    printable_line(source)
}

/// Describes a thread that was imported from a conversation with branches: whether it is a fork, and whether it is the
/// current branch in the source.
pub(crate) fn branch(thread: &Thread) -> Option<&'static str> {
    let mark = thread.metadata.get("branch")?;
    let is_current = mark.get("current")?.as_bool()?;
    match (mark.get("forked_from").is_some(), is_current) {
        (true, true) => Some("fork, current"),
        (true, false) => Some("fork"),
        (false, true) => Some("current"),
        (false, false) => Some("not current"),
    }
}

/// Describes the position at which a fork starts.
pub(crate) fn forked_from(thread: &Thread) -> Option<String> {
    let from = thread.metadata.get("branch")?.get("forked_from")?;
    let id: ThreadId = from.get("thread")?.as_str()?.parse().ok()?;
    Some(format!("forked from {id} after #{}", from.get("seq")?.as_u64()?))
}

/// Returns a prefix of an id, for display in narrow columns.
pub(crate) fn short(thread: ThreadId) -> String {
    thread.to_string().chars().take(SHORT_ID_CHARS).collect()
}

/// Returns the error for a message that does not exist in its thread.
pub(crate) fn message_not_found(name: &str) -> anyhow::Error {
    let failure = Failure::user_error(format!("{} `{}` not found in the thread", Kind::Message, printable_line(name)));
    failure.hint("`threadkeep show THREAD` lists the messages with their positions").into()
}
