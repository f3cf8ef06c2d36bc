//! Assistants that are written in YAML.

mod tools;

use serde::Deserialize;
use serde_saphyr::Spanned;
use threadkeep::{ContextPolicy, Retention, Value};

use crate::GeneralOptions;

/// Bytes of a manifest.
const BYTES: usize = 256 * 1024;
/// The most messages that may be asked for.
const MESSAGES: i64 = 1_000_000;
const MINUTES: i64 = u32::MAX as i64;
/// The most messages that a model can be shown.
const WINDOW: i64 = 1_000;

/// An assistant as it is written down.
///
/// ```
/// use threadkeep_general::{Manifest, MemoryBackend};
///
/// let manifest = Manifest::from_yaml(
///     "kind: Agent
/// metadata:
///   name: gardener
/// spec:
///   instructions: You look after a garden.
///   tools: [recall, search_documents]
///   memory:
///     backend: sqlite
///     max_messages: 50
/// ",
///     "file",
/// )?;
/// assert_eq!((manifest.name.as_str(), manifest.memory.context_window), ("gardener", 10));
/// assert_eq!(manifest.memory.backend, Some(MemoryBackend::Sqlite));
/// # Ok::<(), threadkeep_general::ManifestError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What it is called: `metadata.name`, else what the caller calls it.
    pub name: String,
    /// `spec.description`.
    pub description: Option<String>,
    /// `spec.instructions`.
    pub instructions: Option<String>,
    /// `spec.tools`: those of [`TOOLS`](crate::TOOLS) that it may call. Default: all.
    pub tools: Option<Vec<String>>,
    /// Those of `spec.tools` with `approval: ask`: a person allows or denies each call of them.
    pub ask_before: Vec<String>,
    /// `spec.model`: a model's name, as `groq:NAME`. Default: the one that the environment gives.
    pub model: Option<String>,
    /// `spec.libraries`: libraries of documents. Default: `documents`.
    pub libraries: Option<Vec<String>>,
    /// `spec.memory`.
    pub memory: MemorySpec,
}

/// What an assistant remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpec {
    /// Whether anything is kept. Default: yes.
    pub enabled: bool,
    /// Where it is kept. Default: wherever the program keeps conversations.
    pub backend: Option<MemoryBackend>,
    /// Messages that are kept of a conversation. Default: 20.
    pub max_messages: u64,
    /// Messages that the model sees. Default: 10, or `max_messages` where that is less.
    pub context_window: usize,
    /// Minutes after which a message is no more used, and removed. Default: 60.
    pub ttl_minutes: u32,
}

/// Where memory is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBackend {
    /// In the process: gone when it ends.
    InMemory,
    /// In a SQLite file.
    Sqlite,
    /// In PostgreSQL.
    Postgres,
    /// In Redis.
    Redis,
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", at(*line, key))]
pub struct ManifestError {
    /// The line, from 1; 0 where it is the whole file.
    pub line: u64,
    /// The key, such as `spec.memory.max_messages`; empty where the file is no YAML.
    pub key: String,
    /// What is wrong.
    pub reason: String,
}

fn at(line: u64, key: &str) -> String {
    let line = if line == 0 { String::new() } else { format!("line {line}: ") };
    let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
    format!("{line}{key}")
}

type Member = Option<Spanned<Value>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "apiVersion")]
    _api_version: Member,
    #[serde(default)]
    kind: Member,
    #[serde(default)]
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    #[serde(default)]
    name: Member,
    #[serde(default, rename = "labels")]
    _labels: Member,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    #[serde(default)]
    description: Member,
    #[serde(default)]
    instructions: Member,
    #[serde(default)]
    tools: Option<Spanned<Vec<Spanned<Value>>>>,
    #[serde(default)]
    model: Member,
    #[serde(default)]
    libraries: Option<Spanned<Vec<Spanned<Value>>>>,
    #[serde(default)]
    memory: Memory,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    #[serde(default)]
    enabled: Member,
    #[serde(default)]
    backend: Member,
    #[serde(default)]
    max_messages: Member,
    #[serde(default)]
    context_window: Member,
    #[serde(default)]
    ttl_minutes: Member,
}

impl Manifest {
    /// Reads a manifest; one that does not name itself is called `name`.
    ///
    /// # Errors
    /// What is wrong, with the key and the line.
    pub fn from_yaml(text: &str, name: &str) -> Result<Self, ManifestError> {
        if text.len() > BYTES {
            return Err(wrong(0, "", format!("it has more than {BYTES} bytes")));
        }
        let file: File = serde_saphyr::from_str(text).map_err(|error| unreadable(&error))?;
        if let Some(kind) = words(file.kind.as_ref(), "kind")?.filter(|kind| kind != "Agent" && kind != "Assistant") {
            let line = file.kind.as_ref().map_or(0, line_of);
            return Err(wrong(line, "kind", format!("`{kind}` is no assistant; write Agent")));
        }
        let (tools, ask_before) = tools::tools(file.spec.tools.as_ref())?;
        let not_empty = |name: &str| if name.is_empty() { Err("a library without a name".to_owned()) } else { Ok(()) };
        Ok(Self {
            name: words(file.metadata.name.as_ref(), "metadata.name")?.unwrap_or_else(|| name.to_owned()),
            description: words(file.spec.description.as_ref(), "spec.description")?,
            instructions: words(file.spec.instructions.as_ref(), "spec.instructions")?,
            tools,
            ask_before,
            model: words(file.spec.model.as_ref(), "spec.model")?,
            libraries: list(file.spec.libraries.as_ref(), "spec.libraries", not_empty)?,
            memory: memory(&file.spec.memory)?,
        })
    }

