//! `cargo xtask statements`: which statements of the checklist are named in the code, and where.
//!
//! A test names the statement that it proves in a comment, `// S2.38`. The command tells what is named, not what is
//! true: a name is a claim that a reader can follow.

mod checklist;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use checklist::{Checklist, Statement};
use names::{Id, Named};

use crate::cargo::Workspace;

const DEFAULT_CHECKLIST: &str = "../shared/design/checklist.md";
const FOLDERS: [&str; 4] = ["crates", "stores", "assistants", "bench"];
const WORDS_WIDTH: usize = 60;
const FILES_SHOWN: usize = 3;

/// Arguments of `cargo xtask statements`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The checklist; ../shared/design/checklist.md beside the repository unless given
    #[arg(long, value_name = "PATH")]
    checklist: Option<PathBuf>,
    /// List only the statements that no file names
    #[arg(long)]
    missing: bool,
}

/// Prints one table per group and the counts; succeeds without a checklist as well.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let files = files_by_name(&workspace)?;
    let path = args.checklist.clone().unwrap_or_else(|| workspace.root.join(DEFAULT_CHECKLIST));
    let report = if path.is_file() {
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        report(&Checklist::parse(&text), &files, args.missing)
    } else {
        report_without_checklist(&path, &files)
    };
    show(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes to a pipe whose reader may leave early, as `head` does.
fn show(report: &str) -> Result<()> {
    match io::stdout().write_all(report.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn report_without_checklist(path: &Path, files: &FilesByName) -> String {
    let rows = files.iter().map(|(named, files)| format!("{named}  {}\n", shortened(files)));
    let ids = rows.collect::<String>();
    format!("there is no checklist at {}; these ids are named in the code:\n{ids}", path.display())
}

fn report(checklist: &Checklist, files: &FilesByName, only_missing: bool) -> String {
    let groups = groups(checklist, files, only_missing);
    let strangers = strangers(checklist, files);
    format!("{groups}{strangers}{}\n", counts(checklist, files))
}

type FilesByName = BTreeMap<Named, BTreeSet<String>>;

fn files_by_name(workspace: &Workspace) -> Result<FilesByName> {
    let mut files = FilesByName::new();
    for folder in FOLDERS {
        for path in rust_files(&workspace.root.join(folder))? {
            let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            for named in text.lines().flat_map(names::in_comment) {
                files.entry(named).or_default().insert(workspace.relative(&path));
            }
        }
    }
    Ok(files)
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

fn files_naming(id: Id, files: &FilesByName) -> BTreeSet<String> {
    files.iter().filter(|(named, _)| named.covers(id)).flat_map(|(_, files)| files.iter().cloned()).collect()
}

fn groups(checklist: &Checklist, files: &FilesByName, only_missing: bool) -> String {
    let mut tables = String::new();
    for (group, heading) in &checklist.headings {
        let rows: Vec<_> = checklist
            .statements_of(*group)
            .map(|statement| (statement, files_naming(statement.id, files)))
            .filter(|(_, files)| !only_missing || files.is_empty())
            .map(|(statement, files)| row(statement, &files))
            .collect();
        if !rows.is_empty() {
            tables.push_str(&format!("{heading}\n{}\n\n", rows.join("\n")));
        }
    }
    tables
}

fn row(statement: &Statement, files: &BTreeSet<String>) -> String {
    let words = first_words(&statement.text);
    let row = format!("{}  {words:<WORDS_WIDTH$}  {}", statement.id, shortened(files));
    row.trim_end().to_owned()
}

/// A mistyped id would otherwise count as proof of nothing, in silence.
fn strangers(checklist: &Checklist, files: &FilesByName) -> String {
    let mut strangers = String::new();
    for (named, files) in files {
        for id in named.ends().filter(|id| !checklist.contains(*id)) {
            strangers.push_str(&format!("{id} is not in the checklist, but named in {}\n", shortened(files)));
        }
    }
    strangers
}

fn counts(checklist: &Checklist, files: &FilesByName) -> String {
    let groups = checklist.headings.keys().map(|group| {
        let all = checklist.statements_of(*group).count();
        let named = checklist.statements_of(*group).filter(|s| !files_naming(s.id, files).is_empty()).count();
        format!("S{group} {named}/{all}")
    });
    groups.collect::<Vec<_>>().join(" ")
}

fn first_words(text: &str) -> String {
    if text.chars().count() <= WORDS_WIDTH {
        return text.to_owned();
    }
    let cut: String = text.chars().take(WORDS_WIDTH - 1).collect();
    let whole_words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{whole_words}…")
}

fn shortened(files: &BTreeSet<String>) -> String {
    let shown = files.iter().take(FILES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(FILES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checklist() -> Checklist {
        Checklist::parse(
            "## S0 — first\n- S0.01 [I] one. S0.02 [X] two.\n- S0.03 [P] three.\n## S1 — second\n- S1.01 [I] four.",
        )
    }

    fn named_in(comment: &str, file: &str) -> (Named, BTreeSet<String>) {
        (names::in_comment(comment)[0], BTreeSet::from([file.to_owned()]))
    }

    #[test]
    fn a_range_names_each_of_its_statements() {
        let files = [named_in("// S0.02–S0.03", "a.rs"), named_in("// S0.03", "b.rs")].into();
        let expected = format!(
            "S0 — first\nS0.01  one.\nS0.02  {:<60}  a.rs\nS0.03  {:<60}  a.rs, b.rs\n\n\
             S1 — second\nS1.01  four.\n\n\
             S0 2/3 S1 0/1\n",
            "two.", "three."
        );
        assert_eq!(report(&checklist(), &files, false), expected);
    }

    #[test]
    fn missing_ones_are_listed_alone() {
        let files = [named_in("// S0.02–S0.03", "a.rs"), named_in("// S1.01", "b.rs")].into();
        assert_eq!(report(&checklist(), &files, true), "S0 — first\nS0.01  one.\n\nS0 2/3 S1 1/1\n");
    }

    #[test]
    fn an_unknown_id_is_reported() {
        let files = [named_in("// S0.77", "a.rs")].into();
        let report = report(&checklist(), &files, true);
        assert!(report.contains("S0.77 is not in the checklist, but named in a.rs\n"), "{report}");
    }

    #[test]
    fn long_texts_are_cut_between_words() {
        let text = "Constructing the memory without a path uses a default; a given path is used instead.";
        assert_eq!(first_words(text), "Constructing the memory without a path uses a default; a…");
        assert_eq!(first_words("short"), "short");
    }

    #[test]
    fn many_files_are_shortened() {
        let files = ["a.rs", "b.rs", "c.rs", "d.rs", "e.rs"].map(str::to_owned).into();
        assert_eq!(shortened(&files), "a.rs, b.rs, c.rs and 2 more");
    }
}
