//! The assistants that a server answers with, as they are written now.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use threadkeep::agent::plugin::AssistantParts;
use threadkeep::{Agent, Memory, MemoryOptions};
use threadkeep_server::{Assistants, Server};

use crate::assistants::{BUILT_IN, Found};
use crate::commands::App;
use crate::failure::Failure;
use crate::models;

/// How often files are looked at.
const MOMENT: Duration = Duration::from_secs(1);

/// Assistants, and the files that some of them are written in.
#[derive(Debug)]
pub(crate) struct Served<'a> {
    app: &'a App,
    memory: Memory,
    model: Option<&'a str>,
    /// Those that were named; none for all that there are.
    names: &'a [String],
    assistants: Assistants,
    files: BTreeMap<PathBuf, Written>,
    /// Files that those that are built in read.
    read_by: Vec<ReadBy>,
}

/// A file that a built-in assistant reads.
#[derive(Debug)]
struct ReadBy {
    name: &'static str,
    path: PathBuf,
    stamp: Option<(SystemTime, u64)>,
}

/// A file as it was read.
#[derive(Debug)]
struct Written {
    stamp: Option<(SystemTime, u64)>,
    /// The assistant that was made of it.
    name: Option<String>,
}

impl<'a> Served<'a> {
    /// Makes the assistants of these names; without names those that are built in and those in the folder of assistants.
    pub(crate) fn open(app: &'a App, memory: &Memory, names: &'a [String], model: Option<&'a str>) -> Result<Self> {
        let (memory, assistants, files) = (memory.clone(), Server::assistants(), BTreeMap::new());
        let mut served = Self { app, memory, model, names, assistants, files, read_by: Vec::new() };
        let built_in: Vec<&str> = BUILT_IN.iter().map(|plugin| plugin.name).collect();
        let named = if names.is_empty() { &built_in } else { &names.iter().map(String::as_str).collect() };
        for name in named {
            served.watch(name);
            let assistant = served.put(name)?;
            if is_path(name) {
                let (path, stamp) = (PathBuf::from(name), stamp(Path::new(name)));
                served.files.insert(path, Written { stamp, name: Some(assistant) });
            }
        }
        served.look();
        Ok(served)
    }

    /// The assistants; whoever holds them sees what becomes of the files.
    pub(crate) fn assistants(&self) -> Assistants {
        self.assistants.clone()
    }

    /// Follows the files for as long as it is waited for.
    pub(crate) async fn follow(mut self) -> Infallible {
        loop {
            tokio::time::sleep(MOMENT).await;
            self.look();
        }
    }

    /// Follows the files that an assistant reads, if it is built in.
    fn watch(&mut self, name: &str) {
        let Some(plugin) = BUILT_IN.iter().find(|plugin| plugin.name == name) else { return };
        let settings = self.app.settings.of(plugin);
        let files = plugin.watched.iter().filter_map(|setting| settings.file(setting));
        self.read_by.extend(files.map(|path| ReadBy { name: plugin.name, stamp: stamp(&path), path }));
    }

    /// Takes up what was written since the last look. A file that makes no assistant leaves the one that it made before.
    fn look(&mut self) {
        if self.names.is_empty() {
            self.look_for_new();
        }
        let paths: Vec<PathBuf> = self.files.keys().cloned().collect();
        for path in paths {
            let stamp = stamp(&path);
            let known = self.files.get(&path).map(|written| written.stamp);
            if stamp.is_none() && self.names.is_empty() {
                if let Some(Written { name: Some(name), .. }) = self.files.remove(&path) {
                    self.assistants.remove(&name);
                    tracing::info!("{name} is served no more: its file is gone");
                }
            } else if known != Some(stamp) && stamp.is_some() {
                self.read(&path, stamp);
            }
        }
        self.look_at_what_is_read();
    }

    /// Makes those that are built in anew whose file was written since the last look.
    fn look_at_what_is_read(&mut self) {
        for place in 0..self.read_by.len() {
            let ReadBy { name, path, stamp: known } = &mut self.read_by[place];
            let stamp = stamp(path).filter(|stamp| *known != Some(*stamp));
            if stamp.is_none() {
                continue;
            }
            *known = stamp;
            let (name, path) = (*name, path.display().to_string());
            match self.put(name) {
                Ok(_) => tracing::info!("{name} is served with {path} as it stands now"),
                Err(error) => tracing::warn!("{error:#}: {name} is served as before"),
            }
        }
    }

    fn look_for_new(&mut self) {
        let folder = self.app.settings.assistants();
        let entries = folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| is_path(&path.to_string_lossy())) {
            self.files.entry(path).or_insert(Written { stamp: None, name: None });
        }
    }

    fn read(&mut self, path: &Path, stamp: Option<(SystemTime, u64)>) {
        let before = self.files.get(path).and_then(|written| written.name.clone());
        let name = match self.put(&path.to_string_lossy()) {
            Ok(name) => {
                if let Some(before) = before.filter(|before| *before != name) {
                    self.assistants.remove(&before);
                }
                tracing::info!("{name} is served as {} has it", path.display());
                Some(name)
            }
            Err(error) => {
                tracing::warn!("{error:#}: it is not served so");
                before
            }
        };
        self.files.insert(path.to_owned(), Written { stamp, name });
    }

    /// Makes an assistant and serves it; what it is called.
    fn put(&self, name: &str) -> Result<String> {
        let app = self.app;
        let found = Found::find(name, &app.settings)?;
        let store = app.global.store.as_deref();
        if let Some(own) = found.store(store)?
            && !store.is_some_and(|store| store.starts_with("memory:"))
        {
            let failure = Failure::usage(format!("the assistant {name} keeps its conversations in {own}"));
            return Err(failure.hint(format!("serve it with --store {own}")).into());
        }
        let mut memory = self.memory.clone();
        if let Some(manifest) = found.manifest() {
            // The ends of threads are kept once, by the server.
            let retention = Some(manifest.memory.retention());
            let options = MemoryOptions { retention, tail_bytes: 0, ..memory.options().clone() };
            memory = memory.with_options(options)?;
        }
        let speaker = models::speaker(self.model.or(found.model()), &app.settings)?;
        let embedder = models::embedder(&app.settings)?.map(|embedder| self.assistants.watched(embedder));
        let parts = AssistantParts { memory: memory.clone(), model: speaker, embedder };
        let assistant = found.make(parts, &app.settings)?;
        let name = assistant.definition().name.clone();
        let lookups = found.plugin().map_or(&[][..], |plugin| plugin.lookups);
        self.assistants.put_with_lookups(Agent::with_assistant(memory, assistant), lookups)?;
        Ok(name)
    }
}

fn is_path(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}

/// What tells a file from the same one before.
fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len()))
}
