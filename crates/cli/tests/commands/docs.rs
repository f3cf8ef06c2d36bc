//! Documents: adding, searching, citing and removing them.

use serde_json::json;

use super::Cli;

const GARDEN: &str = "# Allotment\n\n## Watering\n\nTomatoes want water every second day.\n\n## Gate\n\nThe gate is closed on Sundays.\n";

fn with_notes() -> Cli {
    let cli = Cli::new();
    cli.file("notes/garden.md", GARDEN);
    cli.file("notes/deep/rules.html", "<title>Rules</title><h1>Dogs</h1><p>Dogs are allowed on a lead.</p>");
    cli.file("notes/photo.png", [0xff, 0xd8]);
    cli.file("notes/.hidden.md", "hidden");
    cli
}

#[test]
fn folders_are_searched_and_unchanged_files_skipped() {
    let cli = with_notes();
    assert_eq!(cli.out(&["docs", "add", "notes"]), "added 2 documents, 3 passages\n");
    assert_eq!(cli.out(&["docs", "add", "notes"]), "added 0 documents, 0 passages; 2 unchanged\n");
    cli.file("notes/garden.md", format!("{GARDEN}\n## Shed\n\nThe shed has a new lock.\n"));
    let report = cli.json(&["docs", "add", "notes"]);
    assert_eq!((&report["added"][0]["title"], &report["added"][0]["passages"]), (&json!("notes/garden.md"), &json!(3)));
    assert_eq!((&report["unchanged"], &report["problems"]), (&json!(1), &json!([])));
    let titles: Vec<_> = cli.json(&["docs", "list"])["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["title"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(titles, ["notes/deep/rules.html", "notes/garden.md"]);
}

#[test]
fn passages_are_found_with_their_locations() {
    let cli = with_notes();
    cli.out(&["docs", "add", "notes"]);
    let found = cli.json(&["docs", "search", "When is the gate closed?"]);
    assert_eq!(found["passages"][0]["place"], "Allotment > Gate, lines 7-9");
    assert_eq!(found["passages"][0]["text"], "Allotment > Gate\n\nThe gate is closed on Sundays.");
    let out = cli.out(&["ask", "When is the gate closed?"]);
    assert!(
        out.starts_with("notes/garden.md, Allotment > Gate, lines 7-9: “The gate is closed on Sundays.” [1]"),
        "{out}"
    );
    let nothing = cli.run(&["docs", "search", "submarine"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), ""), "{nothing}");
}

#[test]
fn removed_documents_are_gone() {
    let cli = with_notes();
    cli.out(&["docs", "add", "notes"]);
    assert!(cli.out(&["docs", "remove", "notes/garden.md"]).starts_with("removed "));
    let output = cli.run(&["docs", "remove", "notes/garden.md"]);
    assert_eq!((output.code, output.err.contains("not found")), (Some(1), true), "{output}");
    assert_eq!(cli.json(&["docs", "search", "gate"])["passages"], json!([]));
    assert_eq!(cli.json(&["docs", "list"])["documents"].as_array().unwrap().len(), 1);
}

#[test]
fn libraries_and_users_are_separate() {
    let cli = with_notes();
    cli.out(&["docs", "add", "notes", "--library", "garden"]);
    cli.out(&["docs", "add", "notes/deep", "--as-tenant"]);
    let count = |arguments: &[&str]| cli.json(arguments)["passages"].as_array().unwrap().len();
    assert_eq!(count(&["docs", "search", "gate", "--library", "garden"]), 1);
    assert_eq!(count(&["docs", "search", "gate"]), 0);
    assert_eq!(count(&["docs", "search", "gate", "--library", "garden", "--user", "ben"]), 0);
    assert_eq!(count(&["docs", "search", "dogs", "--user", "ben"]), 1);
    assert_eq!(count(&["docs", "search", "dogs", "--tenant", "other"]), 0);
}

#[test]
fn unreadable_files_are_reported_and_skipped() {
    let cli = Cli::new();
    cli.file("notes/a.txt", [0xff, 0xfe, 0x00]);
    cli.file("notes/b.txt", "Readable words.");
    cli.file("notes/c.md", "\n\n");
    let output = cli.run(&["docs", "add", "notes"]);
    assert_eq!((output.code, output.out.as_str()), (Some(1), "added 1 document, 1 passage\n"), "{output}");
    assert!(
        output.err.contains("notes/a.txt is not UTF-8 text")
            && output.err.contains("notes/c.md: the document contains no text"),
        "{output}"
    );
    let output = cli.run(&["docs", "add", "nowhere"]);
    assert_eq!((output.code, output.err.contains("no such file or folder: nowhere")), (Some(1), true), "{output}");
    let output = cli.run(&["docs", "list", "--library", "a b"]);
    assert_eq!(output.code, Some(2), "{output}");
}

#[cfg(unix)]
#[test]
fn symbolic_links_out_of_a_folder_are_not_followed() {
    let cli = Cli::new();
    cli.file("folder/tent.md", "The tent is blue.");
    let secret = cli.file("secret.txt", "The password is swordfish.");
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, cli.path(name)).unwrap();
    link(&secret, "folder/secret.txt");
    link(cli.path("folder").to_str().unwrap(), "folder/again");
    link("tent.md", "folder/same.md");
    cli.out(&["docs", "add", "folder"]);
    let listed = cli.out(&["docs", "list"]);
    assert!(listed.contains("tent.md") && !listed.contains("secret"), "{listed}");
    assert!(cli.out(&["ask", "What is the password?"]).starts_with("I found nothing"));
    // A link is followed if the command names it.
    cli.out(&["docs", "add", "folder/secret.txt"]);
    assert!(cli.out(&["ask", "What is the password?"]).contains("swordfish"));
    let output = cli.run(&["docs", "add", "/dev/null"]);
    assert_eq!(
        (output.code, output.err.contains("/dev/null is neither a file nor a folder")),
        (Some(1), true),
        "{output}"
    );
}
