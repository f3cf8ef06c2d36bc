//! Departure boards.

use crate::env::TestEnv;
use crate::mta::{Train, train};

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.15, S2.16, S2.55
#[tokio::test]
async fn next_trains_of_a_line_with_follow_up_questions() {
    let env = TestEnv::new().await;
    env.mta.show(
        NUMBERED,
        0,
        &[train("6", &[("636N", 130), ("635N", 250)]), train("6", &[("637N", 40), ("636N", 160)])],
    );
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("next uptown 6 at astor").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"Astor Pl","line":"6","direction":"uptown"}"#]);
    assert!(reply.contains("Uptown") && reply.contains("in 2 min (10:02)"), "{reply}");
    let (calls, reply) = conversation.ask("what about at bleecker?").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"Bleecker St","line":"6","direction":"uptown"}"#]);
    assert!(reply.contains("in less than a minute"), "{reply}");
    let (_, reply) = conversation.ask("and the 4?").await;
    assert!(reply.contains("The 4 does not stop at"), "{reply}");
}

// S2.25
#[tokio::test]
async fn ambiguous_station_name_is_clarified() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("trains at 50th st").await;
    assert_eq!(calls, [""; 0]);
    for choice in ["50 St (1, Manhattan)", "50 St (C E, Manhattan)", "50 St (D, Brooklyn)"] {
        assert!(reply.contains(choice), "{reply}");
    }
    let (calls, _) = conversation.ask("the one on the E").await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].contains(r#""station_name":"50 St (C E)""#), "{calls:?}");
    let (calls, _) = conversation.ask("next D at 50th st").await;
    assert_eq!(
        calls,
        [r#"get_train_arrivals{"station_name":"50 St (D)","line":"D"}"#],
        "the line disambiguates the station"
    );
}

#[tokio::test]
async fn a_named_line_takes_precedence_over_the_last_mentioned_station() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    for (question, station, line) in [("next Q at 86th", "86 St (Q)", "Q"), ("next 4 at 86th", "86 St (4 5 6)", "4")] {
        let board = format!(r#"get_train_arrivals{{"station_name":"{station}","line":"{line}"}}"#);
        assert_eq!(conversation.ask(question).await.0, [board], "{question}");
    }
    // Without a line, the name means the station that was mentioned last.
    let (calls, _) = conversation.ask("is 86th accessible").await;
    assert_eq!(calls, [r#"get_station_info{"station":"86 St (4 5 6)"}"#]);
}

// S2.33
#[tokio::test]
async fn unavailable_feeds_are_reported_and_requested_again() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let reply = conversation.say("next 6 at astor").await;
    assert!(reply.contains("Live times unavailable") && !reply.contains(" min"), "{reply}");
    env.mta.show(NUMBERED, 0, &[train("6", &[("636N", 130), ("635N", 250)])]);
    env.wait_seconds(10);
    let reply = conversation.say("and now?").await;
    assert!(reply.contains("in 2 min"), "{reply}");
}

#[tokio::test]
async fn question_about_the_express_after_a_board_shows_the_express_boards() {
    let env = TestEnv::new().await;
    let trains = [train("1", &[("123S", 60), ("124S", 180)]), train("2", &[("123S", 200), ("127S", 500)])];
    env.mta.show(NUMBERED, 0, &trains);
    let conversation = env.conversation("ana").await;
    conversation.say("next 1 at 72nd").await;
    let (calls, reply) = conversation.ask("and the express?").await;
    let board = |line: &str| format!(r#"get_train_arrivals{{"station_name":"72nd","line":"{line}"}}"#);
    assert_eq!(calls, [board("2"), board("3")]);
    assert!(reply.contains("- 2 to ") && reply.contains("No train of the 3"), "{reply}");
}

// S2.32
#[tokio::test]
async fn two_questions_within_thirty_seconds_request_the_feed_once() {
    let env = TestEnv::new().await;
    env.mta.show(NUMBERED, 0, &[train("6", &[("636N", 130), ("635N", 250)])]);
    let conversation = env.conversation("ana").await;
    conversation.say("next 6 at astor").await;
    env.wait_seconds(20);
    conversation.say("and at bleecker?").await;
    assert_eq!(env.mta.request_count(), 1);
    env.wait_seconds(11);
    conversation.say("and at spring st on the 6?").await;
    assert_eq!(env.mta.request_count(), 2);
}

// S2.35
#[tokio::test]
async fn planned_trip_is_marked_as_planned() {
    let env = TestEnv::new().await;
    let planned = Train { is_assigned: false, ..train("7", &[("701S", 240), ("702S", 400)]) };
    env.mta.show(NUMBERED, 0, &[planned]);
    let reply = env.conversation("ana").await.say("when's the next 7 at flushing main st?").await;
    assert!(reply.contains("in 4 min (10:04; planned, no train on its way yet)"), "{reply}");
}

// S2.34
#[tokio::test]
async fn board_includes_all_stations_of_the_complex() {
    let env = TestEnv::new().await;
    env.mta.show(NUMBERED, 0, &[train("6", &[("635N", 60), ("634N", 180)])]);
    env.mta.show("nyct%2Fgtfs-l", 0, &[train("L", &[("L03S", 120), ("L05S", 240)])]);
    env.mta.show("nyct%2Fgtfs-nqrw", 0, &[train("N", &[("R20S", 180), ("Q01S", 400)])]);
    let conversation = env.conversation("ana").await;
    let reply = conversation.say("trains at 14th st union sq").await;
    for train in ["- 6 to", "- L to", "- N to"] {
        assert!(reply.contains(train), "{reply}");
    }
    let (calls, _) = conversation.ask("any 4s?").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"14 St-Union Sq","line":"4"}"#]);
}
