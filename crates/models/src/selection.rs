//! Selects a model by name or by environment variables.
//!
//! The caller passes the environment as a function from names to values, because this module does not read it. A blank value
//! counts as unset.

use std::fmt;

use threadkeep_core::redact_address;

use crate::provider::{EmbedderConfig, HttpOptions, Provider, ProviderConfig};
use crate::{PriceTable, Secret};

/// The variable with the name of the model. See [`select`].
const MODEL: &str = "THREADKEEP_MODEL";
/// The variable with the name of the embedding model. See [`select_embedder`].
const EMBEDDER: &str = "THREADKEEP_EMBEDDER";
/// The name of the offline model.
const OFFLINE: &str = "offline";

/// Ollama's default port.
const OLLAMA_PORT: u16 = 11_434;

/// Where a setting was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In this environment variable.
    Variable(&'static str),
    /// In the requested name.
    Name,
    /// No setting was found: the built-in default is used.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.pad(name),
            Self::Name => f.pad("the name"),
            Self::BuiltIn => f.pad("built in"),
        }
    }
}

/// A configured model, and where each of its settings was found.
#[derive(Clone, PartialEq, Eq)]
pub struct AvailableModel {
    /// The provider.
    pub provider: Provider,
    /// The provider's name for the model.
    pub model: String,
    /// Where the model name was found.
    pub model_origin: Origin,
    /// The base URL of the API.
    pub base_url: String,
    /// Where the base URL was found.
    pub base_url_origin: Origin,
    /// The API key, if there is one.
    pub key: Option<Secret>,
    /// The variable that contained the key.
    pub key_variable: Option<&'static str>,
    /// The proxy to use.
    pub proxy: Option<String>,
    /// Hosts to reach without the proxy.
    pub proxy_exceptions: Option<String>,
}

/// The result of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The offline model, which each assistant provides.
    Offline,
    /// A model of a provider.
    Provider(Box<AvailableModel>),
}

/// An error of model selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The name matches no provider, and no provider is configured that could have a model of this name.
    #[error("unknown provider {0}: expected openai, groq, anthropic, ollama, compatible or offline")]
    UnknownProvider(String),
    /// A required setting of the provider is missing.
    #[error("{provider} needs {variable}")]
    Missing {
        /// The provider.
        provider: Provider,
        /// The missing variable or setting.
        variable: &'static str,
    },
    /// The key contains characters that HTTP headers do not allow.
    #[error("invalid API key in {0}: it contains spaces or non-ASCII characters")]
    Key(&'static str),
    /// The provider does not offer embeddings.
    #[error("{0} does not offer embeddings")]
    NoEmbeddings(Provider),
}

/// The environment variables and defaults of a provider.
struct ProviderVariables {
    provider: Provider,
    key: Option<&'static str>,
    model: &'static str,
    base_url: &'static str,
    /// The default model.
    default_model: Option<&'static str>,
}

/// The providers in order of preference.
const PROVIDERS: [ProviderVariables; 5] = [
    ProviderVariables {
        provider: Provider::Groq,
        key: Some("GROQ_API_KEY"),
        model: "GROQ_MODEL",
        base_url: "GROQ_BASE_URL",
        default_model: Some("openai/gpt-oss-120b"),
    },
    ProviderVariables {
        provider: Provider::OpenAi,
        key: Some("OPENAI_API_KEY"),
        model: "OPENAI_MODEL",
        base_url: "OPENAI_BASE_URL",
        default_model: Some("gpt-5.4-mini"),
    },
    // Uses the same variables as OpenAI, with another base URL.
    ProviderVariables {
        provider: Provider::Compatible,
        key: Some("OPENAI_API_KEY"),
        model: "OPENAI_MODEL",
        base_url: "OPENAI_BASE_URL",
        default_model: None,
    },
    ProviderVariables {
        provider: Provider::Anthropic,
        key: Some("ANTHROPIC_API_KEY"),
        model: "ANTHROPIC_MODEL",
        base_url: "ANTHROPIC_BASE_URL",
        default_model: Some("claude-sonnet-5-5"),
    },
    ProviderVariables {
        provider: Provider::Ollama,
        key: None,
        model: "OLLAMA_MODEL",
        base_url: "OLLAMA_HOST",
        default_model: Some("llama3.2"),
    },
];

