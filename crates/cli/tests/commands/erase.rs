use super::{Cli, assert_prints};

const MARKER: &str = "zanzibarquokka";

fn with_marker() -> Cli {
    let cli = Cli::with_garden();
    cli.out(&["append", "secret", &format!("The word is {MARKER}, keep it."), "--create"]);
    cli.out(&["append", "secret", "Something harmless."]);
    cli.out(&["append", "web:garden", "The carrots are up."]);
    assert_eq!(cli.json(&["search", MARKER])["hits"].as_array().unwrap().len(), 1);
    assert!(cli.contains_bytes(MARKER.as_bytes()), "contains_bytes finds stored text");
    cli
}

#[test]
fn erased_threads_leave_no_bytes() {
    let cli = with_marker();
    assert_prints!(cli, "erase_thread", cli.run(&["erase", "secret", "--yes"]));
    assert!(!cli.contains_bytes(MARKER.as_bytes()));
    assert_eq!(cli.run(&["show", "secret"]).code, Some(1));
    assert_eq!(cli.message_count(), 10);
    assert_eq!(cli.run(&["check"]).code, Some(0));
}

#[test]
fn erased_messages_leave_a_gap_but_no_bytes() {
    let cli = with_marker();
    assert_prints!(cli, "erase_message_json", cli.run(&["erase", "--message", "secret", "1", "--yes", "--json"]));
    // The title was derived from the message, and the index contained the words of the message.
    assert!(!cli.contains_bytes(MARKER.as_bytes()));
    let shown = cli.json(&["show", "secret"]);
    assert_eq!((&shown["messages"][0]["seq"], &shown["messages"][1]), (&2.into(), &serde_json::Value::Null));
    let again = cli.run(&["erase", "--message", "secret", "1", "--yes"]);
    assert!(again.code == Some(1) && again.err.contains("message `1` not found"), "{again}");
    let id = shown["messages"][0]["id"].as_str().unwrap();
    assert_eq!(cli.out(&["erase", "--message", "secret", id, "--yes"]), "erased 1 message\n");
}

#[test]
fn erase_everything_does_not_affect_other_users() {
    let cli = with_marker();
    cli.out(&["append", "theirs", "Keep me", "--create", "--user", "bea"]);
    assert_prints!(cli, "erase_everything", cli.run(&["erase", "--everything", "--yes"]));
    assert!(!cli.contains_bytes(MARKER.as_bytes()));
    assert_eq!(cli.json(&["stats", "--as-tenant"])["messages"], 1);
    assert_eq!(cli.json(&["show", "theirs", "--user", "bea"])["messages"][0]["parts"][0]["text"], "Keep me");
}

#[test]
fn shared_messages_are_erased_only_on_request() {
    let cli = Cli::new();
    cli.out(&["append", "channel", "I live at 4 Elm Road", "--author", "ana", "--create", "--as-tenant"]);
    cli.out(&["append", "channel", "Noted.", "--role", "assistant", "--as-tenant"]);
    assert_eq!(cli.run(&["erase", "--everything", "--shared-messages", "--user", "ana", "--yes"]).code, Some(2));
    let erase = ["erase", "--everything", "--shared-messages", "--as-tenant", "--user", "ana", "--yes"];
    assert_eq!(cli.out(&erase), "erased 1 message in shared threads\n");
    assert!(!cli.contains_bytes(b"4 Elm Road"));
    assert_eq!(cli.json(&["show", "channel", "--as-tenant"])["messages"][0]["parts"][0]["text"], "Noted.");
}

#[test]
fn erase_requires_confirmation() {
    let cli = Cli::with_garden();
    for arguments in
        [&["erase", "web:garden"][..], &["erase", "--everything"], &["erase", "--message", "web:garden", "1"]]
    {
        let output = cli.run(arguments);
        assert!(output.code == Some(2) && output.err.contains("add --yes"), "{output}");
    }
    for arguments in [&["erase"][..], &["erase", "--yes"], &["erase", "web:garden", "--everything", "--yes"]] {
        assert_eq!(cli.run(arguments).code, Some(2), "{arguments:?}");
    }
    assert_eq!(cli.run(&["erase", "unknown", "--yes"]).code, Some(1));
    assert_eq!(cli.run(&["erase", "--message", "web:garden", "first", "--yes"]).code, Some(1));
    assert_eq!(cli.message_count(), 9);
}

#[test]
fn bytes_that_a_reader_locks_are_reported_and_removed_later() {
    let cli = with_marker();
    let reader = rusqlite::Connection::open(cli.store()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count: i64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 12);
    let output = cli.run(&["erase", "secret", "--yes"]);
    assert!(
        output.code == Some(3) && output.err.contains("erased, but some bytes remain in the store's files"),
        "{output}"
    );
    assert_eq!(cli.run(&["show", "secret"]).code, Some(1));
    reader.execute_batch("ROLLBACK").unwrap();
    cli.out(&["vacuum"]);
    assert!(!cli.contains_bytes(MARKER.as_bytes()));
}

#[test]
fn imports_do_not_restore_erased_data() {
    let cli = Cli::with_garden();
    cli.out(&["export", "-o", "all.jsonl"]);
    cli.out(&["erase", "--message", "web:garden", "5", "--yes"]);
    cli.out(&["erase", "019dd000-0000-7000-8000-000000000002", "--yes"]);
    let again = cli.run(&["import", "all.jsonl"]);
    assert_eq!((again.code, again.err.matches("erased within the last seven days").count()), (Some(1), 1), "{again}");
    assert!(again.err.contains("(019dd000-0000-7000-8000-000000000002)"), "{again}");
    assert_eq!(cli.message_count(), 6);
}
