//! Adding messages or replacing messages with the same ids.

use std::collections::HashMap;

use threadkeep_core::{Conflict, Message, MessageId, Replacement, Scope, StoreError, ThreadId, limits};

use crate::title::title_from;
use crate::{Appended, Draft, Memory, MemoryError, Result};

/// Maximum number of attempts while others add or remove messages with the same ids.
const ATTEMPTS: usize = 8;

impl Memory {
    /// Adds messages, all or none. If the thread contains a message with the id of a draft, its content is replaced.
    ///
    /// A replaced message keeps its position and creation time. A message with the same content is not changed. Drafts without
    /// an id are always added.
    ///
    /// # Errors
    /// The same as for [`Memory::append_all`]; `Conflict` for the id of an erased message; `Denied` if a message has to be
    /// replaced, the thread is shared and `scope` is a user's.
    pub async fn upsert(&self, scope: &Scope, thread: ThreadId, drafts: Vec<Draft>) -> Result<Appended> {
        limits::check_at_most("messages of a commit", drafts.len(), limits::COMMIT_MESSAGES)?;
        for _ in 1..ATTEMPTS {
            match self.try_upsert(scope, thread, &drafts).await {
                Err(error) if is_race(&error) => {}
                result => return result,
            }
        }
        self.try_upsert(scope, thread, &drafts).await
    }

    async fn try_upsert(&self, scope: &Scope, thread: ThreadId, drafts: &[Draft]) -> Result<Appended> {
        let found = self.find_by_ids(scope, thread, drafts.iter().filter_map(|draft| draft.id)).await?;
        let existing: HashMap<MessageId, &Message> = found.iter().map(|message| (message.id, message)).collect();
        let now = self.now();
        let mut batch = self.new_batch(now);
        let mut replaced = Vec::new();
        for draft in drafts {
            match draft.id.and_then(|id| existing.get(&id)) {
                None => batch.append.push(draft.clone().into_message(self, now)),
                Some(message) if message.content != draft.content => {
                    replaced.push(*message);
                    batch.replace.push(Replacement { id: message.id, content: draft.content.clone() });
                }
                Some(_) => {}
            }
        }
        if replaced.iter().any(|message| title_from(&message.content).is_some()) {
            self.renew_title(scope, thread, &replaced, &mut batch).await?;
        }
        let retention = self.options().retention;
        self.commit_by_policy(scope, thread, batch, retention, now).await
    }
}

/// Whether the error shows that another commit changed the messages between the read and the write.
fn is_race(error: &MemoryError) -> bool {
    use Conflict::{Change, MessageId};
    match error {
        MemoryError::Store(StoreError::Conflict(conflict)) => matches!(conflict, Change { .. } | MessageId { .. }),
        MemoryError::Store(StoreError::NotFound(kind)) => matches!(kind, threadkeep_core::Kind::Message),
        _ => false,
    }
}
