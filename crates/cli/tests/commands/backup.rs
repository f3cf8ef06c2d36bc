use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Cli, assert_prints, fixture};

#[test]
fn backups_are_stores_and_can_be_restored() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "backup", cli.run(&["backup", "monday.db"]));
    assert_eq!(cli.out(&["export", "--store", "monday.db"]).lines().count(), cli.exported().len() + 1);
    let before = cli.exported();
    cli.out(&["append", "web:garden", "Too late for the backup."]);
    assert_prints!(cli, "restore", cli.run(&["restore", "monday.db", "--yes"]));
    assert_eq!(cli.exported(), before);
    assert_eq!(cli.run(&["check"]).code, Some(0));
    // Restore the same backup into a store that does not exist.
    std::fs::remove_file(cli.store()).unwrap();
    assert_eq!(cli.json(&["restore", "monday.db"])["messages"], 9);
    assert_eq!(cli.exported(), before);
}

#[cfg(unix)]
#[test]
fn backups_and_restored_stores_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let cli = Cli::with_garden();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(cli.store(), PermissionsExt::from_mode(0o600)).unwrap();
    cli.out(&["backup", "monday.db"]);
    assert_eq!(mode(&cli.path("monday.db")), 0o600);
    std::fs::set_permissions(cli.path("monday.db"), PermissionsExt::from_mode(0o644)).unwrap();
    cli.out(&["restore", "monday.db", "--yes"]);
    assert_eq!(mode(&cli.store()), 0o600);
}

#[test]
fn backups_never_overwrite_files() {
    let cli = Cli::with_garden();
    cli.file("there.db", "precious");
    let output = cli.run(&["backup", "there.db"]);
    assert!(output.code == Some(1) && output.err.contains("there.db already exists"), "{output}");
    assert_eq!(std::fs::read_to_string(cli.path("there.db")).unwrap(), "precious");
    let nowhere = cli.run(&["backup", "no/such/folder/copy.db"]);
    assert_eq!(nowhere.code, Some(3), "{nowhere}");
    assert_eq!(Cli::new().run(&["backup", "copy.db"]).code, Some(1), "there is nothing to back up");
}

#[test]
fn backups_are_consistent_during_appends() {
    let cli = Cli::with_garden();
    let text = (0..2_000).map(|line| format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"line {line}\"}}]}}\n"));
    cli.run_with_input(&["import", "-"], text.collect::<String>().as_bytes());
    let before = cli.message_count();
    let is_done = AtomicBool::new(false);
    let added = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut added = 0;
            while !is_done.load(Ordering::Relaxed) {
                let output = cli.run(&["append", "web:garden", "And another one."]);
                assert_eq!(output.code, Some(0), "{output}");
                added += 1;
            }
            added
        });
        for name in ["one.db", "two.db", "three.db", "four.jsonl"] {
            let output = cli.run(&["backup", name]);
            assert_eq!(output.code, Some(0), "{output}");
        }
        is_done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(added > 0);
    assert_eq!(cli.message_count(), before + added);
    for name in ["one.db", "two.db", "three.db"] {
        assert_eq!(cli.run(&["check", "--store", name]).code, Some(0));
        let count = cli.json(&["stats", "--store", name])["messages"].as_u64().unwrap();
        assert!((before..=before + added).contains(&count), "{count}");
    }
    let restored = cli.json(&["restore", "four.jsonl", "--store", "four.db"]);
    let count = restored["verified"]["source"]["messages"].as_u64().unwrap();
    assert!((before..=before + added).contains(&count), "{restored}");
}

