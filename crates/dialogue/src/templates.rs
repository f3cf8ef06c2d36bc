//! Phrase files: sections of example messages with alternatives.
//!
//! ```text
//! # A comment.
//! [route]
//! (how do i|how can i|) get from {station} to {station}
//! ```
//!
//! A line with `(a|b|)` is expanded to each alternative, which may be empty. `{kind}` stands for a mention of a kind.

/// The maximum depth of groups within groups.
const MAX_DEPTH: i32 = 4;
/// The maximum number of messages that a line is expanded to. If there are more, every n-th is kept.
const MAX_EXPANSIONS: usize = 64;

/// A section of a phrase file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The name of the class.
    pub class: &'a str,
    /// The lines.
    pub lines: Vec<&'a str>,
}

/// An error in a phrase file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// A line precedes the first section.
    #[error("line {line}: this entry is outside a section; put it below a header such as [route]")]
    NoSection {
        /// The 1-based line number.
        line: usize,
    },
    /// A line has unbalanced parentheses or braces.
    #[error("line {line}: unbalanced parentheses or braces")]
    Unbalanced {
        /// The 1-based line number.
        line: usize,
    },
}

/// Splits a phrase file into sections. Sections of the same class are joined.
///
/// # Errors
/// A line is outside a section, or its parentheses or braces are not balanced.
pub fn sections(text: &str) -> Result<Vec<Section<'_>>, PhraseError> {
    let mut found: Vec<Section<'_>> = Vec::new();
    let mut current = None;
    for (number, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(class) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let known = found.iter().position(|section| section.class == class);
            current = Some(known.unwrap_or_else(|| {
                found.push(Section { class, lines: Vec::new() });
                found.len() - 1
            }));
            continue;
        }
        let Some(at) = current else { return Err(PhraseError::NoSection { line: number }) };
        if !is_balanced(line) {
            return Err(PhraseError::Unbalanced { line: number });
        }
        found[at].lines.push(line);
    }
    Ok(found)
}

fn is_balanced(line: &str) -> bool {
    let mut depth = 0_i32;
    for character in line.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if !(0..=MAX_DEPTH).contains(&depth) {
            return false;
        }
    }
    depth == 0 && line.matches('{').count() == line.matches('}').count()
}

/// Returns the messages that a line is expanded to.
#[must_use]
pub fn expand(line: &str) -> Vec<String> {
    let messages = expand_part(line).into_iter();
    messages.map(|message| message.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn expand_part(line: &str) -> Vec<String> {
    let mut messages = vec![String::new()];
    let mut rest = line;
    while let Some((before, inside, after)) = split_at_alternatives(rest) {
        let alternatives: Vec<String> = split_alternatives(inside).into_iter().flat_map(expand_part).collect();
        let mut longer = Vec::with_capacity(messages.len() * alternatives.len());
        for message in &messages {
            longer.extend(alternatives.iter().map(|alternative| format!("{message}{before}{alternative}")));
        }
        // If there are too many, keeps every n-th. The step shares no factor with common group sizes, so that the kept
        // messages contain every alternative.
        let mut step = longer.len().div_ceil(MAX_EXPANSIONS);
        while step > 1 && [2, 3, 5].iter().any(|factor| step % factor == 0) {
            step += 1;
        }
        (messages, rest) = (longer.into_iter().step_by(step).collect(), after);
    }
    messages.into_iter().map(|message| format!("{message}{rest}")).collect()
}

/// Returns the text before the first group, the group without its parentheses, and the text after it.
fn split_at_alternatives(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('(')?;
    let mut depth = 0;
    let end = text[start..].char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(start + at)
    })?;
    Some((&text[..start], &text[start + 1..end], &text[end + 1..]))
}

/// Splits a group at the bars that are not within an inner group.
fn split_alternatives(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_expanded() {
        assert_eq!(expand("(how|) to {station}"), ["how to {station}", "to {station}"]);
        assert_eq!(expand("(a|b) (c|d)"), ["a c", "a d", "b c", "b d"]);
        assert_eq!(expand("(a (b|c)|) d"), ["a b d", "a c d", "d"]);
        assert!(expand(&"(a|b|c|d) ".repeat(9)).len() <= MAX_EXPANSIONS);
    }

    #[test]
    fn files_are_split_into_sections() {
        let text = "# hello\n[one]\na (b|c)\n\n[two]\nd\n[one]\ne\n";
        let found = sections(text).unwrap();
        let expected =
            [Section { class: "one", lines: vec!["a (b|c)", "e"] }, Section { class: "two", lines: vec!["d"] }];
        assert_eq!(found, expected);
        assert_eq!(sections("a\n"), Err(PhraseError::NoSection { line: 1 }));
        assert_eq!(sections("[x]\na (b\n"), Err(PhraseError::Unbalanced { line: 2 }));
    }
}
