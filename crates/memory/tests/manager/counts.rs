//! Token counts that are carried from context to context.

use std::sync::{Arc, Mutex};

use threadkeep_context::ContextPolicy;
use threadkeep_core::{
    Content, JsonText, Part, RecordOwner, RecordQuery, Role, ThreadId, TokenCount, TokenCounter, ToolCall, ToolResult,
};
use threadkeep_memory::{AppendOptions, ContextOptions, Draft, Memory, Retention};

use super::world::{World, acme, ana, everywhere};

/// Counts bytes, and remembers what it was asked.
#[derive(Debug)]
struct Asked {
    name: &'static str,
    texts: Mutex<Vec<String>>,
}

impl Asked {
    fn named(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, texts: Mutex::default() })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.texts.lock().unwrap())
    }
}

impl TokenCounter for Asked {
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

async fn total(memory: &Memory, thread: ThreadId, counter: &Arc<Asked>) -> TokenCount {
    let options = ContextOptions { counter: counter.clone(), ..ContextOptions::default() };
    memory.context_with(&ana(), thread, None, &policy(), &options).await.unwrap().context.report.tokens.total
}

/// 16 messages, among them a call with its result.
async fn tell(memory: &Memory, thread: ThreadId) {
    let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: JsonText::new(r#"{"at":"it"}"#).unwrap() };
    let call = Content { parts: vec![Part::ToolCall(call)], ..Content::empty(Role::Assistant) };
    let result = ToolResult { call_id: "c1".into(), output: "seen at 7".into(), is_error: false };
    let result = Content { parts: vec![Part::ToolResult(result)], ..Content::empty(Role::Tool) };
    let named = Content { author: Some("Ana".into()), ..Content::text(Role::User, "look at it") };
    let mut drafts: Vec<Draft> = [named, call, result].into_iter().map(Draft::new).collect();
    drafts.extend((4..=16).map(|number| Draft::assistant(format!("said {number}"))));
    memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn messages_that_were_counted_cost_nothing_in_any_process() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        tell(&world.memory, thread).await;
        let counter = Asked::named("bytes");
        let first = total(&world.memory, thread, &counter).await;
        let asked = counter.take();
        assert!(
            ["Ana", "look at it", "c1", "look", "seen at 7", "said 16"]
                .iter()
                .all(|text| asked.contains(&(*text).to_owned()))
        );
        // Nothing else stands in the context than messages, and of those each is known.
        let process = world.another_process();
        assert_eq!(total(&process, thread, &counter).await, first);
        assert_eq!(counter.take().into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(), [""; 0]);

        process.append(&ana(), thread, Draft::user("one more")).await.unwrap();
        let process = world.another_process();
        total(&process, thread, &counter).await;
        let asked = counter.take();
        assert!(
            asked.iter().all(|text| text.is_empty() || text == "one more") && asked.contains(&"one more".to_owned())
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn counts_are_those_of_the_counter_and_of_the_words_that_stand() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        tell(memory, thread).await;
        let counter = Asked::named("bytes");
        let before = total(memory, thread, &counter).await;
        // Another counter never takes over what this one counted.
        let other = Asked::named("other");
        assert_eq!(total(memory, thread, &other).await, before);
        assert!(other.take().contains(&"said 16".to_owned()));

        total(memory, thread, &counter).await;
        let last = memory.newest(&ana(), thread, 1).await.unwrap().remove(0);
        let longer = Content::text(Role::Assistant, "said differently");
        memory.replace_message(&ana(), thread, last.id, longer, None).await.unwrap();
        counter.take();
        let more = "said differently".len() - "said 16".len();
        assert_eq!(total(memory, thread, &counter).await, TokenCount(before.0 + more as u64));
        assert!(counter.take().contains(&"said differently".to_owned()));
    })
    .await;
}

/// Of which positions counts are stored.
async fn counted(world: &World, thread: ThreadId) -> Vec<u64> {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = world.backend.store.list_records(&acme(), &query, world.memory.now()).await.unwrap();
    let values = records.iter().map(|record| record.value.read::<serde_json::Value>().unwrap());
    let by_seq = values.filter_map(|value| value["counts"]["by_seq"].as_object().cloned());
    let mut seqs: Vec<u64> =
        by_seq.flat_map(|by_seq| by_seq.keys().map(|seq| seq.parse().unwrap()).collect::<Vec<_>>()).collect();
    seqs.sort_unstable();
    seqs
}

#[tokio::test(start_paused = true)]
async fn counts_go_with_their_messages() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        tell(memory, thread).await;
        total(memory, thread, &Asked::named("bytes")).await;
        assert_eq!(counted(&world, thread).await, (1..=16).collect::<Vec<_>>());
        let newest = memory.newest(&ana(), thread, 2).await.unwrap();
        memory.erase_messages(&ana(), thread, &[newest[0].id]).await.unwrap();
        let content = Content::text(Role::Assistant, "other");
        memory.replace_message(&ana(), thread, newest[1].id, content, None).await.unwrap();
        assert_eq!(counted(&world, thread).await, (1..=14).collect::<Vec<_>>());
        memory.retain(&ana(), thread, &Retention { max_messages: Some(5), ttl_minutes: None }).await.unwrap();
        assert_eq!(counted(&world, thread).await, [11, 12, 13, 14]);
        // They are bounded: what left the window is counted no more.
        let talk = (0..40).map(|number| Draft::assistant(format!("talk {number}"))).collect();
        memory.append_all(&ana(), thread, talk, &AppendOptions::default()).await.unwrap();
        total(memory, thread, &Asked::named("bytes")).await;
        assert_eq!(counted(&world, thread).await, (41..=56).collect::<Vec<_>>());
    })
    .await;
}
