//! Reading several parts of a thread as of one instant.

use crate::{MessagePage, MessageQuery, Record, RecordName, RecordQuery, Result, Thread, limits};

/// What [`crate::Store::read_thread`] reads in addition to the thread's row. Default: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRead {
    /// A page of messages.
    pub messages: Option<MessageQuery>,
    /// Records of the thread, by name.
    pub records: Vec<RecordName>,
    /// Pages of records of any owner that the scope can read, such as the preferences of its user.
    pub lists: Vec<RecordQuery>,
}

impl ThreadRead {
    /// Creates a request for a page of messages.
    #[must_use]
    pub fn page(query: MessageQuery) -> Self {
        Self { messages: Some(query), ..Self::default() }
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// `Invalid` if the limit of a page is 0, `LimitExceeded` if it exceeds [`limits::PAGE`], or if there are more than
    /// [`limits::READ_RECORDS`] names and lists together.
    pub fn check(&self) -> Result<()> {
        limits::check_count("records and lists per read", self.records.len() + self.lists.len(), limits::READ_RECORDS)?;
        self.messages.as_ref().map_or(Ok(()), MessageQuery::check)?;
        self.lists.iter().try_for_each(RecordQuery::check)
    }
}

/// A thread as of one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadView {
    /// The thread, without its messages.
    pub thread: Thread,
    /// The requested page of messages.
    pub page: Option<MessagePage>,
    /// The requested records, in the order of the request; `None` for one that does not exist.
    pub records: Vec<Option<Record>>,
    /// The requested lists, in the order of the request.
    pub lists: Vec<Vec<Record>>,
}
