use std::process::{Child, Command};
use std::time::Instant;

use rusqlite::Connection;
use serde_json::Value;

use super::{Cli, RunOutput, TIMEOUT, assert_prints, fixture};

/// Creates a store with threads of two tenants, an erased message, a preference, and an audit log with the record of the
/// erasure.
fn two_tenants() -> Cli {
    let cli = Cli::with_garden();
    cli.out(&["append", "web:shop", "Is it open?", "--create", "--tenant", "globex"]);
    cli.out(&["append", "web:garden", "Erase me."]);
    let seq = cli.json(&["show", "web:garden"])["thread"]["seq"].to_string();
    cli.out(&["erase", "--message", "web:garden", &seq, "--yes"]);
    cli
}

fn everything(cli: &Cli, store: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for tenant in ["local", "globex"] {
        let exported = cli.out(&["export", "--as-tenant", "--store", store, "--tenant", tenant]);
        lines.extend(exported.lines().skip(1).map(str::to_owned));
    }
    lines
}

#[test]
fn migrate_copies_and_verifies_everything() {
    let cli = two_tenants();
    let before = everything(&cli, "store.db");
    assert_prints!(cli, "migrate", without_hash(cli.run(&["migrate", "--from", "store.db", "--to", "new.db"])));
    assert_eq!(everything(&cli, "new.db"), before);
    assert_eq!(everything(&cli, "store.db"), before);
    assert_eq!(cli.run(&["check", "--store", "new.db"]).code, Some(0));
    assert!(cli.out(&["search", "tomatoes", "--store", "new.db"]).contains("omato"));
    let again = cli.run(&["migrate", "--from", "store.db", "--to", "sqlite:new.db"]);
    assert!(again.out.starts_with("copied 0 threads, 0 messages, 0 records; 4 threads"), "{again}");
    let verified = cli.json(&["migrate", "--from", "store.db", "--to", "new.db", "--verify-only"]);
    assert_eq!(verified.get("copied"), None);
    assert_eq!(verified["verified"]["source"], verified["verified"]["target"]);
    assert_eq!(verified["verified"]["source"]["tombstones"], 1);
    assert_prints!(cli, "migrate_json", hashed(&verified));
}

fn without_hash(mut output: RunOutput) -> RunOutput {
    let hash = output.out.split("hash: ").nth(1).unwrap()[..64].to_owned();
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    output.out = output.out.replace(&hash, "[hash]");
    output
}

fn hashed(verified: &Value) -> String {
    let hash = verified["verified"]["source"]["hash"].as_str().unwrap();
    verified.to_string().replace(hash, "[hash]")
}

