//! Copying messages to another thread.

use threadkeep_core::{Message, MessageQuery, Scope, Thread, ThreadId, codec};

use crate::{AppendOptions, Draft, Memory, Result};

/// The number of messages read with one query.
const PAGE: usize = 500;
/// The approximate number of bytes per commit. A commit may exceed it by one message.
const COMMIT_BYTES: usize = 8 * 1024 * 1024;

impl Memory {
    /// Appends copies of the messages of a thread, up to the position `through`, to another thread. The copies keep their ids and
    /// times.
    ///
    /// `key` identifies the copy: an interrupted copy can be repeated with the same key for seven days, and adds only what is
    /// missing.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include one of the threads; errors from the store.
    pub async fn copy_messages(
        &self,
        scope: &Scope,
        from: &Thread,
        to: ThreadId,
        through: u64,
        key: &str,
    ) -> Result<()> {
        let mut after = from.positions.first_seq - 1;
        loop {
            let page = self.messages(scope, from.id, &MessageQuery::following(after, PAGE)).await?;
            let Some(last) = page.messages.last().map(|message| message.seq) else { return Ok(()) };
            let (mut drafts, mut bytes, mut first) = (Vec::new(), 0, 0);
            for message in page.messages.into_iter().filter(|message| message.seq <= through) {
                bytes += codec::encode_content(&message.content)?.len();
                first = if drafts.is_empty() { message.seq } else { first };
                drafts.push(draft_copy(message));
                if bytes > COMMIT_BYTES {
                    bytes = 0;
                    self.append_copies(scope, to, std::mem::take(&mut drafts), format!("{key}:{first}")).await?;
                }
            }
            self.append_copies(scope, to, drafts, format!("{key}:{first}")).await?;
            if !page.more || last >= through {
                return Ok(());
            }
            after = last;
        }
    }

    /// Appends copies of messages in one commit.
    async fn append_copies(&self, scope: &Scope, to: ThreadId, drafts: Vec<Draft>, key: String) -> Result<()> {
        if drafts.is_empty() {
            return Ok(());
        }
        let options = AppendOptions { idempotency_key: Some(key), ..AppendOptions::default() };
        self.append_all(scope, to, drafts, &options).await.map(drop)
    }
}

fn draft_copy(message: Message) -> Draft {
    let Message { id, external_id, created_at, content, .. } = message;
    Draft { content, id: Some(id), external_id, created_at: Some(created_at) }
}
