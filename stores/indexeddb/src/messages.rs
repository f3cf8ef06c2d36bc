//! Reads messages and changes.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use threadkeep_core::{
    Bound, Change, ChangePage, ChangesWithMessages, CorruptRow, DumpEntry, DumpedCommit, Effect, Message, MessagePage,
    MessageQuery, MessageRef, OrderBy, PageBuilder, RangeEnd, Result, Scope, TaggedNumber, ThreadId, Timestamp, limits,
};

use crate::idb::{Range, Transaction};
use crate::keys::{self, index};
use crate::rows::{ThreadRow, decode, find_live, parse_commit, parse_entry};

/// How many rows are read at once after the first ones.
const BATCH: usize = 256;

pub(crate) async fn list_messages(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    query: &MessageQuery,
    now: Timestamp,
) -> Result<MessagePage> {
    query.check()?;
    let (row, _) = find_live(transaction, scope, id, now).await?;
    read_page(transaction, &row, query).await
}

/// Reads a page of a thread.
pub(crate) async fn read_page(transaction: &Transaction, row: &ThreadRow, query: &MessageQuery) -> Result<MessagePage> {
    let mut page = PageBuilder::new(query, row.thread.positions);
    let mut reader = EntryReader::new(transaction, row, query);
    if query.order == OrderBy::Time {
        let mut rows = Vec::new();
        while let Some(entries) = reader.next().await? {
            rows.extend(entries.into_iter().filter_map(|entry| Row::matching(&entry, query)));
        }
        rows.sort_by_key(|row| (row.created_at, row.seq));
        if query.take == RangeEnd::Newest {
            rows.reverse();
        }
        for row in rows {
            if !row.add_to(&mut page)? {
                break;
            }
        }
        return Ok(page.finish());
    }
    'page: while let Some(entries) = reader.next().await? {
        for entry in entries {
            let row = Row::matching(&entry, query);
            if let Some(row) = row
                && !row.add_to(&mut page)?
            {
                break 'page;
            }
        }
    }
    Ok(page.finish())
}

/// Reads the entries of a thread in batches, in the order of their positions or, for the newest messages, in reverse.
struct EntryReader<'a> {
    transaction: &'a Transaction,
    row: &'a ThreadRow,
    /// The positions that remain: from the first to before the second.
    start: u64,
    end: u64,
    is_reversed: bool,
    batch: usize,
}

impl<'a> EntryReader<'a> {
    fn new(transaction: &'a Transaction, row: &'a ThreadRow, query: &MessageQuery) -> Self {
        let positions = row.thread.positions;
        let start = match query.after {
            Some(Bound::Seq(after)) => after.saturating_add(1).max(positions.first_seq),
            _ => positions.first_seq,
        };
        let end = match query.before {
            Some(Bound::Seq(before)) => before.min(positions.seq + 1),
            _ => positions.seq + 1,
        };
        let is_reversed = query.take == RangeEnd::Newest && query.order == OrderBy::Seq;
        // One more row than the page has shows whether there are more.
        Self { transaction, row, start, end, is_reversed, batch: query.limit.saturating_add(1).min(BATCH) }
    }

    async fn next(&mut self) -> Result<Option<Vec<DumpEntry>>> {
        if self.start >= self.end {
            return Ok(None);
        }
        let entries = if self.is_reversed { self.read_reversed().await? } else { self.read().await? };
        self.batch = BATCH;
        Ok(Some(entries))
    }

    async fn read(&mut self) -> Result<Vec<DumpEntry>> {
        let entries = parse_all(&self.transaction.range(&self.range(self.start), self.batch).await?)?;
        self.start = match entries.last() {
            Some(last) if entries.len() == self.batch => last.seq() + 1,
            _ => self.end,
        };
        Ok(entries)
    }

    /// Positions have no gaps unless data was lost, so a range of positions has that many rows.
    async fn read_reversed(&mut self) -> Result<Vec<DumpEntry>> {
        let start = self.end.saturating_sub(self.batch as u64).max(self.start);
        let mut entries = parse_all(&self.transaction.range(&self.range(start), self.batch).await?)?;
        self.end = start;
        if entries.is_empty() {
            let last = self.transaction.last_key(&self.range(self.start)).await?;
            let last = last.and_then(|key| keys::parse_entry(&key));
            self.end = last.map_or(self.start, |(_, seq)| seq + 1);
        }
        entries.reverse();
        Ok(entries)
    }

    fn range(&self, start: u64) -> Range {
        keys::entries(&self.row.tenant, self.row.id, start, self.end)
    }
}

