//! Follow-ups that name places and lines in other ways: corrections, conditions with a reason, nouns, both ends.

use crate::env::TestEnv;

#[tokio::test]
async fn a_board_with_a_destination_is_no_route() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) = conversation.ask("next J to jamaica center from kosciuszko st").await;
    assert!(
        calls.len() == 1 && calls[0].starts_with(r#"get_train_arrivals{"station_name":"Kosciuszko St""#),
        "{calls:?}"
    );
    assert!(calls[0].contains("direction"), "{calls:?}");
}

#[tokio::test]
async fn a_condition_with_a_reason_changes_the_route() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from borough hall to wall st").await;
    let (calls, reply) = conversation.ask("avoid the 4 its so slow").await;
    assert!(calls.iter().any(|call| call.contains(r#""avoid_lines":"4""#)), "{calls:?}: {reply}");
}

#[tokio::test]
async fn instead_of_replaces_the_place_where_it_stands() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, _) = conversation.ask("borough hall instead of bowling green").await;
    assert!(calls.iter().any(|call| call.contains("Borough Hall") && call.contains("Astor Pl")), "{calls:?}");
}

#[tokio::test]
async fn both_asks_about_each_place() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, _) = conversation.ask("are both of those stations accessible").await;
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[0].contains("Bowling Green") || calls[1].contains("Bowling Green"), "{calls:?}");
}

#[tokio::test]
async fn the_hotel_is_the_place_it_is_near() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("our hotel is near bowling green, how do we get to astor pl").await;
    conversation.ask("is kosciuszko st accessible").await;
    let (calls, _) = conversation.ask("how do i get from astor pl to the hotel").await;
    assert!(calls.iter().any(|call| call.contains(r#""to_station":"Bowling Green""#)), "{calls:?}");
}
