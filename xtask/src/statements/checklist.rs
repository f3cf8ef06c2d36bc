//! The checklist: a Markdown file with one heading per group and statements of the form `S1.02 [I] text`.

use std::collections::BTreeMap;

use super::ids::{Id, ids_in};

const MARKS: [&str; 5] = [" [I]", " [D]", " [P]", " [L]", " [X]"];

/// The statements by group, in the order of the file.
#[derive(Debug)]
pub(super) struct Checklist {
    /// The heading of each group, by number.
    pub(super) headings: BTreeMap<u8, String>,
    statements: Vec<Statement>,
}

/// A statement, with its text without the mark.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) id: Id,
    pub(super) text: String,
}

impl Checklist {
    pub(super) fn parse(text: &str) -> Self {
        let mut checklist = Self { headings: BTreeMap::new(), statements: Vec::new() };
        for line in text.lines() {
            checklist.statements.extend(statements_in(line));
            if let Some((group, heading)) = heading_in(line) {
                checklist.headings.insert(group, heading);
            }
        }
        for statement in &checklist.statements {
            let group = statement.id.group;
            checklist.headings.entry(group).or_insert_with(|| format!("S{group}"));
        }
        checklist
    }

    pub(super) fn statements_of(&self, group: u8) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(move |statement| statement.id.group == group)
    }

    pub(super) fn contains(&self, id: Id) -> bool {
        self.statements.iter().any(|statement| statement.id == id)
    }
}

fn heading_in(line: &str) -> Option<(u8, String)> {
    let heading = line.strip_prefix("## ")?;
    let group = heading.strip_prefix('S')?.split_once(' ')?.0;
    Some((group.parse().ok()?, heading.to_owned()))
}

/// Returns the statements of a line. Two statements that share a mark are written `S2.21 [I] … / S2.22 …`. Any other id
/// without a mark is a reference.
fn statements_in(line: &str) -> Vec<Statement> {
    let ids = ids_in(line);
    let starts: Vec<_> = ids.into_iter().filter_map(|(at, id)| Some((at, id, text_start(line, at)?))).collect();
    let ends = starts.iter().skip(1).map(|(at, ..)| *at).chain([line.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|((_, id, text), end)| {
            let text = line[*text..end].trim_matches(|character: char| character.is_whitespace() || character == '/');
            Statement { id: *id, text: text.to_owned() }
        })
        .collect()
}

fn text_start(line: &str, id_at: usize) -> Option<usize> {
    let after = id_at + "S0.00".len();
    let mark = MARKS.iter().find(|mark| line[after..].starts_with(**mark));
    let shares_the_mark = line[..id_at].ends_with("/ ");
    mark.map(|mark| after + mark.len()).or_else(|| shares_the_mark.then_some(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Vec<(String, String)> {
        statements_in(line).into_iter().map(|statement| (statement.id.to_string(), statement.text)).collect()
    }

    fn expected<const N: usize>(statements: [(&str, &str); N]) -> Vec<(String, String)> {
        statements.map(|(id, text)| (id.to_owned(), text.to_owned())).to_vec()
    }

    #[test]
    fn a_line_may_have_several_statements() {
        assert_eq!(
            parsed("- S1.01 [I] delegates. S1.02 [X] gives back [X] once. S1.03 [L] options: `limit`."),
            expected([("S1.01", "delegates."), ("S1.02", "gives back [X] once."), ("S1.03", "options: `limit`."),])
        );
    }

    #[test]
    fn two_statements_may_share_a_mark() {
        assert_eq!(
            parsed("- S2.21 [I] save(key, value) / S2.22 get(key): per user."),
            expected([("S2.21", "save(key, value)"), ("S2.22", "get(key): per user.")])
        );
    }

    #[test]
    fn references_are_not_statements() {
        assert_eq!(parsed("- S0.01–S0.10, S1.10 and (S2.37) give layouts"), []);
        assert_eq!(
            parsed("- S2.29 [X] comes from the line (S2.37)."),
            expected([("S2.29", "comes from the line (S2.37).")])
        );
    }

    #[test]
    fn groups_have_headings() {
        let checklist = Checklist::parse("## S0 — first\n### Store\n- S0.01 [I] one.\n- S3.01 [P] another.");
        let headings: Vec<_> = checklist.headings.iter().map(|(group, text)| (*group, text.as_str())).collect();
        assert_eq!(headings, [(0, "S0 — first"), (3, "S3")]);
    }
}
