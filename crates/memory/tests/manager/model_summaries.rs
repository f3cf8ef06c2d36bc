//! Summaries that a language model writes.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use threadkeep_context::{ContextPolicy, SummaryPolicy};
use threadkeep_core::{
    ChatAnswer, ChatModel, ChatRequest, DeltaSink, Finish, MessageId, ModelError, Part, RecordOwner, RecordQuery,
    ThreadId, TokenCount,
};
use threadkeep_memory::{AppendOptions, Draft, Memory, MemoryError, Retention, SummaryRenewal};

use super::test_env::{TestEnv, acme, ana, on_all_stores};

/// A model with scripted answers that records its requests.
#[derive(Debug, Default)]
struct ScriptedModel {
    /// The next answers. `None` is an unavailable model.
    answers: Mutex<VecDeque<Option<(String, Finish)>>>,
    requests: Mutex<Vec<String>>,
}

impl ScriptedModel {
    fn with_answers<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let answers = texts.into_iter().map(|text| Some((text.to_owned(), Finish::Stop)));
        Self { answers: Mutex::new(answers.collect()), ..Self::default() }
    }

    fn unavailable() -> Self {
        Self { answers: Mutex::new([None].into()), ..Self::default() }
    }

    fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn answer(&self, request: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let task = request.messages.last().unwrap().parts[0].text().unwrap().to_owned();
        self.requests.lock().unwrap().push(task);
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer is scripted for every call");
        let Some((text, finish)) = answer else {
            return Err(ModelError::Unavailable { model: "scripted".into(), detail: "down".into(), retry_after: None });
        };
        Ok(ChatAnswer { parts: vec![Part::Text(text)], finish, model: "scripted".into(), usage: None })
    }
}

fn policy() -> ContextPolicy {
    ContextPolicy { summary: Some(SummaryPolicy::default()), ..ContextPolicy::window(2) }
}

async fn append_texts(memory: &Memory, thread: ThreadId, texts: &[&str]) -> Vec<MessageId> {
    let drafts = texts.iter().map(|text| Draft::user(*text)).collect();
    let appended = memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
    appended.messages.iter().map(|message| message.id).collect()
}

async fn context_text(memory: &Memory, thread: ThreadId) -> String {
    let context = memory.context(&ana(), thread, None, &policy()).await.unwrap().context;
    let parts = context.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(Part::text).collect::<Vec<_>>().join("\n")
}

async fn write_summary(memory: &Memory, thread: ThreadId, model: &ScriptedModel) -> Option<SummaryRenewal> {
    memory.write_summary(&ana(), thread, model, SummaryPolicy::default()).await.unwrap()
}

/// Returns the values of all records of a thread.
async fn record_values(env: &TestEnv, thread: ThreadId) -> String {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = env.backend.store.list_records(&acme(), &query, env.memory.now()).await.unwrap();
    records.iter().map(|record| record.value.as_str()).collect::<Vec<_>>().join("\n")
}

fn complete_through(through_seq: u64) -> Option<SummaryRenewal> {
    Some(SummaryRenewal { through_seq, is_complete: true })
}

