use threadkeep_core::{
    Batch, ChangePage, CommitOutcome, Dump, DumpEntry, Message, MessagePage, MessageQuery, OpenThread, OrderBy,
    Positions, RangeEnd, Result, Scope, TaggedNumber, Thread, ThreadId, ThreadRef, Timestamp, limits,
};

use crate::client::Client;
use crate::fixtures::{appending, thread_id, user_message};

/// A thread, and the scope in which a case accesses it.
#[derive(Clone)]
pub(crate) struct Conversation {
    pub(crate) client: Client,
    pub(crate) scope: Scope,
    pub(crate) id: ThreadId,
}

impl Conversation {
    /// Opens the thread with the given number, which must not exist yet.
    pub(crate) async fn open(client: &Client, scope: &Scope, number: u128, now: Timestamp) -> Self {
        Self::open_as(client, scope, &OpenThread::new(scope, thread_id(number)), now).await
    }

    pub(crate) async fn open_as(client: &Client, scope: &Scope, open: &OpenThread, now: Timestamp) -> Self {
        let opened = client.open_thread(scope, open, now).await.expect("the thread opens");
        assert!(opened.created, "the thread already exists");
        assert_eq!(opened.thread.positions, Positions::BEGINNING);
        Self { client: client.clone(), scope: scope.clone(), id: opened.thread.id }
    }

    /// Returns the same thread, accessed in another scope.
    pub(crate) fn in_scope(&self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self.clone() }
    }

    pub(crate) async fn try_commit(&self, batch: &Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.client.commit(&self.scope, self.id, batch, now).await
    }

    pub(crate) async fn commit(&self, batch: &Batch, now: Timestamp) -> CommitOutcome {
        self.try_commit(batch, now).await.expect("the commit succeeds")
    }

    /// Appends messages with the given numbers and the text "message N", in one commit.
    pub(crate) async fn append(&self, numbers: std::ops::RangeInclusive<u128>, now: Timestamp) -> CommitOutcome {
        let messages = numbers.map(|number| user_message(number, &format!("message {number}"))).collect();
        self.commit(&appending(messages), now).await
    }

    pub(crate) async fn thread(&self, now: Timestamp) -> Thread {
        let found = self.client.find_thread(&self.scope, &ThreadRef::Id(self.id), now).await;
        found.expect("reading works").expect("the thread exists")
    }

    pub(crate) async fn exists(&self, now: Timestamp) -> bool {
        self.client.find_thread(&self.scope, &ThreadRef::Id(self.id), now).await.expect("reading works").is_some()
    }

    pub(crate) async fn page(&self, query: &MessageQuery, now: Timestamp) -> MessagePage {
        self.client.list_messages(&self.scope, self.id, query, now).await.expect("reading works")
    }

    /// Reads all messages page by page.
    pub(crate) async fn messages(&self, now: Timestamp) -> Vec<Message> {
        let mut all: Vec<Message> = Vec::new();
        loop {
            let after = all.last().map_or(0, |message| message.seq);
            let page = self.page(&MessageQuery::following(after, limits::PAGE), now).await;
            assert!(page.messages.iter().all(|message| message.seq > after), "pages overlap");
            assert!(!page.more || !page.messages.is_empty(), "an empty page reports more messages");
            all.extend(page.messages);
            if !page.more {
                return all;
            }
        }
    }

    pub(crate) async fn texts(&self, now: Timestamp) -> Vec<String> {
        self.messages(now).await.iter().map(|message| message.plain_text().into_owned()).collect()
    }

    pub(crate) async fn seqs(&self, query: &MessageQuery, now: Timestamp) -> Vec<u64> {
        self.page(query, now).await.messages.iter().map(|message| message.seq).collect()
    }

    pub(crate) async fn changes(&self, after: impl Into<TaggedNumber>, now: Timestamp) -> ChangePage {
        let answer = self.client.list_changes(&self.scope, self.id, after, limits::PAGE, now).await;
        answer.expect("reading works")
    }

    /// Dumps the thread in chunks of at most `chunk_size` entries.
    pub(crate) async fn dump(&self, chunk_size: usize) -> Vec<Dump> {
        dump(&self.client, self, chunk_size).await
    }

    /// Returns the entries of a complete dump.
    pub(crate) async fn entries(&self) -> Vec<DumpEntry> {
        self.dump(limits::PAGE).await.into_iter().flat_map(|chunk| chunk.entries).collect()
    }
}

async fn dump(client: &Client, conversation: &Conversation, chunk_size: usize) -> Vec<Dump> {
    let mut chunks: Vec<Dump> = Vec::new();
    loop {
        let after = chunks.last().and_then(|chunk| chunk.next);
        let next = client.dump_thread(conversation.scope.tenant_id(), conversation.id, after, chunk_size).await;
        let next = next.expect("dumping works");
        assert!(next.next.is_none_or(|next| Some(next) > after), "chunks overlap");
        let is_last = next.next.is_none();
        chunks.push(next);
        if is_last {
            return chunks;
        }
    }
}

/// Returns a query for the newest messages, ordered by time.
pub(crate) fn newest_by_time(limit: usize) -> MessageQuery {
    MessageQuery { order: OrderBy::Time, ..MessageQuery::newest(limit) }
}

/// Returns a query for the oldest messages.
pub(crate) fn oldest(limit: usize) -> MessageQuery {
    MessageQuery { take: RangeEnd::Oldest, ..MessageQuery::newest(limit) }
}
