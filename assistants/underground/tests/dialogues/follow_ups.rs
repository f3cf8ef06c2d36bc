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

#[tokio::test]
async fn two_statements_are_saved_and_mine_is_the_usual_line() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) = conversation.ask("My usual line is the Jubilee, home is Oval. Store that please").await;
    assert_eq!(calls.len(), 2, "{calls:?}");
    conversation.ask("is the Bakerloo okay").await;
    let (calls, _) = conversation.ask("and mine?").await;
    assert!(calls.iter().any(|call| call.contains(r#""lines":"jubilee""#)), "{calls:?}");
    conversation.ask("I changed jobs, make it the Northern from now on").await;
    let (calls, _) = conversation.ask("how is my line").await;
    assert!(calls.iter().any(|call| call.contains(r#""lines":"northern""#)), "{calls:?}");
}

#[tokio::test]
async fn the_state_of_a_line_is_not_a_trip() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    for (text, line) in [
        ("is the central running properly from Bank to Holborn", "central"),
        ("the Victoria line, not the station - delays?", "victoria"),
        ("the piccadilly has a problem I heard, true?", "piccadilly"),
        ("hows the northern meanwhile, my friend is asking", "northern"),
    ] {
        let (calls, _) = conversation.ask(text).await;
        let named = format!(r#"get_line_status{{"lines":"{line}"}}"#);
        assert_eq!(calls, [named], "{text}");
    }
}

#[tokio::test]
async fn a_stop_after_another_is_on_a_line_that_stops_there() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("is the bakerloo ok").await;
    let (_, reply) = conversation.ask("what stop comes after Pimlico going south").await;
    assert!(reply.contains("Vauxhall"), "{reply}");
}
