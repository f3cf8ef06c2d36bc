//! Stores that cannot be opened, and invalid command lines.

use super::{Cli, RunOutput, assert_prints};

#[test]
fn reading_commands_create_no_store() {
    let cli = Cli::new();
    assert_prints!(cli, "no_store", cli.run(&["threads"]));
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
fn files_of_other_programs_are_not_changed() {
    let cli = Cli::new();
    let text = "Dear diary, ".repeat(1_000);
    std::fs::write(cli.store(), &text).unwrap();
    assert_prints!(cli, "not_a_database", cli.run(&["append", "notes", "Hello", "--create"]));
    assert_eq!(std::fs::read_to_string(cli.store()).unwrap(), text);
}

#[test]
fn invalid_numbers_of_threads_are_rejected() {
    let cli = Cli::new();
    for threads in ["many", "0", "-1"] {
        let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0"]);
        let output = RunOutput::from(command.env("TOKIO_WORKER_THREADS", threads).output().unwrap());
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.err.contains("invalid TOKIO_WORKER_THREADS"), "{output}");
    }
}

#[test]
fn stores_of_later_versions_are_rejected() {
    let cli = Cli::with_garden();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    assert_prints!(cli, "later_schema", cli.run(&["threads"]));
}

#[test]
fn damaged_pages_are_reported() {
    let cli = Cli::with_garden();
    cli.out(&["vacuum"]);
    let mut bytes = std::fs::read(cli.store()).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(cli.store(), bytes).unwrap();
    for arguments in
        [&["threads"][..], &["show", "web:garden"], &["search", "carrots"], &["export"], &["context", "web:garden"]]
    {
        let output = cli.run(arguments);
        assert_eq!((output.code, output.out.lines().count() <= 1), (Some(3), true), "{arguments:?}: {output}");
        assert!(output.err.contains("corrupt") && output.err.contains("hint: `threadkeep check`"), "{output}");
    }
}

#[test]
fn locked_stores_are_reported_as_busy() {
    let cli = Cli::with_garden();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let output = cli.run(&["append", "web:garden", "Hello"]);
    assert_prints!(cli, "busy", output);
    assert_eq!(cli.json(&["stats"])["messages"], 9, "reading still works");
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(cli.run(&["append", "web:garden", "Hello"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn folders_that_cannot_be_created_are_reported() {
    let cli = Cli::new();
    let output = cli.run(&["append", "notes", "Hello", "--create", "--store", "/dev/null/notes.db"]);
    assert!(output.code == Some(3) && output.err.contains("/dev/null/notes.db cannot be opened"), "{output}");
    assert!(output.err.contains("hint: "), "{output}");
}

#[test]
fn invalid_store_urls_are_incorrect_usage() {
    let cli = Cli::new();
    assert_prints!(cli, "unknown_backend", cli.run(&["threads", "--store", "oracle:somewhere"]));
    for url in ["", "sqlite:", "memory:more"] {
        assert_eq!(cli.run(&["threads", "--store", url]).code, Some(2), "{url}");
    }
    let folder = cli.run(&["threads", "--store", "."]);
    assert!(folder.code == Some(1) && folder.err.contains("is a folder"), "{folder}");
}

#[test]
fn failures_are_json_on_request() {
    let cli = Cli::with_garden();
    let output = cli.run(&["show", "unknown", "--json"]);
    assert_prints!(cli, "failure_json", output);
    assert_eq!(output.out, "");
}

#[test]
fn incorrect_usage_exits_with_2() {
    let cli = Cli::new();
    for arguments in
        [&[][..], &["fly"], &["show"], &["import"], &["completions", "tcl"], &["append", "x", "y", "--role", "human"]]
    {
        let output = cli.run(arguments);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{arguments:?}");
    }
    let output = cli.run(&["threads", "--user", ""]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(cli.run(&["append", "x", "y", "--create", "--user", ""]).code, Some(1));
    assert!(!cli.store().exists());
}

#[cfg(target_os = "linux")]
#[test]
fn output_errors_are_failures() {
    let cli = Cli::with_garden();
    for arguments in [&["export"][..], &["threads"], &["stats", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = super::RunOutput::from(cli.command(arguments).stdout(full).output().unwrap());
        assert_eq!(output.code, Some(3), "{output}");
        assert!(output.err.contains("cannot write the output"), "{output}");
    }
}

#[test]
fn incorrect_usage_is_reported_as_json_on_request() {
    let cli = Cli::new();
    for (arguments, error) in [
        (&["shwo", "x", "--json"][..], "unrecognized subcommand 'shwo'"),
        (&["--json", "show"], "the following required arguments were not provided: <THREAD>"),
        (&["serve", "--listen", "nowhere", "--json"], "invalid value 'nowhere' for '--listen <ADDRESS>'"),
    ] {
        let output = cli.run(arguments);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{output}");
        let json: serde_json::Value = serde_json::from_str(&output.err).unwrap();
        assert!(json["error"].as_str().unwrap().starts_with(error), "{json}");
        assert!(json["exit_code"] == 2 && json["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{json}");
    }
    // The environment sets the store, and the usage does not list it as required.
    let output = cli.run(&["show"]);
    assert!(output.err.contains("Usage: threadkeep show [OPTIONS] <THREAD>"), "{output}");
}

#[test]
fn addresses_in_use_are_reported_with_a_hint() {
    let cli = Cli::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = cli.run(&["serve", "--listen", &address, "--model", "offline"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(output.err.contains(&format!("cannot listen on {address}: address already in use")), "{output}");
    assert!(output.err.contains("hint: ") && output.err.contains("--listen"), "{output}");
    let output = cli.run(&["serve", "--listen", "no.such.host.invalid:80"]);
    assert!(output.code == Some(2) && output.err.contains("unknown host `no.such.host.invalid`"), "{output}");
}
