use anyhow::Result;
use serde::Serialize;
use threadkeep::agent::plugin::SettingDefault;
use threadkeep::core::shown_address;

use super::{App, Status};
use crate::assistants::BUILT_IN;
use crate::exposure;
use crate::failure::Failure;
use crate::local_token;
use crate::output::printable_line;
use crate::settings::{From, Kind, SETTINGS, Setting, Settings};
use crate::store::data_folder;
use crate::table::{Side, Table, cut};

const VALUE: usize = 60;

/// Show what is set and where each value comes from, or check it
///
/// A value comes from an option, else from the environment, else from the configuration file, else it is built in. The
/// file is threadkeep.toml (or config.yaml) in your configuration folder, or what --config names; it holds a line for each
/// setting, as `ollama.host = "127.0.0.1"`. Secrets never stand in it, and are never shown.
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
    /// Name all that is wrong with the configuration file and the environment; exits with 1 if anything is. Names the files
    /// that others on this machine can read as well; they alone do not change the exit code
    Check,
}

impl Arguments {
    pub(crate) fn is_check(&self) -> bool {
        matches!(self.action, Action::Check)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) from: String,
    pub(crate) about: &'static str,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    match arguments.action {
        Action::Show => show(app),
        Action::Check => check(app),
    }
}

/// What an assistant that is built in says of what it stands on.
#[derive(Serialize)]
struct State {
    name: &'static str,
    state: String,
}

fn check(app: &App) -> Result<Status> {
    let Settings { problems, file, .. } = &app.settings;
    // Where a line of the file is wrong, the rest says little of a server.
    let (problems, assistants) = if problems.is_empty() { examined(app) } else { (problems.clone(), Vec::new()) };
    let exposed: Vec<_> = exposure::of_secrets(&app.settings).into_iter().chain(exposure::of_data(app)).collect();
    let file = file.as_ref().filter(|file| file.exists()).map(|file| file.display().to_string());
    if app.output.is_json() {
        let found = serde_json::json!({
            "file": file, "problems": problems, "exposed": exposed, "assistants": assistants,
        });
        app.output.json(&found)?;
    } else {
        for problem in &problems {
            app.output.line(problem)?;
        }
        for exposed in &exposed {
            app.output.line(exposed)?;
        }
        if problems.is_empty() && exposed.is_empty() {
            app.output.line(format_args!("{}: all is well", file.as_deref().unwrap_or("no configuration file")))?;
        }
        for State { name, state } in &assistants {
            app.output.note(format_args!("{name}: {state}"));
        }
    }
    Ok(if problems.is_empty() { Status::Done } else { Status::Findings })
}

/// What keeps a server from starting, and what the assistants say that it would serve.
fn examined(app: &App) -> (Vec<String>, Vec<State>) {
    let (mut problems, mut states) = (super::serve::problems(app), Vec::new());
    for plugin in BUILT_IN {
        match (plugin.health)(&app.settings.of(plugin)) {
            Ok(state) => states.extend(state.map(|state| State { name: plugin.name, state })),
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
    let mut table = Table::new(["key", "variable", "value", "from", "what it is"].map(|name| (name, Side::Left)));
    for setting in &settings {
        let value = cut(&printable_line(&setting.value), VALUE);
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

/// What `show` tells of these settings.
pub(crate) fn rows(app: &App, settings: &[Setting]) -> Vec<Shown> {
    settings.iter().map(|setting| shown(app, setting)).collect()
}

fn shown(app: &App, setting: &Setting) -> Shown {
    let (value, from) = match (app.global.typed_value(setting.name), app.settings.find(setting.name)) {
        (Some(value), _) => (value, From::Option),
        (None, Some(found)) => found,
        (None, None) => (built_in(app, setting), From::BuiltIn),
    };
    let is_secret = setting.kind == Kind::Secret;
    let value = if is_secret && from != From::BuiltIn { "(set)".to_owned() } else { shown_address(&value) };
    Shown { name: setting.name, key: setting.key, value, from: from.to_string(), about: setting.about }
}

fn built_in(app: &App, setting: &Setting) -> String {
    let path = match setting.name {
        "THREADKEEP_STORE" => {
            app.location().ok().and_then(|location| location.file().map(|file| file.display().to_string()))
        }
        "THREADKEEP_ERASURE_LEDGER" => app.erasure_ledger().file().map(|file| file.display().to_string()),
        "THREADKEEP_TOKEN" => local_token::file().map(|file| file.display().to_string()),
        "THREADKEEP_ASSISTANTS" => app.settings.assistants().map(|folder| folder.display().to_string()),
        _ => None,
    };
    match (path, setting.built_in) {
        (Some(path), _) => path,
        (None, _) if setting.kind == Kind::Secret => "(not set)".to_owned(),
        (None, SettingDefault::Shown(text)) => text.to_owned(),
        (None, SettingDefault::DataFile(name)) => match data_folder() {
            Some(folder) => folder.join(name).display().to_string(),
            None => format!("{name} in the data folder"),
        },
    }
}
