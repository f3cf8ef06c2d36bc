//! Anthropic's messages API.

mod request;

use serde_json::{Map, Value};
use threadkeep_core::{ChatDelta, DeltaSink, Finish};

use super::draft::{Draft, DraftCall, without_nul};
use super::failure::ProviderFailure;
use super::sse::Event;
use super::{count, parse_event};
use crate::price::Tokens;

pub(super) use request::{body, ignored};

/// The API version. This version has no temperature parameter.
pub(super) const VERSION: &str = "2026-10-21";

/// The format name of stored reasoning blocks. They are only sent back to Anthropic, unchanged.
const BLOCK: &str = "anthropic.block";

/// Assembles an answer from the pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    draft: Draft,
    /// For each call of the draft: its block index in the stream, and whether pieces of its arguments have arrived.
    calls: Vec<(u64, bool)>,
    /// The current reasoning block.
    reasoning: Option<ReasoningBlock>,
    is_over: bool,
}

/// A reasoning block with its signature.
#[derive(Debug)]
struct ReasoningBlock {
    /// The block as received when it started. All of its fields are sent back.
    block: Map<String, Value>,
    text: String,
    signature: String,
}

impl Assembly {
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(super) fn take(&mut self, event: &Event, emit: DeltaSink<'_>) -> Result<bool, ProviderFailure> {
        let data = parse_event(event)?;
        // The documentation requires clients to ignore unknown event types.
        match data.get("type").and_then(Value::as_str).unwrap_or(&event.name) {
            "message_start" => self.take_frame(data.get("message").unwrap_or(&Value::Null)),
            "content_block_start" => {
                let block = data.get("content_block").unwrap_or(&Value::Null);
                self.take_block(block, index(&data), emit)?;
            }
            "content_block_delta" => self.take_delta(&data, emit),
            "content_block_stop" => self.end_reasoning(),
            "message_delta" => {
                self.take_frame(&data);
                self.take_finish(data.get("delta").unwrap_or(&Value::Null));
            }
            "message_stop" => {
                self.is_over = true;
                return Ok(true);
            }
            "error" => return Err(ProviderFailure::in_stream(data.get("error").unwrap_or(&data))),
            _ => {}
        }
        Ok(false)
    }

    pub(super) fn take_whole(&mut self, body: &Value) -> Result<(), ProviderFailure> {
        let blocks = body.get("content").and_then(Value::as_array);
        let blocks = blocks.ok_or_else(|| ProviderFailure::Invalid("no content".to_owned()))?;
        self.take_frame(body);
        for (index, block) in (0..).zip(blocks) {
            self.take_block(block, index, &mut |_| {})?;
            self.end_reasoning();
        }
        self.take_finish(body);
        self.draft.finish.get_or_insert(Finish::Stop);
        self.is_over = true;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Draft, ProviderFailure> {
        if !self.is_over && self.draft.finish.is_none() {
            return Err(ProviderFailure::Connection("the connection closed before the answer was complete".to_owned()));
        }
        self.draft.finish.get_or_insert(Finish::Stop);
        Ok(self.draft)
    }

    /// Reads the model name and the usage so far. The first event contains the input tokens; output tokens grow later.
    fn take_frame(&mut self, frame: &Value) {
        if let Some(model) = frame.get("model").and_then(Value::as_str) {
            self.draft.model = Some(model.to_owned());
        }
        let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) else { return };
        let previous = self.draft.tokens.unwrap_or_default();
        let cached = count(usage, "cache_read_input_tokens").unwrap_or(previous.cached_input);
        let cache_write = count(usage, "cache_creation_input_tokens").unwrap_or(previous.cache_write);
        let uncached = previous.input.saturating_sub(previous.cached_input).saturating_sub(previous.cache_write);
        self.draft.tokens = Some(Tokens {
            // Anthropic excludes cached tokens from the input count; `Tokens` includes them.
            input: count(usage, "input_tokens").unwrap_or(uncached) + cached + cache_write,
            cached_input: cached,
            cache_write,
            output: count(usage, "output_tokens").unwrap_or(previous.output),
            // The API includes reasoning tokens in the output and does not report them separately.
            reasoning: 0,
        });
    }

