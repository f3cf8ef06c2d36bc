//! Tools that erase what the user said about a topic: one lists the messages, the other erases the listed messages after the user
//! has confirmed the list.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use threadkeep::core::text::{content_terms, indexed_terms};
use threadkeep::core::{ToolContext, ToolError, ToolOutput, limits};
use threadkeep::dialogue::is_question;
use threadkeep::{
    FnTool, JsonText, Memory, Message, MessageId, MetadataFilter, Part, Role, Scope, SearchOptions, ThreadId,
};

use crate::evidence::statements;
use crate::search_tools::unavailable;

pub(crate) const FIND: &str = "find_messages";
pub(crate) const ERASE: &str = "erase_messages";

/// The topic of all messages of the user.
pub(crate) const EVERYTHING: &str = "everything";

/// The maximum number of other messages that are erased with a list of everything.
const MAX_RELATED: usize = 1_000;
/// The maximum number of messages in one list.
const MAX_MESSAGES: usize = 50;
/// How many of the newest messages of the thread are searched for the list.
const MAX_EARLIER: usize = 40;
/// The maximum length of a listed text, in characters.
const MAX_TEXT: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
struct Topic {
    /// What the messages are about, in a few words; "everything" lists all that the user said, and the preferences. If it
    /// is missing, the user's last statement in this conversation is listed.
    #[serde(default)]
    about: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArguments {}

/// The list of messages, as the result of [`FIND`].
#[derive(Debug, Serialize, Deserialize)]
struct FoundMessages {
    about: Option<String>,
    /// What the user said.
    messages: Vec<FoundMessage>,
    /// Questions about the topic, and answers that quote these messages.
    related: Vec<MessagePosition>,
    /// The names of the preferences to forget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preferences: Vec<String>,
    /// Whether there are more messages than one list contains.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_more: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct FoundMessage {
    #[serde(flatten)]
    position: MessagePosition,
    day: String,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct MessagePosition {
    thread: ThreadId,
    id: MessageId,
}

/// Lists the user's messages about a topic.
pub(crate) fn find(memory: Memory) -> FnTool {
    let description = "Lists the messages in which the user said something about a topic. The user must confirm the \
                       list before the messages are erased. Call this only if the user wants something forgotten.";
    FnTool::new(FIND, description, move |context: ToolContext, topic: Topic| {
        let memory = memory.clone();
        async move {
            let found = match topic.about.filter(|about| !about.trim().is_empty()) {
                Some(about) if about.trim() == EVERYTHING => find_everything(&memory, &context).await?,
                Some(about) => find_about(&memory, &context, about).await?,
                None => find_last(&memory, &context).await?,
            };
            Ok(ToolOutput::json(JsonText::of(&found).map_err(|error| ToolError::Unavailable(error.to_string()))?))
        }
    })
}

/// Erases the messages that were listed, and the conversation about the list.
pub(crate) fn erase(memory: Memory) -> FnTool {
    let description = "Erases the messages that find_messages listed before the user's last message, together with \
                       the request and the list. Call this only after the user has confirmed the list. Cannot be \
                       undone.";
    FnTool::new(ERASE, description, move |context: ToolContext, _: NoArguments| {
        let memory = memory.clone();
        async move {
            let earlier = memory.newest(&context.scope, context.thread, MAX_EARLIER).await.map_err(unavailable)?;
            let (listed, request) = last_list(&earlier).ok_or_else(|| {
                ToolError::Denied("find_messages must list the messages first, and the user must confirm".to_owned())
            })?;
            let (count, listed_preferences) = (listed.messages.len(), listed.preferences);
            let mut by_thread: BTreeMap<ThreadId, BTreeSet<MessageId>> = BTreeMap::new();
            let listed = listed.messages.into_iter().map(|message| message.position).chain(listed.related);
            for MessagePosition { thread, id } in listed {
                by_thread.entry(thread).or_default().insert(id);
            }
            by_thread.entry(context.thread).or_default().extend(request.iter().map(|message| message.id));
            for (thread, ids) in by_thread {
                erase_existing(&memory, &context, thread, ids.into_iter().collect()).await?;
            }
            for name in &listed_preferences {
                memory.delete_preference(&context.scope, name).await.map_err(unavailable)?;
            }
            let preferences = listed_preferences.len();
            let result = match preferences {
                0 => json!({"erased": count}),
                _ => json!({"erased": count, "preferences": preferences}),
            };
            Ok(ToolOutput::json(JsonText::from(&result)))
        }
    })
}

async fn find_about(memory: &Memory, context: &ToolContext, about: String) -> Result<FoundMessages, ToolError> {
    let options =
        SearchOptions { roles: vec![Role::User, Role::Assistant], limit: limits::PAGE, ..SearchOptions::default() };
    let hits = memory.search(&context.scope, &about, &options).await.map_err(unavailable)?.hits;
    let words = content_terms(&about);
    let count_matching = |message: &Message| {
        let terms = indexed_terms(&message.plain_text());
        words.iter().filter(|(_, stems)| stems.iter().any(|stem| terms.contains(stem))).count()
    };
    let is_request = |message: &Message| {
        let text = message.plain_text();
        text.trim() == context.question.trim() || statements(&text).is_empty() && !is_question(&text)
    };
    let user_hits: Vec<_> =
        hits.iter().filter(|hit| hit.message.content.role == Role::User && !is_request(&hit.message)).collect();
    let max_matching = user_hits.iter().map(|hit| count_matching(&hit.message)).max().unwrap_or(0);
    // Selects the messages that contain the most words of the topic, provided that they contain at least half of them.
    let is_about_topic = |message: &Message| {
        max_matching > 0 && count_matching(message) == max_matching && max_matching * 2 >= words.len()
    };
    let (questions, mut statements): (Vec<_>, Vec<_>) = user_hits
        .into_iter()
        .filter(|hit| is_about_topic(&hit.message))
        .partition(|hit| is_question(&hit.message.plain_text()));
    statements.sort_by_key(|hit| (hit.message.created_at, hit.message.seq));
    statements.truncate(MAX_MESSAGES);
    let messages: Vec<FoundMessage> =
        statements.iter().map(|hit| FoundMessage::new(hit.thread, &hit.message)).collect();
    let listed: BTreeSet<String> = messages.iter().map(|message| message.position.id.to_string()).collect();
    let quotes = hits.iter().filter(|hit| hit.message.content.sources.iter().any(|source| listed.contains(&source.id)));
    let related = questions.into_iter().chain(quotes);
    let related = related.map(|hit| MessagePosition { thread: hit.thread, id: hit.message.id }).collect();
    Ok(FoundMessages { about: Some(about), messages, related, preferences: Vec::new(), has_more: false })
}

/// Lists the user's newest statements of all threads, everything else in these threads as related, and the preferences.
async fn find_everything(memory: &Memory, context: &ToolContext) -> Result<FoundMessages, ToolError> {
    let threads = memory.list_by_last_message(&context.scope, &MetadataFilter::default()).await.map_err(unavailable)?;
    let (mut messages, mut related, mut has_more) = (Vec::new(), Vec::new(), false);
    for (thread, _) in threads {
        if messages.len() == MAX_MESSAGES && related.len() == MAX_RELATED {
            has_more = true;
            break;
        }
        let newest = memory.newest(&context.scope, thread.id, limits::PAGE).await.map_err(unavailable)?;
        has_more |= newest.len() == limits::PAGE;
        for message in newest.iter().rev() {
            let text = message.plain_text();
            let is_statement = message.content.role == Role::User && !statements(&text).is_empty();
            let is_full = if is_statement { messages.len() == MAX_MESSAGES } else { related.len() == MAX_RELATED };
            if is_full {
                has_more = true;
            } else if is_statement {
                messages.push(FoundMessage::new(thread.id, message));
            } else if text.trim() != context.question.trim() {
                related.push(MessagePosition { thread: thread.id, id: message.id });
            }
        }
    }
    messages.reverse();
    let preferences = match context.scope {
        Scope::User(..) => memory.list_preferences(&context.scope).await.map_err(unavailable)?,
        Scope::Tenant(_) => Vec::new(),
    };
    let preferences = preferences.into_iter().map(|preference| preference.key).collect();
    Ok(FoundMessages { about: Some(EVERYTHING.to_owned()), messages, related, preferences, has_more })
}

/// Finds the user's last statement in the thread before the request.
async fn find_last(memory: &Memory, context: &ToolContext) -> Result<FoundMessages, ToolError> {
    let earlier = memory.newest(&context.scope, context.thread, MAX_EARLIER).await.map_err(unavailable)?;
    let user_messages = earlier.iter().rev().filter(|message| message.content.role == Role::User).skip(1);
    let last = user_messages.into_iter().find(|message| !is_question(&message.plain_text()));
    let messages = last.into_iter().map(|message| FoundMessage::new(context.thread, message)).collect();
    Ok(FoundMessages { about: None, messages, related: Vec::new(), preferences: Vec::new(), has_more: false })
}

impl FoundMessage {
    fn new(thread: ThreadId, message: &Message) -> Self {
        let text = message.plain_text().chars().take(MAX_TEXT).collect();
        let day = message.created_at.to_string().chars().take(10).collect();
        Self { position: MessagePosition { thread, id: message.id }, day, text }
    }
}

/// Returns the last list of messages before the newest user message, and the messages of the turn that created the list.
fn last_list(messages: &[Message]) -> Option<(FoundMessages, &[Message])> {
    let is_by_user = |message: &Message| message.content.role == Role::User;
    let confirmation = messages.iter().rposition(is_by_user)?;
    let start = messages[..confirmation].iter().rposition(is_by_user)?;
    let turn = &messages[start..confirmation];
    let parts = || turn.iter().flat_map(|message| &message.content.parts);
    let call = parts().find_map(|part| match part {
        Part::ToolCall(call) if call.name == FIND => Some(&call.id),
        _ => None,
    })?;
    let result = parts().find_map(|part| match part {
        Part::ToolResult(result) if result.call_id == *call && !result.is_error => Some(&result.output),
        _ => None,
    })?;
    Some((serde_json::from_str(result).ok()?, turn))
}

/// Erases the messages that still exist.
async fn erase_existing(
    memory: &Memory,
    context: &ToolContext,
    thread: ThreadId,
    ids: Vec<MessageId>,
) -> Result<(), ToolError> {
    for ids in ids.chunks(limits::PAGE) {
        let refs: Vec<_> = ids.iter().copied().map(threadkeep::MessageRef::Id).collect();
        let existing = memory.find_messages(&context.scope, thread, &refs).await.map_err(unavailable)?;
        let existing: Vec<MessageId> = existing.into_iter().map(|message| message.id).collect();
        if !existing.is_empty() {
            memory.erase_messages(&context.scope, thread, &existing).await.map_err(unavailable)?;
        }
    }
    Ok(())
}
