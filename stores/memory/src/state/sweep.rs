//! Removes expired data.

use threadkeep_core::{SweepReport, Timestamp};

use super::{State, StoredThread, Tenant, has_expired, is_beyond_window};

impl State {
    pub(crate) fn sweep(&mut self, now: Timestamp) -> SweepReport {
        let mut report = SweepReport::default();
        for tenant in self.tenants.values_mut() {
            tenant.sweep(now, &mut report, &mut self.swept_stamp);
        }
        report
    }
}

impl Tenant {
    fn sweep(&mut self, now: Timestamp, report: &mut SweepReport, swept_stamp: &mut u64) {
        let thread_count = self.threads.len();
        self.threads.retain(|_, stored| stored.is_live(now));
        report.expired_threads += (thread_count - self.threads.len()) as u64;

        let record_count = self.records.len();
        self.records.retain(|_, record| !has_expired(record.expires_at, now));
        report.expired_records += (record_count - self.records.len()) as u64;

        let deleted_count = self.deleted.len();
        self.deleted.retain(|_, deleted| {
            let is_old = is_beyond_window(deleted.deleted_at, now);
            if is_old {
                *swept_stamp = deleted.stamp.max(*swept_stamp);
            }
            !is_old
        });
        report.deleted_ids += (deleted_count - self.deleted.len()) as u64;

        for stored in self.threads.values_mut() {
            stored.sweep(now, report);
        }
    }
}

impl StoredThread {
    fn sweep(&mut self, now: Timestamp, report: &mut SweepReport) {
        let record_count = self.records.len();
        self.records.retain(|_, record| !has_expired(record.expires_at, now));
        report.expired_records += (record_count - self.records.len()) as u64;

        // Commits are removed starting with the oldest, so that the remaining log has no gaps.
        while let Some((&change, commit)) = self.commits.first_key_value()
            && is_beyond_window(commit.at, now)
        {
            self.remove_commit(change);
            report.commit_records += 1;
        }
    }
}
