use serde_json::json;
use threadkeep_core::{Content, JsonText, Map, Part, Role, Source, ToolCall, Usage};
use threadkeep_memory::turns::approval_notice_draft;
use threadkeep_memory::{AppendOptions, Draft, Durations, ThreadSelection};

use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

/// An answer by `agent` that cites the sources with these ids.
fn answer(agent: &str, source_ids: &[&str], duration_ms: u64) -> Content {
    let source = |id: &&str| Source {
        kind: "tesis".to_owned(),
        id: (*id).to_owned(),
        title: None,
        score: None,
        distance: None,
        fields: Map::new(),
    };
    let usage = Usage {
        model: Some("gpt-4o-mini".to_owned()),
        input_tokens: 100,
        output_tokens: 10,
        cost_usd: Some(0.25),
        duration_ms: Some(duration_ms),
        ..Usage::default()
    };
    Content {
        agent: Some(agent.to_owned()),
        sources: source_ids.iter().map(source).collect(),
        usage: Some(usage),
        ..Content::text(Role::Assistant, "answer")
    }
}

// S0.42, S3.47
#[tokio::test(start_paused = true)]
async fn analytics_cover_a_thread_a_user_and_a_tenant() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let turns = [("CIRCLE", vec!["a", "b"], 300), ("CIRCLE", vec!["a"], 100), ("STATUS", vec!["a", "c"], 200)];
        for (agent, source_ids, duration_ms) in turns {
            let pair = (Draft::user("question"), answer(agent, &source_ids, duration_ms));
            memory.append_pair(&ana(), thread, pair.0, pair.1, &AppendOptions::default()).await.unwrap();
            env.clock.advance_minutes(1);
        }
        memory.append(&ana(), thread, Draft::user("unanswered")).await.unwrap();
        let second = env.open_thread().await;
        let pair = (Draft::user("question"), answer("STATUS", &["a"], 900));
        memory.append_pair(&ana(), second, pair.0, pair.1, &AppendOptions::default()).await.unwrap();
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ben(), bens_thread, Draft::user("hello")).await.unwrap();

        let analytics = memory.analytics(&ana(), ThreadSelection::Thread(thread)).await.unwrap();
        assert_eq!((analytics.threads, analytics.messages, analytics.turns, analytics.corrupt_messages), (1, 7, 3, 0));
        assert_eq!(analytics.roles.into_iter().collect::<Vec<_>>(), [(Role::User, 4), (Role::Assistant, 3)]);
        let agents: Vec<_> = analytics.agents.iter().map(|(agent, count)| (agent.as_str(), *count)).collect();
        assert_eq!(agents, [("CIRCLE", 2), ("STATUS", 1)]);
        assert_eq!(analytics.models["gpt-4o-mini"], 3);
        assert_eq!((analytics.input_tokens, analytics.output_tokens, analytics.cost_usd), (300, 30, 0.75));
        let sources = &analytics.sources;
        assert_eq!((sources.citations, sources.distinct, sources.reused), (5, 3, 1));
        assert_eq!((sources.citing_messages, sources.reusing_messages), (3, 1));
        assert_eq!((sources.reuse_rate(), sources.saved_usd(0.5)), (1.0 / 3.0, 0.5));
        let durations = Durations { count: 3, min_ms: 100, median_ms: 200, p95_ms: 300, max_ms: 300 };
        assert_eq!(analytics.durations, Some(durations));

        let analytics = memory.analytics(&ana(), ThreadSelection::All).await.unwrap();
        assert_eq!((analytics.threads, analytics.messages, analytics.turns), (2, 9, 4));
        assert_eq!((analytics.sources.reused, analytics.sources.reusing_messages), (1, 1));
        assert_eq!((analytics.messages_per_thread(), analytics.span_ms()), (4.5, 180_000));
        let overall = memory.analytics(&acme(), ThreadSelection::All).await.unwrap();
        assert_eq!((overall.threads, overall.messages), (3, 10));
        assert!(memory.analytics(&ben(), ThreadSelection::Thread(thread)).await.unwrap_err().is_not_found());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn analytics_include_all_pages() {
    let env = TestEnv::plain();
    let thread = env.open_thread().await;
    for _ in 0..3 {
        let drafts = vec![Draft::user("x"); 999];
        env.memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
    }
    for _ in 0..1_100 {
        env.open_thread().await;
    }
    let analytics = env.memory.analytics(&ana(), ThreadSelection::All).await.unwrap();
    assert_eq!((analytics.threads, analytics.messages, analytics.turns), (1_101, 2_997, 0));
    assert_eq!(analytics.durations, None);
}

/// A message that calls a tool, and the notice of a turn that waits for an approval, are not answers.
#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_an_approval_is_counted_once_it_is_answered() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let turns = async || memory.analytics(&ana(), ThreadSelection::Thread(thread)).await.unwrap().turns;
        let call = ToolCall {
            id: "call-1".to_owned(),
            name: "delete".to_owned(),
            arguments: JsonText::of(&json!({})).unwrap(),
        };
        let mut asks = Content::text(Role::Assistant, "I delete it.");
        asks.parts.push(Part::ToolCall(call));
        let waiting = approval_notice_draft("turn-1", "This needs an approval.", ["approval-1"]);
        for draft in [Draft::user("delete it"), Draft::new(asks), waiting] {
            memory.append(&ana(), thread, draft).await.unwrap();
            assert_eq!(turns().await, 0);
        }
        memory.append(&ana(), thread, Draft::user("Approved")).await.unwrap();
        memory.append(&ana(), thread, Draft::new(Content::text(Role::Assistant, "It is deleted."))).await.unwrap();
        assert_eq!(turns().await, 1);
    })
    .await;
}
