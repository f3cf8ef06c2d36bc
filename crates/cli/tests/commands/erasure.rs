//! After a user is erased, the store contains no byte of the text that the user wrote with any command.
//!
//! Each command stores a unique word. The tests fail if a command has no case here. Add a case that stores the user's data,
//! or that states why the command stores none.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use super::Cli;
use super::postgres::with_postgres_columns;

/// The common ending of all words. A common beginning would not work, because an index omits the prefix that a word shares
/// with the previous one.
const ENDING: &str = "qwyzkalm";
const CAREFUL: &str =
    "kind: Agent\nmetadata: {name: careful}\nspec:\n  tools: [{name: set_preference, approval: ask}]\n";

/// The effect of a command on its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The word is stored.
    Stored,
    /// The word is stored and then removed. Its bytes may remain until the next sweep.
    Removed,
    /// The command stores no user data, for this reason.
    Nothing(&'static str),
}

use Effect::{Nothing, Removed, Stored};

/// Returns the unique word of a command. Stemming does not change the word.
fn word(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    format!("{}{}{ENDING}", letter(number / 26), letter(number))
}

fn sentence(word: &str) -> String {
    format!("The key to the {word} is under the mat.")
}

/// Returns all commands without subcommands, in the order of the help.
fn commands(cli: &Cli) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(name) = pending.pop() {
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let help = cli.out(&words);
        let subcommands: Vec<String> = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|subcommand| *subcommand != "help")
            .map(|subcommand| format!("{name} {subcommand}").trim().to_owned())
            .collect();
        // `mcp` is also a command of its own, without a subcommand.
        if subcommands.is_empty() || name == "mcp" {
            found.push(name);
        }
        pending.extend(subcommands);
    }
    // `restore` comes first, because it requires an empty store.
    found.sort_by_key(|name| name != "restore");
    found
}

/// Creates another store that contains a word.
fn elsewhere(word: &str) -> Cli {
    let other = Cli::new();
    other.out(&["append", word, &sentence(word), "--create", "--key", word]);
    other
}

/// Runs a turn that waits for approval of a call with the word. Returns the id of the approval.
fn request_approval(cli: &Cli, path: &str, word: &str) -> String {
    let turn = cli.json(&["ask", path, &format!("Remember that my seat is the {word}.")]);
    turn["approvals"][0]["id"].as_str().unwrap().to_owned()
}

