//! Lists the changed threads of a user or a tenant.

use threadkeep_core::{Access, ChangedThread, ChangedThreads, Result, Scope, Timestamp, UserCursor, limits};

use super::State;

impl State {
    pub(crate) fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        limits::check_page(limit)?;
        let Some(after) = after else { return Ok(self.no_changes(false)) };
        let Some(after) = self.parse_cursor(after) else { return Ok(self.no_changes(true)) };
        let mut changed = self.changed_after(scope, after, now);
        changed.sort_by_key(|(stamp, _)| *stamp);
        let more = changed.len() > limit;
        changed.truncate(limit);
        let last_stamp = changed.last().filter(|_| more).map_or(self.stamp, |(stamp, _)| *stamp);
        Ok(ChangedThreads {
            threads: changed.into_iter().map(|(_, thread)| thread).collect(),
            cursor: self.cursor_at(last_stamp),
            more,
            reset: false,
        })
    }

    fn changed_after(&self, scope: &Scope, after: u64, now: Timestamp) -> Vec<(u64, ChangedThread)> {
        let Some(tenant) = self.tenants.get(scope.tenant_id()) else { return Vec::new() };
        let live = self.threads_with_full_access(scope, now).map(|(id, stored)| {
            let positions = Some(stored.row.positions);
            (stored.stamp, ChangedThread { id, owner: stored.row.owner.clone(), positions })
        });
        let deleted = tenant
            .deleted
            .iter()
            .filter(|(id, deleted)| scope.access(&deleted.owner) == Access::Full && !tenant.threads.contains_key(id))
            .map(|(id, deleted)| {
                (deleted.stamp, ChangedThread { id: *id, owner: deleted.owner.clone(), positions: None })
            });
        live.chain(deleted).filter(|(stamp, _)| *stamp > after).collect()
    }

    fn no_changes(&self, reset: bool) -> ChangedThreads {
        ChangedThreads { threads: Vec::new(), cursor: self.cursor_at(self.stamp), more: false, reset }
    }

    fn cursor_at(&self, stamp: u64) -> UserCursor {
        UserCursor(format!("{}-{stamp}", self.incarnation.simple()))
    }

    /// Returns the stamp in a cursor; `None` if the cursor is from another store or too old.
    fn parse_cursor(&self, cursor: &UserCursor) -> Option<u64> {
        let (incarnation, stamp) = cursor.0.split_once('-')?;
        let stamp = stamp.parse().ok()?;
        let is_own = incarnation == self.incarnation.simple().to_string();
        (is_own && (self.swept_stamp..=self.stamp).contains(&stamp)).then_some(stamp)
    }
}
