//! What the metadata of a conversation's threads say about its branches.
//!
//! The member `branch` names the conversation by its key and says whether the thread is the branch that its source shows
//! (`current`). A fork has `forked_from`: the thread and the position of the last message that it shares with it. The thread
//! with the conversation's key has `current_thread`, and `as_of`: when the source last changed the conversation.

use threadkeep_core::{Conflict, Expected, Map, Scope, ThreadId, ThreadKey, ThreadPatch, Timestamp, Value};

use crate::{Memory, MemoryError, Result};

pub(super) const MARK: &str = "branch";
const CURRENT: &str = "current";
/// What earlier versions wrote instead of forks.
const NOT_IMPORTED: &str = "branches_left_out";
const ATTEMPTS: usize = 16;

/// How a thread's mark shall be.
#[derive(Clone, Debug)]
pub(super) struct Mark {
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
        /// Whether an earlier version mixed branches in it.
        is_mixed: bool,
    },
    Fork {
        thread: ThreadId,
        seq: u64,
    },
}

impl Mark {
    /// Puts the mark into a thread's metadata.
    pub(super) fn put_into(&self, metadata: &mut Map) {
        let mut mark = Map::new();
        let mut put = |name: &str, value: Value| mark.insert(name.to_owned(), value);
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
        metadata.insert(MARK.to_owned(), mark.into());
    }
}

/// What a thread with the conversation's key says about what was current when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) current: Option<ThreadId>,
    pub(super) as_of: Option<Timestamp>,
}

impl Told {
    pub(super) fn by(metadata: &Map) -> Self {
        let text = |name: &str| metadata.get(MARK)?.get(name)?.as_str();
        Self {
            current: text("current_thread").and_then(|id| id.parse().ok()),
            as_of: text("as_of").and_then(|instant| instant.parse().ok()),
        }
    }
}

/// Changes a thread's metadata where that is needed, whoever else changes it meanwhile.
pub(super) async fn change(memory: &Memory, scope: &Scope, thread: ThreadId, put: impl Fn(&mut Map)) -> Result<()> {
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

/// Takes the mark of the current branch from a thread.
pub(super) async fn take_current(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<()> {
    let put = |metadata: &mut Map| {
        if let Some(Value::Object(mark)) = metadata.get_mut(MARK) {
            mark.insert(CURRENT.to_owned(), false.into());
        }
    };
    change(memory, scope, thread, put).await
}
