//! Whether everything holds together.

use threadkeep_core::{DumpEntry, Finding, Severity, ThreadId, VerifyReport, codec};

use super::{KeptThread, State};

impl State {
    pub(crate) fn verify(&self) -> VerifyReport {
        let mut report = VerifyReport::default();
        for tenant in self.tenants.values() {
            report.tenants += 1;
            report.records += tenant.records.len() as u64;
            for (id, kept) in &tenant.threads {
                report.threads += 1;
                report.records += kept.records.len() as u64;
                for entry in kept.entries.values() {
                    let (is_message, is_unchecked) = match entry {
                        DumpEntry::Message { checksum, .. } => (true, checksum.is_none()),
                        _ => (false, false),
                    };
                    report.messages += u64::from(is_message);
                    report.unchecked += u64::from(is_unchecked);
                }
                report.findings.extend(kept.findings(*id));
            }
        }
        report
    }
}

impl KeptThread {
    fn findings(&self, id: ThreadId) -> Vec<Finding> {
        let mut details = Vec::new();
        if let Err(error) = codec::decode_thread(&self.row.body) {
            details.push(format!("the thread's own words: {error}"));
        }
        details.extend(self.entries.values().filter_map(DumpEntry::damage));
        let positions = self.row.positions;
        if !self.entries.keys().copied().eq(positions.first_seq..=positions.seq) {
            details.push("positions have a gap, or do not reach from the first to the last".to_owned());
        }
        if self.commits.keys().next_back().is_some_and(|last| *last != positions.change) {
            details.push("the change log does not end at the thread's change".to_owned());
        }
        let damage = |detail| Finding { severity: Severity::Damage, thread: Some(id), detail };
        details.into_iter().map(damage).collect()
    }
}
