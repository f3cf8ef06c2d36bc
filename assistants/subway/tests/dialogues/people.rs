//! Several users, and what is left of a conversation after a restart.

use crate::mta::Mta;
use crate::world::World;

// S2.21, S2.22
#[tokio::test]
async fn home_is_where_the_user_says() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    assert_eq!(
        talk.say("how do i get home from penn").await,
        "You have not told me your home station. Say, for instance: “My home station is Jay St.”"
    );
    let (calls, reply) = talk.ask("my home station is jay st").await;
    assert_eq!(calls, [r#"save_preference{"key":"home station","value":"Jay St-MetroTech"}"#]);
    assert_eq!(reply, "Saved your home station: Jay St-MetroTech");
    let (calls, reply) = talk.ask("how do i get home from penn").await;
    let route = r#"get_route{"from_station":"penn","to_station":"Jay St-MetroTech"}"#;
    assert_eq!(calls, [r#"get_preference{"key":"home station"}"#, route]);
    assert!(reply.contains("Jay St-MetroTech: about "), "{reply}");
    let other = world.talk("ana").await;
    assert_eq!(other.say("what's my home station?").await, "Your home station: Jay St-MetroTech");
    let (calls, _) = other.ask("how do i get there from union sq").await;
    assert!(calls[0].contains(r#""to_station":"Jay St-MetroTech""#), "what was told can be referred to: {calls:?}");
}

// S2.21, S2.22, S2.48
#[tokio::test]
async fn one_users_preferences_and_trips_are_not_anothers() {
    let world = World::new().await;
    let (ana, ben) = (world.talk("ana").await, world.talk("ben").await);
    ana.say("my home station is jay st").await;
    ana.say("how do i get from astor pl to union square").await;
    assert_eq!(ben.say("what's my home station").await, "Nothing is saved for \"home station\".");
    assert_eq!(ben.say("what are my usual trips").await, "You have asked for no trip yet.");
    let (one, other) = tokio::join!(ana.ask("and back?"), ben.ask("and back?"));
    assert_eq!(one.0.len(), 1);
    assert!(other.0.is_empty() && other.1.starts_with("I did not understand"), "{other:?}");
}

// S2.23
#[tokio::test]
async fn the_trips_that_were_asked_for_are_counted() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("how do i get from astor pl to bedford av").await;
    talk.say("how do i get from jay st to coney island").await;
    talk.say("how do i get from jay st to coney island").await;
    let (calls, reply) = talk.ask("what are my usual trips?").await;
    assert_eq!(calls, ["get_common_trips{}"]);
    let trips: Vec<&str> = reply.lines().skip(1).collect();
    assert_eq!(trips, ["- Jay St-MetroTech to Coney Island-Stillwell Av: 2 times", "- Astor Pl to Bedford Av: once"]);
}

// S2.02, S2.22, S2.23, S2.48
#[tokio::test]
async fn a_restart_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let world = World::over(&url, Mta::start().await, None).await;
    let talk = world.talk("ana").await;
    talk.say("my home station is forest hills").await;
    talk.say("how do i get from jay st to coney island").await;
    let thread = talk.thread;
    let world = world.restarted().await;
    let talk = world.talk_again("ana", thread);
    let (calls, _) = talk.ask("and back?").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Coney Island-Stillwell Av","to_station":"Jay St-MetroTech"}"#]);
    assert_eq!(talk.say("what's my home station?").await, "Your home station: Forest Hills-71 Av");
    assert!(talk.say("my usual trips").await.contains("- Jay St-MetroTech to Coney Island-Stillwell Av: once"));
}

#[tokio::test]
async fn greetings_and_questions_about_itself_call_nothing() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    assert!(talk.say("hi").await.starts_with("Hello."));
    assert_eq!(talk.say("thanks!").await, "You are welcome.");
    let (calls, reply) = talk.ask("who are you?").await;
    assert!(calls.is_empty() && reply.starts_with("I am the offline model"), "{reply}");
}