    fn take_block(&mut self, block: &Value, index: u64, emit: DeltaSink<'_>) -> Result<(), ProviderFailure> {
        let member = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        match member("type") {
            "text" => self.push_text(member("text"), emit),
            "thinking" => {
                let (block, text) = (block.as_object().cloned().unwrap_or_default(), String::new());
                self.reasoning = Some(ReasoningBlock { block, text, signature: member("signature").to_owned() });
                self.push_reasoning(member("thinking"), emit);
            }
            "redacted_thinking" => self.draft.push_raw(BLOCK, block),
            "tool_use" => {
                let arguments = block.get("input").map(Value::to_string).unwrap_or_default();
                let call = DraftCall { id: member("id").to_owned(), name: member("name").to_owned(), arguments };
                self.draft.push_call(call).ok_or_else(|| ProviderFailure::Invalid("too many tool calls".to_owned()))?;
                self.calls.push((index, false));
            }
            _ => {}
        }
        Ok(())
    }

    fn take_delta(&mut self, data: &Value, emit: DeltaSink<'_>) {
        let delta = data.get("delta").unwrap_or(&Value::Null);
        let member = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match member("type") {
            "text_delta" => self.push_text(member("text"), emit),
            "thinking_delta" => self.push_reasoning(member("thinking"), emit),
            "signature_delta" => {
                if let Some(reasoning) = &mut self.reasoning {
                    reasoning.signature.push_str(member("signature"));
                }
            }
            "input_json_delta" => {
                let number = self.calls.iter().position(|(known, _)| *known == index(data));
                let Some((number, call)) = number.and_then(|number| Some((number, self.draft.call_mut(number)?)))
                else {
                    return;
                };
                // A block that is streamed starts with an empty object as a placeholder for its arguments.
                if !std::mem::replace(&mut self.calls[number].1, true) {
                    call.arguments.clear();
                }
                call.arguments.push_str(member("partial_json"));
            }
            _ => {}
        }
    }

    fn push_text(&mut self, text: &str, emit: DeltaSink<'_>) {
        if !text.is_empty() {
            let text = without_nul(text);
            self.draft.push_text(&text);
            emit(ChatDelta::Text(text.into_owned()));
        }
    }

    fn push_reasoning(&mut self, text: &str, emit: DeltaSink<'_>) {
        if let Some(reasoning) = self.reasoning.as_mut().filter(|_| !text.is_empty()) {
            reasoning.text.push_str(text);
            let text = without_nul(text);
            self.draft.push_reasoning(&text);
            emit(ChatDelta::Reasoning(text.into_owned()));
        }
    }

    /// Stores the signed block, because the API requires it back unchanged within the same turn.
    fn end_reasoning(&mut self) {
        let signed = self.reasoning.take().filter(|reasoning| !reasoning.signature.is_empty());
        if let Some(ReasoningBlock { mut block, text, signature }) = signed {
            block.insert("thinking".to_owned(), Value::String(text));
            block.insert("signature".to_owned(), Value::String(signature));
            self.draft.push_raw(BLOCK, &Value::Object(block));
        }
    }

    fn take_finish(&mut self, holder: &Value) {
        let reason = holder.get("stop_reason").and_then(Value::as_str);
        let finish = reason.map(|reason| match reason {
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "tool_use" => Finish::ToolCalls,
            "refusal" => Finish::Filtered,
            _ => Finish::Stop,
        });
        self.draft.finish = finish.or(self.draft.finish);
    }
}

fn index(data: &Value) -> u64 {
    data.get("index").and_then(Value::as_u64).unwrap_or(0)
}
