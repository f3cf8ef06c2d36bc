use std::time::Duration;

use jiff::ToSpan;
use threadkeep_subway::{LiveOptions, LiveStatus, LiveTrains};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::mta::{FakeMta, now, train};

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.32
#[tokio::test]
async fn responses_are_cached_for_thirty_seconds() {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("1", &[("142N", 60), ("139N", 120)])]);
    let live = mta.live(None);
    assert_eq!(live.snapshot(&["1"], now()).await.feeds.len(), 1);
    assert_eq!(live.snapshot(&["2", "3"], now() + 30.seconds()).await.feeds.len(), 1);
    assert_eq!(mta.request_count(), 1);
    live.snapshot(&["1"], now() + 31.seconds()).await;
    assert_eq!(mta.request_count(), 2);
}

#[tokio::test]
async fn concurrent_queries_share_one_request() {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("1", &[("142N", 60), ("139N", 120)])]);
    let live = mta.live(None);
    let (one, other) = futures::join!(live.snapshot(&["1"], now()), live.snapshot(&["7"], now()));
    assert_eq!((one.feeds.len(), other.feeds.len(), mta.request_count()), (1, 1, 1));
}

// S2.31
#[tokio::test]
async fn key_is_sent_as_a_header_only_if_set() {
    let mta = FakeMta::start().await;
    mta.live(Some("secret")).snapshot(&["G"], now()).await;
    mta.live(None).snapshot(&["G"], now()).await;
    let state = mta.state.lock().unwrap();
    assert!(state.requests[0].starts_with("get /feeds/nyct%2fgtfs-g "), "{}", state.requests[0]);
    assert!(state.requests[0].contains("x-api-key: secret"));
    assert!(!state.requests[1].contains("x-api-key"));
}

// S2.36
#[tokio::test]
async fn feeds_of_the_7_and_of_staten_island_are_requested() {
    let mta = FakeMta::start().await;
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
async fn unavailable_damaged_and_stale_feeds_give_no_times() {
    let mta = FakeMta::start().await;
    let subway = mta.subway();
    let arrivals_at = async |seconds: i64| {
        let at = now() + seconds.seconds();
        subway.get_train_arrivals("South Ferry", Some("1"), at).await.unwrap()
    };
    let down = arrivals_at(0).await;
    assert_eq!((down.live, down.arrivals.len()), (LiveStatus::Unavailable, 0));
    mta.put(NUMBERED, b"<html>busy</html>".to_vec());
    assert_eq!(arrivals_at(6).await.live, LiveStatus::Unavailable);
    mta.show(NUMBERED, 301, &[train("1", &[("142N", 60), ("139N", 120)])]);
    let stale = arrivals_at(12).await;
    assert_eq!((stale.live, stale.arrivals.len()), (LiveStatus::Unavailable, 0));
}

#[tokio::test]
async fn failure_is_shared_by_concurrent_queries_and_cached_briefly() {
    let mta = FakeMta::start().await;
    let live = mta.live(None);
    let (one, other) = futures::join!(live.snapshot(&["G"], now()), live.snapshot(&["G"], now()));
    assert_eq!((one.failures.len(), other.failures.len(), mta.request_count()), (1, 1, 1));
    assert_eq!(one.failures[0].1.to_string(), "the feed responded with status 503");
    mta.show("nyct%2Fgtfs-g", 0, &[]);
    assert_eq!(live.snapshot(&["G"], now() + 6.seconds()).await.feeds.len(), 1);
}

#[tokio::test]
async fn feed_that_is_too_large_is_rejected() {
    let mta = FakeMta::start().await;
    mta.put(NUMBERED, vec![0; (4 << 20) + 1]);
    let snapshot = mta.live(None).snapshot(&["1"], now()).await;
    assert!(snapshot.feeds.is_empty() && snapshot.unavailable.contains("1"));
}

#[tokio::test]
async fn feeds_are_requested_concurrently() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/feeds/", listener.local_addr().unwrap());
    // Responds only after all three requests have arrived.
    let server = tokio::spawn(async move {
        let mut streams = Vec::new();
        while streams.len() < 3 {
            streams.push(listener.accept().await.unwrap().0);
        }
        for stream in &mut streams {
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
        streams
    });
    let live = LiveTrains::new(LiveOptions { base, timeout: Duration::from_secs(60), ..LiveOptions::default() });
    let snapshot = live.snapshot(&["6", "L", "Q"], now()).await;
    let failures: Vec<String> = snapshot.failures.iter().map(|(_, error)| error.to_string()).collect();
    assert_eq!(failures, ["the feed responded with status 503"; 3]);
    server.await.unwrap();
}
