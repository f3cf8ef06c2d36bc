//! Reads the configuration file: TOML, or YAML if its name ends in `.yaml` or `.yml`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::kind::{Kind, RawValue, has_password};
use super::table::{SETTINGS, Setting};

/// The maximum size of a configuration file and of a file with a secret.
const FILE_BYTES: u64 = 64 * 1024;
/// The minimum Jaro-Winkler similarity for suggesting a name.
const MIN_SIMILARITY: f64 = 0.75;

/// The values of a configuration file, and its problems.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The values by environment variable, including the `_FILE` variables of secrets.
    pub(super) values: BTreeMap<String, String>,
    pub(super) problems: Vec<String>,
}

pub(super) fn read(path: &Path) -> Content {
    let text = match bounded(path) {
        Ok(text) => text,
        Err(problem) => return Content { problems: vec![problem], ..Content::default() },
    };
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    if is_yaml { collect_entries(from_yaml(&text)) } else { collect_entries(from_toml(&text)) }
}

/// Reads a text file of at most [`FILE_BYTES`].
pub(super) fn bounded(path: &Path) -> Result<String, String> {
    let cannot_read = |error: std::io::Error| format!("the file {} cannot be read: {error}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot_read)?;
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("the file {} is larger than {FILE_BYTES} bytes", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("the file {} is not UTF-8", path.display()))
}

fn collect_entries(entries: Result<Vec<(String, RawValue)>, String>) -> Content {
    let mut content = Content::default();
    match entries {
        Ok(entries) => entries.into_iter().for_each(|(key, raw)| match entry(&key, raw) {
            Ok((name, value)) => {
                if content.values.insert(name, value).is_some() {
                    content.problems.push(format!("{key}: set more than once"));
                }
            }
            Err(problem) => content.problems.push(problem),
        }),
        Err(problem) => content.problems.push(problem),
    }
    content
}

/// Returns the variable that a key sets, and the value.
fn entry(key: &str, raw: RawValue) -> Result<(String, String), String> {
    let file_setting = SETTINGS
        .iter()
        .find(|setting| [setting.file_key(), setting.file_name()].iter().flatten().any(|name| name == key));
    if let Some(name) = file_setting.and_then(Setting::file_name) {
        return Ok((name, Kind::File.read(raw).map_err(|problem| format!("{key}: {problem}"))?));
    }
    let setting = Setting::find(key).filter(|setting| setting.name != "THREADKEEP_CONFIG");
    let setting = setting.ok_or_else(|| unknown(key))?;
    let file_key = || setting.file_key().unwrap_or_default();
    if setting.kind == Kind::Secret {
        let instead = format!("set {} in the environment, or specify its file with {}", setting.name, file_key());
        return Err(format!("{key}: secrets are not allowed in this file; {instead}"));
    }
    let value = setting.kind.read(raw).map_err(|problem| format!("{key}: {problem}"))?;
    if setting.kind == Kind::Url && has_password(&value) {
        let instead = format!("set {} in the environment, or specify a file with {}", setting.name, file_key());
        return Err(format!("{key}: passwords are not allowed in this file; {instead}"));
    }
    Ok((setting.name.to_owned(), value))
}

fn unknown(key: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for setting in SETTINGS.iter() {
        names.extend([setting.key.to_owned(), setting.name.to_owned()]);
        names.extend(setting.file_key());
    }
    let similarity = |name: &String| strsim::jaro_winkler(name, key);
    let nearest = names.iter().max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    let suggestion =
        nearest.filter(|name| similarity(name) >= MIN_SIMILARITY).map(|name| format!("; did you mean `{name}`?"));
    format!("unknown setting `{key}`{}", suggestion.unwrap_or_default())
}

fn from_toml(text: &str) -> Result<Vec<(String, RawValue)>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        format!("line {line}: {}", error.message())
    })?;
    let mut entries = Vec::new();
    toml_entries("", table, &mut entries);
    Ok(entries)
}

fn toml_entries(prefix: &str, table: toml::Table, entries: &mut Vec<(String, RawValue)>) {
    for (key, value) in table {
        let key = dotted(prefix, &key);
        let raw = match value {
            toml::Value::Table(table) => {
                toml_entries(&key, table, entries);
                continue;
            }
            toml::Value::String(text) => RawValue::Text(text),
            toml::Value::Integer(number) => RawValue::Number(number.to_string()),
            toml::Value::Float(number) => RawValue::Number(number.to_string()),
            toml::Value::Boolean(flag) => RawValue::Flag(flag),
            toml::Value::Datetime(date) => RawValue::Date(date.to_string()),
            toml::Value::Array(_) => RawValue::Other("a list"),
        };
        entries.push((key, raw));
    }
}

