//! Lists all settings, including the URLs of external services.

use std::sync::LazyLock;

use threadkeep::AssistantPlugin;
use threadkeep::agent::plugin::{self, SettingDefault, SettingKind};

use super::kind::Kind;
use super::kind::Kind::{Count, File, Flag, Instant, Listen, Secret, Size, Text, Url};
use crate::assistants::{BUILT_IN, OPERATOR};

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The environment variable.
    pub(crate) name: &'static str,
    /// The key in the configuration file.
    pub(crate) key: &'static str,
    /// The type of the value.
    pub(crate) kind: Kind,
    /// A short description.
    pub(crate) about: &'static str,
    /// The default.
    pub(crate) built_in: SettingDefault,
}

const fn setting(
    name: &'static str,
    key: &'static str,
    kind: Kind,
    about: &'static str,
    built_in: &'static str,
) -> Setting {
    Setting { name, key, kind, about, built_in: SettingDefault::Description(built_in) }
}

impl From<&plugin::Setting> for Setting {
    fn from(setting: &plugin::Setting) -> Self {
        let plugin::Setting { variable, key, kind, help, default } = *setting;
        let kind = match kind {
            SettingKind::Text => Text,
            SettingKind::File => File,
            SettingKind::Url => Url,
            SettingKind::Count => Count,
            SettingKind::Flag => Flag,
            SettingKind::Secret => Secret,
        };
        Self { name: variable, key, kind, about: help, built_in: default }
    }
}

impl Setting {
    /// Finds a setting by its variable or its key.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name || setting.key == name)
    }

    /// Returns the variable that specifies a file with the value. `None` if the value is never secret.
    pub(crate) fn file_name(&self) -> Option<String> {
        self.kind.may_be_secret().then(|| format!("{}_FILE", self.name))
    }

    /// Returns the key that specifies a file with the value. `None` if the value is never secret.
    pub(crate) fn file_key(&self) -> Option<String> {
        self.kind.may_be_secret().then(|| format!("{}_file", self.key))
    }
}

/// All settings, including those of the built-in assistants.
pub(crate) static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| with_settings_of(BUILT_IN));

/// Returns all settings of this program, including those of `assistants`.
pub(crate) fn with_settings_of(assistants: &[AssistantPlugin]) -> Vec<Setting> {
    let assistant_settings = assistants.iter().flat_map(|plugin| plugin.settings).map(Setting::from);
    BEFORE.into_iter().chain(assistant_settings).chain(AFTER).collect()
}

