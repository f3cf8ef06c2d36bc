//! Replacing and erasing messages, and renewing the titles made from them.

use threadkeep_core::{
    Batch, Conflict, Content, Expected, Message, MessageId, MessageQuery, OnCorrupt, Replacement, Role, Scope,
    StoreError, TaggedNumber, Thread, ThreadId,
};

use crate::context::{RemovedMessages, is_context_state_conflict};
use crate::title::title_from;
use crate::{Memory, MemoryError, Result};

/// Maximum number of attempts to commit while others change the thread.
const ATTEMPTS: usize = 8;

impl Memory {
    /// Replaces the content of a message, if the thread is at the `expected` position or change. Returns the thread's new change.
    ///
    /// The position, id and creation time of the message stay the same. A title that was made from the message is renewed in the
    /// same commit.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread or message, `Denied` if the thread is shared and `scope` is a user's, `Conflict` with the
    /// actual position or change if the thread is not at the `expected` one, `LimitExceeded` and `Invalid` for content that cannot
    /// be stored.
    pub async fn replace_message(
        &self,
        scope: &Scope,
        thread: ThreadId,
        id: MessageId,
        content: Content,
        expected: Option<Expected>,
    ) -> Result<TaggedNumber> {
        let mut batch = self.new_batch(self.now());
        batch.replace.push(Replacement { id, content });
        self.edit(scope, thread, batch, &[id], expected).await
    }

    /// Erases messages, of which only the position, id and time of erasure remain. Returns the thread's new change number.
    ///
    /// The same commit also removes everything that was derived from these messages: their part of the summary, and a title made
    /// from them, which is replaced by one made from the remaining messages, if there are any. The bytes of the messages are
    /// overwritten in the store's files by the next sweep at the latest.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread or an unknown or erased message, `Denied` if the thread is shared and `scope` is a
    /// user's, `LimitExceeded` for more messages than one commit can contain.
    pub async fn erase_messages(&self, scope: &Scope, thread: ThreadId, ids: &[MessageId]) -> Result<TaggedNumber> {
        let mut batch = self.new_batch(self.now());
        batch.erase = ids.to_vec();
        self.edit(scope, thread, batch, ids, None).await
    }

    async fn edit(
        &self,
        scope: &Scope,
        thread: ThreadId,
        mut batch: Batch,
        ids: &[MessageId],
        expected: Option<Expected>,
    ) -> Result<TaggedNumber> {
        let now = self.now();
        for _ in 0..ATTEMPTS {
            batch.expected = expected;
            batch.patch.title = None;
            let edited = self.find_by_ids(scope, thread, ids.iter().copied()).await?;
            let edited: Vec<&Message> = edited.iter().collect();
            if edited.iter().any(|message| title_from(&message.content).is_some()) {
                self.renew_title(scope, thread, &edited, &mut batch).await?;
            }
            let seqs = edited.iter().map(|message| message.seq).collect();
            let removed = RemovedMessages { seqs, ..RemovedMessages::default() };
            self.scrub_context_state(scope, thread, &mut batch, &removed).await?;
            match self.commit_with_retries(scope, thread, &batch, now).await {
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. })))
                    if batch.expected != expected => {}
                Err(error) if is_context_state_conflict(&error) => {}
                result => return Ok(result?.tagged()),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS })
    }

    /// Adds a new title to a batch that edits messages, if the current title was made from one of them.
    ///
    /// The batch then requires that the thread has not changed since this call read it.
    pub(crate) async fn renew_title(
        &self,
        scope: &Scope,
        thread: ThreadId,
        edited: &[&Message],
        batch: &mut Batch,
    ) -> Result<()> {
        let found = self.get_thread(scope, thread).await?;
        let is_from_edited_message =
            found.title.is_some() && edited.iter().any(|message| title_from(&message.content) == found.title);
        let meets_expectation = batch.expected.is_none_or(|expected| expected.check(found.positions).is_ok());
        // If the thread is not at the expected position or change, the store has to report the conflict.
        if !is_from_edited_message || !meets_expectation {
            return Ok(());
        }
        batch.patch.title = Some(self.title_after(scope, &found, batch).await?);
        batch.expected = Some(Expected::Change(found.positions.tagged()));
        if batch.patch.title == Some(None) {
            self.threads_with_final_title().remove(thread);
        }
        Ok(())
    }

    /// Creates a title from the thread's user messages as they will be after the batch; `None` if none has text for a title.
    async fn title_after(&self, scope: &Scope, thread: &Thread, batch: &Batch) -> Result<Option<String>> {
        let mut query = MessageQuery {
            roles: vec![Role::User],
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::following(thread.positions.first_seq - 1, 20)
        };
        loop {
            let page = self.messages_as_stored(scope, thread.id, &query).await?;
            for message in &page.messages {
                if batch.erase.contains(&message.id) {
                    continue;
                }
                let replacement = batch.replace.iter().find(|replacement| replacement.id == message.id);
                let content = replacement.map_or(&message.content, |replacement| &replacement.content);
                if let Some(title) = title_from(content) {
                    return Ok(Some(title));
                }
            }
            match page.messages.last() {
                Some(last) if page.more => query.after = Some(threadkeep_core::Bound::Seq(last.seq)),
                _ => return Ok(None),
            }
        }
    }
}
