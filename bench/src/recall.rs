//! Evidence recall: the same measure for every data set.
//!
//! The score of a question is the share of its evidence among the first k recalled turns of its thread; the result is the mean
//! over all questions. One module per data set: `locomo`, `beam`, `longmemeval`.

mod context_share;
mod fts5;

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

/// The values of k.
const CUTOFFS: [usize; 5] = [1, 5, 10, 25, 50];

/// Size in tokens (cl100k) of the contexts that are also searched for the evidence.
const CONTEXT_TOKENS: u64 = 4_000;

/// Arguments of the recall benchmarks.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecallArgs {
    /// File of the data set, or a folder of such files
    path: std::path::PathBuf,
    /// Also print the results of plain BM25, on Threadkeep's stems and by SQLite's FTS5 with default settings
    #[arg(long)]
    baseline: bool,
    /// Also print the results without each part of the ranking
    #[arg(long)]
    ablate: bool,
}

impl RecallArgs {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A question with its evidence.
#[derive(Clone, Debug)]
pub(crate) struct EvalQuestion {
    pub(crate) thread: ThreadId,
    pub(crate) question: String,
    /// External ids of messages of the thread, or ids of sessions.
    pub(crate) evidence: BTreeSet<String>,
    /// The kind of question, as the data set names it.
    pub(crate) kind: String,
}

/// A new store with the conversations of a data set.
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

    /// Adds messages as a new thread.
    pub(crate) async fn add_thread(&self, drafts: Vec<Draft>) -> Result<ThreadId> {
        let thread = self.memory.open(&self.scope).await?.thread.id;
        for drafts in drafts.chunks(200) {
            self.memory.append_all(&self.scope, thread, drafts.to_vec(), &AppendOptions::default()).await?;
        }
        Ok(thread)
    }

    /// Completes the index, so that only queries are timed.
    async fn index(&self) -> Result<()> {
        while !self.memory.backend().search.catch_up(10_000).await?.done {}
        Ok(())
    }
}

/// Parses an instant without a time zone, as UTC.
pub(crate) fn instant(format: &str, text: &str) -> Option<Timestamp> {
    let parsed = jiff::fmt::strtime::parse(format, text.trim()).ok()?;
    let time = parsed.to_time().unwrap_or_else(|_| jiff::civil::Time::midnight());
    let at = jiff::tz::TimeZone::UTC.to_timestamp(parsed.to_date().ok()?.to_datetime(time)).ok()?;
    Timestamp::from_micros(at.as_microsecond()).ok()
}

/// Returns the path itself if it is a file, otherwise the files in the folder with this ending, sorted.
pub(crate) fn files(path: &Path, ending: &str) -> Result<Vec<std::path::PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<_> = entries.collect::<Result<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    files.sort();
    ensure!(!files.is_empty(), "no files ending in {ending} in {}", path.display());
    Ok(files)
}

/// Sums of the evidence shares at each cutoff, and the time of each question.
#[derive(Clone, Debug, Default)]
struct Scores {
    questions: usize,
    sums: [f64; CUTOFFS.len()],
    seconds: Vec<f64>,
}

impl Scores {
    fn add(&mut self, question: &EvalQuestion, recalled: &[String]) {
        self.questions += 1;
        for (sum, cutoff) in self.sums.iter_mut().zip(CUTOFFS) {
            let found = recalled.iter().take(cutoff).flat_map(|id| [id.as_str(), session_of(id)]);
            let found: BTreeSet<&str> = found.collect();
            let count = question.evidence.iter().filter(|id| found.contains(id.as_str())).count();
            *sum += count as f64 / question.evidence.len() as f64;
        }
    }

    fn means(&self) -> [f64; CUTOFFS.len()] {
        self.sums.map(|sum| sum / self.questions.max(1) as f64)
    }
}

/// Runs all questions, prints the requested tables, and finally a line of JSON.
pub(crate) async fn report(library: &Library, questions: &[EvalQuestion], args: &RecallArgs) -> Result<()> {
    ensure!(!questions.is_empty(), "no question in the file has evidence");
    library.index().await?;
    let recall = recall_all(library, questions, &Weights::default()).await?;
    let mut rows = vec![("recall".to_owned(), recall.clone())];
    if args.baseline {
        rows.push(("plain BM25 over stems".to_owned(), search_all(library, questions).await?));
        rows.push(("plain FTS5 BM25".to_owned(), fts5::search_all(library, questions).await?));
    }
    if args.ablate {
        for (name, weights) in ablations() {
            rows.push((name.to_owned(), recall_all(library, questions, &weights).await?));
        }
        rows.extend(by_kind(library, questions).await?);
    }
    if rows.len() > 1 {
        println!("{}", table(&rows));
    }
    let mut line = Map::from_iter([("questions".to_owned(), json!(recall.questions))]);
    for (cutoff, mean) in CUTOFFS.iter().zip(recall.means()) {
        line.insert(format!("r{cutoff}"), json!(rounded(mean, 4)));
    }
    line.insert("p50_ms".to_owned(), json!(rounded(median(&recall.seconds)? * 1000.0, 3)));
    let contexts = context_share::measure(library, questions, CONTEXT_TOKENS).await?;
    line.insert(format!("context_{CONTEXT_TOKENS}"), json!(rounded(contexts.share, 4)));
    line.insert("context_p50_ms".to_owned(), json!(rounded(median(&contexts.seconds)? * 1000.0, 3)));
    println!("{}", serde_json::Value::Object(line));
    Ok(())
}

