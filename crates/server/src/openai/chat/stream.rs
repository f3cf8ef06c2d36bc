//! Streams a completion as chunks.

use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use threadkeep::Part;
use threadkeep::core::ChatDelta;
use tokio::sync::mpsc;

use super::complete::{Answer, Envelope, PendingCompletion, tool_calls_json};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::limits;
use crate::openai::{sse, stream_head};

/// Streams the answer while the model generates it. A request that fails before the model sends anything gets an ordinary error
/// response.
pub(super) async fn respond(completion: PendingCompletion) -> Result<Response> {
    let (chunks, receiver) = mpsc::unbounded_channel::<Bytes>();
    let (mut head, held) = stream_head::hold();
    let app = completion.app.clone();
    // The completion runs in its own task, so that it is finished even if the client disconnects.
    tokio::spawn(threadkeep_service::in_current_span(async move {
        let mut writer = ChunkWriter::new(chunks, completion.envelope.clone());
        let mut on_delta = |delta: ChatDelta| {
            if !matches!(delta, ChatDelta::Restarted) {
                head.release();
            }
            writer.write_delta(delta);
        };
        match completion.answer(&mut on_delta).await {
            Ok(answer) => {
                head.release();
                writer.finish(&answer);
            }
            Err(error) => {
                if let Err(error) = head.fail(error) {
                    writer.fail(&error);
                }
            }
        }
    }));
    held.wait_until_released(&app).await?;
    Ok(response(app, receiver))
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
    /// Whether the first chunk was written.
    has_begun: bool,
    /// Whether text was streamed.
    has_text: bool,
}

impl ChunkWriter {
    pub(super) fn new(chunks: mpsc::UnboundedSender<Bytes>, envelope: Envelope) -> Self {
        Self { chunks, envelope, has_begun: false, has_text: false }
    }

    /// Writes the first chunk, if it was not written yet. Its content is null if the answer has no text.
    fn begin(&mut self, has_text: bool) {
        if !self.has_begun {
            self.has_begun = true;
            let content = if has_text { json!("") } else { Value::Null };
            self.write_choice(&json!({ "role": "assistant", "content": content }));
        }
    }

    fn send(&self, data: &str) {
        // Sending fails after the client has disconnected.
        drop(self.chunks.send(format!("data: {data}\n\n").into()));
    }

    fn write_choice(&self, delta: &Value) {
        self.write_chunk(&json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]), None, None);
    }

    fn write_chunk(&self, choices: &Value, usage: Option<&Value>, extension: Option<&Value>) {
        let Envelope { id, created, model, include_usage } = &self.envelope;
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices
        });
        if *include_usage {
            chunk["usage"] = usage.cloned().unwrap_or_default();
        }
        if let Some(extension) = extension {
            chunk["threadkeep"] = extension.clone();
        }
        self.send(&chunk.to_string());
    }

    pub(super) fn write_delta(&mut self, delta: ChatDelta) {
        if let ChatDelta::Text(text) = delta {
            self.begin(true);
            self.has_text = true;
            self.write_choice(&json!({ "content": text }));
        }
    }

    pub(super) fn finish(&mut self, answer: &Answer) {
        self.finish_with(answer, None);
    }

    /// Writes the rest of the answer. The chunk with the finish reason contains `extension` as `threadkeep`.
    pub(super) fn finish_with(&mut self, answer: &Answer, extension: Option<&Value>) {
        let calls = tool_calls_json(answer);
        self.begin(calls.is_empty() || answer.parts.iter().any(|part| part.text().is_some()));
        if !self.has_text {
            for text in answer.parts.iter().filter_map(Part::text) {
                self.write_choice(&json!({ "content": text }));
            }
        }
        for (index, call) in calls.into_iter().enumerate() {
            let (id, function) = (&call["id"], &call["function"]);
            let start = json!({ "index": index, "id": id, "type": "function", "function": { "name": function["name"], "arguments": "" } });
            self.write_choice(&json!({ "tool_calls": [start] }));
            let rest = json!({ "index": index, "function": { "arguments": function["arguments"] } });
            self.write_choice(&json!({ "tool_calls": [rest] }));
        }
        let choice = json!({ "index": 0, "delta": {}, "logprobs": null, "finish_reason": answer.finish });
        self.write_chunk(&json!([choice]), None, extension);
        if self.envelope.include_usage {
            self.write_chunk(&json!([]), Some(&answer.usage), None);
        }
        self.send("[DONE]");
    }

    pub(super) fn fail(&self, error: &ApiError) {
        error.log("a completion failed");
        // Sending fails after the client has disconnected.
        drop(self.chunks.send(error_event(error).into()));
    }
}
