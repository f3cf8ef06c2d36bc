//! Carries out the effects that take time, in tasks beside the loop, so that no key waits for the store.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use threadkeep::{
    Bound, Memory, MessageQuery, MessageRef, MetadataFilter, OnCorrupt, Scope, SearchOptions, ThreadId, ThreadSelection,
};
use tokio::task::{AbortHandle, JoinSet};

use super::reader::{Page, Place};
use super::rows::{Found, HitRow, MessageRow, ThreadInfo, ThreadRow};
use super::state::{Effect, Event, Task, Timer};
use crate::commands::export::{self, Existing};
use crate::failure;
use crate::interrupt::Interrupt;
use crate::output::printable;
use crate::transcript::part_text;

/// The number of messages that are read at a time.
const MESSAGES: usize = 50;
/// The time without a key after which a search starts.
const SEARCH_DELAY: Duration = Duration::from_millis(120);
/// The time after which the selected item is shown beside the list.
const PREVIEW_DELAY: Duration = Duration::from_millis(60);

/// The running tasks.
pub(super) struct Worker {
    memory: Memory,
    scope: Scope,
    interrupt: Interrupt,
    tasks: JoinSet<Event>,
    search: Option<AbortHandle>,
    read: Option<AbortHandle>,
}

impl Worker {
    pub(super) fn new(memory: Memory, scope: Scope, interrupt: Interrupt) -> Self {
        Self { memory, scope, interrupt, tasks: JoinSet::new(), search: None, read: None }
    }

    /// Starts a task for an effect. A search replaces an earlier search, and a read an earlier read.
    pub(super) fn start(&mut self, effect: Effect) {
        let (memory, scope) = (self.memory.clone(), self.scope.clone());
        match effect {
            Effect::Start(timer) => {
                let delay = match timer {
                    Timer::Search(_) => SEARCH_DELAY,
                    Timer::Preview(_) => PREVIEW_DELAY,
                };
                self.tasks.spawn(async move {
                    tokio::time::sleep(delay).await;
                    Event::Elapsed(timer)
                });
            }
            Effect::ListThreads => {
                self.spawn(Task::List, async move { list_threads(&memory, &scope).await.map(Event::ThreadsListed) });
            }
            Effect::Search { generation, query, limit } => {
                let search = async move {
                    let found = search(&memory, &scope, query, limit).await?;
                    Ok(Event::SearchFinished { generation, found })
                };
                let started = self.spawn(Task::Search(generation), search);
                replace(&mut self.search, started);
            }
            Effect::Read { generation, thread, place, whole } => {
                let read = async move {
                    let page = read_page(&memory, &scope, thread, place, whole).await?;
                    Ok(Event::PageRead { generation, place, page })
                };
                let started = self.spawn(Task::Read(generation), read);
                replace(&mut self.read, started);
            }
            Effect::ReadText { thread, seq } => {
                self.spawn(Task::Copy, async move { read_text(&memory, &scope, thread, seq).await });
            }
            Effect::Export { thread, file } => {
                let interrupt = self.interrupt.clone();
                self.spawn(Task::Export, async move { export_thread(&memory, &scope, &interrupt, thread, file).await });
            }
            Effect::SetClipboard(_) | Effect::Quit => {}
        }
    }

    fn spawn(&mut self, task: Task, work: impl Future<Output = Result<Event>> + Send + 'static) -> AbortHandle {
        self.tasks.spawn(async move {
            work.await.unwrap_or_else(|error| Event::Failed { task, message: failure::sentence(&error) })
        })
    }

    /// Waits for the event of a task. `None` if no task is running.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            match self.tasks.join_next().await? {
                Ok(event) => return Some(event),
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // Replaced by another task.
                Err(_) => {}
            }
        }
    }
}

fn replace(running: &mut Option<AbortHandle>, started: AbortHandle) {
    if let Some(replaced) = running.replace(started) {
        replaced.abort();
    }
}

