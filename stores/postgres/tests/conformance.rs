//! Runs the store conformance suite on the PostgreSQL store: directly without pgvector, and through PgBouncer in transaction
//! mode with pgvector.

use std::path::PathBuf;

use async_trait::async_trait;
use threadkeep_core::Backend;
use threadkeep_postgres_server::{Database, Pooler, Server};
use threadkeep_store_conformance::{Capabilities, Factory, Instance, property_test};
use threadkeep_store_postgres::{PostgresOptions, PostgresStore};
use tokio::sync::OnceCell;

struct PostgresFactory {
    server: &'static Server,
    pooler: Option<Pooler>,
}

impl PostgresFactory {
    async fn direct() -> Option<Self> {
        Some(Self { server: Server::shared()?, pooler: None })
    }

    /// Returns the factory whose pooler and server all tests share.
    async fn pooled() -> Option<&'static Self> {
        static POOLED: OnceCell<Option<PostgresFactory>> = OnceCell::const_new();
        let start = async || {
            let server = Server::with_vectors().or_else(Server::shared)?;
            let pooler = Some(Pooler::start(server).await?);
            Some(Self { server, pooler })
        };
        POOLED.get_or_init(start).await.as_ref()
    }

    /// Creates the schema of a new database, and pgvector if the server has it.
    async fn prepare(&self, url: String) {
        drop(PostgresStore::open(&url).await.expect("the schema is created"));
        if self.pooler.is_some() && Server::with_vectors().is_some() {
            let client = PostgresOptions::from_url(&url)
                .expect("the URL is valid")
                .connect()
                .await
                .expect("the server responds");
            client.batch_execute("CREATE EXTENSION vector").await.expect("pgvector is installed");
        }
    }

    /// Returns the URL of a database. Behind the pooler statements are not prepared, and the listening connection bypasses it.
    fn url(&self, database: &Database) -> String {
        match &self.pooler {
            None => format!("{}?pool_size=8&connect_timeout=30", database.url()),
            Some(pooler) => {
                let pooled = pooler.url(database.name());
                format!("{pooled}?pool_size=8&connect_timeout=30&prepare=off&direct={}", database.url())
            }
        }
    }
}

#[async_trait]
impl Factory for PostgresFactory {
    async fn create(&self) -> Box<dyn Instance> {
        let database = self.server.lend_database(|url| self.prepare(url), PostgresStore::EMPTY).await;
        let url = self.url(&database);
        let store = PostgresStore::open(&url).await.expect("the new store opens");
        Box::new(PostgresInstance { store, url, database })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durable: true,
            named_collections: true,
            compaction: false,
            snapshots: threadkeep_core::Consistency::Store,
        }
    }
}

struct PostgresInstance {
    store: PostgresStore,
    url: String,
    database: Database,
}

#[async_trait]
impl Instance for PostgresInstance {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Self { store, url, database } = *self;
        drop(store);
        let store = PostgresStore::open(&url).await.expect("the store opens again");
        Box::new(PostgresInstance { store, url, database })
    }

    /// Returns no files, because they contain erased text until VACUUM. tests/servers/erasure.rs checks the tables
    /// instead.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

// S1.40
mod directly {
    threadkeep_store_conformance::conformance_tests!(crate::PostgresFactory::direct);
}

mod behind_a_pooler {
    threadkeep_store_conformance::conformance_tests!(crate::PostgresFactory::pooled);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_matches_the_model() {
    if let Some(direct) = PostgresFactory::direct().await {
        property_test(&direct, 32).await;
    }
}
