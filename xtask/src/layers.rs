//! `cargo xtask layers`: checks which packages depend on each other.
//!
//! The normal and build dependencies between the packages of this repository must equal the table in ARCHITECTURE.md: a
//! dependency that is only in the code or only in the table is an error. Dev-dependencies are not restricted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::cargo::{Package, Workspace};

const FILE: &str = "ARCHITECTURE.md";
/// The header row of the table.
const HEADER: &str = "| package | may use |";

/// The packages that each package may use.
type Table = BTreeMap<String, BTreeSet<String>>;

/// Runs the check on the workspace that contains the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    check(&Workspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with a list of all differences between the code and the table.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let text = fs::read_to_string(workspace.root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let violations = violations(workspace, &table(&text)?);
    ensure!(
        violations.is_empty(),
        "dependencies differ from the table in {FILE}\n  {}",
        violations.into_iter().collect::<Vec<_>>().join("\n  ")
    );
    println!("layers: the dependencies of {} packages match the table", workspace.packages.len());
    Ok(())
}

/// Parses the table. Package names are between backticks. The first package of a row may use the others.
fn table(text: &str) -> Result<Table> {
    let rows = text.lines().skip_while(|line| *line != HEADER).skip(2).take_while(|line| line.starts_with('|'));
    let mut table = Table::new();
    for row in rows {
        let mut names = row.split('`').skip(1).step_by(2).map(str::to_owned);
        let package = names.next().with_context(|| format!("{FILE}: no package in the row {row}"))?;
        ensure!(table.insert(package.clone(), names.collect()).is_none(), "{FILE}: {package} has two rows");
    }
    ensure!(!table.is_empty(), "{FILE} has no table with the header {HEADER}");
    Ok(table)
}

fn violations(workspace: &Workspace, table: &Table) -> BTreeSet<String> {
    let in_packages = workspace.packages.iter().flat_map(|package| violations_of(package, workspace, table));
    let known: BTreeSet<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    let in_rows = table.keys().filter(|row| !known.contains(row.as_str()));
    in_packages.chain(in_rows.map(|row| format!("{FILE}: there is no package {row}; remove its row"))).collect()
}

fn violations_of(package: &Package, workspace: &Workspace, table: &Table) -> Vec<String> {
    let (name, file) = (&package.name, workspace.relative(&package.manifest_path));
    let Some(allowed) = table.get(name) else {
        return vec![format!("{file}: {name} is not in the table of {FILE}; add a row")];
    };
    let local = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    let used: BTreeMap<&str, Option<&str>> = local
        .filter(|edge| edge.kind.as_deref() != Some("dev"))
        .map(|edge| (edge.name.as_str(), edge.kind.as_deref()))
        .collect();
    let forbidden = used.iter().filter(|(other, _)| !allowed.contains(**other)).map(|(other, kind)| {
        let kind = kind.map(|kind| format!(" ({kind}-dependency)")).unwrap_or_default();
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        let allowed = if allowed.is_empty() { "no package of this repository".to_owned() } else { allowed.join(", ") };
        format!("{file}: {name} -> {other}{kind} is forbidden; it may use {allowed}")
    });
    let unused = allowed.iter().filter(|other| !used.contains_key(other.as_str()));
    let unused = unused.map(|other| format!("{FILE}: {name} does not use {other}; remove it from the row"));
    forbidden.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEXT: &str = "\
Text before.

| package | may use |
|---|---|
| `core` | |
| `memory` | `core`, `context` |

| another | table |
|---|---|
| `server` | `core` |
";

    fn workspace(packages: &Value) -> Workspace {
        let metadata =
            json!({ "workspace_root": "/repository", "target_directory": "/repository/target", "packages": packages });
        Workspace::from_json(metadata.to_string().as_bytes()).unwrap()
    }

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let edge = |(to, kind): &(&str, Option<&str>)| json!({ "name": to, "kind": kind, "path": format!("/repository/crates/{to}") });
        let dependencies: Vec<Value> = dependencies.iter().map(edge).collect();
        let manifest = format!("/repository/crates/{name}/Cargo.toml");
        json!({ "name": name, "manifest_path": manifest, "dependencies": dependencies })
    }

    fn violations_of_memory(dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let workspace = workspace(&json!([package("core", &[]), package("memory", dependencies)]));
        violations(&workspace, &table(TEXT).unwrap()).into_iter().collect()
    }

    #[test]
    fn edges_in_the_table_are_allowed() {
        assert_eq!(violations_of_memory(&[("core", None), ("context", Some("build"))]), [""; 0]);
    }

    #[test]
    fn edges_not_in_the_table_are_reported_with_their_manifest() {
        let dependencies = [("core", None), ("context", None), ("store", None), ("formats", Some("build"))];
        assert_eq!(
            violations_of_memory(&dependencies),
            [
                "crates/memory/Cargo.toml: memory -> formats (build-dependency) is forbidden; it may use context, core",
                "crates/memory/Cargo.toml: memory -> store is forbidden; it may use context, core",
            ]
        );
    }

    #[test]
    fn edges_only_in_the_table_are_reported() {
        let expected = ["ARCHITECTURE.md: memory does not use context; remove it from the row"];
        assert_eq!(violations_of_memory(&[("core", None)]), expected);
    }

    #[test]
    fn dev_dependencies_are_ignored() {
        let dependencies = [("core", None), ("context", None), ("store", Some("dev"))];
        assert_eq!(violations_of_memory(&dependencies), [""; 0]);
        assert_eq!(violations_of_memory(&[("core", None), ("context", Some("dev"))]).len(), 1);
    }

    #[test]
    fn published_crates_are_ignored() {
        let mut core = package("core", &[]);
        core["dependencies"] = json!([{ "name": "serde", "kind": null }]);
        let workspace = workspace(&json!([core, package("memory", &[("core", None), ("context", None)])]));
        assert_eq!(violations(&workspace, &table(TEXT).unwrap()), BTreeSet::new());
    }

    #[test]
    fn packages_without_a_row_and_rows_without_a_package_are_reported() {
        let workspace = workspace(&json!([package("core", &[]), package("new", &[])]));
        assert_eq!(
            violations(&workspace, &table(TEXT).unwrap()).into_iter().collect::<Vec<_>>(),
            [
                "ARCHITECTURE.md: there is no package memory; remove its row",
                "crates/new/Cargo.toml: new is not in the table of ARCHITECTURE.md; add a row",
            ]
        );
    }

    #[test]
    fn malformed_tables_are_errors() {
        assert!(table("no table").is_err());
        assert!(table("| package | may use |\n|---|---|\n| core | |\n").is_err());
        assert!(table("| package | may use |\n|---|---|\n| `core` | |\n| `core` | |\n").is_err());
    }
}
