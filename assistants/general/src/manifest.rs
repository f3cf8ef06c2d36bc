//! Reads assistants from YAML manifests.

mod tools;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;
use threadkeep::agent::StoreUserMessage;
use threadkeep::{ContextPolicy, Retention, Value};

use crate::GeneralOptions;

/// The maximum size of a manifest, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum value of `max_messages`.
const MAX_MESSAGES: i64 = 1_000_000;
const MAX_MINUTES: i64 = u32::MAX as i64;
/// The maximum value of `context_window`.
const MAX_WINDOW: i64 = 1_000;

/// The manifest of an assistant.
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
    /// `metadata.name`. Default: the name that the caller passes.
    pub name: String,
    /// `spec.description`.
    pub description: Option<String>,
    /// `spec.instructions`.
    pub instructions: Option<String>,
    /// `spec.tools`: the enabled tools from [`TOOLS`](crate::TOOLS). Default: all.
    pub tools: Option<Vec<String>>,
    /// The tools in `spec.tools` with `approval: ask`, which require approval for each call.
    pub requiring_approval: Vec<String>,
    /// `spec.model`: the name of a model, such as `groq:NAME`. Default: the model configured in the environment.
    pub model: Option<String>,
    /// `spec.libraries`: the document libraries. Default: `documents`.
    pub libraries: Option<Vec<String>>,
    /// `spec.mcp_servers`: the MCP servers whose tools the model may call, by name.
    pub mcp_servers: Vec<McpServerEntry>,
    /// `spec.memory`.
    pub memory: MemorySpec,
}

/// An entry of `spec.mcp_servers`. The program that connects to the server reads its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerEntry {
    /// The name of the server.
    pub name: String,
    /// The fields of the entry.
    pub value: Value,
    /// The 1-based line of the entry.
    pub line: u64,
}

/// The memory settings of an assistant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpec {
    /// Whether conversations are stored. Default: `true`.
    pub enabled: bool,
    /// The storage backend. Default: the program's store.
    pub backend: Option<MemoryBackend>,
    /// The number of messages retained per conversation. Default: 20.
    pub max_messages: u64,
    /// The number of messages in the model's context. Default: 10, or `max_messages` if that is less.
    pub context_window: usize,
    /// The minutes after which a message is no longer used and is removed. Default: 60.
    pub ttl_minutes: u32,
    /// When the user's message is stored. Default: before the model is called.
    pub store_user: StoreUserMessage,
}

/// A storage backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBackend {
    /// In memory; lost when the process ends.
    InMemory,
    /// A SQLite file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// Redis.
    Redis,
}

/// An error in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", location(*line, key))]
pub struct ManifestError {
    /// The 1-based line; 0 if the error concerns the whole file.
    pub line: u64,
    /// The key, such as `spec.memory.max_messages`; empty if the file is not valid YAML.
    pub key: String,
    /// The reason.
    pub reason: String,
}

fn location(line: u64, key: &str) -> String {
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
    mcp_servers: BTreeMap<String, Spanned<Value>>,
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
    #[serde(default)]
    store_user: Member,
}

impl Manifest {
    /// Reads a manifest. `name` is the default for `metadata.name`.
    ///
    /// # Errors
    /// The first error, with its key and line.
    pub fn from_yaml(text: &str, name: &str) -> Result<Self, ManifestError> {
        if text.len() > MAX_BYTES {
            return Err(manifest_error(0, "", format!("the manifest exceeds {MAX_BYTES} bytes")));
        }
        let file: File = serde_saphyr::from_str(text).map_err(|error| parse_error(&error))?;
        if let Some(kind) = string(file.kind.as_ref(), "kind")?.filter(|kind| kind != "Agent" && kind != "Assistant") {
            let line = file.kind.as_ref().map_or(0, line_of);
            return Err(manifest_error(line, "kind", format!("unknown kind `{kind}`; use Agent")));
        }
        let (tools, requiring_approval) = tools::tools(file.spec.tools.as_ref())?;
        let not_empty =
            |name: &str| if name.is_empty() { Err("a library name must not be empty".to_owned()) } else { Ok(()) };
        Ok(Self {
            name: string(file.metadata.name.as_ref(), "metadata.name")?.unwrap_or_else(|| name.to_owned()),
            description: string(file.spec.description.as_ref(), "spec.description")?,
            instructions: string(file.spec.instructions.as_ref(), "spec.instructions")?,
            tools,
            requiring_approval,
            model: string(file.spec.model.as_ref(), "spec.model")?,
            libraries: list(file.spec.libraries.as_ref(), "spec.libraries", not_empty)?,
            mcp_servers: file.spec.mcp_servers.into_iter().map(mcp_server).collect(),
            memory: memory(&file.spec.memory)?,
        })
    }

    /// Returns the options for the general assistant, without the model.
    #[must_use]
    pub fn options(&self) -> GeneralOptions {
        let options = GeneralOptions::default();
        GeneralOptions {
            name: self.name.clone(),
            description: self.description.clone().unwrap_or_default(),
            instructions: self.instructions.clone(),
            tools: self.tools.clone(),
            requiring_approval: self.requiring_approval.clone(),
            libraries: self.libraries.clone().unwrap_or_else(|| options.libraries.clone()),
            context: ContextPolicy { summary: None, window: Some(self.memory.context_window), ..options.context },
            store_user_message: self.memory.store_user,
            ..options
        }
    }
}

