//! The assistants that are built in: the one list of them, and how one is found by its name.
//!
//! Everything else in this program reads the list. An assistant that is added to it has its settings, its command, its
//! help and its endpoints by that.

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
use crate::settings::Settings;
pub(crate) use help::{chat_details, examples_of, lines, names};

/// The assistants that are built in.
pub(crate) const BUILT_IN: &[AssistantPlugin] = &[threadkeep_general::PLUGIN, threadkeep_subway::PLUGIN];

/// What the assistant is called that speaks where none is named.
pub(crate) const DEFAULT: &str = BUILT_IN[0].name;

/// Bytes of a file that an assistant is written in.
const MANIFEST_BYTES: u64 = 256 * 1024;

/// An assistant that was found by its name.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    BuiltIn(&'static AssistantPlugin),
    Written { manifest: Box<Manifest>, path: PathBuf },
}

impl Found {
    /// Finds an assistant: one that is built in, a YAML file by its path, or `NAME.yaml` in the folder of assistants.
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
                let folder = folder.map_or_else(String::new, |folder| format!(", and those in {}", folder.display()));
                let failure = Failure::yours(format!("there is no assistant `{name}`"));
                Err(failure.hint(format!("there are {}{folder}; a YAML file is named by its path", names())).into())
            }
        }
    }

    /// The value that one exports which is built in.
    pub(crate) fn plugin(&self) -> Option<&'static AssistantPlugin> {
        match self {
            Self::BuiltIn(plugin) => Some(plugin),
            Self::Written { .. } => None,
        }
    }

    /// The model that it asks for.
    pub(crate) fn model(&self) -> Option<&str> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Written { manifest, .. } => manifest.model.as_deref(),
        }
    }

    /// What it is written in, where it is.
    pub(crate) fn manifest(&self) -> Option<&Manifest> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Written { manifest, .. } => Some(manifest),
        }
    }

    /// The store that it asks for, where that is another than the command's.
    pub(crate) fn store(&self, given: Option<&str>) -> Result<Option<String>> {
        let Self::Written { manifest, path } = self else { return Ok(None) };
        let scheme = given.and_then(|given| given.split_once(':')).map_or("sqlite", |(scheme, _)| scheme);
        let wants = |schemes: &[&str], name: &str| match schemes.contains(&scheme) {
            true => Ok(None),
            false => {
                let failure = Failure::usage(format!("{}: spec.memory.backend: {name} needs its URL", path.display()));
                Err(failure.hint(format!("give --store or THREADKEEP_STORE a URL of {name}")).into())
            }
        };
        match (manifest.memory.enabled, manifest.memory.backend) {
            (false, _) | (_, Some(MemoryBackend::InMemory)) => Ok(Some("memory:".to_owned())),
            (_, Some(MemoryBackend::Postgres)) => wants(&["postgres", "postgresql"], "postgres"),
            (_, Some(MemoryBackend::Redis)) => wants(&["redis", "rediss"], "redis"),
            (_, Some(MemoryBackend::Sqlite))
                if !matches!(scheme, "postgres" | "postgresql" | "redis" | "rediss" | "memory") =>
            {
                Ok(None)
            }
            (_, Some(MemoryBackend::Sqlite)) => wants(&[], "sqlite"),
            (true, None) => Ok(None),
        }
    }

    /// Makes it.
    pub(crate) fn make(&self, parts: AssistantParts, settings: &Settings) -> Result<Arc<dyn Assistant>> {
        match self {
            Self::BuiltIn(plugin) => Ok((plugin.make)(parts, &settings.of(plugin)).map_err(Failure::from)?),
            Self::Written { manifest, .. } => {
                let options = GeneralOptions { model: parts.model, embedder: parts.embedder, ..manifest.options() };
                Ok(Arc::new(General::new(&parts.memory, options)?))
            }
        }
    }
}

fn read(path: &Path) -> Result<Found> {
    let unread = || format!("the assistant {} cannot be read", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(unread)?;
    file.take(MANIFEST_BYTES + 1).read_to_end(&mut bytes).with_context(unread)?;
    if bytes.len() as u64 > MANIFEST_BYTES {
        return Err(Failure::yours(format!("{} has more than {MANIFEST_BYTES} bytes", path.display())).into());
    }
    let text = String::from_utf8(bytes).with_context(unread)?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let manifest = Manifest::from_yaml(&text, &name).map_err(|error| {
        let failure = Failure::yours(format!("{}: {error}", path.display()));
        failure.hint("docs/assistants.md says what may stand in it")
    })?;
    if BUILT_IN.iter().any(|plugin| plugin.name == manifest.name) {
        let failure = Failure::yours(format!("{}: an assistant `{}` is built in", path.display(), manifest.name));
        return Err(failure.hint("change metadata.name; without it the file's own name is taken").into());
    }
    check_assistant_name(&manifest.name).map_err(|error| {
        let failure = Failure::yours(format!("{}: {error}", path.display()));
        failure.hint("change metadata.name; without it the file's own name is taken")
    })?;
    Ok(Found::Written { manifest: Box::new(manifest), path: path.to_owned() })
}
