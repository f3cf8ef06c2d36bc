//! Assistants that are written in YAML, and how assistants are drawn.

use super::Cli;

const GARDENER: &str = "kind: Agent\nmetadata:\n  name: gardener\nspec:\n  instructions: You look after a garden.\n  \
                        tools: [recall, search_documents]\n  libraries: [garden]\n  memory:\n";

fn gardener(cli: &Cli, memory: &str) -> String {
    cli.file("assistants/gardener.yaml", format!("{GARDENER}    {memory}\n"))
}

fn written(cli: &Cli, arguments: &[&str]) -> super::Ran {
    let folder = cli.path("assistants");
    cli.command(arguments).env("THREADKEEP_ASSISTANTS", folder).output().unwrap().into()
}

// S4.38
#[test]
fn an_assistant_of_ones_own_is_found_by_name_and_by_path() {
    let cli = Cli::new();
    let path = gardener(&cli, "backend: sqlite");
    let ran = written(&cli, &["ask", "gardener", "The hose leaks.", "--thread", "g", "--json"]);
    let turn: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(turn["agent"], "gardener", "{ran}");
    assert!(cli.out(&["ask", &path, "What leaks?", "--thread", "g"]).contains("“The hose leaks.”"));
    assert!(cli.out(&["graph", &path]).starts_with("flowchart TD"));
    assert_eq!(cli.json(&["graph", &path])["tools"], serde_json::json!(["recall", "search_documents"]));
}

// S4.38, S4.40
#[test]
fn a_memory_that_is_off_or_in_the_process_stores_nothing() {
    let cli = Cli::new();
    for memory in ["enabled: false", "backend: inmemory"] {
        let path = gardener(&cli, memory);
        let ran = cli.run_with_input(&["chat", &path], b"The hose leaks.\nWhat leaks?\n");
        assert!(ran.out.contains("“The hose leaks.”") && ran.err.contains("that is not kept"), "{ran}");
        assert!(!cli.store().exists(), "{memory}");
    }
}

// S4.35, S4.36
#[test]
fn a_memory_keeps_what_it_is_told_to_keep() {
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
fn what_is_wrong_in_a_file_is_named_with_key_and_line() {
    let cli = Cli::new();
    let path = gardener(&cli, "context_window: 21");
    let ran = cli.run(&["chat", &path]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.err.contains("line 9: spec.memory.context_window: 21 is greater than max_messages"), "{ran}");
    let path = gardener(&cli, "backend: postgres");
    let ran = cli.run(&["chat", &path]);
    assert_eq!((ran.code, ran.err.contains("spec.memory.backend: postgres needs its URL")), (Some(2), true), "{ran}");
}

// S1.30, S4.45
#[test]
fn what_is_logged_is_asked_for() {
    let cli = Cli::new();
    let mut command = cli.command(&["ask", "The hose leaks."]);
    let quiet = super::Ran::from(cli.command(&["ask", "The hose leaks."]).output().unwrap());
    assert_eq!(quiet.err, "kept for a day, in no conversation; --thread NAME keeps it in one\n");
    let ran = super::Ran::from(command.env("RUST_LOG", "debug").output().unwrap());
    assert!(ran.err.contains("Processing natural language input for agent general: 15 chars"), "{ran}");
    assert!(!ran.err.contains("hose"), "{ran}");
    assert!(ran.err.contains("Conversation context length: "), "{ran}");
    assert!(ran.err.contains("INFO") && ran.err.contains("configured context provider sources="), "{ran}");
    assert_eq!(ran.out, "I will keep that in mind.\n");
}

#[test]
fn an_assistants_name_fits_into_paths_and_collides_with_nothing() {
    let cli = Cli::new();
    for (name, why) in [
        ("docs", "paths begin with /docs"),
        ("v1", "paths begin with /v1"),
        ("general", "is built in"),
        ("'../gardener'", "ASCII letters"),
        ("'<b>gardener</b>'", "ASCII letters"),
        ("a b", "ASCII letters"),
    ] {
        let path = cli.file("named.yaml", format!("kind: Agent\nmetadata:\n  name: {name}\nspec: {{}}\n"));
        let ran = cli.run(&["ask", &path, "hello"]);
        let name = name.trim_matches('\'');
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(
            ran.err.contains("named.yaml") && ran.err.contains(&format!("`{name}`")) && ran.err.contains(why),
            "{ran}"
        );
    }
    let unnamed = cli.file("no name.yaml", "kind: Agent\nspec: {}\n");
    assert!(cli.run(&["ask", &unnamed, "hello"]).err.contains("`no name`"));
}
