//! What is read of one thread at one instant.

use crate::{MessagePage, MessageQuery, Record, RecordName, RecordQuery, Result, Thread, limits};

/// What to read beside a thread's own row ([`crate::Store::read_thread`]). The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRead {
    /// A page of its messages.
    pub messages: Option<MessageQuery>,
    /// Records of the thread, by name.
    pub records: Vec<RecordName>,
    /// Pages of records of whomever the scope reaches, such as the preferences of its user.
    pub lists: Vec<RecordQuery>,
}

impl ThreadRead {
    /// Reads a page of messages.
    #[must_use]
    pub fn page(query: MessageQuery) -> Self {
        Self { messages: Some(query), ..Self::default() }
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0, `LimitExceeded` over [`limits::PAGE`], and for more than [`limits::READ_RECORDS`] names
    /// and lists.
    pub fn check(&self) -> Result<()> {
        limits::check_count("documents of a read", self.records.len() + self.lists.len(), limits::READ_RECORDS)?;
        self.messages.as_ref().map_or(Ok(()), MessageQuery::check)?;
        self.lists.iter().try_for_each(RecordQuery::check)
    }
}

/// A thread as it stood at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadView {
    /// Its own row.
    pub thread: Thread,
    /// The page of its messages, where one was asked for.
    pub page: Option<MessagePage>,
    /// The records that were named, in that order; `None` for one that is not there.
    pub records: Vec<Option<Record>>,
    /// The lists that were asked for, in that order.
    pub lists: Vec<Vec<Record>>,
}
