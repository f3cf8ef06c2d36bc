use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Cli, assert_prints};

const GARDEN: &str = "web:garden";

#[test]
fn threads_are_listed() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "threads", cli.run(&["threads", "--created"]));
    assert_prints!(cli, "threads_json", cli.run(&["threads", "--created", "--json"]));
    assert_prints!(cli, "threads_none", cli.run(&["threads", "--user", "bea"]));
}

#[test]
fn threads_are_listed_in_pages() {
    let cli = Cli::with_garden();
    let first = cli.run(&["threads", "--created", "--limit", "1"]);
    assert_prints!(cli, "threads_page", first);
    let page = cli.json(&["threads", "--created", "--limit", "1"]);
    let next = cli.json(&["threads", "--created", "--limit", "1", "--after", page["next"].as_str().unwrap()]);
    let titles: Vec<_> = [&page, &next].map(|page| page["threads"][0]["title"].as_str().unwrap()).to_vec();
    assert_eq!(titles, ["A raised bed for the yard", "Watering in July"]);
    assert_eq!(next["next"], Value::Null);
    let recent = cli.json(&["threads", "--recent"]);
    cli.out(&["append", GARDEN, "Sown."]);
    assert_eq!(cli.json(&["threads"])["threads"][0]["key"], GARDEN);
    assert_eq!(recent["threads"].as_array().unwrap().len(), 2);
    assert_eq!(cli.run(&["threads", "--limit", "0"]).code, Some(2));
    assert_eq!(cli.run(&["threads", "--recent", "--created"]).code, Some(2));
    assert_eq!(cli.run(&["threads", "--after", "nonsense"]).code, Some(1));
}

#[test]
fn show_prints_a_thread() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "show", cli.run(&["show", GARDEN]));
    assert_prints!(cli, "show_json", cli.run(&["show", GARDEN, "--limit", "2", "--json"]));
    assert_eq!(cli.json(&["show", GARDEN, "--all"])["messages"].as_array().unwrap().len(), 7);
}

fn seqs(shown: &Value) -> Vec<u64> {
    shown["messages"].as_array().unwrap().iter().map(|message| message["seq"].as_u64().unwrap()).collect()
}

// S1.15, S1.16
#[test]
fn bounds_are_exclusive_and_apply_before_the_limit() {
    let cli = Cli::with_garden();
    for (arguments, expected, more) in [
        (&["--limit", "2"][..], &[6, 7][..], true),
        (&["--before", "6", "--limit", "2"], &[4, 5], true),
        (&["--after", "2", "--limit", "2"], &[3, 4], true),
        (&["--after", "2", "--before", "5"], &[3, 4], false),
        (&["--after", "2026-04-03"], &[6, 7], false),
        (&["--before", "2026-04-02T09:01:05Z"], &[1, 2], false),
        (&["--role", "user"], &[2, 6], false),
        (&["--role", "user,tool", "--all"], &[2, 4, 6], false),
        (&["--after", "99"], &[], false),
    ] {
        let shown = cli.json(&[&["show", GARDEN], arguments].concat());
        assert_eq!((seqs(&shown).as_slice(), &shown["more"]), (expected, &json!(more)), "{arguments:?}");
    }
    let page = cli.run(&["show", GARDEN, "--limit", "1", "--role", "user"]);
    assert!(page.err.contains("show web:garden --before 6 --role user"), "{page}");
    assert_eq!(cli.run(&["show", GARDEN, "--before", "yesterday"]).code, Some(2));
    assert_eq!(cli.run(&["show", GARDEN, "--role", "human"]).code, Some(2));
}

