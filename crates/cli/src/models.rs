//! The models that speak and embed, as the settings name them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use threadkeep::models::{EmbeddingModel, PriceTable, ProviderModel, Selected, select, select_embedder};
use threadkeep::{ChatModel, Embedder};

use crate::failure::Failure;
use crate::settings::Settings;

/// The model that speaks; `None` for the assistant's own offline model.
pub(crate) fn speaker(name: Option<&str>, settings: &Settings) -> Result<Option<Arc<dyn ChatModel>>> {
    let selected = select(name, &|name| settings.get(name)).map_err(unusable)?;
    match selected {
        Selected::Offline => Ok(None),
        Selected::Provider(found) => {
            let model = ProviderModel::new(found.config(prices(None, settings)?))
                .with_context(|| format!("the model {} cannot be asked", found.model))?;
            Ok(Some(Arc::new(model)))
        }
    }
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
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        prices.merge(PriceTable::from_json(&text).with_context(|| format!("in {}", file.display()))?);
    }
    Ok(prices)
}

fn unusable(error: threadkeep::models::SelectionError) -> Failure {
    Failure::usage(format!("the model cannot be used: {error}")).hint("docs/models.md lists the variables and names")
}
