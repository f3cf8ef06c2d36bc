//! Related words: a question about the vet's "phone" is answered by a statement about the vet's "number".

use std::collections::HashMap;
use std::sync::LazyLock;

use threadkeep::core::text::content_terms;

const GROUPS: &str = include_str!("related.txt");

/// The stems of each group, and the indexes of the groups that contain each stem.
struct RelatedGroups {
    groups: Vec<Vec<String>>,
    groups_of: HashMap<String, Vec<usize>>,
}

static RELATED: LazyLock<RelatedGroups> = LazyLock::new(|| {
    let lines = GROUPS.lines().filter(|line| !line.starts_with('#'));
    let groups: Vec<Vec<String>> =
        lines.map(|line| content_terms(line).into_iter().flat_map(|(_, stems)| stems).collect()).collect();
    let mut groups_of: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, group) in groups.iter().enumerate() {
        for stem in group {
            let known = groups_of.entry(stem.clone()).or_default();
            if known.last() != Some(&index) {
                known.push(index);
            }
        }
    }
    RelatedGroups { groups, groups_of }
});

/// Returns the stems of the words that are related to a word, given its stems.
pub(crate) fn related_stems(stems: &[String]) -> impl Iterator<Item = &'static str> {
    let groups = stems.iter().filter_map(|stem| RELATED.groups_of.get(stem)).flatten();
    groups.flat_map(|index| &RELATED.groups[*index]).map(String::as_str)
}

/// Returns the words of all groups.
pub(crate) fn known_words() -> impl Iterator<Item = &'static str> {
    static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        GROUPS.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect()
    });
    WORDS.iter().copied()
}

/// Returns a search query that consists of the stems related to the words of a question.
pub(crate) fn expansion<'a>(words: impl Iterator<Item = &'a [String]>) -> String {
    let mut related: Vec<&str> = words.flat_map(related_stems).collect();
    related.sort_unstable();
    related.dedup();
    related.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_group_are_related() {
        let related: Vec<&str> = related_stems(&["flower".to_owned()]).collect();
        assert!(related.contains(&"florist") && !related.contains(&"dentist"), "{related:?}");
        assert_eq!(related_stems(&["zebra".to_owned()]).count(), 0);
    }
}
