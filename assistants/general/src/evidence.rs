//! Ranks excerpts by how well they answer the question, so that citations start from [1].

use threadkeep::agent::Excerpt;
use threadkeep::dialogue::{Passage, is_question};

use crate::offline::quoting::{SAID_BY, SAID_BY_ASSISTANT};

/// Sorts the excerpts that answer a question first, best first, and removes repetitions.
pub(crate) fn best_first(question: &str, excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let excerpts = without_repetitions(excerpts);
    let passages: Vec<Passage> = excerpts
        .iter()
        .enumerate()
        .filter(|(_, excerpt)| is_quotable(&excerpt.heading, &excerpt.text))
        .map(|(index, excerpt)| Passage { origin: index.to_string(), text: excerpt.text.trim().to_owned() })
        // The last of equal passages wins, so the order is reversed to prefer the first one.
        .rev()
        .collect();
    let best = Passage::best(question, &passages);
    let best: Vec<usize> = best.into_iter().filter_map(|passage| passage.origin.parse().ok()).collect();
    let rest = (0..excerpts.len()).filter(|index| !best.contains(index));
    let order: Vec<usize> = best.iter().copied().chain(rest).collect();
    let mut excerpts: Vec<Option<Excerpt>> = excerpts.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| excerpts[index].take()).collect()
}

/// Whether an excerpt can answer a question. Questions and messages of the assistant cannot.
pub(crate) fn is_quotable(heading: &str, text: &str) -> bool {
    let is_message = heading.starts_with(SAID_BY);
    !heading.starts_with(SAID_BY_ASSISTANT) && (!is_message || !is_question(text))
}

/// Removes repeated messages of the same author. Equal passages of different documents are kept.
fn without_repetitions(excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let mut unique: Vec<Excerpt> = Vec::with_capacity(excerpts.len());
    for excerpt in excerpts {
        let repeats = |known: &Excerpt| known.text.trim() == excerpt.text.trim() && origin(known) == origin(&excerpt);
        if !unique.iter().any(repeats) {
            unique.push(excerpt);
        }
    }
    unique
}

/// Returns the author of a message without the day, or the location of a passage.
fn origin(excerpt: &Excerpt) -> &str {
    match excerpt.heading.strip_prefix(SAID_BY).and_then(|heading| heading.rsplit_once(" on ")) {
        Some((speaker, _day)) => speaker,
        None => &excerpt.heading,
    }
}

#[cfg(test)]
mod tests {
    use threadkeep::Source;

    use super::*;

    fn excerpt(heading: &str, text: &str) -> Excerpt {
        let source = Source {
            kind: "test".to_owned(),
            id: text.to_owned(),
            title: None,
            score: None,
            distance: None,
            fields: threadkeep::Map::new(),
        };
        Excerpt { heading: heading.to_owned(), text: text.to_owned(), source }
    }

    fn order(question: &str, excerpts: &[(&str, &str)]) -> Vec<String> {
        let excerpts = excerpts.iter().map(|(heading, text)| excerpt(heading, text)).collect();
        best_first(question, excerpts).into_iter().map(|one| format!("{}: {}", one.heading, one.text)).collect()
    }

    #[test]
    fn answers_come_first_without_repetitions() {
        let found = order(
            "What is Mila allergic to?",
            &[
                ("guide.md", "Tents are cleaned with water."),
                ("said by the user on 2026-06-20", "What is Mila allergic to?"),
                ("said by the assistant on 2026-06-20", "You said: Mila is allergic to nuts."),
                ("said by the user on 2026-06-20", "Mila is allergic to nuts."),
                ("said by the user on 2026-05-03", "Mila is allergic to nuts. "),
                ("said by Sam on 2026-05-03", "Mila is allergic to nuts."),
            ],
        );
        assert_eq!(
            found,
            [
                "said by the user on 2026-06-20: Mila is allergic to nuts.",
                "said by Sam on 2026-05-03: Mila is allergic to nuts.",
                "guide.md: Tents are cleaned with water.",
                "said by the user on 2026-06-20: What is Mila allergic to?",
                "said by the assistant on 2026-06-20: You said: Mila is allergic to nuts.",
            ]
        );
    }

    #[test]
    fn equal_passages_of_different_documents_are_kept() {
        let found = order("When is it open?", &[("a.md", "It is open at nine."), ("b.md", "It is open at nine.")]);
        assert_eq!(found, ["a.md: It is open at nine.", "b.md: It is open at nine."]);
    }
}