fn parse_all(texts: &[String]) -> Result<Vec<DumpEntry>> {
    texts.iter().map(|text| parse_entry(text)).collect()
}

/// A message, which may be corrupt.
struct Row {
    seq: u64,
    bytes: usize,
    created_at: Timestamp,
    message: Result<Message>,
}

impl Row {
    /// Returns the message in an entry, if it passes the filters of a query.
    fn matching(entry: &DumpEntry, query: &MessageQuery) -> Option<Self> {
        let DumpEntry::Message { seq, created_at, body, .. } = entry else { return None };
        let is_in_range = query.before.is_none_or(|bound| bound.is_after(*seq, *created_at))
            && query.after.is_none_or(|bound| bound.is_before(*seq, *created_at));
        if !is_in_range {
            return None;
        }
        let message = decode(entry)?;
        // The role of a corrupt message is unknown, so the message is included for every role.
        let has_role = match &message {
            Ok(message) => query.roles.is_empty() || query.roles.contains(&message.content.role),
            Err(_) => true,
        };
        has_role.then_some(Self { seq: *seq, bytes: body.len(), created_at: *created_at, message })
    }

    fn add_to(self, page: &mut PageBuilder<'_>) -> Result<bool> {
        let Self { seq, bytes, message, .. } = self;
        page.push(bytes, || message.map_err(|error| CorruptRow { seq, detail: error.to_string() }))
    }
}

pub(crate) async fn find_messages(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    messages: &[MessageRef],
    now: Timestamp,
) -> Result<Vec<Message>> {
    limits::check_at_most("message references", messages.len(), limits::PAGE)?;
    let (row, _) = find_live(transaction, scope, id, now).await?;
    let (tenant, first_seq) = (&row.tenant, row.thread.positions.first_seq);
    let texts = try_join_all(messages.iter().map(async |reference| match reference {
        MessageRef::Seq(seq) => transaction.get(&keys::entry(tenant, id, *seq)).await,
        MessageRef::Id(message) => transaction.get_indexed(&index::message(tenant, id, *message)).await,
        MessageRef::External(external_id) => transaction.get_indexed(&index::external(tenant, id, external_id)).await,
    }));
    let entries = texts.await?.into_iter().flatten().map(|text| parse_entry(&text));
    let entries = entries.map(|entry| entry.map(|entry| (entry.seq(), entry))).collect::<Result<BTreeMap<_, _>>>()?;
    entries.range(first_seq..).filter_map(|(_, entry)| decode(entry)).collect()
}

pub(crate) async fn list_changes(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    after: TaggedNumber,
    limit: usize,
    now: Timestamp,
) -> Result<ChangePage> {
    limits::check_page(limit)?;
    let (row, _) = find_live(transaction, scope, id, now).await?;
    let (tenant, positions) = (&row.tenant, row.thread.positions);
    let oldest = transaction.range(&keys::commits(tenant, id), 1).await?;
    let oldest = oldest.first().map(|text| parse_commit(text)).transpose()?;
    let oldest = oldest.map_or(positions.change + 1, |commit| commit.change);
    let logged = transaction.get(&keys::commit(tenant, id, after.number)).await?;
    let logged = logged.map(|text| parse_commit(&text)).transpose()?.map(|commit| commit.tag());
    if !positions.can_continue_from(after, logged) || after.number.saturating_add(1) < oldest {
        return Ok(ChangePage::Reset { positions });
    }
    let commits = transaction.range(&keys::commits_after(tenant, id, after.number), limit).await?;
    let changes = commits.iter().map(|text| parse_commit(text).map(|commit| to_change(&commit)));
    Ok(ChangePage::Changes { changes: changes.collect::<Result<_>>()?, positions })
}

fn to_change(commit: &DumpedCommit) -> Change {
    let &DumpedCommit { change, at, first_seq, count, .. } = commit;
    let appended = (count > 0).then_some(Effect::Appended { first_seq, count });
    let effects = appended.into_iter().chain(commit.effects.iter().cloned()).collect();
    Change { change, tag: Some(commit.tag()), at, effects }
}

pub(crate) async fn list_changes_with_messages(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    after: TaggedNumber,
    limit: usize,
    now: Timestamp,
) -> Result<ChangesWithMessages> {
    let page = list_changes(transaction, scope, id, after, limit, now).await?;
    let messages = match ChangesWithMessages::query(&page) {
        Some(query) => Some(list_messages(transaction, scope, id, &query, now).await?),
        None => None,
    };
    Ok(ChangesWithMessages::new(page, messages))
}
