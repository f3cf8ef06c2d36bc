//! Excerpts of texts around the matches of a search.

use std::ops::Range;

use serde::Serialize;
use threadkeep_core::text::{CachingTermMatcher, TermMatcher};
use unicode_segmentation::UnicodeSegmentation;

/// Approximate length of a snippet, in bytes.
const SNIPPET_BYTES: usize = 200;

/// Approximate length of the text before a snippet's first match, in bytes.
const LEAD_BYTES: usize = 60;

/// An excerpt of text, cut at word boundaries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The text of the excerpt.
    pub text: String,
    /// The byte ranges, in the excerpt, of words that match the query.
    pub matches: Vec<Range<usize>>,
    /// Whether text before the excerpt was cut off.
    pub cut_before: bool,
    /// Whether text after the excerpt was cut off.
    pub cut_after: bool,
}

impl Snippet {
    /// Returns the part of the text with the most matches of a query's terms; the beginning of the text if there are no matches.
    #[must_use]
    pub fn of(text: &str, query: &[String]) -> Self {
        let matcher = TermMatcher::new(&query.iter().map(|term| vec![term.clone()]).collect::<Vec<_>>());
        Self::of_matches(text, &mut matcher.caching())
    }

    /// Like [`Snippet::of`], with a matcher of the query's terms. One matcher for many texts is faster.
    pub(crate) fn of_matches(text: &str, matcher: &mut CachingTermMatcher<'_>) -> Self {
        let matches = find_matches(text, matcher);
        let start = start_before(text, find_densest(&matches));
        let end = end_after(text, start);
        let inside = matches.into_iter().filter(|found| found.start >= start && found.end <= end);
        Self {
            text: text[start..end].to_owned(),
            matches: inside.map(|found| found.start - start..found.end - start).collect(),
            cut_before: start > 0,
            cut_after: end < text.len(),
        }
    }
}

/// The byte ranges of words that match the query.
fn find_matches(text: &str, matcher: &mut CachingTermMatcher<'_>) -> Vec<Range<usize>> {
    let words = text.unicode_word_indices();
    let matching = words.filter(|(_, word)| matcher.is_match(word));
    matching.map(|(start, word)| start..start + word.len()).collect()
}

/// Returns the start of the first match in the snippet that would cover the most matches; 0 if there are no matches.
fn find_densest(matches: &[Range<usize>]) -> usize {
    let length = SNIPPET_BYTES - LEAD_BYTES;
    let mut best = (0, 0);
    let mut end = 0;
    for (first, found) in matches.iter().enumerate() {
        while end < matches.len() && matches[end].end <= found.start + length {
            end += 1;
        }
        let count = end.saturating_sub(first).max(1);
        if count > best.0 {
            best = (count, found.start);
        }
    }
    best.1
}

/// Returns the start of the snippet whose first match starts at `first_match`.
fn start_before(text: &str, first_match: usize) -> usize {
    if first_match <= LEAD_BYTES {
        return 0;
    }
    let lead = text.floor_char_boundary(first_match - LEAD_BYTES);
    // The snippet starts after white space, or anywhere if there is none.
    text[lead..first_match].find(char::is_whitespace).map_or(lead, |space| {
        let after = lead + space;
        after + text[after..].chars().next().map_or(0, char::len_utf8)
    })
}

fn end_after(text: &str, start: usize) -> usize {
    if text.len() - start <= SNIPPET_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(start + SNIPPET_BYTES);
    let space = text[start..end].rfind(char::is_whitespace).filter(|space| *space > LEAD_BYTES);
    space.map_or(end, |space| start + space)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use threadkeep_core::text;

    use super::*;

    fn snippet(text: &str, query: &str) -> Snippet {
        Snippet::of(text, &text::distinct_terms(query))
    }

    #[test]
    fn short_texts_are_not_cut() {
        let found = snippet("Trains to Córdoba, no train back", "train cordoba");
        assert_eq!(found.text, "Trains to Córdoba, no train back");
        let words: Vec<_> = found.matches.iter().map(|range| &found.text[range.clone()]).collect();
        assert_eq!(words, ["Trains", "Córdoba", "train"]);
        assert!(!found.cut_before && !found.cut_after);
    }

    #[test]
    fn long_texts_are_cut_around_most_matches() {
        let filler = "lorem ipsum ".repeat(60);
        let text = format!("delay {filler}the delay of the circle line {filler}");
        let found = snippet(&text, "circle delay");
        assert!(found.cut_before && found.cut_after);
        assert_eq!(found.matches.len(), 2);
        assert!(found.text.contains("the delay of the circle line"), "{}", found.text);
        assert!(!found.text.starts_with(' ') && !found.text.ends_with(' '));
    }

    proptest! {
        #[test]
        fn snippets_are_short_parts_of_the_text(text in "(\\PC{0,40} ?){0,20}", query in "\\PC{0,12}") {
            let found = snippet(&text, &query);
            prop_assert!(text.contains(&found.text));
            prop_assert!(found.text.len() <= SNIPPET_BYTES + 4);
            for range in &found.matches {
                prop_assert!(!found.text[range.clone()].is_empty());
            }
        }
    }
}
