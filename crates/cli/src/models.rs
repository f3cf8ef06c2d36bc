//! Creates the chat and embedding models that the settings select.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use threadkeep::models::{EmbeddingModel, PriceTable, Provider, ProviderModel, Selected, select, select_embedder};
use threadkeep::{ChatModel, Embedder};
use threadkeep_server::is_local_token;

use crate::failure::{Failure, sentence};
use crate::output::printable_line;
use crate::settings::Settings;

/// The maximum size of a price file.
const PRICES_BYTES: u64 = 1024 * 1024;

/// Returns the selected chat model, or `None` for the assistant's offline model.
pub(crate) fn chat_model(name: Option<&str>, settings: &Settings) -> Result<Option<Arc<dyn ChatModel>>> {
    let selected = select(name, &environment(name, settings)).map_err(unusable)?;
    match selected {
        Selected::Offline => Ok(None),
        Selected::Provider(found) => {
            let model = ProviderModel::new(found.config(prices(None, settings)?))
                .with_context(|| format!("cannot use the model {}", found.model))?;
            Ok(Some(Arc::new(model)))
        }
    }
}

/// Returns a lookup of the variables that configure models. Unless a model is named, the lookup omits the URL and token
/// that `serve` prints for its clients. Otherwise a server would use itself as its provider.
pub(crate) fn environment(name: Option<&str>, settings: &Settings) -> impl Fn(&str) -> Option<String> {
    let is_named = name.is_some() || settings.get("THREADKEEP_MODEL").is_some();
    let is_token = |key: String| is_local_token(&key) || settings.get("THREADKEEP_TOKEN") == Some(key);
    let is_own_server = !is_named && settings.get("OPENAI_API_KEY").is_some_and(is_token);
    move |variable| settings.get(variable).filter(|_| !(is_own_server && variable.starts_with("OPENAI_")))
}

/// Returns the embedder, if the settings select one.
pub(crate) fn embedder(settings: &Settings) -> Result<Option<Arc<dyn Embedder>>> {
    let Some(config) = select_embedder(None, &|name| settings.get(name)).map_err(unusable)? else { return Ok(None) };
    let model = EmbeddingModel::new(config).context("cannot use the embedding model")?;
    Ok(Some(Arc::new(model)))
}

/// Returns the built-in prices with the overrides in `file`, or else in the file that the settings name.
pub(crate) fn prices(file: Option<&Path>, settings: &Settings) -> Result<PriceTable> {
    let mut prices = PriceTable::built_in();
    let file = file.map(Path::to_owned).or_else(|| settings.get("THREADKEEP_PRICES").map(PathBuf::from));
    if let Some(file) = file {
        prices.merge(read_prices(&file).map_err(|error| {
            let failure =
                Failure::user_error(format!("cannot read the prices in {}: {}", file.display(), sentence(&error)));
            failure.hint("docs/models.md describes the format; set the file with THREADKEEP_PRICES or --prices")
        })?);
    }
    Ok(prices)
}

fn read_prices(file: &Path) -> Result<PriceTable> {
    if std::fs::metadata(file)?.len() > PRICES_BYTES {
        bail!("larger than {PRICES_BYTES} bytes");
    }
    let table = PriceTable::from_json(&std::fs::read_to_string(file)?)?;
    // Otherwise, prices of a misspelt provider would be ignored silently.
    let known: Vec<&str> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
    if let Some(unknown) = table.providers().find(|name| !known.contains(name)) {
        bail!("unknown provider `{}`; expected one of {}", printable_line(unknown), known.join(", "));
    }
    Ok(table)
}

fn unusable(error: threadkeep::models::SelectionError) -> Failure {
    Failure::usage(format!("the model cannot be used: {error}"))
        .hint("docs/models.md lists the variables and model names")
}
