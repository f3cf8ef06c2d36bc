//! Which messages are recalled, and which are omitted because the history includes them.

use threadkeep_context::{ContextInput, ContextPolicy, Fate, Recalled};
use threadkeep_core::{Content, Message, Part, Role, ThreadId, TokenCount};

use super::fixtures::{assembled, assistant, calls, chat, history, message, seqs, user, whole, written};

fn recalled(message: &Message) -> Recalled {
    Recalled { thread: None, message: message.clone(), score: 1.0 }
}

#[test]
fn a_recalled_message_without_text_renders_its_calls() {
    let elsewhere = Some(ThreadId::from_name(b"other"));
    let silent = Content { parts: vec![Part::Reasoning("hm".into())], ..Content::empty(Role::Assistant) };
    let far = history([calls(&[("a", "delete", r#"{"pod":"nginx"}"#)]), silent, assistant(" ")]);
    let recalled: Vec<Recalled> =
        far.iter().map(|message| Recalled { thread: elsewhere, ..recalled(message) }).collect();
    let input = ContextInput { recalled: &recalled, question: Some("what?"), ..ContextInput::default() };
    let context = assembled(&input, &ContextPolicy::window(4));
    assert_eq!(
        written(&context.messages),
        "<system> Earlier messages that may bear on the question:\n\
         - 2026-01-01T00:01:00Z (assistant): [calls delete {\"pod\":\"nginx\"}]\n<user> what?"
    );
    let fates: Vec<_> = context.report.recalled.iter().map(|found| found.fate).collect();
    assert_eq!(fates, [Fate::Recalled, Fate::Dropped, Fate::Dropped]);
}

#[test]
fn the_question_is_not_recalled() {
    // The newest message is the assistant's, and the window excludes the question.
    let all = history([user("Where is the tent?"), assistant("in the shed")]);
    let input = ContextInput { recalled: &[recalled(&all[0])], ..whole(&all) };
    let context = assembled(&input, &ContextPolicy::window(1));
    assert_eq!((seqs(&context), context.report.recalled[0].fate), (vec![2], Fate::Dropped));
    // An earlier question is recalled.
    let all = history([user("Where is the tent?"), user("And now?"), assistant("in the shed")]);
    let input = ContextInput { recalled: &[recalled(&all[0])], ..whole(&all) };
    assert_eq!(assembled(&input, &ContextPolicy::window(1)).report.recalled[0].fate, Fate::Recalled);
}

#[test]
fn messages_in_the_history_do_not_use_recall_tokens() {
    let all = chat(30);
    let found = [recalled(&all[16]), recalled(&all[18]), recalled(&all[20])];
    let mut compared = 0;
    for budget in 40..300 {
        let policy = ContextPolicy { budget: Some(TokenCount(budget)), ..ContextPolicy::window(30) };
        let plain = assembled(&ContextInput { question: Some("where?"), ..whole(&all) }, &policy);
        let input = ContextInput { recalled: &found, question: Some("where?"), ..whole(&all) };
        let context = assembled(&input, &policy);
        if context.report.recalled.iter().all(|found| found.fate == Fate::Kept) {
            assert_eq!(seqs(&context), seqs(&plain), "{budget}");
            compared += 1;
        }
    }
    assert!(compared > 0);
}

#[test]
fn messages_are_recalled_for_an_empty_history() {
    let far = message(7, user("The tent is blue."));
    let found = [Recalled { thread: Some(ThreadId::from_name(b"other")), ..recalled(&far) }];
    let input = ContextInput { recalled: &found, question: Some("Which tent?"), ..ContextInput::default() };
    assert!(written(&assembled(&input, &ContextPolicy::default()).messages).contains("The tent is blue."));
}
