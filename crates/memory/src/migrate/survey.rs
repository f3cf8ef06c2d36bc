use serde::Serialize;
use threadkeep_core::{OwnedRecord, Record, RecordOwner, Result, Scope, TenantId, Thread, ThreadRef};

use super::{Differences, Item, Migration, Progress, walk};
use crate::retry::retry;

/// The result of comparing source and target before copying.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The data in the source.
    pub total: Progress,
    /// The data that seems to exist in the target. [`Migration::copy`] skips it, and [`Migration::verify`] compares it.
    pub already_there: Progress,
    /// Conflicts: other data in the target under the same ids or keys.
    #[serde(rename = "in_the_way")]
    pub conflicts: Differences,
}

impl Migration {
    /// Compares source and target without writing. Resolve all conflicts before copying.
    ///
    /// # Errors
    /// Errors from the stores.
    pub async fn survey(&self, mut progress: impl FnMut(Progress)) -> Result<Survey> {
        let mut survey = Survey::default();
        let mut threads = walk::Threads::of(self.runtime(), &*self.source);
        while let Some(page) = threads.next_page().await? {
            for listed in page {
                self.survey_thread(&listed.tenant, &listed.thread, &mut survey).await?;
            }
            progress(survey.total);
        }
        let mut records = walk::Records::of(self.runtime(), &*self.source);
        while let Some(page) = records.next_page().await? {
            for OwnedRecord { tenant, owner, record } in page {
                self.survey_record(&tenant, &owner, &record, &mut survey).await?;
            }
            progress(survey.total);
        }
        Ok(survey)
    }

    async fn survey_thread(&self, tenant: &TenantId, thread: &Thread, survey: &mut Survey) -> Result<()> {
        survey.total.threads += 1;
        survey.total.messages += thread.message_count;
        let item = Item::Thread(thread.id);
        match walk::find_thread(self.runtime(), &self.to, tenant, &ThreadRef::Id(thread.id), self.now).await? {
            Some(target) if target == *thread => {
                survey.already_there.threads += 1;
                survey.already_there.messages += thread.message_count;
            }
            Some(target) => survey.conflicts.add(tenant, item, describe_thread_difference(thread, &target)),
            None => {
                let Some(key) = &thread.key else { return Ok(()) };
                let by_key = ThreadRef::Key(thread.owner.clone(), key.clone());
                if let Some(claimant) = walk::find_thread(self.runtime(), &self.to, tenant, &by_key, self.now).await? {
                    survey.conflicts.add(
                        tenant,
                        item,
                        format!("its key belongs to thread {} in the target", claimant.id),
                    );
                }
            }
        }
        Ok(())
    }

    async fn survey_record(
        &self,
        tenant: &TenantId,
        owner: &RecordOwner,
        record: &Record,
        survey: &mut Survey,
    ) -> Result<()> {
        survey.total.records += 1;
        match self.find_target_record(tenant, owner, record).await? {
            Some(target) if target == *record => survey.already_there.records += 1,
            Some(target) => {
                let detail = describe_record_difference(record, &target);
                survey.conflicts.add(tenant, walk::record_item(owner, record), detail);
            }
            None => {}
        }
        Ok(())
    }

    pub(super) async fn find_target_record(
        &self,
        tenant: &TenantId,
        owner: &RecordOwner,
        record: &Record,
    ) -> Result<Option<Record>> {
        let scope = Scope::Tenant(tenant.clone());
        let Record { namespace, key, .. } = record;
        retry(self.runtime(), || self.to.store.find_record(&scope, owner, namespace, key, self.now)).await
    }
}

/// Describes the difference between two threads with the same id.
pub(super) fn describe_thread_difference(source: &Thread, target: &Thread) -> String {
    let (source_positions, target_positions) = (source.positions, target.positions);
    if source.created_at != target.created_at || source.owner != target.owner {
        return "the target has another thread with this id".to_owned();
    }
    if source_positions != target_positions {
        let (seq, change) = (source_positions.seq, source_positions.change);
        return format!(
            "it is at message {seq}, change {change}; in the target at message {}, change {}",
            target_positions.seq, target_positions.change
        );
    }
    "its key, title, metadata, state or dates differ in the target".to_owned()
}

/// Describes the difference between two records with the same key.
pub(super) fn describe_record_difference(source: &Record, target: &Record) -> String {
    if source.version == target.version {
        "its value or expiry differs in the target".to_owned()
    } else {
        format!("it has version {}; in the target version {}", source.version, target.version)
    }
}
