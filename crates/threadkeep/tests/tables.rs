//! Tests when token tables are loaded. A separate test binary, so that no other test loads them.
#![cfg(feature = "memory")]

use std::sync::Arc;

use threadkeep::context::ContextPolicy;
use threadkeep::core::{TokenCount, TokenCounter};
use threadkeep::memory::ContextOptions;
use threadkeep::tokens::{Cl100k, O200k};
use threadkeep::{Draft, Scope};

#[tokio::test]
async fn token_tables_are_loaded_by_the_first_count() {
    let (scope, memory) = (Scope::user("acme", "ana").unwrap(), threadkeep::open("memory:").await.unwrap());
    let thread = memory.open(&scope).await.unwrap().thread.id;
    memory.append(&scope, thread, Draft::user("What is amparo?")).await.unwrap();
    let policy = ContextPolicy { budget: Some(TokenCount(500)), ..ContextPolicy::default() };
    memory.context(&scope, thread, None, &policy).await.unwrap();
    let counter: Arc<dyn TokenCounter> = Arc::new(Cl100k);
    assert!(!Cl100k::is_loaded() && !O200k::is_loaded(), "creating a counter loads no table");

    let options = ContextOptions { counter, ..ContextOptions::default() };
    memory.context_with(&scope, thread, None, &policy, &options).await.unwrap();
    assert!(Cl100k::is_loaded() && !O200k::is_loaded());
}
