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

use super::world::{World, acme, ana, everywhere};

/// Says what it is told to, and remembers what it was shown.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Option<(String, Finish)>>>,
    shown: Mutex<Vec<String>>,
}

impl Scripted {
    fn says<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let answers = texts.into_iter().map(|text| Some((text.to_owned(), Finish::Stop)));
        Self { answers: Mutex::new(answers.collect()), ..Self::default() }
    }

    fn fails() -> Self {
        Self { answers: Mutex::new([None].into()), ..Self::default() }
    }

    fn take_shown(&self) -> Vec<String> {
        std::mem::take(&mut *self.shown.lock().unwrap())
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn answer(&self, request: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let task = request.messages.last().unwrap().parts[0].text().unwrap().to_owned();
        self.shown.lock().unwrap().push(task);
        let answer = self.answers.lock().unwrap().pop_front().expect("no more calls were expected");
        let Some((text, finish)) = answer else {
            return Err(ModelError::Unavailable { model: "scripted".into(), detail: "down".into(), retry_after: None });
        };
        Ok(ChatAnswer { parts: vec![Part::Text(text)], finish, model: "scripted".into(), usage: None })
    }
}

fn policy() -> ContextPolicy {
    ContextPolicy { summary: Some(SummaryPolicy::default()), ..ContextPolicy::window(2) }
}

async fn say(memory: &Memory, thread: ThreadId, texts: &[&str]) -> Vec<MessageId> {
    let drafts = texts.iter().map(|text| Draft::user(*text)).collect();
    let appended = memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
    appended.messages.iter().map(|message| message.id).collect()
}

async fn seen(memory: &Memory, thread: ThreadId) -> String {
    let context = memory.context(&ana(), thread, None, &policy()).await.unwrap().context;
    let parts = context.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(Part::text).collect::<Vec<_>>().join("\n")
}

async fn write(memory: &Memory, thread: ThreadId, model: &Scripted) -> Option<SummaryRenewal> {
    memory.write_summary(&ana(), thread, model, SummaryPolicy::default()).await.unwrap()
}

/// Everything that is stored as records of a thread.
async fn records(world: &World, thread: ThreadId) -> String {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = world.backend.store.list_records(&acme(), &query, world.memory.now()).await.unwrap();
    records.iter().map(|record| record.value.as_str()).collect::<Vec<_>>().join("\n")
}

fn complete(through_seq: u64) -> Option<SummaryRenewal> {
    Some(SummaryRenewal { through_seq, is_complete: true })
}