fn from_yaml(text: &str) -> Result<Vec<(String, RawValue)>, String> {
    if text.lines().all(is_comment) {
        return Ok(Vec::new());
    }
    let map: serde_json::Map<String, serde_json::Value> = serde_saphyr::from_str(text).map_err(|error| {
        let text = error.to_string();
        text.lines().find(|line| !line.trim().is_empty()).unwrap_or("invalid YAML").trim().to_owned()
    })?;
    let mut entries = Vec::new();
    yaml_entries("", map, &mut entries);
    Ok(entries)
}

fn yaml_entries(prefix: &str, map: serde_json::Map<String, serde_json::Value>, entries: &mut Vec<(String, RawValue)>) {
    for (key, value) in map {
        let key = dotted(prefix, &key);
        let raw = match value {
            serde_json::Value::Object(map) => {
                yaml_entries(&key, map, entries);
                continue;
            }
            serde_json::Value::String(text) => RawValue::Text(text),
            serde_json::Value::Number(number) => RawValue::Number(number.to_string()),
            serde_json::Value::Bool(flag) => RawValue::Flag(flag),
            serde_json::Value::Array(_) => RawValue::Other("a list"),
            serde_json::Value::Null => RawValue::Other("null"),
        };
        entries.push((key, raw));
    }
}

fn dotted(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> Content {
        collect_entries(from_toml(text))
    }

    #[test]
    fn toml_and_yaml_set_the_same_values() {
        let expected: BTreeMap<String, String> = [
            ("THREADKEEP_USER", "ana"),
            ("THREADKEEP_NOW", "2026-05-04T18:12:00Z"),
            ("THREADKEEP_RATE", "600"),
            ("THREADKEEP_LOG_JSON", "true"),
            ("GROQ_API_KEY_FILE", "/run/secrets/groq"),
            ("OLLAMA_HOST", "127.0.0.1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let written = toml(
            "user = 'ana'\nnow = 2026-05-04T18:12:00Z\nlog.json = true\nOLLAMA_HOST = '127.0.0.1'\n\
             [server]\nrate = 600\n[groq]\napi_key_file = '/run/secrets/groq'\n",
        );
        assert_eq!(written, Content { values: expected.clone(), problems: vec![] });
        let yaml = "# a comment\nTHREADKEEP_USER: ana\nnow: 2026-05-04T18:12:00Z\nserver:\n  rate: 600\nlog:\n  json: true\n\
                    groq: {api_key_file: /run/secrets/groq}\nollama.host: 127.0.0.1\n";
        assert_eq!(collect_entries(from_yaml(yaml)), Content { values: expected, problems: vec![] });
        assert_eq!(collect_entries(from_yaml("# nothing\n\n")), Content::default());
    }

    #[test]
    fn all_problems_are_reported() {
        let problems = toml(
            "usr = 'ana'\nstore = 'postgres://me:s3cret@host/db'\nmodel = 7\n\
             [server]\nrate = 'fast'\nlisten = 'everywhere'\n[groq]\napi_key = 'gsk-s3cret'\nmodels = ['a']\n[log]\njson = 'yes'\n",
        );
        let expected = [
            "unknown setting `usr`; did you mean `user`?",
            "store: passwords are not allowed in this file; set THREADKEEP_STORE in the environment, or specify a file with \
             store_file",
            "model: expected text, found a number",
            "server.rate: expected a whole number of at least 1, found text",
            "server.listen: expected a host and a port such as \"127.0.0.1:7437\", found `everywhere`",
            "groq.api_key: secrets are not allowed in this file; set GROQ_API_KEY in the environment, or specify its file with \
             groq.api_key_file",
            "unknown setting `groq.models`; did you mean `groq.model`?",
            "log.json: expected true or false, found text",
        ];
        let mut found = problems.problems.clone();
        found.sort();
        let mut expected = expected.map(str::to_owned);
        expected.sort();
        assert_eq!(found, expected);
        assert!(problems.values.is_empty());
    }

    #[test]
    fn syntax_errors_name_the_line() {
        let problem = &toml("user = 'ana'\nmodel = = 3\n").problems[0];
        assert!(problem.starts_with("line 2: "), "{problem}");
        assert!(!collect_entries(from_yaml("- a\n")).problems.is_empty());
        assert_eq!(
            toml("[server]\nrate = 0\n").problems,
            ["server.rate: expected a whole number of at least 1, found `0`"]
        );
        assert_eq!(toml("user = 'ana'\nTHREADKEEP_USER = 'bob'\n").problems.len(), 1);
    }

    #[test]
    fn passwords_in_urls_are_detected() {
        for (address, has) in [
            ("postgres://ana:s3cret@host/db", true),
            ("postgres://host/db?user=a&password=b", true),
            ("postgres://ana@host/db", false),
            ("notes.db", false),
            ("http://host:80/a:b@c", false),
        ] {
            assert_eq!(has_password(address), has, "{address}");
        }
    }
}
