//! Local or express.

use crate::mta::{Train, train};
use crate::world::World;

const NUMBERED: &str = "nyct%2Fgtfs";
const SOUTH_FERRY: &str = concat!(
    r#"compare_local_vs_express{"from_station":"South Ferry","to_station":"34 St-Penn Station","#,
    r#""transfer_station":"Chambers St","local_line":"1","express_lines":"2,3"}"#
);

fn local(seconds: i64) -> Train {
    train("1", &[("142N", seconds), ("139N", seconds + 120), ("137N", seconds + 360)])
}

fn express(route: &'static str, seconds: i64) -> Train {
    train(route, &[("137N", seconds), ("132N", seconds + 240), ("128N", seconds + 420)])
}

// S2.10, S2.17, S2.38, S2.41, S2.55
#[tokio::test]
async fn what_about_the_express() {
    let world = World::new().await;
    world.mta.show(NUMBERED, 0, &[local(180), express("2", 560), express("3", 630)]);
    let talk = world.talk("ana").await;
    talk.say("how do i get from south ferry to penn station?").await;
    let (calls, reply) = talk.ask("what about the express?").await;
    assert_eq!(calls, [SOUTH_FERRY]);
    for fact in [
        "Next 1 at South Ferry: in 3 min.",
        "stay on the 1: 27 min in all from now",
        "change to the 3 at Chambers St",
        "15 min in all from now; wait at Chambers St",
        " 1 min, from the local's arrival to the express's departure",
        "Recommendation: change to the 3.",
    ] {
        assert!(reply.contains(fact), "{fact}: {reply}");
    }
    let (calls, _) = talk.ask("and to times square?").await;
    assert!(calls[0].contains(r#""to_station":"Times Sq-42 St""#) && calls[0].starts_with("compare"), "{calls:?}");
}

// S2.18
#[tokio::test]
async fn the_example_is_the_comparison_to_the_byte() {
    let world = World::new().await;
    world.mta.show(NUMBERED, 0, &[local(180), express("2", 560), express("3", 630)]);
    let talk = world.talk("ana").await;
    let (calls, example) = talk.ask("plan a trip with transfers").await;
    assert_eq!(calls, ["plan_trip_with_transfers{}"]);
    let compared = talk.ask("1 or 2/3 from South Ferry to Penn Station, changing at Chambers St?").await;
    assert_eq!(compared.0, [SOUTH_FERRY]);
    assert_eq!(example, compared.1);
}

// S2.39
#[tokio::test]
async fn where_both_stop_nothing_has_to_be_changed() {
    let world = World::new().await;
    world.mta.show(
        NUMBERED,
        0,
        &[train("1", &[("123S", 60), ("124S", 180)]), train("2", &[("123S", 120), ("127S", 300)])],
    );
    let talk = world.talk("ana").await;
    let (calls, reply) = talk.ask("should i take the local or the express from 72nd st to penn station").await;
    assert!(
        calls[0].contains(r#""from_station":"72 St","to_station":"34 St-Penn Station","transfer_station":"72 St""#),
        "{calls:?}"
    );
    assert!(reply.contains("Recommendation: take the 2."), "{reply}");
}

#[tokio::test]
async fn without_live_times_nothing_is_recommended() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let reply = talk.say("is it faster to switch to the 2 at chambers going from south ferry to penn?").await;
    assert!(reply.contains("Live times unavailable") && !reply.contains("Recommendation"), "{reply}");
    assert!(reply.contains("24 min on trains"), "{reply}");
}

// S2.30, S2.37
#[tokio::test]
async fn an_express_that_passes_the_destination_is_said_to() {
    let world = World::new().await;
    let trains =
        [train("6", &[("635N", 120), ("634N", 240), ("629N", 700)]), train("4", &[("629N", 800), ("626N", 1000)])];
    world.mta.show(NUMBERED, 0, &trains);
    let reply = world.talk("ana").await.say("6 to 96 st from 14th st, or change to the 4 at 59th st?").await;
    assert!(reply.contains("The 4 does not stop at 96 St by day"), "{reply}");
}

#[tokio::test]
async fn where_there_is_no_express_it_is_said() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let (calls, reply) = talk.ask("is there an express from bedford av to 1 av?").await;
    assert_eq!(calls, [""; 0]);
    assert!(reply.starts_with("I find no line from Bedford Av to 1 Av"), "{reply}");
}
