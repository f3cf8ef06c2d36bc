//! Parses statement ids in text: `S2.38` and ranges `S0.09–S0.15`. A comment may contain any number of them.

use std::fmt;

/// The id of a statement, such as S2.38.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) group: u8,
    pub(super) number: u8,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}.{:02}", self.group, self.number)
    }
}

/// One id, or an inclusive range of ids in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdRange {
    first: Id,
    last: Id,
}

impl IdRange {
    pub(super) fn covers(&self, id: Id) -> bool {
        (self.first..=self.last).contains(&id)
    }

    /// Returns the written ids: a single id, or both ends of a range.
    pub(super) fn ends(&self) -> impl Iterator<Item = Id> {
        let last = (self.first != self.last).then_some(self.last);
        std::iter::once(self.first).chain(last)
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}–{}", self.first, self.last) }
    }
}

/// Returns the ids and ranges in the comment on a line of Rust; empty if there is no comment.
pub(super) fn in_comment(line: &str) -> Vec<IdRange> {
    let Some((_, comment)) = line.split_once("//") else {
        return Vec::new();
    };
    let ids = ids_in(comment);
    let mut ranges: Vec<IdRange> = Vec::new();
    let mut end_of_previous = None;
    for (start, id) in ids {
        let joined = end_of_previous.is_some_and(|end| is_dash(&comment[end..start]));
        match ranges.last_mut() {
            Some(range) if joined && range.first.group == id.group && range.first < id => range.last = id,
            _ => ranges.push(IdRange { first: id, last: id }),
        }
        end_of_previous = Some(start + ID_LENGTH);
    }
    ranges
}

const ID_LENGTH: usize = "S0.00".len();

/// Returns all ids in the text with their byte offsets.
pub(super) fn ids_in(text: &str) -> Vec<(usize, Id)> {
    text.match_indices('S').filter_map(|(start, _)| Some((start, id_at(text, start)?))).collect()
}

fn id_at(text: &str, start: usize) -> Option<Id> {
    let extends_id = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
    if text[..start].chars().next_back().is_some_and(extends_id) {
        return None;
    }
    let &[b'S', group, b'.', tens, ones] = text.as_bytes().get(start..start + ID_LENGTH)? else {
        return None;
    };
    let digits = [group, tens, ones];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let following = text[start + ID_LENGTH..].chars().next();
    if following.is_some_and(|character| character.is_alphanumeric() || character == '_') {
        return None;
    }
    let [group, tens, ones] = digits.map(|digit| digit - b'0');
    Some(Id { group, number: tens * 10 + ones })
}

fn is_dash(between: &str) -> bool {
    matches!(between.trim(), "-" | "–" | "—" | "to")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Vec<String> {
        in_comment(line).iter().map(IdRange::to_string).collect()
    }

    #[test]
    fn parses_single_ids_and_lists() {
        assert_eq!(parsed("    // S2.38"), ["S2.38"]);
        assert_eq!(parsed("/// S0.01, S0.02 and S4.53: what it proves."), ["S0.01", "S0.02", "S4.53"]);
        assert_eq!(parsed("assert!(a); // S1.05/S1.06 (S3.07)"), ["S1.05", "S1.06", "S3.07"]);
    }

    #[test]
    fn parses_ranges_with_either_dash() {
        assert_eq!(parsed("// S0.09–S0.15"), ["S0.09–S0.15"]);
        assert_eq!(parsed("// S0.09-S0.15, S1.01"), ["S0.09–S0.15", "S1.01"]);
        assert_eq!(parsed("// S0.09 – S0.15"), ["S0.09–S0.15"]);
    }

    #[test]
    fn a_range_stays_in_its_group_and_runs_forward() {
        assert_eq!(parsed("// S0.09–S1.15"), ["S0.09", "S1.15"]);
        assert_eq!(parsed("// S0.15–S0.09"), ["S0.15", "S0.09"]);
    }

    #[test]
    fn a_range_covers_both_ends_and_the_ids_between() {
        let range = in_comment("// S0.09–S0.11")[0];
        let covered = (8..=12).filter(|&number| range.covers(Id { group: 0, number }));
        assert_eq!(covered.collect::<Vec<_>>(), [9, 10, 11]);
        assert!(!range.covers(Id { group: 1, number: 10 }));
    }

    #[test]
    fn other_text_is_not_an_id() {
        assert_eq!(parsed("let id = \"S2.38\";"), [""; 0]);
        assert_eq!(parsed("// S2.3, S2.380, XS2.38, 1.S2.38, S2.38a, S2-38, S2"), [""; 0]);
        assert_eq!(parsed("// año S… S2.3é S"), [""; 0]);
    }
}
