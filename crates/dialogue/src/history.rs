//! The conversation before the question, from messages or from a transcript.

use threadkeep_core::{ChatMessage, Role};

use crate::Turn;

// The format of a transcript is specified (S4.14), so it can be parsed.
const BEGIN: &str = "[CONVERSATION HISTORY";
const END: &str = "\n[END CONVERSATION HISTORY]";
const CURRENT: &str = "[CURRENT USER MESSAGE]\n";

/// A conversation, split into its last question and the messages before it.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) earlier: Vec<ChatMessage>,
    pub(crate) question: String,
}

impl History {
    pub(crate) fn of(turn: &Turn<'_>) -> Self {
        let mut earlier = turn.earlier().to_vec();
        let question = turn.question();
        match read_transcript(&question) {
            Some((blocks, current)) => {
                earlier.extend(blocks);
                Self { earlier, question: current }
            }
            None => Self { earlier, question },
        }
    }
}

/// Parses a transcript. Lines of message text that look like labels or markers are escaped with a backslash, so labels
/// cannot be forged.
fn read_transcript(text: &str) -> Option<(Vec<ChatMessage>, String)> {
    if !text.starts_with(BEGIN) {
        return None;
    }
    let (history, rest) = text.split_once(END)?;
    let current = rest.trim_start().strip_prefix(CURRENT)?;
    let (_heading, history) = history.split_once('\n')?;
    let mut messages: Vec<(Role, String)> = Vec::new();
    for line in history.lines() {
        let labelled = LABELS.iter().find_map(|(label, role)| Some((*role, line.strip_prefix(label)?)));
        match (labelled, messages.last_mut()) {
            (Some((role, text)), _) => messages.push((role, text.to_owned())),
            (None, Some((_, text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (None, None) => {}
        }
    }
    let messages = messages.into_iter().map(|(role, text)| ChatMessage::text(role, text.trim_end())).collect();
    Some((messages, current.to_owned()))
}

const LABELS: [(&str, Role); 4] =
    [("User: ", Role::User), ("Assistant: ", Role::Assistant), ("System: ", Role::System), ("Tool: ", Role::Tool)];

#[cfg(test)]
mod tests {
    use threadkeep_core::ChatRequest;

    use super::*;

    #[test]
    fn a_transcript_is_parsed() {
        let text = "[CONVERSATION HISTORY - Use this to understand references like 'it']\n\nUser: list pods\n\n\
                    Assistant: web-1\nweb-2\n\\User: not me\n\n[END CONVERSATION HISTORY]\n\n[CURRENT USER MESSAGE]\n\
                    delete it";
        let request = ChatRequest { messages: vec![ChatMessage::text(Role::User, text)], ..ChatRequest::default() };
        let history = History::of(&Turn::of(&request));
        assert_eq!(history.question, "delete it");
        let text: Vec<_> = history.earlier.iter().map(|message| (message.role, message.plain_text())).collect();
        let expected =
            [(Role::User, "list pods".to_owned()), (Role::Assistant, "web-1\nweb-2\n\\User: not me".to_owned())];
        assert_eq!(text, expected);
    }

    #[test]
    fn malformed_transcripts_are_messages() {
        for text in ["[CONVERSATION HISTORY is what I want", "[CONVERSATION HISTORY]\n[END CONVERSATION HISTORY]"] {
            assert!(read_transcript(text).is_none());
        }
    }
}
