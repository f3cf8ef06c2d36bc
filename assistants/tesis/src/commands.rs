//! The commands of the assistant.

use std::path::PathBuf;

use serde_json::json;
use threadkeep::agent::plugin::{
    Argument, ArgumentForm, CommandCall, CommandFuture, CommandGroup, CommandOutcome, Example, FailureKind,
    PluginCommand, PluginError,
};
use threadkeep::{JsonText, Scope, Value};

use crate::clave::{ClaveKey, References};
use crate::intent::{self, PastMessage};
use crate::search::{FoundItem, SearchRequest};
use crate::{Corpus, ImportRequest, briefing, filters};

/// The maximum size of a phrases file, in bytes.
const PHRASES_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of search results.
const RESULTS: usize = 10;

const PATH: &str = "path";
const AS_OF: &str = "as-of";
const FILE: &str = "file";
const QUERY: &str = "query";

pub(crate) const COMMANDS: CommandGroup = CommandGroup {
    about: "Import and search the corpus of Mexican case law",
    details: "The corpus belongs to the tenant: all users of the tenant search it. Backups do not contain it; import it again after \
              a restore or a migration.",
    examples: &[
        Example { command: "tesis import tesis.jsonl", shows: "records of the Semanario Judicial" },
        Example { command: "tesis import leyes/", shows: "all files of a folder" },
        Example { command: "tesis search 'suspensión de la Undécima Época'", shows: "" },
    ],
    commands: &[
        PluginCommand {
            name: "import",
            about: "Import tesis, statutes and decisions",
            details: "Reads .json, .jsonl and .csv files, optionally compressed with gzip. Records that are already \
                      stored and have not changed are skipped, so an interrupted import can be repeated. Broken \
                      records are reported with their line number.",
            arguments: &[
                Argument { name: PATH, value: "PATH", form: ArgumentForm::Required, help: "A file or a folder" },
                Argument {
                    name: AS_OF,
                    value: "DATE",
                    form: ArgumentForm::Option,
                    help: "The day as of which the corpus is complete, such as 2026-05-15 [default: today]",
                },
            ],
            run: import,
        },
        PluginCommand {
            name: "search",
            about: "Search the corpus, or look up a registro digital or a clave",
            details: "",
            arguments: &[Argument {
                name: QUERY,
                value: "QUERY",
                form: ArgumentForm::Required,
                help: "Words, which may include filters, or a registro digital or a clave",
            }],
            run: search,
        },
        PluginCommand {
            name: "intent",
            about: "Classify messages as REUSE, NEW_SEARCH or NONE",
            details: "The file is a JSON array of {history, text}. A history is an array of messages {role, content, sources}, oldest \
                      first. Prints one {text, label} object per line.",
            arguments: &[Argument { name: FILE, value: "FILE", form: ArgumentForm::Required, help: "A JSON file" }],
            run: classify,
        },
    ],
};

fn external(error: impl std::error::Error + Send + Sync + 'static) -> PluginError {
    PluginError::new(FailureKind::External, error)
}

fn caller(message: String) -> PluginError {
    PluginError::new(FailureKind::Setup, std::io::Error::other(message))
}

