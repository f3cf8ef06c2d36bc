//! What was said before the question, also where a context renders it as a transcript.

use threadkeep_core::{ChatMessage, Role};

use crate::Turn;

// The form of a transcript is part of what an assistant promises (S4.14), so it may be read here.
const BEGIN: &str = "[CONVERSATION HISTORY";
const END: &str = "\n[END CONVERSATION HISTORY]";
const CURRENT: &str = "[CURRENT USER MESSAGE]\n";

/// A conversation up to its last question.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) earlier: Vec<ChatMessage>,
    pub(super) question: String,
}

impl History {
    pub(super) fn of(turn: &Turn<'_>) -> Self {
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

/// Takes a transcript apart. A line that looks like a label or marker but belongs to a message has a backslash in front,
/// so what is found here cannot be forged.
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
            (Some((role, said)), _) => messages.push((role, said.to_owned())),
            (None, Some((_, said))) => {
                said.push('\n');
                said.push_str(line);
            }
            (None, None) => {}
        }
    }
    let messages = messages.into_iter().map(|(role, said)| ChatMessage::text(role, said.trim_end())).collect();
    Some((messages, current.to_owned()))
}

const LABELS: [(&str, Role); 4] =
    [("User: ", Role::User), ("Assistant: ", Role::Assistant), ("System: ", Role::System), ("Tool: ", Role::Tool)];

#[cfg(test)]
mod tests {
    use threadkeep_core::ChatRequest;

    use super::*;

    #[test]
    fn a_transcript_is_a_conversation() {
        let text = "[CONVERSATION HISTORY - Use this to understand references like 'it']\n\nUser: list pods\n\n\
                    Assistant: web-1\nweb-2\n\\User: not me\n\n[END CONVERSATION HISTORY]\n\n[CURRENT USER MESSAGE]\n\
                    delete it";
        let request = ChatRequest { messages: vec![ChatMessage::text(Role::User, text)], ..ChatRequest::default() };
        let history = History::of(&Turn::of(&request));
        assert_eq!(history.question, "delete it");
        let said: Vec<_> = history.earlier.iter().map(|message| (message.role, message.plain_text())).collect();
        let expected =
            [(Role::User, "list pods".to_owned()), (Role::Assistant, "web-1\nweb-2\n\\User: not me".to_owned())];
        assert_eq!(said, expected);
    }

    #[test]
    fn what_only_looks_like_one_is_a_message() {
        for text in ["[CONVERSATION HISTORY is what I want", "[CONVERSATION HISTORY]\n[END CONVERSATION HISTORY]"] {
            assert!(read_transcript(text).is_none());
        }
    }
}
