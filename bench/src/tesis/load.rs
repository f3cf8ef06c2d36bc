//! `threadkeep-bench tesis-load`: import and search of many synthetic records.
//!
//! The records are made from real sentences: rubros of published tesis, and texts of statutes and decisions. Half of
//! the queries contain a word that occurs in more than a fifth of the records.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use threadkeep_core::text::content_terms;
use threadkeep_core::{Scope, TenantId};
use threadkeep_memory::Memory;
use threadkeep_store_postgres::PostgresStore;
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
use threadkeep_tesis::{Corpus, ImportRequest, SearchRequest};

use crate::measure::resident_kib;
use crate::random::Random;

/// The share of the records in which a common word occurs.
const COMMON: f64 = 0.2;
/// The number of words of a query.
const QUERY_WORDS: usize = 3;

/// Arguments of `threadkeep-bench tesis-load`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder with statutes, decisions and rubros (`mx-legal`)
    path: PathBuf,
    /// Number of records
    #[arg(long, default_value_t = 300_000)]
    records: usize,
    /// Number of queries
    #[arg(long, default_value_t = 200)]
    queries: usize,
    /// URL of a PostgreSQL database [default: a SQLite file]
    #[arg(long)]
    postgres: Option<String>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The sentences of which records are made.
#[derive(Debug, Default)]
struct Sentences {
    rubros: Vec<String>,
    texts: Vec<String>,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tesis.jsonl");
    let queries = generate(args, &file)?;
    let bytes = file.metadata()?.len();
    println!("{} records, {} MiB", args.records, bytes >> 20);
    let memory = match &args.postgres {
        Some(url) => Memory::new(PostgresStore::open(url).await?.backend()),
        None => Memory::new(SqliteStore::open(folder.path().join("store.db"), SqliteOptions::default())?.backend()),
    };
    let tenant = Scope::Tenant(TenantId::new("bench")?);
    let corpus = Corpus::new(&memory);
    let began = Instant::now();
    let request = ImportRequest { tenant: &tenant, embedder: None, as_of: None, progress: &|_, _| {} };
    let report = corpus.import(&[file], &request).await?;
    let import_seconds = began.elapsed().as_secs_f64();
    ensure!(report.stored as usize == args.records, "{} of {} records were stored", report.stored, args.records);
    println!("imported in {import_seconds:.1} s");
    let (mut common, mut rare) = (Vec::new(), Vec::new());
    for (query, has_common_word) in queries {
        let began = Instant::now();
        let request = SearchRequest { query, limit: 10, ..SearchRequest::default() };
        corpus.search(&tenant, &request).await?;
        let elapsed = began.elapsed().as_secs_f64() * 1_000.0;
        if has_common_word { &mut common } else { &mut rare }.push(elapsed);
    }
    let mut all = [common.clone(), rare.clone()].concat();
    let (resident, peak) = resident_kib(std::process::id())?;
    let result = json!({
        "records": args.records, "records_per_second": args.records as f64 / import_seconds,
        "queries": all.len(), "p50_ms": quantile(&mut all, 0.5), "p99_ms": quantile(&mut all, 0.99),
        "p50_ms_with_a_common_word": quantile(&mut common, 0.5), "p50_ms_without": quantile(&mut rare, 0.5),
        "resident_mib": resident / 1024, "peak_mib": peak / 1024,
    });
    println!("{result}");
    Ok(())
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len().saturating_sub(1) as f64 * share) as usize;
    times.get(at).copied().unwrap_or_default()
}

