use threadkeep_core::{
    Batch, Collection, Content, Fingerprint, IdempotencyKey, Maintenance, MessageId, NewMessage, OpenThread, Role,
    Scope, SearchAnswer, SearchQuery, Store, ThreadId, Timestamp,
};

use super::*;
use crate::{SqliteOptions, SqliteStore};

/// A store with one thread.
struct World {
    store: SqliteStore,
    scope: Scope,
    thread: ThreadId,
    now: Timestamp,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { background: false, ..SqliteOptions::default() };
        let store = SqliteStore::open(folder.path().join("store.db"), options).unwrap();
        let (scope, thread) = (Scope::user("acme", "ana").unwrap(), ThreadId::from_name(b"long"));
        let now = Timestamp::from_micros(0).unwrap();
        store.open_thread(&scope, OpenThread::new(&scope, thread), now).await.unwrap();
        Self { store, scope, thread, now, _folder: folder }
    }

    async fn append(&self, texts: &[String]) {
        let name = texts.join("\n");
        let mut batch = Batch::new(IdempotencyKey::Given(texts[0].clone()), Fingerprint::of(name.as_bytes()));
        batch.append.extend(texts.iter().map(|text| NewMessage {
            id: MessageId::from_name(text.as_bytes()),
            external_id: None,
            created_at: self.now,
            content: Content::text(Role::User, text),
        }));
        self.store.commit(&self.scope, self.thread, batch, self.now).await.unwrap();
    }

    /// Changes the thread without a message.
    async fn rename(&self, title: &str) {
        let mut batch = Batch::new(IdempotencyKey::Given(title.to_owned()), Fingerprint::of(title.as_bytes()));
        batch.patch.title = Some(Some(title.to_owned()));
        self.store.commit(&self.scope, self.thread, batch, self.now).await.unwrap();
    }

    fn read_portions(&self) -> Reading {
        self.store.shared.read(|connection| read_portions(connection, STEP)).unwrap()
    }

    fn write_portions(&self, reading: Reading) -> bool {
        writer::write_blocking(&self.store.shared, |connection| write_portions(connection, reading)).unwrap().is_all
    }

    fn catch_up(&self) -> u64 {
        let caught_up = catch_up(&self.store.shared, usize::MAX).unwrap();
        assert!(caught_up.done);
        caught_up.indexed
    }

    async fn assert_whole(&self) {
        assert_eq!(self.store.verify().await.unwrap().findings, []);
    }

    fn search(&self, terms: &[&str], limit: usize) -> SearchAnswer {
        let query = SearchQuery {
            collection: Collection::Messages,
            terms: terms.iter().map(|term| (*term).to_owned()).collect(),
            vector: None,
            thread: Some(self.thread),
            limit,
        };
        search(&self.store.shared, &self.scope, &query, self.now).unwrap().answer
    }

    fn segments(&self) -> i64 {
        let sql = "SELECT count(DISTINCT segid) FROM message_terms_idx";
        self.store.shared.read(|connection| Ok(connection.query_row(sql, [], |row| row.get(0))?)).unwrap()
    }
}

#[tokio::test]
async fn merging_leaves_few_segments_that_answer_the_same() {
    const COMMITS: usize = 100;
    let world = World::new().await;
    for number in 0..COMMITS {
        world.append(&[format!("ferry {number}")]).await;
        catch_up(&world.store.shared, usize::MAX).unwrap();
    }
    let (found, before) = (world.search(&["ferri"], 1_000), world.segments());
    assert_eq!(found.hits.len(), COMMITS);
    while tidy(&world.store.shared).unwrap() {}
    let after = world.segments();
    assert!(after < before && after <= 3, "{before} segments became {after}");
    assert_eq!(world.search(&["ferri"], 1_000), found);
}

#[tokio::test]
async fn of_common_words_the_newest_are_found_wherever_they_lie() {
    const MESSAGES: usize = 3_000;
    let world = World::new().await;
    let words = |number: usize| {
        let mut text = format!("m{number} always");
        let marks = [
            (number < 700, " early"),
            (number >= 2_300, " late"),
            (number.is_multiple_of(2), " even"),
            (number < 300 || number == 2_000, " mostly"),
            (number.is_multiple_of(100), " seldom"),
        ];
        marks.iter().filter(|(holds, _)| *holds).for_each(|(_, word)| text.push_str(word));
        text
    };
    let texts: Vec<String> = (0..MESSAGES).map(words).collect();
    for texts in texts.chunks(500) {
        world.append(texts).await;
    }
    catch_up(&world.store.shared, usize::MAX).unwrap();
    for (word, term) in
        [("always", "alway"), ("early", "earli"), ("late", "late"), ("even", "even"), ("mostly", "most")]
    {
        let holders = (0..MESSAGES).rev().filter(|number| words(*number).contains(word));
        let newest: Vec<u64> = holders.take(200).map(|number| number as u64 + 1).collect();
        let found = world.search(&[term], 200);
        assert_eq!(found.hits.iter().map(|hit| hit.seq).collect::<Vec<_>>(), newest, "{word}");
    }
    // Where the rarer words find enough, how often a common one occurs is estimated from its newest.
    let found = world.search(&["seldom", "alway", "even"], 20);
    let holders: Vec<u64> = found.hits.iter().map(|hit| hit.seq).collect();
    assert!(holders.iter().all(|seq| seq % 100 == 1), "{holders:?}");
    assert_eq!(found.frequencies[0], 30);
    assert!((2_900..=3_000).contains(&found.frequencies[1]), "{:?}", found.frequencies);
    assert!((1_400..=1_600).contains(&found.frequencies[2]), "{:?}", found.frequencies);
}

// Several processes index one file, and a process in its background and for a search.
#[tokio::test]
async fn what_was_read_before_others_indexed_the_thread_is_not_written() {
    let world = World::new().await;
    world.append(&["ferry".to_owned()]).await;
    assert_eq!(world.catch_up(), 1);
    world.rename("Boats").await;
    let without_messages = world.read_portions();
    assert_eq!(without_messages.portions.iter().map(|portion| portion.lines.len()).collect::<Vec<_>>(), [0]);
    world.append(&["harbour".to_owned()]).await;
    let with_a_message = world.read_portions();
    assert_eq!(world.catch_up(), 1);
    for overtaken in [without_messages, with_a_message] {
        assert!(!world.write_portions(overtaken));
        assert_eq!(world.catch_up(), 0, "nothing is indexed twice");
        world.assert_whole().await;
    }
    assert_eq!(world.search(&["harbour"], 10).hits.len(), 1);
}

#[tokio::test]
async fn what_was_read_of_an_index_that_was_begun_again_marks_nothing_as_indexed() {
    let world = World::new().await;
    world.append(&["ferry".to_owned()]).await;
    assert_eq!(world.catch_up(), 1);
    let other = ThreadId::from_name(b"other");
    world.store.open_thread(&world.scope, OpenThread::new(&world.scope, other), world.now).await.unwrap();
    let reading = world.read_portions();
    assert_eq!(reading.portions.len(), 1);
    writer::write_blocking(&world.store.shared, reset).unwrap();
    assert!(!world.write_portions(reading));
    assert_eq!(world.catch_up(), 1, "the first thread is indexed again");
    world.assert_whole().await;
}
