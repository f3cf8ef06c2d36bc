//! The external MCP servers whose tools assistants use: those of YAML files, and those of the operator's file for built-in assistants.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use threadkeep::{ToolSource, Value};
use threadkeep_mcp::{ExternalServer, ServerSpec, probe, server_specs};

use crate::assistants::{AssistantSource, BUILT_IN};
use crate::failure::Failure;
use crate::settings::{Settings, text_file, variable};

/// The file of servers, in the form that most programs use. It may be JSON or YAML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerFile {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Value>,
}

/// Returns the sources of an assistant's further tools. Their servers are started when an assistant first needs them.
///
/// # Errors
/// The configuration is invalid.
pub(crate) fn tool_sources(assistant: &AssistantSource, settings: &Settings) -> Result<Vec<Arc<dyn ToolSource>>> {
    let source = |spec| Arc::new(ExternalServer::new(spec)) as Arc<dyn ToolSource>;
    Ok(specs(assistant, settings)?.into_iter().map(source).collect())
}

/// Returns the servers of an assistant.
fn specs(assistant: &AssistantSource, settings: &Settings) -> Result<Vec<ServerSpec>> {
    match assistant {
        AssistantSource::BuiltIn(plugin) if plugin.uses_tool_sources => {
            let Some((path, is_specified)) = settings.mcp_servers() else { return Ok(Vec::new()) };
            if is_specified || path.exists() { read(&path) } else { Ok(Vec::new()) }
        }
        AssistantSource::BuiltIn(_) => Ok(Vec::new()),
        AssistantSource::File { manifest, path } => {
            let mut specs = Vec::new();
            for entry in &manifest.mcp_servers {
                let read = server_specs([(entry.name.as_str(), &entry.value)], &variable);
                specs.extend(read.map_err(|reason| {
                    let place = format!("{}: line {}: spec.mcp_servers", path.display(), entry.line);
                    Failure::user_error(format!("{place}: {reason}")).hint("docs/mcp.md describes the entries")
                })?);
            }
            Ok(specs)
        }
    }
}

fn read(path: &Path) -> Result<Vec<ServerSpec>> {
    let text = text_file(path)?;
    let invalid = |reason: String| {
        Failure::user_error(format!("{}: {reason}", path.display())).hint("docs/mcp.md describes the file")
    };
    let file: ServerFile = serde_saphyr::from_str(&text).map_err(|error| {
        let text = error.to_string();
        invalid(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("invalid JSON").trim().to_owned())
    })?;
    let entries = file.servers.iter().map(|(name, entry)| (name.as_str(), entry));
    Ok(server_specs(entries, &variable).map_err(invalid)?)
}

/// What a check of one server found.
#[derive(Debug, Serialize)]
pub(crate) struct CheckedServer {
    assistant: String,
    /// `None` if the configuration of the assistant's servers is invalid.
    server: Option<String>,
    /// The tools, as models call them.
    tools: Vec<String>,
    /// The tools that are called without approval.
    allowed: Vec<String>,
    /// Tools that are not used, and configured tools that do not exist.
    notes: Vec<String>,
    /// Why the server cannot be used.
    error: Option<String>,
}

impl CheckedServer {
    fn failed(assistant: &str, server: Option<&str>, error: String) -> Self {
        let (assistant, server) = (assistant.to_owned(), server.map(str::to_owned));
        Self { assistant, server, tools: Vec::new(), allowed: Vec::new(), notes: Vec::new(), error: Some(error) }
    }

    /// Returns the error as a line.
    pub(crate) fn problem(&self) -> Option<String> {
        let server = self.server.as_ref().map_or_else(String::new, |server| format!("MCP server {server}: "));
        self.error.as_ref().map(|error| format!("{}: {server}{error}", self.assistant))
    }

    /// Describes a server that can be used.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(server) = self.server.as_ref().filter(|_| self.error.is_none()) else { return Vec::new() };
        let name = |tool: &String| {
            let mark = if self.allowed.contains(tool) { " (without approval)" } else { "" };
            format!("{tool}{mark}")
        };
        let tools: Vec<String> = self.tools.iter().map(name).collect();
        let tools = if tools.is_empty() { "no tools".to_owned() } else { tools.join(", ") };
        let mut lines = vec![format!("{}: MCP server {server}: {tools}", self.assistant)];
        lines.extend(self.notes.iter().map(|note| format!("{}: MCP server {server}: {note}", self.assistant)));
        lines
    }
}

/// Starts all servers of the built-in assistants and of those in the assistants' folder, and lists their tools.
pub(crate) async fn check(settings: &Settings) -> Vec<CheckedServer> {
    let built_in = BUILT_IN.iter().map(|plugin| plugin.name.to_owned());
    let folder = settings.assistants();
    let files = folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut files: Vec<String> = files.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    files.retain(|file| file.ends_with(".yaml") || file.ends_with(".yml"));
    files.sort();
    let checks = built_in.chain(files).map(|name| check_assistant(name, settings));
    futures::future::join_all(checks).await.into_iter().flatten().collect()
}

async fn check_assistant(name: String, settings: &Settings) -> Vec<CheckedServer> {
    // Errors of the assistant itself are not about its servers; the commands that use it report them.
    let Ok(source) = AssistantSource::find(&name, settings) else { return Vec::new() };
    let specs = match specs(&source, settings) {
        Ok(specs) => specs,
        Err(error) => return vec![CheckedServer::failed(&name, None, format!("{error:#}"))],
    };
    let name = match &source {
        AssistantSource::BuiltIn(plugin) => plugin.name.to_owned(),
        AssistantSource::File { manifest, .. } => manifest.name.clone(),
    };
    let checks = specs.iter().map(|spec| async {
        match probe(spec).await {
            Ok(found) => CheckedServer {
                assistant: name.clone(),
                server: Some(spec.name.clone()),
                tools: found.tools,
                allowed: found.allowed,
                notes: found.problems,
                error: None,
            },
            Err(error) => CheckedServer::failed(&name, Some(&spec.name), error),
        }
    });
    futures::future::join_all(checks).await
}
