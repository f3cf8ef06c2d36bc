use threadkeep_core::{Conflict, Map, OpenThread, Owner, ThreadOrder, ThreadPatch, ThreadQuery, Value};
use threadkeep_memory::{Draft, Retention, ThreadConfig};

use super::probe::{Fate, Probe};
use super::world::{World, acme, ana, ben, everywhere};

fn map(key: &str, value: impl Into<Value>) -> Map {
    Map::from_iter([(key.to_owned(), value.into())])
}

// S0.09, S0.12, S0.13
#[tokio::test(start_paused = true)]
async fn threads_are_opened_found_and_deleted() {
    everywhere(async |world: World| {
        let (memory, scope) = (&world.memory, ana());
        let metadata = map("userLocation", "London");
        let open = OpenThread { metadata: metadata.clone(), ..OpenThread::new(&scope, memory.mint_thread_id()) };
        let opened = memory.open_thread(&scope, open.clone()).await.unwrap();
        assert!(opened.created);
        assert_eq!((opened.thread.id, &opened.thread.metadata), (open.id, &metadata));
        assert_eq!(memory.open_by_id(&scope, open.id).await.unwrap().thread, opened.thread);

        let other = world.thread().await;
        for thread in [open.id, other] {
            memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
        }
        memory.delete_thread(&scope, open.id).await.unwrap();
        assert!(memory.find_thread(&scope, open.id).await.unwrap().is_none());
        assert!(memory.newest(&scope, open.id, 10).await.unwrap_err().is_not_found());
        assert!(memory.delete_thread(&scope, open.id).await.unwrap_err().is_not_found());
        assert!(memory.append(&scope, open.id, Draft::user("late")).await.unwrap_err().is_not_found());
        assert_eq!(memory.newest(&scope, other, 10).await.unwrap().len(), 1);
    })
    .await;
}

// S4.04, S4.05, S4.06, S4.07, S4.20
#[tokio::test(start_paused = true)]
async fn a_channel_and_its_threads_are_conversations_of_their_own() {
    everywhere(async |world: World| {
        let (memory, scope) = (&world.memory, acme());
        let keys = ["C123456", "C123456:1234567890.123456", "C999999:1234567890.123456"];
        for key in keys {
            let opened = memory.open_by_key(&scope, key).await.unwrap();
            assert!(opened.created);
            assert_eq!(opened.thread.owner, Owner::Tenant);
            memory.append(&scope, opened.thread.id, Draft::user(format!("in {key}"))).await.unwrap();
        }
        for key in keys {
            let again = world.another_process().open_by_key(&scope, key).await.unwrap();
            assert!(!again.created);
            let messages = memory.newest(&scope, again.thread.id, 10).await.unwrap();
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].plain_text(), format!("in {key}"));
            assert_eq!(memory.find_thread_by_key(&scope, key).await.unwrap().unwrap().id, again.thread.id);
        }
        assert!(memory.find_thread_by_key(&ana(), keys[0]).await.unwrap().is_none(), "ana owns no such thread");
    })
    .await;
}

// S0.14
#[tokio::test(start_paused = true)]
async fn nobody_sees_what_belongs_to_another() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        memory.append(&ana(), thread, Draft::user("private")).await.unwrap();
        assert!(memory.find_thread(&ben(), thread).await.unwrap().is_none());
        assert!(memory.open_by_id(&ben(), thread).await.unwrap_err().is_not_found());
        assert!(memory.newest(&ben(), thread, 10).await.unwrap_err().is_not_found());
        assert!(memory.append(&ben(), thread, Draft::user("intruder")).await.unwrap_err().is_not_found());
        assert!(memory.subscribe(&ben(), thread, Default::default()).await.is_err());
        assert!(
            memory.list_threads(&ben(), &ThreadQuery::new(ThreadOrder::Recent, 10)).await.unwrap().threads.is_empty()
        );
    })
    .await;
}

