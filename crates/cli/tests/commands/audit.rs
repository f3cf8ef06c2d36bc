//! The audit log: its records, the protection of its tenant, and verification against a head.

use serde_json::Value;

use super::Cli;

/// Returns the actions in the log with their targets and outcomes.
fn actions(cli: &Cli) -> Vec<(String, String, String)> {
    let log = cli.json(&["audit"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let records = log["records"].as_array().unwrap().iter();
    records.map(|record| (text(&record["act"]), text(&record["target"]), text(&record["outcome"]))).collect()
}

fn head(cli: &Cli) -> String {
    cli.json(&["audit"])["head"].as_str().unwrap().to_owned()
}

#[test]
fn commands_reject_the_internal_tenant() {
    let cli = Cli::with_garden();
    cli.out(&["keys", "create", "phone"]);
    let before = head(&cli);
    let chats = cli.file("chats.jsonl", "{}");
    let backup = cli.path("copy.db");
    let commands: &[&[&str]] = &[
        &["threads"],
        &["threads", "--as-tenant"],
        &["show", "web:garden"],
        &["append", "audit:chain", "forged", "--as-tenant", "--create"],
        &["search", "keys"],
        &["recall", "keys"],
        &["context", "audit:chain"],
        &["export"],
        &["erase", "audit:chain", "--as-tenant", "--yes"],
        &["erase", "--message", "audit:chain", "1", "--as-tenant", "--yes"],
        &["erase", "--everything", "--as-tenant", "--yes"],
        &["stats"],
        &["import", &chats],
        &["keys", "list"],
        &["keys", "create", "x"],
        &["audit"],
        &["audit", "verify"],
        &["ask", "hello"],
        &["chat"],
        &["docs", "list"],
        &["approvals", "list"],
        &["trace", "0199a6f2"],
        &["backup", backup.to_str().unwrap()],
        &["serve", "--listen", "127.0.0.1:0"],
    ];
    for command in commands {
        let output = cli.run(&[&["--tenant", "threadkeep"], *command].concat());
        assert!(
            output.code == Some(2) && output.err.contains("reserved") && output.out.is_empty(),
            "{command:?}: {output}"
        );
    }
    let by_environment = cli.command(&["threads"]).env("THREADKEEP_TENANT", "threadkeep").output().unwrap();
    assert_eq!(by_environment.status.code(), Some(2));
    assert_eq!(head(&cli), before);
    assert_eq!(cli.run(&["audit", "verify", "--head", &before]).code, Some(0));
}

#[test]
fn the_audit_log_records_erasures_by_id() {
    let cli = Cli::with_garden();
    cli.out(&["append", "secret", "The word is zanzibarquokka.", "--create"]);
    cli.out(&["append", "secret", "And another."]);
    let thread = cli.json(&["show", "secret"])["thread"]["id"].as_str().unwrap().to_owned();
    cli.out(&["erase", "--message", "secret", "1", "--yes"]);
    cli.out(&["erase", "secret", "--yes"]);
    cli.out(&["erase", "--everything", "--yes"]);
    let actions = actions(&cli);
    let recorded: Vec<(&str, &str)> =
        actions.iter().map(|(action, _, outcome)| (action.as_str(), outcome.as_str())).collect();
    let expected = ["erase message", "erase thread", "erase everything"];
    assert_eq!(recorded, expected.map(|action| [(action, "begun"), (action, "done")]).concat());
    assert!(
        actions[0].1.starts_with(&format!("{thread}/")) && actions[2].1 == thread && actions[4].1 == "me",
        "{actions:?}"
    );
    let log = cli.json(&["audit"]);
    assert_eq!(log["records"][5]["user"], "me");
    assert!(!cli.contains_bytes(b"zanzibarquokka"));
    assert_eq!(cli.json(&["audit", "verify"])["findings"], serde_json::json!([]));
}

#[test]
fn audit_heads_detect_a_restored_store() {
    let cli = Cli::new();
    cli.out(&["keys", "create", "first"]);
    let before = head(&cli);
    let backup = cli.path("monday.db").to_str().unwrap().to_owned();
    cli.out(&["backup", &backup]);
    cli.out(&["keys", "create", "second"]);
    let after = head(&cli);
    for known in [&before, &after] {
        let output = cli.run(&["audit", "verify", "--head", known]);
        assert!(
            output.code == Some(0) && output.out.contains("no problems found") && output.out.contains(&after),
            "{output}"
        );
    }
    let shown = cli.out(&["audit"]);
    assert!(shown.ends_with(&format!("head: {after}\n")), "{shown}");
    // A migration copies the log.
    let copy = cli.path("moved.db").to_str().unwrap().to_owned();
    let store = cli.store().to_str().unwrap().to_owned();
    cli.out(&["migrate", "--from", &store, "--to", &copy]);
    assert_eq!(cli.run(&["audit", "verify", "--head", &after, "--store", &copy]).code, Some(0));

    cli.out(&["restore", &backup, "--yes"]);
    assert_eq!(cli.run(&["audit", "verify"]).code, Some(0), "the restored log itself is consistent");
    assert_eq!(cli.run(&["audit", "verify", "--head", &before]).code, Some(0));
    let output = cli.run(&["audit", "verify", "--head", &after, "--json"]);
    let verified: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!((output.code, &verified["head"], &verified["records"]), (Some(3), &before.as_str().into(), &1.into()));
    assert!(verified["findings"][0]["detail"].as_str().unwrap().contains("no record has the given hash"), "{verified}");
    for bad in ["", "abc", &"x".repeat(64)] {
        assert_eq!(cli.run(&["audit", "verify", "--head", bad]).code, Some(2), "{bad}");
    }
}
