//! Importing the history that programs keep on a machine, and finding it again. Also the examples of docs/history.md.
#![cfg(unix)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use super::{Cli, RunOutput, TIMEOUT};

const DOCS: &str = include_str!("../../../../docs/history.md");
/// The home folder of a user with several programs.
const HOME: &str = "home";

/// Returns a fixture of the format readers.
fn session(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures").join(name);
    std::fs::read(path).unwrap()
}

/// Creates the files that programs keep in a home folder.
fn with_programs() -> Cli {
    let cli = Cli::new();
    for (name, path) in [
        ("claude-code.jsonl", ".claude/projects/-home-ana-harbour/0e3c1aa9.jsonl"),
        ("codex.jsonl", ".codex/sessions/2026/11/25/rollout-2026-11-25T22-34-59-01a214d9.jsonl"),
        ("gemini-cli.jsonl", ".gemini/tmp/pier/chats/session-2026-11-25T22-36-cd6bf3d8.jsonl"),
        ("continue.json", ".continue/sessions/543f3f3c.json"),
        ("cline.json", ".cline/data/sessions/1795646226173_6poyh/1795646226173_6poyh.messages.json"),
        (
            "cline-task.json",
            "config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1795646226173/api_conversation_history.json",
        ),
        ("aider.md", ".aider.chat.history.md"),
    ] {
        cli.file(&format!("{HOME}/{path}"), session(name));
    }
    cli.file(&format!("{HOME}/.continue/sessions/sessions.json"), "[]");
    cli
}

fn at_home(cli: &Cli, arguments: &[&str]) -> Command {
    let mut command = cli.command(arguments);
    command.env("HOME", cli.path(HOME)).env("XDG_CONFIG_HOME", cli.path(&format!("{HOME}/config")));
    for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
        command.env_remove(name);
    }
    command
}

fn run_at_home(cli: &Cli, arguments: &[&str]) -> RunOutput {
    at_home(cli, arguments).output().unwrap().into()
}

#[test]
fn all_conversations_on_the_machine_are_listed_and_imported_once() {
    let cli = with_programs();
    let unasked = run_at_home(&cli, &["import", "--all"]);
    assert_eq!(unasked.code, Some(2), "{unasked}");
    assert!(unasked.err.contains("add --yes to confirm"), "{unasked}");
    for place in ["Claude Code", "Codex", "Gemini CLI", "Continue", "Cline", "Aider"] {
        assert!(unasked.err.contains(place), "{place}: {unasked}");
    }
    assert!(unasked.err.contains("~/.codex/sessions (1 file, "), "{unasked}");
    assert!(!cli.store().exists(), "nothing is created before the answer");
    let imported = run_at_home(&cli, &["import", "--all", "--yes"]);
    assert_eq!(imported.code, Some(0), "{imported}");
    assert_eq!(imported.out, "imported 8 threads, 61 messages\n");
    let again = run_at_home(&cli, &["import", "--all", "--yes"]);
    assert_eq!(again.out, "nothing new: 7 files have not changed since the last import\n");
    // With other options, everything is read again.
    let again = run_at_home(&cli, &["import", "--all", "--yes", "--keep-secrets"]);
    assert_eq!(again.out, "nothing new: 8 threads, 61 messages already existed\n");
    assert!(!again.err.contains("changed"), "{again}");
    let empty = Cli::new();
    std::fs::create_dir(empty.path(HOME)).unwrap();
    let nothing = run_at_home(&empty, &["import", "--all", "--yes"]);
    assert!(nothing.code == Some(1) && nothing.err.contains("no conversations from supported programs"), "{nothing}");
}

