//! Collections and vectors: the results are the same as in SQLite, with and without the pgvector extension.

use threadkeep_core::{
    Backend, Collection, Embedding, IndexEntry, Map, MetadataFilter, Scope, SearchAnswer, SearchQuery, StoreError,
};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::support::{ana, client, now};

const WORDS: [&str; 6] = ["walrus", "narwhal", "amparo", "tesis", "Grünkohl", "東京"];

fn statutes() -> Collection {
    Collection::Named("statutes".to_owned())
}

fn acme() -> Scope {
    Scope::tenant("acme").unwrap()
}

/// A pseudorandom generator with the same sequence in every run.
struct Generator(u64);

impl Generator {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    /// Returns a vector with coarse numbers and a random magnitude, so that many vectors have the same direction.
    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        let scale = [1.0, 3.0, 0.1, 1e30, 1e-30][self.next(5)];
        (0..dimensions).map(|_| (self.next(5) as f32 - 2.0) * scale).collect()
    }

    fn embedding(&mut self) -> Embedding {
        let model = ["a model", "another"][self.next(2)].to_owned();
        let dimensions = [3, 3, 3, 4][self.next(4)];
        Embedding { model, vector: self.vector(dimensions) }
    }

    fn words(&mut self) -> Vec<String> {
        (0..self.next(4)).map(|_| WORDS[self.next(WORDS.len())].to_owned()).collect()
    }

    fn entry(&mut self, ids: usize) -> IndexEntry {
        let fields = if self.next(2) == 0 { r#"{"z":[1150.5],"a":"ñ"}"# } else { "{}" };
        IndexEntry {
            id: self.next(ids).to_string(),
            text: self.words().join(" "),
            fields: serde_json::from_str::<Map>(fields).unwrap(),
            embedding: (self.next(4) > 0).then(|| self.embedding()),
        }
    }
}

async fn fill(backend: &Backend) {
    let mut generator = Generator(7);
    for _ in 0..60 {
        let scope = if generator.next(3) == 0 { acme() } else { ana() };
        let mut entries: Vec<IndexEntry> = Vec::new();
        for _ in 0..10 {
            let entry = generator.entry(400);
            entries.retain(|other| other.id != entry.id);
            entries.push(entry);
        }
        backend.search.upsert(&scope, &statutes(), entries).await.unwrap();
        let removed: Vec<String> = (0..3).map(|_| generator.next(400).to_string()).collect();
        backend.search.remove(&scope, &statutes(), &removed).await.unwrap();
    }
    // More equal vectors than the first request to the server returns.
    let embedding = |_| Some(Embedding { model: "a model".to_owned(), vector: vec![9.0, 1.0, 1.0] });
    let entries = (0..300).map(|id| IndexEntry {
        embedding: embedding(id),
        ..IndexEntry { id: format!("s{id}"), text: String::new(), fields: Map::new(), embedding: None }
    });
    backend.search.upsert(&ana(), &statutes(), entries.collect()).await.unwrap();
}

async fn run_queries(backend: &Backend) -> Vec<(SearchQuery, SearchAnswer)> {
    let mut generator = Generator(11);
    let mut answers = Vec::new();
    for round in 0..120 {
        let scope = if generator.next(3) == 0 { acme() } else { ana() };
        let terms = generator.words().iter().flat_map(|word| threadkeep_core::text::terms(word)).collect();
        let vector = match round % 4 {
            0 => None,
            1 => {
                Some(Embedding { model: "a model".to_owned(), vector: vec![9.0, 1.0, 1.0 + generator.next(2) as f32] })
            }
            _ => Some(generator.embedding()),
        };
        let limit = [1, 5, 40, 1_000][generator.next(4)];
        let query = SearchQuery {
            collection: statutes(),
            terms,
            alternatives: Vec::new(),
            vector,
            filters: Vec::new(),
            metadata: MetadataFilter::default(),
            thread: None,
            limit,
            reads_messages: false,
        };
        let answer = backend.search.search(&scope, &query, now()).await.unwrap();
        answers.push((query, answer));
    }
    answers
}

async fn without_vectors() -> Option<Database> {
    Some(Server::shared()?.create_database().await)
}

/// Creates a database with pgvector in a schema: the default one, or a separate one as on Supabase.
async fn with_vectors(schema: &str) -> Option<Database> {
    let database = Server::with_vectors()?.create_database().await;
    drop(PostgresStore::open(&database.url()).await.unwrap());
    let install = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; GRANT USAGE ON SCHEMA {schema} TO threadkeep_server; \
         CREATE EXTENSION vector SCHEMA {schema}"
    );
    client(&database).await.batch_execute(&install).await.unwrap();
    Some(database)
}