// S0.36
#[tokio::test(start_paused = true)]
async fn a_model_updates_its_summary_with_later_messages() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let model = ScriptedModel::with_answers(["Ana has 3 cats.", "Ana has 3 cats and lives in Oslo."]);
        assert_eq!(write_summary(memory, thread, &model).await, None, "an empty thread was summarised");
        append_texts(memory, thread, &["I have 3 cats.", "They are grey.", "third", "fourth"]).await;
        assert!(
            context_text(memory, thread).await.contains("- User: I have 3 cats."),
            "without a model summary, sentences are used"
        );

        assert_eq!(write_summary(memory, thread, &model).await, complete_through(2));
        let requests = model.take_requests();
        assert!(
            requests[0].starts_with("The notes so far:\n(none)\n") && requests[0].contains("They are grey."),
            "{requests:?}"
        );
        assert_eq!(
            write_summary(memory, thread, &model).await,
            None,
            "no message has left the window since the last summary"
        );
        let process = env.another_process();
        let context = context_text(&process, thread).await;
        assert!(context.contains("(messages 1 to 2):\n- Ana has 3 cats.\nthird"), "{context}");
        assert!(!context.contains("They are grey."));

        append_texts(&process, thread, &["I live in Oslo.", "sixth", "seventh"]).await;
        let context = context_text(&process, thread).await;
        assert!(context.contains("- Ana has 3 cats.\n") && context.contains("- User: I live in Oslo."), "{context}");
        assert_eq!(write_summary(&process, thread, &model).await, complete_through(5));
        let requests = model.take_requests();
        assert!(requests[0].contains("- Ana has 3 cats.\n") && requests[0].contains("I live in Oslo."), "{requests:?}");
        assert!(!requests[0].contains("They are grey."), "the summary was rebuilt instead of updated");
        let context = context_text(memory, thread).await;
        assert!(context.contains("(messages 1 to 5):\n- Ana has 3 cats and lives in Oslo."), "{context}");
        assert!(!context.contains("User: I live in Oslo."));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_model_leaves_the_summary_unchanged() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_texts(memory, thread, &["I have 3 cats.", "second", "third"]).await;
        let before = context_text(memory, thread).await;
        let empty = ScriptedModel::with_answers(["  \n"]);
        let filtered = ScriptedModel {
            answers: Mutex::new([Some(("I have".into(), Finish::Filtered))].into()),
            ..ScriptedModel::default()
        };
        for (model, is_retryable) in [(ScriptedModel::unavailable(), true), (empty, false), (filtered, false)] {
            let result = memory.write_summary(&ana(), thread, &model, SummaryPolicy::default()).await;
            let error = result.unwrap_err();
            assert!(matches!(error, MemoryError::Model(_)) && error.is_retryable() == is_retryable, "{error}");
            assert_eq!(context_text(memory, thread).await, before);
        }
        // The next call succeeds.
        assert_eq!(write_summary(memory, thread, &ScriptedModel::with_answers(["3 cats"])).await, complete_through(1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn edits_and_erasures_discard_the_model_summary() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let texts = ["My secret is 4711.", "I live in Oslo.", "I have 3 cats.", "fourth", "fifth"];
        let ids = append_texts(memory, thread, &texts).await;
        context_text(memory, thread).await;
        let write_summary_text = async |text: &str| {
            let model = ScriptedModel::with_answers([text]);
            write_summary(memory, thread, &model).await;
            assert!(record_values(&env, thread).await.contains(text));
            model.take_requests().join("\n")
        };
        write_summary_text("code four-seven-eleven, Oslo, cats").await;

        memory.erase_messages(&ana(), thread, &ids[..1]).await.unwrap();
        let stored = record_values(&env, thread).await;
        assert!(
            !stored.contains("four-seven-eleven") && !stored.contains("4711") && stored.contains("Oslo"),
            "{stored}"
        );
        assert!(
            context_text(memory, thread).await.contains("- User: I live in Oslo."),
            "sentences replace the model summary"
        );
        let request_text = write_summary_text("Oslo the city, felines").await;
        assert!(
            !request_text.contains("4711") && !request_text.contains("four-seven") && request_text.contains("Oslo"),
            "{request_text}"
        );

        let content = Draft::user("I live in Lima.").content;
        memory.replace_message(&ana(), thread, ids[1], content, None).await.unwrap();
        assert!(!record_values(&env, thread).await.contains("Oslo"));
        let request_text = write_summary_text("Lima the capital, felines").await;
        assert!(request_text.contains("Lima") && !request_text.contains("Oslo"), "{request_text}");

        memory.batch().erase(ids[1]).commit(&ana(), thread).await.unwrap();
        assert!(!record_values(&env, thread).await.contains("Lima"));
        write_summary_text("felines only").await;
        memory.retain(&ana(), thread, &Retention { max_messages: Some(2), ttl_minutes: None }).await.unwrap();
        let stored = record_values(&env, thread).await;
        assert!(!stored.contains("felines") && !stored.contains("cats"), "{stored}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erasing_a_message_outside_the_summary_does_not_change_the_summary() {
    let env = TestEnv::plain();
    let (memory, thread) = (&env.memory, env.open_thread().await);
    let ids = append_texts(memory, thread, &["I have 3 cats.", "second", "third"]).await;
    context_text(memory, thread).await;
    write_summary(memory, thread, &ScriptedModel::with_answers(["felines"])).await;
    memory.erase_messages(&ana(), thread, &ids[2..]).await.unwrap();
    assert!(record_values(&env, thread).await.contains("felines"));
}

/// A model that, during its call, acts as another client: it erases a message, or appends messages if `erase` is `None`.
#[derive(Debug)]
struct RacingModel {
    memory: Memory,
    thread: ThreadId,
    erase: Option<MessageId>,
}

#[async_trait]
impl ChatModel for RacingModel {
    fn name(&self) -> &'static str {
        "racing"
    }

    async fn answer(&self, _: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        match self.erase {
            Some(id) => self.memory.erase_messages(&ana(), self.thread, &[id]).await.map(drop).unwrap(),
            None => {
                append_texts(&self.memory, self.thread, &["one more", "and another"]).await;
                context_text(&self.memory, self.thread).await;
            }
        }
        let parts = vec![Part::Text("four-seven-eleven".into())];
        Ok(ChatAnswer { parts, finish: Finish::Stop, model: "racing".into(), usage: None })
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_discarded_if_a_summarised_message_is_erased_meanwhile() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        // The summary contains no sentence from the second message, but the model receives the message nevertheless.
        let ids = append_texts(memory, thread, &["My secret is 4711.", "ok", "third", "fourth"]).await;
        context_text(memory, thread).await;
        for id in [ids[1], ids[0]] {
            let model = RacingModel { memory: memory.clone(), thread, erase: Some(id) };
            let result = memory.write_summary(&ana(), thread, &model, SummaryPolicy::default()).await;
            assert!(matches!(result, Err(MemoryError::Contended { .. })), "{result:?}");
            assert!(!record_values(&env, thread).await.contains("four-seven-eleven"));
        }
        append_texts(memory, thread, &["fifth", "sixth"]).await;
        context_text(memory, thread).await;
        let model = RacingModel { memory: memory.clone(), thread, erase: None };
        let renewal = memory.write_summary(&ana(), thread, &model, SummaryPolicy::default()).await.unwrap();
        assert_eq!(renewal, complete_through(4));
        let context = context_text(memory, thread).await;
        assert!(context.contains(":\n- four-seven-eleven\n- User: fifth"), "{context}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_summarised_over_several_calls() {
    let env = TestEnv::plain();
    let (memory, thread) = (&env.memory, env.open_thread().await);
    let long = "word ".repeat(2_000);
    append_texts(memory, thread, &[long.as_str(); 20]).await;
    append_texts(memory, thread, &["x"; 400]).await;
    context_text(memory, thread).await;
    let mut calls = 0;
    loop {
        calls += 1;
        let model = ScriptedModel::with_answers([long.as_str()]);
        let renewal = write_summary(memory, thread, &model).await.unwrap();
        assert!(model.take_requests()[0].chars().count() < 40_000);
        if renewal.is_complete {
            assert_eq!(renewal.through_seq, 418);
            break;
        }
    }
    assert!(calls > 4, "only {calls} calls");
    let characters = context_text(memory, thread).await.chars().count();
    assert!(characters <= SummaryPolicy::default().characters + 100, "{characters}");
    // With a small budget, sentences are used instead of the model summary.
    let small_budget = ContextPolicy { budget: Some(TokenCount(300)), ..policy() };
    let context = memory.context(&ana(), thread, None, &small_budget).await.unwrap().context;
    assert!(context.report.tokens.total.0 <= 300 && context.summary.unwrap().written.is_some());
}
