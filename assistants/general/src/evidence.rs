//! The order of what was looked up: what answers the question comes first, so that an answer cites from [1] on.

use threadkeep::agent::Excerpt;
use threadkeep::models::{Passage, is_question};

use crate::offline::quoting::{SAID_BY, SAID_BY_ASSISTANT};

/// Puts the excerpts that answer a question first, best first, and leaves out what says the same as one before it.
pub(crate) fn best_first(question: &str, excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let excerpts = without_repetitions(excerpts);
    let passages: Vec<Passage> = excerpts
        .iter()
        .enumerate()
        .filter(|(_, excerpt)| is_quotable(&excerpt.heading, &excerpt.text))
        .map(|(place, excerpt)| Passage { origin: place.to_string(), text: excerpt.text.trim().to_owned() })
        // Between equals the last wins: what was found first shall.
        .rev()
        .collect();
    let best = Passage::best(question, &passages);
    let best: Vec<usize> = best.into_iter().filter_map(|passage| passage.origin.parse().ok()).collect();
    let rest = (0..excerpts.len()).filter(|place| !best.contains(place));
    let order: Vec<usize> = best.iter().copied().chain(rest).collect();
    let mut excerpts: Vec<Option<Excerpt>> = excerpts.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| excerpts[place].take()).collect()
}

/// Whether an excerpt can answer a question: neither a question itself nor something the assistant said.
pub(crate) fn is_quotable(heading: &str, text: &str) -> bool {
    let is_said = heading.starts_with(SAID_BY);
    !heading.starts_with(SAID_BY_ASSISTANT) && (!is_said || !is_question(text))
}

/// One speaker who says the same sentence twice is one piece of evidence. Documents are kept apart.
fn without_repetitions(excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let mut kept: Vec<Excerpt> = Vec::with_capacity(excerpts.len());
    for excerpt in excerpts {
        let repeats = |known: &Excerpt| known.text.trim() == excerpt.text.trim() && origin(known) == origin(&excerpt);
        if !kept.iter().any(repeats) {
            kept.push(excerpt);
        }
    }
    kept
}

/// Who said it, or where it stands. The day is left out.
fn origin(excerpt: &Excerpt) -> &str {
    match excerpt.heading.strip_prefix(SAID_BY).and_then(|said| said.rsplit_once(" on ")) {
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
    fn what_answers_comes_first_and_once() {
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
    fn two_documents_that_say_the_same_are_both_kept() {
        let found = order("When is it open?", &[("a.md", "It is open at nine."), ("b.md", "It is open at nine.")]);
        assert_eq!(found, ["a.md: It is open at nine.", "b.md: It is open at nine."]);
    }
}