async fn databases() -> Vec<(&'static str, Database)> {
    let all = [
        ("without pgvector", without_vectors().await),
        ("with pgvector", with_vectors("public").await),
        ("with pgvector in another schema", with_vectors("\"ex tensions\"").await),
    ];
    all.into_iter().filter_map(|(name, database)| Some((name, database?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn search_returns_the_same_results_as_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default()).unwrap().backend();
    fill(&sqlite).await;
    let expected = run_queries(&sqlite).await;
    assert!(expected.iter().any(|(_, answer)| answer.entries.len() > 100));
    for (name, database) in databases().await {
        let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
        fill(&backend).await;
        for ((query, expected), (_, found)) in expected.iter().zip(run_queries(&backend).await) {
            assert_eq!(found, *expected, "{name}: {query:?}");
        }
        assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
    }
}

/// Adds many entries with the same vector of 8,192 dimensions to a collection with one entry.
const ADD_MANY_ENTRIES: &str = "INSERT INTO threadkeep.entries (collection_no, no, tenant, owner, id, text)
    SELECT e.collection_no, nextval('threadkeep.entry_numbers'), e.tenant, e.owner, 'm' || g, ''
    FROM threadkeep.entries e, generate_series(1, 975) AS g;
  INSERT INTO threadkeep.entry_terms (collection_no, no, tenant, owner, terms)
    SELECT collection_no, no, tenant, owner, threadkeep.terms_of_entry(collection_no, 'walrus')
    FROM threadkeep.entries WHERE id LIKE 'm%';
  INSERT INTO threadkeep.entry_points (collection_no, no, tenant, owner, model, point)
    SELECT collection_no, no, tenant, owner, 'a model', array_fill(0.5::real, ARRAY[8192])
    FROM threadkeep.entries WHERE id LIKE 'm%';
  UPDATE threadkeep.collections SET entry_count = 976";

// Without the extension, the client reads and compares all vectors, up to a limit.
#[tokio::test(flavor = "multi_thread")]
async fn large_collections_require_pgvector() {
    let embedding = |number: usize| {
        let mut vector = vec![0.0; 8_192];
        vector[number] = 1.0;
        Some(Embedding { model: "a model".to_owned(), vector })
    };
    let entry = |number: usize| IndexEntry {
        id: number.to_string(),
        text: "walrus".to_owned(),
        fields: Map::new(),
        embedding: embedding(number),
    };
    for (name, database) in databases().await {
        let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
        backend.search.upsert(&ana(), &statutes(), vec![entry(700)]).await.unwrap();
        client(&database).await.batch_execute(ADD_MANY_ENTRIES).await.unwrap();
        let query = SearchQuery {
            collection: statutes(),
            terms: Vec::new(),
            alternatives: Vec::new(),
            vector: embedding(700),
            filters: Vec::new(),
            metadata: MetadataFilter::default(),
            thread: None,
            limit: 1,
            reads_messages: false,
        };
        let found = backend.search.search(&ana(), &query, now()).await.unwrap();
        assert_eq!((found.entries[0].id.as_str(), found.entries[0].similarity), ("700", Some(1.0)), "{name}");
        backend.search.upsert(&ana(), &statutes(), vec![entry(1)]).await.unwrap();
        let found = backend.search.search(&ana(), &query, now()).await;
        if name == "without pgvector" {
            let error = found.unwrap_err();
            assert!(matches!(error, StoreError::LimitExceeded { max: 976, actual: 977, .. }), "{error}");
            assert!(error.to_string().contains("pgvector"), "{error}");
        } else {
            assert_eq!(found.unwrap().entries[0].id, "700");
        }
        let words = SearchQuery { terms: vec!["walrus".to_owned()], vector: None, ..query };
        assert_eq!(backend.search.search(&ana(), &words, now()).await.unwrap().documents, 977);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_write_one_collection_concurrently() {
    let Some(database) = without_vectors().await else { return };
    let writers = (0..8).map(|writer| {
        let url = database.url();
        tokio::spawn(async move {
            let backend = PostgresStore::open(&url).await.unwrap().backend();
            let mut generator = Generator(writer);
            for _ in 0..20 {
                let mut entries = vec![generator.entry(30), generator.entry(30), generator.entry(30)];
                entries.dedup_by(|one, other| one.id == other.id);
                if entries.len() == 3 && entries[0].id != entries[2].id {
                    backend.search.upsert(&ana(), &statutes(), entries).await.unwrap();
                }
                backend.search.remove(&ana(), &statutes(), &[generator.next(30).to_string()]).await.unwrap();
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test]
async fn repair_rebuilds_derived_data_of_entries() {
    let Some(database) = without_vectors().await else { return };
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    fill(&backend).await;
    let before = run_queries(&backend).await;
    let client = client(&database).await;
    for damage in [
        "UPDATE threadkeep.collections SET entry_count = 7",
        "DELETE FROM threadkeep.entry_terms WHERE no % 2 = 0",
        "UPDATE threadkeep.entry_terms SET no = -no WHERE no % 3 = 0",
    ] {
        client.batch_execute(damage).await.unwrap();
        assert_ne!(backend.maintenance.verify().await.unwrap().findings, [], "{damage}");
        backend.maintenance.repair(now()).await.unwrap();
        assert_eq!(backend.maintenance.verify().await.unwrap().findings, [], "{damage}");
        assert_eq!(run_queries(&backend).await, before, "{damage}");
    }
    drop(backend);
    // Simulates terms that another version of the text analysis built.
    let damage = "UPDATE threadkeep.entry_terms SET terms = array_to_tsvector(ARRAY['other']); \
                UPDATE threadkeep.marks SET value = 0 WHERE name = 'analysis'";
    client.batch_execute(damage).await.unwrap();
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    assert_eq!(run_queries(&backend).await, before);
    client.batch_execute("UPDATE threadkeep.entries SET fields = '[' WHERE fields IS NOT NULL").await.unwrap();
    let findings = backend.maintenance.verify().await.unwrap().findings;
    assert!(findings.iter().any(|finding| finding.detail.contains("fields")), "{findings:?}");
}
