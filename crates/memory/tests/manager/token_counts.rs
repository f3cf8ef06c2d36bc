//! Token counts that are stored and reused by later contexts.

use std::sync::{Arc, Mutex};

use threadkeep_context::ContextPolicy;
use threadkeep_core::{
    Content, JsonText, Part, RecordOwner, RecordQuery, Role, ThreadId, TokenCount, TokenCounter, ToolCall, ToolResult,
};
use threadkeep_memory::{AppendOptions, ContextOptions, Draft, Memory, Retention};

use super::test_env::{TestEnv, acme, ana, on_all_stores};

/// A counter that counts bytes and records the texts that it counts.
#[derive(Debug)]
struct RecordingCounter {
    name: &'static str,
    texts: Mutex<Vec<String>>,
}

impl RecordingCounter {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, texts: Mutex::default() })
    }

    fn take_texts(&self) -> Vec<String> {
        std::mem::take(&mut *self.texts.lock().unwrap())
    }
}

impl TokenCounter for RecordingCounter {
    fn name(&self) -> &str {
        self.name
    }

    fn count(&self, text: &str) -> TokenCount {
        self.texts.lock().unwrap().push(text.to_owned());
        TokenCount(text.len() as u64)
    }
}

fn policy() -> ContextPolicy {
    ContextPolicy { budget: Some(TokenCount(100_000)), ..ContextPolicy::window(16) }
}

async fn count_context_tokens(memory: &Memory, thread: ThreadId, counter: &Arc<RecordingCounter>) -> TokenCount {
    let options = ContextOptions { counter: counter.clone(), ..ContextOptions::default() };
    memory.context_with(&ana(), thread, None, &policy(), &options).await.unwrap().context.report.tokens.total
}

/// Appends 16 messages, including a tool call and its result.
async fn append_messages(memory: &Memory, thread: ThreadId) {
    let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: JsonText::new(r#"{"at":"it"}"#).unwrap() };
    let call = Content { parts: vec![Part::ToolCall(call)], ..Content::empty(Role::Assistant) };
    let result = ToolResult { call_id: "c1".into(), output: "seen at 7".into(), is_error: false };
    let result = Content { parts: vec![Part::ToolResult(result)], ..Content::empty(Role::Tool) };
    let with_author = Content { author: Some("Ana".into()), ..Content::text(Role::User, "look at it") };
    let mut drafts: Vec<Draft> = [with_author, call, result].into_iter().map(Draft::new).collect();
    drafts.extend((4..=16).map(|number| Draft::assistant(format!("message {number}"))));
    memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stored_counts_are_reused_by_all_processes() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        append_messages(&env.memory, thread).await;
        let counter = RecordingCounter::new("bytes");
        let first = count_context_tokens(&env.memory, thread, &counter).await;
        let counted_texts = counter.take_texts();
        assert!(
            ["Ana", "look at it", "c1", "look", "seen at 7", "message 16"]
                .iter()
                .all(|text| counted_texts.contains(&(*text).to_owned()))
        );
        // The context consists only of messages, and the counts of all messages are stored.
        let process = env.another_process();
        assert_eq!(count_context_tokens(&process, thread, &counter).await, first);
        assert_eq!(counter.take_texts().into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(), [""; 0]);

        process.append(&ana(), thread, Draft::user("one more")).await.unwrap();
        let process = env.another_process();
        count_context_tokens(&process, thread, &counter).await;
        let counted_texts = counter.take_texts();
        assert!(
            counted_texts.iter().all(|text| text.is_empty() || text == "one more")
                && counted_texts.contains(&"one more".to_owned())
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn counts_depend_on_the_counter_and_the_current_text() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_messages(memory, thread).await;
        let counter = RecordingCounter::new("bytes");
        let before = count_context_tokens(memory, thread, &counter).await;
        // The stored counts are not used for another counter.
        let other = RecordingCounter::new("other");
        assert_eq!(count_context_tokens(memory, thread, &other).await, before);
        assert!(other.take_texts().contains(&"message 16".to_owned()));

        count_context_tokens(memory, thread, &counter).await;
        let last = memory.newest(&ana(), thread, 1).await.unwrap().remove(0);
        let longer = Content::text(Role::Assistant, "a longer message");
        memory.replace_message(&ana(), thread, last.id, longer, None).await.unwrap();
        counter.take_texts();
        let difference = "a longer message".len() - "message 16".len();
        assert_eq!(count_context_tokens(memory, thread, &counter).await, TokenCount(before.0 + difference as u64));
        assert!(counter.take_texts().contains(&"a longer message".to_owned()));
    })
    .await;
}

/// Returns the positions of the messages whose counts are stored.
async fn counted_positions(env: &TestEnv, thread: ThreadId) -> Vec<u64> {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = env.backend.store.list_records(&acme(), &query, env.memory.now()).await.unwrap();
    let values = records.iter().map(|record| record.value.read::<serde_json::Value>().unwrap());
    let by_seq = values.filter_map(|value| value["counts"]["by_seq"].as_object().cloned());
    let mut seqs: Vec<u64> =
        by_seq.flat_map(|by_seq| by_seq.keys().map(|seq| seq.parse().unwrap()).collect::<Vec<_>>()).collect();
    seqs.sort_unstable();
    seqs
}

#[tokio::test(start_paused = true)]
async fn counts_are_removed_with_their_messages() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_messages(memory, thread).await;
        count_context_tokens(memory, thread, &RecordingCounter::new("bytes")).await;
        assert_eq!(counted_positions(&env, thread).await, (1..=16).collect::<Vec<_>>());
        let newest = memory.newest(&ana(), thread, 2).await.unwrap();
        memory.erase_messages(&ana(), thread, &[newest[0].id]).await.unwrap();
        let content = Content::text(Role::Assistant, "other");
        memory.replace_message(&ana(), thread, newest[1].id, content, None).await.unwrap();
        assert_eq!(counted_positions(&env, thread).await, (1..=14).collect::<Vec<_>>());
        memory.retain(&ana(), thread, &Retention { max_messages: Some(5), ttl_minutes: None }).await.unwrap();
        assert_eq!(counted_positions(&env, thread).await, [11, 12, 13, 14]);
        // The counts of messages that have left the window are removed.
        let drafts = (0..40).map(|number| Draft::assistant(format!("talk {number}"))).collect();
        memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
        count_context_tokens(memory, thread, &RecordingCounter::new("bytes")).await;
        assert_eq!(counted_positions(&env, thread).await, (41..=56).collect::<Vec<_>>());
    })
    .await;
}
