//! Writers that record which messages were acknowledged, and a comparison of these with what is stored.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use threadkeep_core::{Message, Scope, StoreError, ThreadId, ThreadOrder, ThreadQuery};
use threadkeep_memory::{AppendOptions, Draft, Memory, MemoryError};
use tokio::task::JoinHandle;

/// How long a test waits for progress.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
/// The number of messages after which a writer opens another thread.
const MESSAGES_PER_THREAD: usize = 20;
/// How long a writer pauses after each message, to limit the number of messages to compare.
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats a call while the store is unavailable, which it may be shortly after a fault.
///
/// The deadline allows for busy machines. When it passes, the panic contains the last error.
pub(crate) async fn eventually<T, E, F>(call: impl Fn() -> F) -> T
where
    E: Into<MemoryError>,
    F: Future<Output = Result<T, E>>,
{
    let began = Instant::now();
    loop {
        match call().await.map_err(E::into) {
            Ok(value) => return value,
            Err(error @ MemoryError::Store(StoreError::Unavailable { .. })) => {
                assert!(began.elapsed() < TIMEOUT, "still unavailable: {error:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

pub(crate) fn ana() -> &'static Scope {
    static ANA: LazyLock<Scope> = LazyLock::new(|| Scope::user("acme", "ana").unwrap());
    &ANA
}

/// How often faults are repeated, if the environment sets it. In that case, writers do not pause.
pub(crate) fn requested_times() -> Option<usize> {
    std::env::var("THREADKEEP_FAULTS").ok().and_then(|times| times.parse().ok())
}

/// A thread that a writer opened, and the acknowledged texts in order.
#[derive(Debug)]
pub(crate) struct Written {
    key: String,
    thread: ThreadId,
    acknowledged: Vec<String>,
}

#[derive(Default)]
struct State {
    is_over: AtomicBool,
    acknowledged: AtomicU64,
    failures: AtomicU64,
    /// The longest call, in milliseconds.
    longest_ms: AtomicU64,
}

/// Running writers.
pub(crate) struct Load {
    state: Arc<State>,
    writers: Vec<JoinHandle<Vec<Written>>>,
}

impl Load {
    /// Starts writers. Each repeats a failed call with the same key until it is acknowledged.
    pub(crate) fn start(memory: &Memory, writers: usize) -> Self {
        let state = Arc::<State>::default();
        let writers = (0..writers).map(|writer| tokio::spawn(write(memory.clone(), writer, state.clone())));
        Self { writers: writers.collect(), state }
    }

    /// Waits until the given number of further messages has been acknowledged.
    pub(crate) async fn progress(&self, messages: u64) {
        let (from, began) = (self.state.acknowledged.load(Ordering::SeqCst), Instant::now());
        while self.state.acknowledged.load(Ordering::SeqCst) < from + messages {
            assert!(began.elapsed() < TIMEOUT, "the writers make no progress");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn failures(&self) -> u64 {
        self.state.failures.load(Ordering::SeqCst)
    }

    pub(crate) fn longest_call(&self) -> Duration {
        Duration::from_millis(self.state.longest_ms.load(Ordering::SeqCst))
    }

    /// Stops the writers.
    pub(crate) async fn finish(self) -> Vec<Written> {
        self.state.is_over.store(true, Ordering::SeqCst);
        let mut written = Vec::new();
        for writer in self.writers {
            written.extend(writer.await.unwrap());
        }
        written
    }
}

async fn write(memory: Memory, writer: usize, state: Arc<State>) -> Vec<Written> {
    let (mut threads, mut number) = (Vec::<Written>::new(), 0);
    let pause = requested_times().map_or(PAUSE, |_| Duration::ZERO);
    // A call in progress is completed.
    while !state.is_over.load(Ordering::SeqCst) {
        if threads.len() * MESSAGES_PER_THREAD <= number {
            let key = format!("test:{writer}-{number}");
            let Some(opened) = state.note(memory.open_by_key(ana(), &key)).await else { continue };
            threads.push(Written { key, thread: opened.thread.id, acknowledged: Vec::new() });
        }
        let Some(Written { thread, acknowledged, .. }) = threads.last_mut() else { continue };
        let text = format!("{writer} {number}");
        // The same key makes repeating the call safe.
        let options = AppendOptions { idempotency_key: Some(text.clone()), ..AppendOptions::default() };
        let draft = vec![Draft::user(&text)];
        if state.note(memory.append_all(ana(), *thread, draft, &options)).await.is_some() {
            acknowledged.push(text);
            state.acknowledged.fetch_add(1, Ordering::SeqCst);
            number += 1;
            tokio::time::sleep(pause).await;
        }
    }
    threads
}

impl State {
    /// Makes a call and updates the statistics. Returns its result, or `None` if it failed.
    async fn note<T, E>(&self, call: impl Future<Output = Result<T, E>>) -> Option<T> {
        let began = Instant::now();
        let result = call.await;
        let took = u64::try_from(began.elapsed().as_millis()).unwrap();
        self.longest_ms.fetch_max(took, Ordering::SeqCst);
        self.failures.fetch_add(u64::from(result.is_err()), Ordering::SeqCst);
        result.ok()
    }
}

impl Written {
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn thread(&self) -> ThreadId {
        self.thread
    }

    pub(crate) fn acknowledged(&self) -> &[String] {
        &self.acknowledged
    }
}

/// What became of acknowledged writes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    pub(crate) acknowledged: usize,
    pub(crate) lost: usize,
    pub(crate) doubled: usize,
    pub(crate) out_of_order: usize,
    /// Threads that are not listed, or not found by their key.
    pub(crate) hidden_threads: usize,
}

/// Compares what was acknowledged with what is stored.
pub(crate) async fn compare(memory: &Memory, written: &[Written]) -> Losses {
    let listed = list_threads(memory).await;
    let mut losses = Losses::default();
    for Written { key, thread, acknowledged } in written {
        let found = eventually(|| memory.find_thread_by_key(ana(), key)).await.map(|found| found.id);
        losses.hidden_threads += usize::from(found != Some(*thread) || !listed.contains(thread));
        losses.acknowledged += acknowledged.len();
        // More messages than a thread can have.
        let limit = 10 * MESSAGES_PER_THREAD;
        let messages = newest(memory, *thread, limit).await;
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, message) in messages.iter().enumerate() {
            let first = places.insert(message.plain_text().into_owned(), place);
            losses.doubled += usize::from(first.is_some());
        }
        let found: Vec<usize> = acknowledged.iter().filter_map(|text| places.get(text).copied()).collect();
        losses.lost += acknowledged.len() - found.len();
        losses.out_of_order += usize::from(!found.is_sorted());
    }
    losses
}

/// Returns the newest messages of a thread; none if it was lost.
async fn newest(memory: &Memory, thread: ThreadId, limit: usize) -> Vec<Message> {
    let found = eventually(|| async {
        match memory.newest(ana(), thread, limit).await {
            Err(MemoryError::Store(StoreError::NotFound(_))) => Ok(None),
            result => result.map(Some),
        }
    });
    found.await.unwrap_or_default()
}

async fn list_threads(memory: &Memory) -> HashSet<ThreadId> {
    let (mut listed, mut after) = (HashSet::new(), None);
    loop {
        let query = ThreadQuery { after, ..ThreadQuery::new(ThreadOrder::Created, 500) };
        let page = eventually(|| memory.list_threads(ana(), &query)).await;
        listed.extend(page.threads.iter().map(|thread| thread.id));
        after = page.next;
        if after.is_none() {
            return listed;
        }
    }
}
