use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use threadkeep_mcp::ToolSelection;

use super::clients::Client;
use super::edit::{self, Edit, EditError};
use crate::commands::places::{System, variable};
use crate::commands::{App, Status};
use crate::failure::Failure;

/// The maximum size of a configuration file in bytes. Claude Code keeps its whole state in the same file.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Add the server to the configuration of a program, or remove it
///
/// Shows the change and asks for confirmation. Everything else in the file stays as it is, and a copy of the file is kept beside it.
/// The program then starts `threadkeep mcp` for the store, tenant and user of this command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep mcp install claude-code
  threadkeep mcp install cursor --read-only --user ana
  threadkeep mcp install vscode --remove")]
pub(super) struct Arguments {
    /// The program
    client: Client,
    /// The tools, separated by commas: names, `default`, `knowledge_graph` or `all`
    #[arg(long, value_name = "TOOLS")]
    tools: Option<ToolSelection>,
    /// Serve only tools that change nothing
    #[arg(long)]
    read_only: bool,
    /// The name of the server in the program
    #[arg(long, value_name = "NAME", default_value = "threadkeep", value_parser = parse_name)]
    name: String,
    /// Remove the server
    #[arg(long, conflicts_with_all = ["tools", "read_only"])]
    remove: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// The result of the command.
#[derive(Serialize)]
struct InstallJson<'a> {
    client: &'static str,
    file: &'a Path,
    changed: bool,
    /// The copy of the file before the change.
    backup: Option<&'a Path>,
    /// The entry of the server; `None` if it was removed.
    entry: Option<&'a Value>,
}

fn parse_name(name: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=60).contains(&name.len()) && name.chars().all(is_valid) {
        return Ok(name.to_owned());
    }
    Err("expected 1 to 60 letters, digits, hyphens and underscores".to_owned())
}

pub(super) fn run(app: &App, arguments: &Arguments) -> Result<Status> {
    let (client, name) = (arguments.client, arguments.name.as_str());
    let file = client.file(System::current(), variable);
    let file = file.ok_or_else(|| Failure::usage("your home folder is unknown").hint("set HOME"))?;
    // The target of a link is changed, so that the link stays.
    let file = file.canonicalize().unwrap_or(file);
    let before = read(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let entry = if arguments.remove { None } else { Some(entry(app, arguments)?) };
    let edit = match &entry {
        Some(entry) => edit::set(text, client.section(), name, entry),
        None => edit::remove(text, client.section(), name),
    };
    let edit = edit.map_err(|error| edit_failure(&file, &error, client, name, entry.as_ref()))?;
    let Some(edit) = edit else {
        return report(app, client, &file, None, entry.as_ref(), false);
    };
    show(app, &file, text, &edit);
    let question = if arguments.remove { "Remove this from" } else { "Make this change to" };
    app.confirm(&format!("{question} {}?", file.display()), arguments.yes)?;
    if read(&file)? != before {
        let failure =
            Failure::user_error(format!("{} was changed by another program; it was not edited", file.display()));
        return Err(failure
            .hint(format!("run the command again; quit {} first if it keeps writing the file", client.name()))
            .into());
    }
    let backup = before.as_ref().map(|_| backup_path(&file));
    if let Some(backup) = &backup {
        std::fs::copy(&file, backup)
            .with_context(|| format!("cannot copy {} to {}", file.display(), backup.display()))?;
    }
    write(&file, &edit.apply(text)).with_context(|| format!("cannot write {}", file.display()))?;
    report(app, client, &file, backup.as_deref(), entry.as_ref(), true)
}

/// Returns the entry that starts this program for the command's store and scope.
fn entry(app: &App, arguments: &Arguments) -> Result<Value> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let mut words = app.global_words()?;
    words.insert(0, "mcp".to_owned());
    if let Some(tools) = &arguments.tools {
        words.extend(["--tools".to_owned(), tools.to_string()]);
    }
    if arguments.read_only {
        words.push("--read-only".to_owned());
    }
    Ok(arguments.client.entry(&program.display().to_string(), &words))
}

/// Reads a configuration file; `None` if it does not exist.
fn read(file: &Path) -> Result<Option<String>> {
    let bytes = match std::fs::metadata(file) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    if bytes > FILE_BYTES {
        return Err(Failure::user_error(format!("{} is larger than 64 MiB", file.display())).into());
    }
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Failure::user_error(format!("{} is not UTF-8 text; nothing was changed", file.display())).into()),
    }
}

/// Writes a file as a whole, so that a crash leaves either the old or the new content.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    written.write_all(text.as_bytes())?;
    // A new file is readable by its owner only, because entries of other servers may contain secrets.
    if let Ok(found) = std::fs::metadata(file) {
        written.as_file().set_permissions(found.permissions())?;
    }
    written.as_file().sync_all()?;
    written.persist(file)?;
    Ok(())
}

fn backup_path(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".before-threadkeep");
    file.with_file_name(name)
}

/// Returns the failure for a file that cannot be changed, with the entry to add by hand.
fn edit_failure(file: &Path, error: &EditError, client: Client, name: &str, entry: Option<&Value>) -> Failure {
    let failure = Failure::user_error(format!("cannot change {}: {error}", file.display()));
    failure.hint(match entry {
        Some(entry) => {
            let (section, name) = (client.section(), Value::from(name));
            format!("correct the file, or add this to its `{section}` yourself: {name}: {entry}")
        }
        None => "correct the file, or remove the entry yourself".to_owned(),
    })
}

/// Shows the lines that are removed and added. The rest of the file is not shown, because it may contain secrets.
fn show(app: &App, file: &Path, text: &str, edit: &Edit) {
    if app.output.is_json() {
        return;
    }
    app.output.note(file.display());
    for (sign, part) in [('-', &text[edit.range.clone()]), ('+', edit.text.as_str())] {
        for line in part.lines().filter(|line| !line.trim().is_empty()) {
            app.output.note(format_args!("{sign} {line}"));
        }
    }
}

fn report(
    app: &App,
    client: Client,
    file: &Path,
    backup: Option<&Path>,
    entry: Option<&Value>,
    changed: bool,
) -> Result<Status> {
    if app.output.is_json() {
        app.output.json(&InstallJson { client: client.name(), file, changed, backup, entry })?;
        return Ok(Status::Done);
    }
    let name = client.name();
    let text = match (entry.is_some(), changed) {
        (true, true) => format!("added to {name}; restart {name} to use it"),
        (true, false) => format!("{name} already has this server"),
        (false, true) => format!("removed from {name}"),
        (false, false) => format!("{name} has no such server"),
    };
    app.output.line(text)?;
    if let Some(backup) = backup {
        app.output.note(format_args!("the previous version of the file is {}", backup.display()));
    }
    Ok(Status::Done)
}
