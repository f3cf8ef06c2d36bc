//! The events of a response, in the order that the API gives them. The same response told in the same pieces gives the same
//! events, whoever tells it.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use threadkeep::core::on_one_line;

use super::answer::Answered;
use super::body;
use crate::openai::members::{Members, quoted};

#[derive(Debug, Default)]
pub(super) struct Teller {
    /// What is to be sent.
    told: Vec<Bytes>,
    number: u64,
    /// Whoever listens has the events up to this one.
    after: Option<u64>,
    /// The message that is being told, by its name.
    open: Option<String>,
}

impl Teller {
    pub(super) fn after(after: Option<u64>) -> Self {
        Self { after, ..Self::default() }
    }

    /// What was told since the last time.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.told)
    }

    /// The number of the next event.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn begin(&mut self, shell: &Map<String, Value>) {
        let begun = body::with_output(shell, &[]);
        self.tell("response.created", &format!("\"response\":{begun}"));
        self.tell("response.in_progress", &format!("\"response\":{begun}"));
    }

    /// Tells words as they come.
    pub(super) fn hear(&mut self, text: &str, message_id: &str) {
        if self.open.is_none() {
            self.open_message(message_id, 0);
        }
        self.tell_words(text, 0);
    }

    pub(super) fn finish(&mut self, answered: &Answered) {
        // Where words were told as they came, they are the first item.
        let words = answered.output.iter().position(|item| kind(&item.json) == "message");
        let first = words.filter(|_| self.open.is_some());
        let order = first.into_iter().chain((0..answered.output.len()).filter(|place| Some(*place) != first));
        for (index, place) in order.enumerate() {
            let item = &answered.output[place];
            self.item(&item.id, &item.json, index, Some(place) == first);
        }
        self.end(answered.status, &answered.response);
    }

    /// Tells how it ended. Whoever listens is told so in any case.
    pub(super) fn end(&mut self, status: &str, response: &str) {
        if let Some(after) = self.after {
            self.number = self.number.max(after.saturating_add(1));
        }
        self.tell(&format!("response.{status}"), &format!("\"response\":{response}"));
    }

    fn tell(&mut self, kind: &str, members: &str) {
        let number = self.number;
        self.number = self.number.saturating_add(1);
        if self.after.is_none_or(|after| number > after) {
            let data = on_one_line(format!("{{\"type\":\"{kind}\",\"sequence_number\":{number},{members}}}"));
            self.told.push(format!("event: {kind}\ndata: {data}\n\n").into());
        }
    }

    fn open_message(&mut self, id: &str, index: usize) {
        self.open = Some(id.to_owned());
        let item = json!({ "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] });
        self.tell("response.output_item.added", &format!("\"output_index\":{index},\"item\":{item}"));
        let part = json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] });
        let place = place(id, index);
        self.tell("response.content_part.added", &format!("{place},\"content_index\":0,\"part\":{part}"));
    }

    fn tell_words(&mut self, text: &str, index: usize) {
        let Some(id) = self.open.clone() else { return };
        let words = quoted(text);
        let place = place(&id, index);
        self.tell(
            "response.output_text.delta",
            &format!("{place},\"content_index\":0,\"delta\":{words},\"logprobs\":[]"),
        );
    }

    fn item(&mut self, id: &str, json: &str, index: usize, is_open: bool) {
        match kind(json).as_str() {
            "message" => self.message(id, json, index, is_open),
            "function_call" => self.function_call(id, json, index),
            _ => self.tell("response.output_item.added", &format!("\"output_index\":{index},\"item\":{json}")),
        }
        self.tell("response.output_item.done", &format!("\"output_index\":{index},\"item\":{json}"));
    }

    fn message(&mut self, id: &str, json: &str, index: usize, is_open: bool) {
        let item: Value = serde_json::from_str(json).unwrap_or_default();
        let part = &item["content"][0];
        let text = part["text"].as_str().unwrap_or_default();
        let id = if is_open { self.open.clone().unwrap_or_default() } else { id.to_owned() };
        if !is_open {
            self.open_message(&id, index);
            self.tell_words(text, index);
        }
        let (place, words) = (place(&id, index), quoted(text));
        self.tell(
            "response.output_text.done",
            &format!("{place},\"content_index\":0,\"text\":{words},\"logprobs\":[]"),
        );
        self.tell("response.content_part.done", &format!("{place},\"content_index\":0,\"part\":{part}"));
    }

    fn function_call(&mut self, id: &str, json: &str, index: usize) {
        let mut members = Members::read(json).unwrap_or_default();
        let (name, arguments) =
            (members.text("name").unwrap_or_default(), members.text("arguments").unwrap_or_default());
        members.set("arguments", "\"\"");
        members.set("status", "\"in_progress\"");
        let begun = members.to_json();
        self.tell("response.output_item.added", &format!("\"output_index\":{index},\"item\":{begun}"));
        let (place, arguments) = (place(id, index), quoted(&arguments));
        self.tell("response.function_call_arguments.delta", &format!("{place},\"delta\":{arguments}"));
        let name = quoted(&name);
        self.tell(
            "response.function_call_arguments.done",
            &format!("{place},\"name\":{name},\"arguments\":{arguments}"),
        );
    }
}

fn place(id: &str, index: usize) -> String {
    format!("\"item_id\":{},\"output_index\":{index}", quoted(id))
}

fn kind(json: &str) -> String {
    Members::read(json).ok().and_then(|members| members.text("type")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::items::Item;

    #[test]
    fn words_that_come_after_thoughts_stand_behind_them() {
        let item = |id: &str, json: Value| Item { id: id.to_owned(), json: json.to_string() };
        let part = json!({ "type": "output_text", "text": "At nine.", "annotations": [] });
        let output = vec![
            item("rs_1", json!({ "id": "rs_1", "type": "reasoning", "summary": [] })),
            item("msg_1", json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [part] })),
        ];
        let mut teller = Teller::default();
        teller.finish(&Answered { response: "{}".to_owned(), output, status: "completed" });
        let told = teller.take().into_iter().filter_map(|event| {
            let text = String::from_utf8(event.to_vec()).ok()?;
            serde_json::from_str::<Value>(text.lines().find_map(|line| line.strip_prefix("data: "))?).ok()
        });
        let places: Vec<_> = told.map(|event| (event["type"].clone(), event["output_index"].as_u64())).collect();
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
        assert_eq!(places, expected.map(|(kind, place)| (json!(kind), place)));
    }
}
