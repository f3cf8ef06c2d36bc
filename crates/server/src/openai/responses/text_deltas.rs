//! The deltas in which the text of a response was streamed. Only their lengths are stored. They are enough to resume an
//! interrupted stream with the same event numbers, and no copy of erased text remains.

use serde_json::Value;
use threadkeep::core::ChatDelta;

use crate::openai::items::Item;

/// The text deltas of a response that have been streamed so far.
#[derive(Debug, Default)]
pub(super) struct TextDeltas {
    deltas: Vec<String>,
    /// Whether the model restarted its answer after some deltas, which are not part of the final text.
    is_restarted: bool,
}

impl TextDeltas {
    pub(super) fn add(&mut self, delta: &ChatDelta) {
        match delta {
            ChatDelta::Text(text) => self.deltas.push(text.clone()),
            ChatDelta::Restarted => self.is_restarted |= !self.deltas.is_empty(),
            _ => {}
        }
    }

    /// Returns the lengths of the deltas in bytes; empty if the deltas together are not the text of the output.
    pub(super) fn lengths(&self, output: &[Item]) -> Vec<u32> {
        match first_text(output) {
            Some((_, text)) if !self.is_restarted && self.deltas.concat() == text => {
                self.deltas.iter().map(|delta| u32::try_from(delta.len()).unwrap_or(u32::MAX)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns as many of the first deltas as fit into `max_bytes`.
    pub(super) fn first(&self, max_bytes: usize) -> Vec<String> {
        let mut remaining = max_bytes;
        let fits = |delta: &&String| {
            let fits = delta.len() <= remaining;
            remaining = remaining.saturating_sub(delta.len());
            fits
        };
        self.deltas.iter().take_while(fits).cloned().collect()
    }
}

/// Returns the id and the text of the first message of an output.
pub(super) fn first_text(output: &[Item]) -> Option<(&str, String)> {
    output.iter().find_map(|item| {
        let json: Value = serde_json::from_str(&item.json).ok()?;
        let is_message = json["type"] == "message";
        is_message.then(|| (item.id.as_str(), json["content"][0]["text"].as_str().unwrap_or_default().to_owned()))
    })
}

/// Splits text into deltas with these lengths in bytes. Returns no deltas if the lengths do not match the text.
pub(super) fn split<'a>(text: &'a str, lengths: &[u32]) -> Vec<&'a str> {
    let mut deltas = Vec::with_capacity(lengths.len());
    let mut rest = text;
    for length in lengths {
        let Some((delta, left)) = rest.split_at_checked(*length as usize) else { return Vec::new() };
        deltas.push(delta);
        rest = left;
    }
    if rest.is_empty() { deltas } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(text: &str) -> Vec<Item> {
        let json = json!({ "id": "msg_1", "type": "message", "content": [{ "type": "output_text", "text": text }] });
        vec![Item { id: "msg_1".to_owned(), json: json.to_string() }]
    }

    fn text_deltas(deltas: &[ChatDelta]) -> TextDeltas {
        let mut text_deltas = TextDeltas::default();
        deltas.iter().for_each(|delta| text_deltas.add(delta));
        text_deltas
    }

    fn text(text: &str) -> ChatDelta {
        ChatDelta::Text(text.to_owned())
    }

    #[test]
    fn text_is_split_into_the_streamed_deltas() {
        let deltas = text_deltas(&[text("¿Dónde "), text("está"), text("?")]);
        let lengths = deltas.lengths(&output("¿Dónde está?"));
        assert_eq!(split("¿Dónde está?", &lengths), ["¿Dónde ", "está", "?"]);
        assert!(deltas.lengths(&output("something else")).is_empty());
        assert_eq!(deltas.first(14), ["¿Dónde ", "está"]);
        assert_eq!(deltas.first(13), ["¿Dónde "]);
        assert_eq!(split("shorter", &lengths), Vec::<&str>::new());
    }

    #[test]
    fn restarted_text_has_no_delta_lengths() {
        let restarted = [text("Here"), ChatDelta::Restarted, text("There.")];
        assert!(text_deltas(&restarted).lengths(&output("There.")).is_empty());
        assert_eq!(text_deltas(&[ChatDelta::Restarted, text("There.")]).lengths(&output("There.")), [6]);
    }
}
