//! Imports that stop halfway. The second half of the input is never written, so that they cannot finish first.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use super::{Cli, RunOutput};

const CONVERSATIONS: usize = 400;

fn conversation(number: usize) -> String {
    let turns = (0..5).map(|turn| {
        format!(
            r#"{{"role":"user","content":"Question {turn} of {number}?"}},{{"role":"assistant","content":"Answer {turn} of {number}."}}"#
        )
    });
    format!("{{\"messages\":[{}]}}\n", turns.collect::<Vec<_>>().join(","))
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(conversation).collect()
}

/// Starts an import that has stored some messages of the first half and waits for the second half.
fn start_half_import(cli: &Cli) -> Child {
    let mut child = cli.command(&["import", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(lines(0..CONVERSATIONS / 2).as_bytes()).unwrap();
    cli.wait_for_messages(&mut child);
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Checks that the store contains each conversation once and completely.
fn assert_complete(cli: &Cli) {
    let output = cli.run_with_input(&["import", "-"], lines(0..CONVERSATIONS).as_bytes());
    assert_eq!(output.code, Some(0), "{output}");
    let stats = cli.json(&["stats"]);
    assert_eq!((stats["threads"].as_u64(), stats["messages"].as_u64()), (Some(400), Some(4_000)));
    assert_eq!(cli.run(&["check"]).code, Some(0));
    let fresh = Cli::new();
    fresh.run_with_input(&["import", "-"], lines(0..CONVERSATIONS).as_bytes());
    assert_eq!(texts_by_thread(cli), texts_by_thread(&fresh));
}

/// Returns the texts of all messages by thread, ordered by the keys of the threads.
fn texts_by_thread(cli: &Cli) -> Vec<(String, Vec<String>)> {
    let mut threads: Vec<(String, Vec<String>)> = Vec::new();
    for line in cli.exported() {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if let Some(thread) = line.get("thread") {
            threads.push((thread["key"].to_string(), Vec::new()));
        } else {
            threads.last_mut().unwrap().1.push(line["message"]["parts"].to_string());
        }
    }
    threads.sort();
    threads
}

#[test]
fn killed_imports_are_completed_by_the_next_one() {
    let cli = Cli::new();
    let mut child = start_half_import(&cli);
    signal(&child, "-KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    let stored = cli.message_count();
    assert!(stored > 0 && stored < 4_000);
    assert_complete(&cli);
}

#[test]
fn interrupted_imports_leave_complete_batches() {
    let cli = Cli::new();
    let mut child = start_half_import(&cli);
    signal(&child, "-INT");
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut first_line = String::new();
    err.read_line(&mut first_line).unwrap();
    assert!(first_line.starts_with("stopping"), "{first_line}");
    // The import is waiting for input, so it notices the interrupt only when the input ends.
    drop(child.stdin.take());
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    let output = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(130), "{output}{rest}");
    assert!(rest.contains("interrupted: imported conversations are complete"), "{rest}");
    let stored = cli.message_count();
    assert!(stored > 0 && stored < 4_000 && stored.is_multiple_of(10), "{stored}");
    assert!(output.out.contains(&format!("{} messages", with_separators(stored))), "{output}");
    assert_complete(&cli);
}

fn with_separators(number: u64) -> String {
    if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) }
}

#[test]
fn second_interrupts_exit_immediately() {
    let cli = Cli::new();
    let mut child = start_half_import(&cli);
    signal(&child, "-INT");
    let mut first_line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first_line).unwrap();
    signal(&child, "-INT");
    // Its input stays open, so it exits without reading the rest.
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
}
