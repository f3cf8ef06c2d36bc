//! The operator's configuration of external servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

/// The maximum number of servers in one configuration.
const MAX_SERVERS: usize = 32;
/// The maximum length of the name of a server, in bytes.
const NAME_LENGTH: usize = 32;
/// The default timeout of a call, in seconds.
const CALL_SECONDS: u64 = 60;
/// The default time that a server may take to start, in seconds.
const STARTUP_SECONDS: u64 = 30;
/// The maximum of both times, in seconds.
const MAX_SECONDS: u64 = 3600;
/// The fields of an entry.
const MEMBERS: [&str; 11] =
    ["command", "args", "env", "cwd", "url", "headers", "type", "tools", "allow", "call_seconds", "startup_seconds"];

/// An external server, as the operator configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// Its name, which the names of its tools begin with.
    pub name: String,
    /// How to connect to it.
    pub connection: ServerConnection,
    /// The only tools to use, by the server's names. `None` uses all.
    pub tools: Option<BTreeSet<String>>,
    /// The tools that are called without approval, by the server's names.
    pub allowed: BTreeSet<String>,
    /// The timeout of a call.
    pub call_timeout: Duration,
    /// How long the server may take to start and to list its tools.
    pub startup_timeout: Duration,
}

/// How to connect to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerConnection {
    /// A program, over its standard input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its environment, besides PATH, HOME and LANG.
        environment: BTreeMap<String, String>,
        /// Its working directory. `None` uses that of this process.
        folder: Option<String>,
    },
    /// An address, over the streamable HTTP transport.
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
}

/// Without the values of the environment and of headers, which may be secret.
impl fmt::Debug for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, .. } => {
                f.debug_struct("Command").field("program", program).finish_non_exhaustive()
            }
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
        }
    }
}

/// Reads entries, by the names of the servers. `variable` returns the value of an environment variable, for `${NAME}` in values of
/// `env` and `headers`.
///
/// # Errors
/// The first error, with the name of the server.
pub fn server_specs<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a Value)>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<ServerSpec>, String> {
    let mut specs = Vec::new();
    for (name, entry) in entries {
        if specs.len() == MAX_SERVERS {
            return Err(format!("more than {MAX_SERVERS} servers"));
        }
        check_name(name)?;
        specs.push(ServerSpec::read(name, entry, variable).map_err(|reason| format!("{name}: {reason}"))?);
    }
    Ok(specs)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_valid = name.len() <= NAME_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !name.contains("__")
        && !name.ends_with('_');
    if is_valid {
        return Ok(());
    }
    let name: String = name.chars().take(60).collect();
    Err(format!(
        "invalid name `{name}` of a server: expected 1 to {NAME_LENGTH} letters, digits, `-` and single `_`, starting with a letter or digit"
    ))
}

impl ServerSpec {
    fn read(name: &str, entry: &Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let Value::Object(members) = entry else { return Err("expected an entry with `command` or `url`".to_owned()) };
        if let Some(unknown) = members.keys().find(|member| !MEMBERS.contains(&member.as_str())) {
            return Err(format!("unknown key `{unknown}`; expected one of {}", MEMBERS.join(", ")));
        }
        let tools = list(members, "tools")?.map(BTreeSet::from_iter);
        let allowed: BTreeSet<String> = list(members, "allow")?.unwrap_or_default().into_iter().collect();
        if let Some(tools) = &tools
            && let Some(missing) = allowed.iter().find(|name| !tools.contains(*name))
        {
            return Err(format!("allow: `{missing}` is not in `tools`"));
        }
        Ok(Self {
            name: name.to_owned(),
            connection: connection(members, variable)?,
            tools,
            allowed,
            call_timeout: seconds(members, "call_seconds", CALL_SECONDS)?,
            startup_timeout: seconds(members, "startup_seconds", STARTUP_SECONDS)?,
        })
    }
}

fn connection(
    members: &Map<String, Value>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerConnection, String> {
    let reject = |names: &[&str], with: &str| match names.iter().find(|name| members.contains_key(**name)) {
        Some(name) => Err(format!("`{name}` cannot be used with `{with}`")),
        None => Ok(()),
    };
    let kind = text(members, "type")?;
    match (text(members, "command")?, text(members, "url")?) {
        (Some(program), None) => {
            reject(&["headers"], "command")?;
            if kind.is_some_and(|kind| kind != "stdio") {
                return Err("type: expected `stdio` for a `command`".to_owned());
            }
            Ok(ServerConnection::Command {
                program,
                arguments: list(members, "args")?.unwrap_or_default(),
                environment: values(members, "env", variable)?,
                folder: text(members, "cwd")?,
            })
        }
        (None, Some(url)) => {
            reject(&["args", "env", "cwd"], "url")?;
            if kind.is_some_and(|kind| !matches!(kind.as_str(), "http" | "streamable-http")) {
                return Err("type: expected `http` for a `url`; the earlier SSE transport is not supported".to_owned());
            }
            let is_http = reqwest::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_http {
                return Err("url: expected an http or https address".to_owned());
            }
            let headers = values(members, "headers", variable)?;
            for (name, value) in &headers {
                if http::HeaderName::try_from(name).is_err() || http::HeaderValue::try_from(value).is_err() {
                    return Err(format!("headers: invalid name or value of `{name}`"));
                }
            }
            Ok(ServerConnection::Http { url, headers })
        }
        (Some(_), Some(_)) => Err("`url` cannot be used with `command`".to_owned()),
        (None, None) => Err("expected `command` or `url`".to_owned()),
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name}: expected a non-empty string")),
    }
}