// S0.36
#[tokio::test(start_paused = true)]
async fn a_model_renews_the_summary_from_what_it_wrote_and_what_fell_out_since() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        let model = Scripted::says(["Ana has 3 cats.", "Ana has 3 cats and lives in Oslo."]);
        assert_eq!(write(memory, thread, &model).await, None, "there is nothing to summarise");
        say(memory, thread, &["I have 3 cats.", "They are grey.", "third", "fourth"]).await;
        assert!(seen(memory, thread).await.contains("- User: I have 3 cats."), "sentences stand there until then");

        assert_eq!(write(memory, thread, &model).await, complete(2));
        let shown = model.take_shown();
        assert!(
            shown[0].starts_with("The notes so far:\n(none)\n") && shown[0].contains("They are grey."),
            "{shown:?}"
        );
        assert_eq!(write(memory, thread, &model).await, None, "nothing has fallen out since");
        let process = world.another_process();
        let context = seen(&process, thread).await;
        assert!(context.contains("(messages 1 to 2):\n- Ana has 3 cats.\nthird"), "{context}");
        assert!(!context.contains("They are grey."));

        say(&process, thread, &["I live in Oslo.", "sixth", "seventh"]).await;
        let context = seen(&process, thread).await;
        assert!(context.contains("- Ana has 3 cats.\n") && context.contains("- User: I live in Oslo."), "{context}");
        assert_eq!(write(&process, thread, &model).await, complete(5));
        let shown = model.take_shown();
        assert!(shown[0].contains("- Ana has 3 cats.\n") && shown[0].contains("I live in Oslo."), "{shown:?}");
        assert!(!shown[0].contains("They are grey."), "renewed, not rebuilt");
        let context = seen(memory, thread).await;
        assert!(context.contains("(messages 1 to 5):\n- Ana has 3 cats and lives in Oslo."), "{context}");
        assert!(!context.contains("User: I live in Oslo."));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_changes_nothing() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        say(memory, thread, &["I have 3 cats.", "second", "third"]).await;
        let before = seen(memory, thread).await;
        let empty = Scripted::says(["  \n"]);
        let withheld =
            Scripted { answers: Mutex::new([Some(("I have".into(), Finish::Filtered))].into()), ..Scripted::default() };
        for (model, is_retryable) in [(Scripted::fails(), true), (empty, false), (withheld, false)] {
            let result = memory.write_summary(&ana(), thread, &model, SummaryPolicy::default()).await;
            let error = result.unwrap_err();
            assert!(matches!(error, MemoryError::Model(_)) && error.is_retryable() == is_retryable, "{error}");
            assert_eq!(seen(memory, thread).await, before);
        }
        // The next call makes up for it.
        assert_eq!(write(memory, thread, &Scripted::says(["3 cats"])).await, complete(1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erased_and_changed_words_take_the_written_text_with_them_and_it_is_written_anew() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        let texts = ["My secret is 4711.", "I live in Oslo.", "I have 3 cats.", "fourth", "fifth"];
        let ids = say(memory, thread, &texts).await;
        seen(memory, thread).await;
        let write_now = async |text: &str| {
            let model = Scripted::says([text]);
            write(memory, thread, &model).await;
            assert!(records(&world, thread).await.contains(text));
            model.take_shown().join("\n")
        };
        write_now("code four-seven-eleven, Oslo, cats").await;

        memory.erase_messages(&ana(), thread, &ids[..1]).await.unwrap();
        let stored = records(&world, thread).await;
        assert!(
            !stored.contains("four-seven-eleven") && !stored.contains("4711") && stored.contains("Oslo"),
            "{stored}"
        );
        assert!(seen(memory, thread).await.contains("- User: I live in Oslo."), "sentences stand in for it");
        let shown = write_now("Oslo the city, felines").await;
        assert!(!shown.contains("4711") && !shown.contains("four-seven") && shown.contains("Oslo"), "{shown}");

        let content = Draft::user("I live in Lima.").content;
        memory.replace_message(&ana(), thread, ids[1], content, None).await.unwrap();
        assert!(!records(&world, thread).await.contains("Oslo"));
        let shown = write_now("Lima the capital, felines").await;
        assert!(shown.contains("Lima") && !shown.contains("Oslo"), "{shown}");

        memory.batch().erase(ids[1]).commit(&ana(), thread).await.unwrap();
        assert!(!records(&world, thread).await.contains("Lima"));
        write_now("felines only").await;
        memory.retain(&ana(), thread, &Retention { max_messages: Some(2), ttl_minutes: None }).await.unwrap();
        let stored = records(&world, thread).await;
        assert!(!stored.contains("felines") && !stored.contains("cats"), "{stored}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_summary_does_not_cover_can_go_without_harm() {
    let world = World::plain();
    let (memory, thread) = (&world.memory, world.thread().await);
    let ids = say(memory, thread, &["I have 3 cats.", "second", "third"]).await;
    seen(memory, thread).await;
    write(memory, thread, &Scripted::says(["felines"])).await;
    memory.erase_messages(&ana(), thread, &ids[2..]).await.unwrap();
    assert!(records(&world, thread).await.contains("felines"));
}

/// Erases a message while it is asked about it.
#[derive(Debug)]
struct Slow {
    memory: Memory,
    thread: ThreadId,
    erase: Option<MessageId>,
}

#[async_trait]
impl ChatModel for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    async fn answer(&self, _: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        match self.erase {
            Some(id) => self.memory.erase_messages(&ana(), self.thread, &[id]).await.map(drop).unwrap(),
            None => {
                say(&self.memory, self.thread, &["one more", "and another"]).await;
                seen(&self.memory, self.thread).await;
            }
        }
        let parts = vec![Part::Text("four-seven-eleven".into())];
        Ok(ChatAnswer { parts, finish: Finish::Stop, model: "slow".into(), usage: None })
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_erased_while_the_model_writes_is_not_stored_and_talk_goes_on() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        // Of the second no sentence stands in the summary, but the model is shown it all the same.
        let ids = say(memory, thread, &["My secret is 4711.", "ok", "third", "fourth"]).await;
        seen(memory, thread).await;
        for id in [ids[1], ids[0]] {
            let model = Slow { memory: memory.clone(), thread, erase: Some(id) };
            let result = memory.write_summary(&ana(), thread, &model, SummaryPolicy::default()).await;
            assert!(matches!(result, Err(MemoryError::Contended { .. })), "{result:?}");
            assert!(!records(&world, thread).await.contains("four-seven-eleven"));
        }
        say(memory, thread, &["fifth", "sixth"]).await;
        seen(memory, thread).await;
        let model = Slow { memory: memory.clone(), thread, erase: None };
        let renewal = memory.write_summary(&ana(), thread, &model, SummaryPolicy::default()).await.unwrap();
        assert_eq!(renewal, complete(4));
        let context = seen(memory, thread).await;
        assert!(context.contains(":\n- four-seven-eleven\n- User: fifth"), "{context}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_written_call_by_call_and_long_texts_are_cut() {
    let world = World::plain();
    let (memory, thread) = (&world.memory, world.thread().await);
    let long = "word ".repeat(2_000);
    say(memory, thread, &[long.as_str(); 20]).await;
    say(memory, thread, &["x"; 400]).await;
    seen(memory, thread).await;
    let mut calls = 0;
    loop {
        calls += 1;
        let model = Scripted::says([long.as_str()]);
        let renewal = write(memory, thread, &model).await.unwrap();
        assert!(model.take_shown()[0].chars().count() < 40_000);
        if renewal.is_complete {
            assert_eq!(renewal.through_seq, 418);
            break;
        }
    }
    assert!(calls > 4, "{calls}");
    let characters = seen(memory, thread).await.chars().count();
    assert!(characters <= SummaryPolicy::default().characters + 100, "{characters}");
    // Where there is no room for it, sentences are.
    let tight = ContextPolicy { budget: Some(TokenCount(300)), ..policy() };
    let context = memory.context(&ana(), thread, None, &tight).await.unwrap().context;
    assert!(context.report.tokens.total.0 <= 300 && context.summary.unwrap().written.is_some());
}