/// Finds the models that the environment configures, in order of preference: Groq, OpenAI or a compatible server, Anthropic,
/// Ollama. Each incomplete configuration is returned as an error.
pub fn find_models(environment: &dyn Fn(&str) -> Option<String>) -> Vec<Result<AvailableModel, SelectionError>> {
    let read = |name: &str| read(environment, name);
    let has_parameter = |variables: &&ProviderVariables| match variables.provider {
        Provider::OpenAi => read("OPENAI_API_KEY").is_some() && !has_other_address(environment),
        Provider::Compatible => has_other_address(environment),
        Provider::Ollama => read(variables.base_url).is_some(),
        _ => variables.key.and_then(read).is_some(),
    };
    PROVIDERS.iter().filter(has_parameter).map(|variables| resolve_model(variables, None, environment)).collect()
}

/// Selects a model by name. The name is one of:
/// - `offline`,
/// - `PROVIDER` or `PROVIDER:MODEL`, such as `groq` or `ollama:qwen3`,
/// - any other name: a model of the first configured provider.
///
/// Without a name, reads the variable `THREADKEEP_MODEL`. If it is unset, selects the first model that the environment
/// configures, and the offline model if there is none.
///
/// # Errors
/// The name is unknown, or the provider's configuration is incomplete or invalid.
pub fn select(name: Option<&str>, environment: &dyn Fn(&str) -> Option<String>) -> Result<Selected, SelectionError> {
    let requested = name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let (name, origin) = match requested {
        Some(name) => (Some(name), Origin::Name),
        None => (read(environment, MODEL), Origin::Variable(MODEL)),
    };
    let selected = |found| Selected::Provider(Box::new(found));
    let Some(name) = name else {
        let first = find_models(environment).into_iter().next();
        return first.map_or(Ok(Selected::Offline), |found| found.map(selected));
    };
    if name == OFFLINE {
        return Ok(Selected::Offline);
    }
    let (provider, model) = match name.split_once(':') {
        Some((provider, model)) if provider_of(provider).is_some() => (provider_of(provider), Some(model.to_owned())),
        _ => (provider_of(&name), None),
    };
    let Some(provider) = provider else {
        // No provider has this name, so it is the name of a model.
        let first = find_models(environment).into_iter().next();
        let first = first.ok_or_else(|| SelectionError::UnknownProvider(name.clone()))??;
        return Ok(selected(AvailableModel { model: name, model_origin: origin, ..first }));
    };
    let model = model.filter(|model| !model.is_empty()).map(|model| (model, origin));
    resolve_model(variables_of(provider, environment), model, environment).map(selected)
}

/// Selects an embedding model by the name `PROVIDER:MODEL`, such as `openai:text-embedding-3-small` or
/// `ollama:nomic-embed-text`. Without a name, reads the variable `THREADKEEP_EMBEDDER`; returns `None` if it is unset. There
/// is no default, because embeddings send every text to the provider.
///
/// # Errors
/// The name is unknown, or the provider's configuration is incomplete or invalid.
pub fn select_embedder(
    name: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<EmbedderConfig>, SelectionError> {
    let name = name.map(str::to_owned).or_else(|| read(environment, EMBEDDER));
    let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return Ok(None) };
    let (provider, model) = name.trim().split_once(':').unwrap_or((&name, ""));
    let provider = provider_of(provider).ok_or_else(|| SelectionError::UnknownProvider(provider.to_owned()))?;
    if matches!(provider, Provider::Anthropic | Provider::Groq) {
        return Err(SelectionError::NoEmbeddings(provider));
    }
    if model.is_empty() {
        return Err(SelectionError::Missing { provider, variable: "a model, as PROVIDER:MODEL" });
    }
    let found =
        resolve_model(variables_of(provider, environment), Some((model.to_owned(), Origin::Name)), environment)?;
    let http = found.http();
    Ok(Some(EmbedderConfig {
        base_url: found.base_url,
        key: found.key,
        http,
        ..EmbedderConfig::new(found.provider, found.model, None)
    }))
}

