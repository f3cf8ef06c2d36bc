//! Phrase files: sections of example messages with alternatives.
//!
//! ```text
//! # A comment.
//! [route]
//! (how do i|how can i|) get from {station} to {station}
//! ```
//!
//! `(a|b|)` stands for each of its alternatives, which may be empty; `{kind}` for a mention of a kind.

/// The maximum number of messages that a line stands for; further ones are dropped.
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
    #[error("line {line}: no section such as [route] precedes it")]
    NoSection {
        /// The line, from 1.
        line: usize,
    },
    /// A line has an alternative that is not closed.
    #[error("line {line}: unbalanced parentheses or braces")]
    Unbalanced {
        /// The line, from 1.
        line: usize,
    },
}

/// Splits a phrase file into sections. Sections of the same class are joined.
///
/// # Errors
/// A line is outside of a section, or its parentheses are not balanced.
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
        if !(0..=1).contains(&depth) {
            return false;
        }
    }
    depth == 0 && line.matches('{').count() == line.matches('}').count()
}

/// Returns the messages that a line stands for.
#[must_use]
pub fn expand(line: &str) -> Vec<String> {
    let mut messages = vec![String::new()];
    let mut rest = line;
    while let Some((before, inside, after)) = split_at_alternatives(rest) {
        let mut longer = Vec::with_capacity(messages.len() * 2);
        for message in &messages {
            for alternative in inside.split('|') {
                longer.push(format!("{message}{before}{alternative}"));
            }
        }
        longer.truncate(MAX_EXPANSIONS);
        (messages, rest) = (longer, after);
    }
    messages.iter().map(|message| format!("{message}{rest}").split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn split_at_alternatives(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('(')?;
    let (inside, after) = rest.split_once(')')?;
    Some((before, inside, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_expanded() {
        assert_eq!(expand("(how|) to {station}"), ["how to {station}", "to {station}"]);
        assert_eq!(expand("(a|b) (c|d)"), ["a c", "a d", "b c", "b d"]);
        assert_eq!(expand(&"(a|b|c|d) ".repeat(9)).len(), MAX_EXPANSIONS);
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
