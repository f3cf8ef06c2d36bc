//! Consistency checks.

use threadkeep_core::{DumpEntry, Finding, Severity, ThreadId, VerifyReport, codec};

use super::{State, StoredThread};

impl State {
    pub(crate) fn verify(&self) -> VerifyReport {
        let mut report = VerifyReport::default();
        for tenant in self.tenants.values() {
            report.tenants += 1;
            report.records += tenant.records.len() as u64;
            for (id, stored) in &tenant.threads {
                report.threads += 1;
                report.records += stored.records.len() as u64;
                for entry in stored.entries.values() {
                    let (is_message, is_unchecked) = match entry {
                        DumpEntry::Message { checksum, .. } => (true, checksum.is_none()),
                        _ => (false, false),
                    };
                    report.messages += u64::from(is_message);
                    report.unchecked += u64::from(is_unchecked);
                }
                report.findings.extend(stored.findings(*id));
            }
        }
        report
    }
}

impl StoredThread {
    fn findings(&self, id: ThreadId) -> Vec<Finding> {
        let mut details = Vec::new();
        if let Err(error) = codec::decode_thread(&self.row.body) {
            details.push(format!("title, metadata or state: {error}"));
        }
        details.extend(self.entries.values().filter_map(DumpEntry::damage));
        let positions = self.row.positions;
        if !self.entries.keys().copied().eq(positions.first_seq..=positions.seq) {
            details.push("positions have a gap, or do not span the range from the first to the last".to_owned());
        }
        if self.commits.keys().next_back().is_some_and(|last| *last != positions.change) {
            details.push("the last change in the log is not the thread's current change".to_owned());
        }
        let damage = |detail| Finding { severity: Severity::Damage, thread: Some(id), detail };
        details.into_iter().map(damage).collect()
    }
}