/// Runs a command with the word in every argument that accepts text.
fn store_word(cli: &Cli, command: &str, word: &str) -> Effect {
    let text = sentence(word);
    let path = |name: &str| cli.path(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(cli.path("out")).unwrap();
    match command {
        "import" => {
            let line = json!({ "messages": [{ "role": "user", "content": text }], "title": text });
            cli.out(&["import", &cli.file("in/chat.jsonl", line.to_string())]);
            Stored
        }
        "append" => {
            cli.out(&["append", word, &text, "--create", "--key", word, "--author", word]);
            Stored
        }
        "chat" => {
            let lines = format!("{text}\nRemember that my boat is called {word}.\nWhere is the key to the {word}?\n");
            let output = cli.run_with_input(&["chat", "--thread", word], lines.as_bytes());
            assert_eq!(output.code, Some(0), "{output}");
            Stored
        }
        "ask" => {
            for arguments in [
                &["ask", &text][..],
                &["ask", &text, "--thread", word],
                &["ask", "general", &format!("Remember that my boat is called {word}.")],
                &["ask", "subway", &format!("Next 6 at {word}"), "--thread", &format!("subway:{word}")],
                &["ask", "subway", &format!("How do I get from {word} to Astor Place?")],
            ] {
                let output = cli.run(arguments);
                assert!(matches!(output.code, Some(0 | 3)), "{output}");
            }
            Stored
        }
        "docs add" => {
            let file = cli.file(&format!("in/{word}/{word}.md"), format!("# About the {word}\n\n{text}\n"));
            cli.out(&["docs", "add", &file]);
            cli.out(&["docs", "add", &file, "--library", word]);
            Stored
        }
        "docs remove" => {
            let file = cli.file(&format!("in/{word}.md"), &text);
            cli.out(&["docs", "add", &file]);
            cli.out(&["docs", "remove", &file]);
            Removed
        }
        "docs search" => {
            cli.out(&["docs", "search", &text]);
            Nothing("it only reads")
        }
        "search" | "recall" => {
            cli.out(&[command, &text]);
            Nothing("it only reads")
        }
        "tools" => {
            cli.out(&["append", "tools", "Hello.", "--create"]);
            cli.out(&["tools", "tools", "--off", word]);
            Stored
        }
        "approvals approve" | "approvals deny" => {
            let assistant = cli.file("in/careful.yaml", CAREFUL);
            let id = request_approval(cli, &assistant, word);
            let verdict = command.split_once(' ').unwrap().1;
            let mut arguments = vec!["approvals", verdict, &id, "--assistant", &assistant];
            if verdict == "deny" {
                arguments.extend(["--reason", &text]);
            }
            cli.out(&arguments);
            // The second approval remains pending.
            request_approval(cli, &assistant, word);
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
            cli.out(&["context", "context", &text, "--recall"]);
            Nothing("it only reads")
        }
        "mcp" => {
            let client = json!({ "name": word, "version": "1" });
            let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
            let call = json!({ "name": "add_memory", "arguments": { "text": text } });
            let lines = [
                json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }),
                json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
                json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
            ];
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let output = cli.run_with_input(&["mcp"], lines.as_bytes());
            assert!(output.code == Some(0) && output.out.contains(r#""isError":false"#), "{output}");
            Stored
        }
        "erase" => Nothing("it erases; the tests run it last"),
        "serve" => Nothing("crates/server/tests/http/erasure tests its routes"),
        "backup" | "browse" | "export" => Nothing("it writes to a file that the user chooses"),
        "open" => Nothing("it opens a page of the server"),
        "demo" => Nothing("its conversation is fictional"),
        "keys create" | "keys list" | "keys revoke" | "keys rotate" => Nothing("keys belong to the tenant"),
        "mcp install" => Nothing("it changes the configuration of another program"),
        "subway fetch" => Nothing("a public timetable outside the store"),
        "slack manifest" => Nothing("it prints a text"),
        "slack simulate" => Nothing("its users are fictional, and its store is temporary unless --keep is given"),
        "tesis import" => Nothing("public case law of the tenant"),
        "tesis search" | "tesis intent" => Nothing("it reads"),
        "threads" | "show" | "stats" | "check" | "audit" | "audit verify" | "trace" | "docs list"
        | "approvals list" => Nothing("it only reads"),
        "vacuum" => Nothing("it removes data"),
        "graph" | "config show" | "config check" | "models" | "completions" | "man" | "supabase doctor" => {
            Nothing("it opens no store")
        }
        _ => panic!("`{command}` has no case here: add one that stores a user's data, or states why it stores none"),
    }
}

/// Runs every command. Returns each word with its command and effect.
fn store_all_words(cli: &Cli) -> Vec<(String, String, Effect)> {
    let stored = commands(cli).into_iter().enumerate().map(|(number, command)| {
        let word = word(number);
        let effect = store_word(cli, &command, &word);
        (word, command, effect)
    });
    stored.collect()
}

/// Returns the words that occur in the store's folder.
fn words_in(cli: &Cli) -> BTreeSet<String> {
    words_in_files(std::fs::read_dir(cli.path("")).unwrap().map(|entry| entry.unwrap().path()))
}

fn words_in_files(files: impl IntoIterator<Item = PathBuf>) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for file in files {
        let bytes = std::fs::read(file).unwrap_or_default();
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
    let out = cli.out(&["erase", "--everything", "--yes"]);
    assert!(out.contains("of added documents"), "{out}");
    assert_eq!(cli.out(&["erase", "--everything", "--yes"]), "nothing to erase\n");
    assert_eq!(cli.json(&["docs", "search", &sentence(ENDING)])["passages"], json!([]));
}

#[test]
fn erased_data_of_all_commands_leaves_no_bytes_in_the_file() {
    let cli = Cli::new();
    let stored = store_all_words(&cli);
    let found = words_in(&cli);
    for (word, command, effect) in &stored {
        match effect {
            Stored => assert!(found.contains(word), "`{command}` did not store {word}"),
            Removed => {}
            Nothing(why) => assert!(!why.is_empty() && !found.contains(word), "`{command}` stored {word}"),
        }
    }
    erase(&cli);
    assert_eq!(words_in(&cli), BTreeSet::new(), "{stored:?}");
}

#[test]
fn erased_data_of_all_commands_leaves_nothing_in_the_database() {
    with_postgres_columns(|cli, columns_with| {
        let stored = store_all_words(cli);
        for (word, command, _) in stored.iter().filter(|(.., effect)| *effect == Stored) {
            assert!(!columns_with(word).is_empty(), "`{command}` did not store {word}");
        }
        erase(cli);
        assert_eq!(columns_with(ENDING), Vec::<String>::new(), "{stored:?}");
    });
}

#[test]
fn erased_data_of_all_commands_leaves_no_bytes_in_the_files_of_redis() {
    // With other values, Redis may acknowledge a command before it writes to the file.
    let Some(server) = threadkeep_redis_server::Server::start(&[("appendfsync", "no")]) else { return };
    let cli = Cli { url: Some(format!("redis://{}", server.address())), ..Cli::new() };
    let stored = store_all_words(&cli);
    let found = words_in_files(server.files());
    for (word, command, effect) in &stored {
        match effect {
            Stored => assert!(found.contains(word), "`{command}` did not store {word}"),
            Removed => {}
            Nothing(why) => assert!(!why.is_empty() && !found.contains(word), "`{command}` stored {word}"),
        }
    }
    erase(&cli);
    server.wait_until_old_files_are_removed();
    assert_eq!(words_in_files(server.files()), BTreeSet::new(), "{stored:?}");
}
