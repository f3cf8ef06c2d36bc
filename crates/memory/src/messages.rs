//! Reading messages.

use threadkeep_core::{
    Message, MessageId, MessagePage, MessageQuery, MessageRef, OnCorrupt, Scope, ThreadId, Timestamp, limits,
};

use crate::retry::retry;
use crate::{Memory, Result};

/// Messages per page when a whole thread is read.
pub(crate) const READ_PAGE: usize = 500;

impl Memory {
    /// Reads a page of a thread: always in chronological order, by default the newest messages.
    ///
    /// The bounds of the query are exclusive and apply before its limit. Messages that are past this manager's retention
    /// ([`crate::MemoryOptions::retention`]) are omitted, although they may still be stored.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` over [`limits::PAGE`], `Corrupt` for a message that does not
    /// decode, unless the query asks to report it with the others.
    pub async fn messages(&self, scope: &Scope, thread: ThreadId, query: &MessageQuery) -> Result<MessagePage> {
        let now = self.now();
        let page = self.read_page(scope, thread, query, now).await?;
        Ok(self.without_outdated(page, now))
    }

    /// Reads the newest `limit` messages, oldest first.
    ///
    /// # Errors
    /// As [`Memory::messages`].
    pub async fn newest(&self, scope: &Scope, thread: ThreadId, limit: usize) -> Result<Vec<Message>> {
        Ok(self.messages(scope, thread, &MessageQuery::newest(limit)).await?.messages)
    }

    /// Reads messages by name, in ascending order of position. Those that do not exist are omitted.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` for more than [`limits::PAGE`] names.
    pub async fn find_messages(&self, scope: &Scope, thread: ThreadId, names: &[MessageRef]) -> Result<Vec<Message>> {
        limits::check_bytes("message names", names.len(), limits::PAGE)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().find_messages(scope, thread, names, now)).await?)
    }

    pub(crate) async fn find_by_ids(
        &self,
        scope: &Scope,
        thread: ThreadId,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Result<Vec<Message>> {
        let names: Vec<_> = ids.into_iter().map(MessageRef::Id).collect();
        self.find_messages(scope, thread, &names).await
    }

    /// Reads the page of a thread that follows a position, and reports messages that do not decode with the others.
    pub(crate) async fn page_after(&self, scope: &Scope, thread: ThreadId, seq: u64, limit: usize) -> Result<ScanStep> {
        let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(seq, limit) };
        let page = self.messages_as_stored(scope, thread, &query).await?;
        let last = page.messages.last().map(|message| message.seq);
        let last_corrupt = page.corrupt.iter().map(|row| row.seq).max();
        let reached = last.max(last_corrupt).unwrap_or(seq);
        // An empty page ends the scan even if it claims that there is more, or the scan would never end.
        let next = (page.more && reached > seq).then_some(reached);
        Ok(ScanStep { page, next })
    }

    fn without_outdated(&self, mut page: MessagePage, now: Timestamp) -> MessagePage {
        if let Some(cutoff) = self.options().retention.and_then(|retention| retention.cutoff(now)) {
            page.messages.retain(|message| message.created_at >= cutoff);
        }
        page
    }
}

/// One step of a scan through a whole thread.
pub(crate) struct ScanStep {
    pub(crate) page: MessagePage,
    /// The position after which the next step starts; `None` at the end.
    pub(crate) next: Option<u64>,
}
