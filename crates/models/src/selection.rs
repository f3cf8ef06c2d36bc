//! Which model speaks: by name, or by what the environment holds.
//!
//! The environment comes in as a function from names to values; nothing here reads it. A value of white space counts as
//! none.

use std::fmt;

use threadkeep_core::shown_address;

use crate::provider::{EmbedderConfig, HttpOptions, Provider, ProviderConfig};
use crate::{PriceTable, Secret};

/// The variable that names a model, as [`select`] takes it.
const MODEL: &str = "THREADKEEP_MODEL";
/// The variable that names an embedding model, as [`select_embedder`] takes it.
const EMBEDDER: &str = "THREADKEEP_EMBEDDER";
/// What the offline model is called.
const OFFLINE: &str = "offline";

/// Where Ollama listens when its address names no port.
const OLLAMA_PORT: u16 = 11_434;

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From this variable.
    Variable(&'static str),
    /// From the name that was asked for.
    Name,
    /// It is built in.
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

/// A model that can be asked, with where each of its settings comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundModel {
    /// Who serves it.
    pub provider: Provider,
    /// The provider's name for it.
    pub model: String,
    /// Where the name comes from.
    pub model_origin: Origin,
    /// Where it is.
    pub base_url: String,
    /// Where the address comes from.
    pub base_url_origin: Origin,
    /// The key, where there is one.
    pub key: Option<Secret>,
    /// The variable that held the key.
    pub key_variable: Option<&'static str>,
    /// Through which proxy it is reached.
    pub proxy: Option<String>,
    /// What is reached without the proxy.
    pub proxy_exceptions: Option<String>,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The offline model, which each assistant brings.
    Offline,
    /// A model of a provider.
    Provider(Box<FoundModel>),
}

/// Why a name stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// No provider has this name.
    #[error("{0} is no provider: openai, groq, anthropic, ollama, compatible, offline")]
    UnknownProvider(String),
    /// The provider is known, and something that it needs is missing.
    #[error("{provider} needs {variable}")]
    Missing {
        /// Which provider.
        provider: Provider,
        /// What is missing.
        variable: &'static str,
    },
    /// A key that no header can carry.
    #[error("the key in {0} holds characters that no key has")]
    Key(&'static str),
    /// The provider has no embeddings.
    #[error("{0} has no embeddings")]
    NoEmbeddings(Provider),
}

/// Variables of a provider, and what is built in.
struct Variables {
    provider: Provider,
    key: Option<&'static str>,
    model: &'static str,
    base_url: &'static str,
    /// The model where none is named.
    default_model: Option<&'static str>,
}

/// In the order in which they are preferred.
const PROVIDERS: [Variables; 5] = [
    Variables {
        provider: Provider::Groq,
        key: Some("GROQ_API_KEY"),
        model: "GROQ_MODEL",
        base_url: "GROQ_BASE_URL",
        default_model: Some("openai/gpt-oss-120b"),
    },
    Variables {
        provider: Provider::OpenAi,
        key: Some("OPENAI_API_KEY"),
        model: "OPENAI_MODEL",
        base_url: "OPENAI_BASE_URL",
        default_model: Some("gpt-5.4-mini"),
    },
    // The same variables at an address that is not OpenAI's own.
    Variables {
        provider: Provider::Compatible,
        key: Some("OPENAI_API_KEY"),
        model: "OPENAI_MODEL",
        base_url: "OPENAI_BASE_URL",
        default_model: None,
    },
    Variables {
        provider: Provider::Anthropic,
        key: Some("ANTHROPIC_API_KEY"),
        model: "ANTHROPIC_MODEL",
        base_url: "ANTHROPIC_BASE_URL",
        default_model: Some("claude-sonnet-5-5"),
    },
    Variables {
        provider: Provider::Ollama,
        key: None,
        model: "OLLAMA_MODEL",
        base_url: "OLLAMA_HOST",
        default_model: Some("llama3.2"),
    },
];

/// Finds the models that the environment gives, in the order in which they are preferred: Groq, OpenAI or what speaks
/// like it, Anthropic, Ollama. What is set and cannot be used is there too, as an error.
pub fn find_models(environment: &dyn Fn(&str) -> Option<String>) -> Vec<Result<FoundModel, SelectionError>> {
    let read = |name: &str| read(environment, name);
    let is_given = |variables: &&Variables| match variables.provider {
        Provider::OpenAi => read("OPENAI_API_KEY").is_some() && !has_other_address(environment),
        Provider::Compatible => has_other_address(environment),
        Provider::Ollama => read(variables.base_url).is_some(),
        _ => variables.key.and_then(read).is_some(),
    };
    PROVIDERS.iter().filter(is_given).map(|variables| found(variables, None, environment)).collect()
}

/// Finds the model of a name, which is one of
/// - `offline`,
/// - `PROVIDER` or `PROVIDER:MODEL`, such as `groq` or `ollama:qwen3`,
/// - another word: that model of the first provider that the environment gives.
///
/// Without a name, the variable `THREADKEEP_MODEL` names it; without that, it is the first model that the environment
/// gives; without any, the offline model.
///
/// # Errors
/// The name or what the environment gives cannot be used, and why.
pub fn select(name: Option<&str>, environment: &dyn Fn(&str) -> Option<String>) -> Result<Selected, SelectionError> {
    let given = name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let (name, origin) = match given {
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
        // It names a model only.
        let first = find_models(environment).into_iter().next();
        let first = first.ok_or_else(|| SelectionError::UnknownProvider(name.clone()))??;
        return Ok(selected(FoundModel { model: name, model_origin: origin, ..first }));
    };
    let model = model.filter(|model| !model.is_empty()).map(|model| (model, origin));
    found(variables_of(provider, environment), model, environment).map(selected)
}

/// Finds the embedding model of a name, `PROVIDER:MODEL`, such as `openai:text-embedding-3-small` or
/// `ollama:nomic-embed-text`. Without a name, the variable `THREADKEEP_EMBEDDER` names it; without that there is none:
/// embeddings send every text to the provider, so nobody gets them unasked.
///
/// # Errors
/// The name or what the environment gives cannot be used, and why.
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
    let found = found(variables_of(provider, environment), Some((model.to_owned(), Origin::Name)), environment)?;
    let http = found.http();
    Ok(Some(EmbedderConfig {
        base_url: found.base_url,
        key: found.key,
        http,
        ..EmbedderConfig::new(found.provider, found.model, None)
    }))
}

impl fmt::Debug for FoundModel {
    /// Leaves out the key and the proxy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("base_url", &shown_address(&self.base_url))
            .finish_non_exhaustive()
    }
}

impl FoundModel {
    /// What is needed to ask it.
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

fn found(
    variables: &Variables,
    model: Option<(String, Origin)>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<FoundModel, SelectionError> {
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
    let is_outside = base_url.starts_with("https:");
    let proxy = proxies.iter().filter(|_| is_outside).find_map(|name| read(environment, name));
    let proxy_exceptions = ["NO_PROXY", "no_proxy"].iter().find_map(|name| read(environment, name));
    Ok(FoundModel {
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

/// `openai` is what speaks like it, where the variables name another address.
fn variables_of(provider: Provider, environment: &dyn Fn(&str) -> Option<String>) -> &'static Variables {
    let provider = match provider {
        Provider::OpenAi if has_other_address(environment) => Provider::Compatible,
        other => other,
    };
    let found = PROVIDERS.iter().find(|variables| variables.provider == provider);
    found.expect("each provider has its variables, a test reads them all")
}

/// The address of Ollama's own variable: a host, with a port and scheme or without. An address to listen on everywhere
/// is reached on this machine.
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
