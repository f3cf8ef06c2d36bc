//! Changing what was said: replacing and erasing messages, with the title that was made from them.

use threadkeep_core::{
    Batch, Conflict, Content, Expected, Message, MessageId, MessageQuery, OnCorrupt, Replacement, Role, Scope,
    StoreError, Tagged, Thread, ThreadId,
};

use crate::context::{Gone, is_about_summary};
use crate::title::title_from;
use crate::{Memory, MemoryError, Result};

/// How often a title is decided anew because the thread changed meanwhile.
const ATTEMPTS: usize = 8;

impl Memory {
    /// Says a message differently, if the thread stands where `expected` says. Returns the new change position.
    ///
    /// Position, id and instant stay. A title that was made from the message is made anew in the same commit.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread or message, `Denied` in a shared thread under a user's scope, `Conflict` with
    /// the actual position, `LimitExceeded` and `Invalid` for content that no store keeps.
    pub async fn replace_message(
        &self,
        scope: &Scope,
        thread: ThreadId,
        id: MessageId,
        content: Content,
        expected: Option<Expected>,
    ) -> Result<Tagged> {
        let mut batch = self.minted_batch(self.now());
        batch.replace.push(Replacement { id, content });
        self.edit(scope, thread, batch, &[id], expected).await
    }

    /// Erases messages: of each only position, id and the instant of erasing are left. Returns the new change position.
    ///
    /// A title that was made from one of them is made from what is left, or taken away, and a summary loses what it took
    /// from them, in the same commit. Their bytes
    /// are gone from the store's files after the next sweep at the latest.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread or message (one erased before included), `Denied` in a shared thread under a
    /// user's scope, `LimitExceeded` for more than one commit takes.
    pub async fn erase_messages(&self, scope: &Scope, thread: ThreadId, ids: &[MessageId]) -> Result<Tagged> {
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
    ) -> Result<Tagged> {
        let now = self.now();
        for _ in 0..ATTEMPTS {
            batch.expected = expected;
            batch.patch.title = None;
            let edited = self.find_by_ids(scope, thread, ids.iter().copied()).await?;
            let edited: Vec<&Message> = edited.iter().collect();
            if edited.iter().any(|message| title_from(&message.content).is_some()) {
                self.renew_title(scope, thread, &edited, &mut batch).await?;
            }
            let gone = Gone { seqs: edited.iter().map(|message| message.seq).collect(), ..Gone::default() };
            self.scrub_summary(scope, thread, &mut batch, &gone).await?;
            match self.commit_repeatedly(scope, thread, &batch, now).await {
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. })))
                    if batch.expected != expected => {}
                Err(error) if is_about_summary(&error) => {}
                result => return Ok(result?.tagged()),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS })
    }

    /// Adds a new title to a batch that takes away the words which the present one was made from.
    ///
    /// The batch then demands that the thread has not changed since this look.
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
        let holds = batch.expected.is_none_or(|expected| expected.check(found.positions).is_ok());
        // Where the caller's own expectation fails the store has to say so.
        if !was_made || !holds {
            return Ok(());
        }
        batch.patch.title = Some(self.title_without(scope, &found, batch).await?);
        batch.expected = Some(Expected::Change(found.positions.tagged()));
        if batch.patch.title == Some(None) {
            self.settled_titles().forget(thread);
        }
        Ok(())
    }

    /// The title that a thread's user messages give once the batch has changed them.
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
