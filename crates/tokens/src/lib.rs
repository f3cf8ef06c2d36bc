//! Implementations of core's [`TokenCounter`]: OpenAI's encodings, and the choice of a counter by model name.
//!
//! Start with [`counter_for_model`]. The table of an encoding takes a few megabytes of memory and is loaded on first
//! use ([`Cl100k::is_loaded`]). [`CachingCounter`] caches counts. This crate does not download tables: for a model
//! without a built-in table, it uses [`ApproximateCounter`].
#![warn(missing_docs)]

mod caching;
mod piece_cache;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use threadkeep_core::{TokenCount, TokenCounter};

pub use caching::CachingCounter;
use piece_cache::PieceCache;
pub use threadkeep_core::ApproximateCounter;

/// Counts tokens with `cl100k_base`: GPT-4, GPT-3.5 Turbo, `text-embedding-3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cl100k;

/// Counts tokens with `o200k_base`: GPT-4o, GPT-4.1, GPT-5, the o series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct O200k;

thread_local! {
    static CL100K_CACHE: PieceCache = const { PieceCache::new() };
    static O200K_CACHE: PieceCache = const { PieceCache::new() };
}

/// Whether each table was used. The first use loads it.
static IS_LOADED: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

impl Cl100k {
    /// Whether the table is in memory. The first text that any thread counts with it loads the table.
    #[must_use]
    pub fn is_loaded() -> bool {
        IS_LOADED[0].load(Ordering::Relaxed)
    }
}

impl O200k {
    /// Whether the table is in memory. The first text that any thread counts with it loads the table.
    #[must_use]
    pub fn is_loaded() -> bool {
        IS_LOADED[1].load(Ordering::Relaxed)
    }
}

impl TokenCounter for Cl100k {
    fn name(&self) -> &'static str {
        "cl100k"
    }

    fn count(&self, text: &str) -> TokenCount {
        IS_LOADED[0].store(true, Ordering::Relaxed);
        TokenCount(CL100K_CACHE.with(|cache| cache.count(bpe_openai::cl100k_base(), text)) as u64)
    }
}

impl TokenCounter for O200k {
    fn name(&self) -> &'static str {
        "o200k"
    }

    fn count(&self, text: &str) -> TokenCount {
        IS_LOADED[1].store(true, Ordering::Relaxed);
        TokenCount(O200K_CACHE.with(|cache| cache.count(bpe_openai::o200k_base(), text)) as u64)
    }
}

/// Prefixes of model names and their tables. The first match is used.
const MODELS: &[(&str, Table)] = &[
    ("gpt-4o", Table::O200k),
    ("gpt-4.1", Table::O200k),
    ("gpt-4.5", Table::O200k),
    ("gpt-4", Table::Cl100k),
    ("gpt-3.5", Table::Cl100k),
    ("gpt-35", Table::Cl100k),
    ("gpt-5", Table::O200k),
    ("gpt-oss", Table::O200k),
    ("chatgpt-4o", Table::O200k),
    ("o1", Table::O200k),
    ("o3", Table::O200k),
    ("o4", Table::O200k),
    ("text-embedding-3", Table::Cl100k),
    ("text-embedding-ada-002", Table::Cl100k),
];

#[derive(Clone, Copy)]
enum Table {
    Cl100k,
    O200k,
}

/// Finds a counter by name: `cl100k`, `o200k` (with or without `_base`) or `approximate`.
///
/// ```
/// assert_eq!(threadkeep_tokens::counter_by_name("o200k_base").unwrap().name(), "o200k");
/// assert!(threadkeep_tokens::counter_by_name("p50k").is_none());
/// ```
#[must_use]
pub fn counter_by_name(name: &str) -> Option<Arc<dyn TokenCounter>> {
    match name {
        "cl100k" | "cl100k_base" => Some(Arc::new(Cl100k)),
        "o200k" | "o200k_base" => Some(Arc::new(O200k)),
        "approximate" => Some(Arc::new(ApproximateCounter)),
        _ => None,
    }
}

/// Returns the counter for a model name, with or without a provider prefix (`openai/gpt-4o-mini`). Returns
/// [`ApproximateCounter`] for an unknown model.
///
/// ```
/// assert_eq!(threadkeep_tokens::counter_for_model("gpt-4o-mini").name(), "o200k");
/// assert_eq!(threadkeep_tokens::counter_for_model("llama-3.3-70b-versatile").name(), "approximate");
/// ```
#[must_use]
pub fn counter_for_model(model: &str) -> Arc<dyn TokenCounter> {
    let model = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let table = MODELS.iter().find(|(prefix, _)| has_prefix(&model, prefix)).map(|(_, table)| *table);
    match table {
        Some(Table::Cl100k) => Arc::new(Cl100k),
        Some(Table::O200k) => Arc::new(O200k),
        None => Arc::new(ApproximateCounter),
    }
}

/// Whether a name starts with a prefix that ends at a word boundary: `o1-mini` starts with `o1`, but `o100` does not.
fn has_prefix(model: &str, prefix: &str) -> bool {
    let rest = model.strip_prefix(prefix);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str =
        "The next northbound train leaves Baker Street in 4 minutes; the Circle line is part suspended.";
    const SPANISH: &str = "¿Qué es el amparo directo y cuándo procede contra sentencias definitivas?";

    // The expected counts come from OpenAI's own tokenizer.
    #[test]
    fn counts_match_the_reference_tokenizer() {
        for (text, cl100k, o200k) in [("", 0, 0), ("hello world", 2, 2), ("tiktoken is great!", 6, 6)] {
            assert_eq!((Cl100k.count(text), O200k.count(text)), (TokenCount(cl100k), TokenCount(o200k)), "{text:?}");
        }
    }

    #[test]
    fn approximate_counts_are_never_too_low() {
        for text in [ENGLISH, SPANISH, "{\"name\":\"nginx\",\"ready\":\"2/2\"}", "東京は日本の首都です。", "👩‍👩‍👧‍👦👍🏽"]
        {
            let (exact, approximate) = (O200k.count(text).0, ApproximateCounter.count(text).0);
            assert!(approximate >= exact && approximate <= exact * 3, "{text:?}: {approximate} for {exact}");
        }
    }

    #[test]
    fn repetitive_texts_are_counted() {
        for text in ["a".repeat(300_000), " ".repeat(300_000), "\u{301}".repeat(100_000), "👍🏽".repeat(50_000)] {
            assert!(Cl100k.count(&text) > TokenCount::ZERO);
            assert!(O200k.count(&text) > TokenCount::ZERO);
        }
    }

    #[test]
    fn counters_are_chosen_by_model_name() {
        let cases = [
            ("gpt-4", "cl100k"),
            ("gpt-4-turbo", "cl100k"),
            ("openai/gpt-4o-mini", "o200k"),
            ("GPT-4.1-nano", "o200k"),
            ("gpt-5.2", "o200k"),
            ("o3-mini", "o200k"),
            ("o100", "approximate"),
            ("gpt-3.5-turbo", "cl100k"),
            ("claude-sonnet-4-5", "approximate"),
            ("", "approximate"),
        ];
        for (model, counter) in cases {
            assert_eq!(counter_for_model(model).name(), counter, "{model}");
        }
    }
}
