//! Opening stores by URL.

use threadkeep::OpenError;

#[tokio::test]
async fn invalid_urls_and_unknown_backends_are_rejected() {
    assert!(matches!(threadkeep::open("conversations").await, Err(OpenError::Url(_))));
    let error = threadkeep::open("carrier-pigeon:loft").await.unwrap_err();
    assert!(error.to_string().starts_with("unknown backend `carrier-pigeon:`; this program supports "), "{error}");
}

#[cfg(feature = "memory")]
#[tokio::test]
async fn in_memory_stores_are_separate() {
    let scope = threadkeep::Scope::user("acme", "ana").unwrap();
    let (one, other) = (threadkeep::open("memory:").await.unwrap(), threadkeep::open("memory:").await.unwrap());
    let thread = one.open(&scope).await.unwrap().thread.id;
    assert!(one.find_thread(&scope, thread).await.unwrap().is_some());
    assert!(other.find_thread(&scope, thread).await.unwrap().is_none());
    assert!(matches!(threadkeep::open("memory:elsewhere").await, Err(OpenError::Url(_))));
}

// S0.35, S4.34
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_conversation_in_a_file_persists_across_sessions() {
    use threadkeep::{Draft, Scope};
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("missing/conversations.db").display());
    let scope = Scope::user("acme", "ana").unwrap();
    let (thread, messages) = {
        let memory = threadkeep::open(&url).await.unwrap();
        let thread = memory.open_by_key(&scope, "web:42").await.unwrap().thread.id;
        memory.append(&scope, thread, Draft::user("What is amparo?")).await.unwrap();
        memory.set_preference(&scope, "language", "es").await.unwrap();
        (thread, memory.newest(&scope, thread, 16).await.unwrap())
    };
    let memory = threadkeep::open(&url).await.unwrap();
    let found = memory.open_by_key(&scope, "web:42").await.unwrap();
    assert!(!found.created);
    assert_eq!(found.thread.id, thread);
    assert_eq!(memory.newest(&scope, thread, 16).await.unwrap(), messages);
    assert_eq!(memory.preference::<String>(&scope, "language").await.unwrap().as_deref(), Some("es"));
    memory.append(&scope, thread, Draft::assistant("A remedy.")).await.unwrap();
    assert_eq!(memory.newest(&scope, thread, 16).await.unwrap().len(), 2);
    assert!(matches!(threadkeep::open("sqlite:").await, Err(OpenError::Url(_))));
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_conversation_in_a_database_persists_across_sessions() {
    use threadkeep::{Draft, Scope};
    let Some(server) = threadkeep_postgres_server::Server::shared() else { return };
    let database = server.create_database().await;
    let scope = Scope::user("acme", "ana").unwrap();
    let messages = {
        let memory = threadkeep::open(&database.url()).await.unwrap();
        let thread = memory.open_by_key(&scope, "web:42").await.unwrap().thread.id;
        memory.append(&scope, thread, Draft::user("What is amparo?")).await.unwrap();
        memory.newest(&scope, thread, 16).await.unwrap()
    };
    let url = database.url().replace("postgres://", "postgresql://");
    let memory = threadkeep::open(&url).await.unwrap();
    let found = memory.open_by_key(&scope, "web:42").await.unwrap();
    assert!(!found.created);
    assert_eq!(memory.newest(&scope, found.thread.id, 16).await.unwrap(), messages);
    let error = threadkeep::open("postgres://ana:secret@127.0.0.1:1/app").await.unwrap_err();
    assert!(matches!(error, OpenError::Store(_)) && !format!("{error:?}").contains("secret"));
}
