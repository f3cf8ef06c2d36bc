//! How much of the evidence for questions is recalled: the same measure for every set of questions.
//!
//! Per question, the share of its evidence that stands among the first k recalled turns of its thread; over all
//! questions, their mean. One data set per file: `locomo`, `beam`, `longmemeval`.

mod inside;
mod plain;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use comfy_table::{Table, presets};
use serde_json::{Map, json};
use threadkeep_context::recall::Weights;
use threadkeep_core::{Scope, ThreadId, Timestamp};
use threadkeep_memory::{AppendOptions, Draft, Memory, RecallOptions, SearchOptions};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use crate::measure::median;

/// After how many turns the share is taken.
const CUTS: [usize; 5] = [1, 5, 10, 25, 50];

/// How many tokens (of cl100k) a context has in which the evidence is looked for as well.
const CONTEXT_TOKENS: u64 = 4_000;

/// What is asked of a data set.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecallArgs {
    /// The file, or a folder of such files
    path: std::path::PathBuf,
    /// Show plain BM25 beside it: our stems, and SQLite's FTS5 as it comes
    #[arg(long)]
    baseline: bool,
    /// Show what each part of the ranking brings
    #[arg(long)]
    ablate: bool,
}

impl RecallArgs {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A question with what answers it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) thread: ThreadId,
    pub(crate) question: String,
    /// External ids of messages of the thread, or of sessions.
    pub(crate) evidence: BTreeSet<String>,
    /// What kind of question it is, by the data set's own name.
    pub(crate) kind: String,
}

/// A fresh store with a data set's conversations in it.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) memory: Memory,
    pub(crate) scope: Scope,
    _folder: tempfile::TempDir,
}

impl Library {
    pub(crate) fn open() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let store = SqliteStore::open(folder.path().join("recall.db"), SqliteOptions::default())?;
        let scope = Scope::user("bench", "recall")?;
        Ok(Self { memory: Memory::new(store.backend()), scope, _folder: folder })
    }

    /// Puts messages into a thread of their own.
    pub(crate) async fn add_thread(&self, drafts: Vec<Draft>) -> Result<ThreadId> {
        let thread = self.memory.open(&self.scope).await?.thread.id;
        for drafts in drafts.chunks(200) {
            self.memory.append_all(&self.scope, thread, drafts.to_vec(), &AppendOptions::default()).await?;
        }
        Ok(thread)
    }

    /// Indexes everything, so that what is timed is asking alone.
    async fn index(&self) -> Result<()> {
        while !self.memory.backend().search.catch_up(10_000).await?.done {}
        Ok(())
    }
}

/// An instant as a data set writes it, in local time without a zone, taken for UTC.
pub(crate) fn instant(format: &str, text: &str) -> Option<Timestamp> {
    let parsed = jiff::fmt::strtime::parse(format, text.trim()).ok()?;
    let time = parsed.to_time().unwrap_or_else(|_| jiff::civil::Time::midnight());
    let at = jiff::tz::TimeZone::UTC.to_timestamp(parsed.to_date().ok()?.to_datetime(time)).ok()?;
    Timestamp::from_micros(at.as_microsecond()).ok()
}

/// The files that a path names: itself, or those in it with an ending, by name.
pub(crate) fn files(path: &Path, ending: &str) -> Result<Vec<std::path::PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<_> = entries.collect::<Result<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    files.sort();
    ensure!(!files.is_empty(), "{} holds no file that ends in {ending}", path.display());
    Ok(files)
}

/// Mean shares of the evidence at each cut, and how long one question took.
#[derive(Clone, Debug, Default)]
struct Scores {
    questions: usize,
    sums: [f64; CUTS.len()],
    seconds: Vec<f64>,
}

impl Scores {
    fn add(&mut self, asked: &Asked, recalled: &[String]) {
        self.questions += 1;
        for (sum, cut) in self.sums.iter_mut().zip(CUTS) {
            let found = recalled.iter().take(cut).flat_map(|id| [id.as_str(), session_of(id)]);
            let found: BTreeSet<&str> = found.collect();
            let count = asked.evidence.iter().filter(|id| found.contains(id.as_str())).count();
            *sum += count as f64 / asked.evidence.len() as f64;
        }
    }

    fn means(&self) -> [f64; CUTS.len()] {
        self.sums.map(|sum| sum / self.questions.max(1) as f64)
    }
}

/// Asks everything, prints the tables that are wanted, and at last one line of JSON.
pub(crate) async fn report(library: &Library, asked: &[Asked], args: &RecallArgs) -> Result<()> {
    ensure!(!asked.is_empty(), "no question of the file names evidence");
    library.index().await?;
    let ours = ask_all(library, asked, &Weights::default()).await?;
    let mut rows = vec![("recall".to_owned(), ours.clone())];
    if args.baseline {
        rows.push(("plain BM25 over stems".to_owned(), search_all(library, asked).await?));
        rows.push(("plain FTS5 BM25".to_owned(), plain::ask_all(library, asked).await?));
    }
    if args.ablate {
        for (name, weights) in ablations() {
            rows.push((name.to_owned(), ask_all(library, asked, &weights).await?));
        }
        rows.extend(by_kind(library, asked).await?);
    }
    if rows.len() > 1 {
        println!("{}", table(&rows));
    }
    let mut line = Map::from_iter([("questions".to_owned(), json!(ours.questions))]);
    for (cut, mean) in CUTS.iter().zip(ours.means()) {
        line.insert(format!("r{cut}"), json!(rounded(mean, 4)));
    }
    line.insert("p50_ms".to_owned(), json!(rounded(median(&ours.seconds)? * 1000.0, 3)));
    let inside = inside::ask_all(library, asked, CONTEXT_TOKENS).await?;
    line.insert(format!("context_{CONTEXT_TOKENS}"), json!(rounded(inside.share, 4)));
    line.insert("context_p50_ms".to_owned(), json!(rounded(median(&inside.seconds)? * 1000.0, 3)));
    println!("{}", serde_json::Value::Object(line));
    Ok(())
}

