use threadkeep_core::{Conflict, Map, OpenThread, Owner, ThreadOrder, ThreadPatch, ThreadQuery, Value};
use threadkeep_memory::{Draft, Retention, ThreadConfig, ToolSwitch};

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn map_with(key: &str, value: impl Into<Value>) -> Map {
    Map::from_iter([(key.to_owned(), value.into())])
}

// S0.09, S0.12, S0.13
#[tokio::test(start_paused = true)]
async fn threads_are_opened_found_and_deleted() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, ana());
        let metadata = map_with("userLocation", "London");
        let open = OpenThread { metadata: metadata.clone(), ..OpenThread::new(&scope, memory.generate_thread_id()) };
        let opened = memory.open_thread(&scope, open.clone()).await.unwrap();
        assert!(opened.created);
        assert_eq!((opened.thread.id, &opened.thread.metadata), (open.id, &metadata));
        assert_eq!(memory.open_by_id(&scope, open.id).await.unwrap().thread, opened.thread);

        let other = env.open_thread().await;
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
async fn a_channel_and_its_threads_are_separate_conversations() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, acme());
        let keys = ["C123456", "C123456:1234567890.123456", "C999999:1234567890.123456"];
        for key in keys {
            let opened = memory.open_by_key(&scope, key).await.unwrap();
            assert!(opened.created);
            assert_eq!(opened.thread.owner, Owner::Tenant);
            memory.append(&scope, opened.thread.id, Draft::user(format!("in {key}"))).await.unwrap();
        }
        for key in keys {
            let reopened = env.another_process().open_by_key(&scope, key).await.unwrap();
            assert!(!reopened.created);
            let messages = memory.newest(&scope, reopened.thread.id, 10).await.unwrap();
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].plain_text(), format!("in {key}"));
            assert_eq!(memory.find_thread_by_key(&scope, key).await.unwrap().unwrap().id, reopened.thread.id);
        }
        assert!(memory.find_thread_by_key(&ana(), keys[0]).await.unwrap().is_none(), "the thread is not Ana's");
    })
    .await;
}

// S0.14
#[tokio::test(start_paused = true)]
async fn threads_of_other_users_are_not_accessible() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
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
async fn threads_are_listed_in_pages_by_creation_or_recency() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, ana());
        let mut created = Vec::new();
        for _ in 0..5 {
            env.clock.advance_ms(10);
            created.push(env.open_thread().await);
        }
        env.clock.advance_ms(10);
        memory.append(&scope, created[1], Draft::user("hello")).await.unwrap();
        let list_ids = async |order| {
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
        assert_eq!(list_ids(ThreadOrder::Created).await, created);
        let recent = [1, 4, 3, 2, 0].map(|number: usize| created[number]);
        assert_eq!(list_ids(ThreadOrder::Recent).await, recent);
        assert!(memory.get_thread(&scope, created[1]).await.unwrap().updated_at == memory.now());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn state_is_updated_with_compare_and_set() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let (state, change) = memory.state(&scope, thread).await.unwrap();
        assert!(state.is_empty());
        let next = memory.set_state(&scope, thread, map_with("step", 1), Some(change)).await.unwrap();
        let error = memory.set_state(&scope, thread, map_with("step", 2), Some(change)).await.unwrap_err();
        assert_eq!(error.conflict(), Some(&Conflict::Change { expected: change, actual: next }));
        assert_eq!(memory.state(&scope, thread).await.unwrap(), (map_with("step", 1), next));

        let patch = ThreadPatch { metadata: Some(map_with("topic", "tubes")), ..ThreadPatch::default() };
        memory.patch_thread(&scope, thread, patch, None).await.unwrap();
        let found = memory.get_thread(&scope, thread).await.unwrap();
        assert_eq!((found.metadata, found.state), (map_with("topic", "tubes"), map_with("step", 1)));
    })
    .await;
}