#[test]
fn conflicting_data_is_rejected_before_anything_is_written() {
    let cli = two_tenants();
    cli.out(&["migrate", "--from", "store.db", "--to", "new.db"]);
    cli.out(&["append", "web:garden", "Only here.", "--store", "new.db"]);
    cli.out(&["append", "web:late", "Not there yet.", "--create"]);
    let before = everything(&cli, "new.db");
    let output = cli.run(&["migrate", "--from", "store.db", "--to", "new.db"]);
    assert_prints!(cli, "migrate_refused", output);
    assert_eq!(everything(&cli, "new.db"), before);
    let refused = cli.run(&["migrate", "--from", "store.db", "--to", "new.db", "--json"]);
    assert_eq!(refused.code, Some(1));
    let json: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(json["in_the_way"]["count"], 1);
    let compared = cli.run(&["migrate", "--from", "store.db", "--to", "new.db", "--verify-only"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    assert!(compared.out.contains("2 differences found"), "{compared}");
}

#[test]
fn stores_are_not_migrated_into_themselves() {
    let cli = Cli::with_garden();
    let same = cli.run(&["migrate", "--from", "store.db", "--to", "sqlite:./store.db"]);
    assert!(same.code == Some(2) && same.err.contains("the same store"), "{same}");
    let missing = cli.run(&["migrate", "--from", "missing.db", "--to", "new.db"]);
    assert!(missing.code == Some(1) && !cli.path("new.db").exists(), "{missing}");
    let nothing = cli.run(&["migrate", "--from", "store.db", "--to", "new.db", "--verify-only"]);
    assert!(nothing.code == Some(1) && !cli.path("new.db").exists(), "{nothing}");
}

/// Creates a store with a thread that consists of many chunks, and many other threads.
fn large() -> Cli {
    let cli = Cli::new();
    let turns = (0..6_000).map(|turn| format!(r#"{{"role":"user","content":"Turn {turn}."}}"#)).collect::<Vec<_>>();
    let mut text = format!("{{\"messages\":[{}]}}\n", turns.join(","));
    for number in 0..200 {
        text += &format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"Conversation {number}.\"}}]}}\n");
    }
    let output = cli.run_with_input(&["import", "-"], text.as_bytes());
    assert_eq!(output.code, Some(0), "{output}");
    cli
}

/// Creates a target in which a migration hangs in the middle of the long thread.
fn hanging_target(cli: &Cli) -> Connection {
    cli.out(&["append", "--create", "elsewhere", "Here first.", "--tenant", "globex", "--store", "new.db"]);
    let target = Connection::open(cli.path("new.db")).unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    let trigger = format!(
        "CREATE TRIGGER hang BEFORE INSERT ON messages WHEN NEW.position & 4294967295 = 4000 \
         BEGIN SELECT ({endless}); END"
    );
    target.execute_batch(&trigger).unwrap();
    target
}

fn wait_for_half_a_thread(target: &Connection, child: &mut Child) {
    let began = Instant::now();
    let half = "SELECT count(*) FROM messages JOIN threads ON no = position >> 32 WHERE restoring = 1";
    while target.query_row(half, [], |row| row.get::<_, i64>(0)).unwrap() < 1_000 {
        assert_eq!(child.try_wait().unwrap(), None, "the migration ended too early");
        assert!(began.elapsed() < TIMEOUT, "no thread was copied halfway");
    }
}

#[test]
fn killed_migrations_resume() {
    let cli = large();
    let migrate = ["migrate", "--from", "store.db", "--to", "new.db"];
    let target = hanging_target(&cli);
    let mut child = cli.command(&migrate).spawn().unwrap();
    wait_for_half_a_thread(&target, &mut child);
    let kill = Command::new("kill").args(["-KILL", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), None);
    target.execute_batch("DROP TRIGGER hang").unwrap();
    drop(target);
    let copied = cli.json(&["stats", "--store", "new.db"])["threads"].as_u64().unwrap();
    assert!(copied < 201, "{copied}");
    assert_eq!(cli.run(&["check", "--store", "new.db"]).code, Some(0), "an incomplete thread does not count");

    let moved = cli.json(&migrate);
    assert_eq!(moved["already_there"]["threads"], copied);
    assert_eq!(moved["copied"]["threads"], 201 - copied);
    assert_eq!(moved["verified"]["differences"]["count"], 0);
    assert_eq!(moved["verified"]["source"], moved["verified"]["target"]);
    let exported = |store: &str| {
        let mut lines: Vec<String> =
            cli.out(&["export", "--store", store]).lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(exported("new.db"), exported("store.db"));
    assert_eq!(cli.run(&["check", "--store", "new.db"]).code, Some(0));
}

#[test]
fn jsonl_backups_restore_into_any_store() {
    let cli = two_tenants();
    let before = everything(&cli, "store.db");
    for name in ["monday.jsonl", "monday.jsonl.gz"] {
        let backed_up = cli.json(&["backup", name]);
        assert_eq!((&backed_up["threads"], &backed_up["messages"]), (&4.into(), &12.into()));
        let target = format!("{name}.db");
        let output = cli.run(&["restore", name, "--store", &target]);
        assert_eq!(output.code, Some(0), "{output}");
        assert_eq!(everything(&cli, &target), before);
        let compared = cli.json(&["migrate", "--from", "store.db", "--to", &target, "--verify-only"]);
        assert_eq!(compared["verified"]["differences"]["count"], 0);
        // Restoring again changes nothing and never overwrites data.
        let again = cli.json(&["restore", name, "--store", &target]);
        assert_eq!((&again["copied"]["threads"], &again["already_there"]["threads"]), (&0.into(), &4.into()));
        assert_eq!(cli.run(&["backup", name]).code, Some(1));
    }
    let text = std::fs::read_to_string(cli.path("monday.jsonl")).unwrap();
    assert!(text.starts_with(r#"{"threadkeep_backup":{"version":1,"#), "{text}");
    cli.file("cut.jsonl", &text[..text.len() - 40]);
    cli.file("altered.jsonl", text.replace("Is it open?", "Is it shut?"));
    for name in ["cut.jsonl", "altered.jsonl"] {
        let output = cli.run(&["restore", name, "--store", "fresh.db"]);
        assert!(
            output.code == Some(3) && output.err.contains("backup is corrupt") | output.err.contains("corrupt: backup"),
            "{output}"
        );
        assert!(!cli.path("fresh.db").exists());
    }
    let elsewhere = cli.run(&["backup", "--store", "memory:", "monday.db"]);
    assert!(elsewhere.code == Some(2) && elsewhere.err.contains("FILE.jsonl.gz"), "{elsewhere}");
    assert_eq!(cli.run(&["backup", "--store", "memory:", "empty.jsonl"]).code, Some(0));
    let export = cli.run(&["restore", fixture("garden.jsonl").to_str().unwrap(), "--store", "imported.db"]);
    assert!(export.out.starts_with("imported 2 threads"), "{export}");
}