impl fmt::Debug for AvailableModel {
    /// Omits the key and the proxy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("base_url", &redact_address(&self.base_url))
            .finish_non_exhaustive()
    }
}

impl AvailableModel {
    /// Creates the configuration of a [`crate::ProviderModel`].
    #[must_use]
    pub fn config(&self, prices: PriceTable) -> ProviderConfig {
        ProviderConfig {
            base_url: self.base_url.clone(),
            prices,
            http: self.http(),
            ..ProviderConfig::new(self.provider, self.model.clone(), self.key.clone())
        }
    }

    fn http(&self) -> HttpOptions {
        HttpOptions {
            proxy: self.proxy.clone(),
            proxy_exceptions: self.proxy_exceptions.clone(),
            ..HttpOptions::default()
        }
    }
}

fn resolve_model(
    variables: &ProviderVariables,
    model: Option<(String, Origin)>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<AvailableModel, SelectionError> {
    let provider = variables.provider;
    let missing = |variable| SelectionError::Missing { provider, variable };
    let named = || read(environment, variables.model).map(|model| (model, Origin::Variable(variables.model)));
    let built_in = || variables.default_model.map(|model| (model.to_owned(), Origin::BuiltIn));
    let (model, model_origin) = model.or_else(named).or_else(built_in).ok_or_else(|| missing(variables.model))?;
    let (base_url, base_url_origin) = match (read(environment, variables.base_url), provider.base_url()) {
        (Some(host), _) if provider == Provider::Ollama => {
            (ollama_address(&host), Origin::Variable(variables.base_url))
        }
        (Some(url), _) => (url, Origin::Variable(variables.base_url)),
        (None, Some(url)) => (url.to_owned(), Origin::BuiltIn),
        (None, None) => return Err(missing(variables.base_url)),
    };
    let key_variable = variables.key.filter(|name| read(environment, name).is_some());
    let key = key_variable.and_then(|name| Some((name, read(environment, name)?)));
    let key = key.map(|(name, key)| Secret::new(&key).ok_or(SelectionError::Key(name))).transpose()?;
    if let (None, Some(variable)) = (&key, variables.key.filter(|_| provider != Provider::Compatible)) {
        return Err(missing(variable));
    }
    let proxies = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let is_remote = base_url.starts_with("https:");
    let proxy = proxies.iter().filter(|_| is_remote).find_map(|name| read(environment, name));
    let proxy_exceptions = ["NO_PROXY", "no_proxy"].iter().find_map(|name| read(environment, name));
    Ok(AvailableModel {
        provider,
        model,
        model_origin,
        base_url,
        base_url_origin,
        key,
        key_variable,
        proxy,
        proxy_exceptions,
    })
}

fn read(environment: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    let value = environment(name)?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn has_other_address(environment: &dyn Fn(&str) -> Option<String>) -> bool {
    let url = read(environment, "OPENAI_BASE_URL");
    url.is_some_and(|url| Some(url.trim_end_matches('/')) != Provider::OpenAi.base_url())
}

fn provider_of(name: &str) -> Option<Provider> {
    Provider::ALL.into_iter().find(|provider| provider.as_str() == name)
}

/// Returns the variables of a provider. `openai` stands for a compatible server if the base URL is not OpenAI's.
fn variables_of(provider: Provider, environment: &dyn Fn(&str) -> Option<String>) -> &'static ProviderVariables {
    let provider = match provider {
        Provider::OpenAi if has_other_address(environment) => Provider::Compatible,
        other => other,
    };
    let variables = PROVIDERS.iter().find(|variables| variables.provider == provider);
    variables.expect("each provider has its variables, as a test checks")
}

/// Converts the value of `OLLAMA_HOST` to a base URL. The value is a host with or without port and scheme. The address
/// 0.0.0.0, on which servers listen, is replaced by the loopback address.
fn ollama_address(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').trim_end_matches("/v1");
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => (name, Some(port.to_owned())),
        _ => (rest, (scheme == "http").then(|| OLLAMA_PORT.to_string())),
    };
    let name = if matches!(name, "" | "0.0.0.0") { "127.0.0.1" } else { name };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{name}{port}/v1")
}

#[cfg(test)]
mod tests;
