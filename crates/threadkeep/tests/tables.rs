//! When tables of tokens are read. A process of its own: in it nothing else counts.
#![cfg(feature = "memory")]

use std::sync::Arc;

use threadkeep::context::ContextPolicy;
use threadkeep::core::{TokenCount, TokenCounter};
use threadkeep::memory::ContextOptions;
use threadkeep::tokens::{Cl100k, O200k};
use threadkeep::{Draft, Scope};

#[tokio::test]
async fn a_table_is_read_with_the_first_text_it_counts() {
    let (scope, memory) = (Scope::user("acme", "ana").unwrap(), threadkeep::open("memory:").await.unwrap());
    let thread = memory.open(&scope).await.unwrap().thread.id;
    memory.append(&scope, thread, Draft::user("What is amparo?")).await.unwrap();
    let policy = ContextPolicy { budget: Some(TokenCount(500)), ..ContextPolicy::default() };
    memory.context(&scope, thread, None, &policy).await.unwrap();
    let counter: Arc<dyn TokenCounter> = Arc::new(Cl100k);
    assert!(!Cl100k::is_loaded() && !O200k::is_loaded(), "having a counter is not counting");

    let options = ContextOptions { counter, ..ContextOptions::default() };
    memory.context_with(&scope, thread, None, &policy, &options).await.unwrap();
    assert!(Cl100k::is_loaded() && !O200k::is_loaded());
}
