//! Erased data stays erased when an older backup is restored.

use std::io::Write;

use serde_json::{Value, json};

use super::{Cli, postgres};

const MARKER: &str = "zanzibarquokka";

/// Creates a store with the marker in each kind of data that can be erased: a thread, a message and a document.
fn with_marked_data() -> Cli {
    let cli = Cli::new();
    fill(&cli);
    cli
}

fn fill(cli: &Cli) {
    cli.out(&["append", "plans", &format!("A thread about the {MARKER}."), "--create"]);
    cli.out(&["append", "talk", &format!("A message about the {MARKER}."), "--create"]);
    cli.out(&["append", "talk", "The carrots are up."]);
    cli.file("notes/pets.md", format!("# Pets\n\nOur {MARKER} eats leaves.\n"));
    cli.out(&["docs", "add", "notes"]);
    std::fs::remove_file(cli.path("notes/pets.md")).unwrap();
}

/// Erases all data that contains the marker, one item at a time.
fn erase_marked_data(cli: &Cli) {
    cli.out(&["erase", "plans", "--yes"]);
    cli.out(&["erase", "--message", "talk", "1", "--yes"]);
    let id = cli.json(&["docs", "list"])["documents"][0]["id"].as_str().unwrap().to_owned();
    cli.out(&["docs", "remove", &id]);
    cli.out(&["vacuum"]);
}