#[test]
fn conversations_are_found_by_words_format_project_and_time() {
    let cli = with_programs();
    assert_eq!(run_at_home(&cli, &["import", "--all", "--yes"]).code, Some(0));
    let count = |arguments: &[&str]| cli.json(&[&["search"], arguments].concat())["hits"].as_array().unwrap().len();
    assert_eq!(count(&["ledger", "--in", "codex"]), 2);
    assert_eq!(count(&["ledger in:gemini-cli"]), 2);
    assert_eq!(count(&["\"SQLite file\" in:codex"]), 1);
    assert_eq!(count(&["ledger -postgres in:codex"]), 1);
    assert_eq!(count(&["ledg* role:assistant in:codex"]), 1);
    assert_eq!(count(&["ledger", "--project", "nowhere"]), 0);
    assert_eq!(count(&["ledger", "--project", "pier", "--in", "codex"]), 2);
    assert_eq!(count(&["ledger", "--until", "2026-10"]), 0);
    assert_eq!(count(&["ledger", "--since", "2026-11-25", "--until", "2026-11", "--in", "codex"]), 2);
    assert_eq!(count(&["--in", "codex", "--role", "user"]), 2, "conditions alone find the newest messages");
    let typed = cli.run(&["search", "legder", "--in", "codex"]);
    assert!(typed.err.contains("no message contains `legder`; searched for `ledger`"), "{typed}");
    let page = cli.json(&["search", "ledger", "-n", "1", "--in", "codex"]);
    assert_eq!((page["hits"].as_array().unwrap().len(), page["next_page"].as_u64()), (1, Some(2)));
    let second = cli.json(&["search", "ledger", "-n", "1", "--in", "codex", "--page", "2"]);
    assert_ne!(second["hits"][0]["message"]["id"], page["hits"][0]["message"]["id"]);
    assert!(second.get("next_page").is_none());
    let hit = &page["hits"][0];
    let (thread, seq) = (hit["thread"].as_str().unwrap(), hit["message"]["seq"].to_string());
    let around = cli.json(&["show", thread, "--around", &seq, "-n", "3"]);
    let shown: Vec<u64> =
        around["messages"].as_array().unwrap().iter().map(|message| message["seq"].as_u64().unwrap()).collect();
    assert!(shown.len() <= 3 && shown.contains(&seq.parse().unwrap()), "{shown:?}");
    assert_eq!(cli.run(&["search", "--since", "March"]).code, Some(2));
}

#[test]
fn erased_conversations_do_not_come_back() {
    let cli = with_programs();
    let import = |options: &[&str]| run_at_home(&cli, &[&["import", "--all", "--yes"], options].concat());
    assert_eq!(import(&[]).code, Some(0));
    let hits = || cli.json(&["search", "ledger", "--in", "codex"])["hits"].as_array().unwrap().clone();
    let thread = hits()[0]["thread"].as_str().unwrap().to_owned();
    cli.out(&["erase", &thread, "--yes"]);
    // The program continues the session.
    let path = cli.path(&format!("{HOME}/.codex/sessions/2026/11/25/rollout-2026-11-25T22-34-59-01a214d9.jsonl"));
    let line = r#"{"timestamp":"2026-11-25T23:00:00.000Z","type":"response_item","payload":{"type":"message","id":"m","role":"user","content":[{"type":"input_text","text":"And the ledger?"}]}}"#;
    std::fs::write(&path, [&session("codex.jsonl")[..], line.as_bytes(), b"\n"].concat()).unwrap();
    let again = import(&[]);
    assert!(again.err.contains("1 conversation erased before, not imported again; --erased imports"), "{again}");
    assert!(again.code == Some(0) && hits().is_empty(), "{again}");
    let named = cli.run(&["import", path.to_str().unwrap()]);
    assert!(hits().is_empty() && named.err.contains("1 conversation erased before"), "{named}");
    assert!(!cli.contains_bytes(b"import:codex:01a214d9"), "the key of the erased thread is in the store");
    assert_eq!(cli.run(&["import", path.to_str().unwrap(), "--erased"]).out, "imported 1 thread, 13 messages\n");
    assert_eq!(hits().len(), 3);
    // It exists again, so it also grows again.
    assert_eq!(import(&[]).code, Some(0));
    assert_eq!(hits().len(), 3);
}

