//! Compares the examples in the README with the output of the program.

use std::process::Command;

use serde_json::Value;

use super::Cli;
use super::serve::{Server, TOKEN};

const README: &str = include_str!("../../../../README.md");

/// Returns the commands of a transcript, each with its input lines and its output.
fn transcript(block: &str) -> Vec<(String, Vec<String>, String)> {
    let mut commands: Vec<(String, Vec<String>, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ threadkeep ") {
            commands.push((command.to_owned(), Vec::new(), String::new()));
        } else if let Some((_, typed, expected)) = commands.last_mut() {
            match line.strip_prefix("> ") {
                Some(line) => typed.push(line.to_owned()),
                None => expected.push_str(&format!("{line}\n")),
            }
        }
    }
    commands
}

#[test]
fn readme_conversation_matches_the_program() {
    let (_, rest) = README.split_once("```console\n").expect("the transcript");
    let (block, _) = rest.split_once("```").unwrap();
    let cli = Cli::new();
    cli.file("examples/allotment.md", include_str!("../../../../examples/allotment.md"));
    let commands = transcript(block);
    assert!(commands.len() >= 3);
    for is_repeated in [false, true] {
        for (index, (command, typed, expected)) in commands.iter().enumerate() {
            // The second conversation takes place weeks after the first.
            let now = if index < 2 { "2026-05-03T09:00:00Z" } else { "2026-06-20T09:00:00Z" };
            let words: Vec<&str> = command.split(' ').collect();
            let input: String = typed.iter().map(|line| format!("{line}\n")).collect();
            let output = cli.run_with_input(&[&words[..], &["--now", now]].concat(), input.as_bytes());
            assert_eq!(output.code, Some(0), "{output}");
            let comparable =
                |text: &str| text.lines().filter(|line| !line.is_empty()).map(without_thread_id).collect::<Vec<_>>();
            let expected = match is_repeated && command.starts_with("docs add") {
                true => "added 0 documents, 0 passages; 1 unchanged",
                false => expected,
            };
            assert_eq!(comparable(&output.out), comparable(expected), "{command}, repeated: {is_repeated}");
        }
    }
}

/// Removes the id of the thread from a line, because it differs between runs.
fn without_thread_id(line: &str) -> String {
    line.split(" of ").next().unwrap_or_default().to_owned()
}

/// Returns the code blocks of a language in the section about the server.
fn blocks(language: &str) -> Vec<&'static str> {
    let (_, rest) = README.split_once("## The server\n").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let fence = format!("```{language}\n");
    section.split(fence.as_str()).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

fn server(cli: &Cli) -> Server {
    let now = "2026-05-03T09:00:00Z";
    Server::start_with(cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline", "--now", now]))
}

/// Whether the README's JSON matches the actual JSON. `…` stands for fields that the README omits.
fn matches_example(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected.iter().all(|(name, expected)| {
            name == "…" || actual.get(name).is_some_and(|actual| matches_example(expected, actual))
        }),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| matches_example(expected, actual))
        }
        _ => expected == actual,
    }
}

/// Whether a program is unavailable on this machine. The summary of the tests lists it.
fn is_unavailable(program: &str) -> bool {
    std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == program))
}

#[test]
fn curl_examples_work() {
    if is_unavailable("curl") {
        return;
    }
    let cli = Cli::new();
    let server = server(&cli);
    let mut runs = 0;
    let mut examples = blocks("console")[0].split("$ curl ");
    let printed = examples.next().unwrap();
    for line in ["listening on http://127.0.0.1:7437\n", "export OPENAI_BASE_URL=http://127.0.0.1:7437/v1\n"] {
        assert!(printed.contains(line), "{printed}");
    }
    // The examples work when they are repeated.
    let examples: Vec<&str> = examples.collect();
    for example in examples.iter().chain(&examples) {
        let (command, expected) = example.split_at(example.find("\n{").unwrap());
        let command = format!("curl {}", command.replace("localhost:7437", &server.address));
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN);
        let output = shell.output().unwrap();
        let actual: Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected: Value = serde_json::from_str(&expected.trim().replace('…', "\"…\": null")).unwrap();
        assert!(matches_example(&expected, &actual), "{command}\n{actual}");
        runs += 1;
    }
    assert_eq!(runs, 2 * 3);
}

#[test]
fn official_client_example_works() {
    if is_unavailable("python") {
        return;
    }
    let cli = Cli::new();
    let server = server(&cli);
    let script = cli.file("client.py", blocks("python")[0]);
    let test = std::env::current_exe().unwrap();
    let python = test.ancestors().nth(3).unwrap().join("python/bin/python");
    assert!(python.exists(), "`cargo xtask test` installs the official client into {}", python.display());
    let mut python = Command::new(python);
    python.arg(script).env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN);
    python.env("OPENAI_BASE_URL", format!("http://{}/v1", server.address));
    for _ in 0..2 {
        let output = python.output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(stdout, blocks("text")[0], "{stderr}");
    }
}
