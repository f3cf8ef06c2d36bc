//! Imports that end in the middle. The rest of the file is never written, so the middle is certain.
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

/// An import that has taken in some of the first half, and waits for the second.
fn half_an_import(cli: &Cli) -> Child {
    let mut child = cli.command(&["import", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(lines(0..CONVERSATIONS / 2).as_bytes()).unwrap();
    cli.wait_for_messages(&mut child);
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// All of the conversations, each once and whole.
fn assert_whole(cli: &Cli) {
    let output = cli.run_with_input(&["import", "-"], lines(0..CONVERSATIONS).as_bytes());
    assert_eq!(output.code, Some(0), "{output}");
    let stats = cli.json(&["stats"]);
    assert_eq!((stats["threads"].as_u64(), stats["messages"].as_u64()), (Some(400), Some(4_000)));
    assert_eq!(cli.run(&["check"]).code, Some(0));
    let fresh = Cli::new();
    fresh.run_with_input(&["import", "-"], lines(0..CONVERSATIONS).as_bytes());
    assert_eq!(said(cli), said(&fresh));
}

/// Every message's text, thread by thread, in the order of their keys.
fn said(cli: &Cli) -> Vec<(String, Vec<String>)> {
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
    let mut child = half_an_import(&cli);
    signal(&child, "-KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    let kept = cli.message_count();
    assert!(kept > 0 && kept < 4_000);
    assert_whole(&cli);
}

#[test]
fn interrupted_imports_leave_complete_batches() {
    let cli = Cli::new();
    let mut child = half_an_import(&cli);
    signal(&child, "-INT");
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    err.read_line(&mut heard).unwrap();
    assert!(heard.starts_with("stopping"), "{heard}");
    // It is waiting for its input, so it is woken by some.
    drop(child.stdin.take());
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    let output = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(130), "{output}{rest}");
    assert!(rest.contains("interrupted: imported conversations are complete"), "{rest}");
    let kept = cli.message_count();
    assert!(kept > 0 && kept < 4_000 && kept.is_multiple_of(10), "{kept}");
    assert!(output.out.contains(&format!("{} messages", indicatif_number(kept))), "{output}");
    assert_whole(&cli);
}

fn indicatif_number(number: u64) -> String {
    if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) }
}

#[test]
fn second_interrupts_exit_immediately() {
    let cli = Cli::new();
    let mut child = half_an_import(&cli);
    signal(&child, "-INT");
    let mut heard = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut heard).unwrap();
    signal(&child, "-INT");
    // Its input stays open: it does not wait for it.
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
}
