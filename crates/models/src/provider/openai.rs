//! OpenAI's chat completions, as OpenAI, Groq, Ollama, llama.cpp, vLLM and others speak them.

mod request;

use serde_json::Value;
use threadkeep_core::{ChatDelta, DeltaSink, Finish};

use super::draft::{Draft, DraftCall, without_nul};
use super::sse::Event;
use super::trouble::Trouble;
use super::{count, parse_event};
use crate::price::Tokens;

pub(super) use request::{body, is_address};

/// What ends a stream.
const DONE: &str = "[DONE]";

/// An answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    draft: Draft,
    /// The stream's number of each call of the draft.
    indices: Vec<Option<u64>>,
}

impl Assembly {
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(super) fn take(&mut self, event: &Event, show: DeltaSink<'_>) -> Result<bool, Trouble> {
        if event.data.trim() == DONE {
            return Ok(true);
        }
        if event.data.is_empty() {
            return Ok(false);
        }
        let chunk = parse_event(event)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Trouble::in_stream(error));
        }
        self.take_frame(&chunk);
        if let Some(choice) = first_choice(&chunk) {
            if let Some(delta) = choice.get("delta") {
                self.take_delta(delta, show)?;
            }
            self.take_finish(choice);
        }
        Ok(false)
    }

    pub(super) fn take_whole(&mut self, body: &Value) -> Result<(), Trouble> {
        self.take_frame(body);
        let choice = first_choice(body).ok_or_else(|| Trouble::Invalid("it has no choices".to_owned()))?;
        let message = choice.get("message").ok_or_else(|| Trouble::Invalid("it has no message".to_owned()))?;
        self.take_delta(message, &mut |_| {})?;
        self.take_finish(choice);
        self.draft.finish.get_or_insert(Finish::Stop);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Draft, Trouble> {
        // Without a reason to stop, the stream was cut off.
        if self.draft.finish.is_none() {
            return Err(Trouble::Broken("the answer was cut off".to_owned()));
        }
        Ok(self.draft)
    }

    /// What every piece may hold: the model's name and what it took.
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

    fn take_delta(&mut self, delta: &Value, show: DeltaSink<'_>) -> Result<(), Trouble> {
        let thoughts = ["reasoning_content", "reasoning"].iter().find_map(|member| delta.get(member)?.as_str());
        if let Some(thought) = thoughts.filter(|thought| !thought.is_empty()) {
            let thought = without_nul(thought);
            self.draft.push_reasoning(&thought);
            show(ChatDelta::Reasoning(thought.into_owned()));
        }
        for text in texts(delta) {
            let text = without_nul(text);
            self.draft.push_text(&text);
            show(ChatDelta::Text(text.into_owned()));
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        calls.iter().try_for_each(|call| self.take_call(call))
    }

    /// Takes a piece of a call. Some servers leave out the number, some give all calls the same one.
    fn take_call(&mut self, piece: &Value) -> Result<(), Trouble> {
        let index = piece.get("index").and_then(Value::as_u64);
        let member = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = piece.get("function").unwrap_or(piece);
        let (id, name) = (member(piece, "id"), member(function, "name"));
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(object) => object.to_string(),
        };
        let known = match index {
            Some(_) => self.indices.iter().rposition(|known| *known == index),
            None if name.is_empty() => self.indices.len().checked_sub(1),
            None => None,
        };
        let begins_another =
            |call: &DraftCall| !id.is_empty() && !name.is_empty() && call.id != id && !call.name.is_empty();
        match known.and_then(|known| self.draft.call_mut(known)).filter(|call| !begins_another(call)) {
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
                self.draft.push_call(call).ok_or_else(|| Trouble::Invalid("it has too many calls".to_owned()))?;
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

/// The words of a message: a text, or a list of parts; or why the model refuses.
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
