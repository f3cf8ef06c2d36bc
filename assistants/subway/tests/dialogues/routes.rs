//! Routes.

use crate::env::TestEnv;
use crate::mta::train;

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.01, S2.03, S2.11, S2.12
#[tokio::test]
async fn planned_route_needs_no_feed_and_allows_follow_ups() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("how do i get from penn to yankee stadium").await;
    assert_eq!(calls, [r#"get_route{"from_station":"penn","to_station":"161 St-Yankee Stadium"}"#]);
    assert!(reply.contains("161 St-Yankee Stadium: about ") && reply.contains("estimates, not live"), "{reply}");
    assert!(reply.contains("I took \"penn\" to mean 34 St-Penn Station (1 2 3)"), "the assumption is stated: {reply}");
    let (calls, _) = conversation.ask("and back?").await;
    assert_eq!(calls, [r#"get_route{"from_station":"161 St-Yankee Stadium","to_station":"penn"}"#]);
    let (calls, _) = conversation.ask("what about from astor place to Coney Island").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Astor Pl","to_station":"Coney Island-Stillwell Av"}"#]);
    let (calls, _) = conversation.ask("and from there to jay st?").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Coney Island-Stillwell Av","to_station":"Jay St-MetroTech"}"#]);
    assert_eq!(env.mta.request_count(), 0);
}

// S2.13, S2.14, S2.55
#[tokio::test]
async fn route_for_right_now_uses_live_trains() {
    let env = TestEnv::new().await;
    env.mta.show(
        NUMBERED,
        0,
        &[train("2", &[("137N", 90), ("132N", 300)]), train("1", &[("137N", 240), ("132N", 700)])],
    );
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("fastest way right now from chambers st on the 1 to 14th st on the 1?").await;
    assert_eq!(calls.len(), 1);
    assert!(calls[0].starts_with("get_route_with_arrivals{"), "{calls:?}");
    assert!(reply.contains("- 2 in 1 min") && reply.contains("- 1 in 4 min"), "{reply}");
    let (calls, reply) = conversation.ask("is that real time?").await;
    assert_eq!((calls.len(), reply.as_str()), (0, "Yes: those times came live from the MTA's feeds when you asked."));
}

#[tokio::test]
async fn planned_route_is_repeated_for_right_now() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("how do i get from union square to bedford av tomorrow").await;
    assert!(conversation.say("is that live?").await.starts_with("No: "));
    let (calls, reply) = conversation.ask("and right now?").await;
    assert!(calls[0].starts_with("get_route_with_arrivals{"), "{calls:?}");
    assert!(reply.contains("Live times unavailable"), "{reply}");
    assert_eq!(conversation.say("is it real-time?").await, "No: live times were unavailable.");
}

#[tokio::test]
async fn missing_station_is_requested() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    assert_eq!(conversation.say("How do I get to Coney Island?").await, "From which station?");
    let (calls, _) = conversation.ask("jay st").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Jay St-MetroTech","to_station":"Coney Island-Stillwell Av"}"#]);
    let (calls, _) = conversation.ask("no, from astor place").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Astor Pl","to_station":"Coney Island-Stillwell Av"}"#]);
}

// S2.25
#[tokio::test]
async fn unknown_station_is_reported_and_can_be_corrected() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("how do i get from hogwarts to grand central").await;
    assert_eq!(calls, [r#"get_route{"from_station":"hogwarts","to_station":"Grand Central-42 St"}"#]);
    assert_eq!(reply, "I do not know a subway station called \"hogwarts\". Which station do you mean?");
    let (calls, reply) = conversation.ask("from astor pl").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Astor Pl","to_station":"Grand Central-42 St"}"#]);
    assert!(reply.contains("Take the 6"), "{reply}");
}

// S2.26
#[tokio::test]
async fn same_station_and_unreachable_station_are_reported() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let reply = conversation.say("how do i get from times square to port authority").await;
    assert!(reply.starts_with("That is the same station"), "{reply}");
    let reply = conversation.say("how do i get from times square to tottenville").await;
    assert!(reply.starts_with("There is no subway route from"), "{reply}");
}

#[tokio::test]
async fn connection_at_a_change_is_timed() {
    let env = TestEnv::new().await;
    env.mta.show("nyct%2Fgtfs-l", 0, &[train("L", &[("L06S", 60), ("L10S", 400)])]);
    env.mta.show("nyct%2Fgtfs-g", 0, &[train("G", &[("G29S", 660), ("G30S", 780)])]);
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("do i make my connection from 1 av to broadway on the g?").await;
    assert_eq!(calls, [r#"get_transfer_timing{"from_station":"1 Av","to_station":"Broadway (G)"}"#]);
    assert!(
        reply.contains("Change at Lorimer St from the L to the G.") && reply.contains("6 min after the arrival"),
        "{reply}"
    );
}

#[tokio::test]
async fn two_questions_in_one_message_are_both_answered() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) =
        conversation.ask("when is the next G at metropolitan av and how do i get from there to court sq?").await;
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[0].starts_with("get_train_arrivals{") && calls[1].starts_with("get_route{"), "{calls:?}");
    assert!(reply.contains("Live times unavailable") && reply.contains("Court Sq"), "{reply}");
}
