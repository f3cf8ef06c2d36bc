use serde_json::{Value, json};

use super::{Cli, assert_prints};

const GARDEN: &str = "web:garden";
const GARDEN_ID: &str = "019dd000-0000-7000-8000-000000000001";
const WATERING: &str = "019dd000-0000-7000-8000-000000000002";
const DEEP: &str = "How deep must the bed be?";

fn with_demo() -> Cli {
    let cli = Cli::new();
    let store = cli.store();
    cli.out(&["demo", "--store", store.to_str().unwrap()]);
    cli
}

fn fates(context: &Value) -> Vec<(u64, u64, &str)> {
    let spans = context["report"]["messages"].as_array().unwrap().iter();
    spans.map(|span| (number(&span["first_seq"]), number(&span["last_seq"]), span["fate"].as_str().unwrap())).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn contexts_are_printed() {
    let cli = Cli::with_garden();
    assert_prints!(cli, "context", cli.run(&["context", GARDEN, DEEP, "--recall", "--window", "3"]));
    assert_prints!(cli, "context_newest", cli.run(&["context", GARDEN, "--window", "2", "--no-summary"]));
    assert_prints!(cli, "context_json", cli.run(&["context", GARDEN, DEEP, "--window", "2", "--no-summary", "--json"]));
}

// S4.14
#[test]
fn transcripts_are_one_text_between_markers() {
    let cli = Cli::with_garden();
    let output = cli.run(&["context", GARDEN, DEEP, "--window", "2", "--no-summary", "--transcript"]);
    assert_eq!(
        output.out,
        "[CONVERSATION HISTORY - Use this to understand references like 'it', 'that', 'the deployment']\n\
         \n\
         User: And when do I sow the carrots?\n\
         \n\
         Assistant: From mid April, as soon as the soil has 8 degrees.\n\
         \n\
         [END CONVERSATION HISTORY]\n\
         \n\
         [CURRENT USER MESSAGE]\n\
         How deep must the bed be?\n"
    );
}

#[test]
fn contexts_are_explained() {
    let cli = with_demo();
    let explained = ["context", "demo:camping", "Who is allergic?", "--recall", "--window", "6", "--explain"];
    assert_prints!(cli, "context_explained", cli.run(&explained));
    assert_prints!(cli, "context_explained_long", cli.run(&["context", "demo:camping", "--window", "30", "--explain"]));
    let tight = [&explained[..], &["--budget", "300", "--transcript", "--no-summary"]].concat();
    assert_prints!(cli, "context_explained_tight", cli.run(&tight));
}

#[test]
fn json_contexts_match_the_explanation() {
    let cli = with_demo();
    let question = "Who is allergic?";
    let context = cli.json(&["context", "demo:camping", question, "--recall", "--window", "6", "--budget", "500"]);
    let report = &context["report"];
    let total = number(&report["tokens"]["total"]);
    assert!(total <= 500 && report["budget"] == 500 && report["counter"] == "approximate", "{report}");
    let spanned: u64 = fates(&context).iter().map(|(first, last, _)| last - first + 1).sum();
    assert_eq!(spanned, 31, "every message has a fate");
    let recalled: Vec<_> = report["recalled"].as_array().unwrap().iter().map(|found| &found["seq"]).collect();
    assert!(recalled.contains(&&json!(16)), "{report}");
    let sent = context["messages"].as_array().unwrap();
    assert_eq!(sent.last().unwrap()["parts"][0]["text"], question);
    assert!(sent.iter().any(|message| message.to_string().contains("Mila is allergic to nuts")), "{sent:?}");
    assert_eq!((&context["incomplete"], &context["kept"]), (&json!(false), &Value::Null));
}

#[test]
fn windows_are_exact_and_counters_selectable() {
    let cli = Cli::with_garden();
    let context = cli.json(&["context", GARDEN, DEEP, "--window", "2", "--no-summary", "--budget", "9000"]);
    assert_eq!(fates(&context), [(1, 5, "dropped"), (6, 6, "kept"), (7, 7, "kept")]);
    for (given, counter) in
        [("cl100k", "cl100k"), ("gpt-4", "cl100k"), ("openai/gpt-4o-mini", "o200k"), ("llama-3", "approximate")]
    {
        let context = cli.json(&["context", GARDEN, "--counter", given]);
        assert_eq!(context["report"]["counter"], counter, "{given}");
    }
    assert_eq!(cli.run(&["context", GARDEN, "--window", "0"]).code, Some(2));
    assert_eq!(cli.run(&["context", GARDEN, "--budget", "0"]).code, Some(2));
    let misplaced = cli.run(&["context", GARDEN, "--recall", DEEP]);
    assert!(misplaced.code == Some(2) && misplaced.err.contains("put the question before --recall"), "{misplaced}");
}

#[test]
fn too_small_budgets_are_rejected_with_the_minimum() {
    let cli = Cli::with_garden();
    let output = cli.run(&["context", GARDEN, DEEP, "--budget", "5"]);
    assert_prints!(cli, "context_too_small", output);
    let enough = output.err.split("--budget ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(cli.run(&["context", GARDEN, DEEP, "--budget", enough]).code, Some(0));
    let less = (enough.parse::<u64>().unwrap() - 1).to_string();
    assert_eq!(cli.run(&["context", GARDEN, DEEP, "--budget", &less]).code, Some(1));
}

#[test]
fn explanations_can_be_stored_and_printed_again() {
    let cli = Cli::with_garden();
    let kept = cli.json(&["context", GARDEN, DEEP, "--recall", "--window", "3", "--keep", "turn 7"]);
    assert_eq!(kept["kept"], "turn 7");
    cli.out(&["append", WATERING, "Water them."]);
    for arguments in [&["context", "--turn", "turn 7"][..], &["context", GARDEN, "--turn", "turn 7", "--explain"]] {
        let shown = cli.json(arguments);
        assert_eq!(shown, json!({"thread": GARDEN_ID, "turn": "turn 7", "report": kept["report"]}));
    }
    assert_prints!(cli, "context_turn", cli.run(&["context", "--turn", "turn 7"]));
    let again = cli.run(&["context", GARDEN, DEEP, "--keep", "turn 8", "--explain"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), "the explanation is stored as turn 8\n"), "{again}");
    assert_prints!(cli, "context_no_turn", cli.run(&["context", "--turn", "turn 9"]));
    assert_eq!(cli.run(&["context", WATERING, "--turn", "turn 7"]).code, Some(1), "the turn belongs to another thread");
    assert_eq!(cli.run(&["context", "--turn", "turn 7", "--user", "bea"]).code, Some(1));
    for wrong in [
        &["context", "--turn", ""][..],
        &["context", GARDEN, "--keep", &"x".repeat(401)],
        &["context", GARDEN, "--keep", "\u{1b}[2J"],
        &["context", GARDEN, DEEP, "--turn", "turn 7"],
        &["context", GARDEN, "--turn", "turn 7", "--budget", "100"],
        &["context", GARDEN, "--turn", "turn 7", "--keep", "turn 8"],
        &["context"],
    ] {
        assert_eq!(cli.run(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn failures_to_store_an_explanation_are_reported() {
    let cli = Cli::new();
    cli.out(&["append", "channel", "Welcome.", "--create", "--as-tenant"]);
    let output = cli.run(&["context", "channel", "--keep", "turn 1"]);
    assert!(
        output.code == Some(3) && output.out.contains("Welcome.") && output.err.contains("could not be stored"),
        "{output}"
    );
    assert_eq!(cli.run(&["context", "channel", "--keep", "turn 1", "--as-tenant"]).code, Some(0));
}

#[test]
fn contexts_can_be_assembled_without_a_question() {
    let cli = Cli::with_garden();
    let same = cli.json(&["context", GARDEN_ID, DEEP]);
    for name in [GARDEN, &GARDEN_ID.to_uppercase()] {
        assert_eq!(cli.json(&["context", name, DEEP]), same, "{name}");
    }
    let empty = cli.run(&["context", GARDEN, "  "]);
    assert!(empty.code == Some(2) && empty.err.contains("hint: "), "{empty}");
    let unknown = cli.run(&["context", "missing", DEEP]);
    assert!(unknown.code == Some(1) && unknown.err.contains("thread `missing` not found"), "{unknown}");
    let nothing = cli.run(&["context", GARDEN, "Submarine?", "--recall", "--explain"]);
    assert_eq!((nothing.code, nothing.err.as_str()), (Some(0), "no relevant messages found for the question\n"));
}

#[test]
fn recall_stays_within_its_scope() {
    let cli = Cli::with_garden();
    let recalled = |arguments: &[&str]| {
        let context = cli.json(&[&["context", GARDEN, "What about watering in the morning?"], arguments].concat());
        context["report"]["recalled"].as_array().cloned().unwrap_or_default()
    };
    let is_elsewhere = |found: &Value| found["thread"] == WATERING;
    assert!(recalled(&["--recall", "user"]).iter().any(is_elsewhere));
    assert!(!recalled(&["--recall", "thread"]).iter().any(is_elsewhere));
    assert_eq!(recalled(&["--recall"]), recalled(&["--recall", "thread"]));
    assert_eq!(recalled(&[]), [Value::Null; 0]);
    let as_tenant = ["context", GARDEN_ID, "When are they watered?", "--recall", "user", "--as-tenant"];
    assert!(cli.json(&as_tenant)["report"]["recalled"].as_array().unwrap().iter().any(is_elsewhere));
    let theirs = cli.run(&["context", GARDEN, "--user", "bea"]);
    assert_eq!(theirs.err.replace(GARDEN, "X"), cli.run(&["context", "unknown"]).err.replace("unknown", "X"));
    cli.out(&["append", "own", "Watering in the morning is best.", "--create", "--user", "bea"]);
    let hers = cli.json(&["context", "own", "When is watering best?", "--recall", "user", "--user", "bea"]);
    assert!(!hers["report"].to_string().contains(WATERING), "{hers}");
}
