use threadkeep_core::{
    Batch, Collection, Content, Fingerprint, IdempotencyKey, Maintenance, MessageId, NewMessage, OpenThread, Role,
    Scope, SearchAnswer, SearchQuery, Store, ThreadId, Timestamp,
};

use super::*;
use crate::{SqliteOptions, SqliteStore};

/// A store with one thread.
struct TestEnv {
    store: SqliteStore,
    scope: Scope,
    thread: ThreadId,
    now: Timestamp,
    _folder: tempfile::TempDir,
}

impl TestEnv {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { background: false, ..SqliteOptions::default() };
        let store = SqliteStore::open(folder.path().join("store.db"), options).unwrap();
        let (scope, thread) = (Scope::user("acme", "ana").unwrap(), ThreadId::from_name(b"long"));
        let now = Timestamp::from_micros(0).unwrap();
        store.open_thread(&scope, OpenThread::new(&scope, thread), now).await.unwrap();
        Self { store, scope, thread, now, _folder: folder }
    }

    /// Returns an environment for a thread of another user in the same store.
    async fn for_user(&self, user: &str) -> Self {
        let (scope, thread) = (Scope::user("acme", user).unwrap(), ThreadId::from_name(user.as_bytes()));
        self.store.open_thread(&scope, OpenThread::new(&scope, thread), self.now).await.unwrap();
        Self { store: self.store.clone(), scope, thread, now: self.now, _folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the number of messages in the thread.
    fn count(&self) -> u64 {
        let sql = "SELECT message_count FROM threads WHERE id = ?1";
        let id = self.thread.0.as_bytes();
        self.store
            .shared
            .read(|connection| Ok(connection.query_row(sql, [id], |row| row.get::<_, i64>(0))?.unsigned_abs()))
            .unwrap()
    }

    async fn append(&self, texts: &[String]) {
        let name = texts.join("\n");
        let mut batch = Batch::new(IdempotencyKey::FromCaller(texts[0].clone()), Fingerprint::of(name.as_bytes()));
        batch.append.extend(texts.iter().map(|text| NewMessage {
            id: MessageId::from_name(text.as_bytes()),
            external_id: None,
            created_at: self.now,
            content: Content::text(Role::User, text),
        }));
        self.store.commit(&self.scope, self.thread, batch, self.now).await.unwrap();
    }

    /// Changes the thread without appending a message.
    async fn rename(&self, title: &str) {
        let mut batch = Batch::new(IdempotencyKey::FromCaller(title.to_owned()), Fingerprint::of(title.as_bytes()));
        batch.patch.title = Some(Some(title.to_owned()));
        self.store.commit(&self.scope, self.thread, batch, self.now).await.unwrap();
    }

    fn read_batch(&self) -> IndexBatch {
        self.store.shared.read(|connection| read_batch(connection, MESSAGES_PER_STEP)).unwrap()
    }

    fn write_batch(&self, batch: IndexBatch) -> bool {
        writer::write_blocking(&self.store.shared, |connection| write_batch(connection, batch)).unwrap().is_complete
    }

    fn catch_up(&self) -> u64 {
        let caught_up = catch_up(&self.store.shared, usize::MAX).unwrap();
        assert!(caught_up.done);
        caught_up.indexed
    }

    async fn assert_no_findings(&self) {
        assert_eq!(self.store.verify().await.unwrap().findings, []);
    }

    fn search(&self, terms: &[&str], limit: usize) -> SearchAnswer {
        search(&self.store.shared, &self.scope, &self.query(terms, limit), self.now).unwrap().answer
    }

    /// Returns a query for messages of the thread.
    fn query(&self, terms: &[&str], limit: usize) -> SearchQuery {
        SearchQuery {
            collection: Collection::Messages,
            terms: terms.iter().map(|term| (*term).to_owned()).collect(),
            alternatives: Vec::new(),
            vector: None,
            filters: Vec::new(),
            metadata: threadkeep_core::MetadataFilter::default(),
            thread: Some(self.thread),
            limit,
            reads_messages: false,
        }
    }

    fn segments(&self) -> i64 {
        let sql = "SELECT count(DISTINCT segid) FROM message_terms_idx";
        self.store.shared.read(|connection| Ok(connection.query_row(sql, [], |row| row.get(0))?)).unwrap()
    }
}

#[tokio::test]
async fn merging_segments_keeps_search_results() {
    const COMMITS: usize = 100;
    let env = TestEnv::new().await;
    for number in 0..COMMITS {
        env.append(&[format!("ferry {number}")]).await;
        catch_up(&env.store.shared, usize::MAX).unwrap();
    }
    let (found, before) = (env.search(&["ferri"], 1_000), env.segments());
    assert_eq!(found.hits.len(), COMMITS);
    while merge_segments(&env.store.shared).unwrap() {}
    let after = env.segments();
    assert!(after < before && after <= 3, "{before} segments became {after}");
    assert_eq!(env.search(&["ferri"], 1_000), found);
}

#[tokio::test]
async fn search_finds_newest_positions_of_common_terms() {
    const MESSAGES: usize = 3_000;
    let env = TestEnv::new().await;
    let text_of = |number: usize| {
        let mut text = format!("m{number} always");
        let words = [
            (number < 700, " early"),
            (number >= 2_300, " late"),
            (number.is_multiple_of(2), " even"),
            (number < 300 || number == 2_000, " mostly"),
            (number.is_multiple_of(100), " seldom"),
        ];
        words.iter().filter(|(is_present, _)| *is_present).for_each(|(_, word)| text.push_str(word));
        text
    };
    let texts: Vec<String> = (0..MESSAGES).map(text_of).collect();
    for texts in texts.chunks(500) {
        env.append(texts).await;
    }
    catch_up(&env.store.shared, usize::MAX).unwrap();
    for (word, term) in
        [("always", "alway"), ("early", "earli"), ("late", "late"), ("even", "even"), ("mostly", "most")]
    {
        let matching = (0..MESSAGES).rev().filter(|number| text_of(*number).contains(word));
        let newest: Vec<u64> = matching.take(200).map(|number| number as u64 + 1).collect();
        let found = env.search(&[term], 200);
        assert_eq!(found.hits.iter().map(|hit| hit.seq).collect::<Vec<_>>(), newest, "{word}");
    }
    // If the rarer terms yield enough hits, the frequency of a common term is estimated from its newest positions.
    let found = env.search(&["seldom", "alway", "even"], 20);
    let seqs: Vec<u64> = found.hits.iter().map(|hit| hit.seq).collect();
    assert!(seqs.iter().all(|seq| seq % 100 == 1), "{seqs:?}");
    assert_eq!(found.frequencies[0], 30);
    assert!((2_900..=3_000).contains(&found.frequencies[1]), "{:?}", found.frequencies);
    assert!((1_400..=1_600).contains(&found.frequencies[2]), "{:?}", found.frequencies);
}

// A file may be indexed concurrently: by several processes, and by the background thread and the searches of one process.
#[tokio::test]
async fn write_batch_skips_threads_indexed_in_the_meantime() {
    let env = TestEnv::new().await;
    env.append(&["ferry".to_owned()]).await;
    assert_eq!(env.catch_up(), 1);
    env.rename("Boats").await;
    let without_messages = env.read_batch();
    assert_eq!(without_messages.portions.iter().map(|portion| portion.messages.len()).collect::<Vec<_>>(), [0]);
    env.append(&["harbour".to_owned()]).await;
    let with_a_message = env.read_batch();
    assert_eq!(env.catch_up(), 1);
    for outdated in [without_messages, with_a_message] {
        assert!(!env.write_batch(outdated));
        assert_eq!(env.catch_up(), 0, "nothing is indexed twice");
        env.assert_no_findings().await;
    }
    assert_eq!(env.search(&["harbour"], 10).hits.len(), 1);
}

#[tokio::test]
async fn write_batch_after_reset_does_not_advance_watermark() {
    let env = TestEnv::new().await;
    env.append(&["ferry".to_owned()]).await;
    assert_eq!(env.catch_up(), 1);
    let other = ThreadId::from_name(b"other");
    env.store.open_thread(&env.scope, OpenThread::new(&env.scope, other), env.now).await.unwrap();
    let batch = env.read_batch();
    assert_eq!(batch.portions.len(), 1);
    writer::write_blocking(&env.store.shared, reset).unwrap();
    assert!(!env.write_batch(batch));
    assert_eq!(env.catch_up(), 1, "the first thread is indexed again");
    env.assert_no_findings().await;
}

/// A search scans the positions of all users if most of them are the searcher's, and else intersects them with the searcher's.
#[tokio::test]
async fn the_newest_messages_of_a_common_word_are_found_for_any_share_of_the_store() {
    let ana = TestEnv::new().await;
    let ben = ana.for_user("ben").await;
    // The newest messages of the store are Ben's, and fewer than a scan reads at first.
    for (env, count) in [(&ben, 300), (&ana, 700), (&ben, 200)] {
        let first = env.count();
        let texts = (first..first + count).map(|number| format!("ferry {number}"));
        env.append(&texts.collect::<Vec<_>>()).await;
        env.catch_up();
    }
    for (env, total) in [(&ana, 700), (&ben, 500)] {
        for limit in [1, 40, 300, 1_000] {
            let whole_scope = SearchQuery { thread: None, reads_messages: true, ..env.query(&["ferry"], limit) };
            let alternatives = vec![vec!["ferry".to_owned(), "boat".to_owned()]];
            let either = SearchQuery { terms: Vec::new(), alternatives, ..whole_scope.clone() };
            for query in [whole_scope, either] {
                let answer = search(&env.store.shared, &env.scope, &query, env.now).unwrap().answer;
                let seqs: Vec<u64> = answer.hits.iter().map(|hit| hit.seq).collect();
                let expected: Vec<u64> = (1..=total).rev().take(limit).collect();
                assert_eq!(seqs, expected, "{:?} with limit {limit}", env.scope);
                let read: Vec<u64> = answer.messages.iter().map(|(_, message)| message.seq).collect();
                assert_eq!(read, expected);
            }
        }
    }
}
