//! All that can be set. Addresses of everything outside are among it.

use std::sync::LazyLock;

use threadkeep::AssistantPlugin;
use threadkeep::agent::plugin::{self, SettingDefault, SettingKind};

use super::kind::Kind;
use super::kind::Kind::{Count, File, Flag, Instant, Listen, Secret, Size, Text, Url};
use crate::assistants::BUILT_IN;

/// Something that can be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The variable of the environment.
    pub(crate) name: &'static str,
    /// The key of the configuration file.
    pub(crate) key: &'static str,
    /// What a value of it is.
    pub(crate) kind: Kind,
    /// What it is for, in a few words.
    pub(crate) about: &'static str,
    /// What holds where it is not set.
    pub(crate) built_in: SettingDefault,
}

const fn setting(
    name: &'static str,
    key: &'static str,
    kind: Kind,
    about: &'static str,
    built_in: &'static str,
) -> Setting {
    Setting { name, key, kind, about, built_in: SettingDefault::Shown(built_in) }
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

    /// The variable that names a file with its value, where it can be a secret.
    pub(crate) fn file_name(&self) -> Option<String> {
        self.kind.may_be_secret().then(|| format!("{}_FILE", self.name))
    }

    /// The key that names a file with its value, where it can be a secret.
    pub(crate) fn file_key(&self) -> Option<String> {
        self.kind.may_be_secret().then(|| format!("{}_file", self.key))
    }
}

/// All that can be set, that of the assistants that are built in among it.
pub(crate) static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| with_those_of(BUILT_IN));

/// This program's settings, and in their midst those of assistants.
pub(crate) fn with_those_of(assistants: &[AssistantPlugin]) -> Vec<Setting> {
    let of_assistants = assistants.iter().flat_map(|plugin| plugin.settings).map(Setting::from);
    BEFORE.into_iter().chain(of_assistants).chain(AFTER).collect()
}

/// Those that stand before the assistants' settings.
const BEFORE: [Setting; 32] = [
    setting("THREADKEEP_STORE", "store", Url, "the store", "threadkeep.db in the data folder"),
    setting(
        "THREADKEEP_ERASURE_LEDGER",
        "erasure_ledger",
        File,
        "the file that records what was erased, or none",
        "erasures.jsonl in the state folder",
    ),
    setting("THREADKEEP_TENANT", "tenant", Text, "the tenant", "local"),
    setting("THREADKEEP_USER", "user", Text, "the user", "me"),
    setting("THREADKEEP_NOW", "now", Instant, "the instant that counts as now", "the system's clock"),
    setting(
        "THREADKEEP_ASSISTANTS",
        "assistants",
        File,
        "the folder of assistants written in YAML",
        "assistants in the configuration folder",
    ),
    setting("THREADKEEP_MODEL", "model", Text, "the model that speaks", "the first that is found, else offline"),
    setting("THREADKEEP_EMBEDDER", "embedder", Text, "the embedding model", "none"),
    setting("THREADKEEP_PRICES", "prices", File, "a file with prices of models", "built-in prices"),
    setting("THREADKEEP_LISTEN", "server.listen", Listen, "where the server listens", "127.0.0.1:7437"),
    setting("THREADKEEP_TOKEN", "server.token", Secret, "what clients show while the server has no key", ""),
    setting("THREADKEEP_RATE", "server.rate", Count, "requests of a key in a minute", "no bound"),
    setting("THREADKEEP_QUOTA", "server.quota", Count, "requests of a key in a day (UTC)", "no bound"),
    setting(
        "THREADKEEP_RESUME_TURNS",
        "server.resume_turns",
        Flag,
        "whether the server goes on with turns that were cut off",
        "true",
    ),
    setting("THREADKEEP_TLS_CERT", "server.tls_cert", File, "the server's certificates, in PEM", "no TLS"),
    setting("THREADKEEP_TLS_KEY", "server.tls_key", File, "the file of the key of the first, in PEM", "no TLS"),
    setting("THREADKEEP_TOKEN_ISSUER", "token.issuer", Text, "whose tokens the server takes", "nobody's"),
    setting("THREADKEEP_TOKEN_AUDIENCE", "token.audience", Text, "for whom such tokens have to be", "none"),
    setting("THREADKEEP_TOKEN_SECRET", "token.secret", Secret, "what such tokens are signed with (HS256)", ""),
    setting("THREADKEEP_TOKEN_JWKS", "token.jwks", Url, "the file or URL of the keys of such tokens", "none"),
    setting(
        "THREADKEEP_TOKEN_SERVICE_ROLE",
        "token.service_role",
        Flag,
        "whether `service_role` acts for the whole tenant",
        "false",
    ),
    setting("GROQ_API_KEY", "groq.api_key", Secret, "Groq's key", ""),
    setting("GROQ_MODEL", "groq.model", Text, "Groq's model", "openai/gpt-oss-120b"),
    setting("GROQ_BASE_URL", "groq.base_url", Url, "Groq's address", "https://api.groq.com/openai/v1"),
    setting("OPENAI_API_KEY", "openai.api_key", Secret, "OpenAI's key", ""),
    setting("OPENAI_MODEL", "openai.model", Text, "OpenAI's model", "gpt-5.4-mini"),
    setting(
        "OPENAI_BASE_URL",
        "openai.base_url",
        Url,
        "OpenAI's address, or that of a server that speaks like it",
        "https://api.openai.com/v1",
    ),
    setting("ANTHROPIC_API_KEY", "anthropic.api_key", Secret, "Anthropic's key", ""),
    setting("ANTHROPIC_MODEL", "anthropic.model", Text, "Anthropic's model", "claude-sonnet-5-5"),
    setting("ANTHROPIC_BASE_URL", "anthropic.base_url", Url, "Anthropic's address", "https://api.anthropic.com/v1"),
    setting("OLLAMA_HOST", "ollama.host", Url, "Ollama's address", "not asked unless it is set"),
    setting("OLLAMA_MODEL", "ollama.model", Text, "Ollama's model", "llama3.2"),
];

