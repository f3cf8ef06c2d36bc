//! Remembers which imported conversations were deleted, so that the next import of the same file does not bring them back.
//!
//! A deletion leaves a digest of the thread's key, in a record of its owner. Erasing the owner removes these records too.

use std::collections::HashSet;

use threadkeep_core::{
    Fingerprint, JsonText, Namespace, Owner, RecordOwner, RecordQuery, RecordWrite, Scope, ThreadId, ThreadKey,
};

use crate::retry::retry;
use crate::{Memory, Result};

/// The prefix of the keys of imported conversations.
const IMPORTED: &str = "import:";

fn namespace() -> Namespace {
    Namespace::System("import.erased".to_owned())
}

/// Returns the digest of a key.
fn digest(key: &str) -> String {
    let Fingerprint(bytes) = Fingerprint::of(key.as_bytes());
    format!("{:016x}", u64::from_be_bytes(bytes))
}

/// The digests of the keys of deleted conversations.
#[derive(Debug, Default)]
pub(super) struct ErasedConversations(HashSet<String>);

impl ErasedConversations {
    pub(super) async fn read(memory: &Memory, scope: &Scope) -> Result<Self> {
        let owner: RecordOwner = scope.default_owner().into();
        let query = RecordQuery { namespace: Some(namespace()), ..RecordQuery::of(owner) };
        let records = memory.list_records(scope, query).await?;
        Ok(Self(records.into_iter().map(|record| record.key).collect()))
    }

    /// Whether the conversation with a key was deleted and does not exist again.
    pub(super) async fn contain(&self, memory: &Memory, scope: &Scope, key: Option<&ThreadKey>) -> Result<bool> {
        match key.filter(|key| self.0.contains(&digest(key.as_str()))) {
            Some(key) => Ok(memory.find_thread_by_key(scope, key.as_str()).await?.is_none()),
            None => Ok(false),
        }
    }
}

impl Memory {
    /// Notes that a thread is about to be deleted, if it was imported. Written before the deletion, so that a crash between the two does
    /// not let an import bring the thread back.
    pub(crate) async fn note_erased_import(&self, scope: &Scope, thread: ThreadId) -> Result<()> {
        let now = self.now();
        let Some(thread) = self.find_thread(scope, thread).await? else { return Ok(()) };
        let Some(key) = thread.key.filter(|key| key.as_str().starts_with(IMPORTED)) else { return Ok(()) };
        // A user may read threads of the tenant, but not delete them. The deletion then reports that.
        if matches!((&thread.owner, scope), (Owner::Tenant, Scope::User(..))) {
            return Ok(());
        }
        let write = RecordWrite {
            owner: thread.owner.into(),
            namespace: namespace(),
            key: digest(key.as_str()),
            expected: None,
            value: Some(JsonText::of(&true)?),
            expires_at: None,
        };
        retry(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await?;
        Ok(())
    }
}
