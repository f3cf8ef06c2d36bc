use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use threadkeep_core::{Message, MessagePage, Positions};

/// The newest messages of a thread, which are shared with the thread cache and not copied.
#[derive(Clone, Debug)]
pub struct CachedMessages {
    pub(super) all: Arc<Vec<Message>>,
    pub(super) from: usize,
    pub(super) more: bool,
    pub(super) positions: Positions,
    pub(super) derived: Arc<OnceLock<DerivedValue>>,
}

/// A value that a caller computed from the newest `count` messages.
#[derive(Clone)]
pub(super) struct DerivedValue {
    count: usize,
    value: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for DerivedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedValue").field("count", &self.count).finish_non_exhaustive()
    }
}

impl CachedMessages {
    /// The messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.all[self.from..]
    }

    /// Whether the thread has older messages.
    #[must_use]
    pub const fn has_older(&self) -> bool {
        self.more
    }

    /// The positions of the thread.
    #[must_use]
    pub const fn positions(&self) -> Positions {
        self.positions
    }

    /// Returns a value that `compute` derives from the messages alone, such as their JSON.
    ///
    /// The value of the first call is cached with the messages. A later call that returns another type or has another number of
    /// messages computes its value every time.
    pub fn derived<T: Any + Send + Sync>(&self, compute: impl Fn(&Self) -> T) -> Arc<T> {
        let count = self.messages().len();
        let compute_first = || DerivedValue { count, value: Arc::new(compute(self)) };
        let DerivedValue { count: cached_count, value } = self.derived.get_or_init(compute_first).clone();
        match value.downcast() {
            Ok(value) if cached_count == count => value,
            _ => Arc::new(compute(self)),
        }
    }

    /// All cached messages of the thread, and the index of the first message in `self`.
    pub(crate) fn as_part(&self) -> (&Arc<Vec<Message>>, usize) {
        (&self.all, self.from)
    }

    /// Copies the messages into a page.
    #[must_use]
    pub fn to_page(&self) -> MessagePage {
        let (messages, corrupt) = (self.messages().to_vec(), Vec::new());
        MessagePage { messages, corrupt, more: self.more, positions: self.positions }
    }
}
