use std::time::Duration;

use jiff::ToSpan;
use threadkeep_subway::{LiveOptions, LiveStatus, LiveTrains};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::mta::{Mta, now, train};

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.32
#[tokio::test]
async fn two_questions_within_thirty_seconds_are_one_request() {
    let mta = Mta::start().await;
    mta.show(NUMBERED, 0, &[train("1", &[("142N", 60), ("139N", 120)])]);
    let live = mta.live(None);
    assert_eq!(live.picture(&["1"], now()).await.feeds.len(), 1);
    assert_eq!(live.picture(&["2", "3"], now() + 30.seconds()).await.feeds.len(), 1);
    assert_eq!(mta.request_count(), 1);
    live.picture(&["1"], now() + 31.seconds()).await;
    assert_eq!(mta.request_count(), 2);
}

#[tokio::test]
async fn questions_at_the_same_time_wait_for_one_request() {
    let mta = Mta::start().await;
    mta.show(NUMBERED, 0, &[train("1", &[("142N", 60), ("139N", 120)])]);
    let live = mta.live(None);
    let (one, other) = futures::join!(live.picture(&["1"], now()), live.picture(&["7"], now()));
    assert_eq!((one.feeds.len(), other.feeds.len(), mta.request_count()), (1, 1, 1));
}

// S2.31
#[tokio::test]
async fn a_key_is_sent_as_a_header_and_only_if_there_is_one() {
    let mta = Mta::start().await;
    mta.live(Some("secret")).picture(&["G"], now()).await;
    mta.live(None).picture(&["G"], now()).await;
    let board = mta.board.lock().unwrap();
    assert!(board.requests[0].starts_with("get /feeds/nyct%2fgtfs-g "), "{}", board.requests[0]);
    assert!(board.requests[0].contains("x-api-key: secret"));
    assert!(!board.requests[1].contains("x-api-key"));
}

// S2.36
#[tokio::test]
async fn the_feeds_of_the_seven_and_of_staten_island_are_asked() {
    let mta = Mta::start().await;
    mta.show(NUMBERED, 0, &[train("7", &[("701S", 60), ("702S", 180)])]);
    mta.show("nyct%2Fgtfs-si", 0, &[train("SI", &[("S31S", 240), ("S30S", 360)])]);
    let subway = mta.subway();
    let flushing = subway.get_train_arrivals("Flushing", Some("7"), now()).await.unwrap();
    assert_eq!((flushing.arrivals.len(), &flushing.live), (1, &LiveStatus::Available));
    let ferry = subway.get_train_arrivals("St George", None, now()).await.unwrap();
    assert_eq!((ferry.arrivals[0].line.as_str(), ferry.arrivals[0].minutes_until), ("SIR", 4));
}

// S2.33
#[tokio::test]
async fn feeds_that_are_down_damaged_or_stale_give_no_times() {
    let mta = Mta::start().await;
    let subway = mta.subway();
    let asked = async |seconds: i64| {
        let at = now() + seconds.seconds();
        subway.get_train_arrivals("South Ferry", Some("1"), at).await.unwrap()
    };
    let down = asked(0).await;
    assert_eq!((down.live, down.arrivals.len()), (LiveStatus::Unavailable, 0));
    mta.put(NUMBERED, b"<html>busy</html>".to_vec());
    assert_eq!(asked(6).await.live, LiveStatus::Unavailable);
    mta.show(NUMBERED, 301, &[train("1", &[("142N", 60), ("139N", 120)])]);
    let stale = asked(12).await;
    assert_eq!((stale.live, stale.arrivals.len()), (LiveStatus::Unavailable, 0));
}

#[tokio::test]
async fn those_who_wait_for_a_feed_that_is_down_do_not_wait_in_turn() {
    let mta = Mta::start().await;
    let live = mta.live(None);
    let (one, other) = futures::join!(live.picture(&["G"], now()), live.picture(&["G"], now()));
    assert_eq!((one.failures.len(), other.failures.len(), mta.request_count()), (1, 1, 1));
    assert_eq!(one.failures[0].1.to_string(), "the feed answered with status 503");
    mta.show("nyct%2Fgtfs-g", 0, &[]);
    assert_eq!(live.picture(&["G"], now() + 6.seconds()).await.feeds.len(), 1);
}

#[tokio::test]
async fn a_feed_that_is_too_large_is_not_read_on() {
    let mta = Mta::start().await;
    mta.put(NUMBERED, vec![0; (4 << 20) + 1]);
    let picture = mta.live(None).picture(&["1"], now()).await;
    assert!(picture.feeds.is_empty() && picture.unavailable.contains("1"));
}

#[tokio::test]
async fn all_feeds_are_asked_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/feeds/", listener.local_addr().unwrap());
    // Nobody is answered before all have come.
    let server = tokio::spawn(async move {
        let mut streams = Vec::new();
        while streams.len() < 3 {
            streams.push(listener.accept().await.unwrap().0);
        }
        for stream in &mut streams {
            stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
        streams
    });
    let live = LiveTrains::new(LiveOptions { base, timeout: Duration::from_secs(60), ..LiveOptions::default() });
    let picture = live.picture(&["6", "L", "Q"], now()).await;
    let failures: Vec<String> = picture.failures.iter().map(|(_, error)| error.to_string()).collect();
    assert_eq!(failures, ["the feed answered with status 503"; 3]);
    server.await.unwrap();
}
