//! `threadkeep mcp` with the official Python client, and the examples of docs/mcp.md.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{Cli, fixture};

const DOCS: &str = include_str!("../../../../docs/mcp.md");
const DEFAULT_TOOLS: [&str; 6] =
    ["search_memory", "recall", "read_thread", "add_memory", "update_memory", "delete_memory"];

/// Returns the Python interpreter with the official client; `None` if tests with Python are skipped because it is not available.
/// The test summary reports that.
fn python() -> Option<PathBuf> {
    let is_skipped =
        std::env::var("THREADKEEP_LEFT_OUT").is_ok_and(|names| names.split(',').any(|name| name == "python"));
    let test = std::env::current_exe().unwrap();
    let python = test.ancestors().nth(3).unwrap().join("python/bin/python");
    assert!(is_skipped || python.exists(), "`cargo xtask test` installs the client into {}", python.display());
    (!is_skipped).then_some(python)
}

/// Runs a part of the script with the settings of `cli`. The client starts the program with `arguments`.
fn run_client(cli: &Cli, part: &str, arguments: &[&str], options: &[&str]) -> Option<Value> {
    let mut command = Command::new(python()?);
    let program = cli.command(&[]);
    command.arg(fixture("mcp/client.py")).args([part, env!("CARGO_BIN_EXE_threadkeep")]);
    command.arg(json!(arguments).to_string()).args(options).current_dir(cli.folder.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Runs a part of the script with the current protocol, and with the handshake of earlier versions.
fn run_both(part: &str, check: impl Fn(Value, &str)) {
    for (options, mode) in [(&[][..], "auto"), (&["--legacy"], "legacy")] {
        if let Some(result) = run_client(&Cli::new(), part, &["mcp"], options) {
            check(result, mode);
        }
    }
}

#[test]
fn official_client_stores_finds_updates_and_deletes_across_sessions() {
    run_both("session", |result, mode| {
        let tuesdays = format!("The {mode} release train leaves on Tuesdays.");
        let refused = "memory not found; only memories stored by add_memory and not deleted can be changed";
        assert_eq!(
            result,
            json!({
                "tools": DEFAULT_TOOLS,
                "first": [tuesdays],
                "around": [tuesdays],
                "recalled": [tuesdays],
                "second": [format!("The {mode} release train leaves on Fridays.")],
                "foreign": [[], refused],
                "deleted": true,
                "third": [],
            })
        );
    });
}

#[test]
fn official_client_makes_30_calls_at_once() {
    run_both("at_once", |result, _| assert_eq!(result, json!({ "ids": 30, "hits": 30 })));
}

#[test]
fn hostile_calls_get_errors_and_the_server_continues() {
    run_both("hostile", |result, _| {
        let expected = json!([
            [true, "invalid argument query: has 1000000 char"],
            [true, "invalid argument limit: invalid type: fl"],
            [true, "invalid argument query: invalid type: ma"],
            [true, "invalid argument text: has 16001 charact"],
            [true, "invalid text: contains a NUL character"],
            [true, "thread not found; name it by its id or k"],
            [true, "memory not found; only memories stored b"],
            ["MCPError", "unknown tool `decide_approval`; tools/li"],
        ]);
        assert_eq!((&result["results"], &result["alive"]), (&expected, &json!([])));
    });
}

/// Sends lines to the program, and returns the lines that it prints.
fn lines(cli: &Cli, arguments: &[&str], input: &str) -> Vec<String> {
    let output = cli.run_with_input(arguments, input.as_bytes());
    assert_eq!(output.code, Some(0), "{output}");
    output.out.lines().map(str::to_owned).collect()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let cli = Cli::new();
    let add =
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add_memory","arguments":{"text":"x1"}}}"#;
    let input = format!("{INITIALIZE}\n{}\n{add}\n", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let answers = lines(&cli, &["mcp"], &input);
    let answers: Vec<Value> = answers.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    assert_eq!(cli.message_count(), 1);
    // The memory records which program stored it.
    assert_eq!(cli.json(&["show", "memories"])["messages"][0]["metadata"]["memory"]["client"], json!("test"));
}

#[test]
fn standard_output_contains_nothing_but_the_protocol() {
    let cli = Cli::new();
    for input in ["", "not json\n", "{}\n[1,2]\n\u{7f}\n"] {
        for line in cli.run_with_input(&["mcp"], input.as_bytes()).out.lines() {
            assert_eq!(serde_json::from_str::<Value>(line).unwrap()["jsonrpc"], json!("2.0"), "{line}");
        }
    }
}

#[test]
fn tools_are_selected_by_name() {
    let cli = Cli::with_garden();
    let list = |arguments: &[&str]| -> Vec<String> {
        let input = format!("{INITIALIZE}\n{}\n", r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
        let answers = lines(&cli, &[&["mcp"], arguments].concat(), &input);
        let answer: Value = serde_json::from_str(answers.last().unwrap()).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list(&[]), DEFAULT_TOOLS);
    assert_eq!(list(&["--read-only"]), ["search_memory", "recall", "read_thread"]);
    assert_eq!(list(&["--tools", "list_threads,recall"]), ["recall", "list_threads"]);
    let output = cli.run(&["mcp", "--tools", "approve"]);
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.err.contains("unknown tool `approve`; the tools are search_memory"), "{output}");
    let output = cli.run(&["mcp", "--tools", "add_memory", "--read-only"]);
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.err.contains("no tool is selected"), "{output}");
}

/// Returns the code blocks of a language in the documentation.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    DOCS.split(fence.as_str()).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

/// Replaces the ids of threads.
fn without_ids(text: &str) -> String {
    text.lines().map(|line| line.split(" of 0").next().unwrap_or_default().trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn documented_commands_find_a_decision_of_march() {
    let cli = Cli::new();
    cli.file("conversations.json", std::fs::read(fixture("mcp/conversations.json")).unwrap());
    let mut runs = 0;
    for step in blocks("console").iter().flat_map(|block| block.split("$ threadkeep ").skip(1)) {
        let (command, expected) = step.split_once('\n').unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(without_ids(&cli.out(&words)), without_ids(expected), "{command}");
        runs += 1;
    }
    assert_eq!(runs, 2);
    let config: Value = serde_json::from_str(blocks("json")[0]).unwrap();
    let server = &config["mcpServers"]["threadkeep"];
    assert_eq!(server["command"], json!("threadkeep"));
    let arguments: Vec<&str> = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    if let Some(found) = run_client(&cli, "find", &arguments, &[]) {
        assert_eq!(found, json!("Decision: the ledger is a SQLite file, because it has one writer."));
        assert!(DOCS.contains(found.as_str().unwrap()));
    }
}
