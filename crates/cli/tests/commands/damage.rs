//! Damage is named, what can be read goes on, and the exit code tells.

use super::{Cli, Ran};

/// A store with a message whose text was changed behind its back, and the same in a thread of its own.
fn damaged() -> Cli {
    let cli = Cli::with_garden();
    cli.out(&["append", "web:shop", "The bill says msg<4321>.", "--create"]);
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    let sql = "UPDATE messages SET body = replace(body, 'msg<4321>', 'msg<9999>') WHERE body LIKE '%msg<4321>%'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    cli
}

fn assert_named(ran: &Ran, code: i32) {
    assert_eq!(ran.code, Some(code), "{ran}");
    assert!(ran.out.contains("the checksum differs"), "{ran}");
    assert!(!ran.out.contains("msg<") && !ran.err.contains("msg<"), "a text is quoted: {ran}");
}

#[test]
fn a_changed_message_is_found_and_a_copy_of_it_is_kept_and_named() {
    let cli = damaged();
    let checked = cli.run(&["check"]);
    assert_named(&checked, 1);
    assert!(checked.out.contains("1 thread of 3 is damaged") && checked.err.contains("--salvage"), "{checked}");
    let backed_up = cli.run(&["backup", "monday.db"]);
    assert_named(&backed_up, 3);
    assert_named(&cli.run(&["check", "--store", "monday.db"]), 1);
    let json = cli.run(&["backup", "tuesday.db", "--json"]);
    assert_eq!(json.code, Some(3), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["findings"][0]["severity"], "damage", "{json}");
}

#[test]
fn lines_and_migrations_go_on_past_damage() {
    let cli = damaged();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    // A row that cannot even be read, in another thread.
    let sql = "UPDATE messages SET body = CAST(x'3175ff22' AS TEXT) WHERE position & 4294967295 = 5";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    drop(database);
    let backed_up = cli.run(&["backup", "monday.jsonl"]);
    assert_named(&backed_up, 3);
    assert!(backed_up.out.contains("position 5"), "{backed_up}");
    let moved = cli.run(&["migrate", "--from", "store.db", "--to", "new.db"]);
    assert_named(&moved, 3);
    assert!(moved.out.contains("verified: both hold 3 threads"), "{moved}");
    let restored = cli.run(&["restore", "monday.jsonl", "--store", "other.db"]);
    assert_named(&restored, 3);
    // All but the one that cannot be read are there, and the damage is known there, too.
    for store in ["new.db", "other.db"] {
        assert_eq!(cli.json(&["stats", "--store", store])["messages"], 9, "{store}");
        let checked = cli.run(&["check", "--store", store]);
        assert_named(&checked, 1);
        assert!(checked.out.contains("position 5"), "{checked}");
    }
}

#[test]
fn what_can_be_read_of_a_malformed_file_is_brought_out() {
    let cli = Cli::with_garden();
    for number in 0..40 {
        cli.out(&["append", "long", &format!("{number} {}", "filler ".repeat(80)), "--create"]);
    }
    cli.out(&["vacuum"]);
    let sound = std::fs::read(cli.store()).unwrap();
    // The page with the last of the long messages.
    let place = sound.windows(10).rposition(|window| window == b"39 filler ").unwrap();
    let mut damaged = sound.clone();
    damaged[place / 4096 * 4096..][..4096].fill(0xa5);
    std::fs::write(cli.store(), damaged).unwrap();
    let checked = cli.run(&["check"]);
    assert_eq!(checked.code, Some(1), "{checked}");
    assert!(checked.out.contains("table messages") && checked.out.contains("missing or cannot be read"), "{checked}");
    let salvaged = cli.run(&["check", "--salvage", "new.db"]);
    assert_eq!(salvaged.code, Some(3), "{salvaged}");
    assert!(salvaged.out.contains("lost in thread") && salvaged.out.contains("salvaged 3 threads"), "{salvaged}");
    let held = cli.json(&["stats", "--store", "new.db"])["messages"].as_u64().unwrap();
    assert!((9 + 20..9 + 40).contains(&held), "{held} messages");
    let again = cli.run(&["check", "--salvage", "new.db"]);
    assert!(again.code == Some(1) && again.err.contains("there is a file"), "{again}");
    let lines = cli.run(&["check", "--salvage", "new.jsonl", "--json"]);
    assert_eq!(lines.code, Some(3), "{lines}");
    let json: serde_json::Value = serde_json::from_str(&lines.out).unwrap();
    assert_eq!(json["messages"].as_u64(), Some(held), "{json}");
    // A file that was cut is no store any more, and still gives what is left.
    std::fs::write(cli.store(), &sound[..sound.len() * 3 / 4 / 4096 * 4096]).unwrap();
    let checked = cli.run(&["check"]);
    assert!(checked.code == Some(1) && checked.out.contains("damage"), "{checked}");
    let cut = cli.run(&["check", "--salvage", "cut.db"]);
    assert_eq!(cut.code, Some(3), "{cut}");
    assert!(cli.path("cut.db").exists(), "{cut}");
}
