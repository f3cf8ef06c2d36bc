//! Writes the events of a response in the order of OpenAI's API. The same response with the same deltas always results in the same
//! events, regardless of which server writes them.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use threadkeep::core::on_one_line;

use super::answer::FinishedResponse;
use super::body;
use crate::openai::members::{Members, json_string};

#[derive(Debug, Default)]
pub(super) struct EventWriter {
    events: Vec<Bytes>,
    /// The number of the next event.
    number: u64,
    /// The number of the last event that the client has already received; `None` if it has received none.
    after: Option<u64>,
    /// The id of the message whose text is being streamed.
    open_message: Option<String>,
}

impl EventWriter {
    /// Creates a writer that omits the events up to the number `after`.
    pub(super) fn after(after: Option<u64>) -> Self {
        Self { after, ..Self::default() }
    }

    /// Takes the events that were written since the last call.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.events)
    }

    /// Returns the number of the next event.
    pub(super) fn next_number(&self) -> u64 {
        self.number
    }

    /// Writes the first events.
    pub(super) fn write_start(&mut self, envelope: &Map<String, Value>) {
        let response = body::with_output(envelope, &[]);
        self.write("response.created", &format!("\"response\":{response}"));
        self.write("response.in_progress", &format!("\"response\":{response}"));
    }

    /// Writes a text delta of the first message.
    pub(super) fn write_delta(&mut self, text: &str, message_id: &str) {
        if self.open_message.is_none() {
            self.write_message_start(message_id, 0);
        }
        self.write_text_delta(text, 0);
    }

    /// Writes the remaining events of all items, and the final event.
    pub(super) fn write_finished(&mut self, finished: &FinishedResponse) {
        // If a text was streamed, its events precede those of all other items.
        let text = finished.output.iter().position(|item| item_type(&item.json) == "message");
        let first = text.filter(|_| self.open_message.is_some());
        let order = first.into_iter().chain((0..finished.output.len()).filter(|position| Some(*position) != first));
        for (index, position) in order.enumerate() {
            let item = &finished.output[position];
            self.write_item(&item.id, &item.json, index, Some(position) == first);
        }
        self.write_end(finished.status, &finished.response);
    }

    /// Writes the final event. The number of the event is always greater than `after`, so that every client receives the event.
    pub(super) fn write_end(&mut self, status: &str, response: &str) {
        if let Some(after) = self.after {
            self.number = self.number.max(after.saturating_add(1));
        }
        self.write(&format!("response.{status}"), &format!("\"response\":{response}"));
    }

    /// Writes an event, unless the client has already received it.
    fn write(&mut self, kind: &str, members: &str) {
        let number = self.number;
        self.number = self.number.saturating_add(1);
        if self.after.is_none_or(|after| number > after) {
            let data = on_one_line(format!("{{\"type\":\"{kind}\",\"sequence_number\":{number},{members}}}"));
            self.events.push(format!("event: {kind}\ndata: {data}\n\n").into());
        }
    }

    fn write_message_start(&mut self, id: &str, index: usize) {
        self.open_message = Some(id.to_owned());
        let item = json!({ "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] });
        self.write("response.output_item.added", &format!("\"output_index\":{index},\"item\":{item}"));
        let part = json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] });
        let location = location_fields(id, index);
        self.write("response.content_part.added", &format!("{location},\"content_index\":0,\"part\":{part}"));
    }

    fn write_text_delta(&mut self, text: &str, index: usize) {
        let Some(id) = self.open_message.clone() else { return };
        let delta = json_string(text);
        let location = location_fields(&id, index);
        self.write(
            "response.output_text.delta",
            &format!("{location},\"content_index\":0,\"delta\":{delta},\"logprobs\":[]"),
        );
    }

    fn write_item(&mut self, id: &str, json: &str, index: usize, is_open: bool) {
        match item_type(json).as_str() {
            "message" => self.write_message(id, json, index, is_open),
            "function_call" => self.write_function_call(id, json, index),
            _ => self.write("response.output_item.added", &format!("\"output_index\":{index},\"item\":{json}")),
        }
        self.write("response.output_item.done", &format!("\"output_index\":{index},\"item\":{json}"));
    }

    fn write_message(&mut self, id: &str, json: &str, index: usize, is_open: bool) {
        let item: Value = serde_json::from_str(json).unwrap_or_default();
        let part = &item["content"][0];
        let text = part["text"].as_str().unwrap_or_default();
        let id = if is_open { self.open_message.clone().unwrap_or_default() } else { id.to_owned() };
        if !is_open {
            self.write_message_start(&id, index);
            self.write_text_delta(text, index);
        }
        let (location, text) = (location_fields(&id, index), json_string(text));
        self.write(
            "response.output_text.done",
            &format!("{location},\"content_index\":0,\"text\":{text},\"logprobs\":[]"),
        );
        self.write("response.content_part.done", &format!("{location},\"content_index\":0,\"part\":{part}"));
    }

    fn write_function_call(&mut self, id: &str, json: &str, index: usize) {
        let mut members = Members::read(json).unwrap_or_default();
        let (name, arguments) =
            (members.get_string("name").unwrap_or_default(), members.get_string("arguments").unwrap_or_default());
        members.set("arguments", "\"\"");
        members.set("status", "\"in_progress\"");
        let added = members.to_json();
        self.write("response.output_item.added", &format!("\"output_index\":{index},\"item\":{added}"));
        let (location, arguments) = (location_fields(id, index), json_string(&arguments));
        self.write("response.function_call_arguments.delta", &format!("{location},\"delta\":{arguments}"));
        let name = json_string(&name);
        self.write(
            "response.function_call_arguments.done",
            &format!("{location},\"name\":{name},\"arguments\":{arguments}"),
        );
    }
}

/// Returns the fields of an event that identify an item.
fn location_fields(id: &str, index: usize) -> String {
    format!("\"item_id\":{},\"output_index\":{index}", json_string(id))
}

fn item_type(json: &str) -> String {
    Members::read(json).ok().and_then(|members| members.get_string("type")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::items::Item;

    #[test]
    fn text_after_reasoning_keeps_its_position() {
        let item = |id: &str, json: Value| Item { id: id.to_owned(), json: json.to_string() };
        let part = json!({ "type": "output_text", "text": "At nine.", "annotations": [] });
        let output = vec![
            item("rs_1", json!({ "id": "rs_1", "type": "reasoning", "summary": [] })),
            item("msg_1", json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [part] })),
        ];
        let mut writer = EventWriter::default();
        writer.write_finished(&FinishedResponse { response: "{}".to_owned(), output, status: "completed" });
        let events = writer.take().into_iter().filter_map(|event| {
            let text = String::from_utf8(event.to_vec()).ok()?;
            serde_json::from_str::<Value>(text.lines().find_map(|line| line.strip_prefix("data: "))?).ok()
        });
        let positions: Vec<_> = events.map(|event| (event["type"].clone(), event["output_index"].as_u64())).collect();
        let expected = [
            ("response.output_item.added", Some(0)),
            ("response.output_item.done", Some(0)),
            ("response.output_item.added", Some(1)),
            ("response.content_part.added", Some(1)),
            ("response.output_text.delta", Some(1)),
            ("response.output_text.done", Some(1)),
            ("response.content_part.done", Some(1)),
            ("response.output_item.done", Some(1)),
            ("response.completed", None),
        ];
        assert_eq!(positions, expected.map(|(kind, index)| (json!(kind), index)));
    }
}
