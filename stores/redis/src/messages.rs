//! Reads messages.

use std::collections::BTreeSet;

use threadkeep_core::{
    Bound, CorruptRow, DumpEntry, Message, MessagePage, MessageQuery, MessageRef, OrderBy, PageBuilder, RangeEnd,
    Result, Scope, ThreadId, Timestamp, limits,
};

use crate::encoding::{is_tombstone, to_message};
use crate::reply::Reply;
use crate::shared::{Request, RowRange, Shared, View, parse_entries, until_written};

/// The maximum number of rows of one call.
const MAX_ROWS: usize = 1_001;
/// The maximum number of bytes of one call. A page that ends early has at least this many bytes.
const MAX_BYTES: usize = limits::PAGE_BYTES + 1;

/// The maximum number of rows that are read without a function.
const MAX_DIRECT_ROWS: usize = 64;

impl Shared {
    pub(crate) async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        query.check()?;
        if let Some(view) = self.read_directly(scope, thread, first_range(query), now).await?
            && let Some(page) = self.finish_page(scope, thread, query, view).await?
        {
            return Ok(page);
        }
        until_written!({
            let request = Request::rows(first_range(query));
            let view = self.read_accessible(scope, thread, &request, now).await?;
            self.finish_page(scope, thread, query, view).await
        })
    }

    /// Reads few rows of a thread that this process knows, without a function: a function makes copies of the rows. Returns `None` if the
    /// thread may have changed, or some of the rows are not messages.
    async fn read_directly(
        &self,
        scope: &Scope,
        thread: ThreadId,
        range: RowRange,
        now: Timestamp,
    ) -> Result<Option<View>> {
        let Some((revision, row)) = self.rows.find(scope.tenant_id(), thread) else { return Ok(None) };
        if range.limit > MAX_DIRECT_ROWS || !row.gaps.is_empty() || row.accessible(scope, now).is_none() {
            return Ok(None);
        }
        let positions = row.positions();
        let (low, high) = (range.first.max(positions.first_seq), range.last.min(positions.seq));
        let count = (high + 1).saturating_sub(low).min(range.limit as u64);
        if count == 0 {
            return Ok(None);
        }
        let (seqs, next): (Vec<u64>, _) = match range.is_newest_first {
            true => ((high + 1 - count..=high).rev().collect(), (high + 1 - count > low).then(|| high - count)),
            false => ((low..low + count).collect(), (low + count <= high).then_some(low + count)),
        };
        let base = self.keys.thread(scope.tenant_id(), thread);
        let mut read_revision = redis::cmd("HGET");
        read_revision.arg(format!("{base}:t")).arg("rev");
        let mut read_rows = redis::cmd("HMGET");
        read_rows.arg(format!("{base}:m")).arg(&seqs);
        // If the revision is the same before and after, nothing was written in between.
        let commands = [read_revision.clone(), read_rows, read_revision];
        let Some(replies) = self.connections.try_read_together(&commands).await else { return Ok(None) };
        let Ok([before, rows, after]) = <[redis::Value; 3]>::try_from(replies) else { return Ok(None) };
        if before.text()?.as_ref() != Some(&revision) || after.text()?.as_ref() != Some(&revision) {
            return Ok(None);
        }
        let rows = rows.items()?.into_iter().map(Reply::bytes).collect::<Result<Option<Vec<_>>>>()?;
        let rows = rows.filter(|rows| rows.len() == seqs.len() && !rows.iter().any(|row| is_tombstone(row)));
        let Some(rows) = rows else { return Ok(None) };
        let rows = seqs.into_iter().zip(rows).collect();
        Ok(Some(View { revision, row, rows, next, records: Vec::new(), lists: Vec::new() }))
    }

    /// Builds a page; `view` contains its first rows. Returns `None` if the thread changed before the other rows were read.
    pub(crate) async fn finish_page(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        view: View,
    ) -> Result<Option<MessagePage>> {
        if query.order == OrderBy::Time {
            return self.page_by_time(scope, thread, query, view).await;
        }
        let mut page = PageBuilder::new(query, view.row.positions());
        let View { revision, mut rows, mut next, .. } = view;
        loop {
            for (seq, entry) in parse_entries(&rows) {
                if !push(&mut page, query, seq, entry)? {
                    return Ok(Some(page.finish()));
                }
            }
            let Some(at) = next else { return Ok(Some(page.finish())) };
            let range = continue_at(first_range(query), at);
            let Some(view) = self.read(scope.tenant_id(), thread, &Request::rows(range)).await? else {
                return Ok(None);
            };
            if view.revision != revision {
                return Ok(None);
            }
            (rows, next) = (view.rows, view.next);
        }
    }

    /// Builds a page in order of time. Reads the whole thread, because rows are sorted by position.
    async fn page_by_time(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        view: View,
    ) -> Result<Option<MessagePage>> {
        let (positions, revision) = (view.row.positions(), view.revision);
        let (mut entries, mut next) = (Vec::new(), view.next);
        entries.extend(parse_entries(&view.rows));
        while let Some(at) = next {
            let range = continue_at(first_range(query), at);
            let Some(view) = self.read(scope.tenant_id(), thread, &Request::rows(range)).await? else {
                return Ok(None);
            };
            if view.revision != revision {
                return Ok(None);
            }
            entries.extend(parse_entries(&view.rows));
            next = view.next;
        }
        entries.sort_by_key(|(seq, entry)| match entry {
            Ok(DumpEntry::Message { created_at, .. }) => (Some(*created_at), *seq),
            _ => (None, *seq),
        });
        if query.take == RangeEnd::Newest {
            entries.reverse();
        }
        let mut page = PageBuilder::new(query, positions);
        for (seq, entry) in entries {
            if !push(&mut page, query, seq, entry)? {
                break;
            }
        }
        Ok(Some(page.finish()))
    }

    pub(crate) async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        limits::check_at_most("message references", messages.len(), limits::PAGE)?;
        until_written!({
            let view = self.read_accessible(scope, thread, &Request::row(), now).await?;
            let base = self.keys.thread(scope.tenant_id(), thread);
            let positions = view.row.positions();
            let mut seqs: BTreeSet<u64> = BTreeSet::new();
            seqs.extend(messages.iter().filter_map(|name| match name {
                MessageRef::Seq(seq) => Some(*seq),
                _ => None,
            }));
            let ids = messages.iter().filter_map(|name| match name {
                MessageRef::Id(id) => Some(id.0.as_bytes().to_vec()),
                _ => None,
            });
            seqs.extend(self.find_seqs(&format!("{base}:i"), ids.collect()).await?);
            let external_ids = messages.iter().filter_map(|name| match name {
                MessageRef::External(id) => Some(id.clone().into_bytes()),
                _ => None,
            });
            seqs.extend(self.find_seqs(&format!("{base}:x"), external_ids.collect()).await?);
            let seqs = seqs.range(positions.first_seq..=positions.seq.max(positions.first_seq)).copied().collect();
            let entries = self.read_entries(&base, seqs).await?;
            let again = self.read(scope.tenant_id(), thread, &Request::row()).await?;
            if again.is_none_or(|again| again.revision != view.revision) {
                return Ok(None);
            }
            entries.iter().filter_map(to_message).collect::<Result<Vec<_>>>().map(Some)
        })
    }

    async fn find_seqs(&self, key: &str, ids: Vec<Vec<u8>>) -> Result<Vec<u64>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut read = redis::cmd("HMGET");
        read.arg(key).arg(&ids);
        let found = self.connections.look_up(&read).await?.items()?.into_iter().map(Reply::text);
        let found = found.collect::<Result<Vec<_>>>()?;
        Ok(found.into_iter().flatten().filter_map(|seq| seq.parse().ok()).collect())
    }
}

