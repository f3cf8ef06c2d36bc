//! Stores that cannot be opened, and command lines that make no sense.

use super::{Cli, Ran, assert_looks};

#[test]
fn a_store_that_is_not_there_is_not_made_by_looking() {
    let cli = Cli::new();
    assert_looks!(cli, "no_store", cli.run(&["threads"]));
    for arguments in [
        &["show", "x"][..],
        &["search", "x"],
        &["recall", "x"],
        &["context", "x"],
        &["context", "--turn", "x"],
        &["stats"],
        &["export"],
        &["erase", "x", "--yes"],
        &["check"],
        &["vacuum"],
        &["append", "x", "y"],
    ] {
        assert_eq!(cli.run(arguments).code, Some(1), "{arguments:?}");
    }
    assert!(!cli.store().exists());
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    let cli = Cli::new();
    let text = "Dear diary, ".repeat(1_000);
    std::fs::write(cli.store(), &text).unwrap();
    assert_looks!(cli, "not_a_database", cli.run(&["append", "notes", "Hello", "--create"]));
    assert_eq!(std::fs::read_to_string(cli.store()).unwrap(), text);
}

#[test]
fn a_number_of_threads_that_is_none_is_refused() {
    let cli = Cli::new();
    for threads in ["many", "0", "-1"] {
        let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0"]);
        let ran = Ran::from(command.env("TOKIO_WORKER_THREADS", threads).output().unwrap());
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.err.contains("TOKIO_WORKER_THREADS is not a number of threads"), "{ran}");
    }
}

#[test]
fn a_store_of_a_later_version_is_refused() {
    let cli = Cli::with_garden();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    assert_looks!(cli, "later_schema", cli.run(&["threads"]));
}

#[test]
fn damaged_pages_are_told_and_not_read_as_something_else() {
    let cli = Cli::with_garden();
    cli.out(&["vacuum"]);
    let mut bytes = std::fs::read(cli.store()).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(cli.store(), bytes).unwrap();
    for arguments in
        [&["threads"][..], &["show", "web:garden"], &["search", "carrots"], &["export"], &["context", "web:garden"]]
    {
        let ran = cli.run(arguments);
        assert_eq!((ran.code, ran.out.lines().count() <= 1), (Some(3), true), "{arguments:?}: {ran}");
        assert!(ran.err.contains("corrupt") && ran.err.contains("hint: `threadkeep check`"), "{ran}");
    }
}

#[test]
fn a_store_that_another_program_holds_is_told_to_be_busy() {
    let cli = Cli::with_garden();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ran = cli.run(&["append", "web:garden", "Hello"]);
    assert_looks!(cli, "busy", ran);
    assert_eq!(cli.json(&["stats"])["messages"], 9, "reading goes on");
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(cli.run(&["append", "web:garden", "Hello"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let cli = Cli::new();
    let ran = cli.run(&["append", "notes", "Hello", "--create", "--store", "/dev/null/notes.db"]);
    assert!(ran.code == Some(3) && ran.err.contains("/dev/null/notes.db cannot be opened"), "{ran}");
    assert!(ran.err.contains("hint: "), "{ran}");
}

#[test]
fn a_wrong_store_url_is_wrong_usage() {
    let cli = Cli::new();
    assert_looks!(cli, "unknown_backend", cli.run(&["threads", "--store", "oracle:somewhere"]));
    for url in ["", "sqlite:", "memory:more"] {
        assert_eq!(cli.run(&["threads", "--store", url]).code, Some(2), "{url}");
    }
    let folder = cli.run(&["threads", "--store", "."]);
    assert!(folder.code == Some(1) && folder.err.contains("is a folder"), "{folder}");
}

#[test]
fn failures_are_json_where_that_is_asked_for() {
    let cli = Cli::with_garden();
    let ran = cli.run(&["show", "unknown", "--json"]);
    assert_looks!(cli, "failure_json", ran);
    assert_eq!(ran.out, "");
}

#[test]
fn wrong_usage_exits_with_2() {
    let cli = Cli::new();
    for arguments in
        [&[][..], &["fly"], &["show"], &["import"], &["completions", "tcl"], &["append", "x", "y", "--role", "human"]]
    {
        let ran = cli.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}");
    }
    let ran = cli.run(&["threads", "--user", ""]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert_eq!(cli.run(&["append", "x", "y", "--create", "--user", ""]).code, Some(1));
    assert!(!cli.store().exists());
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let cli = Cli::with_garden();
    for arguments in [&["export"][..], &["threads"], &["stats", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = super::Ran::from(cli.command(arguments).stdout(full).output().unwrap());
        assert_eq!(ran.code, Some(3), "{ran}");
        assert!(ran.err.contains("the output cannot be written"), "{ran}");
    }
}

#[test]
fn wrong_usage_is_json_where_that_is_asked_for() {
    let cli = Cli::new();
    for (arguments, error) in [
        (&["shwo", "x", "--json"][..], "unrecognized subcommand 'shwo'"),
        (&["--json", "show"], "the following required arguments were not provided: <THREAD>"),
        (&["serve", "--listen", "nowhere", "--json"], "invalid value 'nowhere' for '--listen <ADDRESS>'"),
    ] {
        let ran = cli.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran}");
        let json: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
        assert!(json["error"].as_str().unwrap().starts_with(error), "{json}");
        assert!(json["exit_code"] == 2 && json["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{json}");
    }
    // The store of the environment is given, and not claimed as required.
    let ran = cli.run(&["show"]);
    assert!(ran.err.contains("Usage: threadkeep show [OPTIONS] <THREAD>"), "{ran}");
}

#[test]
fn an_address_that_is_taken_has_a_hint() {
    let cli = Cli::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = cli.run(&["serve", "--listen", &address, "--model", "offline"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.err.contains(&format!("cannot listen on {address}: address already in use")), "{ran}");
    assert!(ran.err.contains("hint: ") && ran.err.contains("--listen"), "{ran}");
    let ran = cli.run(&["serve", "--listen", "no.such.host.invalid:80"]);
    assert!(ran.code == Some(2) && ran.err.contains("unknown host `no.such.host.invalid`"), "{ran}");
}
