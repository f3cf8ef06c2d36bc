//! Damaged stores: commands report the damage in their output and exit code, and process the readable data.

use super::{Cli, RunOutput};

/// Creates a store in which one message was changed on disk, in a thread of its own.
fn damaged() -> Cli {
    let cli = Cli::with_garden();
    cli.out(&["append", "web:shop", "The bill says msg<4321>.", "--create"]);
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    let sql = "UPDATE messages SET body = replace(body, 'msg<4321>', 'msg<9999>') WHERE body LIKE '%msg<4321>%'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    cli
}

fn assert_reported(output: &RunOutput, code: i32) {
    assert_eq!(output.code, Some(code), "{output}");
    assert!(output.out.contains("checksum mismatch"), "{output}");
    assert!(!output.out.contains("msg<") && !output.err.contains("msg<"), "message text is quoted: {output}");
}

#[test]
fn changed_messages_are_detected_and_copied_with_a_warning() {
    let cli = damaged();
    let checked = cli.run(&["check"]);
    assert_reported(&checked, 1);
    assert!(checked.out.contains("1 thread of 3 is damaged") && checked.err.contains("--salvage"), "{checked}");
    let backed_up = cli.run(&["backup", "monday.db"]);
    assert_reported(&backed_up, 3);
    assert_reported(&cli.run(&["check", "--store", "monday.db"]), 1);
    let json = cli.run(&["backup", "tuesday.db", "--json"]);
    assert_eq!(json.code, Some(3), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["findings"][0]["severity"], "damage", "{json}");
}

#[test]
fn backups_and_migrations_continue_after_damage() {
    let cli = damaged();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    // An unreadable row in another thread.
    let sql = "UPDATE messages SET body = CAST(x'3175ff22' AS TEXT) WHERE position & 4294967295 = 5";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    drop(database);
    let backed_up = cli.run(&["backup", "monday.jsonl"]);
    assert_reported(&backed_up, 3);
    assert!(backed_up.out.contains("position 5"), "{backed_up}");
    let moved = cli.run(&["migrate", "--from", "store.db", "--to", "new.db"]);
    assert_reported(&moved, 3);
    assert!(moved.out.contains("verified: both stores contain 3 threads"), "{moved}");
    let restored = cli.run(&["restore", "monday.jsonl", "--store", "other.db"]);
    assert_reported(&restored, 3);
    // All readable messages are copied. The copies report the damage as well.
    for store in ["new.db", "other.db"] {
        assert_eq!(cli.json(&["stats", "--store", store])["messages"], 9, "{store}");
        let checked = cli.run(&["check", "--store", store]);
        assert_reported(&checked, 1);
        assert!(checked.out.contains("position 5"), "{checked}");
    }
}

#[test]
fn readable_data_of_a_malformed_file_is_salvaged() {
    let cli = Cli::with_garden();
    for number in 0..40 {
        cli.out(&["append", "long", &format!("{number} {}", "filler ".repeat(80)), "--create"]);
    }
    cli.out(&["vacuum"]);
    let sound = std::fs::read(cli.store()).unwrap();
    // The page that contains the last of the long messages.
    let offset = sound.windows(10).rposition(|window| window == b"39 filler ").unwrap();
    let mut damaged = sound.clone();
    damaged[offset / 4096 * 4096..][..4096].fill(0xa5);
    std::fs::write(cli.store(), damaged).unwrap();
    let checked = cli.run(&["check"]);
    assert_eq!(checked.code, Some(1), "{checked}");
    assert!(checked.out.contains("table messages") && checked.out.contains("missing or cannot be read"), "{checked}");
    let salvaged = cli.run(&["check", "--salvage", "new.db"]);
    assert_eq!(salvaged.code, Some(3), "{salvaged}");
    assert!(salvaged.out.contains("lost in thread") && salvaged.out.contains("salvaged 3 threads"), "{salvaged}");
    let count = cli.json(&["stats", "--store", "new.db"])["messages"].as_u64().unwrap();
    assert!((9 + 20..9 + 40).contains(&count), "{count} messages");
    let again = cli.run(&["check", "--salvage", "new.db"]);
    assert!(again.code == Some(1) && again.err.contains("already exists"), "{again}");
    let lines = cli.run(&["check", "--salvage", "new.jsonl", "--json"]);
    assert_eq!(lines.code, Some(3), "{lines}");
    let json: serde_json::Value = serde_json::from_str(&lines.out).unwrap();
    assert_eq!(json["messages"].as_u64(), Some(count), "{json}");
    // A truncated file is not a valid store, but its remaining data can be salvaged.
    std::fs::write(cli.store(), &sound[..sound.len() * 3 / 4 / 4096 * 4096]).unwrap();
    let checked = cli.run(&["check"]);
    assert!(checked.code == Some(1) && checked.out.contains("damage"), "{checked}");
    let cut = cli.run(&["check", "--salvage", "cut.db"]);
    assert_eq!(cut.code, Some(3), "{cut}");
    assert!(cli.path("cut.db").exists(), "{cut}");
}
