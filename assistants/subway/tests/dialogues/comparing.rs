//! Local-or-express comparisons.

use crate::env::TestEnv;
use crate::mta::{Train, train};

const NUMBERED: &str = "nyct%2Fgtfs";
const SOUTH_FERRY: &str = concat!(
    r#"compare_local_vs_express{"from_station":"South Ferry","to_station":"34 St-Penn Station (1 2 3)","#,
    r#""transfer_station":"Chambers St (1 2 3)","local_line":"1","express_lines":"2,3"}"#
);

fn local(seconds: i64) -> Train {
    train("1", &[("142N", seconds), ("139N", seconds + 120), ("137N", seconds + 360)])
}

fn express(route: &'static str, seconds: i64) -> Train {
    train(route, &[("137N", seconds), ("132N", seconds + 240), ("128N", seconds + 420)])
}

// S2.10, S2.17, S2.38, S2.41, S2.55
#[tokio::test]
async fn follow_up_about_the_express_compares_the_lines() {
    let env = TestEnv::new().await;
    env.mta.show(NUMBERED, 0, &[local(180), express("2", 560), express("3", 630)]);
    let conversation = env.conversation("ana").await;
    conversation.say("how do i get from south ferry to penn station?").await;
    let (calls, reply) = conversation.ask("what about the express?").await;
    assert_eq!(calls, [SOUTH_FERRY]);
    for fact in [
        "Next 1 at South Ferry: in 3 min.",
        "stay on the 1: 27 min in all from now",
        "change to the 3 at Chambers St",
        "15 min in all from now, arriving 10:15; wait at Chambers St",
        " 1 min, from the local's arrival to the express's departure",
        "Recommendation: change to the 3, 12 min faster.",
    ] {
        assert!(reply.contains(fact), "{fact}: {reply}");
    }
    let (calls, _) = conversation.ask("and to times square?").await;
    assert!(calls[0].contains(r#""to_station":"Times Sq-42 St""#) && calls[0].starts_with("compare"), "{calls:?}");
}

// S2.18
#[tokio::test]
async fn example_trip_equals_the_comparison() {
    let env = TestEnv::new().await;
    env.mta.show(NUMBERED, 0, &[local(180), express("2", 560), express("3", 630)]);
    let conversation = env.conversation("ana").await;
    let (calls, example) = conversation.ask("plan a trip with transfers").await;
    assert_eq!(calls, ["plan_trip_with_transfers{}"]);
    let compared = conversation.ask("1 or 2/3 from South Ferry to Penn Station, changing at Chambers St?").await;
    assert_eq!(compared.0, [SOUTH_FERRY]);
    assert_eq!(example, compared.1);
}

// S2.39
#[tokio::test]
async fn no_transfer_is_needed_where_local_and_express_both_stop() {
    let env = TestEnv::new().await;
    env.mta.show(
        NUMBERED,
        0,
        &[train("1", &[("123S", 60), ("124S", 180)]), train("2", &[("123S", 120), ("127S", 300)])],
    );
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("should i take the local or the express from 72nd st to penn station").await;
    assert!(
        calls[0].contains(r#""from_station":"72 St (1 2 3)","to_station":"34 St-Penn Station (1 2 3)","transfer_station":"72 St (1 2 3)""#),
        "{calls:?}"
    );
    assert!(reply.contains("Recommendation: take the 2, 5 min faster."), "{reply}");
}

#[tokio::test]
async fn without_live_times_nothing_is_recommended() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let reply = conversation.say("is it faster to switch to the 2 at chambers going from south ferry to penn?").await;
    assert!(reply.contains("Live times unavailable") && !reply.contains("Recommendation"), "{reply}");
    assert!(reply.contains("24 min on trains"), "{reply}");
}

// S2.30, S2.37
#[tokio::test]
async fn express_that_skips_the_destination_is_reported() {
    let env = TestEnv::new().await;
    let trains =
        [train("6", &[("635N", 120), ("634N", 240), ("629N", 700)]), train("4", &[("629N", 800), ("626N", 1000)])];
    env.mta.show(NUMBERED, 0, &trains);
    let reply = env.conversation("ana").await.say("6 to 96 st from 14th st, or change to the 4 at 59th st?").await;
    assert!(reply.contains("The 4 does not stop at 96 St during the day"), "{reply}");
}

#[tokio::test]
async fn missing_express_is_reported() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("is there an express from bedford av to 1 av?").await;
    assert_eq!(calls, [r#"get_route{"from_station":"Bedford Av","to_station":"1 Av"}"#]);
    assert!(reply.starts_with("I found no direct line from Bedford Av to 1 Av"), "{reply}");
    assert!(reply.contains("Take the L"), "{reply}");
}
