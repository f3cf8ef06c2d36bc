//! Search by one user, alone in the store and among a thousand users, compared with a plain FTS5 table of all messages.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use threadkeep_core::{Collection, MetadataFilter, SearchQuery, text};
use threadkeep_memory::{Draft, SearchOptions};

use super::report::{Row, figure};
use super::{Bench, TEXT_BYTES};
use crate::engine::{Engine, Repeat};
use crate::floors::search::Fts;
use crate::measure::{Sample, Series, median};

const SIZES: [u64; 2] = [100_000, 1_000_000];
const USERS: [u64; 2] = [1, 1_000];
/// A word that does not occur in the invented language.
const RARE: &str = "kolibri";
const RARE_MESSAGES: u64 = 10;
const LIMIT: usize = 10;
const QUESTIONS: u64 = 20;
const RARE_RATIO: f64 = 1.5;
const QUESTION_MS: f64 = 20.0;
const REPEAT: Repeat = Repeat { seconds: 0.5, at_least: 20, at_most: 2_000 };
const ONCE: Repeat = Repeat { seconds: 0.0, at_least: 1, at_most: 1 };

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    for messages in SIZES {
        for users in USERS {
            let folder = bench.folder(&format!("search-{messages}-{users}"))?;
            run_one(bench, &folder, messages, users).await?;
            std::fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}

struct Corpus {
    messages: u64,
    users: u64,
}

impl Corpus {
    fn per_user(&self) -> u64 {
        self.messages / self.users
    }

    /// Returns the number of the user who searches, in the middle of all users.
    fn searcher(&self) -> u64 {
        self.users / 2
    }

    fn text(&self, bench: &Bench, number: u64) -> String {
        let text = bench.language.text(number, TEXT_BYTES);
        let is_marked =
            number / self.per_user() == self.searcher() && number.is_multiple_of(self.per_user() / RARE_MESSAGES);
        if is_marked { format!("{RARE} {text}") } else { text }
    }
}

async fn run_one(bench: &mut Bench, folder: &Path, messages: u64, users: u64) -> Result<()> {
    let corpus = Corpus { messages, users };
    let name = format!("in {} of {users} user{}", figure(messages as f64), if users == 1 { "" } else { "s" });
    bench.show_progress(format!("search {name}: filling"));
    let engine = fill(bench, &corpus, folder).await?;
    let mut fts = Fts::open(&folder.join("fts.db"))?;
    fts.fill((0..messages).map(|number| (number as i64, corpus.text(bench, number))))?;
    bench.show_progress(format!("search {name}: indexing"));
    engine.settle().await?;
    bench.show_progress(format!("search {name}: a rare word"));
    let series = Series::run(bench.trials, &bench.disk, async |_| {
        let (raw_hits, raw) = fts.numbers(RARE, REPEAT)?;
        let (same_hits, same) = fts.best(RARE, REPEAT)?;
        let (hits, latencies) = engine.search(RARE, LIMIT, REPEAT).await?;
        ensure!([raw_hits, same_hits, hits] == [LIMIT; 3], "{hits} messages were found instead of {LIMIT}");
        check_hits(&engine).await?;
        let p50 = |latencies: &[f64]| median(latencies).map(|seconds| seconds * 1e6);
        Ok(Sample { raw: Some(p50(&raw)?), same_sql: Some(p50(&same)?), engine: p50(&latencies)? })
    })
    .await?;
    let row = Row::new(format!("a rare word {name}"), "µs p50", &series)?;
    bench.rows.push(match messages {
        1_000_000 => row.at_most("ratio to bare FTS5 (same SQL)", series.ratio_to_same_sql(), RARE_RATIO),
        _ => row,
    });
    let row = index_only(bench, &corpus, &engine, &fts, &name).await?;
    bench.rows.push(row);
    bench.show_progress(format!("search {name}: questions"));
    let row = questions(bench, &corpus, &engine, &fts, &name).await?;
    bench.rows.push(row);
    Ok(())
}

async fn fill(bench: &Bench, corpus: &Corpus, folder: &Path) -> Result<Engine> {
    let all = Engine::sqlite(&folder.join("engine.db"))?;
    let mut searcher = None;
    for user in 0..corpus.users {
        let engine = all.for_user(&format!("user {user}"))?;
        let first = user * corpus.per_user();
        for thread in (first..first + corpus.per_user()).step_by(1_000) {
            let drafts = (thread..thread + 1_000.min(corpus.per_user())).map(|number| {
                let text = corpus.text(bench, number);
                if number.is_multiple_of(2) { Draft::user(text) } else { Draft::assistant(text) }
            });
            engine.seed(&format!("thread {thread}"), drafts).await?;
        }
        if user == corpus.searcher() {
            searcher = Some(engine);
        }
    }
    searcher.ok_or_else(|| anyhow::anyhow!("there are no users"))
}

/// Measures the store's part of a search, which finds messages without their texts.
async fn index_only(bench: &Bench, corpus: &Corpus, engine: &Engine, fts: &Fts, name: &str) -> Result<Row> {
    let query = SearchQuery {
        collection: Collection::Messages,
        terms: text::distinct_terms(RARE),
        alternatives: Vec::new(),
        vector: None,
        filters: Vec::new(),
        metadata: MetadataFilter::default(),
        thread: None,
        limit: LIMIT,
        reads_messages: false,
    };
    let series = Series::run(bench.trials, &bench.disk, async |_| {
        let (_, raw) = fts.numbers(RARE, REPEAT)?;
        let (index, now) = (&engine.memory.backend().search, engine.memory.now());
        let (mut latencies, began) = (Vec::new(), Instant::now());
        while REPEAT.should_continue(latencies.len(), began) {
            let call_began = Instant::now();
            let answer = index.search(&engine.scope, &query, now).await?;
            latencies.push(call_began.elapsed().as_secs_f64());
            ensure!(answer.hits.len() == LIMIT, "{} messages were found instead of {LIMIT}", answer.hits.len());
        }
        Ok(Sample { raw: Some(median(&raw)? * 1e6), same_sql: None, engine: median(&latencies)? * 1e6 })
    })
    .await?;
    let row = Row::new(format!("a rare word {name}, index only"), "µs p50", &series)?;
    Ok(match corpus.messages {
        1_000_000 => row.at_most("ratio to bare FTS5 (raw)", series.ratio_to_raw(), RARE_RATIO),
        _ => row,
    })
}

async fn check_hits(engine: &Engine) -> Result<()> {
    let options = SearchOptions { limit: LIMIT, ..SearchOptions::default() };
    let found = engine.memory.search(&engine.scope, RARE, &options).await?;
    let is_right = found.hits.iter().all(|hit| hit.message.plain_text().starts_with(RARE));
    ensure!(is_right && found.unsearched.is_empty(), "a hit does not contain the word");
    Ok(())
}

/// Measures questions of seven words, including common ones, from one of the user's messages.
async fn questions(bench: &Bench, corpus: &Corpus, engine: &Engine, fts: &Fts, name: &str) -> Result<Row> {
    let first = corpus.searcher() * corpus.per_user();
    let questions: Vec<(u64, String)> = (0..QUESTIONS)
        .map(|question| {
            let number = first + 1 + question * (corpus.per_user() / QUESTIONS);
            (number, bench.language.question(number, TEXT_BYTES, 7))
        })
        .collect();
    let series = Series::run(bench.trials, &bench.disk, async |_| {
        let (mut floor, mut latencies) = (Vec::new(), Vec::new());
        for (_, question) in questions.iter().take(5) {
            floor.extend(fts.best(question, ONCE)?.1);
        }
        let options = SearchOptions { limit: LIMIT, ..SearchOptions::default() };
        for (number, question) in &questions {
            let (hits, timed) = engine.search(question, LIMIT, Repeat { at_least: 5, at_most: 5, ..ONCE }).await?;
            ensure!(hits == LIMIT, "{hits} messages were found instead of {LIMIT}");
            latencies.extend(timed);
            let found = engine.memory.search(&engine.scope, question, &options).await?;
            let text = corpus.text(bench, *number);
            let is_found = found.hits.iter().any(|hit| hit.message.plain_text() == text.as_str());
            ensure!(is_found || corpus.per_user() > 1_000, "the message that contains the words was not found");
        }
        Ok(Sample { raw: None, same_sql: Some(median(&floor)? * 1e3), engine: median(&latencies)? * 1e3 })
    })
    .await?;
    let row = Row::new(format!("a 7-word question {name}"), "ms p50", &series)?;
    Ok(match (corpus.messages, corpus.users) {
        (1_000_000, 1_000) => row.at_most("ms", Some(series.engine()?), QUESTION_MS),
        _ => row,
    })
}