    /// How the general assistant is made into this one. The model is the caller's to choose.
    #[must_use]
    pub fn options(&self) -> GeneralOptions {
        let options = GeneralOptions::default();
        GeneralOptions {
            name: self.name.clone(),
            description: self.description.clone().unwrap_or_default(),
            instructions: self.instructions.clone(),
            tools: self.tools.clone(),
            ask_before: self.ask_before.clone(),
            libraries: self.libraries.clone().unwrap_or_else(|| options.libraries.clone()),
            context: ContextPolicy { summary: None, window: Some(self.memory.context_window), ..options.context },
            ..options
        }
    }
}

impl MemorySpec {
    /// What is kept of each conversation.
    #[must_use]
    pub fn retention(&self) -> Retention {
        Retention { max_messages: Some(self.max_messages), ttl_minutes: Some(self.ttl_minutes) }
    }
}

impl Default for MemorySpec {
    fn default() -> Self {
        Self { enabled: true, backend: None, max_messages: 20, context_window: 10, ttl_minutes: 60 }
    }
}

fn memory(found: &Memory) -> Result<MemorySpec, ManifestError> {
    let defaults = MemorySpec::default();
    let key = |name: &str| format!("spec.memory.{name}");
    let enabled = match &found.enabled {
        None => true,
        Some(member) => match member.value {
            Value::Bool(enabled) => enabled,
            ref other => {
                return Err(wrong(line_of(member), &key("enabled"), format!("{other} is neither true nor false")));
            }
        },
    };
    let backend = match words(found.backend.as_ref(), &key("backend"))?.as_deref() {
        None => None,
        Some("inmemory") => Some(MemoryBackend::InMemory),
        Some("sqlite") => Some(MemoryBackend::Sqlite),
        Some("postgres") => Some(MemoryBackend::Postgres),
        Some("redis") => Some(MemoryBackend::Redis),
        Some(other) => {
            let line = found.backend.as_ref().map_or(0, line_of);
            let reason = format!("`{other}` is unknown; there are inmemory, sqlite, postgres, redis");
            return Err(wrong(line, &key("backend"), reason));
        }
    };
    let max_messages = number(found.max_messages.as_ref(), &key("max_messages"), MESSAGES)?;
    let max_messages = max_messages.unwrap_or(defaults.max_messages);
    let window = number(found.context_window.as_ref(), &key("context_window"), WINDOW)?;
    if let (Some(member), Some(window)) = (&found.context_window, window)
        && window > max_messages
    {
        let reason = format!("{window} is more than max_messages, which is {max_messages}");
        return Err(wrong(line_of(member), &key("context_window"), reason));
    }
    let window = window.unwrap_or((defaults.context_window as u64).min(max_messages));
    let ttl_minutes = number(found.ttl_minutes.as_ref(), &key("ttl_minutes"), MINUTES)?;
    Ok(MemorySpec {
        enabled,
        backend,
        max_messages,
        context_window: usize::try_from(window).unwrap_or(defaults.context_window),
        ttl_minutes: ttl_minutes.and_then(|minutes| u32::try_from(minutes).ok()).unwrap_or(defaults.ttl_minutes),
    })
}

fn number(member: Option<&Spanned<Value>>, key: &str, most: i64) -> Result<Option<u64>, ManifestError> {
    let Some(member) = member else { return Ok(None) };
    match member.value.as_i64() {
        Some(number) if (1..=most).contains(&number) => Ok(u64::try_from(number).ok()),
        _ => Err(wrong(line_of(member), key, format!("{} is no whole number from 1 to {most}", member.value))),
    }
}

fn words(member: Option<&Spanned<Value>>, key: &str) -> Result<Option<String>, ManifestError> {
    let Some(member) = member else { return Ok(None) };
    match &member.value {
        Value::String(words) if !words.trim().is_empty() => Ok(Some(words.clone())),
        other => Err(wrong(line_of(member), key, format!("{other} is no text"))),
    }
}

fn list(
    members: Option<&Spanned<Vec<Spanned<Value>>>>,
    key: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<Option<Vec<String>>, ManifestError> {
    let Some(members) = members else { return Ok(None) };
    let mut names = Vec::new();
    for member in &members.value {
        let name = words(Some(member), key)?.unwrap_or_default();
        check(&name).map_err(|reason| wrong(line_of(member), key, reason))?;
        names.push(name);
    }
    Ok(Some(names))
}

fn line_of<T>(member: &Spanned<T>) -> u64 {
    member.referenced.line()
}

fn wrong(line: u64, key: &str, reason: String) -> ManifestError {
    ManifestError { line, key: key.to_owned(), reason }
}

fn unreadable(error: &serde_saphyr::Error) -> ManifestError {
    let line = error.location().map_or(0, |location| location.line());
    // The library draws the file's lines below the first one, which tell what is wrong no better.
    let text = error.to_string();
    let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it is no YAML").trim();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    // The line is told once.
    let place = reason.split_once(": ").filter(|(place, _)| place.starts_with("line "));
    let reason = place.map_or(reason, |(_, reason)| reason);
    wrong(line, "", reason.to_owned())
}

#[cfg(test)]
mod tests;
