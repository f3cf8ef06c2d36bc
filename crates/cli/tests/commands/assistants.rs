//! Assistants that are defined in YAML.

use super::Cli;

const GARDENER: &str = "kind: Agent\nmetadata:\n  name: gardener\nspec:\n  instructions: You look after a garden.\n  \
                        tools: [recall, search_documents]\n  libraries: [garden]\n  memory:\n";

fn gardener(cli: &Cli, memory: &str) -> String {
    cli.file("assistants/gardener.yaml", format!("{GARDENER}    {memory}\n"))
}

fn run_with_folder(cli: &Cli, arguments: &[&str]) -> super::RunOutput {
    let folder = cli.path("assistants");
    cli.command(arguments).env("THREADKEEP_ASSISTANTS", folder).output().unwrap().into()
}

// S4.38
#[test]
fn yaml_assistants_are_found_by_name_and_by_path() {
    let cli = Cli::new();
    let path = gardener(&cli, "backend: sqlite");
    let output = run_with_folder(&cli, &["ask", "gardener", "The hose leaks.", "--thread", "g", "--json"]);
    let turn: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(turn["agent"], "gardener", "{output}");
    assert!(cli.out(&["ask", &path, "What leaks?", "--thread", "g"]).contains("“The hose leaks.”"));
    assert!(cli.out(&["graph", &path]).starts_with("flowchart TD"));
    assert_eq!(cli.json(&["graph", &path])["tools"], serde_json::json!(["recall", "search_documents"]));
}

// S4.38, S4.40
#[test]
fn assistants_without_persistent_memory_store_nothing() {
    let cli = Cli::new();
    for memory in ["enabled: false", "backend: inmemory"] {
        let path = gardener(&cli, memory);
        let output = cli.run_with_input(&["chat", &path], b"The hose leaks.\nWhat leaks?\n");
        assert!(output.out.contains("“The hose leaks.”") && output.err.contains("not stored"), "{output}");
        assert!(!cli.store().exists(), "{memory}");
    }
}

// S4.35, S4.36
#[test]
fn memory_settings_limit_what_is_stored() {
    let cli = Cli::new();
    let path = gardener(&cli, "{max_messages: 4, context_window: 2, ttl_minutes: 60}");
    for number in 1..=5 {
        cli.out(&["ask", &path, &format!("Bed {number} is weeded."), "--thread", "g", "--now", "2026-05-03T09:00:00Z"]);
    }
    let texts = |arguments: &[&str]| cli.json(arguments)["messages"].as_array().unwrap().len();
    assert_eq!(texts(&["show", "g", "--now", "2026-05-03T09:00:00Z"]), 4);
    let late = ["--now", "2026-05-03T10:01:00Z"];
    let answer = cli.out(&[&["ask", &path, "Which bed is weeded?"], &late[..]].concat());
    assert!(answer.starts_with("I found nothing"), "{answer}");
}

// S4.38
#[test]
fn errors_in_yaml_assistants_name_key_and_line() {
    let cli = Cli::new();
    let path = gardener(&cli, "context_window: 21");
    let output = cli.run(&["chat", &path]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.err.contains("line 9: spec.memory.context_window: 21 is greater than max_messages"), "{output}");
    let path = gardener(&cli, "backend: postgres");
    let output = cli.run(&["chat", &path]);
    assert_eq!(
        (output.code, output.err.contains("spec.memory.backend: postgres needs a store URL")),
        (Some(2), true),
        "{output}"
    );
}

// S1.30, S4.45
#[test]
fn logging_is_opt_in() {
    let cli = Cli::new();
    let mut command = cli.command(&["ask", "The hose leaks."]);
    let quiet = super::RunOutput::from(cli.command(&["ask", "The hose leaks."]).output().unwrap());
    assert_eq!(quiet.err, "stored for one day, outside any conversation; --thread NAME stores it in one\n");
    let output = super::RunOutput::from(command.env("RUST_LOG", "debug").output().unwrap());
    assert!(output.err.contains("Processing natural language input for agent general: 15 chars"), "{output}");
    assert!(!output.err.contains("hose"), "{output}");
    assert!(output.err.contains("Conversation context length: "), "{output}");
    assert!(output.err.contains("INFO") && output.err.contains("configured context provider sources="), "{output}");
    assert_eq!(output.out, "I will keep that in mind.\n");
}

