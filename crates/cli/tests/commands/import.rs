use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Cli, assert_prints, fixture};

const GOOD: &str =
    r#"{"messages":[{"role":"user","content":"Is there milk?"},{"role":"assistant","content":"Two bottles."}]}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn repeated_imports_change_nothing() {
    let cli = Cli::with_garden();
    let before = cli.exported();
    let again = cli.run(&["import", fixture("garden.jsonl").to_str().unwrap()]);
    assert_prints!(cli, "import_again", again);
    assert_eq!(cli.exported(), before);
}

#[test]
fn json_import_reports_are_complete() {
    let cli = Cli::new();
    let good = cli.file("good.jsonl", GOOD);
    let bad = cli.file("bad.jsonl", format!("{GOOD}\n{{\"messages\":7}}\n{GOOD}\n"));
    let output = cli.run(&["import", &good, &bad, "--json"]);
    assert_prints!(cli, "import_json", output);
}

#[test]
fn invalid_records_are_reported_by_line_and_skipped() {
    let cli = Cli::new();
    let text = [GOOD, "{\"messages\":[{\"role\":\"owner\",\"content\":\"x\"}]}", "not JSON", "", GOOD].join("\n");
    let file = cli.file("chats.jsonl", text);
    let output = cli.run(&["import", &file]);
    assert_prints!(cli, "import_bad_record", output);
    assert_eq!(cli.message_count(), 4);
}

