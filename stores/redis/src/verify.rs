//! Consistency checks.

use futures::future::try_join_all;
use threadkeep_core::{
    Dump, DumpEntry, DumpedThread, Finding, Result, Severity, StoreError, TenantId, ThreadId, VerifyReport, codec,
    limits,
};

use crate::args::Args;
use crate::data_loss::lost_data;
use crate::index::{joined, terms_of};
use crate::keys::{incarnation, index_part, owner_hash};
use crate::reply::Reply;
use crate::shared::{Request, Shared};

/// The maximum number of messages that are compared with the index concurrently.
const CONCURRENT_CHECKS: usize = 32;

impl Shared {
    pub(crate) async fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        if self.connections.find_losses().await? > 0 {
            let detail = lost_data().to_string();
            report.findings.push(Finding { severity: Severity::Damage, thread: None, detail });
            return Ok(report);
        }
        let mut after = None;
        loop {
            let tenants = self.list_tenants(after.as_ref(), limits::PAGE).await?;
            for tenant in &tenants {
                report.tenants += 1;
                self.verify_tenant(tenant, &mut report).await?;
            }
            after = tenants.last().cloned();
            if tenants.len() < limits::PAGE {
                return Ok(report);
            }
        }
    }

    async fn verify_tenant(&self, tenant: &TenantId, report: &mut VerifyReport) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.list_created(tenant, after.take()).await?;
            for (thread, _) in &page {
                match self.verify_thread(tenant, *thread, report).await {
                    Err(StoreError::Corrupt { what, detail }) => {
                        let detail = format!("{what}: {detail}");
                        report.findings.push(Finding { severity: Severity::Damage, thread: Some(*thread), detail });
                    }
                    // The thread was deleted meanwhile.
                    Err(StoreError::NotFound(_)) => {}
                    result => result?,
                }
            }
            match page.last() {
                Some((id, score)) if page.len() == limits::PAGE => after = Some((score.clone(), *id)),
                _ => break,
            }
        }
        for owner in self.all_owners(tenant).await? {
            let base = self.keys.owner(tenant, &owner);
            for record in self.values(&format!("{base}:d")).await? {
                report.records += 1;
                if let Err(error) = crate::shared::parse_record(record) {
                    let finding = Finding { severity: Severity::Damage, thread: None, detail: error.to_string() };
                    report.findings.push(finding);
                }
            }
        }
        Ok(())
    }

    /// Lists all owners of a tenant.
    pub(crate) async fn all_owners(&self, tenant: &TenantId) -> Result<Vec<threadkeep_core::Owner>> {
        let mut owners = Vec::new();
        loop {
            let page = self.list_owners(tenant, owners.last(), limits::PAGE).await?;
            let is_last = page.len() < limits::PAGE;
            owners.extend(page);
            if is_last {
                return Ok(owners);
            }
        }
    }

    async fn verify_thread(&self, tenant: &TenantId, thread: ThreadId, report: &mut VerifyReport) -> Result<()> {
        let view = self.read(tenant, thread, &Request::row()).await?;
        let Some(row) = view.map(|view| view.row).filter(|row| row.thread.is_some()) else { return Ok(()) };
        let part = self.keys.index(tenant, index_part(&row.owner, thread));
        let indexed = self.indexed_position(&part, &row.born).await?;
        let checked_to = row.edited.map_or(indexed, |edited| indexed.min(edited.saturating_sub(1)));
        let (mut after, mut messages) = (None, 0);
        let mut details = Vec::new();
        loop {
            let dump = self.dump_thread(tenant, thread, after, limits::PAGE).await?;
            if let Some(stored) = &dump.thread {
                report.threads += 1;
                report.records += dump.records.len() as u64;
                details.extend(damage_of_row(stored, &dump));
            }
            details.extend(dump.damage());
            for entry in &dump.entries {
                let DumpEntry::Message { checksum, .. } = entry else { continue };
                messages += 1;
                report.unchecked += u64::from(checksum.is_none());
            }
            let entries = dump.entries.iter().filter(|entry| entry.seq() <= checked_to);
            let missing = self.missing_terms(&part, &row, &entries.collect::<Vec<_>>()).await?;
            report.findings.extend(missing.into_iter().map(|seq| Finding {
                severity: Severity::Derived,
                thread: Some(thread),
                detail: format!("the index lacks terms of position {seq}"),
            }));
            after = dump.next;
            if after.is_none() {
                break;
            }
        }
        report.messages += messages;
        if messages != row.count {
            details.push(format!("the thread's message count is {}, but it has {messages} messages", row.count));
        }
        let damage = |detail| Finding { severity: Severity::Damage, thread: Some(thread), detail };
        report.findings.extend(details.into_iter().map(damage));
        Ok(())
    }

    /// Returns the positions whose terms are not all in the index.
    async fn missing_terms(&self, part: &str, row: &crate::row::Row, entries: &[&DumpEntry]) -> Result<Vec<u64>> {
        let mut missing = Vec::new();
        for entries in entries.chunks(CONCURRENT_CHECKS) {
            let checks = entries.iter().map(async |entry| {
                let mut args = Args::new();
                args.add(owner_hash(&row.owner)).add(incarnation(&row.born));
                args.number(entry.seq()).add(joined(&terms_of(entry)));
                let count = self.connections.read("index_check", part, &args).await?.number()?;
                Ok::<_, StoreError>((count > 0).then_some(entry.seq()))
            });
            missing.extend(try_join_all(checks).await?.into_iter().flatten());
        }
        Ok(missing)
    }
}

/// Describes damage to a thread's row and change log.
fn damage_of_row(stored: &DumpedThread, dump: &Dump) -> Vec<String> {
    let mut details = Vec::new();
    if let Err(error) = codec::decode_thread(&stored.body) {
        details.push(format!("title, metadata or state: {error}"));
    }
    if dump.commits.last().is_some_and(|last| last.change != stored.positions.change) {
        details.push("the last change in the log is not the thread's current change".to_owned());
    }
    details
}
