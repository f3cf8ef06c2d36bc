//! The assistant's YAML file: instructions, memory, the cluster's rules and approvals.

use serde::Deserialize;
use serde_json::Value;
use threadkeep::Retention;

/// The maximum size of the file, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum of `max_messages`.
const MAX_MESSAGES: i64 = 1_000_000;
/// The maximum of `context_window`.
const MAX_WINDOW: i64 = 1_000;
const MAX_MINUTES: i64 = 60 * 24 * 365;

/// What may be read and changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// Whether nothing may be changed.
    pub read_only: bool,
    /// The namespaces that may be read and changed; `None` for all.
    pub namespaces: Option<Vec<String>>,
}

impl AccessRules {
    /// Whether a namespace may be read and changed.
    #[must_use]
    pub fn allows(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == namespace))
    }

    pub(crate) fn list(&self) -> String {
        self.namespaces.as_ref().map_or_else(String::new, |names| names.join(", "))
    }
}

/// The memory of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRules {
    /// Whether conversations are remembered.
    pub enabled: bool,
    /// The number of messages that are kept in each conversation.
    pub max_messages: u64,
    /// The number of messages that the model receives.
    pub context_window: usize,
    /// The minutes after which a message is no longer used, and is removed.
    pub ttl_minutes: u32,
}

impl Default for MemoryRules {
    fn default() -> Self {
        Self { enabled: true, max_messages: 20, context_window: 10, ttl_minutes: 60 }
    }
}

impl MemoryRules {
    /// Returns the retention of each conversation.
    #[must_use]
    pub fn retention(&self) -> Retention {
        Retention { max_messages: Some(self.max_messages), ttl_minutes: Some(self.ttl_minutes) }
    }
}

/// Who may approve, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRules {
    /// The ids of the people who may decide; `None` for everyone in the conversation.
    pub allowed_users: Option<Vec<String>>,
    /// Whether users may approve their own requests.
    pub allow_requester: bool,
    /// The minutes after which a request expires.
    pub expires_minutes: u32,
}

impl Default for ApprovalRules {
    fn default() -> Self {
        Self { allowed_users: None, allow_requester: true, expires_minutes: 30 }
    }
}

/// The configuration of the assistant.
///
/// ```
/// use threadkeep_kubeops::Config;
///
/// let config = Config::from_yaml("spec:\n  kubernetes: {read_only: true}\n  memory: {max_messages: 50}\n")?;
/// assert!(config.access.read_only);
/// assert_eq!((config.memory.max_messages, config.memory.context_window, config.memory.ttl_minutes), (50, 10, 60));
/// # Ok::<(), threadkeep_kubeops::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `spec.instructions`, which replace the default ones.
    pub instructions: Option<String>,
    /// `spec.memory`.
    pub memory: MemoryRules,
    /// `spec.kubernetes`.
    pub access: AccessRules,
    /// `spec.approvals`.
    pub approvals: ApprovalRules,
}

/// An error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "apiVersion")]
    _api_version: Value,
    #[serde(default, rename = "kind")]
    _kind: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    #[serde(default)]
    instructions: Value,
    #[serde(default)]
    memory: Memory,
    #[serde(default)]
    kubernetes: Kubernetes,
    #[serde(default)]
    approvals: Approvals,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    #[serde(default)]
    enabled: Value,
    #[serde(default)]
    max_messages: Value,
    #[serde(default)]
    context_window: Value,
    #[serde(default)]
    ttl_minutes: Value,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kubernetes {
    #[serde(default)]
    read_only: Value,
    #[serde(default)]
    namespaces: Value,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Approvals {
    #[serde(default)]
    allowed_users: Value,
    #[serde(default)]
    allow_requester: Value,
    #[serde(default)]
    expires_minutes: Value,
}

type Result<T> = std::result::Result<T, ConfigError>;

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The first invalid value, with its key.
    pub fn from_yaml(text: &str) -> Result<Self> {
        if text.len() > MAX_BYTES {
            return Err(ConfigError(format!("the file exceeds {MAX_BYTES} bytes")));
        }
        let file: File = serde_saphyr::from_str(text).map_err(|error| {
            let text = error.to_string();
            ConfigError(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("invalid YAML").trim().to_owned())
        })?;
        let Spec { instructions, memory, kubernetes, approvals } = file.spec;
        let default = ApprovalRules::default();
        let minutes = number(&approvals.expires_minutes, "spec.approvals.expires_minutes", MAX_MINUTES)?;
        Ok(Self {
            instructions: string(&instructions, "spec.instructions")?,
            memory: memory_rules(&memory)?,
            access: AccessRules {
                read_only: flag(&kubernetes.read_only, "spec.kubernetes.read_only")?.unwrap_or(false),
                namespaces: strings(&kubernetes.namespaces, "spec.kubernetes.namespaces")?,
            },
            approvals: ApprovalRules {
                allowed_users: strings(&approvals.allowed_users, "spec.approvals.allowed_users")?,
                allow_requester: flag(&approvals.allow_requester, "spec.approvals.allow_requester")?.unwrap_or(true),
                expires_minutes: minutes
                    .and_then(|minutes| u32::try_from(minutes).ok())
                    .unwrap_or(default.expires_minutes),
            },
        })
    }
}