fn texts(cli: &Cli, thread: &str) -> Vec<String> {
    let shown = cli.json(&["show", thread]);
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// Moves a backup out of the folder that `contains_bytes` searches.
fn move_backup_out(cli: &Cli, name: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::rename(cli.path(name), &file).unwrap();
    (folder, file.display().to_string())
}

#[test]
fn erased_items_are_not_restored() {
    for name in ["monday.db", "monday.jsonl.gz"] {
        let cli = with_marked_data();
        cli.out(&["backup", name]);
        let (_folder, backup) = move_backup_out(&cli, name);
        erase_marked_data(&cli);
        assert!(!cli.contains_bytes(MARKER.as_bytes()));
        std::fs::remove_file(cli.store()).unwrap();
        let restored = cli.json(&["restore", &backup, "--yes"]);
        let erasures = &restored["erasures"];
        assert_eq!((&erasures["threads"], &erasures["messages"]), (&json!(1), &json!(2)), "{name}: {restored}");
        assert_eq!((&erasures["documents"], &erasures["users"]), (&json!(1), &json!(0)), "{name}: {restored}");
        assert_eq!(erasures["ledger"], cli.ledger().display().to_string());
        assert_eq!(cli.run(&["show", "plans"]).code, Some(1), "{name}");
        assert_eq!(texts(&cli, "talk"), ["The carrots are up."], "{name}");
        assert_eq!(cli.json(&["docs", "list"])["documents"], json!([]), "{name}");
        assert!(!cli.contains_bytes(MARKER.as_bytes()), "{name}");
        assert_eq!(cli.run(&["check"]).code, Some(0), "{name}");
    }
}

#[test]
fn jsonl_backups_can_be_restored_twice() {
    let cli = with_marked_data();
    cli.out(&["backup", "monday.jsonl"]);
    erase_marked_data(&cli);
    std::fs::remove_file(cli.store()).unwrap();
    let first = cli.json(&["restore", "monday.jsonl"]);
    let second = cli.json(&["restore", "monday.jsonl"]);
    assert_eq!(first["verified"]["source"], second["verified"]["source"]);
    assert_eq!(first["erasures"], second["erasures"]);
}

#[test]
fn erased_users_stay_erased_and_data_they_add_later_is_kept() {
    for name in ["monday.db", "monday.jsonl"] {
        let cli = with_marked_data();
        cli.out(&["append", "theirs", "Keep me", "--create", "--user", "bea"]);
        cli.out(&["backup", name]);
        let (_folder, monday) = move_backup_out(&cli, name);
        cli.out(&["erase", "--everything", "--yes"]);
        cli.out(&["append", "again", "I am back.", "--create"]);
        cli.file("notes/new.md", "# New\n\nOur tortoise eats leaves.\n");
        cli.out(&["docs", "add", "notes"]);
        let tuesday = name.replace("monday", "tuesday");
        cli.out(&["backup", &tuesday]);

        std::fs::remove_file(cli.store()).unwrap();
        let restored = cli.out(&["restore", &monday, "--yes"]);
        assert!(restored.contains("2 threads") && restored.contains("including all data of 1 user"), "{restored}");
        assert_eq!(cli.message_count(), 0, "{name}");
        for start in ["A thread about", "A message about"] {
            assert!(!cli.contains_bytes(format!("{start} the {MARKER}").as_bytes()), "{name}");
        }
        assert_eq!(text_by(&cli, "theirs", "bea"), "Keep me");

        std::fs::remove_file(cli.store()).unwrap();
        let restored = cli.out(&["restore", &tuesday, "--yes"]);
        assert!(restored.contains("nothing in the backup has been erased since"), "{name}: {restored}");
        assert_eq!(texts(&cli, "again"), ["I am back."], "{name}");
        let documents = cli.json(&["docs", "list"])["documents"].as_array().unwrap().len();
        assert_eq!(documents, 1, "{name}");
    }
}

fn text_by(cli: &Cli, thread: &str, user: &str) -> String {
    cli.json(&["show", thread, "--user", user])["messages"][0]["parts"][0]["text"].as_str().unwrap().to_owned()
}

/// After an older backup is restored, the store reassigns the record numbers that it had already assigned after that
/// backup. That the ledger contains such a number must not cause new data to be erased.
#[test]
fn data_written_after_a_restore_is_not_erased() {
    for name in ["monday.db", "monday.jsonl"] {
        let cli = with_marked_data();
        cli.out(&["backup", name]);
        for _ in 0..3 {
            cli.file("notes/pets.md", format!("# Pets\n\nOur {MARKER} eats leaves.\n"));
            cli.out(&["docs", "add", "notes"]);
            let id = cli.json(&["docs", "list"])["documents"][0]["id"].as_str().unwrap().to_owned();
            cli.out(&["docs", "remove", &id]);
        }
        std::fs::remove_file(cli.store()).unwrap();
        cli.out(&["restore", name, "--yes"]);
        assert_eq!(cli.json(&["docs", "list"])["documents"], json!([]), "{name}");
        cli.out(&["docs", "add", "notes"]);
        let later = name.replace("monday", "tuesday");
        cli.out(&["backup", &later]);
        std::fs::remove_file(cli.store()).unwrap();
        cli.out(&["restore", &later, "--yes"]);
        assert_eq!(cli.json(&["docs", "list"])["documents"].as_array().unwrap().len(), 1, "{name}");
    }
}

#[test]
fn erased_shared_messages_are_not_restored() {
    let cli = Cli::new();
    cli.out(&["append", "channel", "I live at 4 Elm Road", "--author", "ana", "--create", "--as-tenant"]);
    cli.out(&["append", "channel", "Noted.", "--role", "assistant", "--as-tenant"]);
    cli.out(&["backup", "monday.jsonl"]);
    let (_folder, backup) = move_backup_out(&cli, "monday.jsonl");
    cli.out(&["erase", "--everything", "--shared-messages", "--as-tenant", "--user", "ana", "--yes"]);
    std::fs::remove_file(cli.store()).unwrap();
    cli.out(&["restore", &backup]);
    assert!(!cli.contains_bytes(b"4 Elm Road"));
    assert_eq!(cli.json(&["show", "channel", "--as-tenant"])["messages"][0]["parts"][0]["text"], "Noted.");
}

#[test]
fn restores_without_a_ledger_are_reported() {
    let cli = with_marked_data();
    cli.out(&["backup", "monday.db"]);
    let output = cli.run(&["restore", "monday.db", "--yes"]);
    assert!(output.code == Some(0) && output.err.contains("there is no erasure ledger"), "{output}");
    cli.out(&["erase", "plans", "--yes"]);
    let output = cli.run(&["restore", "monday.db", "--yes", "--erasure-ledger", "none"]);
    assert!(output.code == Some(0) && output.err.contains("the erasure ledger is disabled"), "{output}");
    assert_eq!(cli.run(&["show", "plans"]).code, Some(0));
    cli.out(&["erase", "plans", "--yes", "--erasure-ledger", "none"]);
    let restored = cli.json(&["restore", "monday.db", "--yes", "--erasure-ledger", "other.jsonl"]);
    assert_eq!(restored["erasures"]["ledger"], Value::Null);
    assert!(!cli.path("other.jsonl").exists(), "reading does not create a ledger");
}

#[test]
fn the_ledger_contains_no_names_and_is_private() {
    let cli = with_marked_data();
    cli.out(&["append", "theirs", "Keep me", "--create", "--user", "beatrix"]);
    let thread = cli.json(&["show", "plans"])["thread"]["id"].as_str().unwrap().to_owned();
    erase_marked_data(&cli);
    cli.out(&["erase", "--everything", "--user", "beatrix", "--yes"]);
    let ledger = std::fs::read_to_string(cli.ledger()).unwrap();
    let (header, erased_items, user_and_thread) = (1, 3, 2);
    assert_eq!(ledger.lines().count(), header + erased_items + user_and_thread, "{ledger}");
    for name in [MARKER, "beatrix", "pets", "plans", "local", "library", thread.as_str(), "store.db"] {
        assert!(!ledger.contains(name), "{name}: {ledger}");
    }
    #[cfg(unix)]
    for file in ["erasures.jsonl", "erasures.jsonl.key"] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(cli.path(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn rejected_erasures_are_not_applied_later() {
    let cli = Cli::new();
    cli.out(&["append", "channel", "For everyone.", "--create", "--as-tenant"]);
    cli.out(&["append", "mine", "Mine.", "--create"]);
    cli.out(&["backup", "monday.jsonl"]);
    let thread = cli.json(&["show", "channel", "--as-tenant"])["thread"]["id"].as_str().unwrap().to_owned();
    assert_eq!(cli.run(&["erase", &thread, "--yes"]).code, Some(1), "users cannot erase shared data");
    assert_eq!(cli.run(&["erase", "--message", &thread, "1", "--yes"]).code, Some(1), "users cannot erase shared data");
    std::fs::remove_file(cli.store()).unwrap();
    cli.out(&["restore", "monday.jsonl"]);
    assert_eq!(cli.json(&["stats", "--as-tenant"])["messages"], 2);
}

#[test]
fn truncated_ledger_lines_are_reported_and_skipped() {
    let cli = with_marked_data();
    cli.out(&["backup", "monday.db"]);
    cli.out(&["erase", "plans", "--yes"]);
    let ledger = std::fs::read_to_string(cli.ledger()).unwrap();
    let last = ledger.trim_end().rsplit('\n').next().unwrap();
    cli.file("erasures.jsonl", format!("{ledger}{}", &last[..last.len() / 2]));
    let output = cli.run(&["restore", "monday.db", "--yes"]);
    assert!(
        output.code == Some(0) && output.err.contains("line 3 of the erasure ledger was truncated by a crash"),
        "{output}"
    );
    assert_eq!(cli.run(&["show", "plans"]).code, Some(1));
    // The next erasure is appended after the truncated line.
    cli.out(&["erase", "--message", "talk", "1", "--yes"]);
    let restored = cli.json(&["restore", "monday.db", "--yes"]);
    assert_eq!(
        (&restored["erasures"]["torn_lines"], &restored["erasures"]["damaged_lines"]),
        (&json!([3]), &json!([]))
    );
    assert_eq!(texts(&cli, "talk"), ["The carrots are up."]);
}

#[test]
fn damaged_ledger_lines_are_reported_and_the_rest_applied() {
    let cli = with_marked_data();
    cli.out(&["backup", "monday.db"]);
    cli.out(&["erase", "plans", "--yes"]);
    cli.out(&["erase", "--message", "talk", "1", "--yes"]);
    // Only one digit of a hash is changed, so that the line remains valid JSON.
    let mut lines: Vec<String> = std::fs::read_to_string(cli.ledger()).unwrap().lines().map(str::to_owned).collect();
    let offset = lines[1].find(r#""thread":{"name":""#).unwrap() + 20;
    let digit = if &lines[1][offset..=offset] == "0" { "1" } else { "0" };
    lines[1].replace_range(offset..=offset, digit);
    cli.file("erasures.jsonl", lines.join("\n") + "\n");
    let output = cli.run(&["restore", "monday.db", "--yes"]);
    assert!(output.code == Some(3) && output.err.contains("line 2 of the erasure ledger is damaged"), "{output}");
    assert_eq!(texts(&cli, "talk"), ["The carrots are up."]);
    assert_eq!(cli.run(&["show", "plans"]).code, Some(0), "the ledger line for this erasure is damaged");
    // A wrong or missing key prevents the restore and further erasures.
    cli.file("erasures.jsonl.key", "0".repeat(64));
    for _ in 0..2 {
        let before = cli.message_count();
        let output = cli.run(&["restore", "monday.db", "--yes"]);
        assert!(output.code == Some(3) && output.err.contains("cannot be used"), "{output}");
        let output = cli.run(&["erase", "talk", "--yes"]);
        assert!(output.code == Some(3) && output.err.contains("nothing was erased"), "{output}");
        assert_eq!(cli.message_count(), before);
        drop(std::fs::remove_file(cli.path("erasures.jsonl.key")));
    }
}

#[test]
fn concurrent_erasures_do_not_lose_entries() {
    const PROCESSES: usize = 4;
    const ERASURES_PER_PROCESS: usize = 6;
    let cli = Cli::new();
    let lines = (0..PROCESSES * ERASURES_PER_PROCESS).map(|number| {
        json!({"messages": [{"role": "user", "content": format!("{MARKER} {number}")}]}).to_string() + "\n"
    });
    cli.run_with_input(&["import", "-"], lines.collect::<String>().as_bytes());
    cli.out(&["backup", "monday.jsonl"]);
    let threads = cli.json(&["threads", "-n", "100"])["threads"].as_array().unwrap().clone();
    let ids: Vec<&str> = threads.iter().map(|thread| thread["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), PROCESSES * ERASURES_PER_PROCESS);
    std::thread::scope(|scope| {
        for part in ids.chunks(ERASURES_PER_PROCESS) {
            scope.spawn(|| part.iter().for_each(|id| erase_with_retries(&cli, id)));
        }
    });
    std::fs::remove_file(cli.store()).unwrap();
    let restored = cli.json(&["restore", "monday.jsonl"]);
    assert_eq!(restored["erasures"]["threads"], json!(PROCESSES * ERASURES_PER_PROCESS));
    assert_eq!(restored["erasures"]["damaged_lines"], json!([]));
    assert_eq!(cli.message_count(), 0);
}

/// On a busy machine, the store can be locked for longer than a command waits.
fn erase_with_retries(cli: &Cli, id: &str) {
    let began = std::time::Instant::now();
    loop {
        let output = cli.run(&["erase", id, "--yes"]);
        if output.code == Some(0) || output.err.contains("erased, but some bytes remain") {
            return;
        }
        assert!(output.err.contains("store unavailable: busy") && began.elapsed() < super::TIMEOUT, "{output}");
    }
}

/// The ledger in the state folder contains the erasures from all stores of one operating-system user. A name in one store does not
/// match the same name in another.
#[test]
fn the_default_ledger_distinguishes_stores() {
    let cli = Cli::new();
    let run = |arguments: &[&str]| {
        let mut command = cli.command(arguments);
        command.env_remove("THREADKEEP_ERASURE_LEDGER").env("XDG_STATE_HOME", cli.path("state"));
        super::RunOutput::from(command.output().unwrap())
    };
    for store in ["one.db", "two.db"] {
        assert_eq!(run(&["append", "plans", "Plans.", "--create", "--store", store]).code, Some(0));
        cli.file("notes/pets.md", "# Pets\n\nOur quokka eats leaves.\n");
        assert_eq!(run(&["docs", "add", "notes", "--store", store]).code, Some(0));
        let backup = format!("{store}.jsonl");
        assert_eq!(run(&["backup", &backup, "--store", store]).code, Some(0));
    }
    assert_eq!(run(&["erase", "--everything", "--yes", "--store", "one.db"]).code, Some(0));
    assert!(cli.path("state/threadkeep/erasures.jsonl").exists());
    // Another store, with the same user and a document with the same name.
    let output = run(&["restore", "two.db.jsonl", "--store", "new.db"]);
    assert!(output.code == Some(0) && output.err.contains("skipped 2 entries for other stores"), "{output}");
    assert!(output.out.contains("nothing in the backup has been erased since"), "{output}");
    // The same store under another path: it is recognised by its threads.
    let output = run(&["restore", "one.db.jsonl", "--store", "moved.db"]);
    assert!(output.code == Some(0) && output.out.contains("1 thread, 1 message, 1 record"), "{output}");
}

#[test]
fn erasures_that_cannot_be_recorded_are_not_carried_out() {
    let cli = with_marked_data();
    cli.file("file", "");
    let nowhere = cli.path("file/ledger.jsonl").display().to_string();
    let output = cli.run(&["erase", "plans", "--yes", "--erasure-ledger", &nowhere]);
    assert!(
        output.code == Some(3) && output.err.contains("the erasure ledger") && output.err.contains(&nowhere),
        "{output}"
    );
    assert_eq!(cli.run(&["show", "plans"]).code, Some(0));
}

#[test]
fn postgres_stores_apply_the_ledger() {
    postgres::with_postgres(|cli| {
        fill(cli);
        cli.out(&["backup", "monday.jsonl"]);
        erase_marked_data(cli);
        cli.out(&["erase", "--everything", "--yes"]);
        // Restored into a file, and into the server from which the backup came.
        let file = cli.path("copy.db").display().to_string();
        for target in [file.as_str(), cli.url.as_deref().unwrap()] {
            let restored = cli.json(&["restore", "monday.jsonl", "--store", target]);
            assert_eq!(restored["erasures"]["threads"], 2, "{target}: {restored}");
            assert_eq!(restored["erasures"]["documents"], 1, "{target}: {restored}");
            assert_eq!(cli.json(&["stats", "--store", target])["messages"], 0, "{target}");
        }
        let mut ledger = std::fs::OpenOptions::new().append(true).open(cli.ledger()).unwrap();
        ledger.write_all(b"{").unwrap();
        let again = cli.json(&["restore", "monday.jsonl"]);
        assert_eq!(again["erasures"]["torn_lines"].as_array().unwrap().len(), 1);
    });
}
