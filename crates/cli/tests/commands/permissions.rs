//! Other users of the machine cannot read the files that the program creates.
#![cfg(unix)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Cli, RunOutput};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

/// Runs the program with a umask that makes new files readable by all users, unless the program restricts them.
fn run_with_open_umask(cli: &Cli, arguments: &[&str]) -> RunOutput {
    let program = cli.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = RunOutput::from(shell.current_dir(cli.path("")).stdin(Stdio::null()).output().unwrap());
    assert_eq!(output.code, Some(0), "{arguments:?}: {output}");
    output
}

#[test]
fn created_files_are_private() {
    let cli = Cli::new();
    let store = cli.path("deep/down/store.db").display().to_string();
    let with_store = |arguments: &[&str]| run_with_open_umask(&cli, &[arguments, &["--store", &store]].concat());
    with_store(&["append", "plans", "Plans.", "--create"]);
    for folder in ["deep", "deep/down"] {
        assert_eq!(mode(&cli.path(folder)), 0o700, "{folder}");
    }
    assert_eq!(mode(Path::new(&store)), 0o600);
    for name in ["monday.db", "monday.jsonl", "monday.jsonl.gz"] {
        with_store(&["backup", name]);
        assert_eq!(mode(&cli.path(name)), 0o600, "{name}");
    }
    with_store(&["export", "-o", "out.jsonl"]);
    assert_eq!(mode(&cli.path("out.jsonl")), 0o600);
    // A backup that others can read is restored to a store that they cannot read.
    std::fs::set_permissions(cli.path("monday.db"), PermissionsExt::from_mode(0o644)).unwrap();
    run_with_open_umask(&cli, &["restore", "monday.db", "--store", "new/store.db"]);
    assert_eq!((mode(&cli.path("new")), mode(&cli.path("new/store.db"))), (0o700, 0o600));
    with_store(&["erase", "plans", "--yes"]);
    run_with_open_umask(
        &cli,
        &["erase", "plans", "--yes", "--store", "new/store.db", "--erasure-ledger", "own/ledger.jsonl"],
    );
    assert_eq!((mode(&cli.path("own")), mode(&cli.path("own/ledger.jsonl"))), (0o700, 0o600));
    assert_eq!(mode(&cli.path("own/ledger.jsonl.key")), 0o600);
}

/// While a store is open, SQLite creates further files next to it.
#[test]
fn the_log_of_a_store_is_private() {
    let cli = Cli::new();
    run_with_open_umask(&cli, &["append", "plans", "Plans.", "--create"]);
    let mut open = cli.command(&["import", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let began = std::time::Instant::now();
    while !(cli.path("store.db-wal").exists() && cli.path("store.db-shm").exists()) {
        assert!(began.elapsed() < super::TIMEOUT);
        std::thread::yield_now();
    }
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(mode(&cli.path(name)), 0o600, "{name}");
    }
    drop(open.stdin.take());
    open.wait().unwrap();
}

#[test]
fn files_that_others_can_read_are_reported() {
    let cli = Cli::with_garden();
    let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    cli.file("secret", "gsk-s3cret");
    open(&cli.path("secret"), 0o640);
    open(&cli.store(), 0o644);
    // No other user can enter the folder.
    open(&cli.path(""), 0o700);
    assert_eq!(cli.json(&["check"])["exposed"], json!([]));
    assert_eq!(cli.run(&["config", "check"]).code, Some(0));
    open(&cli.path(""), 0o755);
    let store = cli.store().display().to_string();
    let exposed = json!({"path": store, "mode": "0644", "fix": format!("chmod 600 {store}")});
    // The log may still exist if the previous command was the last to close the store.
    assert_eq!(cli.json(&["check"])["exposed"][0], exposed);
    let output = cli.run(&["check"]);
    assert!(output.code == Some(0) && output.err.contains("(mode 0644): chmod 600"), "{output}");
    let check = |arguments: &[&str]| {
        RunOutput::from(cli.command(arguments).env("GROQ_API_KEY_FILE", cli.path("secret")).output().unwrap())
    };
    let output = check(&["config", "check"]);
    assert!(output.code == Some(0) && output.out.contains("secret can be read by others (mode 0640)"), "{output}");
    assert!(output.out.contains(&format!("{store} can be read by others (mode 0644): chmod 600 {store}")), "{output}");
    let output = check(&["config", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!((&json["exposed"][1], &json["problems"]), (&exposed, &json!([])));
    // The permissions of existing files are unchanged, and the suggested command fixes them.
    cli.out(&["append", "web:garden", "More."]);
    assert_eq!(mode(&cli.store()), 0o644);
    open(&cli.store(), 0o600);
    open(&cli.path("secret"), 0o600);
    assert!(check(&["config", "check"]).out.ends_with(": no problems found\n"));
}
