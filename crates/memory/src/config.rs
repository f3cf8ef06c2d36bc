//! Settings of one thread.

use serde::{Deserialize, Serialize};
use threadkeep_context::ContextPolicy;
use threadkeep_core::{
    Conflict, Expected, JsonText, Map, Namespace, PutRecord, RecordName, RecordOwner, Scope, StoreError, TaggedNumber,
    ThreadId, limits,
};

use crate::retry::retry;
use crate::{Memory, MemoryError, Result, Retention};

/// The settings of one thread, stored as the thread's record `config` in the namespace `app/threadkeep`. Settings that are
/// `None` are left to the assistant.
///
/// The settings restrict what a model reads and may do, not what is stored. `retention` takes effect only if the application
/// passes it to [`crate::AppendOptions`]. Settings added by a later version survive a change made by this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadConfig {
    /// Maximum number of history messages in a context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_limit: Option<u32>,
    /// The only tools that may be called in this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that may not be called in this thread, even if `enabled_tools` contains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled_tools: Vec<String>,
    /// The model that answers, such as `openai/gpt-4o-mini`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The retention policy of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Settings that are unknown to this version.
    #[serde(flatten)]
    pub other: Map,
}

impl ThreadConfig {
    /// Returns `policy` with its window limited to `history_limit` messages.
    #[must_use]
    pub fn limit_context(&self, policy: &ContextPolicy) -> ContextPolicy {
        let limit = self.history_limit.and_then(|limit| usize::try_from(limit).ok());
        let window = policy.window.into_iter().chain(limit).min();
        ContextPolicy { window, ..policy.clone() }
    }

    /// Whether a tool may be called in the thread.
    #[must_use]
    pub fn allows_tool(&self, name: &str) -> bool {
        let is_enabled = self.enabled_tools.as_ref().is_none_or(|names| names.iter().any(|enabled| enabled == name));
        is_enabled && !self.disabled_tools.iter().any(|disabled| disabled == name)
    }

    /// Validates the settings.
    ///
    /// # Errors
    /// `Invalid`, naming the setting.
    pub fn check(&self) -> Result<()> {
        if self.history_limit == Some(0) {
            return Err(MemoryError::invalid("history_limit", "must be at least 1"));
        }
        if self.model.as_deref() == Some("") {
            return Err(MemoryError::invalid("model", "must not be empty"));
        }
        if self.enabled_tools.iter().flatten().any(String::is_empty) {
            return Err(MemoryError::invalid("enabled_tools", "a tool name is empty"));
        }
        if self.disabled_tools.iter().any(|name| name.is_empty() || name.len() > limits::NAME_BYTES) {
            return Err(MemoryError::invalid("disabled_tools", "a tool name is empty or too long"));
        }
        if self.disabled_tools.len() > MAX_DISABLED {
            return Err(MemoryError::invalid("disabled_tools", "has more than 256 names"));
        }
        self.retention.as_ref().map_or(Ok(()), Retention::check)
    }
}

/// The maximum number of tools that are switched off in one thread.
const MAX_DISABLED: usize = 256;
/// The maximum number of attempts to change settings while others change the thread.
const MAX_ATTEMPTS: usize = 8;

/// Whether a tool may be called in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSwitch {
    /// It may be called, if the assistant has it.
    On,
    /// It may not be called.
    Off,
}

impl Memory {
    /// Switches single tools off or on again in a thread, and returns its new settings. No tool is added to those that an assistant has.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or too many tools, `NotFound` for an unknown thread, `Denied` if the thread is shared and `scope` is
    /// a user's, `Contended` if others change the thread all the time.
    pub async fn switch_tools(
        &self,
        scope: &Scope,
        thread: ThreadId,
        switches: &[(String, ToolSwitch)],
    ) -> Result<ThreadConfig> {
        for _ in 0..MAX_ATTEMPTS {
            let change = self.get_thread(scope, thread).await?.positions.tagged();
            let config = self.thread_config(scope, thread).await?;
            let mut changed = config.clone();
            for (name, switch) in switches {
                changed.disabled_tools.retain(|disabled| disabled != name);
                if *switch == ToolSwitch::Off {
                    changed.disabled_tools.push(name.clone());
                }
            }
            if changed == config {
                return Ok(config);
            }
            match self.set_thread_config(scope, thread, &changed, Some(Expected::Change(change))).await {
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. }))) => {}
                result => return result.map(|_| changed),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: MAX_ATTEMPTS })
    }

    /// Reads the settings of a thread; those that are not set are `None`.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Corrupt` for settings that cannot be decoded.
    pub async fn thread_config(&self, scope: &Scope, thread: ThreadId) -> Result<ThreadConfig> {
        let (owner, RecordName { namespace, key }, now) = (RecordOwner::Thread(thread), config_name(), self.now());
        let found = retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &key, now)).await?;
        match found {
            Some(record) => Ok(record.value.read()?),
            None => self.get_thread(scope, thread).await.map(|_| ThreadConfig::default()),
        }
    }

    /// Replaces the settings of a thread, if the thread is at the `expected` position or change. Returns the thread's new change.
    ///
    /// # Errors
    /// `Invalid` for invalid settings, `NotFound` for an unknown thread, `Denied` if the thread is shared and `scope` is a
    /// user's, `Conflict` with the actual position or change if the thread is not at the `expected` one.
    pub async fn set_thread_config(
        &self,
        scope: &Scope,
        thread: ThreadId,
        config: &ThreadConfig,
        expected: Option<Expected>,
    ) -> Result<TaggedNumber> {
        config.check()?;
        let now = self.now();
        let mut batch = self.new_batch(now);
        batch.expected = expected;
        batch.put.push(PutRecord { name: config_name(), value: JsonText::of(config)?, expires_at: None });
        Ok(self.commit_with_retries(scope, thread, &batch, now).await?.tagged())
    }
}

pub(crate) fn config_name() -> RecordName {
    RecordName { namespace: Namespace::App("threadkeep".to_owned()), key: "config".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S1.23
    #[test]
    fn errors_name_the_invalid_setting_and_unknown_settings_are_preserved() {
        let cases = [
            (ThreadConfig { history_limit: Some(0), ..ThreadConfig::default() }, "invalid history_limit"),
            (ThreadConfig { model: Some(String::new()), ..ThreadConfig::default() }, "invalid model"),
            (
                ThreadConfig { enabled_tools: Some(vec![String::new()]), ..ThreadConfig::default() },
                "invalid enabled_tools",
            ),
            (
                ThreadConfig {
                    retention: Some(Retention { max_messages: Some(0), ttl_minutes: None }),
                    ..ThreadConfig::default()
                },
                "invalid max_messages",
            ),
        ];
        for (config, expected) in cases {
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let later = r#"{"history_limit":10,"temperature":0.1}"#;
        let config: ThreadConfig = serde_json::from_str(later).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), later);
    }
}
