//! What can be set from outside, and where each value comes from: an option, the environment, the configuration file, or
//! what is built in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::failure::Failure;

/// Something that can be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The variable of the environment, and the key of the configuration file.
    pub(crate) name: &'static str,
    /// What it is for, in a few words.
    pub(crate) about: &'static str,
    /// What holds where it is not set.
    pub(crate) built_in: &'static str,
    /// Whether its value must not be shown.
    pub(crate) is_secret: bool,
}

const fn setting(name: &'static str, about: &'static str, built_in: &'static str) -> Setting {
    Setting { name, about, built_in, is_secret: false }
}

const fn secret(name: &'static str, about: &'static str) -> Setting {
    Setting { name, about, built_in: "", is_secret: true }
}

/// All that can be set. Addresses of everything outside are among them.
pub(crate) const SETTINGS: [Setting; 25] = [
    setting("THREADKEEP_STORE", "the store", "threadkeep.db in the data folder"),
    setting("THREADKEEP_TENANT", "the tenant", "local"),
    setting("THREADKEEP_USER", "the user", "me"),
    setting("THREADKEEP_NOW", "the instant that counts as now", "the system's clock"),
    setting(
        "THREADKEEP_ASSISTANTS",
        "the folder of assistants written in YAML",
        "assistants in the configuration folder",
    ),
    setting("THREADKEEP_MODEL", "the model that speaks", "the first that is found, else offline"),
    setting("THREADKEEP_EMBEDDER", "the embedding model", "none"),
    setting("THREADKEEP_PRICES", "a file with prices of models", "built-in prices"),
    secret("GROQ_API_KEY", "Groq's key"),
    setting("GROQ_MODEL", "Groq's model", "openai/gpt-oss-120b"),
    setting("GROQ_BASE_URL", "Groq's address", "https://api.groq.com/openai/v1"),
    secret("OPENAI_API_KEY", "OpenAI's key"),
    setting("OPENAI_MODEL", "OpenAI's model", "gpt-5.4-mini"),
    setting(
        "OPENAI_BASE_URL",
        "OpenAI's address, or that of a server that speaks like it",
        "https://api.openai.com/v1",
    ),
    secret("ANTHROPIC_API_KEY", "Anthropic's key"),
    setting("ANTHROPIC_MODEL", "Anthropic's model", "claude-sonnet-5-5"),
    setting("ANTHROPIC_BASE_URL", "Anthropic's address", "https://api.anthropic.com/v1"),
    setting("OLLAMA_HOST", "Ollama's address", "not asked unless it is set"),
    setting("OLLAMA_MODEL", "Ollama's model", "llama3.2"),
    secret("SUBWAY_API_KEY", "the key that clients of /chat and its like share"),
    setting("HTTPS_PROXY", "the proxy for addresses with https", "none"),
    setting("ALL_PROXY", "the proxy for all addresses", "none"),
    setting("NO_PROXY", "what is reached without the proxy", "nothing"),
    setting("NO_COLOR", "output without colour", "colour on a terminal"),
    setting("RUST_LOG", "what is logged, such as debug", "nothing"),
];

/// Bytes of a configuration file.
const FILE_BYTES: u64 = 64 * 1024;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Option,
    Environment,
    File,
    BuiltIn,
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Option => "option",
            Self::Environment => "environment",
            Self::File => "configuration file",
            Self::BuiltIn => "built in",
        })
    }
}

/// The environment, and the configuration file below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) file: Option<PathBuf>,
    values: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the configuration file: the one that THREADKEEP_CONFIG names, else `config.yaml` in the configuration folder
    /// where there is one.
    pub(crate) fn load() -> Result<Self> {
        let named = variable("THREADKEEP_CONFIG").map(PathBuf::from);
        let is_named = named.is_some();
        let Some(path) = named.or_else(|| folder().map(|folder| folder.join("config.yaml"))) else {
            return Ok(Self::default());
        };
        if !is_named && !path.exists() {
            return Ok(Self { file: Some(path), ..Self::default() });
        }
        let unread = || format!("the configuration file {} cannot be read", path.display());
        if std::fs::metadata(&path).with_context(unread)?.len() > FILE_BYTES {
            return Err(Failure::usage(format!("{} has more than {FILE_BYTES} bytes", path.display())).into());
        }
        let text = std::fs::read_to_string(&path).with_context(unread)?;
        let values = parse(&text).map_err(|what| {
            let names = SETTINGS.map(|setting| setting.name).join(", ");
            Failure::usage(format!("{}: {what}", path.display())).hint(format!("it sets, a line each: {names}"))
        })?;
        Ok(Self { file: Some(path), values })
    }

    /// A setting's value, from the environment or the file.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.find(name).map(|(value, _)| value)
    }

    /// A setting's value and where it comes from.
    pub(crate) fn find(&self, name: &str) -> Option<(String, From)> {
        let environment = variable(name).map(|value| (value, From::Environment));
        environment.or_else(|| self.values.get(name).map(|value| (value.clone(), From::File)))
    }

    /// The folder of assistants that are written in YAML.
    pub(crate) fn assistants(&self) -> Option<PathBuf> {
        let named = self.get("THREADKEEP_ASSISTANTS").map(PathBuf::from);
        named.or_else(|| folder().map(|folder| folder.join("assistants")))
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let values: BTreeMap<String, serde_json::Value> = match text.lines().all(is_comment) {
        true => BTreeMap::new(),
        false => serde_saphyr::from_str(text).map_err(|error| {
            let text = error.to_string();
            text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it is no YAML").trim().to_owned()
        })?,
    };
    let mut settings = BTreeMap::new();
    for (name, value) in values {
        if !SETTINGS.iter().any(|setting| setting.name == name) {
            return Err(format!("there is no setting `{name}`"));
        }
        let value = match value {
            serde_json::Value::String(text) => text,
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Bool(is) => is.to_string(),
            _ => return Err(format!("{name} is no text")),
        };
        settings.insert(name, value);
    }
    Ok(settings)
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The platform's folder for this program's configuration.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sets_what_there_is_to_set() {
        let values = parse("# a comment\nTHREADKEEP_USER: ana\nOLLAMA_HOST: 127.0.0.1\n").unwrap();
        assert_eq!(values["THREADKEEP_USER"], "ana");
        assert_eq!(parse("# nothing\n\n").unwrap().len(), 0);
        assert_eq!(parse("THREADKEEP_USR: ana\n").unwrap_err(), "there is no setting `THREADKEEP_USR`");
        assert!(parse("THREADKEEP_USER: [a]\n").unwrap_err().contains("THREADKEEP_USER"));
        assert!(parse("- a\n").is_err());
    }
}
