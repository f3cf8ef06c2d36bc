//! OpenAI's chat completions API, as implemented by OpenAI, Groq, Ollama, llama.cpp, vLLM and others.

mod request;

use serde_json::Value;
use threadkeep_core::{ChatDelta, DeltaSink, Finish};

use super::draft::{Draft, DraftCall, without_nul};
use super::failure::ProviderFailure;
use super::sse::Event;
use super::{count, parse_event};
use crate::price::Tokens;

pub(super) use request::{body, ignored, is_address, is_attachment};

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// Assembles an answer from the pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    draft: Draft,
    /// For each call of the draft, its index in the stream.
    indices: Vec<Option<u64>>,
}

impl Assembly {
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(super) fn take(&mut self, event: &Event, emit: DeltaSink<'_>) -> Result<bool, ProviderFailure> {
        if event.data.trim() == DONE {
            return Ok(true);
        }
        if event.data.is_empty() {
            return Ok(false);
        }
        let chunk = parse_event(event)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(ProviderFailure::in_stream(error));
        }
        self.take_frame(&chunk);
        if let Some(choice) = first_choice(&chunk) {
            if let Some(delta) = choice.get("delta") {
                self.take_delta(delta, emit)?;
            }
            self.take_finish(choice);
        }
        Ok(false)
    }

    pub(super) fn take_whole(&mut self, body: &Value) -> Result<(), ProviderFailure> {
        self.take_frame(body);
        let choice = first_choice(body).ok_or_else(|| ProviderFailure::Invalid("no choices".to_owned()))?;
        let message = choice
            .get("message")
            .ok_or_else(|| ProviderFailure::Invalid("no message in the first choice".to_owned()))?;
        self.take_delta(message, &mut |_| {})?;
        self.take_finish(choice);
        self.draft.finish.get_or_insert(Finish::Stop);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Draft, ProviderFailure> {
        // Only a stream with a finish reason is complete.
        if self.draft.finish.is_none() {
            return Err(ProviderFailure::Connection("the connection closed before the answer was complete".to_owned()));
        }
        Ok(self.draft)
    }

    /// Reads the model name and the usage, which may be in any piece.
    fn take_frame(&mut self, frame: &Value) {
        if let Some(model) = frame.get("model").and_then(Value::as_str) {
            self.draft.model.get_or_insert_with(|| model.to_owned());
        }
        let groq = frame.get("x_groq").and_then(|groq| groq.get("usage"));
        if let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()).or(groq) {
            let detail = |of: &str, name: &str| usage.get(of).and_then(|details| count(details, name)).unwrap_or(0);
            self.draft.tokens = Some(Tokens {
                input: count(usage, "prompt_tokens").unwrap_or(0),
                cached_input: detail("prompt_tokens_details", "cached_tokens"),
                cache_write: 0,
                output: count(usage, "completion_tokens").unwrap_or(0),
                reasoning: detail("completion_tokens_details", "reasoning_tokens"),
            });
        }
    }

    fn take_delta(&mut self, delta: &Value, emit: DeltaSink<'_>) -> Result<(), ProviderFailure> {
        let reasoning = ["reasoning_content", "reasoning"].iter().find_map(|member| delta.get(member)?.as_str());
        if let Some(reasoning) = reasoning.filter(|reasoning| !reasoning.is_empty()) {
            let reasoning = without_nul(reasoning);
            self.draft.push_reasoning(&reasoning);
            emit(ChatDelta::Reasoning(reasoning.into_owned()));
        }
        for text in texts(delta) {
            let text = without_nul(text);
            self.draft.push_text(&text);
            emit(ChatDelta::Text(text.into_owned()));
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        calls.iter().try_for_each(|call| self.take_call(call))
    }

    /// Processes a piece of a call. Some servers omit the index, and some send the same index for all calls.
    fn take_call(&mut self, piece: &Value) -> Result<(), ProviderFailure> {
        let index = piece.get("index").and_then(Value::as_u64);
        let member = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = piece.get("function").unwrap_or(piece);
        let (id, name) = (member(piece, "id"), member(function, "name"));
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(object) => object.to_string(),
        };
        let position = match index {
            Some(_) => self.indices.iter().rposition(|known| *known == index),
            None if name.is_empty() => self.indices.len().checked_sub(1),
            None => None,
        };
        let starts_another_call =
            |call: &DraftCall| !id.is_empty() && !name.is_empty() && call.id != id && !call.name.is_empty();
        match position.and_then(|position| self.draft.call_mut(position)).filter(|call| !starts_another_call(call)) {
            Some(call) => {
                if call.id.is_empty() {
                    call.id = id;
                }
                if call.name != name {
                    call.name.push_str(&name);
                }
                call.arguments.push_str(&arguments);
            }
            None => {
                let call = DraftCall { id, name, arguments };
                self.draft.push_call(call).ok_or_else(|| ProviderFailure::Invalid("too many tool calls".to_owned()))?;
                self.indices.push(index);
            }
        }
        Ok(())
    }

    fn take_finish(&mut self, choice: &Value) {
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        let finish = reason.map(|reason| match reason {
            "length" => Finish::Length,
            "tool_calls" | "function_call" => Finish::ToolCalls,
            "content_filter" => Finish::Filtered,
            _ => Finish::Stop,
        });
        self.draft.finish = finish.or(self.draft.finish);
    }
}

fn first_choice(body: &Value) -> Option<&Value> {
    body.get("choices")?.get(0)
}

/// Returns the texts of a message: its content, which is a string or a list of parts, and its refusal.
fn texts(message: &Value) -> Vec<&str> {
    let mut texts: Vec<&str> = match message.get("content") {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => Vec::new(),
    };
    texts.extend(message.get("refusal").and_then(Value::as_str));
    texts.retain(|text| !text.is_empty());
    texts
}
