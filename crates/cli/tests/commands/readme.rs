//! The README's conversation, held against what the program says.

use std::process::Command;

use serde_json::Value;

use super::Cli;
use super::serve::{Server, TOKEN};

const README: &str = include_str!("../../../../README.md");

/// The commands of a transcript, what is typed into each, and what it says.
fn transcript(block: &str) -> Vec<(String, Vec<String>, String)> {
    let mut commands: Vec<(String, Vec<String>, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ threadkeep ") {
            commands.push((command.to_owned(), Vec::new(), String::new()));
        } else if let Some((_, typed, said)) = commands.last_mut() {
            match line.strip_prefix("> ") {
                Some(line) => typed.push(line.to_owned()),
                None => said.push_str(&format!("{line}\n")),
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
        for (place, (command, typed, said)) in commands.iter().enumerate() {
            // The second conversation is held weeks after the first.
            let now = if place < 2 { "2026-05-03T09:00:00Z" } else { "2026-06-20T09:00:00Z" };
            let words: Vec<&str> = command.split(' ').collect();
            let input: String = typed.iter().map(|line| format!("{line}\n")).collect();
            let output = cli.run_with_input(&[&words[..], &["--now", now]].concat(), input.as_bytes());
            assert_eq!(output.code, Some(0), "{output}");
            let blank = |text: &str| text.lines().filter(|line| !line.is_empty()).map(known_ids).collect::<Vec<_>>();
            let said = match is_repeated && command.starts_with("docs add") {
                true => "added 0 documents, 0 passages; 1 unchanged",
                false => said,
            };
            assert_eq!(blank(&output.out), blank(said), "{command}, repeated: {is_repeated}");
        }
    }
}

/// A line without the thread's id, which is another each time.
fn known_ids(line: &str) -> String {
    line.split(" of ").next().unwrap_or_default().to_owned()
}

/// The blocks of a language in the section about the server.
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

/// Whether what is shown is what was said; `…` stands for members that are not shown.
fn holds(shown: &Value, said: &Value) -> bool {
    match (shown, said) {
        (Value::Object(shown), Value::Object(said)) => {
            shown.iter().all(|(name, shown)| name == "…" || said.get(name).is_some_and(|said| holds(shown, said)))
        }
        (Value::Array(shown), Value::Array(said)) => {
            shown.len() == said.len() && shown.iter().zip(said).all(|(shown, said)| holds(shown, said))
        }
        _ => shown == said,
    }
}

/// Whether a program cannot be had here, which the summary of the tests says.
fn is_left_out(program: &str) -> bool {
    std::env::var("THREADKEEP_LEFT_OUT").is_ok_and(|names| names.split(',').any(|name| name == program))
}

#[test]
fn curl_examples_work() {
    if is_left_out("curl") {
        return;
    }
    let cli = Cli::new();
    let server = server(&cli);
    let mut exchanges = 0;
    let mut exchanged = blocks("console")[0].split("$ curl ");
    let printed = exchanged.next().unwrap();
    for line in ["listening on http://127.0.0.1:7437\n", "export OPENAI_BASE_URL=http://127.0.0.1:7437/v1\n"] {
        assert!(printed.contains(line), "{printed}");
    }
    // What it shows holds however often it is done.
    let exchanged: Vec<&str> = exchanged.collect();
    for exchange in exchanged.iter().chain(&exchanged) {
        let (command, shown) = exchange.split_at(exchange.find("\n{").unwrap());
        let command = format!("curl {}", command.replace("localhost:7437", &server.address));
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN);
        let output = shell.output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let shown: Value = serde_json::from_str(&shown.trim().replace('…', "\"…\": null")).unwrap();
        assert!(holds(&shown, &said), "{command}\n{said}");
        exchanges += 1;
    }
    assert_eq!(exchanges, 2 * 3);
}

#[test]
fn official_client_example_works() {
    if is_left_out("python") {
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
        let (said, trouble) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(said, blocks("text")[0], "{trouble}");
    }
}
