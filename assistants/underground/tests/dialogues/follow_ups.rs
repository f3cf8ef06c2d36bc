//! Follow-ups that refer to lines, places and times indirectly or in short.

use crate::env::TestEnv;

#[tokio::test]
async fn victoria_after_another_station_means_the_line() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) = conversation.ask("next train pimlico northbound victoria").await;
    assert!(calls.len() == 1 && calls[0].contains("Pimlico") && calls[0].contains(r#""line":"victoria""#), "{calls:?}");
}

#[tokio::test]
async fn not_on_a_mentioned_line_avoids_it() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("is the central line ok").await;
    let (calls, _) = conversation.ask("from holland park to holborn not on the central").await;
    assert!(calls.iter().any(|call| call.contains(r#""avoid_lines":"central""#)), "{calls:?}");
    assert!(calls.iter().all(|call| !call.contains("only_lines")), "{calls:?}");
}

#[tokio::test]
async fn an_hour_alone_replaces_the_time() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("pimlico to holborn leaving at 8pm").await;
    let (calls, _) = conversation.ask("make it 9").await;
    assert!(calls.iter().any(|call| call.contains(r#""leave_at":"at 9""#)), "{calls:?}");
    let (calls, _) = conversation.ask("arrive by 11pm").await;
    assert!(calls.iter().any(|call| call.contains("arrive_by") && !call.contains("leave_at")), "{calls:?}");
    let (calls, _) = conversation.ask("make it 10").await;
    assert!(calls.iter().any(|call| call.contains(r#""arrive_by":"at 10""#)), "{calls:?}");
}

#[tokio::test]
async fn two_abbreviated_lines_are_both_looked_up() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) = conversation.ask("northern and picc status").await;
    assert!(calls.iter().any(|call| call.contains("northern,piccadilly")), "{calls:?}");
}
