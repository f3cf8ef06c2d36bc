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
