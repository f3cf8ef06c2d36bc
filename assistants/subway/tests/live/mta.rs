//! A fake MTA that serves real protobuf over HTTP on its own port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use prost::Message;
use threadkeep_subway::{LiveOptions, LiveTrains, Subway};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The subset of GTFS-Realtime messages that these tests write.
mod wire {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Feed {
        #[prost(message, required, tag = "1")]
        pub(super) header: Header,
        #[prost(message, repeated, tag = "2")]
        pub(super) entity: Vec<Entity>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Header {
        #[prost(string, required, tag = "1")]
        pub(super) version: String,
        #[prost(uint64, optional, tag = "3")]
        pub(super) timestamp: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Entity {
        #[prost(string, required, tag = "1")]
        pub(super) id: String,
        #[prost(message, optional, tag = "3")]
        pub(super) update: Option<Update>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Update {
        #[prost(message, required, tag = "1")]
        pub(super) trip: Trip,
        #[prost(message, repeated, tag = "2")]
        pub(super) calls: Vec<Call>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Trip {
        #[prost(string, optional, tag = "1")]
        pub(super) id: Option<String>,
        #[prost(string, optional, tag = "3")]
        pub(super) date: Option<String>,
        #[prost(string, optional, tag = "5")]
        pub(super) route: Option<String>,
        #[prost(message, optional, tag = "1001")]
        pub(super) nyct: Option<NyctTrip>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct NyctTrip {
        #[prost(bool, optional, tag = "2")]
        pub(super) is_assigned: Option<bool>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Call {
        #[prost(message, optional, tag = "2")]
        pub(super) arrival: Option<Event>,
        #[prost(message, optional, tag = "3")]
        pub(super) departure: Option<Event>,
        #[prost(string, optional, tag = "4")]
        pub(super) stop: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Event {
        #[prost(int64, optional, tag = "2")]
        pub(super) time: Option<i64>,
    }
}

/// A Wednesday, 10:00 in New York.
pub(crate) fn now() -> Timestamp {
    "2026-01-14T15:00:00Z".parse().unwrap()
}

/// A trip in a feed: the line, whether a train is assigned, and the stops with their times in seconds from [`now`].
pub(crate) struct Train {
    pub(crate) route: String,
    pub(crate) is_assigned: bool,
    pub(crate) calls: Vec<(String, i64)>,
}

pub(crate) fn train(route: &str, calls: &[(&str, i64)]) -> Train {
    let calls = calls.iter().map(|(stop, seconds)| ((*stop).to_owned(), *seconds)).collect();
    Train { route: route.to_owned(), is_assigned: true, calls }
}

/// The responses of the fake MTA, and the requests it received.
#[derive(Default)]
pub(crate) struct ServerState {
    /// The response bodies by path; other paths respond with 503.
    pub(crate) bodies: BTreeMap<String, Vec<u8>>,
    /// The heads of all requests, in lower case.
    pub(crate) requests: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct FakeMta {
    pub(crate) base: String,
    pub(crate) state: Arc<Mutex<ServerState>>,
}

impl FakeMta {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/feeds/", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(ServerState::default()));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&shared)));
            }
        });
        Self { base, state }
    }

    /// Publishes trains in a feed, in a message created at `instant`, from which the times of the trains are counted.
    #[allow(dead_code, reason = "only the tests of dialogues use it")]
    pub(crate) fn show_at(&self, feed: &str, instant: Timestamp, trains: &[Train]) {
        let entity = trains.iter().enumerate().map(|(number, train)| entity_of(number, instant, train)).collect();
        let timestamp = u64::try_from(instant.as_second()).unwrap();
        let header = wire::Header { version: "1.0".to_owned(), timestamp: Some(timestamp) };
        self.put(feed, wire::Feed { header, entity }.encode_to_vec());
    }

    /// Publishes trains in a feed, in a message created `age` seconds before [`now`].
    pub(crate) fn show(&self, feed: &str, age: i64, trains: &[Train]) {
        let entity = trains.iter().enumerate().map(|(number, train)| entity_of(number, now(), train)).collect();
        let timestamp = u64::try_from(now().as_second() - age).unwrap();
        let header = wire::Header { version: "1.0".to_owned(), timestamp: Some(timestamp) };
        self.put(feed, wire::Feed { header, entity }.encode_to_vec());
    }

    pub(crate) fn put(&self, feed: &str, body: Vec<u8>) {
        self.state.lock().unwrap().bodies.insert(format!("/feeds/{feed}"), body);
    }

    pub(crate) fn request_count(&self) -> usize {
        self.state.lock().unwrap().requests.len()
    }

    pub(crate) fn live(&self, key: Option<&str>) -> LiveTrains {
        let key = key.map(str::to_owned);
        LiveTrains::new(LiveOptions { base: self.base.clone(), key, ..LiveOptions::default() })
    }

    pub(crate) fn subway(&self) -> Subway {
        Subway::new(self.live(None))
    }
}

fn entity_of(number: usize, base: Timestamp, train: &Train) -> wire::Entity {
    let event = |seconds: i64| Some(wire::Event { time: Some(base.as_second() + seconds) });
    let last = train.calls.len() - 1;
    let calls = train.calls.iter().enumerate().map(|(position, (stop, seconds))| wire::Call {
        arrival: if position == 0 { None } else { event(*seconds) },
        departure: if position == last { None } else { event(*seconds) },
        stop: Some(stop.clone()),
    });
    let trip = wire::Trip {
        id: Some(format!("{:06}_{}..X", 60_000 + number, train.route)),
        date: Some(base.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%d").to_string()),
        route: Some(train.route.clone()),
        nyct: Some(wire::NyctTrip { is_assigned: Some(train.is_assigned) }),
    };
    wire::Entity { id: number.to_string(), update: Some(wire::Update { trip, calls: calls.collect() }) }
}

async fn answer(mut stream: TcpStream, state: Arc<Mutex<ServerState>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = {
        let mut state = state.lock().unwrap();
        state.requests.push(head.to_lowercase());
        state.bodies.get(&path).cloned()
    };
    let status = if body.is_some() { "200 OK" } else { "503 Service Unavailable" };
    let body = body.unwrap_or_default();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}
