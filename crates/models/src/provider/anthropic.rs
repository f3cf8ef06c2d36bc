//! Anthropic's messages.

mod request;

use serde_json::{Map, Value};
use threadkeep_core::{ChatDelta, DeltaSink, Finish};

use super::draft::{Draft, DraftCall, without_nul};
use super::sse::Event;
use super::trouble::Trouble;
use super::{count, parse_event};
use crate::price::Tokens;

pub(super) use request::body;

/// What is spoken. This version takes no temperature.
pub(super) const VERSION: &str = "2026-10-21";

/// The format of blocks of thoughts, which go back as they came, and to nobody else.
const BLOCK: &str = "anthropic.block";

/// An answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    draft: Draft,
    /// The stream's number of each call of the draft, and whether pieces of its arguments came.
    calls: Vec<(u64, bool)>,
    /// The block of thoughts that is coming.
    thought: Option<Thought>,
    is_over: bool,
}

/// Thoughts and the provider's signature under them.
#[derive(Debug)]
struct Thought {
    /// The block as it began: what it holds beside these goes back, too.
    block: Map<String, Value>,
    text: String,
    signature: String,
}

impl Assembly {
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(super) fn take(&mut self, event: &Event, show: DeltaSink<'_>) -> Result<bool, Trouble> {
        let data = parse_event(event)?;
        // Kinds that are not known are passed over, as the documentation asks.
        match data.get("type").and_then(Value::as_str).unwrap_or(&event.name) {
            "message_start" => self.take_frame(data.get("message").unwrap_or(&Value::Null)),
            "content_block_start" => {
                let block = data.get("content_block").unwrap_or(&Value::Null);
                self.take_block(block, index(&data), show)?;
            }
            "content_block_delta" => self.take_delta(&data, show),
            "content_block_stop" => self.end_thought(),
            "message_delta" => {
                self.take_frame(&data);
                self.take_finish(data.get("delta").unwrap_or(&Value::Null));
            }
            "message_stop" => {
                self.is_over = true;
                return Ok(true);
            }
            "error" => return Err(Trouble::in_stream(data.get("error").unwrap_or(&data))),
            _ => {}
        }
        Ok(false)
    }

    pub(super) fn take_whole(&mut self, body: &Value) -> Result<(), Trouble> {
        let blocks = body.get("content").and_then(Value::as_array);
        let blocks = blocks.ok_or_else(|| Trouble::Invalid("it has no content".to_owned()))?;
        self.take_frame(body);
        for (index, block) in (0..).zip(blocks) {
            self.take_block(block, index, &mut |_| {})?;
            self.end_thought();
        }
        self.take_finish(body);
        self.draft.finish.get_or_insert(Finish::Stop);
        self.is_over = true;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Draft, Trouble> {
        if !self.is_over && self.draft.finish.is_none() {
            return Err(Trouble::Broken("the answer was cut off".to_owned()));
        }
        self.draft.finish.get_or_insert(Finish::Stop);
        Ok(self.draft)
    }

    /// The model's name, and what was taken so far: input comes with the first event, output grows.
    fn take_frame(&mut self, frame: &Value) {
        if let Some(model) = frame.get("model").and_then(Value::as_str) {
            self.draft.model = Some(model.to_owned());
        }
        let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) else { return };
        let known = self.draft.tokens.unwrap_or_default();
        let cached = count(usage, "cache_read_input_tokens").unwrap_or(known.cached_input);
        let written = count(usage, "cache_creation_input_tokens").unwrap_or(known.cache_write);
        let plain = known.input.saturating_sub(known.cached_input).saturating_sub(known.cache_write);
        self.draft.tokens = Some(Tokens {
            // Anthropic counts what the cache gave or took beside the input, not within.
            input: count(usage, "input_tokens").unwrap_or(plain) + cached + written,
            cached_input: cached,
            cache_write: written,
            output: count(usage, "output_tokens").unwrap_or(known.output),
            // Thoughts are counted among what is written, and not told apart.
            reasoning: 0,
        });
    }

    fn take_block(&mut self, block: &Value, index: u64, show: DeltaSink<'_>) -> Result<(), Trouble> {
        let member = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        match member("type") {
            "text" => self.say(member("text"), show),
            "thinking" => {
                let (block, text) = (block.as_object().cloned().unwrap_or_default(), String::new());
                self.thought = Some(Thought { block, text, signature: member("signature").to_owned() });
                self.think(member("thinking"), show);
            }
            "redacted_thinking" => self.draft.push_raw(BLOCK, block),
            "tool_use" => {
                let arguments = block.get("input").map(Value::to_string).unwrap_or_default();
                let call = DraftCall { id: member("id").to_owned(), name: member("name").to_owned(), arguments };
                self.draft.push_call(call).ok_or_else(|| Trouble::Invalid("it has too many calls".to_owned()))?;
                self.calls.push((index, false));
            }
            _ => {}
        }
        Ok(())
    }

    fn take_delta(&mut self, data: &Value, show: DeltaSink<'_>) {
        let delta = data.get("delta").unwrap_or(&Value::Null);
        let member = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match member("type") {
            "text_delta" => self.say(member("text"), show),
            "thinking_delta" => self.think(member("thinking"), show),
            "signature_delta" => {
                if let Some(thought) = &mut self.thought {
                    thought.signature.push_str(member("signature"));
                }
            }
            "input_json_delta" => {
                let number = self.calls.iter().position(|(known, _)| *known == index(data));
                let Some((number, call)) = number.and_then(|number| Some((number, self.draft.call_mut(number)?)))
                else {
                    return;
                };
                // What the block began with is an empty object in the place of the pieces.
                if !std::mem::replace(&mut self.calls[number].1, true) {
                    call.arguments.clear();
                }
                call.arguments.push_str(member("partial_json"));
            }
            _ => {}
        }
    }

    fn say(&mut self, text: &str, show: DeltaSink<'_>) {
        if !text.is_empty() {
            let text = without_nul(text);
            self.draft.push_text(&text);
            show(ChatDelta::Text(text.into_owned()));
        }
    }

    fn think(&mut self, text: &str, show: DeltaSink<'_>) {
        if let Some(thought) = self.thought.as_mut().filter(|_| !text.is_empty()) {
            thought.text.push_str(text);
            let text = without_nul(text);
            self.draft.push_reasoning(&text);
            show(ChatDelta::Reasoning(text.into_owned()));
        }
    }

    /// Keeps the block for the way back: within a turn the wire wants it as it came.
    fn end_thought(&mut self) {
        let signed = self.thought.take().filter(|thought| !thought.signature.is_empty());
        if let Some(Thought { mut block, text, signature }) = signed {
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
