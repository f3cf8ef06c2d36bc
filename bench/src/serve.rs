//! `serve`: answers JSON requests, one per line, for a harness that alternates between engines.
//!
//! The requests are those of [`Request`]; `bench/README.md` lists them. The program times its own calls.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::{Engine, Repeat, draft};

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Request {
    Open {
        folder: String,
        pool: Pool,
        store: Option<String>,
        pg: Option<String>,
        redis: Option<String>,
    },
    Seed {
        thread: String,
        start: u64,
        count: u64,
    },
    Append {
        threads: Vec<String>,
        seconds: f64,
        start: u64,
        max_turns: Option<u64>,
    },
    Load {
        thread: String,
        n: usize,
        seconds: f64,
        #[serde(default = "at_least")]
        at_least: usize,
        #[serde(default = "at_most")]
        at_most: usize,
    },
    Page {
        thread: String,
        size: usize,
    },
    Delete {
        thread: String,
    },
    Search {
        term: String,
        limit: usize,
        seconds: f64,
    },
    Close,
}

/// The texts, or the path of a file with a JSON array of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Pool {
    Texts(Vec<String>),
    File(String),
}

impl Pool {
    fn read(self) -> Result<Vec<String>> {
        let texts = match self {
            Self::Texts(texts) => texts,
            Self::File(path) => serde_json::from_reader(std::fs::File::open(path)?).context("invalid pool of texts")?,
        };
        ensure!(!texts.is_empty(), "the pool of texts is empty");
        Ok(texts)
    }
}

const fn at_least() -> usize {
    5
}

const fn at_most() -> usize {
    400
}

const OPS: [&str; 8] = ["open", "seed", "append", "load", "page", "delete", "search", "close"];

/// Answers requests until `close` or the end of the input.
pub(crate) async fn run() -> Result<()> {
    let mut session = Session::default();
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let (answer, is_over) = session.answer(&line).await;
        writeln!(output, "{answer}")?;
        output.flush()?;
        if is_over {
            break;
        }
    }
    Ok(())
}

#[derive(Default)]
struct Session {
    opened: Option<(Engine, Arc<Vec<String>>)>,
}

impl Session {
    async fn answer(&mut self, line: &str) -> (Value, bool) {
        let request = match parse(line) {
            Ok(request) => request,
            Err(answer) => return (answer, false),
        };
        let is_over = matches!(request, Request::Close);
        let answer = match request {
            Request::Close => {
                self.opened = None;
                Ok(json!({}))
            }
            Request::Open { folder, pool, store, pg, redis } => self.open(&folder, pool, store, pg.or(redis)),
            other => self.work(other).await,
        };
        (answer.unwrap_or_else(|error| json!({ "error": format!("{error:#}") })), is_over)
    }

    fn open(&mut self, folder: &str, pool: Pool, store: Option<String>, server: Option<String>) -> Result<Value> {
        if server.is_some() {
            return Ok(json!({ "unsupported": "stores on PostgreSQL and Redis" }));
        }
        let pool = pool.read()?;
        let url = store.unwrap_or_else(|| format!("sqlite:{folder}/threadkeep.db"));
        let (engine, probe) = match url.split_once(':') {
            Some(("sqlite", path)) => {
                let engine = Engine::sqlite(Path::new(path))?;
                (engine, probe(Path::new(path))?)
            }
            Some(("memory", "")) => (Engine::in_memory(), json!({ "engine": "threadkeep", "store": "memory" })),
            _ => return Ok(json!({ "unsupported": "stores other than sqlite:PATH and memory:" })),
        };
        self.opened = Some((engine, Arc::new(pool)));
        Ok(json!({ "probe": probe }))
    }

    async fn work(&self, request: Request) -> Result<Value> {
        let (engine, pool) = self.opened.as_ref().context("no store is open")?;
        Ok(match request {
            Request::Seed { thread, start, count } => {
                engine.seed(&thread, (start..start + count).map(|index| draft(pool, index))).await?;
                json!({})
            }
            Request::Append { threads, seconds, start, max_turns } => {
                let turns = engine.append(&threads, pool, start, seconds, max_turns).await?;
                let (elapsed, lat, errors) = (turns.elapsed, turns.latencies, turns.errors);
                json!({ "elapsed": elapsed, "lat": lat, "per_writer": turns.per_writer, "errors": errors })
            }
            Request::Load { thread, n, seconds, at_least, at_most } => {
                let (texts, lat) = engine.load(&thread, n, Repeat { seconds, at_least, at_most }).await?;
                json!({ "texts": texts, "lat": lat })
            }
            Request::Page { thread, size } => {
                let (seconds, count, pages) = engine.page(&thread, size).await?;
                json!({ "seconds": seconds, "count": count, "pages": pages })
            }
            Request::Delete { thread } => {
                let (seconds, left) = engine.delete(&thread).await?;
                json!({ "seconds": seconds, "left": left })
            }
            Request::Search { term, limit, seconds } => {
                let repeat = Repeat { seconds, at_least: 5, at_most: 100_000 };
                let (hits, lat) = engine.search(&term, limit, repeat).await?;
                json!({ "hits": hits, "lat": lat })
            }
            Request::Open { .. } | Request::Close => anyhow::bail!("open and close are handled elsewhere"),
        })
    }
}

fn parse(line: &str) -> Result<Request, Value> {
    let value: Value = serde_json::from_str(line).map_err(|error| json!({ "error": format!("not JSON: {error}") }))?;
    let op = value["op"].as_str().unwrap_or_default().to_owned();
    if !OPS.contains(&op.as_str()) {
        return Err(json!({ "unsupported": format!("op {op:?}") }));
    }
    serde_json::from_value(value).map_err(|error| json!({ "error": format!("{op}: {error}") }))
}

/// Reads the settings of a database file. `synchronous` is a setting of connections; the store uses `full` by default.
fn probe(path: &Path) -> Result<Value> {
    let connection = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let journal_mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok(json!({
        "engine": "threadkeep",
        "store": "sqlite",
        "sqlite": rusqlite::version(),
        "journal_mode": journal_mode,
        "synchronous": "full",
        "path": path,
    }))
}