fn import(call: CommandCall<'_>) -> CommandFuture<'_> {
    Box::pin(async move {
        let path = PathBuf::from(call.arguments.get(PATH).unwrap_or_default());
        let as_of = call.arguments.get(AS_OF).map(parse_day).transpose()?;
        let store = call.host.open_store().await?;
        let tenant = Scope::Tenant(store.scope.tenant_id().clone());
        call.host.begin_step("importing");
        let progress = |done, total| call.host.show_bytes(done, Some(total));
        let request =
            ImportRequest { tenant: &tenant, embedder: store.embedder.as_deref(), as_of, progress: &progress };
        let corpus = Corpus::new(&store.memory);
        let report = match corpus.import(&[path], &request).await {
            Ok(report) => report,
            Err(crate::ImportError::Read(error)) => return Err(PluginError::new(FailureKind::Setup, error)),
            Err(error) => {
                let error = external(error)
                    .with_hint("the records imported so far are kept; run the same command again to continue");
                return Err(error);
            }
        };
        let number = |value| call.host.format_number(value);
        let text = format!(
            "{} records: {} stored, {} unchanged, {} broken",
            number(report.records + report.broken),
            number(report.stored),
            number(report.unchanged),
            number(report.broken)
        );
        let more = report.broken.saturating_sub(report.problems.len() as u64);
        let mut notes = report.problems.clone();
        if more > 0 {
            notes.push(format!("and {} more broken records", number(more)));
        }
        let json = json!({
            "records": report.records, "stored": report.stored, "unchanged": report.unchanged, "broken": report.broken,
            "problems": report.problems,
        });
        Ok(CommandOutcome { text, notes, json: JsonText::from(&json), has_findings: report.broken > 0 })
    })
}

/// Parses a day such as `2026-05-15`.
fn parse_day(day: &str) -> Result<String, PluginError> {
    match day.parse::<jiff::civil::Date>() {
        Ok(day) => Ok(day.to_string()),
        Err(_) => Err(caller(format!("invalid --{AS_OF} `{day}`")).with_hint("use a date such as 2026-05-15")),
    }
}

fn search(call: CommandCall<'_>) -> CommandFuture<'_> {
    Box::pin(async move {
        let query = call.arguments.get(QUERY).unwrap_or_default();
        let store = call.host.open_store().await?;
        let corpus = Corpus::new(&store.memory);
        let found = find(&corpus, &store.scope, query).await.map_err(external)?;
        let lines = found.iter().enumerate().map(|(index, found)| {
            format!("{}. {}\n   {}", index + 1, found.item.title(), briefing::citation(&found.item))
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let text = if text.is_empty() { "nothing found".to_owned() } else { text };
        let json: Vec<Value> = found
            .iter()
            .map(|found| {
                json!({
                    "key": found.item.key(), "title": found.item.title(), "relevance": found.relevance,
                    "rank_score": found.rank_score, "cita": briefing::citation(&found.item), "text": found.item.text(),
                })
            })
            .collect();
        let description = corpus.description(&store.scope).await.map_err(external)?;
        let notes = match description {
            Some(description) => vec![format!("corpus as of {}", description.as_of)],
            None => vec!["the corpus is empty; import records with `threadkeep tesis import`".to_owned()],
        };
        Ok(CommandOutcome { text, notes, json: JsonText::from(&Value::from(json)), has_findings: false })
    })
}

async fn find(corpus: &Corpus, scope: &Scope, query: &str) -> Result<Vec<FoundItem>, threadkeep::StoreError> {
    let References { registros, claves } = References::of(query);
    if !registros.is_empty() || !claves.is_empty() {
        let mut items = corpus.by_registro(scope, &registros).await?;
        items.extend(corpus.by_clave(scope, &claves).await?);
        return Ok(items.into_iter().map(FoundItem::exact).collect());
    }
    let split = filters::split(query);
    let request =
        SearchRequest { query: split.rest, filters: split.filters, limit: RESULTS, ..SearchRequest::default() };
    corpus.search(scope, &request).await
}

fn classify(call: CommandCall<'_>) -> CommandFuture<'_> {
    Box::pin(async move {
        let path = PathBuf::from(call.arguments.get(FILE).unwrap_or_default());
        let phrases = read_phrases(&path)?;
        let labelled = phrases
            .iter()
            .map(|(history, text)| json!({"text": text, "label": intent::classify(text, history).intent.label()}));
        let labelled: Vec<Value> = labelled.collect();
        let lines: Vec<String> = labelled.iter().map(Value::to_string).collect();
        let json = JsonText::from(&Value::from(labelled));
        Ok(CommandOutcome { text: lines.join("\n"), notes: Vec::new(), json, has_findings: false })
    })
}

fn read_phrases(path: &std::path::Path) -> Result<Vec<(Vec<PastMessage>, String)>, PluginError> {
    let failed = |reason: String| caller(format!("{}: {reason}", path.display()));
    let size = path.metadata().map_err(|error| failed(error.to_string()))?.len();
    if size > PHRASES_BYTES {
        return Err(failed(format!("the file has {size} bytes; the maximum is {PHRASES_BYTES}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| failed(format!("not JSON: {error}")))?;
    let list = value.as_array().ok_or_else(|| failed("expected an array of {history, text}".to_owned()))?;
    let phrase = |(index, phrase): (usize, &Value)| {
        let text = phrase.get("text").and_then(Value::as_str);
        let text = text.ok_or_else(|| failed(format!("entry {} has no text", index + 1)))?;
        Ok((history_of(phrase.get("history").unwrap_or(&Value::Null)), text.to_owned()))
    };
    list.iter().enumerate().map(phrase).collect()
}

/// Reads a history: messages, or alternating texts of user and assistant.
pub(crate) fn history_of(history: &Value) -> Vec<PastMessage> {
    let messages = history.as_array().map_or(&[][..], Vec::as_slice);
    messages.iter().enumerate().map(|(index, message)| past_message(index, message)).collect()
}

fn past_message(index: usize, message: &Value) -> PastMessage {
    let text =
        |names: &[&str]| names.iter().find_map(|name| message.get(*name)?.as_str()).unwrap_or_default().to_owned();
    if let Some(text) = message.as_str() {
        return PastMessage { is_user: index.is_multiple_of(2), text: text.to_owned(), ..PastMessage::default() };
    }
    let sources = message.get("sources").or_else(|| message.get("fuentes")).and_then(Value::as_array);
    let sources = sources.map_or(&[][..], Vec::as_slice);
    let title = |source: &Value| {
        let names = ["rubro", "title", "titulo"];
        let title = names.iter().find_map(|name| source.get(*name)?.as_str()).or(source.as_str());
        title.map_or_else(|| source.to_string(), str::to_owned)
    };
    let registro = |source: &Value| {
        let value = ["id_tesis", "registro", "id"].iter().find_map(|name| source.get(*name)).unwrap_or(source);
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let clave =
        |source: &Value| ["clave", "tesis"].iter().find_map(|name| source.get(*name)?.as_str()).map(ClaveKey::of);
    PastMessage {
        is_user: matches!(text(&["role"]).as_str(), "user" | "human" | "USER"),
        text: text(&["content", "text", "texto"]),
        sources: sources.iter().map(title).collect(),
        registros: sources.iter().filter_map(registro).collect(),
        claves: sources.iter().filter_map(clave).collect(),
    }
}
