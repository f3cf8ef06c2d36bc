use async_trait::async_trait;
use threadkeep_core::{Role, Source, Value};
use threadkeep_graph::Failure;
use threadkeep_memory::{RecallOptions, Recalled, ThreadTail};

use super::{ContextSource, Excerpt, SourceQuery};

/// Maximum number of characters of an excerpt.
const CHARACTERS: usize = 1_000;

/// Messages of earlier conversations: all conversations that the scope can read in full.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConversationSource;

#[async_trait]
impl ContextSource for ConversationSource {
    fn name(&self) -> &str {
        "conversations"
    }

    async fn find(&self, inquiry: &SourceQuery<'_>) -> Result<Vec<Excerpt>, Failure> {
        let tail = inquiry.before_seq.map(|from_seq| ThreadTail { thread: inquiry.thread, from_seq });
        // More than the limit are requested, since tool messages and empty ones are left out.
        let options = RecallOptions { except: tail, limit: inquiry.limit * 4, ..RecallOptions::default() };
        let found = inquiry.memory.recall(inquiry.scope, inquiry.query, &options).await;
        let found = found.map_err(|error| Failure::new("recall_failed", error.to_string()))?;
        Ok(found.turns.iter().filter_map(excerpt).take(inquiry.limit).collect())
    }
}

fn excerpt(recalled: &Recalled) -> Option<Excerpt> {
    let message = &recalled.message;
    let speaker = match message.content.role {
        Role::User => "the user",
        Role::Assistant => "the assistant",
        Role::System | Role::Tool => return None,
    };
    let text = message.plain_text();
    if text.trim().is_empty() {
        return None;
    }
    let day = message.created_at.to_string().chars().take(10).collect::<String>();
    let heading = match &message.content.author {
        Some(author) => format!("said by {} on {day}", author.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => format!("said by {speaker} on {day}"),
    };
    let text = text.chars().take(CHARACTERS).collect();
    let fields = [
        ("thread", Value::from(recalled.thread.to_string())),
        ("seq", Value::from(message.seq)),
        ("role", Value::from(message.content.role.as_str())),
        ("said_at", Value::from(message.created_at.to_string())),
    ];
    let source = Source {
        kind: "message".to_owned(),
        id: message.id.to_string(),
        title: Some(heading.clone()),
        score: Some(recalled.score),
        distance: None,
        fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    };
    Some(Excerpt { heading, text, source })
}
