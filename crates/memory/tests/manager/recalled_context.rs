//! Contexts with recalled messages that are relevant to the question.

use std::sync::Arc;

use async_trait::async_trait;
use threadkeep_context::{ContextPolicy, Fate, RecallFrom, RecallPolicy, Recalled, Rendering};
use threadkeep_core::{
    Backend, CatchUp, Collection, DumpEntry, Embedder, EmbedderError, Embedding, IndexEntry, MessageRef, OpenThread,
    Owner, Part, Reason, Result, Scope, SearchAnswer, SearchIndex, SearchQuery, StoreError, ThreadId, Timestamp,
    TokenCount,
};
use threadkeep_memory::{
    AppendOptions, AssembledContext, ContextOptions, Draft, EmbedderOutcome, Memory, MemoryOptions, RecallOutcome,
    Retention,
};

use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

const FACT: &str = "Our walrus is called Humphrey.";

/// Returns a policy that recalls up to five messages.
fn recall_policy(from: RecallFrom, window: usize) -> ContextPolicy {
    let recall = RecallPolicy { from, messages: 5, ..RecallPolicy::default() };
    ContextPolicy { recall, ..ContextPolicy::window(window) }
}

/// Appends a fact, followed by `talk_count` messages of small talk.
async fn append_fact_and_talk(memory: &Memory, scope: &Scope, thread: ThreadId, talk_count: usize) {
    memory.append(scope, thread, Draft::user(FACT)).await.unwrap();
    let talk = (1..=talk_count).map(|number| Draft::assistant(format!("small talk, part {number}"))).collect();
    memory.append_all(scope, thread, talk, &AppendOptions::default()).await.unwrap();
}

fn text_of(assembled: &AssembledContext) -> String {
    let parts = assembled.context.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(Part::text).collect::<Vec<_>>().join("\n")
}

/// Returns the thread, position and fate of each recalled message.
fn recalled_positions(assembled: &AssembledContext) -> Vec<(Option<ThreadId>, u64, Fate)> {
    let fates = assembled.context.report.recalled.iter();
    fates.map(|found| (found.thread, found.seq, found.fate)).collect()
}

fn searched_outcome() -> RecallOutcome {
    RecallOutcome::Searched { unsearched: Vec::new(), embedder_outcome: EmbedderOutcome::NotRequested }
}

