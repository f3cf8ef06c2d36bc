//! Leaves out files and conversations that match a pattern.

use std::path::{Component, Path};

use regex::RegexSet;
use threadkeep::Map;
use threadkeep::core::exchange::ImportItem;

use crate::failure::Failure;

/// The fields of a conversation's metadata that name the folder of its project.
const PROJECT_FOLDERS: [&str; 2] = ["cwd", "project"];

/// Patterns of files and folders. `*` matches any characters except `/`, `**` any characters, and `?` one character except `/`.
#[derive(Debug, Default)]
pub(super) struct Exclusions {
    /// Patterns without a `/`, which match a name in a path.
    names: RegexSet,
    /// Patterns with a `/`, which match a path and everything below it.
    paths: RegexSet,
}

impl Exclusions {
    /// Parses patterns. A leading `~` is the user's home folder.
    pub(super) fn new(patterns: &[String], home: Option<&Path>) -> Result<Self, Failure> {
        let (mut names, mut paths) = (Vec::new(), Vec::new());
        for pattern in patterns {
            let trimmed = pattern.trim_end_matches('/');
            if trimmed.is_empty() {
                return Err(
                    Failure::usage("an --exclude pattern is empty").hint("specify a file, a folder or a pattern")
                );
            }
            match (trimmed.strip_prefix('~'), home) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                    paths.push(format!("{}{}", regex::escape(&home.to_string_lossy()), expression(rest)));
                }
                _ if trimmed.contains('/') => paths.push(expression(trimmed)),
                _ => names.push(expression(trimmed)),
            }
        }
        let set = |expressions: Vec<String>, end: &str| {
            RegexSet::new(expressions.iter().map(|expression| format!("^{expression}{end}$")))
                .map_err(|_| Failure::usage("the --exclude patterns are too long"))
        };
        Ok(Self { names: set(names, "")?, paths: set(paths, "(?s:/.*)?")? })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty()
    }

    /// Whether a file or folder is left out.
    pub(super) fn matches(&self, path: &Path) -> bool {
        if self.is_empty() {
            return false;
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        [path, &absolute].iter().any(|path| self.paths.is_match(&path.to_string_lossy()))
            || path.components().any(|component| match component {
                Component::Normal(name) => self.names.is_match(&name.to_string_lossy()),
                _ => false,
            })
    }

    /// Whether a conversation is left out, because of the folder of its project.
    fn matches_metadata(&self, metadata: &Map) -> bool {
        PROJECT_FOLDERS
            .iter()
            .filter_map(|name| metadata.get(*name)?.as_str())
            .any(|folder| self.matches(Path::new(folder)))
    }

    /// Whether an item begins a conversation that is left out; `None` if it does not begin one.
    pub(super) fn excludes(&self, item: &ImportItem) -> Option<bool> {
        match item {
            ImportItem::Thread(thread) => Some(self.matches_metadata(&thread.metadata)),
            ImportItem::Tree(tree) => Some(self.matches_metadata(&tree.thread.metadata)),
            ImportItem::Message(_) | ImportItem::Record { .. } => None,
        }
    }
}

/// Returns a regular expression for a pattern.
fn expression(pattern: &str) -> String {
    let mut expression = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (part, length) = match first {
            '*' if rest.starts_with("**") => ("(?s:.*)".to_owned(), 2),
            '*' => ("[^/]*".to_owned(), 1),
            '?' => ("[^/]".to_owned(), 1),
            other => (regex::escape(other.encode_utf8(&mut [0; 4])), other.len_utf8()),
        };
        expression.push_str(&part);
        rest = &rest[length..];
    }
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_paths() {
        let cases = [
            ("client", "/home/ana/client/a.jsonl", true),
            ("client", "/home/ana/client-x/a.jsonl", false),
            ("client*", "/home/ana/client-x/a.jsonl", true),
            ("*.md", "notes/a.md", true),
            ("/home/*/client", "/home/ana/client/deep/a.jsonl", true),
            ("/home/*/client", "/home/ana/work/client/a.jsonl", false),
            ("/home/**/client", "/home/ana/work/client/a.jsonl", true),
            ("~/clients/", "/home/ana/clients/a.jsonl", true),
            ("~/clients", "/home/ana/clientside", false),
            ("a.b", "axb", false),
            ("sess?on", "session", true),
        ];
        for (pattern, path, expected) in cases {
            let exclusions = Exclusions::new(&[pattern.to_owned()], Some(Path::new("/home/ana"))).unwrap();
            assert_eq!(exclusions.matches(Path::new(path)), expected, "{pattern} {path}");
        }
        assert!(!Exclusions::default().matches(Path::new("/any")));
        assert!(Exclusions::new(&["/".to_owned()], None).is_err());
    }

    #[test]
    fn conversations_are_excluded_by_the_folder_of_their_project() {
        let exclusions = Exclusions::new(&["secret".to_owned()], None).unwrap();
        let metadata = |folder: &str| Map::from_iter([("cwd".to_owned(), folder.into())]);
        assert!(exclusions.matches_metadata(&metadata("/home/ana/secret/app")));
        assert!(!exclusions.matches_metadata(&metadata("/home/ana/app")));
    }
}
