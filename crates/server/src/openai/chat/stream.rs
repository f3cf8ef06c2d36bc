//! Streams a completion as chunks.

use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use threadkeep::Part;
use threadkeep::core::ChatDelta;
use tokio::sync::mpsc;

use super::complete::{Answer, Envelope, PendingCompletion, tool_calls_json};
use crate::app::App;
use crate::error::ApiError;
use crate::limits;
use crate::openai::sse;

/// Streams the answer while the model generates it.
pub(super) fn respond(completion: PendingCompletion) -> Response {
    let (chunks, receiver) = mpsc::unbounded_channel::<Bytes>();
    let app = completion.app.clone();
    // The completion runs in its own task, so that it is finished even if the client disconnects.
    tokio::spawn(threadkeep_service::in_current_span(async move {
        let mut writer = ChunkWriter::new(chunks, completion.envelope.clone());
        match completion.answer(&mut |delta| writer.write_delta(delta)).await {
            Ok(answer) => writer.finish(&answer),
            Err(error) => writer.fail(&error),
        }
    }));
    response(app, receiver)
}

/// Returns a response that streams chunks from a channel.
pub(super) fn response(app: App, chunks: mpsc::UnboundedReceiver<Bytes>) -> Response {
    sse::from_channel(app, chunks, |_| error_event(&limits::stopping_error()))
}

fn error_event(error: &ApiError) -> String {
    let error =
        json!({ "message": error.message, "type": error.openai_type(), "param": error.param, "code": error.code });
    format!("data: {}\n\n", json!({ "error": error }))
}

/// Writes the chunks of one completion.
pub(super) struct ChunkWriter {
    chunks: mpsc::UnboundedSender<Bytes>,
    envelope: Envelope,
    /// Whether text was streamed.
    has_text: bool,
}

impl ChunkWriter {
    pub(super) fn new(chunks: mpsc::UnboundedSender<Bytes>, envelope: Envelope) -> Self {
        let writer = Self { chunks, envelope, has_text: false };
        writer.write_choice(&json!({ "role": "assistant", "content": "" }), None);
        writer
    }

    fn send(&self, data: &str) {
        // Sending fails after the client has disconnected.
        drop(self.chunks.send(format!("data: {data}\n\n").into()));
    }

    fn write_choice(&self, delta: &Value, finish: Option<&str>) {
        self.write_chunk(&json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]), None);
    }

    fn write_chunk(&self, choices: &Value, usage: Option<&Value>) {
        let Envelope { id, created, model, include_usage } = &self.envelope;
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices
        });
        if *include_usage {
            chunk["usage"] = usage.cloned().unwrap_or_default();
        }
        self.send(&chunk.to_string());
    }

    pub(super) fn write_delta(&mut self, delta: ChatDelta) {
        if let ChatDelta::Text(text) = delta {
            self.has_text = true;
            self.write_choice(&json!({ "content": text }), None);
        }
    }

    pub(super) fn finish(&self, answer: &Answer) {
        if !self.has_text {
            for text in answer.parts.iter().filter_map(Part::text) {
                self.write_choice(&json!({ "content": text }), None);
            }
        }
        for (index, call) in tool_calls_json(answer).into_iter().enumerate() {
            let (id, function) = (&call["id"], &call["function"]);
            let start = json!({ "index": index, "id": id, "type": "function", "function": { "name": function["name"], "arguments": "" } });
            self.write_choice(&json!({ "tool_calls": [start] }), None);
            let rest = json!({ "index": index, "function": { "arguments": function["arguments"] } });
            self.write_choice(&json!({ "tool_calls": [rest] }), None);
        }
        self.write_choice(&json!({}), Some(&answer.finish));
        if self.envelope.include_usage {
            self.write_chunk(&json!([]), Some(&answer.usage));
        }
        self.send("[DONE]");
    }

    pub(super) fn fail(&self, error: &ApiError) {
        tracing::error!(code = error.code, internal = error.internal, "a completion failed");
        // Sending fails after the client has disconnected.
        drop(self.chunks.send(error_event(error).into()));
    }
}