/// Those that stand behind the assistants' settings.
const AFTER: [Setting; 15] = [
    setting("HTTPS_PROXY", "proxy.https", Url, "the proxy for addresses with https", "none"),
    setting("ALL_PROXY", "proxy.all", Url, "the proxy for all addresses", "none"),
    setting("NO_PROXY", "proxy.exceptions", Text, "what is reached without the proxy", "nothing"),
    setting("RUST_LOG", "log.filter", Text, "what is logged, such as debug", "nothing; of a server, info"),
    setting("THREADKEEP_LOG_JSON", "log.json", Flag, "whether the server logs JSON, an object a line", "false"),
    setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "telemetry.endpoint",
        Url,
        "where the server's traces go (OTLP over HTTP)",
        "nowhere",
    ),
    setting("OTEL_EXPORTER_OTLP_HEADERS", "telemetry.headers", Secret, "headers that are sent with them", ""),
    setting("OTEL_SERVICE_NAME", "telemetry.service", Text, "the server's name in traces", "threadkeep"),
    setting("THREADKEEP_BODY_BYTES", "limits.body_bytes", Count, "bytes of a request's body", "20971520"),
    setting("THREADKEEP_CONNECTIONS", "limits.connections", Count, "connections at a time", "10000"),
    setting("THREADKEEP_TAIL_BYTES", "limits.tail_bytes", Size, "bytes of ends of threads kept in memory", "16777216"),
    setting("THREADKEEP_ACTION_SECONDS", "limits.action_seconds", Count, "how long an action may take", "60"),
    setting("THREADKEEP_GRACE_SECONDS", "limits.grace_seconds", Count, "how long a stop waits for requests", "30"),
    setting("NO_COLOR", "output.no_color", Text, "output without colour", "colour on a terminal"),
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
    fn no_two_settings_have_a_name_in_common() {
        let names: Vec<String> = SETTINGS
            .iter()
            .flat_map(|setting| {
                let own = [setting.name.to_owned(), setting.key.to_owned()];
                own.into_iter().chain(setting.file_name()).chain(setting.file_key())
            })
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