/// Writes the records to a file. Returns queries, each with whether it contains a common word.
fn generate(args: &Args, file: &Path) -> Result<Vec<(String, bool)>> {
    let sentences = Sentences::read(&args.path)?;
    let mut random = Random::new(args.seed);
    let mut writer = BufWriter::new(File::create(file)?);
    // The words of each sentence, and in how many records each word occurs.
    let words: Vec<Vec<String>> = sentences.texts.iter().map(|text| words_of(text)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut samples = Vec::new();
    for number in 0..args.records {
        let chosen: Vec<usize> = (0..5).map(|_| random.index(sentences.texts.len())).collect();
        let parts: Vec<&str> = chosen.iter().map(|at| sentences.texts[*at].as_str()).collect();
        let rubro = [random.index(sentences.rubros.len()), random.index(sentences.rubros.len())];
        let record = record(number, &format!("{} {}", sentences.rubros[rubro[0]], sentences.rubros[rubro[1]]), &parts);
        serde_json::to_writer(&mut writer, &record)?;
        writer.write_all(b"\n")?;
        let distinct: HashSet<&str> = chosen.iter().flat_map(|at| &words[*at]).map(String::as_str).collect();
        distinct.iter().for_each(|word| *counts.entry(word).or_default() += 1);
        if number.is_multiple_of((args.records / args.queries.max(1)).max(1)) {
            samples.push(chosen[0]);
        }
    }
    writer.flush()?;
    let is_common = |word: &str| counts.get(word).is_some_and(|count| *count as f64 > COMMON * args.records as f64);
    let mut common: Vec<&str> = counts.keys().copied().filter(|word| is_common(word)).collect();
    common.sort_unstable();
    ensure!(!common.is_empty(), "no word occurs in a fifth of the records");
    println!("{} words occur in more than a fifth of the records: {}", common.len(), common.join(" "));
    let query = |(number, sentence): (usize, usize)| {
        let mut own: Vec<&str> = words[sentence].iter().map(String::as_str).filter(|word| !is_common(word)).collect();
        own.sort_by_key(|word| counts.get(word).copied().unwrap_or_default());
        own.truncate(QUERY_WORDS);
        let has_common_word = number.is_multiple_of(2);
        if has_common_word {
            own.truncate(QUERY_WORDS - 1);
            own.push(common[number / 2 % common.len()]);
        }
        (own.join(" "), has_common_word)
    };
    Ok(samples.into_iter().take(args.queries).enumerate().map(query).collect())
}

fn words_of(text: &str) -> Vec<String> {
    content_terms(text).into_iter().map(|(word, _)| word).filter(|word| word.chars().count() > 3).collect()
}

fn record(number: usize, rubro: &str, parts: &[&str]) -> Value {
    let epocas = [("Novena Época", 2005), ("Décima Época", 2016), ("Undécima Época", 2023), ("Duodécima Época", 2025)];
    let (epoca, year) = epocas[number % epocas.len()];
    let materias = ["Penal", "Civil", "Laboral", "Administrativa", "Constitucional", "Común", "Mercantil"];
    let is_binding = number.is_multiple_of(3);
    json!({
        "idTesis": 3_000_000 + number, "rubro": rubro, "texto": parts.join(" "), "epoca": epoca, "anio": year,
        "tipoTesis": if is_binding { "Jurisprudencia" } else { "Aislada" }, "instancia": "Primera Sala",
        "tesis": format!("1a.{} {}/{year}", if is_binding { "/J." } else { "" }, number),
        "materias": [materias[number % materias.len()]],
    })
}

impl Sentences {
    fn read(folder: &Path) -> Result<Self> {
        let mut sentences = Self::default();
        for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if name.starts_with("ley-") || name.starts_with("tesis-") {
                sentences.add(&serde_json::from_str(&read(&path)?)?);
            } else if name.starts_with("scjn-") {
                for line in BufReader::new(File::open(&path)?).lines() {
                    sentences.add(&serde_json::from_str(&line?)?);
                }
            }
        }
        ensure!(!sentences.rubros.is_empty() && !sentences.texts.is_empty(), "the folder has no rubros or no texts");
        Ok(sentences)
    }

    /// Collects the rubros and the sentences of a value.
    fn add(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.add(value)),
            Value::Object(members) => members.iter().for_each(|(name, value)| match (name.as_str(), value) {
                ("rubro", Value::String(rubro)) => self.rubros.push(rubro.clone()),
                ("content" | "text", Value::String(text)) => {
                    let pieces = text.split(['.', '\n']).map(str::trim);
                    let is_sentence = |piece: &&str| (80..400).contains(&piece.len()) && piece.contains(' ');
                    self.texts.extend(pieces.filter(is_sentence).map(|piece| format!("{piece}.")));
                }
                (_, value) => self.add(value),
            }),
            _ => {}
        }
    }
}

fn read(path: &Path) -> Result<String> {
    let (file, mut text) = (File::open(path)?, String::new());
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => GzDecoder::new(file).read_to_string(&mut text)?,
        false => { file }.read_to_string(&mut text)?,
    };
    Ok(text)
}
