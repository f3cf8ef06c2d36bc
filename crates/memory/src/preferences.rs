//! A user's preferences, which apply to all threads of the user.

use serde::Serialize;
use serde::de::DeserializeOwned;
use threadkeep_core::{
    JsonText, Namespace, Record, RecordName, RecordOwner, RecordQuery, RecordWrite, Scope, StoreError, WriteOutcome,
};

use crate::retry::retry;
use crate::{Memory, MemoryError, RecordUpdate, Result};

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
        let write = preference_write(scope, key, Some(JsonText::of(value)?))?;
        self.write_preference(scope, &write).await?;
        Ok(())
    }

    /// Deletes a preference of the scope's user. Does nothing if the preference does not exist.
    ///
    /// # Errors
    /// `Invalid` for a tenant's scope or an invalid name.
    pub async fn delete_preference(&self, scope: &Scope, key: &str) -> Result<()> {
        let write = preference_write(scope, key, None)?;
        match self.write_preference(scope, &write).await {
            Ok(_) | Err(StoreError::NotFound(threadkeep_core::Kind::Record)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets a preference of the scope's user to the value that `change` returns for the current value, and returns the new value.
    /// `None` means that the preference does not exist, or should be deleted.
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
        let (owner, name) = (record_owner(scope)?, preference_name(key));
        let mut changed = None;
        self.update_record::<MemoryError>(scope, &owner, &name, |record| {
            let current = record.map(|record| record.value.read()).transpose()?;
            changed = change(current);
            let value = changed.as_ref().map(JsonText::of).transpose()?;
            Ok(value.map_or(RecordUpdate::Delete, RecordUpdate::Write))
        })
        .await?;
        Ok(changed)
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
        self.find_record(scope, &record_owner(scope)?, &preference_name(key)).await
    }

    async fn write_preference(&self, scope: &Scope, write: &RecordWrite) -> Result<WriteOutcome, StoreError> {
        let now = self.now();
        retry(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await
    }
}

/// Creates the query for the preferences of the scope's user.
pub(crate) fn preferences_query(scope: &Scope) -> Result<RecordQuery> {
    Ok(RecordQuery { namespace: Some(preferences_namespace()), ..RecordQuery::of(record_owner(scope)?) })
}

fn preference_write(scope: &Scope, key: &str, value: Option<JsonText>) -> Result<RecordWrite> {
    let (owner, RecordName { namespace, key }) = (record_owner(scope)?, preference_name(key));
    Ok(RecordWrite { owner, namespace, key, expected: None, value, expires_at: None })
}

fn preference_name(key: &str) -> RecordName {
    RecordName { namespace: preferences_namespace(), key: key.to_owned() }
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
