//! The sources of a conversation, read from its messages.

use std::collections::{BTreeSet, HashMap};

use threadkeep::{Message, Role, Source};

use crate::clave::ClaveKey;
use crate::intent::PastMessage;

/// The maximum number of historical sources.
pub(crate) const MAX_SOURCES: usize = 15;

/// A source of an earlier answer.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoricalSource {
    /// Its key in the corpus.
    pub key: String,
    /// The source, with its best rank.
    pub source: Source,
}

/// Returns the registros of all tesis that the answers cite.
#[must_use]
pub fn extract_discussed_tesis(history: &[Message]) -> BTreeSet<i64> {
    sources(history).filter_map(registro).collect()
}

/// Returns the distinct sources of the answers, newest first, at most `max_sources`. For a source that was cited several
/// times, the best rank is kept.
#[must_use]
pub fn extract_historical_sources(history: &[Message], max_sources: usize) -> Vec<HistoricalSource> {
    let mut found: Vec<HistoricalSource> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    for message in history.iter().rev().filter(|message| message.content.role == Role::Assistant) {
        for source in &message.content.sources {
            let Some(key) = key(source) else { continue };
            match positions.get(&key) {
                Some(at) => {
                    let known = &mut found[*at].source;
                    if source.score > known.score {
                        *known = source.clone();
                    }
                }
                None => {
                    positions.insert(key.clone(), found.len());
                    found.push(HistoricalSource { key, source: source.clone() });
                }
            }
        }
    }
    found.truncate(max_sources);
    found
}

/// Returns the keys of the distinct sources of the answers, in the order in which these cited them.
pub(crate) fn cited_in_order(history: &[Message]) -> Vec<String> {
    let mut cited: Vec<String> = Vec::new();
    for key in sources(history).filter_map(key) {
        if !cited.contains(&key) {
            cited.push(key);
        }
    }
    cited
}

/// Returns the messages of users and assistants as the classification reads them.
#[must_use]
pub fn past_messages(history: &[Message]) -> Vec<PastMessage> {
    let said = history.iter().filter(|message| matches!(message.content.role, Role::User | Role::Assistant));
    let past = said.map(|message| {
        let own: Vec<&Source> = message.content.sources.iter().filter(|source| key(source).is_some()).collect();
        let clave = |source: &&Source| source.fields.get("clave")?.as_str().map(ClaveKey::of);
        PastMessage {
            is_user: message.content.role == Role::User,
            text: message.plain_text().into_owned(),
            sources: own.iter().map(|source| source.title.clone().unwrap_or_default()).collect(),
            registros: own.iter().filter_map(|source| registro(source)).collect(),
            claves: own.iter().filter_map(clave).collect(),
        }
    });
    past.filter(|message| !message.text.is_empty()).collect()
}

fn sources(history: &[Message]) -> impl Iterator<Item = &Source> {
    history
        .iter()
        .filter(|message| message.content.role == Role::Assistant)
        .flat_map(|message| &message.content.sources)
}

fn registro(source: &Source) -> Option<i64> {
    if source.kind == "tesis" { source.id.parse().ok() } else { None }
}

/// Returns the key of a source in the corpus; `None` if it is not from the corpus.
pub(crate) fn key(source: &Source) -> Option<String> {
    source_key(&source.kind, &source.id)
}

/// Returns the key of a source in the corpus by its kind and id; `None` if it is not from the corpus.
pub(crate) fn source_key(kind: &str, id: &str) -> Option<String> {
    match kind {
        "tesis" => Some(format!("tesis:{id}")),
        "articulo" | "documento" => Some(id.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use threadkeep::core::text;
    use threadkeep::{Content, Map, MessageId, Timestamp};

    use super::*;

    fn source(id: i64, score: f64) -> Source {
        Source {
            kind: "tesis".to_owned(),
            id: id.to_string(),
            title: None,
            score: Some(score),
            distance: None,
            fields: Map::new(),
        }
    }

    fn answer(seq: u64, sources: Vec<Source>) -> Message {
        let content = Content { sources, ..Content::text(Role::Assistant, "Respuesta.") };
        let created_at = Timestamp::from_millis(0).unwrap();
        let id: MessageId = "01890000-0000-7000-8000-000000000001".parse().unwrap();
        Message { seq, id, external_id: None, revision: 0, created_at, content }
    }

    // S3.19, S3.20, S3.23, S3.33
    #[test]
    fn historical_sources_are_recent_and_distinct_with_their_best_rank() {
        assert!(!text::terms("amparo").is_empty());
        let history = [
            answer(2, vec![source(1, 900.0), source(2, 800.0)]),
            answer(4, vec![source(2, 1000.5), source(3, 700.0)]),
            answer(6, vec![source(1, 850.0)]),
        ];
        let found = extract_historical_sources(&history, 15);
        let read: Vec<(&str, Option<f64>)> =
            found.iter().map(|found| (found.source.id.as_str(), found.source.score)).collect();
        assert_eq!(read, [("1", Some(900.0)), ("2", Some(1000.5)), ("3", Some(700.0))]);
        assert_eq!(extract_historical_sources(&history, 2).len(), 2);
        assert_eq!(extract_discussed_tesis(&history), BTreeSet::from([1, 2, 3]));
        let many: Vec<Source> = (1..=40).map(|id| source(id, 1.0)).collect();
        assert_eq!(extract_historical_sources(&[answer(2, many)], MAX_SOURCES).len(), 15);
    }
}
