//! Having a language model write the summary.

use threadkeep_context::{MARK, ModelSummary, Summary, SummaryPolicy, SummaryTask, cut, task_messages};
use threadkeep_core::{ChatModel, ChatRequest, Finish, Message, ModelError, Scope, StoreError, ThreadId};

use super::carried::Carried;
use crate::{Memory, MemoryError, Result};

/// Messages that one call reads at most.
const READ_MESSAGES: usize = 200;
/// How often storing is tried while others change the thread or renew the same record.
const ATTEMPTS: usize = 8;

/// How far a model's summary came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryRenewal {
    /// The last position that it covers.
    pub through_seq: u64,
    /// Whether it covers all that has fallen out of contexts so far; otherwise ask again.
    pub is_complete: bool,
}

impl Memory {
    /// Has a language model renew the summary of a thread: from what it wrote before and the messages that have fallen out
    /// of contexts since ([`SummaryTask`]). `None` when there are none.
    ///
    /// Call it after a turn rather than before an answer: it takes a call of the model, and shows it some 24,000
    /// characters of messages at most; what is left is for the next call. Contexts show what it wrote, and sentences
    /// taken from the messages that came after. Those stand in for it where it fails, lags behind, finds no room or had
    /// to go: erasing, replacing or trimming a message that it covers takes the whole text away in the same commit, and
    /// the next calls write it anew. In a thread that is trimmed with every message it is therefore of little use.
    ///
    /// # Errors
    /// `Model` when the model fails; nothing is changed then. `Contended` when a message was erased or changed meanwhile,
    /// `NotFound` for an unknown thread, `Denied` in a shared thread under a user's scope.
    pub async fn write_summary(
        &self,
        scope: &Scope,
        thread: ThreadId,
        model: &dyn ChatModel,
        policy: SummaryPolicy,
    ) -> Result<Option<SummaryRenewal>> {
        let (carried, _) = self.find_carried(scope, thread).await?;
        let Some(summary) = &carried.summary else { return Ok(None) };
        let covered = summary.written.as_ref().map_or(summary.first_seq.max(1) - 1, |written| written.through_seq);
        let Some(fallen) = self.fallen_after(scope, thread, covered, summary.through_seq).await? else {
            return Ok(None);
        };
        let shown = task_messages(&fallen.messages);
        let is_whole = shown.len() == fallen.messages.len();
        let through_seq = shown.last().filter(|_| !is_whole).map_or(fallen.through_seq, |message| message.seq);
        let text = match shown {
            [] => summary.written.as_ref().map_or_else(String::new, |written| written.text.clone()),
            _ => write(model, summary, shown, policy.characters).await?,
        };
        let oldest_at = shown.iter().map(|message| message.created_at);
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
        self.store_written(scope, thread, &carried, written).await?;
        Ok(Some(SummaryRenewal { through_seq, is_complete }))
    }

    /// The messages after a position, through another one; `None` where there is no position between.
    async fn fallen_after(&self, scope: &Scope, thread: ThreadId, after: u64, through: u64) -> Result<Option<Fallen>> {
        let missing = through.saturating_sub(after);
        if missing == 0 {
            return Ok(None);
        }
        let limit = usize::try_from(missing).unwrap_or(READ_MESSAGES).min(READ_MESSAGES);
        let following = self.page_after(scope, thread, after, limit).await?;
        let through_seq = following.next.unwrap_or(through).min(through);
        let mut messages = following.page.messages;
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(self.now()));
        messages
            .retain(|message| message.seq <= through_seq && cutoff.is_none_or(|cutoff| message.created_at >= cutoff));
        Ok(Some(Fallen { messages, through_seq }))
    }

    /// Stores what was written, unless a message that the model may have been shown is gone since.
    async fn store_written(
        &self,
        scope: &Scope,
        thread: ThreadId,
        asked: &Carried,
        written: ModelSummary,
    ) -> Result<()> {
        let before = asked.summary.as_ref().and_then(|summary| summary.written.as_ref());
        for _ in 0..ATTEMPTS {
            let (mut carried, change) = self.find_carried(scope, thread).await?;
            let Some(summary) = &mut carried.summary else { break };
            if summary.written.as_ref() == Some(&written) {
                // An attempt whose answer was lost.
                return Ok(());
            }
            if carried.scrubs != asked.scrubs || summary.written.as_ref() != before {
                break;
            }
            summary.written = Some(written.clone());
            match self.write_carried(scope, thread, carried, change).await {
                Err(MemoryError::Store(StoreError::Conflict(_))) => {}
                result => return result,
            }
        }
        Err(MemoryError::Contended { what: "the summary", attempts: ATTEMPTS })
    }
}

/// Messages that have fallen out of contexts.
struct Fallen {
    messages: Vec<Message>,
    /// The position up to which these are all.
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
