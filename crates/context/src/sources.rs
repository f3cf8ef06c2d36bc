//! Collects the sources that earlier answers cited, so that follow-ups can cite them again and new searches can avoid them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use threadkeep_core::{Message, Source};

/// The sources of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConversationSources {
    /// The kind and id of every cited source.
    pub discussed: BTreeSet<(String, String)>,
    /// The sources of earlier answers without duplicates, newest answer first.
    pub historical: Vec<Source>,
}

impl ConversationSources {
    /// Collects the sources of a history: all sources in `discussed`, at most `max_sources` in `historical`.
    #[must_use]
    pub fn of(history: &[Message], max_sources: usize) -> Self {
        Self { discussed: discussed(history), historical: historical(history, max_sources) }
    }
}

/// Returns the kind and id of every source that a history cites.
#[must_use]
pub fn discussed(history: &[Message]) -> BTreeSet<(String, String)> {
    let sources = history.iter().flat_map(|message| &message.content.sources);
    sources.map(|source| (source.kind.clone(), source.id.clone())).collect()
}

/// Returns at most `max_sources` sources of a history without duplicates, newest message first. The sources of a message
/// are in the message's order.
///
/// A source that was cited several times is placed where it was cited last, as the citation with the best score.
#[must_use]
pub fn historical(history: &[Message], max_sources: usize) -> Vec<Source> {
    let mut indices: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut best: Vec<&Source> = Vec::new();
    for source in history.iter().rev().flat_map(|message| &message.content.sources) {
        let index = *indices.entry((&source.kind, &source.id)).or_insert(best.len());
        match best.get_mut(index) {
            None => best.push(source),
            Some(known) if is_better(source, known) => *known = source,
            Some(_) => {}
        }
    }
    best.into_iter().take(max_sources).cloned().collect()
}

/// Whether a citation ranks better than a known one: by score; a citation with a score is better than one without.
fn is_better(source: &Source, known: &Source) -> bool {
    match (source.score, known.score) {
        (Some(score), Some(best)) => score > best,
        (score, best) => score.is_some() && best.is_none(),
    }
}
