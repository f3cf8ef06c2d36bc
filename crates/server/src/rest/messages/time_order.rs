//! Pages of messages ordered by time, and by position if times are equal. A page starts at the time and the position of a
//! message, so that no message is skipped or repeated if times are equal.

use std::fmt;
use std::str::FromStr;

use threadkeep::core::limits::PAGE;
use threadkeep::core::{CorruptRow, RangeEnd, TaggedNumber};
use threadkeep::{Bound, Memory, Message, MessageQuery, OnCorrupt, OrderBy, Role, Scope, ThreadId, Timestamp};

use crate::error::Result;

/// A place in the order by time: after or before the message with this time and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimePosition {
    at: Timestamp,
    seq: u64,
}

impl fmt::Display for TimePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.at, self.seq)
    }
}

impl FromStr for TimePosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (at, seq) = text.rsplit_once(',').ok_or(())?;
        Ok(Self { at: at.parse().map_err(|_| ())?, seq: seq.parse().map_err(|_| ())? })
    }
}

/// A query for a page.
#[derive(Clone, Debug)]
pub(super) struct TimeQuery {
    pub(super) range_end: RangeEnd,
    /// Where the page starts; `None` for the first page.
    pub(super) start: Option<TimePosition>,
    pub(super) before: Option<Timestamp>,
    pub(super) after: Option<Timestamp>,
    pub(super) roles: Vec<Role>,
    pub(super) limit: usize,
}

/// A page. Messages are in the requested order.
#[derive(Debug)]
pub(super) struct TimePage {
    pub(super) messages: Vec<Message>,
    pub(super) corrupt: Vec<CorruptRow>,
    pub(super) next: Option<TimePosition>,
    pub(super) change: TaggedNumber,
}

/// Reads a page.
pub(super) async fn read(memory: &Memory, scope: &Scope, thread: ThreadId, query: &TimeQuery) -> Result<TimePage> {
    let mut messages = match query.start {
        Some(start) => read_same_time(memory, scope, thread, query, start).await?,
        None => Vec::new(),
    };
    let remaining = query.limit.saturating_sub(messages.len());
    // At least one message is read, to find out whether there is a next page.
    let rest = rest_query(query, remaining.max(1));
    let mut page = memory.messages(scope, thread, &rest).await?;
    if query.range_end == RangeEnd::Newest {
        page.messages.reverse();
    }
    let is_full = remaining == 0;
    let has_more = page.more || messages.len() > query.limit || (is_full && !page.messages.is_empty());
    if !is_full {
        messages.append(&mut page.messages);
    }
    messages.truncate(query.limit);
    let last = messages.last().map(|message| TimePosition { at: message.created_at, seq: message.seq });
    let corrupt = if is_full { Vec::new() } else { page.corrupt };
    Ok(TimePage { messages, corrupt, next: last.filter(|_| has_more), change: page.positions.tagged() })
}

/// Returns the query for the messages whose time differs from that of the start.
fn rest_query(query: &TimeQuery, limit: usize) -> MessageQuery {
    let (mut before, mut after) = (query.before.map(Bound::Time), query.after.map(Bound::Time));
    match (query.start, query.range_end) {
        (Some(start), RangeEnd::Newest) => before = Some(Bound::Time(start.at)),
        (Some(start), RangeEnd::Oldest) => after = Some(Bound::Time(start.at)),
        (None, _) => {}
    }
    MessageQuery {
        before,
        after,
        roles: query.roles.clone(),
        order: OrderBy::Time,
        take: query.range_end,
        on_corrupt: OnCorrupt::Report,
        ..MessageQuery::newest(limit)
    }
}

/// Reads the messages that follow the start and have the same time, in the requested order: at least one more than fits on the
/// page, if there are that many.
async fn read_same_time(
    memory: &Memory,
    scope: &Scope,
    thread: ThreadId,
    query: &TimeQuery,
    start: TimePosition,
) -> Result<Vec<Message>> {
    let neighbour = |micros: i64| Timestamp::from_micros(start.at.as_micros() + micros).ok().map(Bound::Time);
    let mut found = Vec::new();
    let mut seq = start.seq;
    loop {
        let (before, after) = match query.range_end {
            RangeEnd::Newest => (Some(Bound::Seq(seq)), neighbour(-1)),
            RangeEnd::Oldest => (neighbour(1), Some(Bound::Seq(seq))),
        };
        let messages = MessageQuery {
            before,
            after,
            roles: query.roles.clone(),
            take: query.range_end,
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::newest(PAGE)
        };
        let mut page = memory.messages(scope, thread, &messages).await?;
        if query.range_end == RangeEnd::Newest {
            page.messages.reverse();
        }
        let last = page.messages.last().map(|message| message.seq);
        // If messages were not appended in the order of their times, messages of other times may be between those of the same
        // time.
        found.extend(page.messages.into_iter().filter(|message| message.created_at == start.at));
        match last {
            Some(last) if page.more && found.len() <= query.limit => seq = last,
            _ => return Ok(found),
        }
    }
}