impl MemorySpec {
    /// Returns the retention of each conversation.
    #[must_use]
    pub fn retention(&self) -> Retention {
        Retention { max_messages: Some(self.max_messages), ttl_minutes: Some(self.ttl_minutes) }
    }
}

impl Default for MemorySpec {
    fn default() -> Self {
        Self {
            enabled: true,
            backend: None,
            max_messages: 20,
            context_window: 10,
            ttl_minutes: 60,
            store_user: StoreUserMessage::BeforeModelCall,
        }
    }
}

fn mcp_server((name, entry): (String, Spanned<Value>)) -> McpServerEntry {
    McpServerEntry { name, line: line_of(&entry), value: entry.value }
}

fn memory(members: &Memory) -> Result<MemorySpec, ManifestError> {
    let defaults = MemorySpec::default();
    let key = |name: &str| format!("spec.memory.{name}");
    let enabled = match &members.enabled {
        None => true,
        Some(member) => match member.value {
            Value::Bool(enabled) => enabled,
            ref other => {
                return Err(manifest_error(
                    line_of(member),
                    &key("enabled"),
                    format!("expected true or false, found {other}"),
                ));
            }
        },
    };
    let backend = match string(members.backend.as_ref(), &key("backend"))?.as_deref() {
        None => None,
        Some("inmemory") => Some(MemoryBackend::InMemory),
        Some("sqlite") => Some(MemoryBackend::Sqlite),
        Some("postgres") => Some(MemoryBackend::Postgres),
        Some("redis") => Some(MemoryBackend::Redis),
        Some(other) => {
            let line = members.backend.as_ref().map_or(0, line_of);
            let reason = format!("unknown backend `{other}`; expected inmemory, sqlite, postgres or redis");
            return Err(manifest_error(line, &key("backend"), reason));
        }
    };
    let store_user = match string(members.store_user.as_ref(), &key("store_user"))?.as_deref() {
        None | Some("first") => StoreUserMessage::BeforeModelCall,
        Some("with_answer") => StoreUserMessage::WithAnswer,
        Some(other) => {
            let line = members.store_user.as_ref().map_or(0, line_of);
            let reason = format!("unknown value `{other}`; expected first or with_answer");
            return Err(manifest_error(line, &key("store_user"), reason));
        }
    };
    let max_messages = number(members.max_messages.as_ref(), &key("max_messages"), MAX_MESSAGES)?;
    let max_messages = max_messages.unwrap_or(defaults.max_messages);
    let window = number(members.context_window.as_ref(), &key("context_window"), MAX_WINDOW)?;
    if let (Some(member), Some(window)) = (&members.context_window, window)
        && window > max_messages
    {
        let reason = format!("{window} is greater than max_messages, which is {max_messages}");
        return Err(manifest_error(line_of(member), &key("context_window"), reason));
    }
    let window = window.unwrap_or((defaults.context_window as u64).min(max_messages));
    let ttl_minutes = number(members.ttl_minutes.as_ref(), &key("ttl_minutes"), MAX_MINUTES)?;
    Ok(MemorySpec {
        enabled,
        backend,
        max_messages,
        context_window: usize::try_from(window).unwrap_or(defaults.context_window),
        ttl_minutes: ttl_minutes.and_then(|minutes| u32::try_from(minutes).ok()).unwrap_or(defaults.ttl_minutes),
        store_user,
    })
}

fn number(member: Option<&Spanned<Value>>, key: &str, max: i64) -> Result<Option<u64>, ManifestError> {
    let Some(member) = member else { return Ok(None) };
    match member.value.as_i64() {
        Some(number) if (1..=max).contains(&number) => Ok(u64::try_from(number).ok()),
        _ => Err(manifest_error(
            line_of(member),
            key,
            format!("expected an integer from 1 to {max}, found {}", member.value),
        )),
    }
}

fn string(member: Option<&Spanned<Value>>, key: &str) -> Result<Option<String>, ManifestError> {
    let Some(member) = member else { return Ok(None) };
    match &member.value {
        Value::String(text) if !text.trim().is_empty() => Ok(Some(text.clone())),
        other => Err(manifest_error(line_of(member), key, format!("expected a non-empty string, found {other}"))),
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
        let name = string(Some(member), key)?.unwrap_or_default();
        check(&name).map_err(|reason| manifest_error(line_of(member), key, reason))?;
        names.push(name);
    }
    Ok(Some(names))
}

fn line_of<T>(member: &Spanned<T>) -> u64 {
    member.referenced.line()
}

fn manifest_error(line: u64, key: &str, reason: String) -> ManifestError {
    ManifestError { line, key: key.to_owned(), reason }
}

fn parse_error(error: &serde_saphyr::Error) -> ManifestError {
    let line = error.location().map_or(0, |location| location.line());
    // The library appends an excerpt of the file, which is omitted.
    let text = error.to_string();
    let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("invalid YAML").trim();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    // Removes the line number, which is in a separate field.
    let prefix = reason.split_once(": ").filter(|(prefix, _)| prefix.starts_with("line "));
    let reason = prefix.map_or(reason, |(_, reason)| reason);
    manifest_error(line, "", reason.to_owned())
}

#[cfg(test)]
mod tests;
