//! A response as a stream of events, in the order that the API gives them.

use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use threadkeep::core::ChatDelta;
use tokio::sync::mpsc;

use super::answer::{Answered, Answering};
use super::body;
use crate::error::ApiError;
use crate::limits;
use crate::openai::members::{Members, quoted};
use crate::openai::streamed::streamed;

/// Answers while the model speaks.
pub(super) fn respond(answering: Answering) -> Response {
    let (events, told) = mpsc::unbounded_channel::<Bytes>();
    let app = answering.app.clone();
    // A client that goes away does not undo what it asked for.
    tokio::spawn(crate::telemetry::carried(async move {
        let mut teller = Teller { events, number: 0, open: None, said: String::new() };
        let begun = body::with_output(&answering.shell, &[]);
        teller.tell("response.created", &format!("\"response\":{begun}"));
        teller.tell("response.in_progress", &format!("\"response\":{begun}"));
        let message_id = format!("msg_{}", answering.words.0.simple());
        let answered = answering.answer(&mut |delta| teller.hear(delta, &message_id)).await;
        match answered {
            Ok(answered) => teller.finish(&answered),
            Err((error, response)) => teller.fail(&error, &response),
        }
    }));
    streamed(app, told, stopped)
}

/// What is told last where there is no time left for the answer, as so many events were told before.
fn stopped(number: u64) -> String {
    let error = limits::stopping();
    let event = json!({
        "type": "error", "code": error.code, "message": error.message, "param": null, "sequence_number": number
    });
    format!("event: error\ndata: {event}\n\n")
}

struct Teller {
    events: mpsc::UnboundedSender<Bytes>,
    number: u64,
    /// The message that is being told, by its name.
    open: Option<String>,
    said: String,
}

impl Teller {
    fn tell(&mut self, kind: &str, members: &str) {
        let data = format!("{{\"type\":\"{kind}\",\"sequence_number\":{},{members}}}", self.number);
        self.number += 1;
        // A client that is gone hears nothing.
        drop(self.events.send(format!("event: {kind}\ndata: {data}\n\n").into()));
    }

    /// Tells words as they come.
    fn hear(&mut self, delta: ChatDelta, message_id: &str) {
        match delta {
            ChatDelta::Text(text) => {
                if self.open.is_none() {
                    self.open_message(message_id);
                }
                self.tell_words(&text);
            }
            // Told words cannot be taken back: the finished item says what holds.
            ChatDelta::Restarted => self.said.clear(),
            _ => {}
        }
    }

    fn open_message(&mut self, id: &str) {
        self.open = Some(id.to_owned());
        let item = json!({ "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] });
        self.tell("response.output_item.added", &format!("\"output_index\":0,\"item\":{item}"));
        let part = json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] });
        let place = place(id, 0);
        self.tell("response.content_part.added", &format!("{place},\"content_index\":0,\"part\":{part}"));
    }

    fn tell_words(&mut self, text: &str) {
        let Some(id) = self.open.clone() else { return };
        self.said.push_str(text);
        let words = quoted(text);
        let place = place(&id, 0);
        self.tell(
            "response.output_text.delta",
            &format!("{place},\"content_index\":0,\"delta\":{words},\"logprobs\":[]"),
        );
    }

    fn finish(&mut self, answered: &Answered) {
        // Where words were told as they came, they are the first item.
        let words = answered.output.iter().position(|item| kind(&item.json) == "message");
        let first = words.filter(|_| self.open.is_some());
        let order = first.into_iter().chain((0..answered.output.len()).filter(|place| Some(*place) != first));
        for (index, place) in order.enumerate() {
            let item = &answered.output[place];
            self.item(&item.id, &item.json, index, Some(place) == first);
        }
        let kind = format!("response.{}", answered.status);
        self.tell(&kind, &format!("\"response\":{}", answered.response));
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
            self.open_message(&id);
            self.tell_words(text);
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

    fn fail(&mut self, error: &ApiError, response: &str) {
        tracing::error!(code = error.code, internal = error.internal, "a response failed");
        self.tell("response.failed", &format!("\"response\":{response}"));
    }
}

fn place(id: &str, index: usize) -> String {
    format!("\"item_id\":{},\"output_index\":{index}", quoted(id))
}

fn kind(json: &str) -> String {
    Members::read(json).ok().and_then(|members| members.text("type")).unwrap_or_default()
}
