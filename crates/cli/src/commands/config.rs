use anyhow::Result;
use serde::Serialize;

use super::{App, Status};
use crate::output::printable_line;
use crate::settings::{From, SETTINGS, Setting};
use crate::subway;
use crate::table::{Side, Table, cut};

const VALUE: usize = 60;

/// Show what is set, and where each value comes from
///
/// A value comes from an option, else from the environment, else from the configuration file, else it is built in. The
/// file is config.yaml in your configuration folder, or what THREADKEEP_CONFIG names; it holds a line for each setting, as
/// `OLLAMA_HOST: 127.0.0.1`. Keys are never shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep config show
  threadkeep config show --json | jq -r '.settings[] | select(.from != \"built in\") | .name'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List all settings
    Show,
}

#[derive(Serialize)]
struct Shown {
    name: &'static str,
    value: String,
    from: String,
    about: &'static str,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let Action::Show = arguments.action;
    let settings: Vec<Shown> = SETTINGS.iter().map(|setting| shown(app, setting)).collect();
    let file = app.settings.file.as_ref().map(|file| file.display().to_string());
    if app.output.is_json() {
        app.output.json(&serde_json::json!({"file": file, "settings": settings}))?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(["setting", "value", "from", "what it is"].map(|name| (name, Side::Left)));
    for setting in &settings {
        let value = cut(&printable_line(&setting.value), VALUE);
        table.add_row([setting.name.to_owned(), value, setting.from.clone(), setting.about.to_owned()]);
    }
    app.output.line(table.text())?;
    if let Some(file) = file {
        app.output.note(format_args!("\nconfiguration file: {file}"));
    }
    Ok(Status::Done)
}

fn shown(app: &App, setting: &Setting) -> Shown {
    let (value, from) = match (app.global.typed_value(setting.name), app.settings.find(setting.name)) {
        (Some(value), _) => (value, From::Option),
        (None, Some(found)) => found,
        (None, None) => (built_in(app, setting), From::BuiltIn),
    };
    let value = if setting.is_secret && from != From::BuiltIn { "(set)".to_owned() } else { without_password(value) };
    Shown { name: setting.name, value, from: from.to_string(), about: setting.about }
}

fn built_in(app: &App, setting: &Setting) -> String {
    let path = match setting.name {
        "THREADKEEP_STORE" => {
            app.location().ok().and_then(|location| location.file().map(|file| file.display().to_string()))
        }
        "MTA_TIMETABLE" => subway::options(&app.settings).timetable.map(|file| file.display().to_string()),
        "THREADKEEP_ASSISTANTS" => app.settings.assistants().map(|folder| folder.display().to_string()),
        _ => None,
    };
    match path {
        Some(path) => path,
        None if setting.is_secret => "(not set)".to_owned(),
        None => setting.built_in.to_owned(),
    }
}

/// An address without the password that it may hold.
fn without_password(value: String) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((login, _)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…{}", &rest[login.len()..])
        }
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (value, shown) in [
            ("postgres://ana:s3cret@host:5432/db?x=1", "postgres://ana:…@host:5432/db?x=1"),
            ("postgres://host/db", "postgres://host/db"),
            ("notes.db", "notes.db"),
            ("http://a:b@c@host/", "http://a:…@host/"),
        ] {
            assert_eq!(without_password(value.to_owned()), shown);
        }
    }
}
