//! Tests of `run_agent`.

use futures::StreamExt;
use serde_json::{Value, json};
use threadkeep::models::{Failure, ScriptedModel};
use threadkeep::{
    Assistant, MessageQuery, Scope, Start, SubscribeOptions, ThreadEvent, ThreadOrder, ThreadQuery, ThreadUpdate,
    UserId,
};
use threadkeep_tesis::{RunError, RunRequest, TesisAssistant, TesisOptions, run_agent};

use super::test_env::{TestEnv, tenant_id, user_scope};

const KEYS: [&str; 12] = [
    "query",
    "conversation_id",
    "results",
    "final_response",
    "sources_used",
    "metadata",
    "iterations",
    "exit_reason",
    "llm_reasoning",
    "total_cost",
    "embedding_calls",
    "llm_calls",
];

// S3.05, S3.06, S3.08, S3.27, S3.29, S3.30, S3.32, S3.34, S3.38
#[tokio::test]
async fn a_conversation_is_created_continued_and_stored() {
    let env = TestEnv::with_embedder().await;
    let question = "¿Qué es la usucapión? Explícame por favor lo que dicen los criterios, con todos los detalles que encuentres para mi demanda";
    let first = env.run(Some("ana"), None, question).await;
    let json = serde_json::to_value(&first).unwrap();
    assert_eq!(json.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>(), KEYS);
    assert_eq!((first.embedding_calls, first.llm_calls, first.iterations), (1, 2, 1));
    assert!(first.total_cost > 0.0 && first.total_cost < 0.0014, "{}", first.total_cost);
    assert_eq!(first.sources_used, [9_100_021, 9_100_022]);
    let names: Vec<&String> = first.results[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id_tesis", "rubro", "tipo_tesis", "epoca", "anio", "rank_score", "distance"]);
    assert!(first.results[0]["distance"].as_f64().is_some(), "{}", first.results[0]);
    assert_eq!(first.metadata["total_messages"], 2);
    let id = first.conversation_id.clone().unwrap();
    let second = env.run(Some("ana"), Some(&id), "Dame más detalles").await;
    assert_eq!(second.conversation_id.as_ref(), Some(&id));
    assert_eq!((&second.metadata["reused_sources"], &second.metadata["total_messages"]), (&json!(true), &json!(4)));
    assert_eq!((second.embedding_calls, second.llm_calls, second.iterations), (0, 2, 0));
    assert_eq!(second.metadata["discussed_tesis_count"], 2);
    let (scope, thread) = (user_scope("ana"), id.parse().unwrap());
    let stored = env.memory.get_thread(&scope, thread).await.unwrap();
    assert_eq!(stored.title.as_deref(), Some(&*question.chars().take(100).collect::<String>()));
    let page = env.memory.messages(&scope, thread, &MessageQuery::newest(10)).await.unwrap();
    let rows: Vec<(String, usize)> =
        page.messages.iter().map(|message| (message.content.role.to_string(), message.content.sources.len())).collect();
    let expected = [("user", 0), ("assistant", 2), ("user", 0), ("assistant", 2)];
    assert_eq!(rows, expected.map(|(role, count)| (role.to_owned(), count)));
}

#[tokio::test]
async fn the_text_of_a_cited_source_is_returned_within_its_tenant() {
    let env = TestEnv::new().await;
    let assistant = TesisAssistant::new(&env.memory, env.corpus(), TesisOptions::default());
    let scope = user_scope("ana");
    let text = assistant.source_text(&scope, "tesis", "9100022").await.unwrap();
    assert_eq!(text.as_deref(), Some("El justo título es la causa generadora de la posesión."));
    for (kind, id) in [("tesis", "1"), ("articulo", "tesis:1"), ("message", "9100022")] {
        assert_eq!(assistant.source_text(&scope, kind, id).await.unwrap(), None, "{kind} {id}");
    }
    let elsewhere = Scope::user("elsewhere", "ana").unwrap();
    assert_eq!(assistant.source_text(&elsewhere, "tesis", "9100022").await.unwrap(), None);
}

// S3.07, S3.10
#[tokio::test]
async fn without_a_user_nothing_is_stored() {
    let env = TestEnv::new().await;
    let result = env.run(None, None, "¿Qué es la usucapión?").await;
    let json = serde_json::to_value(&result).unwrap();
    assert!(KEYS.iter().all(|key| json.get(key).is_some()), "{json}");
    assert_eq!(json["conversation_id"], Value::Null);
    assert_eq!(result.warning.as_deref(), Some("No conversation_id or user_id, skipping save"));
    assert_eq!(result.sources_used, [9_100_021, 9_100_022]);
    let with_id = env.run(None, Some("01890000-0000-7000-8000-000000000001"), "Dame más detalles").await;
    assert_eq!(with_id.warning.as_deref(), Some("user_id required for persistence"));
    assert_eq!(with_id.metadata["reused_sources"], false);
    let threads = env.memory.list_threads(&super::test_env::tenant(), &ThreadQuery::new(ThreadOrder::Recent, 10)).await;
    assert!(threads.unwrap().threads.is_empty());
}

// S3.24, S3.25
#[tokio::test]
async fn the_window_is_sixteen_messages() {
    let env = TestEnv::new().await;
    let first = env.run(Some("ana"), None, "¿Qué es la usucapión?").await;
    let id = first.conversation_id.unwrap();
    for _ in 0..8 {
        env.run(Some("ana"), Some(&id), "gracias").await;
    }
    let result = env.run(Some("ana"), Some(&id), "explica más").await;
    assert_eq!((&result.metadata["reused_sources"], &result.metadata["total_messages"]), (&json!(false), &json!(20)));
}

// S3.40
#[tokio::test]
async fn another_users_conversation_is_not_found() {
    let env = TestEnv::new().await;
    let id = env.run(Some("ana"), None, "¿Qué es la usucapión?").await.conversation_id.unwrap();
    let request = |query: &str| RunRequest {
        user_query: query.to_owned(),
        max_iterations: None,
        conversation_id: Some(id.parse().unwrap()),
        user_id: Some(UserId::new("ben").unwrap()),
    };
    let answer = run_agent(&env.memory, &tenant_id(), &env.options, &request("Dame más detalles")).await;
    assert!(matches!(answer, Err(RunError::NotFound)), "{answer:?}");
}

#[tokio::test]
async fn requests_are_limited() {
    let env = TestEnv::new().await;
    for (query, iterations, field) in [
        ("", None, "user_query"),
        (&*"a".repeat(1_001), None, "user_query"),
        ("amparo", Some(11), "max_iterations"),
        ("amparo", Some(0), "max_iterations"),
    ] {
        let request = RunRequest {
            user_query: query.to_owned(),
            max_iterations: iterations,
            conversation_id: None,
            user_id: None,
        };
        let answer = run_agent(&env.memory, &tenant_id(), &env.options, &request).await;
        assert!(matches!(&answer, Err(RunError::Invalid { field: name, .. }) if *name == field), "{answer:?}");
    }
}

// S3.46
#[tokio::test]
async fn question_and_answer_are_one_commit() {
    let env = TestEnv::new().await;
    let id = env.run(Some("ana"), None, "¿Qué es la usucapión?").await.conversation_id.unwrap();
    let options = SubscribeOptions { start: Start::After(0.into()), ..SubscribeOptions::default() };
    let mut updates = env.memory.subscribe(&user_scope("ana"), id.parse().unwrap(), options).await.unwrap();
    let first = loop {
        let update = updates.next().await.unwrap().unwrap();
        let ThreadUpdate::Commit { events, .. } = &*update else { continue };
        let appended = events.iter().find_map(|event| match event {
            ThreadEvent::Appended { messages, .. } => Some(messages.len()),
            _ => None,
        });
        if let Some(count) = appended {
            break count;
        }
    };
    assert_eq!(first, 2, "the first commit with messages contains both");
}

// S3.41
#[tokio::test]
async fn a_run_with_a_failing_model_still_answers() {
    let model = ScriptedModel::new().fails(Failure::TimedOut).fails(Failure::TimedOut);
    let env = TestEnv::scripted(model).await;
    let result = env.run(Some("ana"), None, "¿Qué es la usucapión?").await;
    assert_eq!(result.exit_reason, "modelo_no_disponible");
    assert!(result.final_response.contains("9100021") && result.conversation_id.is_some(), "{result:?}");
    assert_eq!(result.metadata["total_messages"], 2);
}
