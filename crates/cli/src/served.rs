//! The assistants that a server answers with.

use std::path::Path;

use anyhow::Result;
use threadkeep::{Agent, Memory, MemoryOptions};
use threadkeep_server::Assistants;

use crate::assistants::{Found, Parts, built_in};
use crate::commands::App;
use crate::failure::Failure;
use crate::models;

/// The assistants of these names over a memory; without names those that are built in and those in the folder of
/// assistants.
pub(crate) fn assistants(app: &App, memory: &Memory, names: &[String], model: Option<&str>) -> Result<Assistants> {
    let assistants = Assistants::default();
    if !names.is_empty() {
        for name in names {
            assistants.put(agent(app, memory, name, model)?);
        }
        return Ok(assistants);
    }
    for (name, _) in built_in() {
        assistants.put(agent(app, memory, name, model)?);
    }
    for name in app.settings.assistants().iter().flat_map(|folder| written(folder)) {
        match agent(app, memory, &name, model) {
            Ok(agent) => assistants.put(agent),
            // One bad file must not keep the others from being served.
            Err(error) => app.output.note(format_args!("{error:#}; it is not served")),
        }
    }
    Ok(assistants)
}

fn agent(app: &App, memory: &Memory, name: &str, model: Option<&str>) -> Result<Agent> {
    let found = Found::find(name, &app.settings)?;
    if let Some(own) = found.store(app.global.store.as_deref())?
        && !app.global.store.as_deref().is_some_and(|store| store.starts_with("memory:"))
    {
        let failure = Failure::usage(format!("the assistant {name} keeps its conversations in {own}"));
        return Err(failure.hint(format!("serve it with --store {own}")).into());
    }
    let mut memory = memory.clone();
    if let Some(manifest) = found.manifest() {
        let options = MemoryOptions { retention: Some(manifest.memory.retention()), ..memory.options().clone() };
        memory = memory.with_options(options)?;
    }
    let speaker = models::speaker(model.or(found.model()), &app.settings)?;
    let embedder = models::embedder(&app.settings)?;
    let assistant = found.make(Parts { memory: memory.clone(), model: speaker, embedder })?;
    Ok(Agent::with_assistant(memory, assistant))
}

/// The YAML files of a folder, by path, in the order of their names.
fn written(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_written = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|end| end == "yaml" || end == "yml") && path.is_file()
    };
    let mut paths: Vec<String> =
        entries.filter(is_written).map(|path| path.to_string_lossy().into_owned()).collect();
    paths.sort();
    paths
}
