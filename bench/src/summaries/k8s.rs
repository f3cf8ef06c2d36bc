//! `k8s`: the facts that must remain after a compaction of recorded agent conversations.
//!
//! The expected content is given as prose. Its distinctive words (names, numbers, identifiers) that occur in the conversation
//! are the facts.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Deserialize;
use threadkeep_core::{Content, JsonText, Part, Role, ToolCall, ToolResult};
use threadkeep_memory::Draft;

use super::{Args, Conversations, Tally, records};

#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    expected_output: String,
    conversation_history: Vec<MessageRecord>,
}

#[derive(Debug, Deserialize)]
struct MessageRecord {
    role: Role,
    #[serde(default)]
    content: Option<MessageContent>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// Text, or a list of its parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum MessageContent {
    Text(String),
    Parts(Vec<TextPart>),
}

#[derive(Debug, Deserialize)]
struct TextPart {
    #[serde(default)]
    text: String,
}

impl MessageRecord {
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(MessageContent::Text(text)) => text.clone(),
            Some(MessageContent::Parts(parts)) => {
                parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let conversations = Conversations::new()?;
    let mut all = Tally::default();
    for record in records::<Record>(&args.path)? {
        let transcript = transcript(&record.conversation_history);
        let facts = facts(&record.expected_output, &transcript);
        let thread = conversations.open_thread().await?;
        // The system prompt is not part of a thread's history.
        for message in record.conversation_history.into_iter().filter(|message| message.role != Role::System) {
            conversations.append(thread, Draft::new(content(message))).await?;
            conversations.model_text(thread, &args.summarising()).await?;
        }
        // Further messages move the last conclusions of the conversation out of the window.
        for _ in 0..args.window {
            conversations.append(thread, Draft::user("Thanks. Give me a moment.")).await?;
            conversations.model_text(thread, &args.summarising()).await?;
        }
        let with_summary = conversations.model_text(thread, &args.summarising()).await?;
        let without_summary = conversations.model_text(thread, &args.plain()).await?;
        let mut tally = Tally::default();
        for fact in &facts {
            for tally in [&mut tally, &mut all] {
                tally.add(with_summary.contains(fact), without_summary.contains(fact));
            }
            if args.missing && !with_summary.contains(fact) {
                eprintln!("{}: missing {fact}", record.id);
            }
        }
        println!("{}: {}", record.id, tally.json());
    }
    println!("{}", all.json());
    Ok(())
}

fn content(message: MessageRecord) -> Content {
    let text = Some(message.text()).filter(|text| !text.is_empty());
    let parts = match message.tool_call_id {
        Some(call_id) => {
            vec![Part::ToolResult(ToolResult { call_id, output: text.unwrap_or_default(), is_error: false })]
        }
        None => {
            let calls = message.tool_calls.into_iter().flatten().map(|Call { id, function }| {
                let arguments =
                    JsonText::new(&function.arguments).unwrap_or_else(|_| JsonText::from(&serde_json::json!({})));
                Part::ToolCall(ToolCall { id, name: function.name, arguments })
            });
            text.map(Part::Text).into_iter().chain(calls).collect()
        }
    };
    Content { parts, ..Content::empty(message.role) }
}

fn transcript(history: &[MessageRecord]) -> String {
    let texts = history.iter().filter(|message| message.role != Role::System).map(MessageRecord::text);
    texts.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// Returns the distinctive words of the text that occur in the transcript, in lower case.
fn facts(expected: &str, transcript: &str) -> BTreeSet<String> {
    let words = expected.split(|c: char| c.is_whitespace() || "\"'`,;()".contains(c));
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '%'));
    let distinctive = words.filter(|word| word.chars().count() > 1 && is_distinctive(word));
    distinctive.map(str::to_lowercase).filter(|word| transcript.contains(word)).collect()
}

/// Whether a word is a number, a name or an identifier: it contains a digit, an inner capital, or one of `-_./`.
fn is_distinctive(word: &str) -> bool {
    let inner = |c: char| c.is_uppercase() || "-_./".contains(c);
    word.contains(|c: char| c.is_numeric()) || word.chars().skip(1).any(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_distinctive_words_of_the_transcript() {
        let expected =
            "Pod 'payment-7d9' failed: \"Connection pool exhausted (max 10)\", 45% of CPU. Then HTTPClient, never 99.";
        let transcript = "payment-7d9 connection 10 45% httpclient cpu";
        let found: Vec<String> = facts(expected, transcript).into_iter().collect();
        assert_eq!(found, ["10", "45%", "cpu", "httpclient", "payment-7d9"]);
    }
}