// S0.15
#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_by_creation_or_recency() {
    everywhere(async |world: World| {
        let (memory, scope) = (&world.memory, ana());
        let mut created = Vec::new();
        for _ in 0..5 {
            world.clock.advance_ms(10);
            created.push(world.thread().await);
        }
        world.clock.advance_ms(10);
        memory.append(&scope, created[1], Draft::user("hello")).await.unwrap();
        let by = async |order| {
            let (mut query, mut ids) = (ThreadQuery::new(order, 2), Vec::new());
            loop {
                let page = memory.list_threads(&scope, &query).await.unwrap();
                ids.extend(page.threads.iter().map(|thread| thread.id));
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => return ids,
                }
            }
        };
        assert_eq!(by(ThreadOrder::Created).await, created);
        let recent = [1, 4, 3, 2, 0].map(|number: usize| created[number]);
        assert_eq!(by(ThreadOrder::Recent).await, recent);
        assert!(memory.get_thread(&scope, created[1]).await.unwrap().updated_at == memory.now());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn state_changes_only_from_where_it_was_read() {
    everywhere(async |world: World| {
        let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
        let (state, change) = memory.state(&scope, thread).await.unwrap();
        assert!(state.is_empty());
        let next = memory.set_state(&scope, thread, map("step", 1), Some(change)).await.unwrap();
        let error = memory.set_state(&scope, thread, map("step", 2), Some(change)).await.unwrap_err();
        assert_eq!(error.conflict(), Some(&Conflict::Change { expected: change, actual: next }));
        assert_eq!(memory.state(&scope, thread).await.unwrap(), (map("step", 1), next));

        let patch = ThreadPatch { metadata: Some(map("topic", "tubes")), ..ThreadPatch::default() };
        memory.patch_thread(&scope, thread, patch, None).await.unwrap();
        let found = memory.get_thread(&scope, thread).await.unwrap();
        assert_eq!((found.metadata, found.state), (map("topic", "tubes"), map("step", 1)));
    })
    .await;
}

// S1.23, S1.44
#[tokio::test(start_paused = true)]
async fn configuration_is_kept_and_bounds_nothing_that_is_stored() {
    everywhere(async |world: World| {
        let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
        assert_eq!(memory.thread_config(&scope, thread).await.unwrap(), ThreadConfig::default());
        let config = ThreadConfig {
            history_limit: Some(2),
            enabled_tools: Some(vec!["get_route".to_owned()]),
            model: Some("openai/gpt-4o-mini".to_owned()),
            retention: Some(Retention { max_messages: Some(20), ttl_minutes: Some(60) }),
            ..ThreadConfig::default()
        };
        memory.set_thread_config(&scope, thread, &config, None).await.unwrap();
        assert_eq!(world.another_process().thread_config(&scope, thread).await.unwrap(), config);
        for _ in 0..4 {
            memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
        }
        assert_eq!(memory.newest(&scope, thread, 10).await.unwrap().len(), 4);

        let nonsense = ThreadConfig { history_limit: Some(0), ..ThreadConfig::default() };
        let error = memory.set_thread_config(&scope, thread, &nonsense, None).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid history_limit: must be at least 1");
        let unknown = threadkeep_core::ThreadId::from_name(b"unknown");
        assert!(memory.thread_config(&scope, unknown).await.unwrap_err().is_not_found());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_reply_was_lost_is_a_deletion() {
    let (probe, world) = Probe::world();
    let thread = world.thread().await;
    probe.will_end([Fate::LostReply]);
    world.memory.delete_thread(&ana(), thread).await.unwrap();
    assert!(world.memory.find_thread(&ana(), thread).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_opening_whose_reply_was_lost_made_the_thread() {
    let (probe, world) = Probe::world();
    probe.will_end([Fate::LostReply]);
    assert!(world.memory.open(&ana()).await.unwrap().created);
    probe.will_end([Fate::LostReply]);
    assert!(world.memory.open_by_key(&ana(), "C1").await.unwrap().created);
    probe.will_end([Fate::LostReply]);
    assert!(!world.memory.open_by_key(&ana(), "C1").await.unwrap().created);
}

// S4.37
#[tokio::test(start_paused = true)]
async fn another_process_on_the_same_store_goes_on_where_the_first_stood() {
    everywhere(async |world: World| {
        let (memory, scope, thread) = (&world.memory, ana(), world.thread().await);
        let mut content = threadkeep_core::Content::text(threadkeep_core::Role::Assistant, "Minor delays");
        content.agent = Some("CIRCLE".to_owned());
        content.data = Some(threadkeep_core::JsonText::new(r#"{"line": "circle",  "b": 1, "a": 2}"#).unwrap());
        memory.append(&scope, thread, Draft::user("Circle line?")).await.unwrap();
        memory.append(&scope, thread, content.clone()).await.unwrap();
        let process = world.another_process();
        assert_eq!(process.newest(&scope, thread, 10).await.unwrap(), memory.newest(&scope, thread, 10).await.unwrap());
        assert_eq!(process.newest(&scope, thread, 1).await.unwrap()[0].content, content);
        process.append(&scope, thread, Draft::user("Any delays there?")).await.unwrap();
        assert_eq!(memory.newest(&scope, thread, 1).await.unwrap()[0].plain_text(), "Any delays there?");
    })
    .await;
}
