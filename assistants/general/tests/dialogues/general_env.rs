//! The environment in which the dialogues of a set run.

use std::collections::BTreeMap;

use serde_json::Value;
use threadkeep::{Draft, Scope, ThreadId, Timestamp};
use threadkeep_dialogue_sets::{Dialogue, DialogueEnv, ObservedCall, ObservedTurn};

use super::test_env::TestEnv;

/// The environment of a dialogue.
pub(crate) struct GeneralEnv {
    env: Option<TestEnv>,
    clock: Timestamp,
    threads: BTreeMap<(String, String), ThreadId>,
}

impl GeneralEnv {
    fn env(&self) -> &TestEnv {
        self.env.as_ref().expect("the environment is only absent during a restart")
    }
}

impl DialogueEnv for GeneralEnv {
    async fn start(dialogue: &Dialogue) -> Self {
        let clock = dialogue.clock.as_deref().or_else(|| dialogue.world.get("clock")?.as_str());
        let clock = clock.unwrap_or("2026-05-04T09:00:00Z");
        let env = TestEnv::new().await.at(clock);
        let scope = Scope::user("acme", "ana").unwrap();
        for document in dialogue.world.get("documents").and_then(Value::as_array).into_iter().flatten() {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            let passages = document["passages"].as_array().expect("passages");
            let passages: Vec<(String, String)> =
                passages.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
            let passages: Vec<(&str, &str)> = passages.iter().map(|(at, text)| (at.as_str(), text.as_str())).collect();
            env.add_document(&scope, "documents", &text(&document["title"]), &passages).await;
        }
        // Another notation: {"knowledge": {"lease": [{"id": "ls-1", "text": "The rent is …"}]}}.
        for (title, passages) in dialogue.world.get("knowledge").and_then(Value::as_object).into_iter().flatten() {
            let text = |passage: &Value, name: &str| passage[name].as_str().expect("a text").to_owned();
            let passages = passages.as_array().expect("passages").iter();
            let passages: Vec<(String, String)> =
                passages.map(|passage| (text(passage, "id"), text(passage, "text"))).collect();
            let passages: Vec<(&str, &str)> = passages.iter().map(|(at, text)| (at.as_str(), text.as_str())).collect();
            env.add_document(&scope, "documents", title, &passages).await;
        }
        Self { env: Some(env), clock: clock.parse().unwrap(), threads: BTreeMap::new() }
    }

    async fn apply(&mut self, event: &str, value: &Value) {
        match event {
            "restart" => {
                let env = self.env.take().expect("the environment is only absent during a restart");
                self.env = Some(env.restarted().await);
            }
            "advance_clock_s" => {
                let millis = self.clock.as_millis() + value.as_i64().unwrap_or(0) * 1_000;
                self.clock = Timestamp::from_millis(millis).unwrap();
            }
            // {"thread": "A", "messages": [["2026-05-02T09:00:00Z", "The key is with Ana."]]}: what a user said before.
            "add_messages" => {
                let text = |value: &Value| value.as_str().expect("a text").to_owned();
                let (user, conversation) = ("ana".to_owned(), text(&value["thread"]));
                let thread = self.env().conversation(&user).await.thread;
                let scope = Scope::user("acme", &user).unwrap();
                for message in value["messages"].as_array().expect("messages") {
                    let draft = Draft::user(text(&message[1])).with_created_at(text(&message[0]).parse().unwrap());
                    self.env().memory().append(&scope, thread, draft).await.unwrap();
                }
                self.threads.insert((user, conversation), thread);
            }
            other => panic!("unknown event {other}"),
        }
        self.env().set_time(&self.clock.to_string());
    }

    async fn send(&mut self, user: &str, conversation: &str, text: &str) -> ObservedTurn {
        // No two messages have equal times. Longer than this, only the dialogue lets time pass.
        self.clock = Timestamp::from_millis(self.clock.as_millis() + 1).unwrap();
        self.env().set_time(&self.clock.to_string());
        let key = (user.to_owned(), conversation.to_owned());
        let conversation = match self.threads.get(&key) {
            Some(thread) => self.env().existing_conversation(user, *thread),
            None => self.env().conversation(user).await,
        };
        let (thread, turn) = (conversation.thread, conversation.turn(text).await);
        self.threads.insert(key, thread);
        let calls = turn
            .tool_calls
            .iter()
            .map(|call| ObservedCall { name: call.name.clone(), arguments: call.arguments.read().unwrap_or_default() });
        let is_refusal = REFUSALS.iter().any(|refusal| turn.reply.contains(refusal));
        ObservedTurn { is_refusal, calls: calls.collect(), reply: turn.reply }
    }

    fn are_equal(_: &str, expected: &Value, actual: &Value) -> bool {
        let folded = |value: &Value| match value {
            Value::String(text) => text.to_lowercase().replace("favorite", "favourite").replace("color", "colour"),
            other => other.to_string(),
        };
        folded(expected) == folded(actual)
    }
}

/// An answer that declines a request or reports that nothing was found contains one of these texts.
const REFUSALS: [&str; 4] = ["I cannot do that", "I found nothing", "No puedo hacer eso", "No encontré nada"];
