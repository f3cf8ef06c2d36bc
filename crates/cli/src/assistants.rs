//! Lists the built-in assistants, and finds assistants by name.
//!
//! The rest of the program uses only this list: an assistant that is added here gets its settings, commands, help and
//! endpoints.

mod help;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use threadkeep::agent::plugin::AssistantParts;
use threadkeep::{Assistant, AssistantPlugin};
use threadkeep_general::{General, GeneralOptions, Manifest, MemoryBackend};
use threadkeep_server::check_assistant_name;

use crate::failure::Failure;
use crate::mcp_servers;
use crate::settings::Settings;
use crate::store::REDIS;
pub(crate) use help::{chat_details, command_examples, lines, names};

/// The built-in assistants.
pub(crate) const BUILT_IN: &[AssistantPlugin] = &[
    threadkeep_general::PLUGIN,
    threadkeep_subway::PLUGIN,
    threadkeep_underground::PLUGIN,
    threadkeep_tesis::PLUGIN,
    threadkeep_kubeops::PLUGIN,
];

/// The name of the default assistant.
pub(crate) const DEFAULT: &str = BUILT_IN[0].name;

/// The maximum size of a YAML file that defines an assistant.
const MANIFEST_BYTES: u64 = 256 * 1024;

/// Where an assistant is defined.
#[derive(Clone, Debug)]
pub(crate) enum AssistantSource {
    BuiltIn(&'static AssistantPlugin),
    File { manifest: Box<Manifest>, path: PathBuf },
}

/// The assistant that answers in Slack unless another one is configured, and that operates the cluster of a simulation.
pub(crate) const OPERATOR: &AssistantPlugin = &threadkeep_kubeops::PLUGIN;

/// The operator's settings that its door must enforce.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperatorRules {
    pub(crate) remembers: bool,
    pub(crate) requester_may_approve: bool,
}

/// Returns the operator's settings that its door must enforce.
///
/// # Errors
/// Its configuration file is invalid.
pub(crate) fn operator_rules(settings: &Settings) -> Result<OperatorRules> {
    let config = threadkeep_kubeops::config(&settings.for_plugin(OPERATOR)).map_err(Failure::from)?;
    Ok(OperatorRules { remembers: config.memory.enabled, requester_may_approve: config.approvals.allow_requester })
}

impl AssistantSource {
    /// Returns how long the assistant's conversations are kept, or `None` for the default of the program that opens the
    /// store.
    ///
    /// # Errors
    /// The assistant's configuration is invalid.
    pub(crate) fn retention(&self, settings: &Settings) -> Result<Option<threadkeep::Retention>> {
        match self {
            Self::BuiltIn(plugin) => Ok((plugin.retention)(&settings.for_plugin(plugin)).map_err(Failure::from)?),
            Self::File { manifest, .. } => Ok(Some(manifest.memory.retention())),
        }
    }

    /// Finds an assistant: a built-in one, a YAML file by its path, or `NAME.yaml` in the assistants' folder.
    ///
    /// # Errors
    /// No assistant has this name, or its file is invalid.
    pub(crate) fn find(name: &str, settings: &Settings) -> Result<Self> {
        if let Some(plugin) = BUILT_IN.iter().find(|plugin| plugin.name == name) {
            return Ok(Self::BuiltIn(plugin));
        }
        let is_path = name.ends_with(".yaml") || name.ends_with(".yml");
        if is_path {
            return read(Path::new(name));
        }
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        let folder = settings.assistants();
        let files = folder.iter().flat_map(|folder| ["yaml", "yml"].map(|end| folder.join(format!("{name}.{end}"))));
        match files.into_iter().find(|file| is_name && file.is_file()) {
            Some(file) => read(&file),
            None => {
                let folder = folder.map_or_else(String::new, |folder| format!(", and files in {}", folder.display()));
                let failure = Failure::user_error(format!("assistant `{name}` not found"));
                Err(failure.hint(format!("available: {}{folder}; to use a YAML file, pass its path", names())).into())
            }
        }
    }

