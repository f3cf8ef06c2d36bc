//! Summaries written by a language model.

use threadkeep_context::{ModelSummary, Summary, SummaryPolicy, SummaryTask, TRUNCATION_MARK, cut, task_messages};
use threadkeep_core::{ChatModel, ChatRequest, Finish, Message, ModelError, Scope, StoreError, ThreadId};

use super::state::ContextState;
use crate::{Memory, MemoryError, Result};

/// Maximum number of messages that one call reads from the store.
const MAX_MESSAGES: usize = 200;
/// Maximum number of attempts to store the summary while others update the context state.
const ATTEMPTS: usize = 8;

/// The result of updating the summary that a model writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryRenewal {
    /// The last position that the summary covers.
    pub through_seq: u64,
    /// Whether the summary covers all messages that contexts no longer include. If not, call again.
    pub is_complete: bool,
}

impl Memory {
    /// Asks a language model to update the summary of a thread. The model reads the previous summary and the messages that have
    /// dropped out of contexts since ([`SummaryTask`]). Returns `None` if there are no such messages.
    ///
    /// Call this after a turn rather than before an answer, because it calls the model, with at most about 24,000 characters of
    /// messages; if there are more, the next call continues. Contexts include the summary, followed by sentences extracted from
    /// later messages. Without a summary, or if it does not fit, contexts include only such sentences. Erasing, replacing or
    /// trimming a message that the summary covers removes the whole summary in the same commit, and later calls write it again.
    /// So such a summary is of little use in a thread that is trimmed with every message.
    ///
    /// # Errors
    /// `Model` if the model fails, in which case nothing is changed. `Contended` if a message was erased or changed in the meantime,
    /// `NotFound` for an unknown thread, `Denied` if the thread is shared and `scope` is a user's.
    pub async fn write_summary(
        &self,
        scope: &Scope,
        thread: ThreadId,
        model: &dyn ChatModel,
        policy: SummaryPolicy,
    ) -> Result<Option<SummaryRenewal>> {
        let (state, _) = self.find_context_state(scope, thread).await?;
        let Some(summary) = &state.summary else { return Ok(None) };
        let covered = summary.written.as_ref().map_or(summary.first_seq.max(1) - 1, |written| written.through_seq);
        let Some(unsummarised) = self.read_unsummarised(scope, thread, covered, summary.through_seq).await? else {
            return Ok(None);
        };
        let messages = task_messages(&unsummarised.messages);
        let is_whole = messages.len() == unsummarised.messages.len();
        let through_seq = messages.last().filter(|_| !is_whole).map_or(unsummarised.through_seq, |message| message.seq);
        let text = match messages {
            [] => summary.written.as_ref().map_or_else(String::new, |written| written.text.clone()),
            _ => generate_summary(model, summary, messages, policy.characters).await?,
        };
        let oldest_at = messages.iter().map(|message| message.created_at);
        let oldest_at = oldest_at.chain(summary.written.as_ref().map(|written| written.oldest_at)).min();
        let first_seq = summary.written.as_ref().map_or(summary.first_seq, |written| written.first_seq);
        let written = ModelSummary {
            first_seq,
            through_seq,
            oldest_at: oldest_at.unwrap_or(self.now()),
            model: model.name().to_owned(),
            text,
        };
        let is_complete = through_seq >= summary.through_seq;
        self.store_model_summary(scope, thread, &state, written).await?;
        Ok(Some(SummaryRenewal { through_seq, is_complete }))
    }

    /// Reads messages that follow position `after`, at most through position `through`; `None` if that range is empty.
    async fn read_unsummarised(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: u64,
        through: u64,
    ) -> Result<Option<UnsummarisedMessages>> {
        let missing = through.saturating_sub(after);
        if missing == 0 {
            return Ok(None);
        }
        let limit = usize::try_from(missing).unwrap_or(MAX_MESSAGES).min(MAX_MESSAGES);
        let step = self.page_after(scope, thread, after, limit).await?;
        let through_seq = step.next.unwrap_or(through).min(through);
        let mut messages = step.page.messages;
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(self.now()));
        messages
            .retain(|message| message.seq <= through_seq && cutoff.is_none_or(|cutoff| message.created_at >= cutoff));
        Ok(Some(UnsummarisedMessages { messages, through_seq }))
    }

    /// Stores a summary that a model wrote from the context state `former`, unless a message that the model may have read has
    /// been removed since.
    async fn store_model_summary(
        &self,
        scope: &Scope,
        thread: ThreadId,
        former: &ContextState,
        written: ModelSummary,
    ) -> Result<()> {
        let before = former.summary.as_ref().and_then(|summary| summary.written.as_ref());
        for _ in 0..ATTEMPTS {
            let (mut state, change) = self.find_context_state(scope, thread).await?;
            let Some(summary) = &mut state.summary else { break };
            if summary.written.as_ref() == Some(&written) {
                // Stored by an attempt whose reply was lost.
                return Ok(());
            }
            if state.scrubs != former.scrubs || summary.written.as_ref() != before {
                break;
            }
            summary.written = Some(written.clone());
            match self.write_context_state(scope, thread, state, change).await {
                Err(MemoryError::Store(StoreError::Conflict(_))) => {}
                result => return result,
            }
        }
        Err(MemoryError::Contended { what: "the summary", attempts: ATTEMPTS })
    }
}

/// Messages that contexts no longer include and that the model's summary does not cover yet.
struct UnsummarisedMessages {
    messages: Vec<Message>,
    /// The last position that was read.
    through_seq: u64,
}

/// Asks the model for a summary of at most `characters` characters that replaces the previous one and includes `messages`.
async fn generate_summary(
    model: &dyn ChatModel,
    summary: &Summary,
    messages: &[Message],
    characters: usize,
) -> Result<String, ModelError> {
    let previous = summary.written.as_ref().map(|written| written.text.as_str());
    let task = SummaryTask { previous, new_messages: messages, characters };
    let request = ChatRequest { messages: task.prompt(), ..ChatRequest::default() };
    let answer = model.answer(&request, &mut |_| {}).await?;
    let text = answer.text();
    let text = text.trim();
    if text.is_empty() || answer.finish == Finish::Filtered {
        let detail = if text.is_empty() { "the summary is empty" } else { "the summary was withheld" };
        return Err(ModelError::InvalidAnswer { model: model.name().to_owned(), detail: detail.to_owned() });
    }
    Ok(cut(text, characters).map_or_else(|| text.to_owned(), |kept| format!("{kept}{TRUNCATION_MARK}")))
}