#[test]
fn unreadable_files_and_folders_are_named_and_the_rest_is_imported() {
    let cli = with_programs();
    cli.file(&format!("{HOME}/.codex/sessions/2025/06/01/rollout-old.jsonl"), "{\"id\":\"o\",\"instructions\":null}\n");
    let imported = run_at_home(&cli, &["import", "--all", "--yes"]);
    assert_eq!((imported.code, imported.out.as_str()), (Some(0), "imported 8 threads, 61 messages\n"), "{imported}");
    assert!(
        imported.err.contains("file without conversations in a known format skipped")
            || imported.err.contains("files without"),
        "{imported}"
    );
    let archive = Cli::new();
    archive.file("cut.zip", b"PK\x03\x04 not a zip");
    archive.file("good.jsonl", chat("kept"));
    let output = archive.run(&["import", "cut.zip", "good.jsonl"]);
    assert_eq!((output.code, output.out.as_str()), (Some(1), "imported 1 thread, 1 message\n"), "{output}");
    assert!(output.err.contains("cut.zip: ") && output.err.contains("damaged zip archive"), "{output}");
    let alone = archive.run(&["import", "cut.zip"]);
    assert!(alone.code == Some(1) && alone.err.contains("damaged zip archive"), "{alone}");
}

/// Returns a conversation of one message in the format of OpenAI.
fn chat(text: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#) + "\n"
}

#[test]
fn only_changed_files_of_a_folder_are_read_again() {
    let cli = Cli::new();
    cli.file("chats/one.jsonl", chat("first"));
    cli.file("chats/two.jsonl", chat("second"));
    cli.file("chats/damaged.jsonl", chat("third") + "{\n");
    let counts = |arguments: &[&str]| {
        let output = cli.run(&[&["import", "--json"], arguments].concat());
        let report: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        let count = |value: &serde_json::Value| value.as_u64().unwrap();
        (count(&report["messages"]["new"]), count(&report["files_unchanged"]), count(&report["problem_count"]))
    };
    assert_eq!(counts(&["chats"]), (3, 0, 1));
    // A file with a problem is read again, so the problem is reported each time.
    assert_eq!(counts(&["chats"]), (0, 2, 1));
    cli.file("chats/one.jsonl", chat("first") + &chat("fourth"));
    assert_eq!(counts(&["chats"]), (1, 1, 1));
    // The size is the same.
    cli.file("chats/two.jsonl", chat("fifth!"));
    assert_eq!(counts(&["chats"]), (1, 1, 1));
    assert_eq!(counts(&["chats/one.jsonl"]), (0, 0, 0), "a file that is named is read");
    // Another store has its own states, and erasing a user erases the states.
    assert_eq!(counts(&["chats", "--user", "ben"]), (5 - 1, 0, 1));
    assert_eq!(counts(&["chats", "--user", "ben"]), (0, 2, 1));
    cli.out(&["erase", "--everything", "--user", "ben", "--yes"]);
    assert_eq!(counts(&["chats", "--user", "ben"]).1, 0);
}

#[test]
fn threads_are_in_the_order_of_their_last_messages() {
    let cli = Cli::new();
    let chat = |id: &str, month: u32| {
        format!(
            r#"{{"uuid":"{id}","name":"{id}","chat_messages":[{{"uuid":"m","sender":"human","text":"words","created_at":"2025-{month:02}-01T00:00:00Z"}}]}}"#
        )
    };
    let text = format!("[{},{},{}]", chat("march", 3), chat("may", 5), chat("april", 4));
    cli.file("conversations.json", text);
    cli.out(&["import", "conversations.json"]);
    let titles = |page: &serde_json::Value| -> Vec<String> {
        page["threads"].as_array().unwrap().iter().map(|thread| thread["title"].as_str().unwrap().to_owned()).collect()
    };
    let first = cli.json(&["threads", "-n", "2"]);
    assert_eq!(titles(&first), ["may", "april"]);
    assert_eq!(first["threads"][0]["last_message_at"], "2025-05-01T00:00:00Z");
    let rest = cli.json(&["threads", "-n", "2", "--after", first["next"].as_str().unwrap()]);
    assert_eq!((titles(&rest), rest["next"].is_null()), (vec!["march".to_owned()], true));
    assert!(cli.out(&["threads"]).contains("2025-05-01 00:00"));
}

