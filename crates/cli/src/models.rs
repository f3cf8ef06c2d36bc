//! The models that speak and embed, as the settings name them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use threadkeep::models::{EmbeddingModel, PriceTable, Provider, ProviderModel, Selected, select, select_embedder};
use threadkeep::{ChatModel, Embedder};
use threadkeep_server::is_local_token;

use crate::failure::{Failure, sentence};
use crate::output::printable_line;
use crate::settings::Settings;

/// Bytes of a file of prices.
const PRICES_BYTES: u64 = 1024 * 1024;

/// The model that speaks; `None` for the assistant's own offline model.
pub(crate) fn speaker(name: Option<&str>, settings: &Settings) -> Result<Option<Arc<dyn ChatModel>>> {
    let selected = select(name, &environment(name, settings)).map_err(unusable)?;
    match selected {
        Selected::Offline => Ok(None),
        Selected::Provider(found) => {
            let model = ProviderModel::new(found.config(prices(None, settings)?))
                .with_context(|| format!("the model {} cannot be asked", found.model))?;
            Ok(Some(Arc::new(model)))
        }
    }
}

/// What models are found by. Unless a model is named, the address and the token of a Threadkeep server, which `serve` has
/// people paste for its clients, are no provider of models: with them a server would ask itself.
pub(crate) fn environment(name: Option<&str>, settings: &Settings) -> impl Fn(&str) -> Option<String> {
    let is_named = name.is_some() || settings.get("THREADKEEP_MODEL").is_some();
    let is_token = |key: String| is_local_token(&key) || settings.get("THREADKEEP_TOKEN") == Some(key);
    let is_own = !is_named && settings.get("OPENAI_API_KEY").is_some_and(is_token);
    move |variable| settings.get(variable).filter(|_| !(is_own && variable.starts_with("OPENAI_")))
}

/// The embedder, where one is named.
pub(crate) fn embedder(settings: &Settings) -> Result<Option<Arc<dyn Embedder>>> {
    let Some(config) = select_embedder(None, &|name| settings.get(name)).map_err(unusable)? else { return Ok(None) };
    let model = EmbeddingModel::new(config).context("the embedding model cannot be asked")?;
    Ok(Some(Arc::new(model)))
}

/// The built-in prices, with those of a file over them: the one that is given, else that of the settings.
pub(crate) fn prices(file: Option<&Path>, settings: &Settings) -> Result<PriceTable> {
    let mut prices = PriceTable::built_in();
    let file = file.map(Path::to_owned).or_else(|| settings.get("THREADKEEP_PRICES").map(PathBuf::from));
    if let Some(file) = file {
        prices.merge(read_prices(&file).map_err(|error| {
            let failure = Failure::yours(format!("the prices in {}: {}", file.display(), sentence(&error)));
            failure.hint("docs/models.md shows what stands in such a file; THREADKEEP_PRICES and --prices name it")
        })?);
    }
    Ok(prices)
}

fn read_prices(file: &Path) -> Result<PriceTable> {
    if std::fs::metadata(file)?.len() > PRICES_BYTES {
        bail!("more than {PRICES_BYTES} bytes");
    }
    let table = PriceTable::from_json(&std::fs::read_to_string(file)?)?;
    // Prices of a provider that nobody asks would be passed over in silence.
    let known: Vec<&str> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
    if let Some(unknown) = table.providers().find(|name| !known.contains(name)) {
        bail!("`{}` is no provider; there are {}", printable_line(unknown), known.join(", "));
    }
    Ok(table)
}

fn unusable(error: threadkeep::models::SelectionError) -> Failure {
    Failure::usage(format!("the model cannot be used: {error}")).hint("docs/models.md lists the variables and names")
}
