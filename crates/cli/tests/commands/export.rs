use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::{Cli, assert_prints};

/// Returns the lines of each thread, by the thread's id.
fn threads(lines: &[String]) -> BTreeMap<String, Vec<Value>> {
    let mut threads: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut id = String::new();
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(thread) = line.get("thread") {
            assert!(thread["created_at"].is_string());
            id = thread["id"].as_str().unwrap().to_owned();
        }
        threads.entry(id.clone()).or_default().push(line);
    }
    threads
}

#[test]
fn reimporting_an_export_changes_nothing() {
    let cli = Cli::with_garden();
    cli.out(&["append", "notes", "¿Qué hora es? 東京\t\"quoted\"", "--author", "Ana", "--create"]);
    cli.out(&["append", "web:garden", "Sown."]);
    assert_prints!(cli, "export_file", cli.run(&["export", "-o", "all.jsonl"]));
    let other = Cli::new();
    other.out(&["import", cli.path("all.jsonl").to_str().unwrap()]);
    assert_eq!(threads(&other.exported()), threads(&cli.exported()));
    let first = cli.exported();
    cli.out(&["import", "all.jsonl"]);
    assert_eq!(cli.exported(), first, "importing existing data changes nothing");
}

#[test]
fn gz_files_are_compressed() {
    let cli = Cli::with_garden();
    let report = cli.json(&["export", "-o", "all.jsonl.gz"]);
    assert_eq!((&report["threads"], &report["messages"], &report["documents"]), (&2.into(), &9.into(), &1.into()));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(cli.path("all.jsonl.gz")).unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>(), cli.exported());
    let other = Cli::new();
    other.out(&["import", cli.path("all.jsonl.gz").to_str().unwrap()]);
    assert_eq!(threads(&other.exported()), threads(&cli.exported()));
}

#[test]
fn exports_of_several_threads_share_a_header() {
    let cli = Cli::with_garden();
    let out = cli.out(&["export", "019dd000-0000-7000-8000-000000000002", "web:garden"]);
    assert_eq!(out.matches("{\"threadkeep\":").count(), 1);
    assert_eq!(out.matches("{\"thread\":{").count(), 2);
    assert!(out.find("Watering in July") < out.find("A raised bed"), "threads are exported in the requested order");
    assert_prints!(cli, "export_thread", cli.run(&["export", "019dd000-0000-7000-8000-000000000002"]));
}

#[test]
fn export_replaces_a_file_only_if_it_succeeds() {
    let cli = Cli::with_garden();
    cli.file("all.jsonl", "precious");
    let output = cli.run(&["export", "unknown", "-o", "all.jsonl"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(std::fs::read_to_string(cli.path("all.jsonl")).unwrap(), "precious");
    let output = cli.run(&["export", "-o", "no/such/folder/all.jsonl"]);
    assert!(output.code == Some(3) && output.err.contains("cannot write no/such/folder/all.jsonl"), "{output}");
    cli.out(&["export", "-o", "all.jsonl"]);
    let names = std::fs::read_dir(cli.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        names.into_iter().all(|name| !name.to_string_lossy().starts_with(".threadkeep")),
        "no temporary file remains"
    );
}
