//! The engine (Threadkeep), called as an application calls it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use threadkeep_core::{Bound, MessageQuery, Role, Scope, ThreadId, limits};
use threadkeep_memory::{AppendOptions, Draft, Memory, SearchOptions};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
use tokio::sync::Mutex;

/// The engine on top of a store, with the scope of one user.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(crate) memory: Memory,
    pub(crate) scope: Scope,
    pub(crate) path: Option<PathBuf>,
    threads: Arc<Mutex<HashMap<String, ThreadId>>>,
}

/// Returns message `index` of a workload. Its text is from the pool; the user's messages have even indexes.
pub(crate) fn draft(pool: &[String], index: u64) -> Draft {
    let text = pool[(index % pool.len() as u64) as usize].as_str();
    if index.is_multiple_of(2) { Draft::user(text) } else { Draft::assistant(text) }
}

/// Measurements of the turns that writers appended.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnTimings {
    pub(crate) elapsed: f64,
    /// Latency of each turn, in seconds.
    pub(crate) latencies: Vec<f64>,
    pub(crate) per_writer: Vec<u64>,
    pub(crate) errors: u64,
}

impl TurnTimings {
    pub(crate) fn count(&self) -> u64 {
        self.per_writer.iter().sum()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.count() as f64 / self.elapsed
    }
}

/// How long and how often a measurement is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(crate) seconds: f64,
    pub(crate) at_least: usize,
    pub(crate) at_most: usize,
}

impl Repeat {
    pub(crate) fn should_continue(self, done: usize, began: Instant) -> bool {
        done < self.at_least || (done < self.at_most && began.elapsed().as_secs_f64() < self.seconds)
    }
}

impl Engine {
    pub(crate) fn sqlite(path: &Path) -> Result<Self> {
        Self::sqlite_with(path, SqliteOptions::default())
    }

    pub(crate) fn sqlite_with(path: &Path, options: SqliteOptions) -> Result<Self> {
        let store = SqliteStore::open(path, options)?;
        Ok(Self::new(Memory::new(store.backend()), Some(path.to_owned())))
    }

    pub(crate) fn in_memory() -> Self {
        Self::new(Memory::new(threadkeep_store_memory::MemoryStore::open()), None)
    }

    pub(crate) fn new(memory: Memory, path: Option<PathBuf>) -> Self {
        let scope = Scope::user("bench", "user").expect("both names are valid");
        Self { memory, scope, path, threads: Arc::default() }
    }

    /// Returns the same engine for another user.
    pub(crate) fn for_user(&self, user: &str) -> Result<Self> {
        let scope = Scope::user("bench", user)?;
        Ok(Self { scope, threads: Arc::default(), ..self.clone() })
    }

