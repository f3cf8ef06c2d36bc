//! `k8s`: the facts that a compaction of recorded agent conversations must keep.
//!
//! What must survive is given as prose. Its telling words (names, numbers, identifiers) that the conversation holds are
//! the facts that are looked for.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Deserialize;
use threadkeep_core::{Content, JsonText, Part, Role, ToolCall, ToolResult};
use threadkeep_memory::Draft;

use super::{Args, Talk, Tally, records};

#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    expected_output: String,
    conversation_history: Vec<Said>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: Role,
    #[serde(default)]
    content: Option<Words>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// A text, or a list of pieces of it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    Pieces(Vec<Piece>),
}

#[derive(Debug, Deserialize)]
struct Piece {
    #[serde(default)]
    text: String,
}

impl Said {
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Words::Text(text)) => text.clone(),
            Some(Words::Pieces(pieces)) => {
                pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>().join("\n")
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
    let talk = Talk::new()?;
    let mut all = Tally::default();
    for record in records::<Record>(&args.path)? {
        let whole = whole(&record.conversation_history);
        let facts = facts(&record.expected_output, &whole);
        let thread = talk.begin().await?;
        // The system prompt is given anew to every model.
        for said in record.conversation_history.into_iter().filter(|said| said.role != Role::System) {
            talk.say(thread, Draft::new(content(said))).await?;
            talk.seen(thread, &args.summarising()).await?;
        }
        // Somebody goes on after a compaction: what was concluded last falls out too.
        for _ in 0..args.window {
            talk.say(thread, Draft::user("Thanks. Give me a moment.")).await?;
            talk.seen(thread, &args.summarising()).await?;
        }
        let with = talk.seen(thread, &args.summarising()).await?;
        let without = talk.seen(thread, &args.plain()).await?;
        let mut tally = Tally::default();
        for fact in &facts {
            for tally in [&mut tally, &mut all] {
                tally.add(with.contains(fact), without.contains(fact));
            }
            if args.missing && !with.contains(fact) {
                eprintln!("{}: missing {fact}", record.id);
            }
        }
        println!("{}: {}", record.id, tally.json());
    }
    println!("{}", all.json());
    Ok(())
}

fn content(said: Said) -> Content {
    let text = Some(said.text()).filter(|text| !text.is_empty());
    let parts = match said.tool_call_id {
        Some(call_id) => {
            vec![Part::ToolResult(ToolResult { call_id, output: text.unwrap_or_default(), is_error: false })]
        }
        None => {
            let calls = said.tool_calls.into_iter().flatten().map(|Call { id, function }| {
                let arguments =
                    JsonText::new(&function.arguments).unwrap_or_else(|_| JsonText::from(&serde_json::json!({})));
                Part::ToolCall(ToolCall { id, name: function.name, arguments })
            });
            text.map(Part::Text).into_iter().chain(calls).collect()
        }
    };
    Content { parts, ..Content::empty(said.role) }
}

fn whole(history: &[Said]) -> String {
    let texts = history.iter().filter(|said| said.role != Role::System).map(Said::text);
    texts.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// The telling words of a text that a conversation holds.
fn facts(expected: &str, whole: &str) -> BTreeSet<String> {
    let words = expected.split(|c: char| c.is_whitespace() || "\"'`,;()".contains(c));
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '%'));
    let telling = words.filter(|word| word.chars().count() > 1 && is_telling(word));
    telling.map(str::to_lowercase).filter(|word| whole.contains(word)).collect()
}

/// Whether a word is a number, a name or an identifier: a digit, a capital inside, or a joint.
fn is_telling(word: &str) -> bool {
    let inner = |c: char| c.is_uppercase() || "-_./".contains(c);
    word.contains(|c: char| c.is_numeric()) || word.chars().skip(1).any(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_telling_words_that_were_said() {
        let expected =
            "Pod 'payment-7d9' failed: \"Connection pool exhausted (max 10)\", 45% of CPU. Then HTTPClient, never 99.";
        let whole = "payment-7d9 connection 10 45% httpclient cpu";
        let found: Vec<String> = facts(expected, whole).into_iter().collect();
        assert_eq!(found, ["10", "45%", "cpu", "httpclient", "payment-7d9"]);
    }
}
