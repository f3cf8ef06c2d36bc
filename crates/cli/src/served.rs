//! Loads the assistants that a server offers, and reloads those whose files change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use threadkeep::agent::plugin::AssistantParts;
use threadkeep::{Agent, Memory, MemoryOptions};
use threadkeep_server::{Assistants, Server};

use crate::assistants::{AssistantSource, BUILT_IN};
use crate::commands::App;
use crate::failure::Failure;
use crate::models;

/// The interval at which files are checked for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The modification time of a file, and its size in bytes.
type Stamp = (SystemTime, u64);

/// The served assistants, and the files from which they are loaded.
#[derive(Debug)]
pub(crate) struct ServedAssistants<'a> {
    app: &'a App,
    memory: Memory,
    model: Option<&'a str>,
    /// The requested assistants. If empty, all available assistants are served.
    names: &'a [String],
    assistants: Assistants,
    manifests: BTreeMap<PathBuf, ManifestFile>,
    /// The files that built-in assistants read.
    data_files: Vec<DataFile>,
}

/// A data file of a built-in assistant.
#[derive(Debug)]
struct DataFile {
    assistant: &'static str,
    path: PathBuf,
    stamp: Option<Stamp>,
}

/// A YAML file that defines an assistant, as of the last read.
#[derive(Debug)]
struct ManifestFile {
    stamp: Option<Stamp>,
    /// The name of the assistant that was loaded from the file.
    assistant: Option<String>,
}

impl<'a> ServedAssistants<'a> {
    /// Loads the named assistants. If `names` is empty, loads the built-in assistants and those in the assistants' folder.
    pub(crate) fn open(app: &'a App, memory: &Memory, names: &'a [String], model: Option<&'a str>) -> Result<Self> {
        let (memory, assistants, manifests) = (memory.clone(), Server::assistants(), BTreeMap::new());
        let mut served = Self { app, memory, model, names, assistants, manifests, data_files: Vec::new() };
        let built_in: Vec<&str> = BUILT_IN.iter().map(|plugin| plugin.name).collect();
        let requested = if names.is_empty() { &built_in } else { &names.iter().map(String::as_str).collect() };
        for name in requested {
            served.watch_data_files(name);
            let assistant = served.load(name)?;
            if is_path(name) {
                let (path, stamp) = (PathBuf::from(name), stamp(Path::new(name)));
                served.manifests.insert(path, ManifestFile { stamp, assistant: Some(assistant) });
            }
        }
        served.poll();
        Ok(served)
    }

    /// Returns the assistants. The handle also reflects later reloads.
    pub(crate) fn assistants(&self) -> Assistants {
        self.assistants.clone()
    }

    /// Reloads assistants when their files change. Never returns.
    pub(crate) async fn watch(mut self) -> Infallible {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            self.poll();
        }
    }

    /// Registers the data files of a built-in assistant.
    fn watch_data_files(&mut self, name: &str) {
        let Some(plugin) = BUILT_IN.iter().find(|plugin| plugin.name == name) else { return };
        let settings = self.app.settings.for_plugin(plugin);
        let servers = self.app.settings.mcp_servers().filter(|_| plugin.uses_tool_sources).map(|(file, _)| file);
        let files = plugin.watched.iter().filter_map(|setting| settings.file(setting)).chain(servers);
        self.data_files.extend(files.map(|path| DataFile { assistant: plugin.name, stamp: stamp(&path), path }));
    }

    /// Loads new and changed files. If a changed file is invalid, the previous version of its assistant stays in use.
    fn poll(&mut self) {
        if self.names.is_empty() {
            self.find_new_manifests();
        }
        let paths: Vec<PathBuf> = self.manifests.keys().cloned().collect();
        for path in paths {
            let stamp = stamp(&path);
            let known = self.manifests.get(&path).map(|manifest| manifest.stamp);
            if stamp.is_none() && self.names.is_empty() {
                if let Some(ManifestFile { assistant: Some(name), .. }) = self.manifests.remove(&path) {
                    self.assistants.remove(&name);
                    tracing::info!("stopped serving {name}: its file was removed");
                }
            } else if known != Some(stamp) && stamp.is_some() {
                self.load_manifest(&path, stamp);
            }
        }
        self.reload_built_in();
    }

    /// Reloads built-in assistants whose data files changed since the last poll.
    fn reload_built_in(&mut self) {
        for index in 0..self.data_files.len() {
            let DataFile { assistant, path, stamp: known } = &mut self.data_files[index];
            let stamp = stamp(path).filter(|stamp| *known != Some(*stamp));
            if stamp.is_none() {
                continue;
            }
            *known = stamp;
            let (name, path) = (*assistant, path.display().to_string());
            match self.load(name) {
                Ok(_) => tracing::info!("reloaded {name}: {path} changed"),
                Err(error) => tracing::warn!("cannot reload {name}, still serving the previous version: {error:#}"),
            }
        }
    }

    fn find_new_manifests(&mut self) {
        let folder = self.app.settings.assistants();
        let entries = folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| is_path(&path.to_string_lossy())) {
            self.manifests.entry(path).or_insert(ManifestFile { stamp: None, assistant: None });
        }
    }

    fn load_manifest(&mut self, path: &Path, stamp: Option<Stamp>) {
        let previous = self.manifests.get(path).and_then(|manifest| manifest.assistant.clone());
        let assistant = match self.load(&path.to_string_lossy()) {
            Ok(name) => {
                if let Some(previous) = previous.filter(|previous| *previous != name) {
                    self.assistants.remove(&previous);
                }
                tracing::info!("serving {name} from {}", path.display());
                Some(name)
            }
            Err(error) => {
                tracing::warn!("cannot load {}: {error:#}", path.display());
                previous
            }
        };
        self.manifests.insert(path.to_owned(), ManifestFile { stamp, assistant });
    }

    /// Creates an assistant, serves it and returns its name.
    fn load(&self, name: &str) -> Result<String> {
        let app = self.app;
        let found = AssistantSource::find(name, &app.settings)?;
        let store = app.global.store.as_deref();
        if let Some(required_store) = found.store(store)?
            && !store.is_some_and(|store| store.starts_with("memory:"))
        {
            let failure = Failure::usage(format!("the assistant {name} requires the store {required_store}"));
            return Err(failure.hint(format!("run the server with --store {required_store}")).into());
        }
        let mut memory = self.memory.clone();
        if let Some(retention) = found.retention(&app.settings)? {
            // The server already has a thread cache.
            let retention = Some(retention);
            let options = MemoryOptions { retention, thread_cache_bytes: 0, ..memory.options().clone() };
            memory = memory.with_options(options)?;
        }
        let model = models::chat_model(self.model.or(found.model()), &app.settings)?;
        let embedder = models::embedder(&app.settings)?.map(|embedder| self.assistants.instrumented(embedder));
        let parts = AssistantParts { memory: memory.clone(), model, embedder, tool_sources: Vec::new() };
        let assistant = found.make(parts, &app.settings)?;
        for source in assistant.definition().tool_sources.clone() {
            // Starts the MCP server in the background, so that the first turn need not wait for it.
            tokio::spawn(async move { source.wait_until_ready().await });
        }
        let name = assistant.definition().name.clone();
        let agent = Agent::with_assistant(memory, assistant);
        match found.plugin() {
            Some(plugin) => self.assistants.put_with_plugin(agent, plugin)?,
            None => self.assistants.put(agent)?,
        }
        Ok(name)
    }
}

fn is_path(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}

/// Returns the modification time and size of a file. Used to detect changes.
fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len()))
}
