//! Answers that grow while a model writes them, and answers that are longer than a message.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use threadkeep::core::{ChatDelta, Finish};
use threadkeep::{ChatAnswer, ChatModel, ChatRequest, DeltaSink, JsonText, ModelError, Part, ToolCall};
use threadkeep_simulator::slack::Message;
use tokio::sync::{Mutex, mpsc};

use crate::CHANNEL;
use crate::bench::{ANSWER_TIMEOUT, Bench, Settings};

/// What a test makes the model do next.
#[derive(Debug)]
enum Step {
    /// Writes a piece of its answer.
    Write(String),
    /// Starts its answer again.
    Restart,
    /// Calls the tool.
    Call(serde_json::Value),
    /// Ends its answer.
    End,
}

/// A model whose answer a test dictates.
#[derive(Debug)]
struct DictatedModel(Mutex<mpsc::UnboundedReceiver<Step>>);

#[async_trait]
impl ChatModel for DictatedModel {
    fn name(&self) -> &str {
        "dictated"
    }

    async fn answer(&self, _: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let (mut steps, mut text, mut parts) = (self.0.lock().await, String::new(), Vec::new());
        let mut finish = Finish::Stop;
        while let Some(step) = steps.recv().await {
            match step {
                Step::Write(piece) => {
                    text.push_str(&piece);
                    deltas(ChatDelta::Text(piece));
                }
                Step::Restart => {
                    text.clear();
                    deltas(ChatDelta::Restarted);
                }
                Step::Call(arguments) => {
                    let arguments = JsonText::from(&arguments);
                    parts.push(Part::ToolCall(ToolCall {
                        id: "call-1".to_owned(),
                        name: "kubectl".to_owned(),
                        arguments,
                    }));
                    finish = Finish::ToolCalls;
                    break;
                }
                Step::End => break,
            }
        }
        parts.insert(0, Part::Text(text));
        Ok(ChatAnswer { parts, finish, model: "dictated".to_owned(), usage: None })
    }
}

/// A question in the channel that is being answered.
struct Question {
    bench: Bench,
    steps: mpsc::UnboundedSender<Step>,
}

impl Question {
    async fn ask() -> Self {
        let (steps, receiver) = mpsc::unbounded_channel();
        let model: Arc<dyn ChatModel> = Arc::new(DictatedModel(Mutex::new(receiver)));
        let bench = Bench::start(Settings {
            model: Some(model),
            growth_interval: Duration::from_millis(5),
            ..Settings::default()
        })
        .await;
        bench.slack.say(&bench.app, CHANNEL, "U1", "<@U0BOT> explain", None).await;
        Self { bench, steps }
    }

    fn step(&self, step: Step) {
        assert!(self.steps.send(step).is_ok());
    }

    fn write(&self, text: &str) {
        self.step(Step::Write(text.to_owned()));
    }

    /// Waits until the messages of the bot have these texts.
    async fn wait_for(&self, texts: &[&str]) -> Vec<Message> {
        self.wait_until(|messages| messages.iter().map(|message| &*message.text).eq(texts.iter().copied())).await
    }

    /// Waits until the messages of the bot satisfy a condition.
    async fn wait_until(&self, condition: impl Fn(&[Message]) -> bool) -> Vec<Message> {
        let found = self.bench.slack.wait_for(|messages| {
            let own: Vec<Message> = messages.iter().filter(|message| message.is_from_bot()).cloned().collect();
            condition(&own).then_some(own)
        });
        match tokio::time::timeout(ANSWER_TIMEOUT, found).await {
            Ok(found) => found,
            Err(_) => panic!("the messages are {:?}", self.bench.slack.messages()),
        }
    }

    fn calls(&self, method: &str) -> usize {
        self.bench.slack.calls().iter().filter(|call| call.method == method).count()
    }
}

#[tokio::test]
async fn an_answer_that_is_being_written_grows_in_one_message() {
    let question = Question::ask().await;
    question.write("First, **look** at");
    question.wait_for(&["First, *look* at …"]).await;
    question.write(" the log:\n```\nerror 1");
    question.wait_for(&["First, *look* at the log:\n```\nerror 1\n``` …"]).await;
    question.write("\n```\nThen restart it.");
    question.step(Step::End);
    let messages = question.wait_for(&["First, *look* at the log:\n```\nerror 1\n```\nThen restart it."]).await;
    assert!(messages[0].is_edited);
    assert_eq!(question.calls("chat.postMessage"), 1);
    assert!(question.calls("chat.update") >= 2);
    let texts = question.bench.texts(CHANNEL).await;
    assert_eq!(texts.last().unwrap(), "First, **look** at the log:\n```\nerror 1\n```\nThen restart it.");
}

