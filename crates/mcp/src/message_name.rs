//! References to messages in arguments and results: the thread's id and the message's position, such as `0193…#12`.

use std::fmt;

use threadkeep::core::{StoreExt, ThreadRef};
use threadkeep::{Memory, Owner, Scope, Thread, ThreadId, ThreadKey};

use crate::ToolFailure;

/// A message, by its thread and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageName {
    pub(crate) thread: ThreadId,
    pub(crate) seq: u64,
}

impl fmt::Display for MessageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.thread, self.seq)
    }
}

impl MessageName {
    pub(crate) fn find(text: &str) -> Option<Self> {
        let (thread, seq) = text.rsplit_once('#')?;
        Some(Self { thread: thread.parse().ok()?, seq: seq.parse().ok().filter(|seq| *seq > 0)? })
    }

    pub(crate) fn parse(argument: &str, text: &str) -> Result<Self, ToolFailure> {
        Self::find(text).ok_or_else(|| ToolFailure::argument(argument, "expected the id of a search hit or a memory"))
    }
}

/// The prefix of conversation ids, the OpenAI API's ids for threads.
const CONVERSATION_PREFIX: &str = "conv_";

/// Returns the thread with the given id, conversation id or key.
pub(crate) async fn get_thread(memory: &Memory, scope: &Scope, name: &str) -> Result<Thread, ToolFailure> {
    let mut found = match name.strip_prefix(CONVERSATION_PREFIX).unwrap_or(name).parse::<ThreadId>() {
        Ok(id) => memory.find_thread(scope, id).await?,
        Err(_) => None,
    };
    if let (None, Ok(key)) = (&found, ThreadKey::new(name)) {
        found = memory.find_thread_by_key(scope, name).await?;
        if found.is_none() {
            let shared = ThreadRef::Key(Owner::Tenant, key);
            found = memory.backend().store.find_thread(scope, &shared, memory.now()).await?;
        }
    }
    found.ok_or(ToolFailure::NotFound { what: "thread", hint: "specify its id or key, or the id of a search hit" })
}
