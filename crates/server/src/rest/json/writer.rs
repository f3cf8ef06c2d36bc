//! Writes messages as JSON. Pages and contexts consist mostly of text, and serde_json checks each byte of it separately for
//! characters to escape. Messages that consist of text only are therefore written with a vectorized escape; all others by serde.

use std::io::Write;

use serde::Serialize;
use serde_json::Result;
use threadkeep::core::ChatMessage;
use threadkeep::{Message, Part};

use super::message::{ContextMessageJson, MessageJson};

/// Writes a JSON array.
pub(crate) fn list<T>(
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

/// Writes a [`MessageJson`].
pub(crate) fn message(out: &mut Vec<u8>, message: &Message) -> Result<()> {
    let Message { seq, id, external_id: None, revision, created_at, content } = message else {
        return serde_json::to_writer(out, &MessageJson::from(message));
    };
    let Some(text) = content.only_text() else { return serde_json::to_writer(out, &MessageJson::from(message)) };
    value(out, br#"{"seq":"#, seq)?;
    // Writing to a vector cannot fail.
    drop(write!(out, r#","id":"{id}","role":"{}","text":"#, content.role));
    let start = out.len();
    json_escape_simd::escape_into(text, out);
    let escaped = start..out.len();
    out.extend_from_slice(br#","parts":[{"text":"#);
    out.extend_from_within(escaped);
    value(out, br#"}],"revision":"#, revision)?;
    value(out, br#","created_at":"#, created_at)?;
    out.push(b'}');
    Ok(())
}

/// Writes a [`ContextMessageJson`].
pub(crate) fn context_message(out: &mut Vec<u8>, message: &ChatMessage) -> Result<()> {
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
        value(out, br#","seq":"#, seq)?;
    }
    out.push(b'}');
    Ok(())
}

/// Writes the text `before`, and then a value.
pub(crate) fn value(out: &mut Vec<u8>, before: &[u8], value: &impl Serialize) -> Result<()> {
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
            let twice = vec![Part::Text((*text).to_owned()), Part::Text("more".to_owned())];
            let contents = [
                content.clone(),
                Content { author: Some((*text).to_owned()), ..content.clone() },
                Content { data, metadata, ..content.clone() },
                Content { parts: vec![Part::Reasoning((*text).to_owned())], ..content.clone() },
                Content { parts: twice, ..content.clone() },
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
    fn the_writer_writes_the_same_as_serde() {
        let (mut plain, mut all) = (0, Vec::new());
        for one in messages() {
            let mut out = Vec::new();
            message(&mut out, &one).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&MessageJson::from(&one)).unwrap());
            plain += usize::from(one.external_id.is_none() && one.content.only_text().is_some());
            let Content { role, author, parts, .. } = one.content;
            all.extend([None, Some(one.seq)].map(|seq| ChatMessage {
                role,
                author: author.clone(),
                parts: parts.clone(),
                seq,
            }));
        }
        assert_eq!(plain, TEXTS.len());
        for one in &all {
            let mut out = Vec::new();
            context_message(&mut out, one).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&ContextMessageJson::from(one)).unwrap());
        }
        let mut out = Vec::new();
        list(&mut out, &all, context_message).unwrap();
        let by_serde: Vec<_> = all.iter().map(ContextMessageJson::from).collect();
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&by_serde).unwrap());
    }
}
