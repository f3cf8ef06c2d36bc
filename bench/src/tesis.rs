//! `threadkeep-bench tesis`: search of the legal assistant's corpus, compared with BM25 over stems in the same run.
//!
//! The questions are a JSON array of `{"question", "id", "source"}` or `{"question", "relevant": [ids]}`; [`answers`] describes the ids. The
//! last line is JSON.

mod answers;
pub(crate) mod load;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep_context::recall::{Question, Statistics, bm25};
use threadkeep_core::{Collection, MetadataFilter, Scope, SearchQuery, TenantId};
use threadkeep_memory::Memory;
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
use threadkeep_tesis::{Corpus, ImportRequest, SearchRequest};

use answers::Articles;

/// The number of results that are compared.
const RESULTS: usize = 10;
/// The number of candidates of the baseline.
const CANDIDATES: usize = 400;

/// Arguments of `threadkeep-bench tesis`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with the questions
    path: PathBuf,
    /// Folder or file with the corpus [default: the folder of the questions]
    #[arg(long)]
    corpus: Vec<PathBuf>,
    /// Also print each question whose answer is not among the first five
    #[arg(long)]
    misses: bool,
}

#[derive(Debug, Deserialize)]
struct QuestionRecord {
    #[serde(alias = "pregunta", alias = "query", alias = "text")]
    question: String,
    #[serde(default, alias = "expected", alias = "answers", alias = "ids", alias = "gold")]
    relevant: Vec<Value>,
    #[serde(default)]
    id: Option<Value>,
    /// The file that contains the answer.
    #[serde(default)]
    source: Option<String>,
}

impl QuestionRecord {
    fn answers(&self, articles: &Articles) -> BTreeSet<String> {
        let all = self.relevant.iter().chain(&self.id);
        all.flat_map(|answer| articles.resolve(answer, self.source.as_deref())).collect()
    }
}

/// The ranks of the first relevant results, by question.
#[derive(Debug, Default)]
struct Ranks(Vec<Option<usize>>);

impl Ranks {
    fn add(&mut self, results: &[String], relevant: &BTreeSet<String>) {
        self.0.push(results.iter().position(|id| relevant.contains(id)));
    }

    fn recall_at(&self, limit: usize) -> f64 {
        let found = self.0.iter().filter(|rank| rank.is_some_and(|rank| rank < limit)).count();
        found as f64 / self.0.len().max(1) as f64
    }

    fn mrr(&self) -> f64 {
        let sum: f64 = self.0.iter().flatten().map(|rank| 1.0 / (rank + 1) as f64).sum();
        sum / self.0.len().max(1) as f64
    }