#[tokio::test(start_paused = true)]
async fn relevant_messages_are_recalled_from_the_configured_threads() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_fact_and_talk(memory, &ana(), thread, 40).await;
        let question = Some("What is the walrus called?");
        let context = async |from| memory.context(&ana(), thread, question, &recall_policy(from, 6)).await.unwrap();
        let without_recall = context(RecallFrom::Nowhere).await;
        assert!(!text_of(&without_recall).contains("Humphrey"));
        assert_eq!(without_recall.recall, RecallOutcome::NotRequested);
        for from in [RecallFrom::Thread, RecallFrom::User] {
            let assembled = context(from).await;
            assert!(text_of(&assembled).contains("Humphrey"), "{from:?}");
            assert_eq!(assembled.recall, searched_outcome());
            assert_eq!(recalled_positions(&assembled)[0], (None, 1, Fate::Recalled));
            assert_eq!(assembled.context.report.messages[0].fate, Fate::Recalled);
        }
        // Without a question, the newest user message takes its place, even if later messages follow.
        memory.append(&ana(), thread, Draft::user("What is the walrus called?")).await.unwrap();
        memory.append(&ana(), thread, Draft::assistant("Let me think.")).await.unwrap();
        let policy = recall_policy(RecallFrom::Thread, 6);
        let assembled = memory.context(&ana(), thread, None, &policy).await.unwrap();
        assert!(text_of(&assembled).contains("Humphrey"));
        let empty = memory.open(&ana()).await.unwrap().thread.id;
        assert_eq!(memory.context(&ana(), empty, None, &policy).await.unwrap().recall, RecallOutcome::NotRequested);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_message_is_included_twice() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_fact_and_talk(memory, &ana(), thread, 3).await;
        memory.append(&ana(), thread, Draft::user("Feed the walrus.")).await.unwrap();
        let fact = memory.find_messages(&ana(), thread, &[MessageRef::Seq(1)]).await.unwrap().remove(0);
        let without_thread = Recalled { thread: None, message: fact.clone(), score: 9.0 };
        let with_thread = Recalled { thread: Some(thread), ..without_thread.clone() };
        let options = ContextOptions { recalled: vec![without_thread, with_thread], ..ContextOptions::default() };
        for rendering in [Rendering::Chat, Rendering::Transcript] {
            for (window, budget) in
                [(1, None), (2, None), (20, None), (20, Some(60)), (20, Some(100)), (20, Some(4_000))]
            {
                let policy = ContextPolicy {
                    budget: budget.map(TokenCount),
                    rendering,
                    ..recall_policy(RecallFrom::User, window)
                };
                let question = Some("What is the walrus called?");
                let assembled = memory.context_with(&ana(), thread, question, &policy, &options).await.unwrap();
                for expected in [FACT, "Feed the walrus."] {
                    let count = text_of(&assembled).matches(expected).count();
                    let may_be_omitted = budget.is_some_and(|budget| budget <= 100);
                    assert!(count == 1 || count == 0 && may_be_omitted, "{rendering:?} {window} {budget:?} {expected}");
                }
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_given_by_the_caller_come_first() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_fact_and_talk(memory, &ana(), thread, 10).await;
        let talk = memory.find_messages(&ana(), thread, &[MessageRef::Seq(3)]).await.unwrap().remove(0);
        let recalled = vec![Recalled { thread: None, message: talk, score: 0.0 }];
        let options = ContextOptions { recalled, ..ContextOptions::default() };
        let policy = recall_policy(RecallFrom::Thread, 2);
        let assembled = memory.context_with(&ana(), thread, Some("the walrus?"), &policy, &options).await.unwrap();
        let recalled = recalled_positions(&assembled);
        assert_eq!(recalled[..2], [(None, 3, Fate::Recalled), (None, 1, Fate::Recalled)]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn recall_includes_only_threads_of_the_same_owner() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let (other, current) = (env.open_thread().await, env.open_thread().await);
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        append_fact_and_talk(memory, &ana(), other, 3).await;
        memory.append(&ben(), bens_thread, Draft::user("My secret walrus is called Gertrude.")).await.unwrap();
        memory.append(&ana(), current, Draft::user("hello")).await.unwrap();
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        memory.append(&ana(), shared, Draft::user("The walrus of this channel is called Boris.")).await.unwrap();
        memory.append(&ana(), shared, Draft::user("hello")).await.unwrap();
        let question = Some("What is the walrus called?");
        let context = async |scope: &Scope, thread, from| {
            text_of(&memory.context(scope, thread, question, &recall_policy(from, 1)).await.unwrap())
        };
        // The tenant's scope can read all threads, but the context only includes data of the thread's owner.
        for scope in [ana(), acme()] {
            let context_text = context(&scope, current, RecallFrom::User).await;
            assert!(context_text.contains("Humphrey"), "{context_text}");
            assert!(!context_text.contains("Gertrude") && !context_text.contains("Boris"), "{context_text}");
            assert!(!context(&scope, current, RecallFrom::Thread).await.contains("Humphrey"));
            let context_text = context(&scope, shared, RecallFrom::User).await;
            assert!(context_text.contains("Boris"), "{context_text}");
            assert!(!context_text.contains("Humphrey") && !context_text.contains("Gertrude"), "{context_text}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_message_of_another_thread_is_recalled_whatever_its_position() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let (other, current) = (env.open_thread().await, env.open_thread().await);
        memory.append(&ana(), current, Draft::user("hello")).await.unwrap();
        let talk = (1..=30).map(|number| Draft::user(format!("small talk {number}"))).collect();
        memory.append_all(&ana(), other, talk, &AppendOptions::default()).await.unwrap();
        memory.append(&ana(), other, Draft::user(FACT)).await.unwrap();
        let policy = recall_policy(RecallFrom::User, 5);
        let assembled = memory.context(&ana(), current, Some("the walrus?"), &policy).await.unwrap();
        assert_eq!(recalled_positions(&assembled)[0], (Some(other), 31, Fate::Recalled));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn expired_messages_are_not_recalled() {
    on_all_stores(async |env: TestEnv| {
        let retention = Some(Retention { max_messages: None, ttl_minutes: Some(60) });
        let options = MemoryOptions { retention, ..env.memory.options().clone() };
        let env = env.with_options(options);
        let (memory, other, current) = (&env.memory, env.open_thread().await, env.open_thread().await);
        for thread in [other, current] {
            memory.append(&ana(), thread, Draft::user(FACT)).await.unwrap();
        }
        let policy = recall_policy(RecallFrom::User, 1);
        let context_text =
            async || text_of(&memory.context(&ana(), current, Some("the walrus?"), &policy).await.unwrap());
        assert!(context_text().await.contains("Humphrey"));
        env.clock.advance_minutes(40);
        for thread in [other, current] {
            memory.append(&ana(), thread, Draft::user("hello")).await.unwrap();
        }
        env.clock.advance_minutes(30);
        assert!(!context_text().await.contains("Humphrey"));
    })
    .await;
}

/// A search index that always fails.
#[derive(Debug)]
struct BrokenIndex;

#[async_trait]
impl SearchIndex for BrokenIndex {
    async fn search(&self, _: &Scope, _: &SearchQuery, _: Timestamp) -> Result<SearchAnswer> {
        Err(StoreError::unavailable(Reason::Full))
    }

    async fn upsert(&self, _: &Scope, _: &Collection, _: Vec<IndexEntry>) -> Result<()> {
        Err(StoreError::unavailable(Reason::Full))
    }

    async fn remove(&self, _: &Scope, _: &Collection, _: &[String]) -> Result<u64> {
        Err(StoreError::unavailable(Reason::Full))
    }

    async fn remove_collections(&self, _: &Scope) -> Result<u64> {
        Err(StoreError::unavailable(Reason::Full))
    }

    async fn catch_up(&self, _: usize) -> Result<CatchUp> {
        Err(StoreError::unavailable(Reason::Full))
    }
}

/// An embedder that always fails.
#[derive(Debug)]
struct BrokenEmbedder;

#[async_trait]
impl Embedder for BrokenEmbedder {
    fn model(&self) -> &'static str {
        "broken"
    }

    async fn embed(&self, _: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        Err(EmbedderError::Unavailable(None))
    }
}

// S0.27
#[tokio::test(start_paused = true)]
async fn a_failed_search_does_not_affect_the_rest_of_the_context() {
    let inner = TestEnv::plain().backend;
    let env = TestEnv::with_backends(inner.clone(), Backend { search: Arc::new(BrokenIndex), ..inner });
    let (memory, thread) = (&env.memory, env.open_thread().await);
    append_fact_and_talk(memory, &ana(), thread, 5).await;
    let policy = recall_policy(RecallFrom::Thread, 3);
    let question = Some("What is the walrus called?");
    let with_recall = memory.context(&ana(), thread, question, &policy).await.unwrap();
    let without_recall = memory.context(&ana(), thread, question, &ContextPolicy::window(3)).await.unwrap();
    assert_eq!(with_recall.context.messages, without_recall.context.messages);
    assert!(
        matches!(with_recall.recall, RecallOutcome::Failed { is_retryable: false, .. }),
        "{:?}",
        with_recall.recall
    );
}

#[tokio::test(start_paused = true)]
async fn recall_uses_only_words_if_the_embedder_fails() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_fact_and_talk(memory, &ana(), thread, 5).await;
        let options = ContextOptions { embedder: Some(Arc::new(BrokenEmbedder)), ..ContextOptions::default() };
        let policy = recall_policy(RecallFrom::Thread, 3);
        let assembled = memory.context_with(&ana(), thread, Some("the walrus?"), &policy, &options).await.unwrap();
        assert!(text_of(&assembled).contains("Humphrey"));
        let RecallOutcome::Searched { embedder_outcome, .. } = assembled.recall else {
            panic!("{:?}", assembled.recall)
        };
        assert!(matches!(embedder_outcome, EmbedderOutcome::Failed(_)), "{embedder_outcome:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_recall_limit_is_rejected() {
    let env = TestEnv::plain();
    let thread = env.open_thread().await;
    for messages in [0, 1_001] {
        let recall = RecallPolicy { from: RecallFrom::Thread, messages, ..RecallPolicy::default() };
        let policy = ContextPolicy { recall, ..ContextPolicy::default() };
        let error = env.memory.context(&ana(), thread, Some("?"), &policy).await.unwrap_err().to_string();
        assert!(error.starts_with("invalid recall.messages"), "{error}");
    }
    assert_eq!(serde_json::to_string(&RecallFrom::User).unwrap(), r#""user""#);
}

// S0.28
#[tokio::test(start_paused = true)]
async fn a_corrupt_neighbour_does_not_prevent_recall() {
    let (source, target) = (TestEnv::plain(), TestEnv::plain());
    let thread = source.open_thread().await;
    append_fact_and_talk(&source.memory, &ana(), thread, 10).await;
    let tenant = ana().tenant_id().clone();
    let mut dump = source.backend.maintenance.dump_thread(&tenant, thread, None, 100).await.unwrap();
    let DumpEntry::Message { body, .. } = &mut dump.entries[1] else { panic!("not a message") };
    // Not valid content in any format.
    *body = "1u{".to_owned();
    target.backend.maintenance.restore_thread(&tenant, thread, dump).await.unwrap();
    let policy = recall_policy(RecallFrom::Thread, 2);
    let assembled = target.memory.context(&ana(), thread, Some("the walrus?"), &policy).await.unwrap();
    assert_eq!(assembled.recall, searched_outcome());
    assert!(text_of(&assembled).contains("Humphrey"));
}