#[test]
fn secrets_are_masked_unless_they_are_kept() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let line = format!(r#"{{"messages":[{{"role":"user","content":"the token is {secret}, use it"}}]}}"#);
    let cli = Cli::new();
    cli.file("chats.jsonl", &line);
    let output = cli.run(&["import", "chats.jsonl"]);
    assert!(output.err.contains("1 possible secret masked; --keep-secrets"), "{output}");
    assert!(!cli.contains_bytes(secret.as_bytes()) || cli.path("chats.jsonl").exists());
    let export = cli.exported().join("\n");
    assert!(!export.contains(&secret) && export.contains("[masked: GitHub token]"), "{export}");
    let again = cli.run(&["import", "chats.jsonl", "--keep-secrets"]);
    assert_eq!(again.out, "nothing new: 1 thread, 1 message already existed\n", "the message is the same one");
    let kept = Cli::new();
    kept.file("chats.jsonl", &line);
    kept.out(&["import", "chats.jsonl", "--keep-secrets"]);
    let export = kept.exported();
    assert!(export.join("\n").contains(&secret));
    // An export of this program is imported unchanged.
    let copy = Cli::new();
    copy.file("export.jsonl", kept.out(&["export"]));
    copy.out(&["import", "export.jsonl"]);
    assert_eq!(copy.exported(), export);
}

#[test]
fn files_and_projects_are_excluded() {
    let cli = with_programs();
    let arguments = ["import", "--all", "--yes", "--exclude", "~/.continue", "--exclude", "*.md", "--exclude", "pier"];
    let output = run_at_home(&cli, &arguments);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.err.contains("1 conversation excluded"), "{output}");
    for (format, expected) in [("continue", 0), ("aider", 0), ("codex", 0), ("claude-code", 1)] {
        let threads = cli.json(&["threads", "-n", "100"]);
        let has =
            |thread: &&serde_json::Value| thread["key"].as_str().unwrap().starts_with(&format!("import:{format}:"));
        assert_eq!(threads["threads"].as_array().unwrap().iter().filter(has).count(), expected, "{format}");
    }
    assert_eq!(cli.run(&["import", "--all", "--yes", "--exclude", "/"]).code, Some(2));
}

#[test]
fn archives_are_read_and_their_other_files_are_listed() {
    let cli = Cli::new();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let entries = [
        ("conversations.json", session("chatgpt.json")),
        ("user.json", b"{\"id\":\"u\"}".to_vec()),
        ("file-1-plan.pdf", b"%PDF".to_vec()),
        ("chat.html", b"<html>".to_vec()),
    ];
    for (name, bytes) in entries {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&bytes).unwrap();
    }
    cli.file("export.zip", archive.finish().unwrap().into_inner());
    let output = cli.run(&["import", "export.zip"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.out, "imported 4 threads, 10 messages (2 of the threads are forks)\n", "{output}");
    let names = "export.zip: 2 files without conversations are not imported (file-1-plan.pdf, chat.html)";
    assert!(output.err.contains(names), "{output}");
    assert!(output.err.contains("skipped export.zip:user.json: not a conversation file"), "{output}");
    assert!(cli.run(&["import", "export.zip"]).out.starts_with("nothing new"), "a second import");
}

