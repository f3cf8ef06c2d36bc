//! The README's conversation, held against what the program says.

use super::Cli;

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
fn the_conversation_is_what_the_program_says() {
    let (_, rest) = README.split_once("```console\n").expect("the transcript");
    let (block, _) = rest.split_once("```").unwrap();
    let cli = Cli::new();
    cli.file("allotment.md", "# Allotment\n\n## Watering\n\nTomatoes want water every second day, in the morning.\n");
    let commands = transcript(block);
    assert!(commands.len() >= 3);
    for (place, (command, typed, said)) in commands.into_iter().enumerate() {
        // The second conversation is held weeks after the first.
        let now = if place < 2 { "2026-05-03T09:00:00Z" } else { "2026-06-20T09:00:00Z" };
        let words: Vec<&str> = command.split(' ').collect();
        let input: String = typed.iter().map(|line| format!("{line}\n")).collect();
        let ran = cli.run_with_input(&[&words[..], &["--now", now]].concat(), input.as_bytes());
        assert_eq!(ran.code, Some(0), "{ran}");
        let blank = |text: &str| text.lines().filter(|line| !line.is_empty()).map(known_ids).collect::<Vec<_>>();
        assert_eq!(blank(&ran.out), blank(&said), "{command}");
    }
}

/// A line without the thread's id, which is another each time.
fn known_ids(line: &str) -> String {
    line.split(" of ").next().unwrap_or_default().to_owned()
}
