use threadkeep_context::{ContextInput, ContextPolicy, Fate, FateReason, Rendering, WAITING};
use threadkeep_core::TokenCount;

use super::fixtures::{assembled, assistant, calls, history, result, seqs, user, whole, written};

#[test]
fn a_pair_that_the_window_would_split_is_omitted() {
    let history = history([
        user("delete webex234"),
        calls(&[("a", "describe", "{}"), ("b", "events", "{}")]),
        result("a", "3/3 ready"),
        result("b", "none"),
        assistant("It is ready."),
    ]);
    for (window, expected) in
        [(5, vec![1, 2, 3, 4, 5]), (4, vec![2, 3, 4, 5]), (3, vec![5]), (2, vec![5]), (1, vec![5])]
    {
        let context = assembled(&whole(&history), &ContextPolicy::window(window));
        assert_eq!(seqs(&context), expected, "window {window}");
    }
    let context = assembled(&whole(&history), &ContextPolicy::window(3));
    let broken = context.report.messages.iter().filter(|span| span.why == Some(FateReason::PairBroken));
    assert_eq!(
        broken.map(|span| (span.first_seq, span.last_seq, span.fate)).collect::<Vec<_>>(),
        [(2, 4, Fate::Dropped)]
    );
    // The result is the same if only the window was loaded.
    let loaded = ContextInput { history: &history[2..], ..whole(&history) };
    assert_eq!(seqs(&assembled(&loaded, &ContextPolicy::window(3))), [5]);
}

#[test]
fn results_follow_their_call_despite_messages_in_between() {
    let history = history([
        calls(&[("a", "delete", r#"{"name":"webex234"}"#), ("b", "list", "{}")]),
        user("still there?"),
        result("b", "nginx"),
        result("a", "deleted"),
        user("thanks"),
    ]);
    let context = assembled(&whole(&history), &ContextPolicy::window(10));
    assert_eq!(
        written(&context.messages),
        "<assistant> call a delete {\"name\":\"webex234\"} | call b list {}\n\
         <tool> result a deleted\n\
         <tool> result b nginx\n\
         <user> still there?\n\
         <user> thanks"
    );
}

/// Clients that store an answer item by item store each of its calls as a message.
#[test]
fn calls_of_one_answer_stay_adjacent() {
    let history = history([
        user("look at both"),
        assistant("I look."),
        calls(&[("a", "describe", "{}")]),
        calls(&[("b", "events", "{}")]),
        calls(&[("c", "logs", "{}")]),
        result("b", "none"),
        result("a", "3/3 ready"),
        calls(&[("d", "nodes", "{}")]),
        result("d", "two"),
        assistant("All is well."),
    ]);
    let context = assembled(&whole(&history), &ContextPolicy::window(20));
    assert_eq!(
        written(&context.messages),
        format!(
            "<user> look at both\n\
             <assistant> I look.\n\
             <assistant> call a describe {{}}\n\
             <assistant> call b events {{}}\n\
             <assistant> call c logs {{}}\n\
             <tool> result a 3/3 ready\n\
             <tool> result b none\n\
             <tool> result c {WAITING}\n\
             <assistant> call d nodes {{}}\n\
             <tool> result d two\n\
             <assistant> All is well."
        )
    );
}

#[test]
fn a_call_without_a_result_is_marked_as_waiting() {
    let history = history([user("delete it"), calls(&[("a", "delete", "{}")]), user("done?")]);
    let context = assembled(&whole(&history), &ContextPolicy::window(10));
    let expected = format!("<user> delete it\n<assistant> call a delete {{}}\n<tool> result a {WAITING}\n<user> done?");
    assert_eq!(written(&context.messages), expected);

    let policy = ContextPolicy { rendering: Rendering::Transcript, ..ContextPolicy::window(10) };
    let text = assembled(&whole(&history), &policy).newest_text();
    assert!(text.contains("Assistant: [calls delete {}: waiting for its result]"), "{text}");
}

#[test]
fn a_pair_that_exceeds_the_budget_is_omitted() {
    let long = "ready ".repeat(100);
    let history = history([user("look"), calls(&[("a", "describe", "{}")]), result("a", &long), user("and?")]);
    let policy = ContextPolicy { budget: Some(TokenCount(60)), ..ContextPolicy::window(10) };
    let context = assembled(&whole(&history), &policy);
    assert_eq!(seqs(&context), [4]);
    let fates: Vec<_> = context.report.messages.iter().map(|span| (span.count(), span.fate, span.why)).collect();
    assert_eq!(fates, [(3, Fate::Dropped, Some(FateReason::OverBudget)), (1, Fate::Kept, None)]);
}

#[test]
fn the_newest_result_is_truncated_instead_of_omitted() {
    let long = "ready ".repeat(1_000);
    let history = history([calls(&[("a", "describe", "{}")]), result("a", &long)]);
    let policy = ContextPolicy { budget: Some(TokenCount(100)), ..ContextPolicy::window(10) };
    let context = assembled(&whole(&history), &policy);
    assert_eq!(seqs(&context), [1, 2]);
    assert!(written(&context.messages).ends_with("..."));
    assert!(context.report.tokens.total <= TokenCount(100));
    assert_eq!(context.report.messages[1].why, Some(FateReason::OverBudget));
}