/// What is left without each part, and with words alone.
fn ablations() -> [(&'static str, Weights); 8] {
    let all = Weights::default();
    [
        ("without passage", Weights { passage: 0.0, ..all }),
        ("without neighbours", Weights { neighbour: 0.0, answer: 0.0, ..all }),
        ("without answers", Weights { answer: 0.0, ..all }),
        ("without speaker", Weights { speaker: 0.0, ..all }),
        ("names as any word", Weights { name: 1.0, ..all }),
        ("without periods", Weights { period: 0.0, ..all }),
        ("without times told", Weights { when: 0.0, ..all }),
        ("words alone", Weights::WORDS_ALONE),
    ]
}

async fn by_kind(library: &Library, asked: &[Asked]) -> Result<Vec<(String, Scores)>> {
    let kinds: BTreeSet<&String> = asked.iter().map(|asked| &asked.kind).collect();
    let mut rows = Vec::new();
    for kind in kinds {
        let asked: Vec<Asked> = asked.iter().filter(|asked| asked.kind == *kind).cloned().collect();
        rows.push((
            format!("recall, kind {kind} ({})", asked.len()),
            ask_all(library, &asked, &Weights::default()).await?,
        ));
    }
    Ok(rows)
}

async fn ask_all(library: &Library, asked: &[Asked], weights: &Weights) -> Result<Scores> {
    let mut scores = Scores::default();
    for asked in asked {
        let limit = *CUTS.last().context("there are cuts")?;
        let options =
            RecallOptions { thread: Some(asked.thread), limit, weights: *weights, ..RecallOptions::default() };
        let began = Instant::now();
        let results = library.memory.recall(&library.scope, &asked.question, &options).await?;
        scores.seconds.push(began.elapsed().as_secs_f64());
        let ids = results.turns.into_iter().filter_map(|turn| turn.message.external_id);
        scores.add(asked, &ids.collect::<Vec<_>>());
    }
    Ok(scores)
}

/// Our own plain search: BM25 over stems, every word of the question counting.
async fn search_all(library: &Library, asked: &[Asked]) -> Result<Scores> {
    let mut scores = Scores::default();
    for asked in asked {
        let limit = *CUTS.last().context("there are cuts")?;
        let options = SearchOptions { thread: Some(asked.thread), limit, ..SearchOptions::default() };
        let began = Instant::now();
        let results = library.memory.search(&library.scope, &asked.question, &options).await?;
        scores.seconds.push(began.elapsed().as_secs_f64());
        let ids = results.hits.into_iter().filter_map(|hit| hit.message.external_id);
        scores.add(asked, &ids.collect::<Vec<_>>());
    }
    Ok(scores)
}

/// The session of a turn's id `session#turn`, by which a data set may name its evidence; otherwise the id.
fn session_of(id: &str) -> &str {
    id.split_once('#').map_or(id, |(session, _)| session)
}

fn table(rows: &[(String, Scores)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let cuts = CUTS.iter().map(|cut| format!("r{cut}"));
    table.set_header(std::iter::once("ranking".to_owned()).chain(cuts).chain(["p50 ms".to_owned()]));
    for (name, scores) in rows {
        let means = scores.means().map(|mean| format!("{mean:.3}"));
        let p50 = median(&scores.seconds).map_or_else(|_| String::new(), |seconds| format!("{:.2}", seconds * 1000.0));
        table.add_row(std::iter::once(name.clone()).chain(means).chain([p50]));
    }
    table
}

fn rounded(figure: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (figure * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_scores_the_share_of_its_evidence() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let evidence = ids(&["a", "b"]).into_iter().collect();
        let thread = ThreadId::v7(threadkeep_core::Timestamp::MAX, [0; 10]);
        let asked = Asked { thread, question: String::new(), evidence, kind: String::new() };
        let mut scores = Scores::default();
        scores.add(&asked, &ids(&["a", "x", "y", "z", "u", "b"]));
        scores.add(&asked, &ids(&[]));
        assert_eq!(scores.means(), [0.25, 0.25, 0.5, 0.5, 0.5]);
        let mut scores = Scores::default();
        scores.add(&asked, &ids(&["b#7"]));
        assert_eq!(scores.means(), [0.5; CUTS.len()]);
    }

    #[test]
    fn dates_are_read_as_the_sets_write_them() {
        let at = |format, text| instant(format, text).map(|at| at.to_string());
        assert_eq!(at("%B-%d-%Y", "March-15-2024").as_deref(), Some("2024-03-15T00:00:00Z"));
        assert_eq!(at("%Y/%m/%d (%a) %H:%M", "2023/05/30 (Tue) 23:40").as_deref(), Some("2023-05-30T23:40:00Z"));
        assert_eq!(at("%B-%d-%Y", "soon"), None);
    }
}
