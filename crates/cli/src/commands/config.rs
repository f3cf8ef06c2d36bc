use anyhow::Result;
use serde::Serialize;
use threadkeep::agent::plugin::SettingDefault;
use threadkeep::core::redact_address;

use super::{App, Status};
use crate::assistants::BUILT_IN;
use crate::exposure;
use crate::failure::Failure;
use crate::local_token;
use crate::mcp_servers;
use crate::output::printable_line;
use crate::settings::{Kind, SETTINGS, Setting, SettingSource, Settings};
use crate::store::data_folder;
use crate::table::{Align, Table, cut};

/// The number of columns after which a value is truncated.
const VALUE_COLUMNS: usize = 60;

/// Show all settings and where their values come from, or check them
///
/// A value comes from an option, or else from the environment, the configuration file, or the built-in default. The file is
/// threadkeep.toml (or config.yaml) in your configuration folder, or the file given by --config, with one line per setting,
/// such as `ollama.host = "127.0.0.1"`. Secrets are not allowed in the file, and are never printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep config show
  threadkeep config check --config threadkeep.toml
  threadkeep config show --json | jq -r '.settings[] | select(.from != \"built in\") | .name'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List all settings
    Show,
    /// List all errors in the configuration file and the environment; exits with 1 if there are any. Files that other users of
    /// this machine can read are listed too; they do not change the exit code. MCP servers of assistants are started, and their
    /// tools are listed
    Check,
}

impl Arguments {
    pub(crate) fn is_check(&self) -> bool {
        matches!(self.action, Action::Check)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct SettingJson {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) from: String,
    pub(crate) about: &'static str,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    match arguments.action {
        Action::Show => show(app),
        Action::Check => check(app).await,
    }
}

/// The status of a built-in assistant's data.
#[derive(Serialize)]
struct AssistantState {
    name: &'static str,
    state: String,
}

async fn check(app: &App) -> Result<Status> {
    let Settings { problems, file, .. } = &app.settings;
    // With an invalid line in the file, further errors would be misleading.
    let (mut problems, assistants) =
        if problems.is_empty() { check_server(app) } else { (problems.clone(), Vec::new()) };
    let durability = match check_durability(app).await {
        Ok(durability) => durability,
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    let servers = if problems.is_empty() { mcp_servers::check(&app.settings).await } else { Vec::new() };
    problems.extend(servers.iter().filter_map(|server| server.problem()));
    let exposed: Vec<_> = exposure::secret_files(&app.settings).into_iter().chain(exposure::data_files(app)).collect();
    let file = file.as_ref().filter(|file| file.exists()).map(|file| file.display().to_string());
    if app.output.is_json() {
        let report = serde_json::json!({
            "file": file, "problems": problems, "exposed": exposed, "assistants": assistants,
            "durability": durability, "mcp_servers": servers,
        });
        app.output.json(&report)?;
    } else {
        for problem in &problems {
            app.output.line(problem)?;
        }
        for exposed in &exposed {
            app.output.line(exposed)?;
        }
        if problems.is_empty() && exposed.is_empty() {
            app.output
                .line(format_args!("{}: no problems found", file.as_deref().unwrap_or("no configuration file")))?;
        }
        if let Some(durability) = &durability {
            app.output.line(format_args!("store: {durability}"))?;
        }
        for AssistantState { name, state } in &assistants {
            app.output.note(format_args!("{name}: {state}"));
        }
        for line in servers.iter().flat_map(mcp_servers::CheckedServer::lines) {
            app.output.line(printable_line(&line))?;
        }
    }
    Ok(if problems.is_empty() { Status::Done } else { Status::Findings })
}

/// Describes what acknowledged commits survive, for a store in Redis. Returns an error if the servers cannot be used, or if
/// data is lost.
async fn check_durability(app: &App) -> Result<Option<String>, String> {
    let Ok(location) = app.location() else { return Ok(None) };
    let Some(url) = location.redis_url() else { return Ok(None) };
    match threadkeep_store_redis::RedisStore::inspect(url).await {
        Ok(durability) if durability.lost_parts > 0 => Err(format!("store: {}", durability.describe())),
        Ok(durability) => Ok(Some(durability.describe())),
        Err(error) => Err(format!("store: {error}")),
    }
}

/// Returns the errors that would keep a server from starting, and the status of the built-in assistants' data.
fn check_server(app: &App) -> (Vec<String>, Vec<AssistantState>) {
    let (mut problems, mut states) = (super::serve::problems(app), Vec::new());
    for plugin in BUILT_IN {
        match (plugin.health)(&app.settings.for_plugin(plugin)) {
            Ok(state) => states.extend(state.map(|state| AssistantState { name: plugin.name, state })),
            Err(error) => problems.push(Failure::from(error).to_string()),
        }
    }
    (problems, states)
}

fn show(app: &App) -> Result<Status> {
    let settings = rows(app, &SETTINGS);
    let file = app.settings.file.as_ref().map(|file| file.display().to_string());
    if app.output.is_json() {
        app.output.json(&serde_json::json!({"file": file, "settings": settings}))?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(["key", "variable", "value", "from", "description"].map(|name| (name, Align::Left)));
    for setting in &settings {
        let value = cut(&printable_line(&setting.value), VALUE_COLUMNS);
        table.add_row([
            setting.key.to_owned(),
            setting.name.to_owned(),
            value,
            setting.from.clone(),
            setting.about.to_owned(),
        ]);
    }
    app.output.line(table.text())?;
    if let Some(file) = file {
        app.output.note(format_args!("\nconfiguration file: {file}"));
    }
    Ok(Status::Done)
}

/// Returns the rows of `config show` for `settings`.
pub(crate) fn rows(app: &App, settings: &[Setting]) -> Vec<SettingJson> {
    settings.iter().map(|setting| setting_json(app, setting)).collect()
}

fn setting_json(app: &App, setting: &Setting) -> SettingJson {
    let (value, from) = match (app.global.typed_value(setting.name), app.settings.find(setting.name)) {
        (Some(value), _) => (value, SettingSource::Option),
        (None, Some(found)) => found,
        (None, None) => (built_in(app, setting), SettingSource::BuiltIn),
    };
    let is_secret = setting.kind == Kind::Secret;
    let value = if is_secret && from != SettingSource::BuiltIn { "(set)".to_owned() } else { redact_address(&value) };
    SettingJson { name: setting.name, key: setting.key, value, from: from.to_string(), about: setting.about }
}

fn built_in(app: &App, setting: &Setting) -> String {
    let path = match setting.name {
        "THREADKEEP_STORE" => {
            app.location().ok().and_then(|location| location.file().map(|file| file.display().to_string()))
        }
        "THREADKEEP_ERASURE_LEDGER" => app.erasure_ledger().file().map(|file| file.display().to_string()),
        "THREADKEEP_TOKEN" => local_token::file().map(|file| file.display().to_string()),
        "THREADKEEP_MCP_SERVERS" => app.settings.mcp_servers().map(|(file, _)| file.display().to_string()),
        "THREADKEEP_ASSISTANTS" => app.settings.assistants().map(|folder| folder.display().to_string()),
        _ => None,
    };
    match (path, setting.built_in) {
        (Some(path), _) => path,
        (None, _) if setting.kind == Kind::Secret => "(not set)".to_owned(),
        (None, SettingDefault::Description(text)) => text.to_owned(),
        (None, SettingDefault::DataFile(name)) => match data_folder() {
            Some(folder) => folder.join(name).display().to_string(),
            None => format!("{name} in the data folder"),
        },
    }
}
