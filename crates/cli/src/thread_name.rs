//! Which thread is meant: by id, by key, or by the beginning of an id that no other thread has.

use anyhow::Result;
use threadkeep::core::{Kind, StoreExt, limits};
use threadkeep::{Memory, Owner, Scope, StoreError, Thread, ThreadId, ThreadKey, ThreadOrder, ThreadQuery};

use crate::failure::Failure;
use crate::output::printable_line;
use crate::table::cut;

/// Characters of an id that tell it from any other in practice: its milliseconds and the first random ones.
pub(crate) const SHORT_ID: usize = 18;
/// Fewer characters would be a guess.
const PREFIX_CHARS: usize = 4;
/// Threads that are named where a beginning fits several.
const NAMED: usize = 5;

/// Gets the thread that a person means.
///
/// A whole id comes first, then a key (of the caller's threads, then of shared ones), then the beginning of an id.
pub(crate) async fn get(memory: &Memory, scope: &Scope, name: &str) -> Result<Thread> {
    if let Some(thread) = find(memory, scope, name).await? {
        return Ok(thread);
    }
    let shown = cut(&printable_line(name), 60);
    let failure = Failure::yours(format!("there is no thread `{shown}`"));
    Err(failure.hint("`threadkeep threads` lists the threads that you can name by id, beginning of id, or key").into())
}

/// Finds the thread that a person means, as [`get`].
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
        let shared = threadkeep::core::ThreadName::Key(Owner::Tenant, key);
        if let Some(thread) = memory.backend().store.find_thread(scope, &shared, memory.now()).await? {
            return Ok(Some(thread));
        }
    }
    if !is_beginning(name) {
        return Ok(None);
    }
    let mut found = find_by_beginning(memory, scope, &name.to_ascii_lowercase()).await?;
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(ambiguous(name, &found).into()),
    }
}

fn is_beginning(name: &str) -> bool {
    let is_hexadecimal = name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (PREFIX_CHARS..36).contains(&name.len()) && is_hexadecimal
}

async fn find_by_beginning(memory: &Memory, scope: &Scope, beginning: &str) -> Result<Vec<Thread>, StoreError> {
    let mut query = ThreadQuery::new(ThreadOrder::Created, limits::PAGE);
    let mut found = Vec::new();
    loop {
        let page = memory.backend().store.list_threads(scope, &query, memory.now()).await?;
        found.extend(page.threads.into_iter().filter(|thread| thread.id.to_string().starts_with(beginning)));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

fn ambiguous(name: &str, found: &[Thread]) -> Failure {
    let named = found.iter().take(NAMED).map(|thread| format!("\n  {}  {}", thread.id, cut(&title(thread), 50)));
    let more = found.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let what = format!("{} threads begin with `{name}`:{}{rest}", found.len(), named.collect::<String>());
    Failure::yours(what).hint("type more of the id")
}

/// What a person calls a thread: its title, else its key, else nothing.
pub(crate) fn title(thread: &Thread) -> String {
    let key = thread.key.as_ref().map(ThreadKey::as_str);
    printable_line(thread.title.as_deref().or(key).unwrap_or("(no title)"))
}

/// What a thread of an imported conversation with branches is: a fork, or the first one; and whether it is the branch that its
/// source shows.
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

/// Where a fork begins, for a person.
pub(crate) fn forked_from(thread: &Thread) -> Option<String> {
    let from = thread.metadata.get("branch")?.get("forked_from")?;
    let id: ThreadId = from.get("thread")?.as_str()?.parse().ok()?;
    Some(format!("forked from {id} after #{}", from.get("seq")?.as_u64()?))
}

/// The beginning of an id that stands for it where there is little room.
pub(crate) fn short(thread: ThreadId) -> String {
    thread.to_string().chars().take(SHORT_ID).collect()
}

/// The error that a thread is not there, for commands that look for more than a thread.
pub(crate) fn no_message(name: &str) -> anyhow::Error {
    let failure = Failure::yours(format!("{} `{}` not found in the thread", Kind::Message, printable_line(name)));
    failure.hint("`threadkeep show THREAD` shows each message's position").into()
}