/// The settings listed before those of the assistants.
const BEFORE: [Setting; 42] = [
    setting("THREADKEEP_STORE", "store", Url, "the store", "threadkeep.db in the data folder"),
    setting(
        "THREADKEEP_ERASURE_LEDGER",
        "erasure_ledger",
        File,
        "the erasure ledger: a file, or none",
        "erasures.jsonl in the state folder",
    ),
    setting("THREADKEEP_TENANT", "tenant", Text, "the tenant", "local"),
    setting("THREADKEEP_USER", "user", Text, "the user", "me"),
    setting("THREADKEEP_NOW", "now", Instant, "a fixed current time", "the system clock"),
    setting(
        "THREADKEEP_ASSISTANTS",
        "assistants",
        File,
        "the folder of assistants defined in YAML",
        "assistants in the configuration folder",
    ),
    setting(
        "THREADKEEP_MCP_SERVERS",
        "mcp.servers",
        File,
        "the file with the MCP servers of the general assistant",
        "mcp.json in the configuration folder",
    ),
    setting("THREADKEEP_MODEL", "model", Text, "the chat model", "the first one found, else offline"),
    setting("THREADKEEP_EMBEDDER", "embedder", Text, "the embedding model", "none"),
    setting("THREADKEEP_PRICES", "prices", File, "a file with model prices", "built-in prices"),
    setting("THREADKEEP_LISTEN", "server.listen", Listen, "the address that the server listens on", "127.0.0.1:7437"),
    setting("THREADKEEP_TOKEN", "server.token", Secret, "the token of clients while there is no API key", ""),
    setting("THREADKEEP_RATE", "server.rate", Count, "maximum requests per minute for each key", "no limit"),
    setting("THREADKEEP_QUOTA", "server.quota", Count, "maximum requests per day (UTC) for each key", "no limit"),
    setting(
        "THREADKEEP_STRICT_MODELS",
        "server.strict_models",
        Flag,
        "whether the OpenAI API rejects model names that it does not list",
        "false",
    ),
    setting(
        "THREADKEEP_BROWSER_ORIGINS",
        "server.browser_origins",
        Text,
        "the origins of pages that may call from a browser, separated by commas",
        "none",
    ),
    setting(
        "THREADKEEP_WEBHOOK_NETWORKS",
        "server.webhook_networks",
        Text,
        "private networks to which webhooks may be delivered, separated by commas",
        "none",
    ),
    setting(
        "THREADKEEP_RESUME_TURNS",
        "server.resume_turns",
        Flag,
        "whether the server resumes interrupted turns",
        "true",
    ),
    setting("THREADKEEP_TLS_CERT", "server.tls_cert", File, "the server's certificate chain, in PEM", "no TLS"),
    setting("THREADKEEP_TLS_KEY", "server.tls_key", File, "the private key of the certificate, in PEM", "no TLS"),
    setting("THREADKEEP_TOKEN_ISSUER", "token.issuer", Text, "the issuer of accepted JWTs", "none"),
    setting("THREADKEEP_TOKEN_AUDIENCE", "token.audience", Text, "the required audience of JWTs", "none"),
    setting("THREADKEEP_TOKEN_SECRET", "token.secret", Secret, "the secret that signs JWTs (HS256)", ""),
    setting("THREADKEEP_TOKEN_JWKS", "token.jwks", Url, "the file or URL of the keys that verify JWTs", "none"),
    setting(
        "THREADKEEP_TOKEN_SERVICE_ROLE",
        "token.service_role",
        Flag,
        "whether `service_role` JWTs act for the whole tenant",
        "false",
    ),
    setting("SLACK_SIGNING_SECRET", "slack.signing_secret", Secret, "the signing secret of the Slack app", ""),
    setting("SLACK_APP_TOKEN", "slack.app_token", Secret, "the app-level token, for Socket Mode", ""),
    setting("SLACK_BOT_TOKEN", "slack.bot_token", Secret, "the bot token of each workspace, separated by commas", ""),
    setting("SLACK_ASSISTANT", "slack.assistant", Text, "the assistant that answers in Slack", OPERATOR.name),
    setting("SLACK_ANSWER_ALL", "slack.answer_all", Flag, "whether messages without a mention are answered", "false"),
    setting("SLACK_API_URL", "slack.api_url", Url, "the URL of Slack's Web API", "https://slack.com/api/"),
    setting("GROQ_API_KEY", "groq.api_key", Secret, "Groq's API key", ""),
    setting("GROQ_MODEL", "groq.model", Text, "Groq's model", "openai/gpt-oss-120b"),
    setting("GROQ_BASE_URL", "groq.base_url", Url, "Groq's base URL", "https://api.groq.com/openai/v1"),
    setting("OPENAI_API_KEY", "openai.api_key", Secret, "OpenAI's API key", ""),
    setting("OPENAI_MODEL", "openai.model", Text, "OpenAI's model", "gpt-5.4-mini"),
    setting(
        "OPENAI_BASE_URL",
        "openai.base_url",
        Url,
        "the base URL of OpenAI or of a compatible server",
        "https://api.openai.com/v1",
    ),
    setting("ANTHROPIC_API_KEY", "anthropic.api_key", Secret, "Anthropic's API key", ""),
    setting("ANTHROPIC_MODEL", "anthropic.model", Text, "Anthropic's model", "claude-sonnet-5-5"),
    setting("ANTHROPIC_BASE_URL", "anthropic.base_url", Url, "Anthropic's base URL", "https://api.anthropic.com/v1"),
    setting("OLLAMA_HOST", "ollama.host", Url, "Ollama's URL", "not used unless set"),
    setting("OLLAMA_MODEL", "ollama.model", Text, "Ollama's model", "llama3.2"),
];

/// The settings that are listed after those of the assistants.
const AFTER: [Setting; 15] = [
    setting("HTTPS_PROXY", "proxy.https", Url, "the proxy for HTTPS requests", "none"),
    setting("ALL_PROXY", "proxy.all", Url, "the proxy for all requests", "none"),
    setting("NO_PROXY", "proxy.exceptions", Text, "hosts that bypass the proxy", "none"),
    setting("RUST_LOG", "log.filter", Text, "the log filter, such as debug", "off; info for the server"),
    setting("THREADKEEP_LOG_JSON", "log.json", Flag, "whether the server logs one JSON object per line", "false"),
    setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "telemetry.endpoint",
        Url,
        "the endpoint for the server's traces (OTLP over HTTP)",
        "none",
    ),
    setting("OTEL_EXPORTER_OTLP_HEADERS", "telemetry.headers", Secret, "headers of trace requests", ""),
    setting("OTEL_SERVICE_NAME", "telemetry.service", Text, "the service name in traces", "threadkeep"),
    setting("THREADKEEP_BODY_BYTES", "limits.body_bytes", Count, "maximum bytes of a request body", "20971520"),
    setting("THREADKEEP_CONNECTIONS", "limits.connections", Count, "maximum concurrent connections", "10000"),
    setting("THREADKEEP_TAIL_BYTES", "limits.tail_bytes", Size, "maximum bytes of the thread cache", "16777216"),
    setting("THREADKEEP_ACTION_SECONDS", "limits.action_seconds", Count, "timeout of an action, in seconds", "60"),
    setting(
        "THREADKEEP_GRACE_SECONDS",
        "limits.grace_seconds",
        Count,
        "seconds that a shutdown waits for requests",
        "30",
    ),
    setting("NO_COLOR", "output.no_color", Text, "disables colour", "colour on a terminal"),
    setting(
        "THREADKEEP_CONFIG",
        "config",
        File,
        "the configuration file",
        "threadkeep.toml in the configuration folder",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_settings_are_unique() {
        let names: Vec<String> = SETTINGS
            .iter()
            .flat_map(|setting| {
                let names = [setting.name.to_owned(), setting.key.to_owned()];
                names.into_iter().chain(setting.file_name()).chain(setting.file_key())
            })
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
