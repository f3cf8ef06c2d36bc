use super::{Cli, assert_prints};

#[test]
fn append_adds_a_message() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "append", cli.run(&["append", "web:garden", "Sown."]).out.replace("019dd", "01xdd"));
    assert_prints!(cli, "append_json", cli.run(&["append", "web:garden", "Up!", "--author", "Lea", "--json"]));
    let shown = cli.json(&["show", "web:garden", "--limit", "2"]);
    assert_eq!(shown["messages"][0]["parts"][0]["text"], "Sown.");
    assert_eq!((&shown["messages"][1]["author"], &shown["messages"][1]["role"]), (&"Lea".into(), &"user".into()));
}

#[test]
fn append_reads_standard_input_without_a_text() {
    let cli = Cli::with_garden();
    for (arguments, input, expected) in [
        (&["append", "web:garden"][..], &b"from a pipe\n"[..], "from a pipe"),
        (&["append", "web:garden", "-", "--role", "assistant"], b"two\nlines\r\n", "two\nlines"),
        (&["append", "web:garden", "--", "-x"], b"", "-x"),
    ] {
        let output = cli.run_with_input(arguments, input);
        assert_eq!(output.code, Some(0), "{output}");
        assert_eq!(cli.json(&["show", "web:garden", "-n1"])["messages"][0]["parts"][0]["text"], expected);
    }
    let binary = cli.run_with_input(&["append", "web:garden"], b"\xff\xfe\x00");
    assert_eq!((binary.code, binary.err.as_str()), (Some(1), "error: standard input is not UTF-8 text\n"));
}

#[test]
fn repeated_keys_append_once() {
    let cli = Cli::with_garden();
    let append = |text: &str| cli.run(&["append", "web:garden", text, "--key", "rent-may"]);
    assert_eq!(append("Pay rent").out, "added message #8 to 019dd000-0000-7000-8000-000000000001\n");
    assert_eq!(append("Pay rent").out, "already added as message #8 of 019dd000-0000-7000-8000-000000000001\n");
    let other = append("Pay the rent");
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("already used for a different request") && other.err.contains("new --key"), "{other}");
    assert_eq!(cli.message_count(), 10);
    cli.out(&["erase", "--message", "web:garden", "8", "--yes"]);
    let erased = append("Pay rent");
    assert!(erased.code == Some(1) && erased.err.contains("has since been erased"), "{erased}");
}

#[test]
fn threads_are_created_only_on_request() {
    let cli = Cli::new();
    let output = cli.run(&["append", "notes", "Hello"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(!cli.store().exists(), "an invalid command does not create a store");
    let output = cli.run(&["append", "notes", "Hello", "--create"]);
    assert!(output.out.ends_with(" (new)\n"), "{output}");
    assert_eq!(cli.json(&["append", "notes", "Again", "--create"])["created"], false);
    assert_eq!(cli.run(&["append", "other", "Hello"]).code, Some(1));
    let threads = cli.json(&["threads"]);
    assert_eq!((&threads["threads"][0]["key"], &threads["threads"][0]["messages"]), (&"notes".into(), &2.into()));
}

#[test]
fn invalid_messages_are_rejected() {
    let cli = Cli::with_garden();
    for empty in ["", " \n\t"] {
        let output = cli.run(&["append", "web:garden", empty]);
        assert_eq!((output.code, output.err.lines().next()), (Some(1), Some("error: the message is empty")));
    }
    let large = cli.run_with_input(&["append", "web:garden"], "x".repeat(5 << 20).as_bytes());
    assert_eq!(large.code, Some(1));
    assert!(large.err.contains("exceeds the maximum of 4194304"), "{large}");
    let nul = cli.run_with_input(&["append", "web:garden"], b"a\0b");
    assert!(nul.code == Some(1) && nul.err.contains("NUL"), "{nul}");
    assert_eq!(cli.message_count(), 9);
}

#[test]
fn rejected_messages_create_no_thread() {
    let cli = Cli::new();
    let long = "x".repeat(501);
    let create = |cli: &Cli, more: &[&str], input: &[u8]| {
        let output = cli.run_with_input(&[&["append", "notes", "--create"], more].concat(), input);
        assert_eq!(output.code, Some(1), "{output}");
    };
    for store_exists in [false, true] {
        if store_exists {
            cli.out(&["append", "other", "Hello", "--create"]);
        }
        create(&cli, &[], b"a\0b");
        create(&cli, &[], "x".repeat(5 << 20).as_bytes());
        create(&cli, &["fine", "--author", &long], b"");
        create(&cli, &["fine", "--key", &long], b"");
        assert_eq!(cli.store().exists(), store_exists, "an invalid command does not create a store");
    }
    let threads = cli.json(&["threads"]);
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1);
}
