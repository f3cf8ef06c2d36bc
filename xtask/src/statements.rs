//! `cargo xtask statements`: lists which statements of the checklist are referenced in the code, and where.
//!
//! A statement is an item of the checklist, such as a requirement. In a comment such as `// S2.38`, a test names the statement
//! that it proves. The command checks only these references, not whether the tests prove the statements.

mod checklist;
mod ids;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use checklist::{Checklist, Statement};
use ids::{Id, IdRange};

use crate::cargo::Workspace;

const DEFAULT_CHECKLIST: &str = "../shared/design/checklist.md";
const FOLDERS: [&str; 5] = ["crates", "stores", "assistants", "bench", "web/tests"];
/// The extensions of files that contain tests.
const SOURCES: [&str; 4] = ["mjs", "rs", "ts", "tsx"];
const TEXT_WIDTH: usize = 60;
const MAX_FILES: usize = 3;

/// Arguments of `cargo xtask statements`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The checklist [default: ../shared/design/checklist.md]
    #[arg(long, value_name = "PATH")]
    checklist: Option<PathBuf>,
    /// List only the statements to which no test refers
    #[arg(long)]
    missing: bool,
}

/// Prints a table for each group, and the counts. Without a checklist, prints the referenced ids.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let files = files_by_id(&workspace)?;
    let path = args.checklist.clone().unwrap_or_else(|| workspace.root.join(DEFAULT_CHECKLIST));
    let report = if path.is_file() {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        report(&Checklist::parse(&text), &files, args.missing)
    } else {
        report_without_checklist(&path, &files)
    };
    print(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the report. Ignores a closed pipe, such as one to `head`.
fn print(report: &str) -> Result<()> {
    match io::stdout().write_all(report.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn report_without_checklist(path: &Path, files: &FilesById) -> String {
    let rows = files.iter().map(|(range, files)| format!("{range}  {}\n", file_list(files)));
    let ids = rows.collect::<String>();
    format!("no checklist at {}; ids referenced in the code:\n{ids}", path.display())
}

fn report(checklist: &Checklist, files: &FilesById, only_unreferenced: bool) -> String {
    let groups = groups(checklist, files, only_unreferenced);
    let unknown_ids = unknown_ids(checklist, files);
    format!("{groups}{unknown_ids}{}\n", counts(checklist, files))
}

type FilesById = BTreeMap<IdRange, BTreeSet<String>>;

fn files_by_id(workspace: &Workspace) -> Result<FilesById> {
    let mut files = FilesById::new();
    for folder in FOLDERS {
        for path in source_files(&workspace.root.join(folder))? {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            for range in text.lines().flat_map(ids::in_comment) {
                files.entry(range).or_default().insert(workspace.relative(&path));
            }
        }
    }
    Ok(files)
}

fn source_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(source_files(&path)?);
        } else if path.extension().is_some_and(|extension| SOURCES.iter().any(|known| extension == *known)) {
            found.push(path);
        }
    }
    Ok(found)
}

fn files_referring_to(id: Id, files: &FilesById) -> BTreeSet<String> {
    files.iter().filter(|(range, _)| range.covers(id)).flat_map(|(_, files)| files.iter().cloned()).collect()
}

fn groups(checklist: &Checklist, files: &FilesById, only_unreferenced: bool) -> String {
    let mut tables = String::new();
    for (group, heading) in &checklist.headings {
        let rows: Vec<_> = checklist
            .statements_of(*group)
            .map(|statement| (statement, files_referring_to(statement.id, files)))
            .filter(|(_, files)| !only_unreferenced || files.is_empty())
            .map(|(statement, files)| row(statement, &files))
            .collect();
        if !rows.is_empty() {
            tables.push_str(&format!("{heading}\n{}\n\n", rows.join("\n")));
        }
    }
    tables
}

fn row(statement: &Statement, files: &BTreeSet<String>) -> String {
    let text = truncated(&statement.text);
    let row = format!("{}  {text:<TEXT_WIDTH$}  {}", statement.id, file_list(files));
    row.trim_end().to_owned()
}

/// Reports referenced ids that are not in the checklist, for example because of a typo.
fn unknown_ids(checklist: &Checklist, files: &FilesById) -> String {
    let mut unknown_ids = String::new();
    for (range, files) in files {
        for id in range.ends().filter(|id| !checklist.contains(*id)) {
            unknown_ids.push_str(&format!("{id} is not in the checklist but is referenced in {}\n", file_list(files)));
        }
    }
    unknown_ids
}

fn counts(checklist: &Checklist, files: &FilesById) -> String {
    let groups = checklist.headings.keys().map(|group| {
        let all = checklist.statements_of(*group).count();
        let referenced =
            checklist.statements_of(*group).filter(|s| !files_referring_to(s.id, files).is_empty()).count();
        format!("S{group} {referenced}/{all}")
    });
    groups.collect::<Vec<_>>().join(" ")
}

fn truncated(text: &str) -> String {
    if text.chars().count() <= TEXT_WIDTH {
        return text.to_owned();
    }
    let cut: String = text.chars().take(TEXT_WIDTH - 1).collect();
    let whole_words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{whole_words}…")
}

fn file_list(files: &BTreeSet<String>) -> String {
    let listed = files.iter().take(MAX_FILES).cloned().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_FILES) {
        0 => listed,
        more => format!("{listed} and {more} more"),
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

    fn reference(comment: &str, file: &str) -> (IdRange, BTreeSet<String>) {
        (ids::in_comment(comment)[0], BTreeSet::from([file.to_owned()]))
    }

    #[test]
    fn a_range_refers_to_each_of_its_statements() {
        let files = [reference("// S0.02–S0.03", "a.rs"), reference("// S0.03", "b.rs")].into();
        let expected = format!(
            "S0 — first\nS0.01  one.\nS0.02  {:<60}  a.rs\nS0.03  {:<60}  a.rs, b.rs\n\n\
             S1 — second\nS1.01  four.\n\n\
             S0 2/3 S1 0/1\n",
            "two.", "three."
        );
        assert_eq!(report(&checklist(), &files, false), expected);
    }

    #[test]
    fn unreferenced_statements_can_be_listed_alone() {
        let files = [reference("// S0.02–S0.03", "a.rs"), reference("// S1.01", "b.rs")].into();
        assert_eq!(report(&checklist(), &files, true), "S0 — first\nS0.01  one.\n\nS0 2/3 S1 1/1\n");
    }

    #[test]
    fn unknown_ids_are_reported() {
        let files = [reference("// S0.77", "a.rs")].into();
        let report = report(&checklist(), &files, true);
        assert!(report.contains("S0.77 is not in the checklist but is referenced in a.rs\n"), "{report}");
    }

    #[test]
    fn long_texts_are_truncated_between_words() {
        let text = "Constructing the memory without a path uses a default; a given path is used instead.";
        assert_eq!(truncated(text), "Constructing the memory without a path uses a default; a…");
        assert_eq!(truncated("short"), "short");
    }

    #[test]
    fn long_file_lists_are_truncated() {
        let files = ["a.rs", "b.rs", "c.rs", "d.rs", "e.rs"].map(str::to_owned).into();
        assert_eq!(file_list(&files), "a.rs, b.rs, c.rs and 2 more");
    }
}
