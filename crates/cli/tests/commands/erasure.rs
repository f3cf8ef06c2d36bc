//! What a user wrote by any command is in no byte of the store once the user is erased.
//!
//! Each command plants a word that is nowhere else. A command that is not known here fails the tests: say how it writes, or why
//! it writes nothing that a user said.

use std::collections::BTreeSet;

use serde_json::json;

use super::Cli;
use super::postgres::over_a_database;

/// How each planted word ends. An index leaves out of a word what it has in common with the one before, so what is the same in
/// all of them comes last.
const ENDING: &str = "qwyzkalm";
const CAREFUL: &str =
    "kind: Agent\nmetadata: {name: careful}\nspec:\n  tools: [{name: set_preference, approval: ask}]\n";

/// What a command does with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// It stores it.
    Stored,
    /// It stored it and took it out again, so it may be there until the next sweep.
    Removed,
    /// It stores nothing that a user said: why.
    Nothing(&'static str),
}

use Done::{Nothing, Removed, Stored};

/// The word of a command. It has no form that an analysis would shorten.
fn word(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    format!("{}{}{ENDING}", letter(number / 26), letter(number))
}

fn sentence(word: &str) -> String {
    format!("The key to the {word} is under the mat.")
}

/// All commands that do something themselves, as their help lists them.
fn commands(cli: &Cli) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![String::new()];
    while let Some(name) = left.pop() {
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let help = cli.out(&words);
        let below: Vec<String> = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|below| *below != "help")
            .map(|below| format!("{name} {below}").trim().to_owned())
            .collect();
        if below.is_empty() {
            found.push(name);
        }
        left.extend(below);
    }
    // What is put back goes into a store that holds nothing yet.
    found.sort_by_key(|name| name != "restore");
    found
}

/// Another store with a word in it.
fn elsewhere(word: &str) -> Cli {
    let other = Cli::new();
    other.out(&["append", word, &sentence(word), "--create", "--key", word]);
    other
}

/// Has a turn wait for an approval of a call that holds the word, and gives the approval's id.
fn waiting(cli: &Cli, path: &str, word: &str) -> String {
    let turn = cli.json(&["ask", path, &format!("Remember that my seat is the {word}.")]);
    turn["approvals"][0]["id"].as_str().unwrap().to_owned()
}

