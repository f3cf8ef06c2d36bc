//! A user's preferences, which apply to all threads of the user.

use serde::Serialize;
use serde::de::DeserializeOwned;
use threadkeep_core::{
    Conflict, JsonText, Namespace, Record, RecordOwner, RecordQuery, RecordWrite, Scope, StoreError, WriteOutcome,
};

use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, MemoryError, Result};

/// Maximum number of attempts to update a preference while others change it.
const ATTEMPTS: usize = 16;

/// A preference of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// The name: 1 to 500 bytes.
    pub key: String,
    /// The value.
    pub value: JsonText,
}

impl Memory {
    /// Reads a preference of the scope's user; `None` if it is not set.
    ///
    /// # Errors
    /// `Invalid` for a tenant's scope, `Corrupt` if the value cannot be decoded as `T`.
    pub async fn preference<T: DeserializeOwned>(&self, scope: &Scope, key: &str) -> Result<Option<T>> {
        let record = self.find_preference(scope, key).await?;
        Ok(record.map(|record| record.value.read()).transpose()?)
    }

    /// Sets a preference of the scope's user.
    ///
    /// # Errors
    /// `Invalid` for a tenant's scope or an invalid name, `LimitExceeded` for a value that is too large.
    pub async fn set_preference<T: Serialize + ?Sized>(&self, scope: &Scope, key: &str, value: &T) -> Result<()> {
        let write = preference_write(scope, key, None, Some(JsonText::of(value)?))?;
        self.write_preference(scope, &write).await.result?;
        Ok(())
    }

    /// Deletes a preference of the scope's user. Does nothing if the preference does not exist.
    ///
    /// # Errors
    /// `Invalid` for a tenant's scope or an invalid name.
    pub async fn delete_preference(&self, scope: &Scope, key: &str) -> Result<()> {
        let write = preference_write(scope, key, None, None)?;
        match self.write_preference(scope, &write).await.result {
            Ok(_) | Err(StoreError::NotFound(threadkeep_core::Kind::Record)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets a preference of the scope's user to the value that `change` returns for the current value, and returns the new value.
    /// `None` means that the preference does not exist, or is to be deleted.
    ///
    /// `change` is called again if others have changed the preference meanwhile.
    ///
    /// # Errors
    /// The same as for [`Memory::set_preference`], `Corrupt` if the current value cannot be decoded as `T`, and `Contended` if
    /// others change the preference during each attempt.
    pub async fn update_preference<T: DeserializeOwned + Serialize>(
        &self,
        scope: &Scope,
        key: &str,
        mut change: impl FnMut(Option<T>) -> Option<T>,
    ) -> Result<Option<T>> {
        for _ in 0..ATTEMPTS {
            let record = self.find_preference(scope, key).await?;
            let version = record.as_ref().map_or(0, |record| record.version);
            let current = record.map(|record| record.value.read()).transpose()?;
            let changed = change(current);
            let value = changed.as_ref().map(JsonText::of).transpose()?;
            let write = preference_write(scope, key, Some(version), value)?;
            let outcome = self.write_preference(scope, &write).await;
            match outcome.result {
                Ok(_) => return Ok(changed),
                Err(StoreError::Conflict(Conflict::Record { .. })) => {
                    // The conflict may be with an earlier attempt whose reply was lost.
                    if outcome.may_have_applied_before && self.has_value(scope, &write).await? {
                        return Ok(changed);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(MemoryError::Contended { what: "the preference", attempts: ATTEMPTS })
    }

    /// Lists the preferences of the scope's user, ordered by name.
    ///
    /// # Errors
    /// `Invalid` for a tenant's scope.
    pub async fn list_preferences(&self, scope: &Scope) -> Result<Vec<Preference>> {
        let records = self.all_records(scope, preferences_query(scope)?).await?;
        Ok(records.into_iter().map(|Record { key, value, .. }| Preference { key, value }).collect())
    }

    /// Reads all pages of a query for records.
    pub(crate) async fn all_records(&self, scope: &Scope, mut query: RecordQuery) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        loop {
            let now = self.now();
            let page = retry(self.runtime(), || self.store().list_records(scope, &query, now)).await?;
            let is_last = page.len() < query.limit;
            records.extend(page);
            match records.last() {
                Some(last) if !is_last => query.after = Some((last.namespace.clone(), last.key.clone())),
                _ => return Ok(records),
            }
        }
    }

    async fn find_preference(&self, scope: &Scope, key: &str) -> Result<Option<Record>> {
        let (owner, namespace, now) = (record_owner(scope)?, preferences_namespace(), self.now());
        Ok(retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, key, now)).await?)
    }

    async fn has_value(&self, scope: &Scope, write: &RecordWrite) -> Result<bool> {
        let record = self.find_preference(scope, &write.key).await?;
        Ok(record.map(|record| record.value) == write.value)
    }

    async fn write_preference(&self, scope: &Scope, write: &RecordWrite) -> crate::retry::RetryOutcome<WriteOutcome> {
        let now = self.now();
        retry_with_outcome(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await
    }
}

/// Creates the query for the preferences of the scope's user.
pub(crate) fn preferences_query(scope: &Scope) -> Result<RecordQuery> {
    Ok(RecordQuery { namespace: Some(preferences_namespace()), ..RecordQuery::of(record_owner(scope)?) })
}

fn preference_write(scope: &Scope, key: &str, expected: Option<u64>, value: Option<JsonText>) -> Result<RecordWrite> {
    let (owner, namespace, key) = (record_owner(scope)?, preferences_namespace(), key.to_owned());
    Ok(RecordWrite { owner, namespace, key, expected, value, expires_at: None })
}

fn record_owner(scope: &Scope) -> Result<RecordOwner> {
    match scope {
        Scope::User(_, user) => Ok(RecordOwner::User(user.clone())),
        Scope::Tenant(_) => Err(MemoryError::invalid("scope", "preferences belong to a user, not to a tenant")),
    }
}

fn preferences_namespace() -> Namespace {
    Namespace::App("preferences".to_owned())
}