/// Returns the weights without each part of the ranking, and weights for words only.
fn ablations() -> [(&'static str, Weights); 8] {
    let all = Weights::default();
    [
        ("without passage", Weights { passage: 0.0, ..all }),
        ("without neighbours", Weights { neighbour: 0.0, answer: 0.0, ..all }),
        ("without answers", Weights { answer: 0.0, ..all }),
        ("without speaker", Weights { speaker: 0.0, ..all }),
        ("names weighted like other words", Weights { name: 1.0, ..all }),
        ("without periods", Weights { period: 0.0, ..all }),
        ("without mentioned times", Weights { when: 0.0, ..all }),
        ("words only", Weights::WORDS_ALONE),
    ]
}

async fn by_kind(library: &Library, questions: &[EvalQuestion]) -> Result<Vec<(String, Scores)>> {
    let kinds: BTreeSet<&String> = questions.iter().map(|question| &question.kind).collect();
    let mut rows = Vec::new();
    for kind in kinds {
        let questions: Vec<EvalQuestion> =
            questions.iter().filter(|question| question.kind == *kind).cloned().collect();
        let scores = recall_all(library, &questions, &Weights::default()).await?;
        rows.push((format!("recall, kind {kind} ({})", questions.len()), scores));
    }
    Ok(rows)
}

async fn recall_all(library: &Library, questions: &[EvalQuestion], weights: &Weights) -> Result<Scores> {
    let mut scores = Scores::default();
    for question in questions {
        let limit = *CUTOFFS.last().context("no cutoffs")?;
        let options =
            RecallOptions { thread: Some(question.thread), limit, weights: *weights, ..RecallOptions::default() };
        let began = Instant::now();
        let results = library.memory.recall(&library.scope, &question.question, &options).await?;
        scores.seconds.push(began.elapsed().as_secs_f64());
        let ids = results.messages.into_iter().filter_map(|turn| turn.message.external_id);
        scores.add(question, &ids.collect::<Vec<_>>());
    }
    Ok(scores)
}

/// Runs the engine's plain search: BM25 over stems, with every word of the question.
async fn search_all(library: &Library, questions: &[EvalQuestion]) -> Result<Scores> {
    let mut scores = Scores::default();
    for question in questions {
        let limit = *CUTOFFS.last().context("no cutoffs")?;
        let options = SearchOptions { thread: Some(question.thread), limit, ..SearchOptions::default() };
        let began = Instant::now();
        let results = library.memory.search(&library.scope, &question.question, &options).await?;
        scores.seconds.push(began.elapsed().as_secs_f64());
        let ids = results.hits.into_iter().filter_map(|hit| hit.message.external_id);
        scores.add(question, &ids.collect::<Vec<_>>());
    }
    Ok(scores)
}

/// Returns the session part of an id `session#turn`, which a data set may name as evidence; otherwise the whole id.
fn session_of(id: &str) -> &str {
    id.split_once('#').map_or(id, |(session, _)| session)
}

fn table(rows: &[(String, Scores)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let cutoffs = CUTOFFS.iter().map(|cutoff| format!("r{cutoff}"));
    table.set_header(std::iter::once("ranking".to_owned()).chain(cutoffs).chain(["p50 ms".to_owned()]));
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
    fn the_score_is_the_share_of_the_evidence() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let evidence = ids(&["a", "b"]).into_iter().collect();
        let thread = ThreadId::v7(threadkeep_core::Timestamp::MAX, [0; 10]);
        let question = EvalQuestion { thread, question: String::new(), evidence, kind: String::new() };
        let mut scores = Scores::default();
        scores.add(&question, &ids(&["a", "x", "y", "z", "u", "b"]));
        scores.add(&question, &ids(&[]));
        assert_eq!(scores.means(), [0.25, 0.25, 0.5, 0.5, 0.5]);
        let mut scores = Scores::default();
        scores.add(&question, &ids(&["b#7"]));
        assert_eq!(scores.means(), [0.5; CUTOFFS.len()]);
    }

    #[test]
    fn dates_of_the_data_sets_are_parsed() {
        let at = |format, text| instant(format, text).map(|at| at.to_string());
        assert_eq!(at("%B-%d-%Y", "March-15-2024").as_deref(), Some("2024-03-15T00:00:00Z"));
        assert_eq!(at("%Y/%m/%d (%a) %H:%M", "2023/05/30 (Tue) 23:40").as_deref(), Some("2023-05-30T23:40:00Z"));
        assert_eq!(at("%B-%d-%Y", "soon"), None);
    }
}
