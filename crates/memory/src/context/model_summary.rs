//! Summaries written by a language model.

use threadkeep_context::{MARK, ModelSummary, Summary, SummaryPolicy, SummaryTask, cut, task_messages};
use threadkeep_core::{ChatModel, ChatRequest, Finish, Message, ModelError, Scope, StoreError, ThreadId};

use super::state::ContextState;
use crate::{Memory, MemoryError, Result};

/// Maximum number of messages that one call reads.
const READ_MESSAGES: usize = 200;
/// Number of attempts to store the summary while others change the thread or update the same record.
const ATTEMPTS: usize = 8;

/// How far a model's summary reaches after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryRenewal {
    /// The last position that it covers.
    pub through_seq: u64,
    /// Whether it covers all messages that have left contexts so far; otherwise call again.
    pub is_complete: bool,
}

impl Memory {
    /// Has a language model update the summary of a thread, from its earlier text and the messages that have left contexts
    /// since ([`SummaryTask`]). `None` if there are no such messages.
    ///
    /// Call it after a turn rather than before an answer: it makes a call of the model with at most about 24,000 characters of
    /// messages; the next call continues. Contexts include the text, followed by sentences extracted from the messages after
    /// it. Such sentences also replace the text if it is missing or does not fit. Erasing, replacing or trimming a message that
    /// the text covers removes the whole text in the same commit, and later calls write it again, so it is of little use in a
    /// thread that is trimmed with every message.
    ///
    /// # Errors
    /// `Model` if the model fails; nothing is changed then. `Contended` if a message was erased or changed meanwhile,
    /// `NotFound` for an unknown thread, `Denied` in a shared thread under a user's scope.
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
        let Some(unsummarised) = self.unsummarised(scope, thread, covered, summary.through_seq).await? else {
            return Ok(None);
        };
        let messages = task_messages(&unsummarised.messages);
        let is_whole = messages.len() == unsummarised.messages.len();
        let through_seq = messages.last().filter(|_| !is_whole).map_or(unsummarised.through_seq, |message| message.seq);
        let text = match messages {
            [] => summary.written.as_ref().map_or_else(String::new, |written| written.text.clone()),
            _ => write(model, summary, messages, policy.characters).await?,
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

    /// Reads the messages after position `after`, through position `through`; `None` for an empty range.
    async fn unsummarised(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: u64,
        through: u64,
    ) -> Result<Option<Unsummarised>> {
        let missing = through.saturating_sub(after);
        if missing == 0 {
            return Ok(None);
        }
        let limit = usize::try_from(missing).unwrap_or(READ_MESSAGES).min(READ_MESSAGES);
        let step = self.page_after(scope, thread, after, limit).await?;
        let through_seq = step.next.unwrap_or(through).min(through);
        let mut messages = step.page.messages;
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(self.now()));
        messages
            .retain(|message| message.seq <= through_seq && cutoff.is_none_or(|cutoff| message.created_at >= cutoff));
        Ok(Some(Unsummarised { messages, through_seq }))
    }

    /// Stores a summary that a model wrote when the context state was `former`, unless a message that the model may have read
    /// was removed since.
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

/// Messages that have left contexts and that the model's summary does not cover yet.
struct Unsummarised {
    messages: Vec<Message>,
    /// The last position that was read.
    through_seq: u64,
}

async fn write(
    model: &dyn ChatModel,
    summary: &Summary,
    fallen: &[Message],
    characters: usize,
) -> Result<String, ModelError> {
    let previous = summary.written.as_ref().map(|written| written.text.as_str());
    let task = SummaryTask { previous, fallen, characters };
    let request = ChatRequest { messages: task.prompt(), ..ChatRequest::default() };
    let answer = model.answer(&request, &mut |_| {}).await?;
    let text = answer.text();
    let text = text.trim();
    if text.is_empty() || answer.finish == Finish::Filtered {
        let detail = if text.is_empty() { "an empty summary" } else { "the summary was withheld" };
        return Err(ModelError::InvalidAnswer { model: model.name().to_owned(), detail: detail.to_owned() });
    }
    Ok(cut(text, characters).map_or_else(|| text.to_owned(), |kept| format!("{kept}{MARK}")))
}
