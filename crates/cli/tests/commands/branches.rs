//! Imports conversations with branches from successive exports of ChatGPT and Claude.
//!
//! Each file of fixtures/branches contains `exports`, which are imported in order, and `steps`, which are the results that a
//! user expects after each import. If the current message of an export has replies, the branch with the newest reply is
//! current.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use super::{Cli, fixture};

#[derive(Deserialize)]
struct Scenario {
    /// Whether transcripts are compared exactly. Otherwise, messages must contain the expected texts in the given order.
    is_exact: bool,
    exports: Vec<Value>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    /// The allowed numbers of threads, including forks.
    threads: Vec<usize>,
    branches: Vec<Branch>,
    /// Phrases that occur in several branches. A search must return each of them once.
    #[serde(default)]
    recalled_once: Vec<String>,
    /// Texts that no message may contain.
    #[serde(default)]
    absent: Vec<String>,
    /// Texts that must be stored in any message.
    #[serde(default)]
    kept: Vec<String>,
    /// Whether problems must be reported.
    #[serde(default)]
    errors: bool,
    #[serde(default)]
    current_not_tested: bool,
}

#[derive(Deserialize)]
struct Branch {
    texts: Vec<String>,
    current: bool,
}

#[derive(Debug)]
struct Thread {
    texts: Vec<String>,
    is_current: bool,
}

#[test]
fn branches_are_imported_as_users_expect() {
    let mut files: Vec<_> = fs::read_dir(fixture("branches")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 36);
    for file in files {
        let scenario: Scenario = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(scenario.exports.len(), scenario.steps.len(), "{file:?}");
        let cli = Cli::new();
        for (number, (export, step)) in scenario.exports.iter().zip(&scenario.steps).enumerate() {
            let context = format!("{} step {}", file.file_stem().unwrap().display(), number + 1);
            check(&cli, &context, export, step, scenario.is_exact);
        }
    }
}

fn check(cli: &Cli, context: &str, export: &Value, step: &Step, is_exact: bool) {
    let path = cli.file("conversations.json", export.to_string());
    let output = cli.run(&["import", &path, "--json"]);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(report["problem_count"].as_u64() > Some(0), step.errors, "{context}: {output}");
    let exported = cli.exported();
    let threads = threads(&exported);
    assert!(step.threads.contains(&threads.len()), "{context}: {threads:#?}");
    let matches = |branch: &Branch, thread: &Thread| match is_exact {
        true => branch.texts == thread.texts,
        false => contains_in_order(&thread.texts, &branch.texts),
    };
    for branch in &step.branches {
        let is_expected = |thread: &&Thread| {
            matches(branch, thread) && (step.current_not_tested || thread.is_current == branch.current)
        };
        assert!(threads.iter().any(|thread| is_expected(&thread)), "{context}: {:#?} in {threads:#?}", branch.texts);
    }
    if is_exact {
        // An empty chat may become a thread or not; `threads` lists both numbers.
        let mut non_empty = threads.iter().filter(|thread| !thread.texts.is_empty());
        let unexpected = non_empty.find(|thread| !step.branches.iter().any(|branch| matches(branch, thread)));
        assert!(unexpected.is_none(), "{context}: {unexpected:#?}");
    }
    for phrase in &step.recalled_once {
        let found = cli.json(&["search", phrase, "-n", "50"]);
        let hits = found["hits"].as_array().unwrap().iter();
        let matching = hits.filter(|hit| text(&hit["message"]).to_lowercase().contains(&phrase.to_lowercase()));
        assert_eq!(matching.count(), 1, "{context}: {phrase}");
    }
    let contains = |words: &String| {
        let quoted = Value::from(words.as_str()).to_string();
        exported.iter().any(|line| line.contains(quoted.trim_matches('"')))
    };
    assert_eq!(step.absent.iter().find(|words| contains(words)), None, "{context}");
    assert_eq!(step.kept.iter().find(|words| !contains(words)), None, "{context}");
}

/// Returns the threads of an export with the texts of users and assistants.
fn threads(exported: &[String]) -> Vec<Thread> {
    let mut threads = Vec::new();
    for line in exported {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(thread) = line.get("thread") {
            // Threads of a conversation without branches are not marked.
            let is_current = thread["metadata"]["branch"]["current"].as_bool().unwrap_or(true);
            threads.push(Thread { texts: Vec::new(), is_current });
        }
        if let Some(message) = line.get("message")
            && ["user", "assistant"].iter().any(|role| message["role"] == **role)
            && let words = text(message)
            && !words.is_empty()
        {
            threads.last_mut().unwrap().texts.push(words);
        }
    }
    threads
}

fn text(message: &Value) -> String {
    let parts = message["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    parts.collect::<Vec<_>>().join("\n")
}

fn contains_in_order(texts: &[String], expected: &[String]) -> bool {
    let mut texts = texts.iter();
    expected.iter().all(|words| texts.any(|text| text.contains(words)))
}
