//! Contexts that look for what bears on the question.

use std::sync::Arc;

use async_trait::async_trait;
use threadkeep_context::{ContextPolicy, Fate, RecallFrom, RecallPolicy, Recalled, Rendering};
use threadkeep_core::{
    Backend, CatchUp, Collection, DumpEntry, Embedder, EmbedderError, Embedding, IndexEntry, MessageName, OpenThread,
    Owner, Part, Reason, Result, Scope, SearchAnswer, SearchIndex, SearchQuery, StoreError, ThreadId, Timestamp,
    TokenCount,
};
use threadkeep_memory::{
    AppendOptions, AssembledContext, ContextOptions, Draft, EmbedderOutcome, Memory, MemoryOptions, RecallOutcome, Retention,
};

use super::world::{World, acme, ana, ben, everywhere};

const FACT: &str = "Our walrus is called Humphrey.";

fn recalling(from: RecallFrom, window: usize) -> ContextPolicy {
    let recall = RecallPolicy { from, messages: 5, ..RecallPolicy::default() };
    ContextPolicy { recall, ..ContextPolicy::window(window) }
}

/// A fact, then talk of something else.
async fn tell(memory: &Memory, scope: &Scope, thread: ThreadId, talk: usize) {
    memory.append(scope, thread, Draft::user(FACT)).await.unwrap();
    let talk = (1..=talk).map(|number| Draft::assistant(format!("small talk, part {number}"))).collect();
    memory.append_all(scope, thread, talk, &AppendOptions::default()).await.unwrap();
}

fn text(assembled: &AssembledContext) -> String {
    let parts = assembled.context.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(Part::text).collect::<Vec<_>>().join("\n")
}

fn recalled_seqs(assembled: &AssembledContext) -> Vec<(Option<ThreadId>, u64, Fate)> {
    let fates = assembled.context.report.recalled.iter();
    fates.map(|found| (found.thread, found.seq, found.fate)).collect()
}

fn searched() -> RecallOutcome {
    RecallOutcome::Searched { unsearched: Vec::new(), meaning: EmbedderOutcome::NotRequested }
}

