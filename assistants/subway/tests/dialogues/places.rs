//! Stations and lines as they are.

use crate::world::World;

// S2.19
#[tokio::test]
async fn accessibility_is_told_for_each_station_of_a_place() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let (calls, reply) = talk.ask("is hunts point av wheelchair accessible?").await;
    assert_eq!(calls, [r#"get_station_info{"station":"Hunts Point Av"}"#]);
    assert!(reply.contains("step-free to all platforms"), "{reply}");
    let (calls, reply) = talk.ask("and castle hill?").await;
    assert_eq!(calls, [r#"get_station_info{"station":"Castle Hill Av"}"#]);
    assert!(reply.contains("not step-free"), "{reply}");
    let (calls, _) = talk.ask("when is the next train there").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"Castle Hill Av"}"#]);
}

// S2.30
#[tokio::test]
async fn the_four_never_stops_at_96_st() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let (_, reply) = talk.ask("does the 4 stop at 96th st on lexington?").await;
    assert!(reply.starts_with("No, by day the 4 does not stop at 96 St."), "{reply}");
    let (_, reply) = talk.ask("and the 6?").await;
    assert!(reply.starts_with("Yes, by day the 6 stops at 96 St."), "{reply}");
}

// S2.20
#[tokio::test]
async fn the_stations_of_a_line_come_in_order() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let (calls, reply) = talk.ask("what stops does the G make").await;
    assert_eq!(calls, [r#"find_stations_on_line{"line":"G"}"#]);
    let places: Vec<usize> =
        ["Court Sq", "Bedford-Nostrand Avs", "Church Av"].iter().map(|name| reply.rfind(name).unwrap()).collect();
    assert!(places.is_sorted() || places.iter().rev().is_sorted(), "{reply}");
    let (calls, _) = talk.ask("and the L?").await;
    assert_eq!(calls, [r#"find_stations_on_line{"line":"L"}"#]);
}