#[test]
fn backups_report_their_consistency_and_log_growth() {
    let cli = Cli::with_garden();
    for name in ["monday.db", "monday.jsonl", "monday.jsonl.gz"] {
        let backed_up = cli.json(&["backup", name]);
        assert_eq!((&backed_up["as_of"], &backed_up["log_growth_bytes"]), (&"store".into(), &0.into()), "{backed_up}");
    }
    let lines = std::fs::read_to_string(cli.path("monday.jsonl")).unwrap();
    assert!(lines.lines().next().unwrap().contains(r#""as_of":"store""#), "{lines}");
}

#[test]
fn restore_requires_confirmation_to_replace_data() {
    let cli = Cli::with_garden();
    cli.out(&["backup", "monday.db"]);
    cli.out(&["append", "web:garden", "Newer than the backup."]);
    let output = cli.run(&["restore", "monday.db"]);
    assert!(output.code == Some(2) && output.err.contains("add --yes"), "{output}");
    assert_eq!(cli.message_count(), 10);
    assert_eq!(
        cli.run(&["restore", cli.store().to_str().unwrap(), "--yes"]).code,
        Some(2),
        "a store cannot be restored from itself"
    );
}

#[test]
fn invalid_backups_are_rejected_and_the_store_is_unchanged() {
    let cli = Cli::with_garden();
    cli.out(&["backup", "monday.db"]);
    let mut damaged = std::fs::read(cli.path("monday.db")).unwrap();
    let pages = damaged.len() / 4096;
    assert!(pages > 4);
    for page in 2..pages {
        damaged[page * 4096..page * 4096 + 512].fill(0xa5);
    }
    cli.file("damaged.db", damaged);
    cli.file("foreign.db", "");
    let foreign = rusqlite::Connection::open(cli.path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE cats (name TEXT)").unwrap();
    drop(foreign);
    cli.file("cut.db", &std::fs::read(cli.path("monday.db")).unwrap()[..6_000]);
    for name in ["damaged.db", "foreign.db", "cut.db"] {
        let output = cli.run(&["restore", name, "--yes"]);
        assert_eq!(output.code, Some(3), "{name}: {output}");
    }
    for name in ["missing.db", "no.jsonl"] {
        assert_eq!(cli.run(&["restore", name, "--yes"]).code, Some(1), "{name}");
    }
    assert_eq!(cli.message_count(), 9);
    assert_eq!(cli.run(&["check"]).code, Some(0));
}

#[test]
fn restore_never_replaces_files_of_other_programs() {
    let cli = Cli::with_garden();
    cli.out(&["backup", "monday.db"]);
    rusqlite::Connection::open(cli.path("cats.db")).unwrap().execute_batch("CREATE TABLE cats (name TEXT)").unwrap();
    let output = cli.run(&["restore", "monday.db", "--yes", "--store", "cats.db"]);
    assert!(output.code == Some(3) && output.err.contains("another application"), "{output}");
    let cats = rusqlite::Connection::open(cli.path("cats.db")).unwrap();
    assert_eq!(cats.query_row("SELECT count(*) FROM cats", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn restore_replaces_a_damaged_store() {
    let cli = Cli::with_garden();
    cli.out(&["backup", "monday.db"]);
    cli.out(&["vacuum"]);
    let mut bytes = std::fs::read(cli.store()).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(cli.store(), bytes).unwrap();
    let output = cli.run(&["restore", "monday.db", "--yes"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(cli.message_count(), 9);
}

#[test]
fn restore_does_not_replace_a_store_in_use() {
    let cli = Cli::with_garden();
    cli.out(&["backup", "monday.db"]);
    // The store is open in an import that waits for its input.
    let mut other = cli.command(&["import", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = other.stdin.take().unwrap();
    let line = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n";
    std::io::Write::write_all(&mut input, line.repeat(200).as_bytes()).unwrap();
    let began = std::time::Instant::now();
    while cli.message_count() == 9 {
        assert!(began.elapsed() < super::TIMEOUT);
    }
    let output = cli.run(&["restore", "monday.db", "--yes"]);
    assert!(output.code == Some(3) && output.err.contains("is in use"), "{output}");
    drop(input);
    assert_eq!(other.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(cli.message_count(), 209);
}

#[test]
fn restore_imports_an_export() {
    let cli = Cli::new();
    let output = cli.run(&["restore", fixture("garden.jsonl").to_str().unwrap()]);
    assert_eq!((output.code, output.out.as_str()), (Some(0), "imported 2 threads, 9 messages, 1 record\n"), "{output}");
}
