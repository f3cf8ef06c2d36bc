//! The next trains.

use crate::mta::{Train, train};
use crate::world::World;

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.15, S2.16, S2.55
#[tokio::test]
async fn the_next_train_of_a_line_and_where_else_it_stops() {
    let world = World::new().await;
    world.mta.show(
        NUMBERED,
        0,
        &[train("6", &[("636N", 130), ("635N", 250)]), train("6", &[("637N", 40), ("636N", 160)])],
    );
    let talk = world.talk("ana").await;
    let (calls, reply) = talk.ask("next uptown 6 at astor").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"Astor Pl","line":"6"}"#]);
    assert!(reply.contains("Uptown") && reply.contains("in 2 min (10:02)"), "{reply}");
    let (calls, reply) = talk.ask("what about at bleecker?").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"Bleecker St","line":"6"}"#]);
    assert!(reply.contains("in less than a minute"), "{reply}");
    let (_, reply) = talk.ask("and the 4?").await;
    assert!(reply.contains("The 4 does not stop at"), "{reply}");
}

// S2.25
#[tokio::test]
async fn a_name_that_several_stations_have_is_asked_about() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let (calls, reply) = talk.ask("trains at 50th st").await;
    assert_eq!(calls, [""; 0]);
    for choice in ["50 St (1, Manhattan)", "50 St (C E, Manhattan)", "50 St (D, Brooklyn)"] {
        assert!(reply.contains(choice), "{reply}");
    }
    let (calls, _) = talk.ask("the one on the E").await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].contains(r#""station_name":"50 St (C E)""#), "{calls:?}");
    let (calls, _) = talk.ask("next D at 50th st").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"50 St (D)","line":"D"}"#], "the line decides");
}

// S2.33
#[tokio::test]
async fn feeds_that_are_down_are_said_to_be_and_come_back() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let reply = talk.say("next 6 at astor").await;
    assert!(reply.contains("Live times unavailable") && !reply.contains(" min"), "{reply}");
    world.mta.show(NUMBERED, 0, &[train("6", &[("636N", 130), ("635N", 250)])]);
    world.wait_seconds(10);
    let reply = talk.say("and now?").await;
    assert!(reply.contains("in 2 min"), "{reply}");
}

#[tokio::test]
async fn the_express_behind_a_board_is_a_board() {
    let world = World::new().await;
    let trains = [train("1", &[("123S", 60), ("124S", 180)]), train("2", &[("123S", 200), ("127S", 500)])];
    world.mta.show(NUMBERED, 0, &trains);
    let talk = world.talk("ana").await;
    talk.say("next 1 at 72nd").await;
    let (calls, reply) = talk.ask("and the express?").await;
    let board = |line: &str| format!(r#"get_train_arrivals{{"station_name":"72nd","line":"{line}"}}"#);
    assert_eq!(calls, [board("2"), board("3")]);
    assert!(reply.contains("- 2 to ") && reply.contains("No train of the 3"), "{reply}");
}

// S2.32
#[tokio::test]
async fn two_questions_within_thirty_seconds_ask_the_feed_once() {
    let world = World::new().await;
    world.mta.show(NUMBERED, 0, &[train("6", &[("636N", 130), ("635N", 250)])]);
    let talk = world.talk("ana").await;
    talk.say("next 6 at astor").await;
    world.wait_seconds(20);
    talk.say("and at bleecker?").await;
    assert_eq!(world.mta.request_count(), 1);
    world.wait_seconds(11);
    talk.say("and at spring st on the 6?").await;
    assert_eq!(world.mta.request_count(), 2);
}

// S2.35
#[tokio::test]
async fn a_planned_trip_is_told_from_a_train() {
    let world = World::new().await;
    let planned = Train { is_assigned: false, ..train("7", &[("701S", 240), ("702S", 400)]) };
    world.mta.show(NUMBERED, 0, &[planned]);
    let reply = world.talk("ana").await.say("when's the next 7 at flushing main st?").await;
    assert!(reply.contains("in 4 min (10:04; planned, no train on its way yet)"), "{reply}");
}

// S2.34
#[tokio::test]
async fn the_whole_complex_is_on_the_board() {
    let world = World::new().await;
    world.mta.show(NUMBERED, 0, &[train("6", &[("635N", 60), ("634N", 180)])]);
    world.mta.show("nyct%2Fgtfs-l", 0, &[train("L", &[("L03S", 120), ("L05S", 240)])]);
    world.mta.show("nyct%2Fgtfs-nqrw", 0, &[train("N", &[("R20S", 180), ("Q01S", 400)])]);
    let talk = world.talk("ana").await;
    let reply = talk.say("trains at 14th st union sq").await;
    for train in ["- 6 to", "- L to", "- N to"] {
        assert!(reply.contains(train), "{reply}");
    }
    let (calls, _) = talk.ask("any 4s?").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"14 St-Union Sq","line":"4"}"#]);
}