#[test]
fn documents_of_projects_are_added_if_wanted() {
    let cli = Cli::new();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let project = r##"{"uuid":"p1","name":"Pier","prompt_template":"Always be brief.","docs":[{"uuid":"d1","filename":"hours.md","content":"# Hours\nThe pier opens at nine. The token is ghp_SECRET."}]}"##;
    let project = project.replace("ghp_SECRET", &format!("ghp_{}", "a1B2".repeat(9)));
    let instructions = r#"[{"title":"t","mapping":{"a":{"message":{"id":"i","author":{"role":"user"},"create_time":3,"content":{"content_type":"user_editable_context","user_profile":"I keep bees.","user_instructions":""},"metadata":{"is_visually_hidden_from_conversation":true}},"children":["b"]},"b":{"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["Hello"]}},"parent":"a","children":[]}},"current_node":"b"}]"#;
    for (name, text) in [
        ("conversations.json", instructions),
        ("projects/p1.json", project.as_str()),
        (
            "projects/bad.json",
            r#"[{"uuid":"p2","name":"n","docs":[{"filename":"f.md","content":"Kept."}]},{"uuid":"p3","docs":[7]}]"#,
        ),
    ] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    cli.file("export.zip", archive.finish().unwrap().into_inner());
    let output = cli.run(&["import", "export.zip"]);
    assert_eq!((output.code, output.out.as_str()), (Some(0), "imported 1 thread, 1 message\n"), "{output}");
    assert!(
        output.err.contains("projects/p1.json: not a conversation file") && output.err.contains("--documents adds"),
        "{output}"
    );
    assert!(cli.json(&["docs", "list"])["documents"].as_array().unwrap().is_empty());
    let output = cli.run(&["import", "export.zip", "--documents"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.out.contains("\nadded 4 documents to the library, 0 unchanged\n"), "{output}");
    assert!(
        output.err.contains("export.zip:projects/bad.json: ") && output.err.contains("docs: expected an object"),
        "{output}"
    );
    let list = cli.json(&["docs", "list"]);
    let titles: Vec<&str> =
        list["documents"].as_array().unwrap().iter().map(|found| found["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["ChatGPT: custom instructions", "Pier: hours.md", "Pier: instructions", "n: f.md"]);
    assert!(cli.out(&["docs", "search", "When does the pier open?"]).contains("opens at nine"));
    assert!(cli.out(&["docs", "search", "What is the token?"]).contains("[masked: GitHub token]"));
    let again = cli.run(&["import", "export.zip", "--documents"]);
    assert!(again.out.contains("added 0 documents to the library, 4 unchanged\n"), "{again}");
}

/// Returns a database of Cursor with these values.
fn cursor_database(cli: &Cli, rows: &[(&str, &str)]) {
    let path = cli.path(&format!("{HOME}/config/Cursor/User/globalStorage/state.vscdb"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    // As the program does: what is new is in the write-ahead log at first.
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection
        .execute("CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)", [])
        .unwrap();
    for (key, value) in rows {
        connection.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", (key, value.as_bytes())).unwrap();
    }
    // The log remains, because the connection is not closed.
    std::mem::forget(connection);
}

#[test]
fn a_growing_database_of_cursor_is_imported_once() {
    let cli = Cli::new();
    let conversation = |ids: &[&str]| {
        let headers: Vec<_> = ids.iter().map(|id| serde_json::json!({ "bubbleId": id })).collect();
        serde_json::json!({ "name": "Pier", "createdAt": 1_795_646_100_000_u64, "fullConversationHeadersOnly": headers }).to_string()
    };
    cursor_database(
        &cli,
        &[("composerData:c", &conversation(&["a"])), ("bubbleId:c:a", r#"{"type":1,"text":"When?"}"#)],
    );
    let import = || run_at_home(&cli, &["import", "--all", "--yes"]).out;
    assert_eq!(import(), "imported 1 thread, 1 message\n");
    assert_eq!(import(), "nothing new: 1 file has not changed since the last import\n");
    // The headers are written before the message.
    cursor_database(&cli, &[("composerData:c", &conversation(&["a", "b"]))]);
    let incomplete = run_at_home(&cli, &["import", "--all", "--yes"]);
    assert!(incomplete.err.contains("composerData:c: message b is missing"), "{incomplete}");
    cursor_database(&cli, &[("bubbleId:c:b", r#"{"type":2,"text":"At nine."}"#)]);
    assert_eq!(import(), "imported 0 threads, 1 message; 1 thread, 1 message already existed\n");
    assert_eq!(import(), "nothing new: 1 file has not changed since the last import\n");
    let hits = cli.json(&["search", "nine", "--in", "cursor"]);
    assert_eq!(hits["hits"].as_array().unwrap().len(), 1);
    cursor_database(&cli, &[("bubbleId:c:b", r#"{"type":2,"text":"At nine, on Sundays at ten."}"#)]);
    let changed = run_at_home(&cli, &["import", "--all", "--yes"]);
    assert!(
        changed.err.contains("1 message changed since the first import; the text that was imported first is kept"),
        "{changed}"
    );
}

/// A watching process, which is killed at the end of a test.
struct Watcher(Child);

impl Watcher {
    fn start(cli: &Cli) -> Self {
        Self(at_home(cli, &["import", "--all", "--yes", "--watch"]).spawn().unwrap())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn new_turns_are_imported_once_across_restarts() {
    let cli = Cli::new();
    let text = String::from_utf8(session("codex.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let file: PathBuf =
        cli.file(&format!("{HOME}/.codex/sessions/rollout.jsonl"), lines[..10].join("\n") + "\n").into();
    let append = |text: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let count = || {
        cli.run(&["stats", "--json"])
            .out
            .parse::<serde_json::Value>()
            .map_or(0, |stats| stats["messages"].as_u64().unwrap())
    };
    let watcher = Watcher::start(&cli);
    wait_until("the first messages", || count() == 3);
    // A line that is written in two parts.
    append(&format!("{}\n{}", lines[10], &lines[11][..40]));
    wait_until("a further message", || count() == 4);
    append(&format!("{}\n", &lines[11][40..]));
    wait_until("the line that was written in two parts", || count() == 5);
    drop(watcher);
    append(&(lines[12..].join("\n") + "\n"));
    let _watcher = Watcher::start(&cli);
    wait_until("the messages that were added without a watcher", || count() == 12);
    cli.file(&format!("{HOME}/.codex/sessions/second.jsonl"), text.replace("01a214d9-0f9c", "01a214d9-0f9d"));
    wait_until("a new file", || count() == 24);
    assert_eq!(cli.json(&["stats"])["threads"], 2);
}

#[test]
fn programs_that_are_installed_later_are_watched() {
    let cli = Cli::new();
    std::fs::create_dir(cli.path(HOME)).unwrap();
    let _watcher = Watcher::start(&cli);
    wait_until("the store is created", || cli.store().exists());
    cli.file(&format!("{HOME}/.codex/sessions/2026/11/25/rollout-x.jsonl"), session("codex.jsonl"));
    wait_until("the session is imported", || cli.json(&["stats"])["messages"] == 12);
}

#[test]
fn services_are_printed_with_absolute_paths() {
    let cli = Cli::new();
    let unit = cli.out(&["import", "--all", "--watch", "--exclude", "client*", "--documents", "--service", "systemd"]);
    let program = env!("CARGO_BIN_EXE_threadkeep");
    assert!(unit.contains(&format!("ExecStart={program} --config ")), "{unit}");
    assert!(unit.contains(" import --watch --all --yes --exclude \"client*\" --documents\n"), "{unit}");
    let agent = cli.out(&["import", "chats", "--watch", "--service", "launchd"]);
    assert!(agent.contains(&format!("<string>{}</string>", cli.path("chats").display())), "{agent}");
    assert_eq!(cli.run(&["import", "--all", "--service", "systemd"]).code, Some(2), "only a watching command");
    assert!(!cli.store().exists());
}

#[test]
fn documented_examples_match_the_output() {
    let cli = with_programs();
    for block in DOCS.split("```console\n").skip(1) {
        let block = block.split_once("```").unwrap().0;
        for example in block.split("$ threadkeep ").skip(1) {
            let (command, expected) = example.split_once('\n').unwrap();
            let words = shell_words(command);
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = run_at_home(&cli, &[&arguments[..], &["--now", "2026-11-26T09:00:00Z"]].concat());
            assert!(output.code == Some(0), "{command}: {output}");
            let known = |text: &str| -> Vec<String> {
                let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
                lines.map(|line| line.split(" of ").next().unwrap().to_owned()).collect()
            };
            assert_eq!(known(&output.out), known(expected), "{command}");
        }
    }
}

/// Splits a command as a shell does, with single quotes.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}
