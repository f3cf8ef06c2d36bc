//! Reads messages and changes.

use std::collections::BTreeSet;

use threadkeep_core::{
    Change, ChangePage, CorruptRow, DumpEntry, DumpedCommit, Effect, Message, MessagePage, MessageQuery, MessageRef,
    OrderBy, PageBuilder, RangeEnd, Result, Scope, StoreError, TaggedNumber, ThreadId, Timestamp, codec, limits,
};

use super::{State, StoredThread};

impl State {
    pub(crate) fn list_messages(
        &self,
        scope: &Scope,
        id: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        query.check()?;
        let (stored, _) = self.find_live(scope, id, now)?;
        let mut rows = stored.matching_rows(query);
        if query.order == OrderBy::Time {
            rows.sort_by_key(|row| (row.created_at, row.seq));
        }
        if query.take == RangeEnd::Newest {
            rows.reverse();
        }
        let mut page = PageBuilder::new(query, stored.row.positions);
        for Row { seq, bytes, message, .. } in rows {
            let read = || message.map_err(|error| CorruptRow { seq, detail: error.to_string() });
            if !page.push(bytes, read)? {
                break;
            }
        }
        Ok(page.finish())
    }

    pub(crate) fn find_messages(
        &self,
        scope: &Scope,
        id: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        limits::check_at_most("message references", messages.len(), limits::PAGE)?;
        let (stored, _) = self.find_live(scope, id, now)?;
        let seqs: BTreeSet<u64> = messages.iter().filter_map(|reference| stored.resolve_seq(reference)).collect();
        seqs.iter().filter_map(|seq| stored.entries.get(seq).and_then(decode)).collect()
    }

    pub(crate) fn list_changes(
        &self,
        scope: &Scope,
        id: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        limits::check_page(limit)?;
        let (stored, _) = self.find_live(scope, id, now)?;
        let positions = stored.row.positions;
        let oldest = stored.commits.keys().next().copied().unwrap_or(positions.change + 1);
        let logged = stored.commits.get(&after.number).map(DumpedCommit::tag);
        if !positions.can_continue_from(after, logged) || after.number + 1 < oldest {
            return Ok(ChangePage::Reset { positions });
        }
        let changes = stored.commits.range(after.number + 1..).take(limit).map(|(_, commit)| to_change(commit));
        Ok(ChangePage::Changes { changes: changes.collect(), positions })
    }
}

fn to_change(commit: &DumpedCommit) -> Change {
    let &DumpedCommit { change, at, first_seq, count, .. } = commit;
    let tag = Some(commit.tag());
    let appended = (count > 0).then_some(Effect::Appended { first_seq, count });
    Change { change, tag, at, effects: appended.into_iter().chain(commit.effects.iter().cloned()).collect() }
}

/// A message, which may be corrupt.
struct Row {
    seq: u64,
    bytes: usize,
    created_at: Timestamp,
    message: Result<Message, StoreError>,
}

impl StoredThread {
    fn matching_rows(&self, query: &MessageQuery) -> Vec<Row> {
        let rows = self.entries.values().filter_map(|entry| match entry {
            DumpEntry::Message { seq, created_at, body, .. } => {
                Some(Row { seq: *seq, bytes: body.len(), created_at: *created_at, message: decode(entry)? })
            }
            DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => None,
        });
        let in_range = rows.filter(|row| {
            query.before.is_none_or(|bound| bound.is_after(row.seq, row.created_at))
                && query.after.is_none_or(|bound| bound.is_before(row.seq, row.created_at))
        });
        // The role of a corrupt message is unknown, so the message is included for every role.
        let with_role = in_range.filter(|row| match &row.message {
            Ok(message) => query.roles.is_empty() || query.roles.contains(&message.content.role),
            Err(_) => true,
        });
        with_role.collect()
    }

    fn resolve_seq(&self, reference: &MessageRef) -> Option<u64> {
        match reference {
            MessageRef::Seq(seq) => Some(*seq),
            MessageRef::Id(id) => self.find_message_seq(*id),
            MessageRef::External(external_id) => self.seq_of_external_id.get(external_id).copied(),
        }
    }
}

/// Decodes the message in an entry; `None` for a tombstone and for lost positions.
pub(crate) fn decode(entry: &DumpEntry) -> Option<Result<Message>> {
    match entry {
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => None,
        DumpEntry::Message { seq, id, external_id, revision, created_at, body, .. } => {
            Some(codec::decode_content(body).map(|content| Message {
                seq: *seq,
                id: *id,
                external_id: external_id.clone(),
                revision: *revision,
                created_at: *created_at,
                content,
            }))
        }
    }
}
