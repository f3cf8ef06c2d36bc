//! Thread metadata that describes the branches of a conversation.
//!
//! The metadata field `branch` contains the key of the conversation, and whether the thread is the current branch (`current`).
//! In a fork, it also contains `forked_from`: the thread from which it was forked, and the position of the last shared message.
//! In the main thread, which has the conversation's key, it also contains `current_thread`, the thread with the current branch,
//! and `as_of`, the time at which the source last changed the conversation.

use threadkeep_core::{Conflict, Expected, Map, Scope, ThreadId, ThreadKey, ThreadPatch, Timestamp, Value};

use crate::{Memory, MemoryError, Result};

pub(super) const BRANCH: &str = "branch";
const CURRENT: &str = "current";
/// A field that earlier versions wrote instead of creating forks.
const NOT_IMPORTED: &str = "branches_left_out";
/// Maximum number of attempts to update the metadata of a thread while others change the thread.
const ATTEMPTS: usize = 16;

/// The field `branch` of a thread's metadata.
#[derive(Clone, Debug)]
pub(super) struct BranchMetadata {
    pub(super) conversation: ThreadKey,
    pub(super) is_current: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The thread with the conversation's key.
    Main {
        current: Option<ThreadId>,
        as_of: Option<Timestamp>,
        /// Whether the thread mixes several branches, as written by earlier versions.
        is_mixed: bool,
    },
    Fork {
        thread: ThreadId,
        seq: u64,
    },
}

impl BranchMetadata {
    /// Sets the field in a thread's metadata.
    pub(super) fn put_into(&self, metadata: &mut Map) {
        let mut branch = Map::new();
        let mut put = |name: &str, value: Value| branch.insert(name.to_owned(), value);
        put("conversation", self.conversation.as_str().into());
        put(CURRENT, self.is_current.into());
        match &self.kind {
            Kind::Main { current, as_of, is_mixed } => {
                if let Some(current) = current {
                    put("current_thread", current.to_string().into());
                }
                if let Some(as_of) = as_of {
                    put("as_of", as_of.to_string().into());
                }
                if *is_mixed {
                    put("mixed", true.into());
                }
            }
            Kind::Fork { thread, seq } => {
                let from = [("thread", Value::from(thread.to_string())), ("seq", (*seq).into())];
                put("forked_from", Map::from_iter(from.map(|(name, value)| (name.to_owned(), value))).into());
            }
        }
        metadata.remove(NOT_IMPORTED);
        metadata.insert(BRANCH.to_owned(), branch.into());
    }
}

/// The current branch according to the main thread's metadata.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentBranch {
    pub(super) current: Option<ThreadId>,
    pub(super) as_of: Option<Timestamp>,
}

impl CurrentBranch {
    pub(super) fn read(metadata: &Map) -> Self {
        let text = |name: &str| metadata.get(BRANCH)?.get(name)?.as_str();
        Self {
            current: text("current_thread").and_then(|id| id.parse().ok()),
            as_of: text("as_of").and_then(|instant| instant.parse().ok()),
        }
    }
}

/// Updates a thread's metadata with `put`, and retries if others change the thread. Does nothing if the thread was deleted.
pub(super) async fn update_metadata(
    memory: &Memory,
    scope: &Scope,
    thread: ThreadId,
    put: impl Fn(&mut Map),
) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let Some(found) = memory.find_thread(scope, thread).await? else { return Ok(()) };
        let mut metadata = found.metadata.clone();
        put(&mut metadata);
        if metadata == found.metadata {
            return Ok(());
        }
        let patch = ThreadPatch { metadata: Some(metadata), ..ThreadPatch::default() };
        let expected = Some(Expected::Change(found.positions.tagged()));
        match memory.patch_thread(scope, thread, patch, expected).await {
            Err(error) if matches!(error.conflict(), Some(Conflict::Change { .. })) => {}
            result => return result.map(drop),
        }
    }
    Err(MemoryError::Contended { what: "the metadata of a thread", attempts: ATTEMPTS })
}

/// Sets `current` to false in a thread that was the current branch.
pub(super) async fn clear_current(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<()> {
    let put = |metadata: &mut Map| {
        if let Some(Value::Object(branch)) = metadata.get_mut(BRANCH) {
            branch.insert(CURRENT.to_owned(), false.into());
        }
    };
    update_metadata(memory, scope, thread, put).await
}
