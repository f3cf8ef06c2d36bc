//! Facts about stations and lines.

use crate::env::TestEnv;

// S2.19
#[tokio::test]
async fn accessibility_of_stations_is_reported() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("is hunts point av wheelchair accessible?").await;
    assert_eq!(calls, [r#"get_station_info{"station":"Hunts Point Av"}"#]);
    assert!(reply.contains("step-free to all platforms"), "{reply}");
    let (calls, reply) = conversation.ask("and castle hill?").await;
    assert_eq!(calls, [r#"get_station_info{"station":"Castle Hill Av"}"#]);
    assert!(reply.contains("not step-free"), "{reply}");
    let (calls, _) = conversation.ask("when is the next train there").await;
    assert_eq!(calls, [r#"get_train_arrivals{"station_name":"Castle Hill Av"}"#]);
}

// S2.30
#[tokio::test]
async fn the_4_does_not_stop_at_96_st() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (_, reply) = conversation.ask("does the 4 stop at 96th st on lexington?").await;
    assert!(reply.starts_with("No, during the day the 4 does not stop at 96 St."), "{reply}");
    let (_, reply) = conversation.ask("and the 6?").await;
    assert!(reply.starts_with("Yes, during the day the 6 stops at 96 St."), "{reply}");
}

// S2.20
#[tokio::test]
async fn stations_of_a_line_are_listed_in_order() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("what stops does the G make").await;
    assert_eq!(calls, [r#"find_stations_on_line{"line":"G"}"#]);
    let places: Vec<usize> =
        ["Court Sq", "Bedford-Nostrand Avs", "Church Av"].iter().map(|name| reply.rfind(name).unwrap()).collect();
    assert!(places.is_sorted() || places.iter().rev().is_sorted(), "{reply}");
    let (calls, _) = conversation.ask("and the L?").await;
    assert_eq!(calls, [r#"find_stations_on_line{"line":"L"}"#]);
}

#[tokio::test]
async fn lines_that_do_not_exist_are_refused() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let (calls, reply) = conversation.ask("next K train at Canal St").await;
    assert!(calls.is_empty() && reply.starts_with("There is no K train on the subway"), "{calls:?}: {reply}");
    let (_, reply) = conversation.ask("is Canal St on the 6 the same station as Canal St on the A?").await;
    assert!(reply.starts_with("No, they are separate stations"), "{reply}");
}