    /// Returns the plugin of a built-in assistant.
    pub(crate) fn plugin(&self) -> Option<&'static AssistantPlugin> {
        match self {
            Self::BuiltIn(plugin) => Some(plugin),
            Self::File { .. } => None,
        }
    }

    /// Returns the model that the assistant specifies.
    pub(crate) fn model(&self) -> Option<&str> {
        match self {
            Self::BuiltIn(_) => None,
            Self::File { manifest, .. } => manifest.model.as_deref(),
        }
    }

    /// Returns the URL of the store that the assistant requires, instead of the store that the command names.
    ///
    /// # Errors
    /// The assistant requires a backend, and the command's store uses a different one.
    pub(crate) fn store(&self, given: Option<&str>) -> Result<Option<String>> {
        let Self::File { manifest, path } = self else { return Ok(None) };
        let scheme = given.and_then(|given| given.split_once(':')).map_or("sqlite", |(scheme, _)| scheme);
        let require = |schemes: &[&str], name: &str| match schemes.contains(&scheme) {
            true => Ok(None),
            false => {
                let failure =
                    Failure::usage(format!("{}: spec.memory.backend: {name} needs a store URL", path.display()));
                Err(failure.hint(format!("set --store or THREADKEEP_STORE to a {name} URL")).into())
            }
        };
        match (manifest.memory.enabled, manifest.memory.backend) {
            (false, _) | (_, Some(MemoryBackend::InMemory)) => Ok(Some("memory:".to_owned())),
            (_, Some(MemoryBackend::Postgres)) => require(&["postgres", "postgresql"], "postgres"),
            (_, Some(MemoryBackend::Redis)) => require(REDIS, "redis"),
            (_, Some(MemoryBackend::Sqlite))
                if !matches!(scheme, "postgres" | "postgresql" | "memory") && !REDIS.contains(&scheme) =>
            {
                Ok(None)
            }
            (_, Some(MemoryBackend::Sqlite)) => require(&[], "sqlite"),
            (true, None) => Ok(None),
        }
    }

    /// Creates the assistant.
    pub(crate) fn make(&self, parts: AssistantParts, settings: &Settings) -> Result<Arc<dyn Assistant>> {
        match self {
            Self::BuiltIn(plugin) => {
                let parts = AssistantParts { tool_sources: mcp_servers::tool_sources(self, settings)?, ..parts };
                Ok((plugin.make)(parts, &settings.for_plugin(plugin)).map_err(Failure::from)?)
            }
            Self::File { manifest, .. } => {
                let options = GeneralOptions {
                    model: parts.model,
                    embedder: parts.embedder,
                    tool_sources: mcp_servers::tool_sources(self, settings)?,
                    ..manifest.options()
                };
                Ok(Arc::new(General::new(&parts.memory, options)?))
            }
        }
    }
}

fn read(path: &Path) -> Result<AssistantSource> {
    let cannot_read = || format!("cannot read the assistant {}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(cannot_read)?;
    file.take(MANIFEST_BYTES + 1).read_to_end(&mut bytes).with_context(cannot_read)?;
    if bytes.len() as u64 > MANIFEST_BYTES {
        return Err(Failure::user_error(format!("{} is larger than {MANIFEST_BYTES} bytes", path.display())).into());
    }
    let text = String::from_utf8(bytes).with_context(cannot_read)?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let manifest = Manifest::from_yaml(&text, &name).map_err(|error| {
        let failure = Failure::user_error(format!("{}: {error}", path.display()));
        failure.hint("docs/assistants.md describes the format")
    })?;
    if BUILT_IN.iter().any(|plugin| plugin.name == manifest.name) {
        let failure =
            Failure::user_error(format!("{}: `{}` is the name of a built-in assistant", path.display(), manifest.name));
        return Err(failure.hint("change metadata.name, which defaults to the file name").into());
    }
    check_assistant_name(&manifest.name).map_err(|error| {
        let failure = Failure::user_error(format!("{}: {error}", path.display()));
        failure.hint("change metadata.name, which defaults to the file name")
    })?;
    Ok(AssistantSource::File { manifest: Box::new(manifest), path: path.to_owned() })
}
