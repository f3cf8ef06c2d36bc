//! What earlier answers stood on, so that a follow-up can stand on it again and a new search can avoid it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use threadkeep_core::{Message, Source};

/// The sources of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceMemory {
    /// Kind and id of every source that was cited.
    pub discussed: BTreeSet<(String, String)>,
    /// Sources of earlier answers, those of the newest first, each once.
    pub historical: Vec<Source>,
}

impl SourceMemory {
    /// Takes the sources of a history: all that were discussed, and at most `max_sources` to use again.
    #[must_use]
    pub fn of(history: &[Message], max_sources: usize) -> Self {
        Self { discussed: discussed(history), historical: historical(history, max_sources) }
    }
}

/// Kind and id of every source that a history cites.
#[must_use]
pub fn discussed(history: &[Message]) -> BTreeSet<(String, String)> {
    let sources = history.iter().flat_map(|message| &message.content.sources);
    sources.map(|source| (source.kind.clone(), source.id.clone())).collect()
}

/// The sources of a history, newest message first and within it in its own order, each once, at most `max_sources`.
///
/// Of a source that was cited several times the citation with the best score is given, at the place of the newest.
#[must_use]
pub fn historical(history: &[Message], max_sources: usize) -> Vec<Source> {
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut best: Vec<&Source> = Vec::new();
    for source in history.iter().rev().flat_map(|message| &message.content.sources) {
        let place = *places.entry((&source.kind, &source.id)).or_insert(best.len());
        match best.get_mut(place) {
            None => best.push(source),
            Some(known) if is_better(source, known) => *known = source,
            Some(_) => {}
        }
    }
    best.into_iter().take(max_sources).cloned().collect()
}

/// Whether a citation ranks better: by score where both have one, else a score is better than none.
fn is_better(source: &Source, known: &Source) -> bool {
    match (source.score, known.score) {
        (Some(score), Some(best)) => score > best,
        (score, best) => score.is_some() && best.is_none(),
    }
}
