use threadkeep_core::{OpenThread, Owner, ThreadPatch};
use threadkeep_memory::{Draft, MemoryOptions, Titles};

use super::test_env::{TestEnv, acme, ana, on_all_stores};

// S3.27, S3.31
#[tokio::test(start_paused = true)]
async fn the_first_user_message_sets_the_title() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let read_title = async || memory.get_thread(&scope, thread).await.unwrap().title;
        memory.append(&scope, thread, Draft::assistant("How can I help?")).await.unwrap();
        assert_eq!(read_title().await, None);
        let question = format!("¿Qué  es\n{}", "é".repeat(150));
        let appended = memory.append(&scope, thread, Draft::user(&question)).await.unwrap();
        assert_eq!(read_title().await.unwrap(), format!("¿Qué es {}", "é".repeat(92)));
        // The title was set in the same commit as the message.
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().positions.change, appended.change);

        memory.append(&scope, thread, Draft::user("another question")).await.unwrap();
        env.another_process().append(&scope, thread, Draft::user("and one more")).await.unwrap();
        assert!(read_title().await.unwrap().starts_with("¿Qué es"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_explicit_title_is_kept() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, ana());
        let open =
            OpenThread { title: Some("Given".to_owned()), ..OpenThread::new(&scope, memory.generate_thread_id()) };
        let thread = memory.open_thread(&scope, open).await.unwrap().thread.id;
        memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().title.as_deref(), Some("Given"));

        let patch = ThreadPatch { title: Some(None), ..ThreadPatch::default() };
        memory.patch_thread(&scope, thread, patch, None).await.unwrap();
        memory.append(&scope, thread, Draft::user("next")).await.unwrap();
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().title.as_deref(), Some("next"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn users_do_not_set_the_title_of_a_shared_thread() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let thread = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        memory.append(&ana(), thread, Draft::user("by a user")).await.unwrap();
        assert_eq!(memory.get_thread(&acme(), thread).await.unwrap().title, None);
        memory.append(&acme(), thread, Draft::user("by the application")).await.unwrap();
        assert_eq!(memory.get_thread(&acme(), thread).await.unwrap().title.as_deref(), Some("by the application"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn automatic_titles_can_be_disabled() {
    on_all_stores(async |env: TestEnv| {
        let env = env.with_options(MemoryOptions { titles: Titles::Manual, ..MemoryOptions::default() });
        let thread = env.open_thread().await;
        env.memory.append(&ana(), thread, Draft::user("hello")).await.unwrap();
        assert_eq!(env.memory.get_thread(&ana(), thread).await.unwrap().title, None);
    })
    .await;
}
