//! Recall does not feed on itself: earlier questions and quotations do not displace what they are about.

use threadkeep_core::{Content, Message, Role, Source, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, Memory, RecallOptions};

use super::test_env::{TestEnv, ana, on_all_stores};

async fn append(memory: &Memory, thread: ThreadId, role: Role, text: &str, sources: &[&Message]) -> Message {
    let sources = sources.iter().map(|message| Source::of_message(thread, message)).collect();
    let content = Content { sources, ..Content::text(role, text) };
    let options = AppendOptions::default();
    memory.append_all(&ana(), thread, vec![Draft::new(content)], &options).await.unwrap();
    memory.newest(&ana(), thread, 1).await.unwrap().remove(0)
}

async fn recall_texts(memory: &Memory, question: &str) -> Vec<String> {
    let results = memory.recall(&ana(), question, &RecallOptions { limit: 50, ..RecallOptions::default() }).await;
    results.unwrap().messages.iter().map(|found| found.message.plain_text().into_owned()).collect()
}

const FACT: &str = "The dentist is on 12 May.";
const QUESTION: &str = "When is the dentist?";
const QUOTATION: &str = "You said: the dentist is on 12 May.";

#[tokio::test(start_paused = true)]
async fn repeated_questions_and_quotations_are_omitted() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let fact = append(memory, thread, Role::User, FACT, &[]).await;
        for _ in 0..4 {
            append(memory, thread, Role::User, QUESTION, &[]).await;
            append(memory, thread, Role::Assistant, QUOTATION, &[&fact]).await;
            assert_eq!(recall_texts(memory, QUESTION).await, [FACT]);
        }
        // The messages count again as soon as the message that they are based on no longer exists.
        memory.erase_messages(&ana(), thread, &[fact.id]).await.unwrap();
        assert_eq!(recall_texts(memory, QUESTION).await.len(), 8);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_that_add_something_are_kept() {
    let env = TestEnv::plain();
    let (memory, thread) = (&env.memory, env.open_thread().await);
    let fact = append(memory, thread, Role::User, FACT, &[]).await;
    let moved = append(memory, thread, Role::User, "The dentist moved to 14 June.", &[]).await;
    append(memory, thread, Role::Assistant, "Noted: the dentist, 12 May, is now later, in the afternoon.", &[&fact])
        .await;
    let found = recall_texts(memory, QUESTION).await;
    assert!(
        found.contains(&moved.plain_text().into_owned()),
        "a statement whose answer cites another message is kept: {found:?}"
    );
    let found = recall_texts(memory, "Is the dentist in the afternoon?").await;
    assert!(found.iter().any(|text| text.starts_with("Noted:")), "an answer that adds a word is kept: {found:?}");
}

#[tokio::test(start_paused = true)]
async fn ranking_is_unchanged_without_sources() {
    let env = TestEnv::plain();
    let (memory, thread) = (&env.memory, env.open_thread().await);
    append(memory, thread, Role::User, FACT, &[]).await;
    append(memory, thread, Role::User, QUESTION, &[]).await;
    append(memory, thread, Role::Assistant, QUOTATION, &[]).await;
    assert_eq!(recall_texts(memory, QUESTION).await.len(), 3);
}