// S1.23, S1.44
#[tokio::test(start_paused = true)]
async fn configuration_is_stored_and_does_not_limit_stored_messages() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        assert_eq!(memory.thread_config(&scope, thread).await.unwrap(), ThreadConfig::default());
        let config = ThreadConfig {
            history_limit: Some(2),
            enabled_tools: Some(vec!["get_route".to_owned()]),
            model: Some("openai/gpt-4o-mini".to_owned()),
            retention: Some(Retention { max_messages: Some(20), ttl_minutes: Some(60) }),
            ..ThreadConfig::default()
        };
        memory.set_thread_config(&scope, thread, &config, None).await.unwrap();
        assert_eq!(env.another_process().thread_config(&scope, thread).await.unwrap(), config);
        for _ in 0..4 {
            memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
        }
        assert_eq!(memory.newest(&scope, thread, 10).await.unwrap().len(), 4);

        let invalid = ThreadConfig { history_limit: Some(0), ..ThreadConfig::default() };
        let error = memory.set_thread_config(&scope, thread, &invalid, None).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid history_limit: must be at least 1");
        let unknown = threadkeep_core::ThreadId::from_name(b"unknown");
        assert!(memory.thread_config(&scope, unknown).await.unwrap_err().is_not_found());
    })
    .await;
}

// S1.47
#[tokio::test(start_paused = true)]
async fn tools_are_switched_off_and_on_again() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let switch = async |name: &str, switch| memory.switch_tools(&scope, thread, &[(name.to_owned(), switch)]).await;
        let config = ThreadConfig { history_limit: Some(2), ..ThreadConfig::default() };
        memory.set_thread_config(&scope, thread, &config, None).await.unwrap();
        switch("recall", ToolSwitch::Off).await.unwrap();
        let config = switch("calculator", ToolSwitch::Off).await.unwrap();
        assert_eq!(
            (config.history_limit, &config.disabled_tools[..]),
            (Some(2), &["recall", "calculator"].map(String::from)[..])
        );
        assert_eq!(memory.thread_config(&scope, thread).await.unwrap(), config);
        assert!(!config.allows_tool("recall") && config.allows_tool("current_time"));
        let config = switch("recall", ToolSwitch::On).await.unwrap();
        assert!(config.allows_tool("recall") && !config.allows_tool("calculator"));
        let change = memory.get_thread(&scope, thread).await.unwrap().positions.change;
        assert_eq!(switch("recall", ToolSwitch::On).await.unwrap(), config);
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().positions.change, change, "nothing was written");
        assert!(switch("", ToolSwitch::Off).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_with_a_lost_response_succeeds() {
    let (probe, env) = Probe::new_env();
    let thread = env.open_thread().await;
    probe.script([Outcome::LostResponse]);
    env.memory.delete_thread(&ana(), thread).await.unwrap();
    assert!(env.memory.find_thread(&ana(), thread).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn opening_a_thread_with_a_lost_response_reports_the_creation() {
    let (probe, env) = Probe::new_env();
    probe.script([Outcome::LostResponse]);
    assert!(env.memory.open(&ana()).await.unwrap().created);
    probe.script([Outcome::LostResponse]);
    assert!(env.memory.open_by_key(&ana(), "C1").await.unwrap().created);
    probe.script([Outcome::LostResponse]);
    assert!(!env.memory.open_by_key(&ana(), "C1").await.unwrap().created);
}

// S4.37
#[tokio::test(start_paused = true)]
async fn another_process_continues_a_thread() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let mut content = threadkeep_core::Content::text(threadkeep_core::Role::Assistant, "Minor delays");
        content.agent = Some("CIRCLE".to_owned());
        content.data = Some(threadkeep_core::JsonText::new(r#"{"line": "circle",  "b": 1, "a": 2}"#).unwrap());
        memory.append(&scope, thread, Draft::user("Circle line?")).await.unwrap();
        memory.append(&scope, thread, content.clone()).await.unwrap();
        let other_process = env.another_process();
        assert_eq!(
            other_process.newest(&scope, thread, 10).await.unwrap(),
            memory.newest(&scope, thread, 10).await.unwrap()
        );
        assert_eq!(other_process.newest(&scope, thread, 1).await.unwrap()[0].content, content);
        other_process.append(&scope, thread, Draft::user("Any delays there?")).await.unwrap();
        assert_eq!(memory.newest(&scope, thread, 1).await.unwrap()[0].plain_text(), "Any delays there?");
    })
    .await;
}
