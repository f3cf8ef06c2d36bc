//! Several users, saved preferences, and restarts.

use crate::env::TestEnv;
use crate::mta::FakeMta;

// S2.21, S2.22
#[tokio::test]
async fn home_station_is_saved_and_used_in_routes() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    assert_eq!(
        conversation.say("how do i get home from penn").await,
        "I do not know your home station yet. Say, for instance: “My home station is Jay St.”"
    );
    let (calls, reply) = conversation.ask("my home station is jay st").await;
    assert_eq!(calls, [r#"save_preference{"key":"home station","value":"Jay St-MetroTech"}"#]);
    assert_eq!(reply, "Saved your home station: Jay St-MetroTech");
    let (calls, reply) = conversation.ask("how do i get home from penn").await;
    let route = r#"get_route{"from_station":"penn","to_station":"Jay St-MetroTech"}"#;
    assert_eq!(calls, [r#"get_preference{"key":"home station"}"#, route]);
    assert!(reply.contains("Jay St-MetroTech: about "), "{reply}");
    let other = env.conversation("ana").await;
    assert_eq!(other.say("what's my home station?").await, "Your home station: Jay St-MetroTech");
    let (calls, _) = other.ask("how do i get there from union sq").await;
    assert!(calls[0].contains(r#""to_station":"Jay St-MetroTech""#), "a saved station can be referred to: {calls:?}");
}

// S2.21, S2.22, S2.48
#[tokio::test]
async fn preferences_and_trips_are_separate_for_each_user() {
    let env = TestEnv::new().await;
    let (ana, ben) = (env.conversation("ana").await, env.conversation("ben").await);
    ana.say("my home station is jay st").await;
    ana.say("how do i get from astor pl to union square").await;
    assert_eq!(ben.say("what's my home station").await, "You have no home station saved.");
    assert_eq!(ben.say("what are my usual trips").await, "You have not asked for any trips yet.");
    let (one, other) = tokio::join!(ana.ask("and back?"), ben.ask("and back?"));
    assert_eq!(one.0.len(), 1);
    assert!(other.0.is_empty() && other.1.starts_with("I do not know what that refers to"), "{other:?}");
}

// S2.23
#[tokio::test]
async fn requested_trips_are_counted() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("how do i get from astor pl to bedford av").await;
    conversation.say("how do i get from jay st to coney island").await;
    conversation.say("how do i get from jay st to coney island").await;
    let (calls, reply) = conversation.ask("what are my usual trips?").await;
    assert_eq!(calls, ["get_common_trips{}"]);
    let trips: Vec<&str> = reply.lines().skip(1).collect();
    assert_eq!(trips, ["- Jay St-MetroTech to Coney Island-Stillwell Av: 2 times", "- Astor Pl to Bedford Av: once"]);
}

// S2.02, S2.22, S2.23, S2.48
#[tokio::test]
async fn conversation_and_preferences_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let env = TestEnv::over(&url, FakeMta::start().await, None).await;
    let conversation = env.conversation("ana").await;
    conversation.say("my home station is forest hills").await;
    conversation.say("how do i get from jay st to coney island").await;
    let thread = conversation.thread;
    let env = env.restarted().await;
    let conversation = env.existing_conversation("ana", thread);
    let (calls, _) = conversation.ask("and back?").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Coney Island-Stillwell Av","to_station":"Jay St-MetroTech"}"#]);
    assert_eq!(conversation.say("what's my home station?").await, "Your home station: Forest Hills-71 Av");
    assert!(conversation.say("my usual trips").await.contains("- Jay St-MetroTech to Coney Island-Stillwell Av: once"));
}

#[tokio::test]
async fn greetings_and_questions_about_the_assistant_call_no_tool() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    assert!(conversation.say("hi").await.starts_with("Hello."));
    assert_eq!(conversation.say("thanks!").await, "You are welcome.");
    let (calls, reply) = conversation.ask("who are you?").await;
    assert!(calls.is_empty() && reply.starts_with("I am the offline model"), "{reply}");
}
