//! Imports the data sets in `THREADKEEP_DATA` through the command line, counts them, imports them again, and compares the
//! store with the sources.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

/// The speakers and texts of conversations in order, by the key of the thread.
type Conversations = BTreeMap<String, Vec<(String, String)>>;

fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must name the folder of the data sets; `cargo xtask test --data` sets it");
    PathBuf::from(folder).join(path)
}

/// Runs a command that must succeed. Returns its standard output.
fn threadkeep(store: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadkeep"));
    command.env("THREADKEEP_ERASURE_LEDGER", "none").env_remove("THREADKEEP_USER").env_remove("THREADKEEP_TENANT");
    command.arg("--store").arg(store).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn import(store: &Path, path: &str) -> Value {
    serde_json::from_str(&threadkeep(store, &["import", data(path).to_str().unwrap(), "--json"])).unwrap()
}

fn counts(store: &Path) -> (u64, u64) {
    let stats: Value = serde_json::from_str(&threadkeep(store, &["stats", "--json"])).unwrap();
    (stats["threads"].as_u64().unwrap(), stats["messages"].as_u64().unwrap())
}

fn stored(store: &Path) -> Conversations {
    let export = threadkeep(store, &["export"]);
    let mut conversations = Conversations::new();
    let mut key = String::new();
    for line in export.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(thread) = line.get("thread") {
            key = thread["key"].as_str().unwrap().to_owned();
            assert!(conversations.insert(key.clone(), Vec::new()).is_none(), "{key} comes twice");
        } else if let Some(message) = line.get("message") {
            let said = (text(&message["author"]), text(&message["parts"][0]["text"]));
            conversations.get_mut(&key).unwrap().push(said);
        }
    }
    conversations
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn locomo() -> Conversations {
    let source: Vec<Value> = serde_json::from_reader(File::open(data("locomo/locomo-dev.json")).unwrap()).unwrap();
    let conversation = |source: &Value| {
        let sessions = (1..100).filter_map(|number| source["conversation"][format!("session_{number}")].as_array());
        sessions.flatten().map(|turn| (text(&turn["speaker"]), text(&turn["text"]))).collect()
    };
    source
        .iter()
        .map(|source| (format!("import:locomo:{}", text(&source["sample_id"])), conversation(source)))
        .collect()
}

fn sgd() -> Conversations {
    let packed = GzDecoder::new(File::open(data("sgd-dialogues/sgd-dev.jsonl.gz")).unwrap());
    let conversation = |line: String| {
        let source: Value = serde_json::from_str(&line).unwrap();
        let turns = source["turns"].as_array().unwrap().iter();
        let said = turns.map(|turn| (text(&turn["speaker"]), text(&turn["text"]))).collect();
        (format!("import:sgd:{}", text(&source["dialogue_id"])), said)
    };
    BufReader::new(packed).lines().map(|line| conversation(line.unwrap())).collect()
}

#[test]
fn the_data_sets_are_imported_once_and_equal_their_sources() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("both.db");

    let report = import(&store, "locomo/locomo-dev.json");
    assert_eq!(
        (&report["threads"], &report["messages"]),
        (&json!({"new": 5, "known": 0}), &json!({"new": 2760, "known": 0}))
    );
    assert_eq!(counts(&store), (5, 2_760));
    assert_eq!(stored(&store), locomo());

    let only_dialogues = folder.path().join("dialogues.db");
    import(&only_dialogues, "sgd-dialogues");
    assert_eq!(counts(&only_dialogues), (600, 12_310));

    import(&store, "sgd-dialogues");
    assert_eq!(counts(&store), (605, 15_070));
    let mut both = locomo();
    both.extend(sgd());
    assert_eq!(both.len(), 605);
    assert_eq!(stored(&store), both);

    let before = lines_without_header(&threadkeep(&store, &["export"]));
    for path in ["locomo/locomo-dev.json", "sgd-dialogues"] {
        let again = import(&store, path);
        assert_eq!((&again["threads"]["new"], &again["messages"]["new"]), (&json!(0), &json!(0)));
    }
    assert_eq!(counts(&store), (605, 15_070));
    assert_eq!(lines_without_header(&threadkeep(&store, &["export"])), before);
    threadkeep(&store, &["check"]);
}

/// Returns the lines of an export without the header, which contains the time of the export.
fn lines_without_header(export: &str) -> Vec<String> {
    export.lines().skip(1).map(str::to_owned).collect()
}
