use serde::Serialize;
use threadkeep_core::{OwnedRecord, Record, RecordOwner, Result, Scope, TenantId, Thread, ThreadRef};

use super::{Differences, Item, Migration, Progress, walk};
use crate::retry::retry;

/// The result of comparing both sides before copying.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The data of the source.
    pub total: Progress,
    /// What seems to exist in the target. It is skipped by the copy and compared by the verification.
    pub already_there: Progress,
    /// Conflicts: other data in the target under the same ids or keys.
    pub in_the_way: Differences,
}

impl Migration {
    /// Compares both sides without writing. Resolve all conflicts before copying.
    ///
    /// # Errors
    /// Those of the stores.
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
            Some(target) => survey.in_the_way.add(tenant, item, other_thread(thread, &target)),
            None => {
                let Some(key) = &thread.key else { return Ok(()) };
                let name = ThreadRef::Key(thread.owner.clone(), key.clone());
                if let Some(claimant) = walk::find_thread(self.runtime(), &self.to, tenant, &name, self.now).await? {
                    survey.in_the_way.add(
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
        match self.find_in_target(tenant, owner, record).await? {
            Some(target) if target == *record => survey.already_there.records += 1,
            Some(target) => {
                let detail = other_record(record, &target);
                survey.in_the_way.add(tenant, walk::item(owner, record), detail);
            }
            None => {}
        }
        Ok(())
    }

    pub(super) async fn find_in_target(
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
pub(super) fn other_thread(source: &Thread, target: &Thread) -> String {
    let (at, target_at) = (source.positions, target.positions);
    if source.created_at != target.created_at || source.owner != target.owner {
        return "the target has another thread with this id".to_owned();
    }
    if at != target_at {
        let (seq, change) = (at.seq, at.change);
        return format!(
            "it is at message {seq}, change {change}; in the target at message {}, change {}",
            target_at.seq, target_at.change
        );
    }
    "its key, title, metadata, state or dates differ in the target".to_owned()
}

/// Describes the difference between two records with the same key.
pub(super) fn other_record(source: &Record, target: &Record) -> String {
    if source.version == target.version {
        "its value or expiry differs in the target".to_owned()
    } else {
        format!("it has version {}; in the target version {}", source.version, target.version)
    }
}
