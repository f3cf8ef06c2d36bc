//! The configuration file: TOML, or YAML where its name ends so.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::kind::{Kind, Raw, has_password};
use super::table::{SETTINGS, Setting};

/// Bytes of a configuration file, and of a file that holds a secret.
const FILE_BYTES: u64 = 64 * 1024;
/// How much two names have to be alike for the one to be meant by the other.
const ALIKE: f64 = 0.75;

/// What a configuration file sets, and what is wrong with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// By variable, that of a file with the value included.
    pub(super) values: BTreeMap<String, String>,
    pub(super) problems: Vec<String>,
}

pub(super) fn read(path: &Path) -> Content {
    let text = match bounded(path) {
        Ok(text) => text,
        Err(problem) => return Content { problems: vec![problem], ..Content::default() },
    };
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    if is_yaml { of(from_yaml(&text)) } else { of(from_toml(&text)) }
}

/// Reads a text that is not too long, whatever its size is said to be.
pub(super) fn bounded(path: &Path) -> Result<String, String> {
    let unread = |error: std::io::Error| format!("the file {} cannot be read: {error}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("the file {} has more than {FILE_BYTES} bytes", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("the file {} is not UTF-8", path.display()))
}

fn of(entries: Result<Vec<(String, Raw)>, String>) -> Content {
    let mut content = Content::default();
    match entries {
        Ok(entries) => entries.into_iter().for_each(|(key, raw)| match entry(&key, raw) {
            Ok((name, value)) => {
                if content.values.insert(name, value).is_some() {
                    content.problems.push(format!("{key}: it is set twice"));
                }
            }
            Err(problem) => content.problems.push(problem),
        }),
        Err(problem) => content.problems.push(problem),
    }
    content
}

/// The variable that a key stands for, and its value.
fn entry(key: &str, raw: Raw) -> Result<(String, String), String> {
    let of_file = SETTINGS
        .iter()
        .find(|setting| [setting.file_key(), setting.file_name()].iter().flatten().any(|name| name == key));
    if let Some(name) = of_file.and_then(Setting::file_name) {
        return Ok((name, Kind::File.read(raw).map_err(|problem| format!("{key}: {problem}"))?));
    }
    let setting = Setting::find(key).filter(|setting| setting.name != "THREADKEEP_CONFIG");
    let setting = setting.ok_or_else(|| unknown(key))?;
    let in_a_file = || setting.file_key().unwrap_or_default();
    if setting.kind == Kind::Secret {
        let instead = format!("set {} in the environment, or name its file with {}", setting.name, in_a_file());
        return Err(format!("{key}: it is a secret and may not stand here; {instead}"));
    }
    let value = setting.kind.read(raw).map_err(|problem| format!("{key}: {problem}"))?;
    if setting.kind == Kind::Url && has_password(&value) {
        let instead = format!("set {} in the environment, or name a file with {}", setting.name, in_a_file());
        return Err(format!("{key}: the address holds a password, which may not stand here; {instead}"));
    }
    Ok((setting.name.to_owned(), value))
}

fn unknown(key: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for setting in SETTINGS.iter() {
        names.extend([setting.key.to_owned(), setting.name.to_owned()]);
        names.extend(setting.file_key());
    }
    let alike = |name: &String| strsim::jaro_winkler(name, key);
    let nearest = names.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let meant = nearest.filter(|name| alike(name) >= ALIKE).map(|name| format!("; did you mean `{name}`?"));
    format!("there is no setting `{key}`{}", meant.unwrap_or_default())
}

fn from_toml(text: &str) -> Result<Vec<(String, Raw)>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        format!("line {line}: {}", error.message())
    })?;
    let mut entries = Vec::new();
    toml_entries("", table, &mut entries);
    Ok(entries)
}