/// The rows that the first call for a page reads.
pub(crate) fn first_range(query: &MessageQuery) -> RowRange {
    let by_seq = query.order == OrderBy::Seq;
    let last = match query.before {
        Some(Bound::Seq(before)) => before.saturating_sub(1),
        _ => limits::LAST_POSITION,
    };
    let first = match query.after {
        Some(Bound::Seq(after)) => after.saturating_add(1),
        _ => 0,
    };
    let is_filtered = !query.roles.is_empty()
        || matches!(query.before, Some(Bound::Time(_)))
        || matches!(query.after, Some(Bound::Time(_)));
    let limit = if by_seq && !is_filtered { query.limit + 1 } else { MAX_ROWS };
    let is_newest_first = by_seq && query.take == RangeEnd::Newest;
    RowRange { is_newest_first, first, last, limit, bytes: MAX_BYTES, with_tombstones: false }
}

fn continue_at(range: RowRange, at: u64) -> RowRange {
    if range.is_newest_first { RowRange { last: at, ..range } } else { RowRange { first: at, ..range } }
}

/// Adds a row to a page, if the query includes it. Returns whether the page accepts more.
fn push(page: &mut PageBuilder<'_>, query: &MessageQuery, seq: u64, entry: Result<DumpEntry>) -> Result<bool> {
    let corrupt = |error: threadkeep_core::StoreError| CorruptRow { seq, detail: error.to_string() };
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => return page.push(0, || Err(corrupt(error))),
    };
    let DumpEntry::Message { created_at, body, .. } = &entry else { return Ok(true) };
    let is_in_range = query.before.is_none_or(|bound| bound.is_after(seq, *created_at))
        && query.after.is_none_or(|bound| bound.is_before(seq, *created_at));
    let Some(message) = to_message(&entry).filter(|_| is_in_range) else { return Ok(true) };
    // The role of a corrupt message is unknown, so it passes every filter by role.
    let is_included = match &message {
        Ok(message) => query.roles.is_empty() || query.roles.contains(&message.content.role),
        Err(_) => true,
    };
    if !is_included {
        return Ok(true);
    }
    page.push(body.len(), || message.map_err(corrupt))
}
