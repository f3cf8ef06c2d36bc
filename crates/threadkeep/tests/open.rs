//! Opening stores by URL.

use threadkeep::OpenError;

#[tokio::test]
async fn what_names_no_backend_is_refused_with_a_reason() {
    assert!(matches!(threadkeep::open("conversations").await, Err(OpenError::Url(_))));
    let error = threadkeep::open("carrier-pigeon:loft").await.unwrap_err();
    assert!(error.to_string().starts_with("no backend for carrier-pigeon: in this program"), "{error}");
}

#[cfg(feature = "memory")]
#[tokio::test]
async fn each_memory_is_its_own() {
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
async fn a_file_keeps_a_conversation_across_sessions() {
    use threadkeep::{Draft, Scope};
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("missing/conversations.db").display());
    let scope = Scope::user("acme", "ana").unwrap();
    let (thread, said) = {
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
    assert_eq!(memory.newest(&scope, thread, 16).await.unwrap(), said);
    assert_eq!(memory.preference::<String>(&scope, "language").await.unwrap().as_deref(), Some("es"));
    memory.append(&scope, thread, Draft::assistant("A remedy.")).await.unwrap();
    assert_eq!(memory.newest(&scope, thread, 16).await.unwrap().len(), 2);
    assert!(matches!(threadkeep::open("sqlite:").await, Err(OpenError::Url(_))));
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_database_keeps_a_conversation_across_sessions() {
    use threadkeep::{Draft, Scope};
    let Some(server) = threadkeep_postgres_server::Server::shared() else { return };
    let database = server.create_database().await;
    let scope = Scope::user("acme", "ana").unwrap();
    let said = {
        let memory = threadkeep::open(&database.url()).await.unwrap();
        let thread = memory.open_by_key(&scope, "web:42").await.unwrap().thread.id;
        memory.append(&scope, thread, Draft::user("What is amparo?")).await.unwrap();
        memory.newest(&scope, thread, 16).await.unwrap()
    };
    let url = database.url().replace("postgres://", "postgresql://");
    let memory = threadkeep::open(&url).await.unwrap();
    let found = memory.open_by_key(&scope, "web:42").await.unwrap();
    assert!(!found.created);
    assert_eq!(memory.newest(&scope, found.thread.id, 16).await.unwrap(), said);
    let nowhere = threadkeep::open("postgres://ana:secret@127.0.0.1:1/app").await.unwrap_err();
    assert!(matches!(nowhere, OpenError::Store(_)) && !format!("{nowhere:?}").contains("secret"));
}