#[test]
fn threads_are_found_by_id_key_or_id_prefix() {
    let cli = Cli::with_garden();
    let whole = "019dd000-0000-7000-8000-000000000001";
    for name in [whole, &whole.to_uppercase(), GARDEN] {
        assert_eq!(cli.json(&["show", name])["thread"]["id"], whole, "{name}");
    }
    let ambiguous = cli.run(&["show", "019dd000"]);
    assert_eq!(ambiguous.code, Some(1));
    assert_prints!(cli, "show_ambiguous", ambiguous.err.replace("019dd", "01xdd"));
    cli.out(&["append", "b0b0b0b0-0000-4000-8000-000000000001", "Hello", "--create"]);
    assert_eq!(cli.json(&["show", "b0b0b0"])["messages"][0]["parts"][0]["text"], "Hello");
    for unknown in ["web:gard", "019", "019dd0010", "no-thread", "", &"x".repeat(600)] {
        let output = cli.run(&["show", unknown]);
        assert_eq!(output.code, Some(1), "{output}");
        assert!(output.err.contains("not found") && output.err.contains("hint: "), "{output}");
    }
}

#[test]
fn threads_of_other_users_are_not_found() {
    let cli = Cli::with_garden();
    let theirs = cli.run(&["show", GARDEN, "--user", "bea"]);
    assert_eq!(theirs.err.replace(GARDEN, "X"), cli.run(&["show", "unknown"]).err.replace("unknown", "X"));
    assert_eq!(cli.run(&["show", GARDEN, "--tenant", "acme", "--as-tenant"]).code, Some(1));
    assert_eq!(cli.json(&["threads", "--user", "bea"])["threads"], json!([]));
    assert_eq!(cli.json(&["stats", "--as-tenant"])["threads"], 2);
    assert_prints!(cli, "threads_as_tenant", cli.run(&["threads", "--created", "--as-tenant"]));
}

// S0.43
#[test]
fn messages_are_found() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "search", cli.run(&["search", "sowing", "carrot"]));
    assert_prints!(cli, "search_json", cli.run(&["search", "tomatoes", "--json"]));
    let found = |arguments: &[&str]| {
        let found = cli.json(&[&["search", "carrots"], arguments].concat());
        found["hits"].as_array().unwrap().iter().map(|hit| hit["message"]["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["--role", "assistant"]), [5]);
    assert_eq!(found(&["--limit", "1"]).len(), 1);
    assert_eq!(found(&["--thread", "019dd000-0000-7000-8000-000000000002"]), [0_u64; 0]);
    assert_eq!(
        cli.json(&["search", "carrots", "--user", "bea"])["hits"],
        json!([]),
        "only threads of the caller are searched"
    );
    let nothing = cli.run(&["search", "submarine"]);
    assert_eq!((nothing.code, nothing.out.as_str(), nothing.err.as_str()), (Some(0), "", "nothing found\n"));
    assert_eq!(cli.run(&["search", "?!"]).code, Some(1));
    assert_eq!(cli.run(&["search"]).code, Some(2));
    cli.out(&["append", GARDEN, "The submarine is ready."]);
    assert_eq!(
        cli.json(&["search", "submarines"])["hits"].as_array().unwrap().len(),
        1,
        "found as soon as it is stored"
    );
}

#[test]
fn stats_are_printed() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "stats", cli.run(&["stats"]));
    assert_prints!(cli, "stats_json", cli.run(&["stats", "--json"]));
    assert_prints!(cli, "stats_thread", cli.run(&["stats", GARDEN]));
}

#[test]
fn closed_pipes_end_commands_without_an_error() {
    let cli = Cli::new();
    let text = (0..3_000).map(|line| format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"line {line}\"}}]}}\n"));
    cli.run_with_input(&["import", "-"], text.collect::<String>().as_bytes());
    for arguments in [&["export"][..], &["threads", "--limit", "1000"], &["threads", "--limit", "1000", "--json"]] {
        let mut child = cli.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
    }
}

