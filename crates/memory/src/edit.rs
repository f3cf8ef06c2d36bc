//! Replacing and erasing messages, and the titles made from them.

use threadkeep_core::{
    Batch, Conflict, Content, Expected, Message, MessageId, MessageQuery, OnCorrupt, Replacement, Role, Scope,
    StoreError, TaggedNumber, Thread, ThreadId,
};

use crate::context::{RemovedMessages, is_context_state_conflict};
use crate::title::title_from;
use crate::{Memory, MemoryError, Result};

/// Number of attempts to commit while others change the thread.
const ATTEMPTS: usize = 8;

impl Memory {
    /// Replaces the content of a message, if the thread is where `expected` requires. Returns the new change number.
    ///
    /// Position, id and creation time stay the same. A title that was made from the message is made again in the same commit.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread or message, `Denied` in a shared thread under a user's scope, `Conflict` with
    /// the actual position, `LimitExceeded` and `Invalid` for content that cannot be stored.
    pub async fn replace_message(
        &self,
        scope: &Scope,
        thread: ThreadId,
        id: MessageId,
        content: Content,
        expected: Option<Expected>,
    ) -> Result<TaggedNumber> {
        let mut batch = self.minted_batch(self.now());
        batch.replace.push(Replacement { id, content });
        self.edit(scope, thread, batch, &[id], expected).await
    }

    /// Erases messages, leaving only the position, id and time of erasure of each. Returns the new change number.
    ///
    /// In the same commit, a title that was made from one of them is made from the remaining messages or removed, and what the
    /// summary derived from them is removed. Their bytes are gone from the store's files after the next sweep at the latest.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread or message (including one that is already erased), `Denied` in a shared thread under a
    /// user's scope, `LimitExceeded` for more messages than one commit can contain.
    pub async fn erase_messages(&self, scope: &Scope, thread: ThreadId, ids: &[MessageId]) -> Result<TaggedNumber> {
        let mut batch = self.minted_batch(self.now());
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
            match self.commit_repeatedly(scope, thread, &batch, now).await {
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. })))
                    if batch.expected != expected => {}
                Err(error) if is_context_state_conflict(&error) => {}
                result => return Ok(result?.tagged()),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS })
    }

    /// Adds a new title to a batch that removes the text which the current one was made from.
    ///
    /// The batch then requires that the thread has not changed since it was read here.
    pub(crate) async fn renew_title(
        &self,
        scope: &Scope,
        thread: ThreadId,
        edited: &[&Message],
        batch: &mut Batch,
    ) -> Result<()> {
        let found = self.get_thread(scope, thread).await?;
        let was_made =
            found.title.is_some() && edited.iter().any(|message| title_from(&message.content) == found.title);
        let is_as_expected = batch.expected.is_none_or(|expected| expected.check(found.positions).is_ok());
        // If the caller's own expectation fails, the store has to report it.
        if !was_made || !is_as_expected {
            return Ok(());
        }
        batch.patch.title = Some(self.title_without(scope, &found, batch).await?);
        batch.expected = Some(Expected::Change(found.positions.tagged()));
        if batch.patch.title == Some(None) {
            self.settled_titles().remove(thread);
        }
        Ok(())
    }

    /// The title made from the thread's user messages as they are after the batch.
    async fn title_without(&self, scope: &Scope, thread: &Thread, batch: &Batch) -> Result<Option<String>> {
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
