//! `mcp`: the MCP server on a large store: the time from the start of the process to its first answers, and that of searches.
//!
//! The baseline of a start is a start on an empty store, that of a search the same search by the library.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use threadkeep_memory::SearchOptions;

use crate::engine::Engine;
use crate::measure::{percentile_ms, program};
use crate::random::Random;
use crate::texts::Language;
use crate::typing::{TEXT_BYTES, open_filled, ratio};

/// The number of hits that the server requests from the library for each search.
const LIBRARY_LIMIT: usize = 200;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of messages of the user
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Number of starts
    #[arg(long, default_value_t = 20)]
    starts: usize,
    /// Number of searches
    #[arg(long, default_value_t = 200)]
    searches: usize,
    /// The program to start; default: `threadkeep` beside this program
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Folder for the store; an existing store in it, also of `typing`, is reused
    #[arg(long, default_value_os_t = std::env::temp_dir().join("threadkeep-typing"))]
    folder: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let binary = program(args.binary.as_deref())?;
    std::fs::create_dir_all(&args.folder)?;
    let language = Language::new(1);
    let engine = open_filled(&args.folder, args.messages, &language).await?;
    let large = engine.path.clone().context("the store is a file")?;
    let folder = tempfile::tempdir()?;
    let empty = folder.path().join("empty.db");
    drop(Engine::sqlite(&empty)?);
    let mut random = Random::new(1);
    let mut question = || {
        let words = 1 + random.index(3);
        language.question(random.below(args.messages), TEXT_BYTES, words).to_lowercase()
    };
    let (mut first, mut first_search, mut floor, mut floor_search) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.starts {
        let question = question();
        for (store, answers, searches) in
            [(&empty, &mut floor, &mut floor_search), (&large, &mut first, &mut first_search)]
        {
            let began = Instant::now();
            let mut server = Server::start(&binary, store, folder.path())?;
            answers.push(began.elapsed().as_secs_f64());
            server.search(&question)?;
            searches.push(began.elapsed().as_secs_f64());
        }
    }
    let mut server = Server::start(&binary, &large, folder.path())?;
    let (mut searches, mut library) = (Vec::new(), Vec::new());
    let options = SearchOptions { limit: LIBRARY_LIMIT, ..SearchOptions::default() };
    for _ in 0..args.searches {
        let question = question();
        let began = Instant::now();
        let hits = server.search(&question)?;
        searches.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        let found = engine.memory.search(&engine.scope, &question, &options).await?;
        library.push(began.elapsed().as_secs_f64());
        ensure!(hits == found.hits.len().min(10), "{question}: {hits} hits instead of {}", found.hits.len());
    }
    let line = json!({
        "messages": args.messages,
        "first_answer_p50_ms": percentile_ms(&first, 50),
        "first_answer_p95_ms": percentile_ms(&first, 95),
        "first_answer_p50_ratio": ratio(&first, &floor, 50),
        "first_search_p50_ms": percentile_ms(&first_search, 50),
        "first_search_p95_ms": percentile_ms(&first_search, 95),
        "first_search_p50_ratio": ratio(&first_search, &floor_search, 50),
        "search_p50_ms": percentile_ms(&searches, 50),
        "search_p95_ms": percentile_ms(&searches, 95),
        "search_p50_ratio": ratio(&searches, &library, 50),
        "search_p95_ratio": ratio(&searches, &library, 95),
    });
    println!("{line}");
    Ok(())
}

/// A running MCP server. The process is killed when this value is dropped.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    /// Starts a server, and waits for its first answer.
    fn start(binary: &Path, store: &Path, home: &Path) -> Result<Self> {
        let mut child = Command::new(binary)
            .env_clear()
            .env("HOME", home)
            .args(["--tenant", "bench", "--user", "user", "--store"])
            .arg(store)
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().context("the input is a pipe")?;
        let output = BufReader::new(child.stdout.take().context("the output is a pipe")?);
        let mut server = Self { child, input, output, last_id: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let parameters = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        server.request("initialize", parameters)?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    /// Calls the tool `search_memory`. Returns the number of hits.
    fn search(&mut self, query: &str) -> Result<usize> {
        let call = json!({ "name": "search_memory", "arguments": { "query": query } });
        let result = self.request("tools/call", call)?;
        let hits = result.pointer("/structuredContent/hits").and_then(Value::as_array);
        Ok(hits.with_context(|| format!("no hits in the answer: {result}"))?.len())
    }

    fn request(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": parameters }))?;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "the server exited");
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == self.last_id {
                ensure!(answer.get("error").is_none(), "{method} failed: {line}");
                return Ok(answer["result"].take());
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        Ok(writeln!(self.input, "{message}")?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