async fn list_threads(memory: &Memory, scope: &Scope) -> Result<Vec<ThreadRow>> {
    let threads = memory.list_by_last_message(scope, &MetadataFilter::default()).await?;
    Ok(threads.iter().map(|(thread, at)| ThreadRow::new(thread, *at)).collect())
}

async fn search(memory: &Memory, scope: &Scope, query: String, limit: usize) -> Result<Found> {
    let options = SearchOptions { limit, ..SearchOptions::default() };
    let results = memory.search(scope, &query, &options).await?;
    let mut threads: BTreeMap<ThreadId, ThreadInfo> = BTreeMap::new();
    let mut hits = Vec::new();
    for hit in &results.hits {
        let thread = match threads.entry(hit.thread) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match memory.find_thread(scope, hit.thread).await? {
                Some(thread) => entry.insert(ThreadInfo::new(&thread)),
                // Deleted in the meantime.
                None => continue,
            },
        };
        hits.push(HitRow::new(hit, thread.clone()));
    }
    Ok(Found::new(query, limit, &results, hits))
}

async fn read_page(memory: &Memory, scope: &Scope, thread: ThreadId, place: Place, whole: Option<u64>) -> Result<Page> {
    let query = match place {
        Place::First => MessageQuery::following(0, MESSAGES),
        Place::Last => MessageQuery::newest(MESSAGES),
        Place::Around(seq) => MessageQuery::following(seq.saturating_sub(MESSAGES as u64 / 2), MESSAGES),
        Place::Before(seq) => MessageQuery { before: Some(Bound::Seq(seq)), ..MessageQuery::newest(MESSAGES) },
        Place::After(seq) => MessageQuery::following(seq, MESSAGES),
    };
    let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..query };
    let page = memory.messages(scope, thread, &query).await?;
    let readable = page.messages.iter().map(|message| MessageRow::new(message, whole == Some(message.seq)));
    let unreadable = page.corrupt.iter().map(|row| MessageRow::unreadable(row.seq, &row.detail));
    let mut messages: Vec<MessageRow> = readable.chain(unreadable).collect();
    messages.sort_by_key(|row| row.seq);
    let starts_later = messages.first().is_some_and(|row| row.seq > 1);
    let (has_earlier, has_later) = match place {
        Place::First => (false, page.more),
        Place::Last => (page.more, false),
        Place::Around(_) | Place::After(_) => (starts_later, page.more),
        Place::Before(_) => (page.more, true),
    };
    Ok(Page { messages, has_earlier, has_later })
}

async fn read_text(memory: &Memory, scope: &Scope, thread: ThreadId, seq: u64) -> Result<Event> {
    let found = memory.find_messages(scope, thread, &[MessageRef::Seq(seq)]).await?;
    let message = found.first().ok_or_else(|| crate::thread_name::message_not_found(&format!("#{seq}")))?;
    let text = match message.plain_text() {
        text if !text.trim().is_empty() => text.into_owned(),
        _ => message.content.parts.iter().map(part_text).collect::<Vec<_>>().join("\n"),
    };
    // The text may be pasted into a shell.
    Ok(Event::TextRead { text: printable(&text), name: format!("message #{seq}") })
}

async fn export_thread(
    memory: &Memory,
    scope: &Scope,
    interrupt: &Interrupt,
    thread: ThreadId,
    file: PathBuf,
) -> Result<Event> {
    let file = with_home(&file);
    let lines = memory.export(scope, ThreadSelection::Thread(thread));
    let report = export::write_file(interrupt, vec![lines], &file, Existing::Keep, |_| {}).await?;
    Ok(Event::Exported { file, messages: report.messages(), unreadable: report.unreadable() })
}

/// Replaces `~` at the start of a path, as a shell does.
fn with_home(path: &Path) -> PathBuf {
    let home = path.strip_prefix("~").ok().zip(std::env::home_dir());
    home.map_or_else(|| path.to_owned(), |(rest, home)| home.join(rest))
}
