use super::{Cli, assert_prints};

#[test]
fn the_demo_uses_a_separate_store() {
    let cli = Cli::with_garden();
    let output = cli.run(&["demo", "--store", "demo.db"]);
    assert_prints!(cli, "demo", output);
    let next = output.out.lines().find(|line| line.contains(" show ")).unwrap();
    assert!(next.contains("--store demo.db show demo:camping"), "{next}");
    let shown = cli.json(&["show", "demo:camping", "--store", "demo.db"]);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 31);
    let again = cli.run(&["demo", "--store", "demo.db"]);
    assert!(again.code == Some(0) && again.out.contains("nothing new: 1 thread, 31 messages"), "{again}");
    assert_eq!(cli.message_count(), 9, "the store in the environment is unchanged");
}

#[test]
fn readme_shows_the_output_of_the_demo() {
    let cli = Cli::new();
    let out = cli.out(&["demo", "--store", "demo.db"]);
    let section = out.split("\n▸ ").find(|section| section.starts_with("Explain the context")).unwrap();
    let (_, explained) = section.split_once("\n\n").unwrap();
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    assert!(
        readme.contains(&format!("```text\n{}\n```", explained.trim_end())),
        "README.md does not contain this output of the demo:\n{explained}"
    );
}

#[test]
fn the_demo_creates_a_store_by_default() {
    let cli = Cli::new();
    let mut command = cli.command(&["demo", "--json"]);
    let output = command.env("TMPDIR", cli.folder.path()).env("TMP", cli.folder.path()).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["threads"], &report["messages"]), (&1.into(), &31.into()));
    let store = report["store"].as_str().unwrap();
    assert_eq!(cli.json(&["stats", "--store", store])["messages"], 31);
    assert!(!cli.store().exists());
}
