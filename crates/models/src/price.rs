//! Token prices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use threadkeep_core::TokenDetails;

/// The built-in table.
const BUILT_IN: &str = include_str!("prices.json");

/// Prices by provider and model, in US dollars per million tokens.
///
/// The JSON form is an object of providers, each of which is an object of models: `{"openai": {"gpt-4o-mini": {"input":
/// 0.15, "output": 0.6}}}`. A model name with a date suffix (`gpt-4o-mini-2024-07-18`) has the price of the name without the
/// suffix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable {
    providers: BTreeMap<String, BTreeMap<String, Price>>,
}

/// Prices per million tokens, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens that are read from the provider's cache. Default: the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Input tokens that are written to the provider's cache. Default: the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// The tokens of a call, as counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// All input tokens.
    pub input: u64,
    /// Input tokens that were read from the provider's cache, included in `input`.
    pub cached_input: u64,
    /// Input tokens that were written to the provider's cache, included in `input`.
    pub cache_write: u64,
    /// All output tokens.
    pub output: u64,
    /// Reasoning tokens, included in `output`.
    pub reasoning: u64,
}

impl Tokens {
    /// Adds two counts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    pub(crate) fn details(self) -> TokenDetails {
        TokenDetails { cached_input: self.cached_input, cache_write: self.cache_write, reasoning: self.reasoning }
    }
}

impl PriceTable {
    /// Returns the built-in table. Prices change; use [`PriceTable::merge`] to override them.
    ///
    /// # Panics
    /// Never: the table is compiled in, and a test checks it.
    #[must_use]
    pub fn built_in() -> Self {
        serde_json::from_str(BUILT_IN).expect("the built-in table is valid, as a test checks")
    }

    /// Parses a table.
    ///
    /// # Errors
    /// The text is not a price table, or a price is negative or not finite.
    pub fn from_json(text: &str) -> Result<Self, PriceTableError> {
        let table: Self = serde_json::from_str(text).map_err(|error| PriceTableError::Syntax(error.to_string()))?;
        for (provider, models) in &table.providers {
            for (model, price) in models {
                let rates = [Some(price.input), Some(price.output), price.cached_input, price.cache_write];
                if rates.into_iter().flatten().any(|rate| !(rate >= 0.0 && rate.is_finite())) {
                    return Err(PriceTableError::InvalidPrice(format!("{provider}/{model}")));
                }
            }
        }
        Ok(table)
    }

    /// Replaces the prices of the models that `other` contains.
    pub fn merge(&mut self, other: Self) {
        for (provider, models) in other.providers {
            self.providers.entry(provider).or_default().extend(models);
        }
    }

    /// Returns the providers that have prices.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }

    /// Returns the price of a model, or `None` if the table has no price for it.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str) -> Option<&Price> {
        let models = self.providers.get(provider)?;
        let is_dated = |name: &str| {
            let suffix = model.strip_prefix(name).and_then(|suffix| suffix.strip_prefix('-'));
            suffix.is_some_and(|suffix| {
                suffix.len() >= 8 && suffix.chars().all(|character| character.is_ascii_digit() || character == '-')
            })
        };
        models.get(model).or_else(|| {
            let dated = models.iter().filter(|(name, _)| is_dated(name));
            dated.max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
        })
    }

    /// Returns the cost of a call in US dollars, or `None` if the table has no price for the model.
    #[must_use]
    pub fn cost_usd(&self, provider: &str, model: &str, tokens: Tokens) -> Option<f64> {
        let price = self.find(provider, model)?;
        let uncached_input = tokens.input.saturating_sub(tokens.cached_input).saturating_sub(tokens.cache_write);
        let cost = uncached_input as f64 * price.input
            + tokens.cached_input as f64 * price.cached_input.unwrap_or(price.input)
            + tokens.cache_write as f64 * price.cache_write.unwrap_or(price.input)
            + tokens.output as f64 * price.output;
        Some(cost / 1_000_000.0)
    }
}

/// An error in a price table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceTableError {
    /// The text cannot be parsed.
    #[error("invalid price table: {0}")]
    Syntax(String),
    /// A price is negative or not finite.
    #[error("invalid price for {0}")]
    InvalidPrice(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, output: u64) -> Tokens {
        Tokens { input, output, ..Tokens::default() }
    }

    #[test]
    fn only_known_models_have_a_cost() {
        let table = PriceTable::built_in();
        // S3.35 specifies these prices: $0.00015 per thousand input tokens and $0.0006 per thousand output tokens.
        let cost = table.cost_usd("openai", "gpt-4o-mini", tokens(1_000, 1_000)).unwrap();
        assert!((cost - 0.00075).abs() < 1e-12, "{cost}");
        assert_eq!(table.cost_usd("openai", "gpt-4o-mini-2024-07-18", tokens(1_000, 1_000)), Some(cost));
        assert_eq!(table.cost_usd("openai", "gpt-4o-mini-audio", tokens(1, 1)), None);
        assert_eq!(
            table.cost_usd("anthropic", "claude-opus-5-9", tokens(1, 1)),
            None,
            "a later version is not a date suffix"
        );
        assert_eq!(table.cost_usd("compatible", "gpt-4o-mini", tokens(1, 1)), None);
        assert_eq!(table.cost_usd("ollama", "llama3.2", tokens(1, 1)), None);
    }

    #[test]
    fn cached_tokens_have_separate_prices() {
        let table = PriceTable::from_json(
            r#"{"a": {"m": {"input": 10, "output": 0, "cached_input": 1, "cache_write": 20}, "n": {"input": 10, "output": 0}}}"#,
        )
        .unwrap();
        let tokens = Tokens { input: 1_000_000, cached_input: 500_000, cache_write: 100_000, output: 5, reasoning: 0 };
        assert_eq!(table.cost_usd("a", "m", tokens), Some(4.0 + 0.5 + 2.0));
        assert_eq!(table.cost_usd("a", "n", tokens), Some(10.0));
    }

    #[test]
    fn prices_can_be_overridden() {
        let mut table = PriceTable::built_in();
        let edit =
            r#"{"openai": {"gpt-4o-mini": {"input": 1, "output": 2}}, "mine": {"m": {"input": 0, "output": 0}}}"#;
        table.merge(PriceTable::from_json(edit).unwrap());
        assert_eq!(table.cost_usd("openai", "gpt-4o-mini", tokens(1_000_000, 1_000_000)), Some(3.0));
        assert_eq!(table.cost_usd("mine", "m", tokens(5, 5)), Some(0.0));
        assert!(table.find("openai", "gpt-4o").is_some(), "other prices are unchanged");
        assert_eq!(PriceTable::from_json(&serde_json::to_string(&table).unwrap()).unwrap(), table);
        assert!(matches!(PriceTable::from_json("[]"), Err(PriceTableError::Syntax(_))));
        let negative = PriceTable::from_json(r#"{"a": {"m": {"input": -1, "output": 2}}}"#);
        assert_eq!(negative, Err(PriceTableError::InvalidPrice("a/m".to_owned())));
    }
}
