//! Pages of messages: the query, the page, and its construction in stores.

use crate::{CorruptRow, Message, MessageId, Positions, Result, Role, Timestamp, limits};

/// A query for a page of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageQuery {
    /// Only messages before this bound.
    pub before: Option<Bound>,
    /// Only messages after this bound.
    pub after: Option<Bound>,
    /// Only messages with these roles; empty for all.
    pub roles: Vec<Role>,
    /// The order of the messages, which also determines which of them are oldest and newest.
    pub order: OrderBy,
    /// From which end of the matching range to read.
    pub take: RangeEnd,
    /// The maximum number of messages (1 to [`limits::PAGE`]).
    pub limit: usize,
    /// What to do with a message that cannot be decoded.
    pub on_corrupt: OnCorrupt,
}

impl MessageQuery {
    /// Creates a query for the newest `limit` messages.
    #[must_use]
    pub fn newest(limit: usize) -> Self {
        Self {
            before: None,
            after: None,
            roles: Vec::new(),
            order: OrderBy::Seq,
            take: RangeEnd::Newest,
            limit,
            on_corrupt: OnCorrupt::Fail,
        }
    }

    /// Creates a query for the first `limit` messages after a position.
    #[must_use]
    pub fn following(seq: u64, limit: usize) -> Self {
        Self { after: Some(Bound::Seq(seq)), take: RangeEnd::Oldest, ..Self::newest(limit) }
    }

    /// Checks the limit.
    ///
    /// # Errors
    /// `Invalid` for 0, `LimitExceeded` for more than [`limits::PAGE`].
    pub fn check(&self) -> Result<()> {
        limits::check_page(self.limit)
    }
}

/// An exclusive bound of a range of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// By position.
    Seq(u64),
    /// By `created_at`.
    Time(Timestamp),
}

impl Bound {
    /// Whether the bound is after a message with this `seq` and `created_at`.
    #[must_use]
    pub fn is_after(self, seq: u64, created_at: Timestamp) -> bool {
        match self {
            Self::Seq(bound) => seq < bound,
            Self::Time(bound) => created_at < bound,
        }
    }

    /// Whether the bound is before a message with this `seq` and `created_at`.
    #[must_use]
    pub fn is_before(self, seq: u64, created_at: Timestamp) -> bool {
        match self {
            Self::Seq(bound) => seq > bound,
            Self::Time(bound) => created_at > bound,
        }
    }
}

/// The order of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderBy {
    /// By position: the order of appending.
    Seq,
    /// By `created_at`, then position.
    Time,
}

/// The end of a range from which to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// Reads the last messages.
    Newest,
    /// Reads the first messages.
    Oldest,
}

/// What to do with a stored message that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCorrupt {
    /// Fail with `Corrupt`.
    Fail,
    /// List it in [`MessagePage::corrupt`], so that one damaged row does not hide the others. The row counts towards the limit and is
    /// listed even if the query filters by role.
    Report,
}

/// A page of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePage {
    /// The messages, in ascending order of [`MessageQuery::order`].
    pub messages: Vec<Message>,
    /// The messages that cannot be decoded, if the query uses [`OnCorrupt::Report`].
    pub corrupt: Vec<CorruptRow>,
    /// Whether more messages match, in the direction of reading.
    pub more: bool,
    /// The positions of the thread when the page was read.
    pub positions: Positions,
}

/// Builds a page row by row, in the order of reading, up to its limits.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    query: &'a MessageQuery,
    page: MessagePage,
    bytes: usize,
    max_bytes: usize,
}

impl<'a> PageBuilder<'a> {
    /// Starts a page of a thread that is at `positions`.
    #[must_use]
    pub fn new(query: &'a MessageQuery, positions: Positions) -> Self {
        let messages = Vec::with_capacity(query.limit.min(64));
        let page = MessagePage { messages, corrupt: Vec::new(), more: false, positions };
        Self { query, page, bytes: 0, max_bytes: limits::PAGE_BYTES }
    }

    /// Sets the number of stored bytes after which the page ends. Default: [`limits::PAGE_BYTES`].
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Adds the next row. `bytes` is the stored size of its content, `read` decodes it. If the page is already complete, returns
    /// `false` and does not call `read`.
    ///
    /// # Errors
    /// `Corrupt` for a row that cannot be decoded, unless the query uses [`OnCorrupt::Report`].
    pub fn push(&mut self, bytes: usize, read: impl FnOnce() -> Result<Message, CorruptRow>) -> Result<bool> {
        let page = &mut self.page;
        if page.messages.len() + page.corrupt.len() >= self.query.limit || self.bytes >= self.max_bytes {
            page.more = true;
            return Ok(false);
        }
        self.bytes += bytes;
        match read() {
            Ok(message) => page.messages.push(message),
            Err(corrupt) if self.query.on_corrupt == OnCorrupt::Report => page.corrupt.push(corrupt),
            Err(corrupt) => return Err(corrupt.into()),
        }
        Ok(true)
    }

    /// Returns the page, in ascending order.
    #[must_use]
    pub fn finish(mut self) -> MessagePage {
        if self.query.take == RangeEnd::Newest {
            self.page.messages.reverse();
            self.page.corrupt.reverse();
        }
        self.page
    }
}

/// Identifies a message in a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MessageRef {
    /// By position.
    Seq(u64),
    /// By id.
    Id(MessageId),
    /// By external id.
    External(String),
}