fn toml_entries(above: &str, table: toml::Table, entries: &mut Vec<(String, Raw)>) {
    for (key, value) in table {
        let key = below(above, &key);
        let raw = match value {
            toml::Value::Table(table) => {
                toml_entries(&key, table, entries);
                continue;
            }
            toml::Value::String(text) => Raw::Text(text),
            toml::Value::Integer(number) => Raw::Number(number.to_string()),
            toml::Value::Float(number) => Raw::Number(number.to_string()),
            toml::Value::Boolean(flag) => Raw::Flag(flag),
            toml::Value::Datetime(date) => Raw::Date(date.to_string()),
            toml::Value::Array(_) => Raw::Other("a list"),
        };
        entries.push((key, raw));
    }
}

fn from_yaml(text: &str) -> Result<Vec<(String, Raw)>, String> {
    if text.lines().all(is_comment) {
        return Ok(Vec::new());
    }
    let map: serde_json::Map<String, serde_json::Value> = serde_saphyr::from_str(text).map_err(|error| {
        let text = error.to_string();
        text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it is no YAML").trim().to_owned()
    })?;
    let mut entries = Vec::new();
    yaml_entries("", map, &mut entries);
    Ok(entries)
}

fn yaml_entries(above: &str, map: serde_json::Map<String, serde_json::Value>, entries: &mut Vec<(String, Raw)>) {
    for (key, value) in map {
        let key = below(above, &key);
        let raw = match value {
            serde_json::Value::Object(map) => {
                yaml_entries(&key, map, entries);
                continue;
            }
            serde_json::Value::String(text) => Raw::Text(text),
            serde_json::Value::Number(number) => Raw::Number(number.to_string()),
            serde_json::Value::Bool(flag) => Raw::Flag(flag),
            serde_json::Value::Array(_) => Raw::Other("a list"),
            serde_json::Value::Null => Raw::Other("nothing"),
        };
        entries.push((key, raw));
    }
}

fn below(above: &str, key: &str) -> String {
    if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> Content {
        of(from_toml(text))
    }

    #[test]
    fn a_file_sets_what_there_is_to_set_in_either_form() {
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
        assert_eq!(of(from_yaml(yaml)), Content { values: expected, problems: vec![] });
        assert_eq!(of(from_yaml("# nothing\n\n")), Content::default());
    }

    #[test]
    fn what_is_wrong_is_named_all_of_it() {
        let problems = toml(
            "usr = 'ana'\nstore = 'postgres://me:s3cret@host/db'\nmodel = 7\n\
             [server]\nrate = 'fast'\nlisten = 'everywhere'\n[groq]\napi_key = 'gsk-s3cret'\nmodels = ['a']\n[log]\njson = 'yes'\n",
        );
        let expected = [
            "there is no setting `usr`; did you mean `user`?",
            "store: the address holds a password, which may not stand here; set THREADKEEP_STORE in the environment, or \
             name a file with store_file",
            "model: a number is not text",
            "server.rate: text is not a whole number, at least 1",
            "server.listen: `everywhere` is not a host and a port, such as \"127.0.0.1:7437\"",
            "groq.api_key: it is a secret and may not stand here; set GROQ_API_KEY in the environment, or name its file \
             with groq.api_key_file",
            "there is no setting `groq.models`; did you mean `groq.model`?",
            "log.json: text is not true or false",
        ];
        let mut found = problems.problems.clone();
        found.sort();
        let mut expected = expected.map(str::to_owned);
        expected.sort();
        assert_eq!(found, expected);
        assert!(problems.values.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let problem = &toml("user = 'ana'\nmodel = = 3\n").problems[0];
        assert!(problem.starts_with("line 2: "), "{problem}");
        assert!(!of(from_yaml("- a\n")).problems.is_empty());
        assert_eq!(toml("[server]\nrate = 0\n").problems, ["server.rate: `0` is not a whole number, at least 1"]);
        assert_eq!(toml("user = 'ana'\nTHREADKEEP_USER = 'bob'\n").problems.len(), 1);
    }

    #[test]
    fn passwords_are_seen() {
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
