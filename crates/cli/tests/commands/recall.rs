use serde_json::json;

use super::{Cli, assert_prints};

#[test]
fn recall_explains_scores() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "recall", cli.run(&["recall", "How", "deep", "must", "a", "bed", "be?", "-n", "3"]));
    assert_prints!(cli, "recall_json", cli.run(&["recall", "How deep must a bed be?", "-n", "1", "--json"]));
}

#[test]
fn scores_are_the_sums_of_their_parts() {
    let cli = Cli::with_garden();
    let found = cli.json(&["recall", "When did Lea ask about carrots in April 2026?", "--limit", "50"]);
    let turns = found["turns"].as_array().unwrap();
    assert!(turns.len() > 2, "{found}");
    for turn in turns {
        let sum: f64 = turn["parts"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
        assert!((sum - turn["score"].as_f64().unwrap()).abs() < 1e-9, "{turn}");
    }
    let occurs = |part: &str| turns.iter().any(|turn| turn["parts"][part].as_f64() > Some(0.0));
    assert!(["words", "passage", "neighbours", "speaker", "time"].into_iter().all(occurs), "{found}");
}

#[test]
fn recall_searches_only_the_requested_scope() {
    let cli = Cli::with_garden();
    let seqs = |arguments: &[&str]| {
        let found = cli.json(&[&["recall", "carrots"], arguments].concat());
        found["turns"].as_array().unwrap().iter().map(|turn| turn["message"]["seq"].clone()).collect::<Vec<_>>()
    };
    assert!(seqs(&["--thread", "web:garden"]).contains(&json!(5)));
    assert_eq!(seqs(&["--thread", "web:garden", "-n", "1"]).len(), 1);
    assert_eq!(seqs(&["--user", "bea"]), [json!(null); 0]);
    assert!(seqs(&["--as-tenant"]).contains(&json!(5)));
    assert_eq!(cli.run(&["recall", "carrots", "--thread", "no-thread"]).code, Some(1));
    assert_eq!(cli.run(&["recall", "carrots", "--limit", "0"]).code, Some(2));
    assert_eq!(cli.run(&["recall"]).code, Some(2));
    let without_words = cli.run(&["recall", "?!"]);
    assert!(without_words.code == Some(1) && without_words.err.contains("hint: "), "{without_words}");
    let nothing = cli.run(&["recall", "submarine"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), ""));
    assert!(nothing.err.starts_with("nothing found\nhint: "), "{nothing}");
}
