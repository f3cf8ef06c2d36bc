use async_trait::async_trait;
use threadkeep_core::{Role, Source};
use threadkeep_graph::Failure;
use threadkeep_memory::{RecallOptions, Recalled, ThreadTail};

use super::{ContextSource, Excerpt, SourceQuery};

/// Maximum number of characters of an excerpt.
const MAX_CHARACTERS: usize = 1_000;

/// A source that finds messages of earlier conversations: of all conversations to which the scope has full access.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConversationSource;

#[async_trait]
impl ContextSource for ConversationSource {
    fn name(&self) -> &str {
        "conversations"
    }

    async fn find(&self, source_query: &SourceQuery<'_>) -> Result<Vec<Excerpt>, Failure> {
        let tail = source_query.before_seq.map(|from_seq| ThreadTail { thread: source_query.thread, from_seq });
        // More messages than the limit are requested, because tool messages and empty messages are omitted.
        let options = RecallOptions { except: tail, limit: source_query.limit * 4, ..RecallOptions::default() };
        let found = source_query.memory.recall(source_query.scope, source_query.query, &options).await;
        let found = found.map_err(|error| Failure::new("recall_failed", error.to_string()))?;
        Ok(found.messages.iter().filter_map(excerpt).take(source_query.limit).collect())
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
    let text = text.chars().take(MAX_CHARACTERS).collect();
    let source = Source {
        title: Some(heading.clone()),
        score: Some(recalled.score),
        ..Source::of_message(recalled.thread, message)
    };
    Some(Excerpt { heading, text, source })
}
