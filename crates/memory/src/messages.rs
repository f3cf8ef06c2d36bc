//! Reading messages.

use threadkeep_core::{
    Message, MessageId, MessageName, MessagePage, MessageQuery, OnCorrupt, Scope, ThreadId, Timestamp, limits,
};

use crate::retry::repeat_simply;
use crate::{Memory, Result};

/// Messages that are held at a time where a whole thread is read.
pub(crate) const READ_PAGE: usize = 500;

impl Memory {
    /// Reads a page of a thread: always in chronological order, by default the newest ones.
    ///
    /// The bounds of the query are exclusive and hold before its limit. Where this manager keeps messages for a time
    /// only ([`crate::MemoryOptions::retention`]), older ones are left out although they may still be stored.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` over [`limits::PAGE`], `Corrupt` for a message that does not
    /// decode unless the query asks to be told of it beside the others.
    pub async fn messages(&self, scope: &Scope, thread: ThreadId, query: &MessageQuery) -> Result<MessagePage> {
        let now = self.now();
        let page = self.read_page(scope, thread, query, now).await?;
        Ok(self.without_outdated(page, now))
    }

    /// Reads the newest `limit` messages, oldest of them first.
    ///
    /// # Errors
    /// As [`Memory::messages`].
    pub async fn newest(&self, scope: &Scope, thread: ThreadId, limit: usize) -> Result<Vec<Message>> {
        Ok(self.messages(scope, thread, &MessageQuery::newest(limit)).await?.messages)
    }

    /// Reads messages by name, in ascending order of position; what is not there is left out.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` for more than [`limits::PAGE`] names.
    pub async fn find_messages(&self, scope: &Scope, thread: ThreadId, names: &[MessageName]) -> Result<Vec<Message>> {
        limits::check_bytes("message names", names.len(), limits::PAGE)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        Ok(repeat_simply(self.runtime(), || self.store().find_messages(scope, thread, names, now)).await?)
    }

    pub(crate) async fn find_by_ids(
        &self,
        scope: &Scope,
        thread: ThreadId,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Result<Vec<Message>> {
        let names: Vec<_> = ids.into_iter().map(MessageName::Id).collect();
        self.find_messages(scope, thread, &names).await
    }

    /// Reads the page of a thread that follows a position, broken messages told beside the others.
    pub(crate) async fn page_after(
        &self,
        scope: &Scope,
        thread: ThreadId,
        seq: u64,
        limit: usize,
    ) -> Result<Following> {
        let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(seq, limit) };
        let page = self.messages_as_stored(scope, thread, &query).await?;
        let read = page.messages.last().map(|message| message.seq);
        let broken = page.corrupt.iter().map(|row| row.seq).max();
        let reached = read.max(broken).unwrap_or(seq);
        // A page that brought nothing ends the reading whatever it says.
        let next = (page.more && reached > seq).then_some(reached);
        Ok(Following { page, next })
    }

    fn without_outdated(&self, mut page: MessagePage, now: Timestamp) -> MessagePage {
        if let Some(cutoff) = self.options().retention.and_then(|retention| retention.cutoff(now)) {
            page.messages.retain(|message| message.created_at >= cutoff);
        }
        page
    }
}

/// A page on the way through a whole thread.
pub(crate) struct Following {
    pub(crate) page: MessagePage,
    /// After which position the next one begins; `None` at the end.
    pub(crate) next: Option<u64>,
}
