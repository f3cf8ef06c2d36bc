//! Pages of messages: what is asked for, how a page is filled, what comes back.

use crate::{CorruptRow, Message, MessageId, Positions, Result, Role, Timestamp, limits};

/// Which messages to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageQuery {
    /// Only those before this, exclusive.
    pub before: Option<Bound>,
    /// Only those after this, exclusive.
    pub after: Option<Bound>,
    /// Only these roles; empty for all.
    pub roles: Vec<Role>,
    /// In which order.
    pub order: OrderBy,
    /// Which end of what is left.
    pub take: RangeEnd,
    /// At most so many (1 to [`limits::PAGE`]).
    pub limit: usize,
    /// What to do with a message that does not decode.
    pub on_corrupt: OnCorrupt,
}

impl MessageQuery {
    /// The newest `limit` messages.
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

    /// The first `limit` messages after a position.
    #[must_use]
    pub fn following(seq: u64, limit: usize) -> Self {
        Self { after: Some(Bound::Seq(seq)), take: RangeEnd::Oldest, ..Self::newest(limit) }
    }

    /// Checks the limit.
    ///
    /// # Errors
    /// `Invalid` for 0, `LimitExceeded` over [`limits::PAGE`].
    pub fn check(&self) -> Result<()> {
        limits::check_page(self.limit)
    }
}

/// An exclusive end of a range of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// By position.
    Seq(u64),
    /// By `created_at`.
    Time(Timestamp),
}

impl Bound {
    /// Whether a message at `seq` and `created_at` stands before this bound.
    #[must_use]
    pub fn is_after(self, seq: u64, created_at: Timestamp) -> bool {
        match self {
            Self::Seq(bound) => seq < bound,
            Self::Time(bound) => created_at < bound,
        }
    }

    /// Whether a message at `seq` and `created_at` stands behind this bound.
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

/// Which end of a range to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// The last ones.
    Newest,
    /// The first ones.
    Oldest,
}

/// What to do with a stored message that does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCorrupt {
    /// Fail with `Corrupt`.
    Fail,
    /// Tell of it beside the others, so that one broken row does not hide the rest. It counts towards the limit, and no
    /// filter by role leaves it out.
    Report,
}

/// A page of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePage {
    /// The messages, ascending.
    pub messages: Vec<Message>,
    /// Those that do not decode, where the query asks to be told.
    pub corrupt: Vec<CorruptRow>,
    /// Whether more messages match in the direction of reading.
    pub more: bool,
    /// Where the thread stood at that instant.
    pub positions: Positions,
}

/// Fills a page row by row, in the order of reading, up to its limits.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    query: &'a MessageQuery,
    page: MessagePage,
    bytes: usize,
    max_bytes: usize,
}

impl<'a> PageBuilder<'a> {
    /// Begins a page of a thread that stands at `positions`.
    #[must_use]
    pub fn new(query: &'a MessageQuery, positions: Positions) -> Self {
        let messages = Vec::with_capacity(query.limit.min(64));
        let page = MessagePage { messages, corrupt: Vec::new(), more: false, positions };
        Self { query, page, bytes: 0, max_bytes: limits::PAGE_BYTES }
    }

    /// Ends the page after fewer stored bytes than [`limits::PAGE_BYTES`].
    #[must_use]
    pub fn with_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Takes the next row: how many bytes its content has as stored, and how to read it. Says whether there was room: where
    /// there was none, the row was not read, and the page is complete.
    ///
    /// # Errors
    /// `Corrupt` for a row that does not decode, unless the query asks to be told of it.
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

    /// The page, in ascending order.
    #[must_use]
    pub fn finish(mut self) -> MessagePage {
        if self.query.take == RangeEnd::Newest {
            self.page.messages.reverse();
            self.page.corrupt.reverse();
        }
        self.page
    }
}

/// How one names a message of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MessageName {
    /// By position.
    Seq(u64),
    /// By id.
    Id(MessageId),
    /// By what its source calls it.
    External(String),
}
