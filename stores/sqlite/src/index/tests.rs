use threadkeep_core::{
    Batch, Collection, Content, Fingerprint, IdempotencyKey, MessageId, NewMessage, OpenThread, Role, Scope,
    SearchAnswer, SearchQuery, Store, ThreadId, Timestamp,
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