#[tokio::test(start_paused = true)]
async fn what_bears_on_the_question_is_recalled_where_the_policy_says() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        tell(memory, &ana(), thread, 40).await;
        let question = Some("What is the walrus called?");
        let context = async |from| memory.context(&ana(), thread, question, &recalling(from, 6)).await.unwrap();
        let nowhere = context(RecallFrom::Nowhere).await;
        assert!(!text(&nowhere).contains("Humphrey"));
        assert_eq!(nowhere.recall, RecallOutcome::NotRequested);
        for from in [RecallFrom::Thread, RecallFrom::User] {
            let assembled = context(from).await;
            assert!(text(&assembled).contains("Humphrey"), "{from:?}");
            assert_eq!(assembled.recall, searched());
            assert_eq!(recalled_seqs(&assembled)[0], (None, 1, Fate::Recalled));
            assert_eq!(assembled.context.report.messages[0].fate, Fate::Recalled);
        }
        // Without a question the newest user message is one, wherever it stands.
        memory.append(&ana(), thread, Draft::user("What is the walrus called?")).await.unwrap();
        memory.append(&ana(), thread, Draft::assistant("Let me think.")).await.unwrap();
        let policy = recalling(RecallFrom::Thread, 6);
        let assembled = memory.context(&ana(), thread, None, &policy).await.unwrap();
        assert!(text(&assembled).contains("Humphrey"));
        let empty = memory.open(&ana()).await.unwrap().thread.id;
        assert_eq!(memory.context(&ana(), empty, None, &policy).await.unwrap().recall, RecallOutcome::NotRequested);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_twice() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        tell(memory, &ana(), thread, 3).await;
        memory.append(&ana(), thread, Draft::user("Feed the walrus.")).await.unwrap();
        let fact = memory.find_messages(&ana(), thread, &[MessageName::Seq(1)]).await.unwrap().remove(0);
        let given = Recalled { thread: None, message: fact.clone(), score: 9.0 };
        let again = Recalled { thread: Some(thread), ..given.clone() };
        let options = ContextOptions { recalled: vec![given, again], ..ContextOptions::default() };
        for rendering in [Rendering::Chat, Rendering::Transcript] {
            for (window, budget) in
                [(1, None), (2, None), (20, None), (20, Some(60)), (20, Some(100)), (20, Some(4_000))]
            {
                let policy =
                    ContextPolicy { budget: budget.map(TokenCount), rendering, ..recalling(RecallFrom::User, window) };
                let question = Some("What is the walrus called?");
                let assembled = memory.context_with(&ana(), thread, question, &policy, &options).await.unwrap();
                for said in [FACT, "Feed the walrus."] {
                    let count = text(&assembled).matches(said).count();
                    let is_small = budget.is_some_and(|budget| budget <= 100);
                    assert!(count == 1 || count == 0 && is_small, "{rendering:?} {window} {budget:?} {said}");
                }
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_found_comes_first() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        tell(memory, &ana(), thread, 10).await;
        let talk = memory.find_messages(&ana(), thread, &[MessageName::Seq(3)]).await.unwrap().remove(0);
        let recalled = vec![Recalled { thread: None, message: talk, score: 0.0 }];
        let options = ContextOptions { recalled, ..ContextOptions::default() };
        let policy = recalling(RecallFrom::Thread, 2);
        let assembled = memory.context_with(&ana(), thread, Some("the walrus?"), &policy, &options).await.unwrap();
        let shown = recalled_seqs(&assembled);
        assert_eq!(shown[..2], [(None, 3, Fate::Recalled), (None, 1, Fate::Recalled)]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_users_other_threads_are_recalled_from_and_nobody_elses() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let (other, here) = (world.thread().await, world.thread().await);
        let foreign = memory.open(&ben()).await.unwrap().thread.id;
        tell(memory, &ana(), other, 3).await;
        memory.append(&ben(), foreign, Draft::user("My secret walrus is called Gertrude.")).await.unwrap();
        memory.append(&ana(), here, Draft::user("hello")).await.unwrap();
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.mint_thread_id()) };
        let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        memory.append(&ana(), shared, Draft::user("The walrus of this channel is called Boris.")).await.unwrap();
        memory.append(&ana(), shared, Draft::user("hello")).await.unwrap();
        let question = Some("What is the walrus called?");
        let context = async |scope: &Scope, thread, from| {
            text(&memory.context(scope, thread, question, &recalling(from, 1)).await.unwrap())
        };
        // A tenant's scope reads all, but the context is the user's whose thread it is.
        for scope in [ana(), acme()] {
            let seen = context(&scope, here, RecallFrom::User).await;
            assert!(seen.contains("Humphrey") && !seen.contains("Gertrude") && !seen.contains("Boris"), "{seen}");
            assert!(!context(&scope, here, RecallFrom::Thread).await.contains("Humphrey"));
            let seen = context(&scope, shared, RecallFrom::User).await;
            assert!(seen.contains("Boris") && !seen.contains("Humphrey") && !seen.contains("Gertrude"), "{seen}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn positions_of_one_thread_say_nothing_of_another() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let (other, here) = (world.thread().await, world.thread().await);
        memory.append(&ana(), here, Draft::user("hello")).await.unwrap();
        let talk = (1..=30).map(|number| Draft::user(format!("small talk {number}"))).collect();
        memory.append_all(&ana(), other, talk, &AppendOptions::default()).await.unwrap();
        memory.append(&ana(), other, Draft::user(FACT)).await.unwrap();
        let policy = recalling(RecallFrom::User, 5);
        let assembled = memory.context(&ana(), here, Some("the walrus?"), &policy).await.unwrap();
        assert_eq!(recalled_seqs(&assembled)[0], (Some(other), 31, Fate::Recalled));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_not_recalled() {
    everywhere(async |world: World| {
        let retention = Some(Retention { max_messages: None, ttl_minutes: Some(60) });
        let options = MemoryOptions { retention, ..world.memory.options().clone() };
        let world = world.with_options(options);
        let (memory, other, here) = (&world.memory, world.thread().await, world.thread().await);
        for thread in [other, here] {
            memory.append(&ana(), thread, Draft::user(FACT)).await.unwrap();
        }
        let policy = recalling(RecallFrom::User, 1);
        let seen = async || text(&memory.context(&ana(), here, Some("the walrus?"), &policy).await.unwrap());
        assert!(seen().await.contains("Humphrey"));
        world.clock.advance_minutes(40);
        for thread in [other, here] {
            memory.append(&ana(), thread, Draft::user("hello")).await.unwrap();
        }
        world.clock.advance_minutes(30);
        assert!(!seen().await.contains("Humphrey"));
    })
    .await;
}

/// An index that is out of order.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl SearchIndex for Broken {
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
async fn a_search_that_fails_leaves_the_rest_of_the_context() {
    let inner = World::plain().backend;
    let world = World::over(inner.clone(), Backend { search: Arc::new(Broken), ..inner });
    let (memory, thread) = (&world.memory, world.thread().await);
    tell(memory, &ana(), thread, 5).await;
    let policy = recalling(RecallFrom::Thread, 3);
    let question = Some("What is the walrus called?");
    let with = memory.context(&ana(), thread, question, &policy).await.unwrap();
    let without = memory.context(&ana(), thread, question, &ContextPolicy::window(3)).await.unwrap();
    assert_eq!(with.context.messages, without.context.messages);
    assert!(matches!(with.recall, RecallOutcome::Failed { is_retryable: false, .. }), "{:?}", with.recall);
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_fails_leaves_what_the_words_recall() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        tell(memory, &ana(), thread, 5).await;
        let options = ContextOptions { embedder: Some(Arc::new(BrokenEmbedder)), ..ContextOptions::default() };
        let policy = recalling(RecallFrom::Thread, 3);
        let assembled = memory.context_with(&ana(), thread, Some("the walrus?"), &policy, &options).await.unwrap();
        assert!(text(&assembled).contains("Humphrey"));
        let RecallOutcome::Searched { meaning, .. } = assembled.recall else { panic!("{:?}", assembled.recall) };
        assert!(matches!(meaning, EmbedderOutcome::Failed(_)), "{meaning:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_recalls_nothing_is_refused_by_name() {
    let world = World::plain();
    let thread = world.thread().await;
    for messages in [0, 1_001] {
        let recall = RecallPolicy { from: RecallFrom::Thread, messages, ..RecallPolicy::default() };
        let policy = ContextPolicy { recall, ..ContextPolicy::default() };
        let error = world.memory.context(&ana(), thread, Some("?"), &policy).await.unwrap_err().to_string();
        assert!(error.starts_with("invalid recall.messages"), "{error}");
    }
    assert_eq!(serde_json::to_string(&RecallFrom::User).unwrap(), r#""user""#);
}

// S0.28
#[tokio::test(start_paused = true)]
async fn a_broken_row_beside_a_hit_does_not_blank_what_is_recalled() {
    let (from, to) = (World::plain(), World::plain());
    let thread = from.thread().await;
    tell(&from.memory, &ana(), thread, 10).await;
    let tenant = ana().tenant_id().clone();
    let mut dump = from.backend.maintenance.dump_thread(&tenant, thread, None, 100).await.unwrap();
    let DumpEntry::Message { body, .. } = &mut dump.entries[1] else { panic!("a message") };
    *body = "1u{".to_owned();
    to.backend.maintenance.restore_thread(&tenant, thread, dump).await.unwrap();
    let policy = recalling(RecallFrom::Thread, 2);
    let assembled = to.memory.context(&ana(), thread, Some("the walrus?"), &policy).await.unwrap();
    assert_eq!(assembled.recall, searched());
    assert!(text(&assembled).contains("Humphrey"));
}
