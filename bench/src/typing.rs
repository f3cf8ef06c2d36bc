//! `typing`: searches while a query is typed, letter by letter, among all messages of one user.
//!
//! Each letter sends the query that `threadkeep browse` sends: the words so far, and the last one as a prefix. The baseline
//! is a plain FTS5 table with an index of prefixes, which returns the texts of the newest messages with the prefix.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use rusqlite::Connection;
use serde_json::json;
use threadkeep_memory::{Draft, SearchOptions};

use crate::engine::Engine;
use crate::floors;
use crate::measure::percentile_ms;
use crate::random::Random;
use crate::texts::Language;

pub(crate) const TEXT_BYTES: usize = 200;
const THREAD: u64 = 1_000;
/// The minimum number of letters of a word that is searched for while it is typed.
const FIRST_LETTERS: usize = 3;
/// The number of words of each typed query.
const WORDS: usize = 2;
/// The number of hits that `threadkeep browse` requests.
const LIMIT: usize = 50;
/// Words with this prefix are found without the rest of the word by an index lookup.
const FLOOR_SCHEMA: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (body, prefix='3 4 5');";
const FLOOR_SEARCH: &str = "SELECT body FROM texts WHERE texts MATCH ?1 ORDER BY rowid DESC LIMIT 50";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of messages of the user
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Number of queries that are typed
    #[arg(long, default_value_t = 20)]
    queries: u64,
    /// Folder for the stores; existing stores in it are reused
    #[arg(long, default_value_os_t = std::env::temp_dir().join("threadkeep-typing"))]
    folder: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.folder)?;
    let language = Language::new(1);
    let engine = open_filled(&args.folder, args.messages, &language).await?;
    let floor = open_filled_floor(args, &language)?;
    let mut random = Random::new(1);
    let queries: Vec<Vec<String>> = (0..args.queries)
        .map(|_| letters(&language.question(random.below(args.messages), TEXT_BYTES, WORDS).to_lowercase()))
        .collect();
    let (mut latencies, mut floor_latencies) = (Vec::new(), Vec::new());
    let options = SearchOptions { limit: LIMIT, ..SearchOptions::default() };
    let began = Instant::now();
    engine.memory.search(&engine.scope, "first*", &options).await?;
    let first = began.elapsed().as_secs_f64();
    for typed in queries.iter().flatten() {
        let began = Instant::now();
        let floor_hits = search_floor(&floor, typed)?;
        floor_latencies.push(began.elapsed().as_secs_f64());
        let query = browse_query(typed);
        let began = Instant::now();
        let found = engine.memory.search(&engine.scope, &query, &options).await?;
        latencies.push(began.elapsed().as_secs_f64());
        ensure!(found.hits.len() >= floor_hits.min(LIMIT), "{query}: {} of {floor_hits} hits", found.hits.len());
        // A hit may have another form of the word, so only the first letters are compared.
        let words: Vec<&str> = typed.split(' ').map(|word| &word[..FIRST_LETTERS.min(word.len())]).collect();
        let has_word = |text: &str| {
            let text = text.to_lowercase();
            text.split(|c: char| !c.is_alphanumeric()).any(|word| words.iter().any(|typed| word.starts_with(typed)))
        };
        let is_right = found.hits.iter().all(|hit| has_word(&hit.message.plain_text()));
        ensure!(is_right && found.unsearched.is_empty(), "{query}: a hit contains no word that starts as typed");
    }
    let line = json!({
        "messages": args.messages,
        "searches": latencies.len(),
        "first_ms": (first * 1e6).round() / 1e3,
        "p50_ms": percentile_ms(&latencies, 50),
        "p95_ms": percentile_ms(&latencies, 95),
        "floor_p50_ms": percentile_ms(&floor_latencies, 50),
        "floor_p95_ms": percentile_ms(&floor_latencies, 95),
        "p50_ratio": ratio(&latencies, &floor_latencies, 50),
        "p95_ratio": ratio(&latencies, &floor_latencies, 95),
    });
    println!("{line}");
    Ok(())
}

/// Returns the texts in the input while a query is typed, from the first letters that are searched for.
fn letters(query: &str) -> Vec<String> {
    let mut typed = Vec::new();
    let mut start = 0;
    for word in query.split(' ') {
        let lengths = FIRST_LETTERS.min(word.len())..=word.len();
        typed.extend(lengths.map(|length| query[..start + length].to_owned()));
        start += word.len() + 1;
    }
    typed
}

/// Returns the query that `threadkeep browse` sends for a text whose last word is being typed.
fn browse_query(typed: &str) -> String {
    let last = typed.rsplit(' ').next().unwrap_or_default();
    format!("{typed} {last}*")
}

fn search_floor(floor: &Connection, typed: &str) -> Result<usize> {
    let (before, last) = typed.rsplit_once(' ').unwrap_or(("", typed));
    let words = before.split(' ').filter(|word| !word.is_empty()).map(|word| format!("\"{word}\" OR "));
    let pattern = format!("{}\"{last}\" *", words.collect::<String>());
    let mut statement = floor.prepare_cached(FLOOR_SEARCH)?;
    let texts = statement.query_map([pattern], |row| row.get::<_, String>(0))?;
    Ok(texts.collect::<Result<Vec<_>, _>>()?.len())
}

/// Opens a store in a folder, with `messages` messages of one user in threads of 1,000. Fills it if it does not exist.
pub(crate) async fn open_filled(folder: &Path, messages: u64, language: &Language) -> Result<Engine> {
    let path = folder.join(format!("{messages}.db"));
    let is_filled = path.exists();
    let engine = Engine::sqlite(&path)?;
    if !is_filled {
        eprintln!("filling {}", path.display());
        for first in (0..messages).step_by(usize::try_from(THREAD)?) {
            let numbers = first..(first + THREAD).min(messages);
            let drafts = numbers.map(|number| match number % 2 {
                0 => Draft::user(language.text(number, TEXT_BYTES)),
                _ => Draft::assistant(language.text(number, TEXT_BYTES)),
            });
            engine.seed(&format!("{first}"), drafts).await?;
        }
    }
    engine.settle().await?;
    Ok(engine)
}

fn open_filled_floor(args: &Args, language: &Language) -> Result<Connection> {
    let path = args.folder.join(format!("{}-floor.db", args.messages));
    let is_filled = path.exists();
    let mut floor = floors::open(&path, FLOOR_SCHEMA)?;
    if !is_filled {
        eprintln!("filling {}", path.display());
        let transaction = floor.transaction()?;
        for number in 0..args.messages {
            let mut insert = transaction.prepare_cached("INSERT INTO texts (rowid, body) VALUES (?1, ?2)")?;
            insert.execute(rusqlite::params![i64::try_from(number)?, language.text(number, TEXT_BYTES)])?;
        }
        transaction.commit()?;
    }
    Ok(floor)
}

/// Returns the ratio of a percentile of latencies to that of a baseline.
pub(crate) fn ratio(latencies: &[f64], floor_latencies: &[f64], percent: usize) -> f64 {
    let ratio = percentile_ms(latencies, percent) / percentile_ms(floor_latencies, percent);
    (ratio * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_of_a_word_is_a_search_from_the_third_on() {
        assert_eq!(letters("train to"), ["tra", "trai", "train", "train to"]);
        assert_eq!(browse_query("train sta"), "train sta sta*");
    }
}
