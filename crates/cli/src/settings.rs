//! Settings, and the sources of their values: an option, the environment, the configuration file, or the built-in default.
//!
//! The configuration file never contains secrets. Secrets come from the environment, or from a separate file, whose path
//! the environment (`GROQ_API_KEY_FILE`) or the configuration file (`groq.api_key_file`) specifies.

mod file;
mod kind;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use threadkeep::AssistantPlugin;
use threadkeep::agent::plugin::PluginSettings;

use crate::failure::Failure;
use crate::store::data_folder;
pub(crate) use kind::Kind;
#[cfg(test)]
pub(crate) use table::with_settings_of;
pub(crate) use table::{SETTINGS, Setting};

/// The names of the configuration file, in order of preference.
const FILE_NAMES: [&str; 2] = ["threadkeep.toml", "config.yaml"];

/// The source of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingSource {
    Option,
    Environment,
    File,
    BuiltIn,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Option => "option",
            Self::Environment => "environment",
            Self::File => "configuration file",
            Self::BuiltIn => "built in",
        })
    }
}

/// The settings in the environment and the configuration file. The environment takes precedence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) file: Option<PathBuf>,
    /// The problems in the file and the environment.
    pub(crate) problems: Vec<String>,
    values: BTreeMap<String, String>,
    /// The secrets that were read from separate files, by variable.
    secrets: BTreeMap<&'static str, (String, SettingSource)>,
}

impl Settings {
    /// Reads the configuration file that `--config` or THREADKEEP_CONFIG specifies. Without either, reads `threadkeep.toml` or
    /// `config.yaml` in the configuration folder, if one exists.
    pub(crate) fn load(named: Option<&Path>) -> Self {
        let mut settings = match named.map(Path::to_owned).or_else(|| standard_file().filter(|path| path.exists())) {
            Some(path) => {
                let file::Content { values, problems } = file::read(&path);
                let problems = problems.into_iter().map(|problem| format!("{}: {problem}", path.display())).collect();
                Self { file: Some(path), values, problems, ..Self::default() }
            }
            None => Self { file: standard_file(), ..Self::default() },
        };
        settings.check_environment();
        settings.read_secrets();
        settings
    }

    /// Checks that there are no problems.
    ///
    /// # Errors
    /// The first problem.
    pub(crate) fn ensure_valid(&self) -> Result<()> {
        let Some(first) = self.problems.first() else { return Ok(()) };
        let more = match self.problems.len() - 1 {
            0 => String::new(),
            count => format!(", and {count} more"),
        };
        Err(Failure::usage(format!("{first}{more}")).hint("`threadkeep config check` lists all problems").into())
    }

    /// Returns the value of a setting from the environment or the file.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.find(name).map(|(value, _)| value)
    }

    /// Returns the value of a setting, and its source.
    pub(crate) fn find(&self, name: &str) -> Option<(String, SettingSource)> {
        let environment = variable(name).map(|value| (value, SettingSource::Environment));
        let from_file = || self.values.get(name).map(|value| (value.clone(), SettingSource::File));
        environment.or_else(|| self.secrets.get(name).cloned()).or_else(from_file)
    }

    /// Returns the parsed value of a setting. [`Settings::ensure_valid`] must already have rejected invalid values.
    pub(crate) fn read<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let expected = Setting::find(name).map_or("a value", |setting| setting.kind.expected());
        let read = value.parse().map_err(|_| Failure::usage(format!("invalid {name}: expected {expected}")));
        Ok(Some(read?))
    }

    /// Returns the settings of a built-in assistant.
    pub(crate) fn for_plugin(&self, plugin: &AssistantPlugin) -> PluginSettings {
        PluginSettings::new(plugin.settings, |name| self.get(name), data_folder())
    }

    /// Returns the folder of assistants that are defined in YAML files.
    pub(crate) fn assistants(&self) -> Option<PathBuf> {
        let named = self.get("THREADKEEP_ASSISTANTS").map(PathBuf::from);
        named.or_else(|| folder().map(|folder| folder.join("assistants")))
    }

    /// Returns the file with the MCP servers whose tools the built-in assistants use, and whether it was specified.
    pub(crate) fn mcp_servers(&self) -> Option<(PathBuf, bool)> {
        match self.get("THREADKEEP_MCP_SERVERS") {
            Some(path) => Some((PathBuf::from(path), true)),
            None => folder().map(|folder| (folder.join("mcp.json"), false)),
        }
    }

    fn check_environment(&mut self) {
        for setting in SETTINGS.iter() {
            let Some(value) = variable(setting.name) else { continue };
            if !setting.kind.accepts(&value) {
                self.problems.push(format!("invalid {}: expected {}", setting.name, setting.kind.expected()));
            }
        }
    }

    fn read_secrets(&mut self) {
        for setting in SETTINGS.iter() {
            let Some(name) = setting.file_name().filter(|_| variable(setting.name).is_none()) else { continue };
            let Some((path, from)) = self.find(&name) else { continue };
            match file::bounded(Path::new(&path)) {
                Ok(text) => {
                    self.secrets.insert(setting.name, (text.trim().to_owned(), from));
                }
                Err(problem) => self.problems.push(format!("{name}: {problem}")),
            }
        }
    }
}

/// Reads a text file of limited size.
pub(crate) fn text_file(path: &Path) -> Result<String> {
    Ok(file::bounded(path).map_err(Failure::user_error)?)
}

/// Reads a file that contains one secret.
pub(crate) fn secret_file(path: &Path) -> Result<String> {
    let text = file::bounded(path).map_err(Failure::usage).context("cannot read the secret")?;
    Ok(text.trim().to_owned())
}

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Returns the configuration file in the configuration folder: the first name that exists, or otherwise the first name.
fn standard_file() -> Option<PathBuf> {
    let folder = folder()?;
    let files = FILE_NAMES.map(|name| folder.join(name));
    files.iter().find(|file| file.exists()).or(files.first()).cloned()
}

/// Returns the platform's folder for this program's configuration.
fn folder() -> Option<PathBuf> {
    let home = |rest: &str| variable("HOME").map(|home| PathBuf::from(home).join(rest));
    let folder = if cfg!(windows) {
        variable("APPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support")
    } else {
        let given = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        given.or_else(|| home(".config"))
    };
    folder.map(|folder| folder.join("threadkeep"))
}