/// Has a command write a word in every place that it takes one.
fn plant(cli: &Cli, command: &str, word: &str) -> Done {
    let said = sentence(word);
    let path = |name: &str| cli.path(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(cli.path("out")).unwrap();
    match command {
        "import" => {
            let line = json!({ "messages": [{ "role": "user", "content": said }], "title": said });
            cli.out(&["import", &cli.file("in/chat.jsonl", line.to_string())]);
            Stored
        }
        "append" => {
            cli.out(&["append", word, &said, "--create", "--key", word, "--author", word]);
            Stored
        }
        "chat" => {
            let lines = format!("{said}\nRemember that my boat is called {word}.\nWhere is the key to the {word}?\n");
            let ran = cli.run_with_input(&["chat", "--thread", word], lines.as_bytes());
            assert_eq!(ran.code, Some(0), "{ran}");
            Stored
        }
        "ask" => {
            for arguments in [
                &["ask", &said][..],
                &["ask", &said, "--thread", word],
                &["ask", "general", &format!("Remember that my boat is called {word}.")],
                &["ask", "subway", &format!("Next 6 at {word}"), "--thread", &format!("subway:{word}")],
                &["ask", "subway", &format!("How do I get from {word} to Astor Place?")],
            ] {
                let ran = cli.run(arguments);
                assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
            }
            Stored
        }
        "docs add" => {
            let file = cli.file(&format!("in/{word}/{word}.md"), format!("# About the {word}\n\n{said}\n"));
            cli.out(&["docs", "add", &file]);
            cli.out(&["docs", "add", &file, "--library", word]);
            Stored
        }
        "docs remove" => {
            let file = cli.file(&format!("in/{word}.md"), &said);
            cli.out(&["docs", "add", &file]);
            cli.out(&["docs", "remove", &file]);
            Removed
        }
        "docs search" => {
            cli.out(&["docs", "search", &said]);
            Nothing("it reads")
        }
        "search" | "recall" => {
            cli.out(&[command, &said]);
            Nothing("it reads")
        }
        "approvals approve" | "approvals deny" => {
            let assistant = cli.file("in/careful.yaml", CAREFUL);
            let id = waiting(cli, &assistant, word);
            let verdict = command.split_once(' ').unwrap().1;
            let mut arguments = vec!["approvals", verdict, &id, "--assistant", &assistant];
            if verdict == "deny" {
                arguments.extend(["--reason", &said]);
            }
            cli.out(&arguments);
            // Another one is left waiting.
            waiting(cli, &assistant, word);
            Stored
        }
        "restore" => {
            let other = elsewhere(word);
            let backup = path("out/restored.jsonl.gz");
            other.out(&["backup", &backup]);
            cli.out(&["restore", &backup]);
            Stored
        }
        "migrate" => {
            let other = elsewhere(word);
            let to = cli.url.clone().unwrap_or_else(|| path("store.db"));
            cli.out(&["migrate", "--from", other.store().to_str().unwrap(), "--to", &to]);
            Stored
        }
        "context" => {
            cli.out(&["append", "context", "Hello.", "--create"]);
            cli.out(&["context", "context", &said, "--recall"]);
            Nothing("it reads")
        }
        "erase" => Nothing("it erases; the tests of this module give it in the end"),
        "serve" => Nothing("its routes have cases of their own in crates/server/tests/http/erasure"),
        "backup" | "export" => Nothing("what it writes lies elsewhere, where its user wanted it"),
        "open" => Nothing("it shows a page of the server"),
        "demo" => Nothing("a conversation of its own, which nobody said"),
        "keys create" | "keys list" | "keys revoke" | "keys rotate" => Nothing("keys are the tenant's"),
        "subway fetch" => Nothing("a public timetable, beside the store"),
        "threads" | "show" | "stats" | "check" | "audit" | "audit verify" | "trace" | "docs list"
        | "approvals list" => Nothing("it reads"),
        "vacuum" => Nothing("it takes away"),
        "graph" | "config show" | "config check" | "models" | "completions" | "man" | "supabase doctor" => {
            Nothing("it opens no store of conversations")
        }
        _ => panic!("`{command}` has no case here: say what it writes of a user"),
    }
}

/// Has every command write what it writes; the words by their commands, and what became of each.
fn plant_all(cli: &Cli) -> Vec<(String, String, Done)> {
    let planted = commands(cli).into_iter().enumerate().map(|(number, command)| {
        let word = word(number);
        let done = plant(cli, &command, &word);
        (word, command, done)
    });
    planted.collect()
}

/// The planted words in all files beside the store.
fn words_in(cli: &Cli) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for entry in std::fs::read_dir(cli.path("")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        for (start, window) in bytes.windows(ENDING.len()).enumerate() {
            if window[0] == ENDING.as_bytes()[0] && window == ENDING.as_bytes() {
                let word = &bytes[start.saturating_sub(2)..start + ENDING.len()];
                words.insert(String::from_utf8_lossy(word).into_owned());
            }
        }
    }
    words
}

fn erase(cli: &Cli) {
    let told = cli.out(&["erase", "--everything", "--yes"]);
    assert!(told.contains("of added documents"), "{told}");
    assert_eq!(cli.out(&["erase", "--everything", "--yes"]), "there was nothing to erase\n");
    assert_eq!(cli.json(&["docs", "search", &sentence(ENDING)])["passages"], json!([]));
}

#[test]
fn what_any_command_wrote_is_in_no_byte_of_the_file() {
    let cli = Cli::new();
    let planted = plant_all(&cli);
    let there = words_in(&cli);
    for (word, command, done) in &planted {
        match done {
            Stored => assert!(there.contains(word), "`{command}` was to write {word}"),
            Removed => {}
            Nothing(why) => assert!(!why.is_empty() && !there.contains(word), "`{command}` wrote {word}"),
        }
    }
    erase(&cli);
    assert_eq!(words_in(&cli), BTreeSet::new(), "{planted:?}");
}

#[test]
fn what_any_command_wrote_is_in_no_column_of_the_database() {
    over_a_database(|cli, columns_with| {
        let planted = plant_all(cli);
        for (word, command, _) in planted.iter().filter(|(.., done)| *done == Stored) {
            assert!(!columns_with(word).is_empty(), "`{command}` was to write {word}");
        }
        erase(cli);
        assert_eq!(columns_with(ENDING), Vec::<String>::new(), "{planted:?}");
    });
}
