//! What changed among all threads of a user or a tenant.

use threadkeep_core::{Access, ChangedThread, ChangedThreads, Result, Scope, Timestamp, UserCursor};

use super::{State, check_limit};

impl State {
    pub(crate) fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        check_limit(limit)?;
        let Some(after) = after else { return Ok(self.nothing_changed(false)) };
        let Some(after) = self.read_cursor(after) else { return Ok(self.nothing_changed(true)) };
        let mut changed = self.changed_since(scope, after, now);
        changed.sort_by_key(|(stamp, _)| *stamp);
        let more = changed.len() > limit;
        changed.truncate(limit);
        let reached = changed.last().filter(|_| more).map_or(self.stamp, |(stamp, _)| *stamp);
        Ok(ChangedThreads {
            threads: changed.into_iter().map(|(_, thread)| thread).collect(),
            cursor: self.cursor_at(reached),
            more,
            reset: false,
        })
    }

    fn changed_since(&self, scope: &Scope, after: u64, now: Timestamp) -> Vec<(u64, ChangedThread)> {
        let Some(tenant) = self.tenants.get(scope.tenant_id()) else { return Vec::new() };
        let live = self.full_threads(scope, now).map(|(id, kept)| {
            let positions = Some(kept.row.positions);
            (kept.stamp, ChangedThread { id, owner: kept.row.owner.clone(), positions })
        });
        let deleted = tenant
            .graves
            .iter()
            .filter(|(id, grave)| scope.access(&grave.owner) == Access::Full && !tenant.threads.contains_key(id))
            .map(|(id, grave)| (grave.stamp, ChangedThread { id: *id, owner: grave.owner.clone(), positions: None }));
        live.chain(deleted).filter(|(stamp, _)| *stamp > after).collect()
    }

    fn nothing_changed(&self, reset: bool) -> ChangedThreads {
        ChangedThreads { threads: Vec::new(), cursor: self.cursor_at(self.stamp), more: false, reset }
    }

    fn cursor_at(&self, stamp: u64) -> UserCursor {
        UserCursor(format!("{}-{stamp}", self.incarnation.simple()))
    }

    /// The cursor's stamp, or `None` for a cursor of a lost past.
    fn read_cursor(&self, cursor: &UserCursor) -> Option<u64> {
        let (incarnation, stamp) = cursor.0.split_once('-')?;
        let stamp = stamp.parse().ok()?;
        let known = incarnation == self.incarnation.simple().to_string();
        (known && (self.forgotten_stamp..=self.stamp).contains(&stamp)).then_some(stamp)
    }
}
