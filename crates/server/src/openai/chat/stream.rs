//! A completion as a stream of chunks.

use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use threadkeep::Part;
use threadkeep::core::ChatDelta;
use tokio::sync::mpsc;

use super::complete::{Answer, Completing, Shell, calls};
use crate::app::App;
use crate::error::ApiError;
use crate::limits;

/// Answers while the model speaks.
pub(super) fn respond(completing: Completing) -> Response {
    let (chunks, told) = mpsc::unbounded_channel::<Bytes>();
    let app = completing.app.clone();
    // A client that goes away does not undo what it asked for.
    tokio::spawn(threadkeep_service::carried(async move {
        let mut teller = Teller::new(chunks, completing.shell.clone());
        match completing.answer(&mut |delta| teller.hear(delta)).await {
            Ok(answer) => teller.finish(&answer),
            Err(error) => teller.fail(&error),
        }
    }));
    streamed(app, told)
}

/// Chunks as a response.
pub(super) fn streamed(app: App, told: mpsc::UnboundedReceiver<Bytes>) -> Response {
    crate::openai::streamed::streamed(app, told, |_| failure(&limits::stopping()))
}

fn failure(error: &ApiError) -> String {
    let told = json!({ "message": error.message, "type": error.family(), "param": error.param, "code": error.code });
    format!("data: {}\n\n", json!({ "error": told }))
}

/// Writes the chunks of one completion.
pub(super) struct Teller {
    chunks: mpsc::UnboundedSender<Bytes>,
    shell: Shell,
    has_spoken: bool,
}

impl Teller {
    pub(super) fn new(chunks: mpsc::UnboundedSender<Bytes>, shell: Shell) -> Self {
        let teller = Self { chunks, shell, has_spoken: false };
        teller.tell(&json!({ "role": "assistant", "content": "" }), None);
        teller
    }

    fn send(&self, data: &str) {
        // A client that is gone hears nothing.
        drop(self.chunks.send(format!("data: {data}\n\n").into()));
    }

    fn tell(&self, delta: &Value, finish: Option<&str>) {
        self.chunk(&json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]), None);
    }

    fn chunk(&self, choices: &Value, usage: Option<&Value>) {
        let Shell { id, created, model, include_usage } = &self.shell;
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices
        });
        if *include_usage {
            chunk["usage"] = usage.cloned().unwrap_or_default();
        }
        self.send(&chunk.to_string());
    }

    pub(super) fn hear(&mut self, delta: ChatDelta) {
        if let ChatDelta::Text(text) = delta {
            self.has_spoken = true;
            self.tell(&json!({ "content": text }), None);
        }
    }

    pub(super) fn finish(&self, answer: &Answer) {
        if !self.has_spoken {
            for text in answer.parts.iter().filter_map(Part::text) {
                self.tell(&json!({ "content": text }), None);
            }
        }
        for (index, call) in calls(answer).into_iter().enumerate() {
            let (id, function) = (&call["id"], &call["function"]);
            let begun = json!({ "index": index, "id": id, "type": "function", "function": { "name": function["name"], "arguments": "" } });
            self.tell(&json!({ "tool_calls": [begun] }), None);
            let rest = json!({ "index": index, "function": { "arguments": function["arguments"] } });
            self.tell(&json!({ "tool_calls": [rest] }), None);
        }
        self.tell(&json!({}), Some(&answer.finish));
        if self.shell.include_usage {
            self.chunk(&json!([]), Some(&answer.usage));
        }
        self.send("[DONE]");
    }

    pub(super) fn fail(&self, error: &ApiError) {
        tracing::error!(code = error.code, internal = error.internal, "a completion failed");
        // A client that is gone hears nothing.
        drop(self.chunks.send(failure(error).into()));
    }
}
