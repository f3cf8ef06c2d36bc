//! Extracts the lines, stations and kinds of question that a conversation mentions.

use std::sync::Arc;

use threadkeep::context::enrichment::{Enrichment, Extractor, Mention, travel_sentences};
use threadkeep::core::Message;
use threadkeep::dialogue::Utterance;

use crate::routing::{lines_of, stations_of};

/// Extracts mentions from messages of both roles.
#[derive(Debug)]
struct TravelExtractor;

impl Extractor for TravelExtractor {
    fn extract(&self, message: &Message) -> Vec<Mention> {
        mentions(&message.plain_text())
    }
}

/// Returns what a text mentions: `lines` by their agents, `stations` in lower case, and `query_types`.
#[must_use]
pub fn mentions(text: &str) -> Vec<Mention> {
    let utterance = Utterance::new(text);
    let lines = lines_of(&utterance).into_iter().map(|line| Mention::new("lines", line.agent));
    let stations = stations_of(&utterance).into_iter().map(|(name, _)| Mention::new("stations", name.to_lowercase()));
    let has =
        |parts: [&str; 2]| utterance.words().iter().any(|word| parts.iter().any(|part| word.folded.starts_with(part)));
    let status = has(["status", "delay"]).then(|| Mention::new("query_types", "status"));
    let planning = has(["journey", "route"]).then(|| Mention::new("query_types", "planning"));
    lines.chain(stations).chain(status).chain(planning).collect()
}

/// Returns what the model's prompt says about the conversation.
pub(crate) fn enrichment() -> Enrichment {
    Enrichment { extractors: vec![Arc::new(TravelExtractor)], sentences: travel_sentences() }
}

#[cfg(test)]
mod tests {
    use threadkeep::context::enrichment::enrich;

    use super::*;

    fn values(text: &str, kind: &str) -> Vec<String> {
        let found = mentions(text).into_iter().filter(|mention| mention.kind == kind);
        found.map(|mention| mention.value).collect()
    }

    // S0.44, S0.45, S0.46
    #[test]
    fn lines_stations_and_query_types_are_extracted() {
        let text = "CIRCLE line delays from Baker Street? and the bakerloo to oxford circus, best route";
        assert_eq!(values(text, "lines"), ["CIRCLE", "BAKERLOO"]);
        assert_eq!(values(text, "stations"), ["baker street", "oxford circus"]);
        assert_eq!(values(text, "query_types"), ["status", "planning"]);
        assert_eq!(values("Oxford Circus", "lines"), [""; 0]);
        assert_eq!(values("let's circle back on the semicircle", "lines"), [""; 0]);
        assert_eq!(values("from Edgware Road to Edgware", "stations"), ["edgware road", "edgware"]);
    }

    // S0.48
    #[test]
    fn prompts_are_enriched_in_order() {
        let found = mentions("Is the Circle line delayed at Westminster?");
        assert_eq!(
            enrich("Base.", &found, &travel_sentences()),
            "Base.\n\nPrevious conversation mentioned: CIRCLE lines.\n\nUser has asked about: westminster stations.\n\n\
             User is interested in service status information."
        );
        assert_eq!(enrich("Base.", &mentions("hello"), &travel_sentences()), "Base.");
    }
}
