//! Reading messages.

use threadkeep_core::{
    Message, MessageId, MessagePage, MessageQuery, MessageRef, OnCorrupt, Scope, ThreadId, Timestamp, limits,
};

use crate::retry::retry;
use crate::{Memory, Result};

/// Maximum number of messages per page when a whole thread is read.
pub(crate) const READ_PAGE: usize = 500;

impl Memory {
    /// Reads a page of messages, in ascending order of position; by default, the newest messages.
    ///
    /// The bounds of the query are exclusive and apply before the limit. Messages past their retention
    /// ([`crate::MemoryOptions::retention`]) are omitted, although they may still be stored.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` for a limit of more than [`limits::PAGE`], `Corrupt` for a message that
    /// cannot be decoded unless `query.on_corrupt` is [`OnCorrupt::Report`].
    pub async fn messages(&self, scope: &Scope, thread: ThreadId, query: &MessageQuery) -> Result<MessagePage> {
        let now = self.now();
        let page = self.read_page(scope, thread, query, now).await?;
        Ok(self.without_outdated(page, now))
    }

    /// Reads the newest `limit` messages, oldest first.
    ///
    /// # Errors
    /// The same as for [`Memory::messages`].
    pub async fn newest(&self, scope: &Scope, thread: ThreadId, limit: usize) -> Result<Vec<Message>> {
        Ok(self.messages(scope, thread, &MessageQuery::newest(limit)).await?.messages)
    }

    /// Finds messages by id, external id or position. Returns them in ascending order of position, and omits messages that do
    /// not exist.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` for more than [`limits::PAGE`] references.
    pub async fn find_messages(&self, scope: &Scope, thread: ThreadId, refs: &[MessageRef]) -> Result<Vec<Message>> {
        limits::check_at_most("message references", refs.len(), limits::PAGE)?;
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().find_messages(scope, thread, refs, now)).await?)
    }

    pub(crate) async fn find_by_ids(
        &self,
        scope: &Scope,
        thread: ThreadId,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Result<Vec<Message>> {
        let refs: Vec<_> = ids.into_iter().map(MessageRef::Id).collect();
        self.find_messages(scope, thread, &refs).await
    }

    /// Reads the page of messages after position `seq`. Messages that cannot be decoded are listed in the page.
    pub(crate) async fn page_after(&self, scope: &Scope, thread: ThreadId, seq: u64, limit: usize) -> Result<ScanStep> {
        let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(seq, limit) };
        let page = self.messages_as_stored(scope, thread, &query).await?;
        let last = page.messages.last().map(|message| message.seq);
        let last_corrupt = page.corrupt.iter().map(|row| row.seq).max();
        let reached = last.max(last_corrupt).unwrap_or(seq);
        // If a page is empty, the scan ends even if the page claims that there is more. Otherwise the scan would never end.
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
