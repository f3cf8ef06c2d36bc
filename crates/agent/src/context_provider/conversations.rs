use std::collections::HashSet;

use async_trait::async_trait;
use threadkeep_core::{Message, Role, Source, ThreadId};
use threadkeep_graph::Failure;
use threadkeep_memory::{RecallOptions, ThreadTail};

use super::{ContextSource, Excerpt, SourceQuery};

/// Maximum number of characters of an excerpt.
const MAX_CHARACTERS: usize = 1_000;

/// A source that finds messages in all conversations to which the scope has full access.
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
        let (mut excerpts, mut seen) = (Vec::new(), HashSet::new());
        for recalled in &found.messages {
            let Some(mut excerpt) = Excerpt::of_message(recalled.thread, &recalled.message) else { continue };
            excerpt.source.score = Some(recalled.score);
            // Equal statements are returned once.
            let speaker = (recalled.message.content.role, &recalled.message.content.author);
            if seen.insert((speaker, excerpt.text.clone())) {
                excerpts.push(excerpt);
            }
        }
        excerpts.truncate(source_query.limit);
        Ok(excerpts)
    }
}

impl Excerpt {
    /// Creates an excerpt of a message of a conversation; `None` if the message is empty, or was written by the application or a tool.
    #[must_use]
    pub fn of_message(thread: ThreadId, message: &Message) -> Option<Self> {
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
        let source = Source { title: Some(heading.clone()), ..Source::of_message(thread, message) };
        Some(Self { heading, text, source })
    }
}
