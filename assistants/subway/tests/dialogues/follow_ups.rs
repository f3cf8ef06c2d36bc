//! Follow-ups that refer to places and lines indirectly: corrections, conditions with a reason, "the hotel", "both stations".

use crate::env::TestEnv;

#[tokio::test]
async fn next_train_to_a_destination_shows_a_board_instead_of_a_route() {
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
async fn a_line_to_avoid_may_be_followed_by_a_reason() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from borough hall to wall st").await;
    let (calls, reply) = conversation.ask("avoid the 4 its so slow").await;
    assert!(calls.iter().any(|call| call.contains(r#""avoid_lines":"4""#)), "{calls:?}: {reply}");
}

#[tokio::test]
async fn instead_of_replaces_the_named_place_and_keeps_the_other() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, _) = conversation.ask("borough hall instead of bowling green").await;
    assert!(calls.iter().any(|call| call.contains("Borough Hall") && call.contains("Astor Pl")), "{calls:?}");
}

#[tokio::test]
async fn both_stations_are_looked_up() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, _) = conversation.ask("are both of those stations accessible").await;
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[0].contains("Bowling Green") || calls[1].contains("Bowling Green"), "{calls:?}");
}

#[tokio::test]
async fn the_hotel_means_the_station_it_is_near() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("our hotel is near bowling green, how do we get to astor pl").await;
    conversation.ask("is kosciuszko st accessible").await;
    let (calls, _) = conversation.ask("how do i get from astor pl to the hotel").await;
    assert!(calls.iter().any(|call| call.contains(r#""to_station":"Bowling Green""#)), "{calls:?}");
}

#[tokio::test]
async fn home_means_the_start_of_the_trip_if_no_home_is_saved() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, reply) = conversation.ask("and the way home?").await;
    assert!(calls.iter().any(|call| call.contains(r#""to_station":"Bowling Green""#)), "{calls:?}");
    assert!(reply.contains("no home station saved"), "{reply}");
}

#[tokio::test]
async fn places_mentioned_before_the_question_are_used() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) =
        conversation.ask("Just arrived at Bowling Green. We want to see Astor Place, how do we get up there?").await;
    let is_trip = |call: &String| {
        call.contains(r#""from_station":"Bowling Green""#) && call.contains(r#""to_station":"Astor Pl""#)
    };
    assert!(calls.iter().any(is_trip), "{calls:?}");
}

#[tokio::test]
async fn the_next_trip_starts_where_the_last_one_ended() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, _) = conversation.ask("and after the show to borough hall").await;
    assert!(calls.iter().any(|call| call.contains(r#""from_station":"Astor Pl""#)), "{calls:?}");
}

#[tokio::test]
async fn an_hour_after_around_is_a_time() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from bowling green to astor pl").await;
    let (calls, _) = conversation.ask("same trip back around 5").await;
    assert!(calls.iter().any(|call| call.contains("leave_at") && !call.contains("only_lines")), "{calls:?}");
}

#[tokio::test]
async fn without_changing_asks_for_the_fewest_changes() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("how do i get from times square to south ferry without changing").await;
    assert!(calls.iter().any(|call| call.contains(r#""fewest_changes":true"#)), "{calls:?}");
    assert!(reply.contains("no change"), "{reply}");
}

#[tokio::test]
async fn two_statements_are_both_saved() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) = conversation.ask("save bowling green as home and the 4 as my usual line").await;
    assert_eq!(calls.iter().filter(|call| call.starts_with("save_preference")).count(), 2, "{calls:?}");
}

#[tokio::test]
async fn from_there_is_where_the_named_line_stops() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("M from Myrtle-Wyckoff to Essex, how long").await;
    let (calls, _) = conversation.ask("then the J from there to Broad St, when").await;
    assert!(calls.iter().any(|call| call.contains("Essex") && call.contains(r#""line":"J""#)), "{calls:?}");
}

#[tokio::test]
async fn a_way_that_is_not_a_line_avoids_it() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("astor pl to bowling green please").await;
    for (text, line) in [("is there a way that isnt the 4", "4"), ("and keep me off the 6", "6")] {
        let (calls, _) = conversation.ask(text).await;
        let avoided = format!(r#""avoid_lines":"{line}""#);
        assert!(calls.iter().any(|call| call.contains(&avoided)), "{text}: {calls:?}");
    }
}

#[tokio::test]
async fn the_same_questions_are_asked_about_something_else() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("when's the next Q at Canal downtown and does it stop at Prospect Park?").await;
    let (calls, _) = conversation.ask("same two questions for the N").await;
    assert_eq!(calls.len(), 2, "{calls:?}");
}

#[tokio::test]
async fn a_new_place_replaces_the_saved_one() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("home is Parkchester and work is Bowling Green").await;
    let (calls, _) = conversation.ask("new job!! it's at Wall St now, the one on the 4 5. update that").await;
    let saved = r#"save_preference{"key":"work station","value":"Wall St"}"#;
    assert!(!calls.is_empty() && calls.iter().all(|call| call == saved), "{calls:?}");
    let (calls, _) = conversation.ask("and where did i say i live").await;
    assert_eq!(calls, [r#"get_preference{"key":"home station"}"#]);
}

#[tokio::test]
async fn when_the_user_is_somewhere_is_where_the_trip_ends() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, _) = conversation.ask("if I leave Bowling Green on the 4 at 3 pm when am I at Borough Hall?").await;
    assert!(calls.iter().any(|call| call.contains(r#""to_station":"Borough Hall""#)), "{calls:?}");
}

#[tokio::test]
async fn a_known_station_replaces_an_unknown_one() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from Narnia to Kosciuszko St").await;
    let (calls, reply) = conversation.ask("oops, Bowling Green").await;
    let is_trip = |call: &String| {
        call.contains(r#""from_station":"Bowling Green""#) && call.contains(r#""to_station":"Kosciuszko St""#)
    };
    assert!(calls.iter().any(is_trip), "{calls:?}: {reply}");
}

#[tokio::test]
async fn a_line_with_a_direction_asks_for_a_board_after_a_trip() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.ask("how do i get from jay st to astor pl").await;
    let (calls, reply) = conversation.ask("and the F, same place, towards Brooklyn?").await;
    assert!(calls.len() == 1 && calls[0].starts_with("get_train_arrivals"), "{calls:?}: {reply}");
    assert!(calls[0].contains("Jay St"), "{calls:?}: {reply}");
}