#[tokio::test]
async fn an_answer_that_starts_again_replaces_what_was_shown() {
    let question = Question::ask().await;
    question.write(&"a line of a long answer\n".repeat(300));
    question.wait_until(|messages| messages.len() == 2 && messages[1].text.ends_with('…')).await;
    question.step(Step::Restart);
    question.write("In short: yes.");
    question.step(Step::End);
    question.wait_for(&["In short: yes."]).await;
}

// S4.46: an approval request replaces what the model said before it.
#[tokio::test]
async fn an_approval_request_replaces_the_text_before_it() {
    let question = Question::ask().await;
    question.write("I will scale it.");
    question.wait_for(&["I will scale it. …"]).await;
    let call = json!({ "verb": "scale", "kind": "deployment", "name": "api", "namespace": "shop", "replicas": 4 });
    question.step(Step::Call(call));
    let request = question.wait_until(|messages| messages.len() == 1 && messages[0].blocks.is_array()).await.remove(0);
    assert!(request.text.contains("`kubectl scale deployment api --replicas=4 -n shop`"), "{}", request.text);
    let before = question.bench.slack.messages().len();
    question.bench.slack.react(&question.bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;
    question.write("It has 4 replicas now.");
    question.step(Step::End);
    let done = question.bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.starts_with("It has 4 replicas now."), "{}", done.text);
    assert_eq!(question.bench.cluster.changes().len(), 1);
}

#[tokio::test]
async fn an_answer_of_several_messages_is_complete() {
    let question = Question::ask().await;
    let lines: Vec<String> = (0..400).map(|number| format!("line {number:04} of the answer")).collect();
    question.write(&lines.join("\n"));
    question.step(Step::End);
    let messages = question
        .wait_until(|messages| messages.last().is_some_and(|last| last.text.ends_with("line 0399 of the answer")))
        .await;
    let shown: Vec<String> = messages.iter().flat_map(|message| message.text.lines().map(str::to_owned)).collect();
    assert_eq!(shown, lines);
    assert_eq!(question.calls("files.completeUploadExternal"), 0);
}

#[tokio::test]
async fn a_long_answer_is_also_uploaded_as_a_file() {
    let question = Question::ask().await;
    let lines: Vec<String> = (0..2_000).map(|number| format!("line {number:04} of the answer <b>")).collect();
    question.write(&lines.join("\n"));
    question.step(Step::End);
    let messages = question.wait_until(|messages| messages.last().is_some_and(|last| !last.files.is_empty())).await;
    assert_eq!(messages.len(), 4, "three messages and the file");
    assert!(messages[0].text.starts_with("line 0000 of the answer &lt;b&gt;\n"), "{}", messages[0].text);
    assert!(messages[2].text.ends_with("_The file contains the whole answer._"), "{}", messages[2].text);
    assert_eq!(messages[3].files[0].text(), lines.join("\n"));
    assert!(messages[3].files[0].name.ends_with(".txt"));
}

#[tokio::test]
async fn a_long_answer_is_posted_as_messages_without_the_permission_to_upload() {
    let question = Question::ask().await;
    question.bench.slack.refuse("files.getUploadURLExternal", "missing_scope");
    let lines: Vec<String> = (0..4_000).map(|number| format!("line {number:04} of the answer")).collect();
    question.write(&lines.join("\n"));
    question.step(Step::End);
    let messages = question.wait_until(|messages| messages.len() == 10).await;
    assert!(messages[9].text.ends_with("_The answer is too long for Slack; the rest is omitted._"));
    assert!(!messages[2].text.contains("file"), "{}", messages[2].text);
}

// S4.51: a crash between the first words and the end leaves no second message.
#[tokio::test]
async fn an_answer_that_grew_is_completed_after_a_restart() {
    let mut question = Question::ask().await;
    question.write("Half of it");
    question.wait_for(&["Half of it …"]).await;
    // Slack refuses all attempts, so that the end of the answer cannot be posted.
    question.bench.slack.limit(8, 0);
    question.write(" and the rest.");
    question.step(Step::End);
    question.bench.restart().await;
    question.wait_for(&["Half of it and the rest."]).await;
    assert_eq!(question.calls("chat.postMessage"), 1);
}