    pub(crate) async fn thread(&self, name: &str) -> Result<ThreadId> {
        let mut threads = self.threads.lock().await;
        if let Some(id) = threads.get(name) {
            return Ok(*id);
        }
        let id = self.memory.open_by_key(&self.scope, name).await?.thread.id;
        threads.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Fills a thread with commits of the maximum size.
    pub(crate) async fn seed(&self, thread: &str, drafts: impl Iterator<Item = Draft>) -> Result<()> {
        let id = self.thread(thread).await?;
        let mut drafts = drafts.peekable();
        while drafts.peek().is_some() {
            let chunk: Vec<_> = drafts.by_ref().take(limits::COMMIT_MESSAGES).collect();
            self.memory.append_all(&self.scope, id, chunk, &AppendOptions::default()).await?;
        }
        Ok(())
    }

    /// Appends turns with one writer per thread, until `seconds` have passed or each writer has appended `max_turns`.
    pub(crate) async fn append(
        &self,
        threads: &[String],
        pool: &Arc<Vec<String>>,
        start: u64,
        seconds: f64,
        max_turns: Option<u64>,
    ) -> Result<TurnTimings> {
        let mut ids = Vec::with_capacity(threads.len());
        for thread in threads {
            ids.push(self.thread(thread).await?);
        }
        let began = Instant::now();
        let deadline = began + Duration::from_secs_f64(seconds);
        let max_turns = max_turns.unwrap_or(u64::MAX);
        let writers = ids.into_iter().map(|id| {
            let writer = Writer { engine: self.clone(), id, pool: Arc::clone(pool), start };
            tokio::spawn(writer.write(deadline, max_turns))
        });
        let writers: Vec<_> = writers.collect();
        let mut turns = TurnTimings::default();
        for writer in writers {
            let (latencies, errors) = writer.await.context("a writer ended early")?;
            turns.per_writer.push(latencies.len() as u64);
            turns.latencies.extend(latencies);
            turns.errors += errors;
        }
        turns.elapsed = began.elapsed().as_secs_f64();
        Ok(turns)
    }

    pub(crate) async fn load(&self, thread: &str, count: usize, repeat: Repeat) -> Result<(Vec<String>, Vec<f64>)> {
        let id = self.thread(thread).await?;
        let (mut texts, mut latencies) = (Vec::new(), Vec::new());
        let began = Instant::now();
        while repeat.should_continue(latencies.len(), began) {
            let call_began = Instant::now();
            let messages = self.memory.newest(&self.scope, id, count).await?;
            latencies.push(call_began.elapsed().as_secs_f64());
            if texts.is_empty() {
                texts = messages.iter().map(|message| message.plain_text().into_owned()).collect();
            }
        }
        Ok((texts, latencies))
    }

    /// Pages through a thread from its end. Returns seconds, messages and pages.
    pub(crate) async fn page(&self, thread: &str, size: usize) -> Result<(f64, u64, u64)> {
        let id = self.thread(thread).await?;
        let began = Instant::now();
        let (mut count, mut pages, mut query) = (0, 0, MessageQuery::newest(size));
        loop {
            let page = self.memory.messages(&self.scope, id, &query).await?;
            count += page.messages.len() as u64;
            pages += 1;
            match page.messages.first() {
                Some(first) if page.more => query.before = Some(Bound::Seq(first.seq)),
                _ => return Ok((began.elapsed().as_secs_f64(), count, pages)),
            }
        }
    }

    /// Deletes a thread. Returns seconds and the number of messages that can still be read.
    pub(crate) async fn delete(&self, thread: &str) -> Result<(f64, usize)> {
        let id = self.thread(thread).await?;
        let began = Instant::now();
        self.memory.delete_thread(&self.scope, id).await?;
        let seconds = began.elapsed().as_secs_f64();
        self.threads.lock().await.remove(thread);
        let remaining = match self.memory.newest(&self.scope, id, limits::PAGE).await {
            Ok(messages) => messages.len(),
            Err(error) if error.is_not_found() => 0,
            Err(error) => return Err(error.into()),
        };
        Ok((seconds, remaining))
    }

    pub(crate) async fn search(&self, term: &str, limit: usize, repeat: Repeat) -> Result<(usize, Vec<f64>)> {
        self.settle().await?;
        let options = SearchOptions { limit, ..SearchOptions::default() };
        let (mut hits, mut latencies) = (0, Vec::new());
        let began = Instant::now();
        while repeat.should_continue(latencies.len(), began) {
            let call_began = Instant::now();
            let found = self.memory.search(&self.scope, term, &options).await?;
            latencies.push(call_began.elapsed().as_secs_f64());
            hits = found.hits.len();
        }
        Ok((hits, latencies))
    }

    /// Completes the index, so that no background work runs while other work is timed.
    pub(crate) async fn settle(&self) -> Result<()> {
        while !self.memory.backend().search.catch_up(100_000).await?.done {}
        Ok(())
    }

    /// Returns the number of messages in a thread.
    pub(crate) async fn count(&self, thread: &str) -> Result<u64> {
        let id = self.thread(thread).await?;
        Ok(self.memory.get_thread(&self.scope, id).await?.message_count)
    }
}

struct Writer {
    engine: Engine,
    id: ThreadId,
    pool: Arc<Vec<String>>,
    start: u64,
}

impl Writer {
    async fn write(self, deadline: Instant, max_turns: u64) -> (Vec<f64>, u64) {
        let (mut latencies, mut errors, mut index) = (Vec::new(), 0, self.start);
        let options = AppendOptions::default();
        while (latencies.len() as u64) < max_turns && Instant::now() < deadline && errors < 10 {
            let turn = vec![draft(&self.pool, index), draft(&self.pool, index + 1)];
            let call_began = Instant::now();
            match self.engine.memory.append_all(&self.engine.scope, self.id, turn, &options).await {
                Ok(_) => {
                    latencies.push(call_began.elapsed().as_secs_f64());
                    index += 2;
                }
                Err(_) => errors += 1,
            }
        }
        (latencies, errors)
    }
}

/// Reads a whole thread and compares it with the appended messages.
pub(crate) async fn check_thread(engine: &Engine, thread: &str, pool: &[String], start: u64, count: u64) -> Result<()> {
    let id = engine.thread(thread).await?;
    let (mut seq, mut read) = (0, 0);
    loop {
        let page = engine.memory.messages(&engine.scope, id, &MessageQuery::following(seq, limits::PAGE)).await?;
        for message in &page.messages {
            let index = start + read;
            let role = if index.is_multiple_of(2) { Role::User } else { Role::Assistant };
            ensure!(message.content.role == role, "message {index} of {thread} has the wrong role");
            let text = &pool[(index % pool.len() as u64) as usize];
            ensure!(message.plain_text() == text.as_str(), "message {index} of {thread} has the wrong text");
            (read, seq) = (read + 1, message.seq);
        }
        if !page.more {
            break;
        }
    }
    if read != count {
        bail!("{thread} has {read} messages instead of {count}");
    }
    Ok(())
}