#[test]
fn records_that_the_store_rejects_are_reported_by_line() {
    let cli = Cli::new();
    let garden = std::fs::read_to_string(fixture("garden.jsonl")).unwrap();
    let mut lines: Vec<&str> = garden.lines().collect();
    lines.insert(5, lines[4]);
    let file = cli.file("doubled.jsonl", lines.join("\n"));
    let output = cli.run(&["import", &file]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(
        output.err.contains("doubled.jsonl:6: conversation \"")
            && output.err.contains(": 019dd000-0000-7000-8000-0000000000a3: "),
        "{output}"
    );
    assert_eq!(cli.message_count(), 9);
}

#[test]
fn folders_are_searched_and_other_files_skipped() {
    let cli = Cli::new();
    cli.file("data/README.md", "# Read me");
    cli.file("data/b/chats.jsonl.gz", gzip(GOOD.as_bytes()));
    cli.file("data/a.json", r#"{"colour":"blue"}"#);
    cli.file("data/empty.jsonl", "");
    cli.file("data/.hidden/more.jsonl", "not JSON");
    let output = cli.run(&["import", "data"]);
    assert_prints!(cli, "import_folder", output);
}

#[test]
fn named_files_without_conversations_are_errors() {
    let cli = Cli::new();
    let binary: Vec<u8> = (0_u32..4096).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (name, content) in [
        ("garbage.json", binary),
        ("empty.json", Vec::new()),
        ("other.json", br#"{"colour":"blue"}"#.to_vec()),
        ("cut.json.gz", gzip(GOOD.as_bytes())[..20].to_vec()),
    ] {
        let file = cli.file(name, content);
        let output = cli.run(&["import", &file]);
        assert_eq!((output.code, output.out.as_str()), (Some(1), ""), "{name}: {output}");
        assert!(output.err.contains(name) && output.err.contains("skipped"), "{output}");
    }
    assert_eq!(cli.message_count(), 0);
}

#[test]
fn empty_imports_are_errors_with_a_hint() {
    let cli = Cli::new();
    cli.file("notes/README.md", "# Read me");
    cli.file("other/config.json", r#"{"colour":"blue"}"#);
    for path in ["missing.json", "notes", "other"] {
        let output = cli.run(&["import", path]);
        assert_eq!(output.code, Some(1), "{output}");
        assert!(output.err.contains("error: no ") && output.err.contains("\nhint: "), "{output}");
    }
    // If one path does not exist, the files at the other paths are not imported either.
    let good = cli.file("good.jsonl", GOOD);
    assert_eq!(cli.run(&["import", &good, "missing.json"]).code, Some(1));
    assert_eq!(cli.message_count(), 0);
}

#[test]
fn standard_input_and_explicit_formats_work() {
    let cli = Cli::new();
    let output = cli.run_with_input(&["import", "-", "--format", "openai-chat"], GOOD.as_bytes());
    assert_eq!((output.code, output.out.as_str()), (Some(0), "imported 1 thread, 2 messages\n"), "{output}");
    let output = cli.run_with_input(&["import", "-", "--format", "csv"], GOOD.as_bytes());
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.err.contains("sharegpt"), "the known formats are named: {output}");
}

#[test]
fn imported_messages_are_immediately_searchable() {
    let cli = Cli::with_garden();
    let report = cli.json(&["import", fixture("garden.jsonl").to_str().unwrap()]);
    assert_eq!(report["indexed"], 0, "the first import indexed all messages");
    assert_eq!(cli.json(&["search", "carrots"])["hits"].as_array().unwrap().len(), 3);
}

/// Returns a ChatGPT conversation in which `b` and `c` are replies to `a`.
fn branched(current: &str) -> String {
    let node = |id: &str, parent: &str, words: &str| {
        format!(
            r#""{id}":{{"parent":"{parent}","message":{{"id":"{id}","author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{words}"]}}}}}}"#
        )
    };
    let nodes = [node("a", "", "pelicans"), node("b", "a", "gannets"), node("c", "a", "cormorants")].join(",");
    format!(r#"[{{"title":"Birds","conversation_id":"c-1","mapping":{{{nodes}}},"current_node":"{current}"}}]"#)
}

#[test]
fn branches_become_marked_forks() {
    let cli = Cli::new();
    let file = cli.file("conversations.json", branched("c"));
    let output = cli.run(&["import", &file]);
    assert_eq!(output.out, "imported 2 threads, 3 messages (1 of the threads is a fork)\n", "{output}");
    assert_eq!(cli.json(&["import", &file])["forks"], serde_json::json!({ "new": 0, "known": 1 }));
    let listed = cli.run(&["threads"]).out;
    assert!(listed.contains("Birds (current)") && listed.contains("Birds (fork)"), "{listed}");
    cli.file("conversations.json", branched("b"));
    assert_eq!(cli.run(&["import", &file]).out, "nothing new: 2 threads, 3 messages already existed\n");
    let listed = cli.run(&["threads"]).out;
    assert!(listed.contains("Birds (not current)") && listed.contains("Birds (fork, current)"), "{listed}");
    assert_eq!(cli.json(&["search", "pelicans"])["hits"].as_array().unwrap().len(), 1);
    // Backups contain the marks of forks, and the messages that forks share.
    let other = Cli::new();
    let export = other.file("export.jsonl", cli.out(&["export"]));
    other.run(&["import", &export]);
    // Threads are imported concurrently, so the order of their creation may differ.
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(other.exported()), sorted(cli.exported()));
    let file = other.file("conversations.json", branched("b"));
    assert_eq!(other.run(&["import", &file]).out, "nothing new: 2 threads, 3 messages already existed\n");
}

#[test]
fn errors_in_single_line_files_name_the_conversation() {
    let cli = Cli::new();
    let bad = branched("c").replace("gannets", "gan\\u0000nets").replace("c-1", "c-2");
    let text = format!("[{},{}]", branched("c").trim_matches(['[', ']']), bad.trim_matches(['[', ']']));
    let file = cli.file("conversations.json", text);
    let output = cli.run(&["import", &file]);
    let expected = "conversations.json: conversation \"Birds\" (c-2): node b: invalid text: contains a NUL character\n";
    assert!(output.err.contains(expected), "{output}");
    // One branch of the second conversation remains.
    assert_eq!(output.out, "imported 3 threads, 5 messages (1 of the threads is a fork)\n", "{output}");
    let report: serde_json::Value = serde_json::from_str(&cli.run(&["import", &file, "--json"]).out).unwrap();
    let problem = &report["problems"][0]["conversation"];
    assert_eq!(problem, &serde_json::json!({ "title": "Birds", "id": "c-2" }));
}

/// The schema of the TFL Underground AI Assistant (S0.03 to S0.08). Invalid rows can be inserted, as in files that earlier versions
/// of the assistant wrote.
const TFL_SCHEMA: &str = "
    PRAGMA foreign_keys = OFF;
    PRAGMA ignore_check_constraints = ON;
    CREATE TABLE threads (id TEXT PRIMARY KEY, created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
        updated_at DATETIME DEFAULT CURRENT_TIMESTAMP, metadata TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, thread_id TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('human', 'assistant')), content TEXT NOT NULL,
        agent_type TEXT CHECK (agent_type IN ('CIRCLE', 'BAKERLOO', 'DISTRICT')),
        tfl_data TEXT, created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
        FOREIGN KEY (thread_id) REFERENCES threads (id) ON DELETE CASCADE);
    CREATE INDEX idx_messages_thread_id ON messages (thread_id);
    CREATE INDEX idx_messages_created_at ON messages (created_at);
    CREATE INDEX idx_threads_updated_at ON threads (updated_at);";

// S0.03, S0.04, S0.05, S0.06
#[test]
fn a_database_of_the_tfl_assistant_is_imported() {
    let cli = Cli::new();
    let path = cli.file("chatHistory.sqlite", "");
    std::fs::remove_file(&path).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(TFL_SCHEMA).unwrap();
    database
        .execute_batch(
            r#"INSERT INTO threads VALUES ('t-1', '2025-05-01 08:00:00', '2025-05-01 08:01:00',
                   '{"type":"tfl_transport_query","initialQuery":"Circle?"}');
               INSERT INTO messages VALUES ('m-1', 't-1', 'human', 'Circle?', NULL, NULL, '2025-05-01 08:00:00');
               INSERT INTO messages VALUES ('m-2', 't-1', 'assistant', 'Good service.', 'CIRCLE', '{"lines":["CIRCLE"]}',
                   '2025-05-01 08:00:00');
               INSERT INTO messages VALUES ('m-3', 't-1', 'robot', 'Beep.', NULL, NULL, '2025-05-01 08:00:01');
               INSERT INTO messages VALUES ('m-4', 't-1', 'assistant', 'Still good.', 'CIRCLE', '{broken', '2025-05-01 08:00:02');
               INSERT INTO messages VALUES ('m-6', 't-1', 'assistant', 'All well.', 'JUBILEE', NULL, '2025-05-01 08:00:04');
               INSERT INTO messages VALUES ('m-5', 't-9', 'human', 'Lost.', NULL, NULL, '2025-05-01 08:00:03');"#,
        )
        .unwrap();
    drop(database);
    for arguments in [vec!["import", &path], vec!["import", &path, "--format", "tfl-sqlite"]] {
        let output = cli.run(&arguments);
        assert_eq!(output.code, Some(1), "{output}");
        for problem in
            ["row 3 (m-3): `role` is robot", "row 4 (m-4): `tfl_data` is not JSON", "row 6: there is no thread t-9"]
        {
            assert!(output.err.contains(problem), "{problem}: {output}");
        }
        assert_eq!(cli.message_count(), 4, "a second import changes nothing");
    }
    let exported = cli.exported().join("\n");
    for kept in
        ["import:tfl-sqlite:t-1", "tfl_transport_query", "CIRCLE", "JUBILEE", "Good service.", "2025-05-01T08:00:00"]
    {
        assert!(exported.contains(kept), "{kept}: {exported}");
    }
    assert!(exported.contains(r#"{"lines":["CIRCLE"]}"#), "data is kept: {exported}");
    assert!(exported.find("Circle?\"").unwrap() < exported.find("Still good.").unwrap());
}

#[test]
fn other_databases_are_rejected() {
    let cli = Cli::new();
    let path = cli.file("other.sqlite", "");
    std::fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE threads (id TEXT PRIMARY KEY, created_at TEXT)")
        .unwrap();
    let output = cli.run(&["import", &path]);
    assert_ne!(output.code, Some(0), "{output}");
    assert!(output.err.contains("no table `messages`"), "{output}");
}
