use super::{Cli, assert_prints};

#[test]
fn check_accepts_a_healthy_store() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "check", cli.run(&["check"]));
    assert_prints!(cli, "check_json", cli.run(&["check", "--json"]));
}

#[test]
fn derived_data_is_checked_and_repaired() {
    let cli = Cli::with_garden();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    assert_eq!(database.execute("UPDATE threads SET message_count = message_count + 3", []).unwrap(), 2);
    drop(database);
    assert_prints!(cli, "check_derived", cli.run(&["check"]));
    assert_eq!(cli.run(&["check", "--json"]).code, Some(1));
    let repaired = cli.run(&["check", "--repair"]);
    assert_eq!(repaired.code, Some(0), "{repaired}");
    assert_eq!(cli.run(&["check"]).code, Some(0));
    assert_eq!(cli.json(&["search", "carrots"])["hits"].as_array().unwrap().len(), 3, "the index is rebuilt");
}

#[test]
fn corrupt_messages_are_reported_and_do_not_hide_others() {
    let cli = Cli::with_garden();
    let database = rusqlite::Connection::open(cli.store()).unwrap();
    let sql = "UPDATE messages SET body = 'not a message' WHERE position & 4294967295 = 5";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    drop(database);
    let shown = cli.run(&["show", "web:garden"]);
    assert_eq!(shown.code, Some(3), "{shown}");
    assert!(shown.err.contains("cannot read message #5"), "{shown}");
    assert!(shown.out.contains("#4") && shown.out.contains("#6") && !shown.out.contains("#5"), "{shown}");
    let exported = cli.run(&["export"]);
    assert_eq!((exported.code, exported.out.matches("{\"message\":").count()), (Some(3), 8), "{exported}");
    let checked = cli.run(&["check"]);
    assert!(
        checked.code == Some(1) && checked.out.contains("damage in thread") && checked.err.contains("restore"),
        "{checked}"
    );
    let stats = cli.run(&["stats", "--json"]);
    assert!(stats.code == Some(3) && stats.out.contains("\"corrupt_messages\":1"), "{stats}");
}

#[test]
fn vacuum_frees_space() {
    let cli = Cli::with_garden();
    for number in 0..20 {
        let output = cli.run_with_input(
            &["append", "long", "--create"],
            format!("{number}{}", "filler ".repeat(20_000)).as_bytes(),
        );
        assert_eq!(output.code, Some(0), "{output}");
    }
    cli.out(&["erase", "long", "--yes"]);
    let report = cli.json(&["vacuum"]);
    assert!(report["after_bytes"].as_u64() < report["before_bytes"].as_u64(), "{report}");
    assert_prints!(cli, "vacuum", cli.run(&["vacuum"]));
    assert_prints!(cli, "vacuum_json", cli.run(&["vacuum", "--json"]));
    assert_eq!(cli.message_count(), 9);
}
