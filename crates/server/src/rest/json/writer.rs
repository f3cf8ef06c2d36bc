//! Writes messages as JSON. Pages and contexts consist mostly of text, and serde_json checks each byte of text separately for
//! characters that must be escaped. So messages that contain only text are written with a vectorised escape function, and all other
//! messages by serde.

use std::io::Write;

use serde::Serialize;
use serde_json::Result;
use threadkeep::core::ChatMessage;
use threadkeep::{Message, Part};
use threadkeep_api::message::{ContextMessageJson, MessageJson};

/// Writes a JSON array.
pub(crate) fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T) -> Result<()>,
) -> Result<()> {
    out.push(b'[');
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(out, item)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes the JSON of a [`MessageJson`].
pub(crate) fn write_message(out: &mut Vec<u8>, message: &Message) -> Result<()> {
    let Message { seq, id, external_id: None, revision, created_at, content } = message else {
        return serde_json::to_writer(out, &MessageJson::from(message));
    };
    let Some(text) = content.only_text() else { return serde_json::to_writer(out, &MessageJson::from(message)) };
    write_value(out, br#"{"seq":"#, seq)?;
    // Writing to a vector cannot fail.
    drop(write!(out, r#","id":"{id}","role":"{}","text":"#, content.role));
    let start = out.len();
    json_escape_simd::escape_into(text, out);
    let escaped = start..out.len();
    out.extend_from_slice(br#","parts":[{"text":"#);
    out.extend_from_within(escaped);
    write_value(out, br#"}],"revision":"#, revision)?;
    write_value(out, br#","created_at":"#, created_at)?;
    out.push(b'}');
    Ok(())
}

/// Writes the JSON of a [`ContextMessageJson`].
pub(crate) fn write_context_message(out: &mut Vec<u8>, message: &ChatMessage) -> Result<()> {
    let ChatMessage { role, author: None, parts, seq } = message else {
        return serde_json::to_writer(out, &ContextMessageJson::from(message));
    };
    let [Part::Text(text)] = parts.as_slice() else {
        return serde_json::to_writer(out, &ContextMessageJson::from(message));
    };
    out.extend_from_slice(br#"{"role":""#);
    out.extend_from_slice(role.as_str().as_bytes());
    out.extend_from_slice(br#"","parts":[{"text":"#);
    json_escape_simd::escape_into(text, out);
    out.extend_from_slice(b"}]");
    if let Some(seq) = seq {
        write_value(out, br#","seq":"#, seq)?;
    }
    out.push(b'}');
    Ok(())
}

/// Writes the text `before`, and then a value.
pub(crate) fn write_value(out: &mut Vec<u8>, before: &[u8], value: &impl Serialize) -> Result<()> {
    out.extend_from_slice(before);
    serde_json::to_writer(out, value)
}

#[cfg(test)]
mod tests {
    use threadkeep::{Content, JsonText, Map, MessageId, Role, Timestamp};

    use super::*;

    const TEXTS: [&str; 9] = [
        "",
        "plain",
        "\"quoted\" \\ back/slash",
        "lines\nand\r\ttabs",
        "\u{0}\u{1}\u{8}\u{b}\u{c}\u{1f}\u{7f}",
        "año żółć 東京 👍",
        "\u{2028}\u{2029}\u{feff}\u{e000}",
        "a long text in which only the very last character of all has to be escaped: \"",
        "</script>\u{10ffff}",
    ];

    fn messages() -> Vec<Message> {
        let mut messages = Vec::new();
        for (number, text) in TEXTS.iter().enumerate() {
            let role = [Role::System, Role::User, Role::Assistant, Role::Tool][number % 4];
            let content = Content::text(role, *text);
            let data = Some(JsonText::new("{ \"a\": 1.50 }").unwrap());
            let metadata = Map::from_iter([("share".to_owned(), (*text).into())]);
            let two_texts = vec![Part::Text((*text).to_owned()), Part::Text("more".to_owned())];
            let contents = [
                content.clone(),
                Content { author: Some((*text).to_owned()), ..content.clone() },
                Content { data, metadata, ..content.clone() },
                Content { parts: vec![Part::Reasoning((*text).to_owned())], ..content.clone() },
                Content { parts: two_texts, ..content.clone() },
                Content { parts: Vec::new(), ..content },
            ];
            messages.extend(contents.into_iter().zip([None, Some((*text).to_owned())].into_iter().cycle()).map(
                |(content, external_id)| Message {
                    seq: u64::MAX >> number,
                    id: MessageId::v7(Timestamp::MAX, [number as u8; 10]),
                    external_id,
                    revision: number as u32,
                    created_at: Timestamp::from_micros(1_795_000_000_000_000 + number as i64 * 12_345).unwrap(),
                    content,
                },
            ));
        }
        messages
    }

    #[test]
    fn writer_output_equals_that_of_serde() {
        let (mut text_only_count, mut context_messages) = (0, Vec::new());
        for message in messages() {
            let mut out = Vec::new();
            write_message(&mut out, &message).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&MessageJson::from(&message)).unwrap());
            text_only_count += usize::from(message.external_id.is_none() && message.content.only_text().is_some());
            let Content { role, author, parts, .. } = message.content;
            context_messages.extend([None, Some(message.seq)].map(|seq| ChatMessage {
                role,
                author: author.clone(),
                parts: parts.clone(),
                seq,
            }));
        }
        assert_eq!(text_only_count, TEXTS.len());
        for message in &context_messages {
            let mut out = Vec::new();
            write_context_message(&mut out, message).unwrap();
            let by_serde = serde_json::to_string(&ContextMessageJson::from(message)).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), by_serde);
        }
        let mut out = Vec::new();
        write_list(&mut out, &context_messages, write_context_message).unwrap();
        let by_serde: Vec<_> = context_messages.iter().map(ContextMessageJson::from).collect();
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&by_serde).unwrap());
    }
}