fn memory_rules(memory: &Memory) -> Result<MemoryRules> {
    let default = MemoryRules::default();
    let max_messages =
        number(&memory.max_messages, "spec.memory.max_messages", MAX_MESSAGES)?.unwrap_or(default.max_messages);
    let window = number(&memory.context_window, "spec.memory.context_window", MAX_WINDOW)?;
    if let Some(window) = window.filter(|window| *window > max_messages) {
        let text =
            format!("spec.memory.context_window: {window} is greater than max_messages, which is {max_messages}");
        return Err(ConfigError(text));
    }
    let window = window.unwrap_or(max_messages.min(default.context_window as u64));
    let minutes = number(&memory.ttl_minutes, "spec.memory.ttl_minutes", MAX_MINUTES)?;
    Ok(MemoryRules {
        enabled: flag(&memory.enabled, "spec.memory.enabled")?.unwrap_or(true),
        max_messages,
        context_window: usize::try_from(window).unwrap_or(default.context_window),
        ttl_minutes: minutes.and_then(|minutes| u32::try_from(minutes).ok()).unwrap_or(default.ttl_minutes),
    })
}

fn number(value: &Value, key: &str, max: i64) -> Result<Option<u64>> {
    match value.as_i64() {
        _ if value.is_null() => Ok(None),
        Some(number) if (1..=max).contains(&number) => Ok(u64::try_from(number).ok()),
        _ => Err(ConfigError(format!("{key}: expected an integer from 1 to {max}, found {value}"))),
    }
}

fn flag(value: &Value, key: &str) -> Result<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        other => Err(ConfigError(format!("{key}: expected true or false, found {other}"))),
    }
}

fn string(value: &Value, key: &str) -> Result<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if !text.trim().is_empty() => Ok(Some(text.clone())),
        other => Err(ConfigError(format!("{key}: expected a non-empty string, found {other}"))),
    }
}

fn strings(value: &Value, key: &str) -> Result<Option<Vec<String>>> {
    match value {
        Value::Null => Ok(None),
        Value::Array(entries) => {
            let name = |entry: &Value| {
                string(entry, key)?.ok_or_else(|| ConfigError(format!("{key}: a name must not be empty")))
            };
            entries.iter().map(name).collect::<Result<_>>().map(Some)
        }
        other => Err(ConfigError(format!("{key}: expected a list, found {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4.35, S4.38, S4.39
    #[test]
    fn absent_values_have_their_defaults() {
        for text in ["spec: {}", "spec: {memory: {}}", "kind: Agent\nmetadata: {name: k8s}\n"] {
            assert_eq!(Config::from_yaml(text).unwrap(), Config::default(), "{text}");
        }
        let memory = Config::from_yaml("spec: {memory: {max_messages: 6}}").unwrap().memory;
        assert_eq!((memory.max_messages, memory.context_window), (6, 6));
        assert_eq!(memory.retention(), Retention { max_messages: Some(6), ttl_minutes: Some(60) });
    }

    // S4.38
    #[test]
    fn errors_name_the_key_of_an_invalid_value() {
        for (text, key) in [
            ("memory: {max_messages: 0}", "spec.memory.max_messages"),
            ("memory: {max_messages: -1}", "spec.memory.max_messages"),
            ("memory: {ttl_minutes: soon}", "spec.memory.ttl_minutes"),
            ("memory: {context_window: 21}", "spec.memory.context_window"),
            ("memory: {enabled: 1}", "spec.memory.enabled"),
            ("memory: {backend: tape}", "backend"),
            ("kubernetes: {namespaces: prod}", "spec.kubernetes.namespaces"),
            ("approvals: {allowed_users: ['']}", "spec.approvals.allowed_users"),
        ] {
            let error = Config::from_yaml(&format!("spec:\n  {text}\n")).unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
