//! The pieces in which words were told while they were made: kept as lengths only, so that a stream that was cut can be taken
//! up later with the same numbers, and what is erased is gone from here too.

use serde_json::Value;
use threadkeep::core::ChatDelta;

use crate::openai::items::Item;

/// What was told of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pieces: Vec<String>,
    /// Whether some of it is void, as the model began anew.
    is_void: bool,
}

impl Heard {
    pub(super) fn note(&mut self, delta: &ChatDelta) {
        match delta {
            ChatDelta::Text(text) => self.pieces.push(text.clone()),
            ChatDelta::Restarted => self.is_void |= !self.pieces.is_empty(),
            _ => {}
        }
    }

    /// The lengths in which an output's words were told; none where they were told otherwise.
    pub(super) fn cuts(&self, output: &[Item]) -> Vec<u32> {
        match words_of(output) {
            Some((_, text)) if !self.is_void && self.pieces.concat() == text => {
                self.pieces.iter().map(|piece| u32::try_from(piece.len()).unwrap_or(u32::MAX)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The first pieces, as far as they have so many bytes.
    pub(super) fn first(&self, bytes: usize) -> Vec<String> {
        let mut left = bytes;
        let fits = |piece: &&String| {
            let is_within = piece.len() <= left;
            left = left.saturating_sub(piece.len());
            is_within
        };
        self.pieces.iter().take_while(fits).cloned().collect()
    }
}

/// The first message of an output: its id and its text.
pub(super) fn words_of(output: &[Item]) -> Option<(&str, String)> {
    output.iter().find_map(|item| {
        let json: Value = serde_json::from_str(&item.json).ok()?;
        let is_message = json["type"] == "message";
        is_message.then(|| (item.id.as_str(), json["content"][0]["text"].as_str().unwrap_or_default().to_owned()))
    })
}

/// A text in the pieces in which it was told; none where the cuts are not this text's.
pub(super) fn pieces<'a>(text: &'a str, cuts: &[u32]) -> Vec<&'a str> {
    let mut pieces = Vec::with_capacity(cuts.len());
    let mut rest = text;
    for cut in cuts {
        let Some((piece, left)) = rest.split_at_checked(*cut as usize) else { return Vec::new() };
        pieces.push(piece);
        rest = left;
    }
    if rest.is_empty() { pieces } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(text: &str) -> Vec<Item> {
        let json = json!({ "id": "msg_1", "type": "message", "content": [{ "type": "output_text", "text": text }] });
        vec![Item { id: "msg_1".to_owned(), json: json.to_string() }]
    }

    fn heard(deltas: &[ChatDelta]) -> Heard {
        let mut heard = Heard::default();
        deltas.iter().for_each(|delta| heard.note(delta));
        heard
    }

    fn text(text: &str) -> ChatDelta {
        ChatDelta::Text(text.to_owned())
    }

    #[test]
    fn a_text_comes_in_the_pieces_in_which_it_was_told() {
        let heard = heard(&[text("¿Dónde "), text("está"), text("?")]);
        let cuts = heard.cuts(&message("¿Dónde está?"));
        assert_eq!(pieces("¿Dónde está?", &cuts), ["¿Dónde ", "está", "?"]);
        assert!(heard.cuts(&message("something else")).is_empty());
        assert_eq!(heard.first(14), ["¿Dónde ", "está"]);
        assert_eq!(heard.first(13), ["¿Dónde "]);
        assert_eq!(pieces("shorter", &cuts), Vec::<&str>::new());
    }

    #[test]
    fn what_was_begun_anew_has_no_pieces() {
        let anew = [text("Here"), ChatDelta::Restarted, text("There.")];
        assert!(heard(&anew).cuts(&message("There.")).is_empty());
        assert_eq!(heard(&[ChatDelta::Restarted, text("There.")]).cuts(&message("There.")), [6]);
    }
}
