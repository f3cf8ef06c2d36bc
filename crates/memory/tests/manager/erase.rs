use threadkeep_core::{
    Content, DocumentOwner, DocumentQuery, DocumentWrite, JsonText, Namespace, OpenThread, Owner, Role, Scope,
    StoreError, ThreadOrder, ThreadQuery,
};
use threadkeep_memory::{AppendOptions, Draft, EraseOptions, EraseReport, MemoryError, SharedMessages};

use super::world::{World, acme, ana, ben, everywhere, user_id};

async fn document(world: &World, scope: &Scope, owner: DocumentOwner, namespace: Namespace, key: &str) {
    let value = Some(JsonText::new("1").unwrap());
    let write = DocumentWrite { owner, namespace, key: key.to_owned(), expected: None, value, expires_at: None };
    world.backend.store.write_document(scope, write, world.memory.now()).await.unwrap();
}

fn from(author: &str, text: &str) -> Draft {
    Draft::new(Content { author: Some(author.to_owned()), ..Content::text(Role::User, text) })
}

#[tokio::test(start_paused = true)]
async fn everything_of_a_user_goes_and_nothing_of_others() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let elsewhere = Scope::user("other", "ana").unwrap();
        for scope in [ana(), ben(), elsewhere.clone()] {
            for _ in 0..2 {
                let thread = memory.open(&scope).await.unwrap().thread.id;
                memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
            }
            memory.set_preference(&scope, "line", "Northern").await.unwrap();
        }
        document(&world, &ana(), DocumentOwner::User(user_id("ana")), Namespace::system("summary").unwrap(), "s").await;
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.mint_thread_id()) };
        let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        for draft in [from("ana", "my secret"), from("ben", "hi"), from("ana", "bye")] {
            memory.append(&acme(), shared, draft).await.unwrap();
        }

        let report = memory.erase_user(&acme(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(report, EraseReport { threads: 2, messages: 2, documents: 2, shared_messages: 0 });
        assert_eq!(memory.newest(&acme(), shared, 10).await.unwrap().len(), 3);
        let options = EraseOptions { shared_messages: SharedMessages::Erase };
        let report = memory.erase_user(&acme(), &user_id("ana"), options).await.unwrap();
        assert_eq!(report, EraseReport { shared_messages: 2, ..EraseReport::default() });
        let left = memory.newest(&acme(), shared, 10).await.unwrap();
        assert_eq!(left.iter().map(|message| message.plain_text()).collect::<Vec<_>>(), ["hi"]);
        assert_eq!(memory.get_thread(&acme(), shared).await.unwrap().title.as_deref(), Some("hi"));

        let query = ThreadQuery::new(ThreadOrder::Created, 10);
        assert!(memory.list_threads(&ana(), &query).await.unwrap().threads.is_empty());
        let documents = DocumentQuery::of(DocumentOwner::User(user_id("ana")));
        let left = world.backend.store.list_documents(&ana(), &documents, memory.now()).await.unwrap();
        assert_eq!(left, []);
        for scope in [ben(), elsewhere] {
            assert_eq!(memory.list_threads(&scope, &query).await.unwrap().threads.len(), 2);
            assert_eq!(memory.list_preferences(&scope).await.unwrap().len(), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn more_than_a_page_goes() {
    let world = World::plain();
    let memory = &world.memory;
    for number in 0..1_100 {
        memory.open(&ana()).await.unwrap();
        memory.set_preference(&ana(), &number.to_string(), &number).await.unwrap();
    }
    let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.mint_thread_id()) };
    let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
    for _ in 0..3 {
        let drafts = (0..400).flat_map(|_| [from("ana", "mine"), from("ben", "his")]);
        memory.append_all(&acme(), shared, drafts.collect(), &AppendOptions::default()).await.unwrap();
    }
    let options = EraseOptions { shared_messages: SharedMessages::Erase };
    let report = memory.erase_user(&acme(), &user_id("ana"), options).await.unwrap();
    assert_eq!(report, EraseReport { threads: 1_100, messages: 0, documents: 1_100, shared_messages: 1_200 });
    assert_eq!(memory.get_thread(&acme(), shared).await.unwrap().message_count, 1_200);
    let again = memory.erase_user(&acme(), &user_id("ana"), options).await.unwrap();
    assert_eq!(again, EraseReport::default());
}

#[tokio::test(start_paused = true)]
async fn nobody_erases_another_user() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        memory.open(&ana()).await.unwrap();
        let refused = memory.erase_user(&ben(), &user_id("ana"), EraseOptions::default()).await.unwrap_err();
        assert!(matches!(refused, MemoryError::Store(StoreError::Denied(_))), "{refused}");
        let shared = EraseOptions { shared_messages: SharedMessages::Erase };
        assert!(memory.erase_user(&ana(), &user_id("ana"), shared).await.is_err());
        let report = memory.erase_user(&ana(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(report.threads, 1);
    })
    .await;
}
