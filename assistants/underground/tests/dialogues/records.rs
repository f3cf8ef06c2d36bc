//! What a turn logs, stores and recalls.

use std::sync::Arc;

use serde_json::json;
use threadkeep::agent::Agent;
use threadkeep::memory::{AppendOptions, Draft};
use threadkeep::models::{Reply, ScriptedModel};
use threadkeep::{ChatMessage, Embedder, EmbedderError, Memory};
use threadkeep_underground::UndergroundAssistant;

use crate::env::TestEnv;
use crate::tfl::FakeTfl;

/// Captures the logs of the current thread until the value is dropped.
struct Log {
    file: tempfile::NamedTempFile,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Log {
    fn capture() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = std::sync::Mutex::new(file.reopen().unwrap());
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
        Self { file, _guard: tracing::subscriber::set_default(log) }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap()
    }
}

// S0.49
#[tokio::test]
async fn turns_log_their_context_and_their_agent() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("What is Circle line status?").await;
    let log = Log::capture();
    conversation.say("Any delays there?").await;
    let text = log.text();
    for line in [
        format!("🚇 Loading context for TFL thread: {}", conversation.thread),
        "📝 Processing ".to_owned(),
        " messages for context".to_owned(),
        "🎯 Routed to CIRCLE with 0.7 confidence".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}: {text}");
    }
}

// S0.09
#[tokio::test]
async fn threads_have_the_type_of_the_assistant() {
    let env = TestEnv::new().await;
    let metadata = &env.agent.assistant().definition().thread_metadata;
    assert_eq!(serde_json::Value::Object(metadata.clone()), json!({ "type": "tfl_transport_query" }));
}

// S0.54
#[tokio::test]
async fn follow_ups_can_ask_about_earlier_answers() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let route = conversation.say("how do I get from Brixton to Oxford Circus?").await;
    let minutes = route.split(" min").next().unwrap().rsplit(' ').next().unwrap();
    assert!(minutes.parse::<u32>().is_ok(), "{route}");
    let again = conversation.say("how long did you say?").await;
    assert!(again.contains(&format!("{minutes} min")), "{again}");
}

/// An embedder that knows only whether the text is about work.
#[derive(Debug)]
struct WorkEmbedder;

#[async_trait::async_trait]
impl Embedder for WorkEmbedder {
    fn model(&self) -> &str {
        "work"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<threadkeep::core::Embedding>, EmbedderError> {
        let is_work = |text: &String| ["office", "desk", "job"].iter().any(|word| text.contains(word));
        let vector = |text: &String| if is_work(text) { vec![1.0, 0.1] } else { vec![0.1, 1.0] };
        let embedding = |text| threadkeep::core::Embedding { model: "work".to_owned(), vector: vector(text) };
        Ok(texts.iter().map(embedding).collect())
    }
}

// S0.37
#[tokio::test]
async fn old_messages_that_match_the_question_reach_a_language_model() {
    let model = Arc::new(ScriptedModel::new().step("sees the old message", |request| {
        let texts: Vec<String> = request.messages.iter().map(ChatMessage::plain_text).collect();
        match texts.iter().any(|text| text.contains("My desk is beside Farringdon")) {
            true => Ok(Reply::text("Farringdon.")),
            false => Err(format!("{texts:?}")),
        }
    }));
    let tfl = FakeTfl::start().await;
    let memory: Memory = threadkeep::open("memory:").await.unwrap();
    let assistant = UndergroundAssistant::new(&memory, Arc::new(tfl.underground()), Some(model.clone()))
        .with_embedder(Some(Arc::new(WorkEmbedder)));
    let agent = Agent::new(memory.clone(), assistant);
    let scope = threadkeep::Scope::user("acme", "ana").unwrap();
    let thread = memory.open(&scope).await.unwrap().thread.id;
    let mut drafts = vec![Draft::user("My desk is beside Farringdon station"), Draft::assistant("Good to know.")];
    drafts.extend((0..40).flat_map(|number| {
        [Draft::user(format!("Is line {number} fine beside the station?")), Draft::assistant("It is.")]
    }));
    memory.append_all(&scope, thread, drafts, &AppendOptions::default()).await.unwrap();
    let turn = agent.chat(&scope, thread, "Which station is beside the office?").await.unwrap();
    assert_eq!(model.verify(), Ok(()));
    assert_eq!(turn.reply, "Farringdon.");
}
