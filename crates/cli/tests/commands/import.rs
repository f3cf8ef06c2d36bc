use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Cli, assert_looks, fixture};

const GOOD: &str =
    r#"{"messages":[{"role":"user","content":"Is there milk?"},{"role":"assistant","content":"Two bottles."}]}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_second_import_changes_nothing_and_says_so() {
    let cli = Cli::with_garden();
    let before = cli.exported();
    let again = cli.run(&["import", fixture("garden.jsonl").to_str().unwrap()]);
    assert_looks!(cli, "import_again", again);
    assert_eq!(cli.exported(), before);
}

#[test]
fn the_report_for_programs_names_everything() {
    let cli = Cli::new();
    let good = cli.file("good.jsonl", GOOD);
    let bad = cli.file("bad.jsonl", format!("{GOOD}\n{{\"messages\":7}}\n{GOOD}\n"));
    let ran = cli.run(&["import", &good, &bad, "--json"]);
    assert_looks!(cli, "import_json", ran);
}

#[test]
fn a_bad_record_is_named_by_its_line_and_the_rest_goes_on() {
    let cli = Cli::new();
    let text = [GOOD, "{\"messages\":[{\"role\":\"owner\",\"content\":\"x\"}]}", "not JSON", "", GOOD].join("\n");
    let file = cli.file("chats.jsonl", text);
    let ran = cli.run(&["import", &file]);
    assert_looks!(cli, "import_bad_record", ran);
    assert_eq!(cli.message_count(), 4);
}

#[test]
fn a_record_that_the_store_refuses_is_named_by_its_line_too() {
    let cli = Cli::new();
    let garden = std::fs::read_to_string(fixture("garden.jsonl")).unwrap();
    let mut lines: Vec<&str> = garden.lines().collect();
    lines.insert(5, lines[4]);
    let file = cli.file("doubled.jsonl", lines.join("\n"));
    let ran = cli.run(&["import", &file]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.err.contains("doubled.jsonl:6: conversation \"")
            && ran.err.contains(": 019dd000-0000-7000-8000-0000000000a3: "),
        "{ran}"
    );
    assert_eq!(cli.message_count(), 9);
}

#[test]
fn folders_are_walked_and_what_is_something_else_is_skipped() {
    let cli = Cli::new();
    cli.file("data/README.md", "# Read me");
    cli.file("data/b/chats.jsonl.gz", gzip(GOOD.as_bytes()));
    cli.file("data/a.json", r#"{"colour":"blue"}"#);
    cli.file("data/empty.jsonl", "");
    cli.file("data/.hidden/more.jsonl", "not JSON");
    let ran = cli.run(&["import", "data"]);
    assert_looks!(cli, "import_folder", ran);
}

#[test]
fn a_named_file_that_holds_no_conversations_is_an_error() {
    let cli = Cli::new();
    let binary: Vec<u8> = (0_u32..4096).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (name, content) in [
        ("garbage.json", binary),
        ("empty.json", Vec::new()),
        ("other.json", br#"{"colour":"blue"}"#.to_vec()),
        ("cut.json.gz", gzip(GOOD.as_bytes())[..20].to_vec()),
    ] {
        let file = cli.file(name, content);
        let ran = cli.run(&["import", &file]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{name}: {ran}");
        assert!(ran.err.contains(name) && ran.err.contains("left out"), "{ran}");
    }
    assert_eq!(cli.message_count(), 0);
}

#[test]
fn nothing_to_import_is_an_error_with_a_hint() {
    let cli = Cli::new();
    cli.file("notes/README.md", "# Read me");
    cli.file("other/config.json", r#"{"colour":"blue"}"#);
    for path in ["missing.json", "notes", "other"] {
        let ran = cli.run(&["import", path]);
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(ran.err.contains("error: there is no ") && ran.err.contains("\nhint: "), "{ran}");
    }
    // A mistake in one path imports nothing of the others.
    let good = cli.file("good.jsonl", GOOD);
    assert_eq!(cli.run(&["import", &good, "missing.json"]).code, Some(1));
    assert_eq!(cli.message_count(), 0);
}

#[test]
fn standard_input_and_a_given_format_are_taken() {
    let cli = Cli::new();
    let ran = cli.run_with_input(&["import", "-", "--format", "openai-chat"], GOOD.as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "imported 1 thread, 2 messages\n"), "{ran}");
    let ran = cli.run_with_input(&["import", "-", "--format", "csv"], GOOD.as_bytes());
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.err.contains("sharegpt"), "the known formats are named: {ran}");
}

#[test]
fn what_was_imported_is_found_at_once() {
    let cli = Cli::with_garden();
    let report = cli.json(&["import", fixture("garden.jsonl").to_str().unwrap()]);
    assert_eq!(report["indexed"], 0, "the first import had left nothing to index");
    assert_eq!(cli.json(&["search", "carrots"])["hits"].as_array().unwrap().len(), 3);
}

/// A conversation of ChatGPT, in which `b` and `c` answer `a`.
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
fn branches_become_forks_that_are_marked() {
    let cli = Cli::new();
    let file = cli.file("conversations.json", branched("c"));
    let ran = cli.run(&["import", &file]);
    assert_eq!(ran.out, "imported 2 threads, 3 messages (1 of the threads is a fork)\n", "{ran}");
    assert_eq!(cli.json(&["import", &file])["forks"], serde_json::json!({ "new": 0, "known": 1 }));
    let listed = cli.run(&["threads"]).out;
    assert!(listed.contains("Birds (current)") && listed.contains("Birds (fork)"), "{listed}");
    cli.file("conversations.json", branched("b"));
    assert_eq!(cli.run(&["import", &file]).out, "nothing new: 2 threads, 3 messages were there already\n");
    let listed = cli.run(&["threads"]).out;
    assert!(listed.contains("Birds (not current)") && listed.contains("Birds (fork, current)"), "{listed}");
    assert_eq!(cli.json(&["search", "pelicans"])["hits"].as_array().unwrap().len(), 1);
    // The marks and the messages that forks share go along to another store.
    let other = Cli::new();
    let export = other.file("export.jsonl", cli.out(&["export"]));
    other.run(&["import", &export]);
    // Threads are imported side by side, so their order of creation may differ.
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(other.exported()), sorted(cli.exported()));
    let file = other.file("conversations.json", branched("b"));
    assert_eq!(other.run(&["import", &file]).out, "nothing new: 2 threads, 3 messages were there already\n");
}

#[test]
fn an_error_in_a_file_of_one_line_names_the_conversation() {
    let cli = Cli::new();
    let bad = branched("c").replace("gannets", "gan\\u0000nets").replace("c-1", "c-2");
    let text = format!("[{},{}]", branched("c").trim_matches(['[', ']']), bad.trim_matches(['[', ']']));
    let file = cli.file("conversations.json", text);
    let ran = cli.run(&["import", &file]);
    let expected = "conversations.json: conversation \"Birds\" (c-2): node b: invalid text: holds a NUL character\n";
    assert!(ran.err.contains(expected), "{ran}");
    // Of the second conversation one branch is left.
    assert_eq!(ran.out, "imported 3 threads, 5 messages (1 of the threads is a fork)\n", "{ran}");
    let report: serde_json::Value = serde_json::from_str(&cli.run(&["import", &file, "--json"]).out).unwrap();
    let problem = &report["problems"][0]["conversation"];
    assert_eq!(problem, &serde_json::json!({ "title": "Birds", "id": "c-2" }));
}
