//! What is over is removed.

use threadkeep_core::{SweepReport, Timestamp};

use super::{KeptThread, State, Tenant, has_expired, is_beyond_window};

impl State {
    pub(crate) fn sweep(&mut self, now: Timestamp) -> SweepReport {
        let mut report = SweepReport::default();
        for tenant in self.tenants.values_mut() {
            tenant.sweep(now, &mut report, &mut self.forgotten_stamp);
        }
        report
    }
}

impl Tenant {
    fn sweep(&mut self, now: Timestamp, report: &mut SweepReport, forgotten_stamp: &mut u64) {
        let threads = self.threads.len();
        self.threads.retain(|_, kept| kept.is_live(now));
        report.expired_threads += (threads - self.threads.len()) as u64;

        let records = self.records.len();
        self.records.retain(|_, record| !has_expired(record.expires_at, now));
        report.expired_records += (records - self.records.len()) as u64;

        let graves = self.graves.len();
        self.graves.retain(|_, grave| {
            let over = is_beyond_window(grave.deleted_at, now);
            if over {
                *forgotten_stamp = grave.stamp.max(*forgotten_stamp);
            }
            !over
        });
        report.deleted_ids += (graves - self.graves.len()) as u64;

        for kept in self.threads.values_mut() {
            kept.sweep(now, report);
        }
    }
}

impl KeptThread {
    fn sweep(&mut self, now: Timestamp, report: &mut SweepReport) {
        let records = self.records.len();
        self.records.retain(|_, record| !has_expired(record.expires_at, now));
        report.expired_records += (records - self.records.len()) as u64;

        // From the oldest on, so that what is kept of the log has no gap.
        while let Some((&change, commit)) = self.commits.first_key_value()
            && is_beyond_window(commit.at, now)
        {
            self.remove_commit(change);
            report.commit_records += 1;
        }
    }
}
