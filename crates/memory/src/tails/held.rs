use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use threadkeep_core::{Message, MessagePage, Positions};

/// The newest messages of a thread as they are held in memory: nothing is copied.
#[derive(Clone, Debug)]
pub struct CachedMessages {
    pub(super) all: Arc<Vec<Message>>,
    pub(super) from: usize,
    pub(super) more: bool,
    pub(super) positions: Positions,
    pub(super) form: Arc<OnceLock<Form>>,
}

/// What a reader made of so many messages.
#[derive(Clone)]
pub(super) struct Form {
    count: usize,
    made: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("count", &self.count).finish_non_exhaustive()
    }
}

impl CachedMessages {
    /// The messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.all[self.from..]
    }

    /// Whether there are older ones.
    #[must_use]
    pub const fn more(&self) -> bool {
        self.more
    }

    /// Where the thread stands.
    #[must_use]
    pub const fn positions(&self) -> Positions {
        self.positions
    }

    /// Something that a reader makes of the messages alone, such as their JSON. It is kept beside them and goes when they go;
    /// there is room for one, made by whoever comes first.
    pub fn form<T: Any + Send + Sync>(&self, make: impl Fn(&Self) -> T) -> Arc<T> {
        let count = self.messages().len();
        let Form { count: kept, made } = self.form.get_or_init(|| Form { count, made: Arc::new(make(self)) }).clone();
        match made.downcast() {
            Ok(made) if kept == count => made,
            _ => Arc::new(make(self)),
        }
    }

    /// What it is a part of, and where that begins.
    pub(crate) fn place(&self) -> (&Arc<Vec<Message>>, usize) {
        (&self.all, self.from)
    }

    /// A copy, as reading the messages gives it.
    #[must_use]
    pub fn to_page(&self) -> MessagePage {
        let (messages, corrupt) = (self.messages().to_vec(), Vec::new());
        MessagePage { messages, corrupt, more: self.more, positions: self.positions }
    }
}