    fn json(&self) -> Value {
        json!({ "recall_at_5": self.recall_at(5), "recall_at_10": self.recall_at(10), "mrr": self.mrr() })
    }
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let text = std::fs::read(&args.path).with_context(|| format!("cannot read {}", args.path.display()))?;
    let questions: Vec<QuestionRecord> =
        serde_json::from_slice(&text).context("expected an array of {question, id, source}")?;
    ensure!(!questions.is_empty(), "{} has no questions", args.path.display());
    let articles = Articles::read(&corpus_paths(args))?;
    let unresolved = questions.iter().filter(|record| record.answers(&articles).is_empty());
    let unresolved: Vec<&str> = unresolved.map(|record| record.question.as_str()).collect();
    ensure!(unresolved.is_empty(), "{} questions have no answer in the corpus: {unresolved:#?}", unresolved.len());
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(folder.path().join("store.db"), SqliteOptions::default())?;
    let memory = Memory::new(store.backend());
    let tenant = Scope::Tenant(TenantId::new("bench")?);
    let corpus = Corpus::new(&memory);
    let began = Instant::now();
    let items = import(&corpus, &tenant, args).await?;
    let import_seconds = began.elapsed().as_secs_f64();
    println!("{items} items imported in {import_seconds:.1} s");
    let (mut own, mut baseline, mut times) = (Ranks::default(), Ranks::default(), Vec::new());
    for record in &questions {
        let relevant = record.answers(&articles);
        let began = Instant::now();
        let request = SearchRequest { query: record.question.clone(), limit: 4 * RESULTS, ..SearchRequest::default() };
        let found = corpus.search(&tenant, &request).await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        let results = documents(found.iter().map(|found| found.item.key()));
        if args.misses && !results.iter().take(5).any(|id| relevant.contains(id)) {
            println!(
                "missed: {} (relevant {relevant:?}; found {:?})",
                record.question,
                &results[..results.len().min(5)]
            );
        }
        own.add(&results, &relevant);
        baseline.add(&documents(by_bm25(&memory, &tenant, &record.question).await?.into_iter()), &relevant);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let result = json!({
        "questions": questions.len(), "items": items, "items_per_second": items as f64 / import_seconds.max(f64::MIN_POSITIVE),
        "search": own.json(), "bm25": baseline.json(), "p50_ms": at(0.5), "p99_ms": at(0.99),
    });
    println!("{result}");
    Ok(())
}

fn corpus_paths(args: &Args) -> Vec<PathBuf> {
    match args.corpus.is_empty() {
        true => args.path.parent().map(PathBuf::from).into_iter().collect(),
        false => args.corpus.clone(),
    }
}

async fn import(corpus: &Corpus, tenant: &Scope, args: &Args) -> Result<u64> {
    let request = ImportRequest { tenant, embedder: None, as_of: None, progress: &|_, _| {} };
    let report = corpus.import(&corpus_paths(args), &request).await?;
    if report.broken > 0 {
        println!("{} records are broken; the first: {}", report.broken, report.problems[0]);
    }
    Ok(report.stored)
}

/// Ranks the corpus by BM25 over stems of titles and texts.
async fn by_bm25(memory: &Memory, tenant: &Scope, question: &str) -> Result<Vec<String>> {
    let question = Question::of_all_words(question);
    let query = SearchQuery {
        collection: Collection::Named("tesis".to_owned()),
        terms: question.terms(),
        alternatives: Vec::new(),
        vector: None,
        filters: Vec::new(),
        metadata: MetadataFilter::default(),
        thread: None,
        limit: CANDIDATES,
        reads_messages: false,
    };
    let index = Arc::clone(&memory.backend().search);
    let answer = index.search(tenant, &query, memory.now()).await?;
    let counts: Vec<_> = answer.entries.iter().map(|entry| question.count(&entry.text)).collect();
    let statistics =
        Statistics { documents: answer.documents, frequencies: question.frequencies_of_words(&answer.frequencies) };
    let mut ranked: Vec<(f64, &str)> =
        bm25(&counts, &statistics).into_iter().zip(answer.entries.iter().map(|entry| entry.id.as_str())).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Ok(ranked.into_iter().take(4 * RESULTS).map(|(_, id)| id.to_owned()).collect())
}

/// Returns the documents of results, each once, at most [`RESULTS`].
fn documents(keys: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in keys {
        let document = document_of(&key);
        if !found.contains(&document) {
            found.push(document);
        }
    }
    found.truncate(RESULTS);
    found
}

/// Returns the id of the document with a key: `ley:amparo:97.0` is `amparo:97`.
fn document_of(key: &str) -> String {
    let id = key.split_once(':').map_or(key, |(_, id)| id);
    match key.split(':').next() {
        Some("ley") => id.rsplit_once('.').map_or(id, |(id, _)| id).to_owned(),
        Some("doc") => id.rsplit_once(':').map_or(id, |(id, _)| id).to_owned(),
        _ => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_ids_omit_the_part() {
        for (key, id) in [
            ("ley:amparo:97.2", "amparo:97"),
            ("doc:MX-1:3", "MX-1"),
            ("tesis:2031567", "2031567"),
            ("doc:a:b:3", "a:b"),
        ] {
            assert_eq!(document_of(key), id);
        }
    }

    #[test]
    fn ranks_are_summed_up() {
        let relevant = BTreeSet::from(["a".to_owned()]);
        let mut ranks = Ranks::default();
        for results in [&["a", "b"][..], &["b", "a"], &["b"]] {
            ranks.add(&results.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>(), &relevant);
        }
        assert!((ranks.recall_at(5) - 2.0 / 3.0).abs() < 1e-9 && (ranks.mrr() - 0.5).abs() < 1e-9);
        assert!((ranks.recall_at(1) - 1.0 / 3.0).abs() < 1e-9);
    }
}