fn list(members: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, String> {
    let Some(list) = members.get(name) else { return Ok(None) };
    let texts = list.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)));
    let texts: Option<Vec<String>> = texts.and_then(Iterator::collect);
    texts.map(Some).ok_or_else(|| format!("{name}: expected a list of strings"))
}

fn values(
    members: &Map<String, Value>,
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, String> {
    let entries = match members.get(name) {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(format!("{name}: expected names with values")),
    };
    let value = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(format!("{name}: expected a string as the value of `{key}`")),
        };
        let value = expanded(&value, variable).map_err(|reason| format!("{name}: {key}: {reason}"))?;
        Ok((key.clone(), value))
    };
    entries.iter().map(value).collect()
}

/// Replaces `${NAME}` by the value of the environment variable.
fn expanded(value: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut result, mut rest) = (String::new(), value);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("`${` without `}`")?;
        result.push_str(before);
        result.push_str(&variable(name).ok_or_else(|| format!("the environment variable {name} is not set"))?);
        rest = after;
    }
    Ok(result + rest)
}

fn seconds(members: &Map<String, Value>, name: &str, default: u64) -> Result<Duration, String> {
    let seconds = match members.get(name) {
        None => Some(default),
        Some(value) => value.as_u64().filter(|seconds| (1..=MAX_SECONDS).contains(seconds)),
    };
    seconds.map(Duration::from_secs).ok_or_else(|| format!("{name}: expected a whole number from 1 to {MAX_SECONDS}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, entry: Value) -> Result<ServerSpec, String> {
        let variable = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        server_specs([(name, &entry)], &variable).map(|mut specs| specs.remove(0))
    }

    #[test]
    fn entries_have_the_usual_form() {
        let spec = read(
            "files",
            json!({ "command": "npx", "args": ["-y", "x"], "env": { "KEY": "a ${TOKEN} b", "N": 1 }, "allow": ["list"] }),
        );
        let spec = spec.unwrap();
        let environment = [("KEY".to_owned(), "a secret b".to_owned()), ("N".to_owned(), "1".to_owned())].into();
        let arguments = vec!["-y".to_owned(), "x".to_owned()];
        let program = "npx".to_owned();
        assert_eq!(spec.connection, ServerConnection::Command { program, arguments, environment, folder: None });
        assert_eq!((spec.call_timeout.as_secs(), spec.startup_timeout.as_secs()), (60, 30));
        assert!(spec.allowed.contains("list"));
        assert!(!format!("{spec:?}").contains("secret"));
        let spec =
            read("web", json!({ "url": "https://x.example/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }));
        let spec = spec.unwrap();
        assert!(!format!("{spec:?}").contains("secret"));
        let ServerConnection::Http { headers, .. } = spec.connection else { panic!() };
        assert_eq!(headers["Authorization"], "Bearer secret");
    }

    #[test]
    fn errors_name_the_server_and_the_key() {
        for (name, entry, expected) in [
            ("files", json!({}), "files: expected `command` or `url`"),
            ("files", json!(7), "files: expected an entry with `command` or `url`"),
            ("files", json!({ "comand": "x" }), "files: unknown key `comand`; expected one of command, args"),
            ("files", json!({ "command": "x", "url": "http://x" }), "files: `url` cannot be used with `command`"),
            ("files", json!({ "url": "ftp://x" }), "files: url: expected an http or https address"),
            ("files", json!({ "url": "http://x", "env": {} }), "files: `env` cannot be used with `url`"),
            (
                "files",
                json!({ "url": "http://x", "type": "sse" }),
                "files: type: expected `http` for a `url`; the earlier",
            ),
            (
                "files",
                json!({ "url": "http://x", "headers": { "a b": "c" } }),
                "files: headers: invalid name or value of `a b`",
            ),
            ("files", json!({ "command": "x", "args": "y" }), "files: args: expected a list of strings"),
            (
                "files",
                json!({ "command": "x", "env": { "A": "${NO}" } }),
                "files: env: A: the environment variable NO is not set",
            ),
            ("files", json!({ "command": "x", "env": { "A": "${NO" } }), "files: env: A: `${` without `}`"),
            (
                "files",
                json!({ "command": "x", "call_seconds": 0 }),
                "files: call_seconds: expected a whole number from 1 to 3600",
            ),
            ("files", json!({ "command": "x", "tools": ["a"], "allow": ["b"] }), "files: allow: `b` is not in `tools`"),
            ("a__b", json!({ "command": "x" }), "invalid name `a__b` of a server"),
            ("", json!({ "command": "x" }), "invalid name `` of a server"),
            ("ä", json!({ "command": "x" }), "invalid name `ä` of a server"),
        ] {
            let error = read(name, entry).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
