//! Reads the change log of a thread.

use threadkeep_core::{
    Change, ChangePage, ChangesWithMessages, DumpedCommit, Effect, Kind, Result, Scope, StoreError, TaggedNumber,
    ThreadId, Timestamp, limits,
};

use crate::args::Args;
use crate::encoding::decode_commit;
use crate::reply::{Reply, next, required_text};
use crate::row::Row;
use crate::shared::Shared;

impl Shared {
    pub(crate) async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        limits::check_page(limit)?;
        let base = self.keys.thread(scope.tenant_id(), thread);
        let mut args = Args::new();
        args.number(after.number.min(limits::LAST_POSITION)).number(limit);
        let mut parts = self.connections.read("changes", &base, &args).await?.items()?.into_iter();
        if parts.next().is_none() {
            return Err(StoreError::NotFound(Kind::Thread));
        }
        let row = Row::parse(&required_text(next(&mut parts)?)?)?;
        if row.accessible(scope, now).is_none() {
            return Err(StoreError::NotFound(Kind::Thread));
        }
        let commits = next(&mut parts)?
            .items()?
            .into_iter()
            .map(|commit| commit.bytes().and_then(|commit| commit.map(|commit| decode_commit(&commit)).transpose()));
        let mut commits = commits.collect::<Result<Vec<_>>>()?.into_iter();
        let positions = row.positions();
        let logged = commits.next().flatten().map(|commit| commit.tag());
        if !positions.can_continue_from(after, logged) || after.number + 1 < row.oldest_change() {
            return Ok(ChangePage::Reset { positions });
        }
        Ok(ChangePage::Changes { changes: commits.flatten().map(|commit| to_change(&commit)).collect(), positions })
    }

    pub(crate) async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        let page = self.list_changes(scope, thread, after, limit, now).await?;
        let messages = match ChangesWithMessages::query(&page) {
            Some(query) => Some(self.list_messages(scope, thread, &query, now).await?),
            None => None,
        };
        Ok(ChangesWithMessages::new(page, messages))
    }
}

impl Row {
    /// Returns the oldest change in the log; the number of the next change if the log is empty.
    pub(crate) fn oldest_change(&self) -> u64 {
        if self.log_at.is_some() { self.log_from } else { self.positions().change + 1 }
    }
}

fn to_change(commit: &DumpedCommit) -> Change {
    let &DumpedCommit { change, at, first_seq, count, .. } = commit;
    let appended = (count > 0).then_some(Effect::Appended { first_seq, count });
    let effects = appended.into_iter().chain(commit.effects.iter().cloned()).collect();
    Change { change, tag: Some(commit.tag()), at, effects }
}
