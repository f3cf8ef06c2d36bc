//! `cargo xtask layers`: who may depend on whom.
//!
//! Normal and build dependencies between the packages of this repository are held against one table. Dev-dependencies
//! are free: a test may use what the code may not.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;

use crate::cargo::{Package, Workspace};

enum MayUse {
    Only(&'static [&'static str]),
    Anything,
}

use MayUse::{Anything, Only};

const CORE: MayUse = Only(&["threadkeep-core"]);
const FACADE_AND_TRANSIT: MayUse = Only(&["threadkeep", "threadkeep-transit"]);

/// The table of layers, in the order of ARCHITECTURE.md.
const TABLE: &[(&str, MayUse)] = &[
    ("threadkeep-core", Only(&[])),
    ("threadkeep-context", CORE),
    ("threadkeep-graph", CORE),
    ("threadkeep-formats", CORE),
    ("threadkeep-tokens", CORE),
    ("threadkeep-memory", Only(&["threadkeep-core", "threadkeep-context"])),
    ("threadkeep-models", CORE),
    ("threadkeep-agent", Only(&["threadkeep-core", "threadkeep-context", "threadkeep-graph", "threadkeep-memory"])),
    ("threadkeep-store-memory", CORE),
    ("threadkeep-store-sqlite", CORE),
    ("threadkeep-store-postgres", CORE),
    ("threadkeep-store-redis", CORE),
    ("threadkeep-store-indexeddb", CORE),
    ("threadkeep-store-conformance", CORE),
    ("threadkeep-postgres-server", Only(&[])),
    (
        "threadkeep",
        Only(&[
            "threadkeep-core",
            "threadkeep-context",
            "threadkeep-graph",
            "threadkeep-formats",
            "threadkeep-tokens",
            "threadkeep-memory",
            "threadkeep-models",
            "threadkeep-agent",
            "threadkeep-store-memory",
            "threadkeep-store-sqlite",
            "threadkeep-store-postgres",
            "threadkeep-store-redis",
            "threadkeep-store-indexeddb",
        ]),
    ),
    ("threadkeep-general", Only(&["threadkeep"])),
    ("threadkeep-transit", Only(&[])),
    ("threadkeep-subway", FACADE_AND_TRANSIT),
    ("threadkeep-underground", FACADE_AND_TRANSIT),
    ("threadkeep-tesis", FACADE_AND_TRANSIT),
    ("threadkeep-kubeops", FACADE_AND_TRANSIT),
    ("threadkeep-server", Only(&["threadkeep", "threadkeep-formats"])),
    ("threadkeep-slack", Only(&["threadkeep"])),
    ("threadkeep-cli", Anything),
    ("threadkeep-bench", Anything),
    ("threadkeep-fuzz", Anything),
    ("xtask", Anything),
];

/// Prints the verdict; fails with every forbidden edge and every unknown package.
pub(crate) fn run() -> Result<ExitCode> {
    check(&Workspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with a list of what breaks the table.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let violations = violations(workspace);
    anyhow::ensure!(
        violations.is_empty(),
        "the layers do not hold (the table is in xtask/src/layers.rs)\n  {}",
        violations.into_iter().collect::<Vec<_>>().join("\n  ")
    );
    println!("layers: {} packages, every edge is in the table", workspace.packages.len());
    Ok(())
}

fn violations(workspace: &Workspace) -> BTreeSet<String> {
    workspace.packages.iter().flat_map(|package| violations_of(package, workspace)).collect()
}

fn violations_of(package: &Package, workspace: &Workspace) -> Vec<String> {
    let file = workspace.relative(&package.manifest_path);
    let Some((_, may_use)) = TABLE.iter().find(|(name, _)| *name == package.name) else {
        return vec![format!("{file}: {} is an unknown package; add it to the table", package.name)];
    };
    let Only(allowed) = may_use else {
        return Vec::new();
    };
    let edges = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    edges
        .filter(|edge| edge.kind.as_deref() != Some("dev") && !allowed.contains(&edge.name.as_str()))
        .map(|edge| {
            let kind = edge.kind.as_ref().map(|kind| format!(" ({kind}-dependency)")).unwrap_or_default();
            let allowed = if allowed.is_empty() { "nothing of ours".to_owned() } else { allowed.join(", ") };
            format!("{file}: {} -> {}{kind} is forbidden; it may use {allowed}", package.name, edge.name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workspace(package: &str, dependencies: &Value) -> Workspace {
        let metadata = json!({
            "workspace_root": "/repository",
            "target_directory": "/repository/target",
            "packages": [{
                "name": package,
                "manifest_path": "/repository/crates/folder/Cargo.toml",
                "dependencies": dependencies,
            }],
        });
        Workspace::from_json(metadata.to_string().as_bytes()).unwrap()
    }

    fn edge(to: &str, kind: Option<&str>) -> Value {
        json!({ "name": to, "kind": kind, "path": format!("/repository/crates/{to}") })
    }

    fn violations_of_edge(from: &str, to: &str, kind: Option<&str>) -> Vec<String> {
        violations(&workspace(from, &json!([edge(to, kind)]))).into_iter().collect()
    }

    #[test]
    fn an_edge_in_the_table_is_allowed() {
        assert_eq!(violations_of_edge("threadkeep-memory", "threadkeep-context", None), [""; 0]);
        assert_eq!(violations_of_edge("threadkeep-memory", "threadkeep-core", Some("build")), [""; 0]);
        assert_eq!(violations_of_edge("threadkeep-cli", "threadkeep-server", None), [""; 0]);
    }

    #[test]
    fn another_edge_is_named_with_its_file() {
        assert_eq!(
            violations_of_edge("threadkeep-memory", "threadkeep-store-sqlite", None),
            ["crates/folder/Cargo.toml: threadkeep-memory -> threadkeep-store-sqlite is forbidden; \
              it may use threadkeep-core, threadkeep-context"]
        );
        assert_eq!(
            violations_of_edge("threadkeep-core", "threadkeep-formats", Some("build")),
            ["crates/folder/Cargo.toml: threadkeep-core -> threadkeep-formats (build-dependency) is forbidden; \
              it may use nothing of ours"]
        );
    }

    #[test]
    fn the_suite_is_no_part_of_the_facade() {
        assert_eq!(violations_of_edge("threadkeep", "threadkeep-store-conformance", None).len(), 1);
    }

    #[test]
    fn dev_edges_are_free() {
        assert_eq!(violations_of_edge("threadkeep-core", "threadkeep-store-conformance", Some("dev")), [""; 0]);
    }

    #[test]
    fn published_crates_are_free() {
        let serde = json!([{ "name": "serde", "kind": null }]);
        assert!(violations(&workspace("threadkeep-core", &serde)).is_empty());
    }

    #[test]
    fn an_unknown_package_has_to_be_added() {
        assert_eq!(
            violations_of_edge("threadkeep-new", "threadkeep-core", None),
            ["crates/folder/Cargo.toml: threadkeep-new is an unknown package; add it to the table"]
        );
    }

    #[test]
    fn an_unknown_folder_is_no_layer() {
        assert_eq!(violations_of_edge("threadkeep-core", "somewhere-else", None).len(), 1);
    }

    #[test]
    fn the_table_names_only_its_own_rows() {
        for (name, may_use) in TABLE {
            let Only(allowed) = may_use else { continue };
            for other in *allowed {
                assert!(TABLE.iter().any(|(row, _)| row == other), "{name} may use {other}, which has no row");
            }
        }
    }
}