#[test]
fn assistant_names_are_validated() {
    let cli = Cli::new();
    for (name, why) in [
        ("docs", "paths under /docs"),
        ("v1", "paths under /v1"),
        ("general", "built-in assistant"),
        ("'../gardener'", "ASCII letters"),
        ("'<b>gardener</b>'", "ASCII letters"),
        ("a b", "ASCII letters"),
    ] {
        let path = cli.file("named.yaml", format!("kind: Agent\nmetadata:\n  name: {name}\nspec: {{}}\n"));
        let output = cli.run(&["ask", &path, "hello"]);
        let name = name.trim_matches('\'');
        assert_eq!(output.code, Some(1), "{output}");
        assert!(
            output.err.contains("named.yaml") && output.err.contains(&format!("`{name}`")) && output.err.contains(why),
            "{output}"
        );
    }
    let unnamed = cli.file("no name.yaml", "kind: Agent\nspec: {}\n");
    assert!(cli.run(&["ask", &unnamed, "hello"]).err.contains("`no name`"));
}

/// The entry of a server that misbehaves if its tools are called.
fn mcp_server() -> serde_json::Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/external/server.sh");
    serde_json::json!({ "command": "sh", "args": [script, ""], "tools": ["echo", "fail"], "allow": ["echo"] })
}

#[test]
fn tools_of_mcp_servers_are_called_by_name_and_wait_for_approval() {
    let cli = Cli::new();
    let servers = cli.file("mcp.json", serde_json::json!({ "mcpServers": { "test": mcp_server() } }).to_string());
    let run = |arguments: &[&str]| -> super::RunOutput {
        cli.command(arguments).env("THREADKEEP_MCP_SERVERS", &servers).output().unwrap().into()
    };
    let output = run(&["ask", "general", r#"test__echo {"a": "b"}"#, "--thread", "t"]);
    assert!(output.out.contains(r#"{"a":"b"}"#), "{output}");
    let output = run(&["ask", "general", "test__fail", "--thread", "t"]);
    assert!(output.out.contains("This action requires approval") && output.out.contains("test__fail()"), "{output}");
    // A tool that is switched off in a thread is unknown there.
    assert!(cli.out(&["tools", "t", "--off", "test__echo"]).contains("switched off: test__echo"));
    assert_eq!(cli.json(&["tools", "t"])["disabled"], serde_json::json!(["test__echo"]));
    let output = run(&["ask", "general", r#"test__echo {"a": "b"}"#, "--thread", "t"]);
    assert!(!output.out.contains(r#"{"a":"b"}"#), "{output}");
    assert!(cli.out(&["tools", "t", "--on", "test__echo"]).contains("no tool is switched off"));
    let output = run(&["ask", "general", r#"test__echo {"a": "b"}"#, "--thread", "t"]);
    assert!(output.out.contains(r#"{"a":"b"}"#), "{output}");
    let output = run(&["config", "check"]);
    let line = "general: MCP server test: test__echo (without approval), test__fail";
    assert!(output.code == Some(0) && output.out.contains(line), "{output}");
}

#[test]
fn yaml_assistants_have_mcp_servers_and_their_errors_are_named() {
    let cli = Cli::new();
    let yaml = |entry: &str| format!("spec:\n  mcp_servers:\n    test: {entry}\n");
    let path = cli.file("assistants/tester.yaml", yaml(&mcp_server().to_string()));
    assert!(cli.out(&["ask", &path, r#"test__echo {"a": "b"}"#]).contains(r#"{"a":"b"}"#));
    let output = run_with_folder(&cli, &["config", "check"]);
    assert!(output.out.contains("tester: MCP server test: test__echo (without approval), test__fail"), "{output}");
    cli.file("assistants/tester.yaml", yaml("{comand: sh}"));
    let output = cli.run(&["ask", &path, "Hello"]);
    assert!(output.err.contains("line 3: spec.mcp_servers: test: unknown key `comand`"), "{output}");
    cli.file("assistants/tester.yaml", yaml("{command: /no/such/program}"));
    let output = run_with_folder(&cli, &["config", "check"]);
    let problem = "tester: MCP server test: cannot start /no/such/program: ";
    assert!(output.code == Some(1) && output.out.contains(problem), "{output}");
}
