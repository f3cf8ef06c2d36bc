//! Fixtures: histories and token counters.

use threadkeep_context::{ChatMessage, Context, ContextInput, ContextPolicy, ThreadRange, assemble};
use threadkeep_core::{
    ApproximateCounter, Content, JsonText, Message, MessageId, Part, Role, Timestamp, TokenCount, TokenCounter,
    ToolCall, ToolResult,
};

pub(crate) fn message(seq: u64, content: Content) -> Message {
    Message {
        seq,
        id: MessageId::from_name(&seq.to_be_bytes()),
        external_id: None,
        revision: 0,
        created_at: Timestamp::from_millis(1_767_225_600_000 + i64::try_from(seq).unwrap() * 60_000).unwrap(),
        content,
    }
}

pub(crate) fn user(text: &str) -> Content {
    Content::text(Role::User, text)
}

pub(crate) fn assistant(text: &str) -> Content {
    Content::text(Role::Assistant, text)
}

pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Content {
    let call = |&(id, name, arguments): &(&str, &str, &str)| {
        let arguments = JsonText::new(arguments).unwrap();
        Part::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
    };
    Content { parts: calls.iter().map(call).collect(), ..Content::empty(Role::Assistant) }
}

pub(crate) fn result(call_id: &str, output: &str) -> Content {
    let result = ToolResult { call_id: call_id.into(), output: output.into(), is_error: false };
    Content { parts: vec![Part::ToolResult(result)], ..Content::empty(Role::Tool) }
}

/// Creates messages at positions 1, 2, ….
pub(crate) fn history(contents: impl IntoIterator<Item = Content>) -> Vec<Message> {
    (1..).zip(contents).map(|(seq, content)| message(seq, content)).collect()
}

/// Creates a conversation of `count` messages that alternates between user and assistant.
pub(crate) fn chat(count: u64) -> Vec<Message> {
    let content = |number: u64| match number % 2 {
        1 => user(&format!("question {number}")),
        _ => assistant(&format!("answer {number}")),
    };
    history((1..=count).map(content))
}

pub(crate) fn whole(history: &[Message]) -> ContextInput<'_> {
    let last_seq = history.last().map_or(0, |message| message.seq);
    ContextInput { history, thread: ThreadRange { first_seq: 1, last_seq }, ..ContextInput::default() }
}

pub(crate) fn assembled(input: &ContextInput<'_>, policy: &ContextPolicy) -> Context {
    assemble(input, policy, &ApproximateCounter).unwrap()
}

pub(crate) fn seqs(context: &Context) -> Vec<u64> {
    context.messages.iter().filter_map(|message| message.seq).collect()
}

/// Renders role and text of each message, one per line.
pub(crate) fn written(messages: &[ChatMessage]) -> String {
    let lines = messages.iter().map(|message| {
        let parts: Vec<String> = message.parts.iter().map(part).collect();
        format!("<{}> {}", message.role, parts.join(" | "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
        Part::ToolResult(result) => format!("result {} {}", result.call_id, result.output),
        other => format!("{other:?}"),
    }
}

/// Token counters with unusual properties, which the assembly must also handle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OddCounter {
    Bytes,
    Words,
    Zero,
    /// Derives the count from a hash of the text, so that a shorter text may have a larger count.
    Hash,
}

impl OddCounter {
    pub(crate) const ALL: [Self; 4] = [Self::Bytes, Self::Words, Self::Zero, Self::Hash];
}

impl TokenCounter for OddCounter {
    fn name(&self) -> &'static str {
        "odd"
    }

    fn count(&self, text: &str) -> TokenCount {
        TokenCount(match self {
            Self::Bytes => text.len() as u64,
            Self::Words => text.split_whitespace().count() as u64,
            Self::Zero => 0,
            Self::Hash => text.bytes().fold(7, |hash: u64, byte| (hash * 31 + u64::from(byte)) % 97),
        })
    }
}