#[test]
fn threads_are_filtered_by_metadata() {
    let cli = Cli::new();
    let mut lines = vec![json!({ "threadkeep": { "version": 1, "exported_at": "2026-05-25T09:00:00Z" } }).to_string()];
    for (number, env) in (1..).zip(["prod", "test", "prod"]) {
        let id = format!("019dd000-0000-7000-8000-00000000000{number}");
        let message = format!("019dd000-0000-7000-8000-0000000000a{number}");
        let (at, metadata) = ("2026-05-25T09:00:00Z", json!({ "env": env, "number": number, "a b": "c=d" }));
        lines.push(
            json!({ "thread": { "id": id, "owner": { "user": "me" }, "metadata": metadata, "created_at": at } })
                .to_string(),
        );
        let message =
            json!({ "seq": 1, "id": message, "role": "user", "parts": [{ "text": "carrots" }], "created_at": at });
        lines.push(json!({ "message": message }).to_string());
    }
    let imported = cli.run_with_input(&["import", "-"], lines.join("\n").as_bytes());
    assert_eq!(imported.code, Some(0), "{imported}");
    let found = |arguments: &[&str], list: &str, member: &str| {
        let found = cli.json(arguments);
        let ids = found[list].as_array().unwrap().iter().map(|found| found[member].as_str().unwrap().to_owned());
        let mut numbers: Vec<_> = ids.map(|id| id.chars().last().unwrap()).collect();
        numbers.sort_unstable();
        numbers.into_iter().collect::<String>()
    };
    for (filter, expected) in [
        (&["--metadata", "env=prod"][..], "13"),
        (&["--metadata", "env=prod", "--metadata", "number=3"], "3"),
        (&["--metadata", "a b=c=d"], "123"),
        (&["--metadata", "env=Prod"], ""),
    ] {
        assert_eq!(found(&[&["threads"], filter].concat(), "threads", "id"), expected, "{filter:?}");
        assert_eq!(found(&[&["search", "carrots"], filter].concat(), "hits", "thread"), expected, "{filter:?}");
        assert_eq!(found(&[&["recall", "Which carrots?"], filter].concat(), "turns", "thread"), expected, "{filter:?}");
    }
    let page = cli.run(&["threads", "--metadata", "a b=c=d", "--limit", "2"]);
    assert!(page.err.contains("threads --metadata 'a b=c=d' --after "), "{page}");
    let nothing = cli.run(&["threads", "--metadata", "env=none"]);
    assert_eq!((nothing.code, nothing.err.as_str()), (Some(0), "no thread has this metadata\n"));
    for (argument, hint) in [("env", "write KEY=VALUE, such as env=prod"), ("=prod", "the key before `=` is empty")] {
        let refused = cli.run(&["search", "carrots", "--metadata", argument]);
        assert!(refused.code == Some(2) && refused.err.contains(hint), "{refused}");
    }
    let twice = cli.run(&["threads", "--metadata", "env=prod", "--metadata", "env=test"]);
    assert!(twice.code == Some(1) && twice.err.contains("the key `env` appears twice"), "{twice}");
}

#[test]
fn times_are_local_for_people_and_utc_in_json() {
    let cli = Cli::with_garden();
    let in_tokyo = |arguments: &[&str]| {
        let output: super::RunOutput = cli.command(arguments).env("TZ", "JST-9").output().unwrap().into();
        assert_eq!(output.code, Some(0), "{output}");
        output.out
    };
    let shown = in_tokyo(&["show", "web:garden"]);
    assert!(shown.contains("── 2026-04-02 ──") && shown.contains("system · 18:00 · #1"), "{shown}");
    assert!(shown.contains("── 2026-04-06 ──") && shown.contains("02:30 · #6"), "{shown}");
    assert!(in_tokyo(&["threads"]).contains("2026-04-06 02:30"));
    assert!(in_tokyo(&["search", "sow"]).contains("2026-04-06 02:30"));
    for arguments in [&["show", "web:garden", "--json"][..], &["threads", "--json"], &["search", "sow", "--json"]] {
        let json = in_tokyo(arguments);
        assert!(json.contains("2026-04-05T17:30:0") && !json.contains("+09:00"), "{json}");
    }
}
