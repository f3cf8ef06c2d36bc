//! A local server that speaks the protocol of TfL's Unified API, with the fields of its recorded answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::{SignedDuration, civil::Date, civil::Time};
use serde_json::{Value, json};
use threadkeep_underground::{LINES, Tfl, TflOptions, Underground, network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the server responds, and the requests it has received.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// `lineStatuses` by line id; other lines have a good service.
    pub(crate) status: BTreeMap<String, Value>,
    /// Predictions by stop id.
    pub(crate) arrivals: BTreeMap<String, Value>,
    /// Journeys by the names of their ends, `from|to` or `from|to|avoid=line`.
    pub(crate) journeys: BTreeMap<String, Value>,
    /// Disruptions by station name.
    pub(crate) disruptions: BTreeMap<String, String>,
    /// The disambiguation with which journey requests without a `parameterValue` are answered.
    pub(crate) disambiguation: Option<Value>,
    /// The faults, by part of the paths that they affect; an empty part affects every path.
    pub(crate) faults: BTreeMap<String, Fault>,
    /// The requested paths.
    pub(crate) requests: Vec<String>,
    /// The local time, at which journeys start if the request names no time.
    pub(crate) now: DateTime,
}

/// A fault of the server.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It responds with the given status.
    Status(u16),
    /// It does not respond in time.
    Slow,
    /// It closes the connection in the middle of the body.
    Cut,
    /// It responds with an empty body.
    Empty,
}

/// The server.
#[derive(Debug)]
pub(crate) struct FakeTfl {
    address: String,
    pub(crate) world: Arc<Mutex<World>>,
}

impl FakeTfl {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let world: Arc<Mutex<World>> = Arc::default();
        let shared = Arc::clone(&world);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let world = Arc::clone(&shared);
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut buffer = [0; 4096];
                    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                        match stream.read(&mut buffer).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => request.extend_from_slice(&buffer[..count]),
                        }
                    }
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                    let (fault, status, body) = {
                        let mut world = world.lock().unwrap();
                        world.requests.push(path.clone());
                        let fault = world.faults.iter().find(|(part, _)| path.contains(part.as_str()));
                        let fault = fault.map(|(_, fault)| fault.clone());
                        let (status, body) = world.answer(&path);
                        (fault, status, body.to_string())
                    };
                    let (status, body) = match fault {
                        Some(Fault::Status(status)) => (status, "{}".to_owned()),
                        Some(Fault::Empty) => (200, String::new()),
                        Some(Fault::Slow) => {
                            // Longer than the client's timeout and the test.
                            tokio::time::sleep(Duration::from_secs(60)).await;
                            return;
                        }
                        Some(Fault::Cut) => {
                            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                            let half = &body[..body.len() / 2];
                            drop(stream.write_all(format!("{head}{half}").as_bytes()).await);
                            return;
                        }
                        None => (status, body),
                    };
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    drop(stream.write_all(format!("{head}{body}").as_bytes()).await);
                });
            }
        });
        Self { address, world }
    }

    /// Returns an [`Underground`] that uses the server, with a short timeout.
    pub(crate) fn underground(&self) -> Underground {
        let options =
            TflOptions { base: self.address.clone(), timeout: Duration::from_millis(300), ..TflOptions::default() };
        Underground::new(Tfl::new(options))
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.world.lock().unwrap().requests.clone()
    }
}

impl World {
    fn answer(&self, path: &str) -> (u16, Value) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts[..] {
            ["Line", "Mode", _, "Status"] => (200, LINES.iter().map(|line| self.line(line.id)).collect()),
            ["Line", ids, "Status"] => (200, ids.split(',').map(|id| self.line(id)).collect()),
            ["StopPoint", stop, "Arrivals"] => (200, self.arrivals.get(stop).map_or_else(|| json!([]), predictions)),
            ["StopPoint", stop, "Disruption"] => {
                let found = self.disruptions.get(&name_of(stop));
                (200, found.map_or_else(|| json!([]), |text| json!([{"description": text, "type": "Information"}])))
            }
            ["Journey", "JourneyResults", from, "to", to] => self.journey(from, to, query),
            _ => (404, json!({"message": "not found"})),
        }
    }

    fn line(&self, id: &str) -> Value {
        let good =
            || json!([{"statusSeverity": 10, "statusSeverityDescription": "Good Service", "validityPeriods": []}]);
        let statuses = self.status.get(id).cloned().unwrap_or_else(good);
        json!({"$type": "Tfl.Api.Presentation.Entities.Line", "id": id, "name": id, "lineStatuses": statuses})
    }

    fn journey(&self, from: &str, to: &str, query: &str) -> (u16, Value) {
        if let Some(options) = &self.disambiguation
            && from != "picked"
        {
            return (300, options.clone());
        }
        let (from, to) = (if from == "picked" { "Paddington".to_owned() } else { name_of(from) }, name_of(to));
        let matching = self.journeys.iter().filter(|(key, _)| {
            let mut ends = key.split('|');
            is_same(ends.next().unwrap_or_default(), &from) && is_same(ends.next().unwrap_or_default(), &to)
        });
        let mut journeys: Vec<(&String, Value)> =
            matching.map(|(key, journey)| (key, planned(journey, self.now, query))).collect();
        journeys.sort_by_key(|(key, _)| key.len());
        match journeys.is_empty() {
            true => (404, json!({"message": "No journey found"})),
            false => (200, json!({"journeys": journeys.into_iter().map(|(_, journey)| journey).collect::<Vec<_>>()})),
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['.', '\'', '’'], "").replace('&', "and");
    plain(one) == plain(other)
}

fn name_of(stop: &str) -> String {
    network().find_station(stop).map_or_else(|| stop.replace("%20", " "), |station| station.name.clone())
}

fn predictions(trains: &Value) -> Value {
    let trains = trains.as_array().into_iter().flatten().map(|train| {
        let mut train = train.clone();
        train["$type"] = "Tfl.Api.Presentation.Entities.Prediction".into();
        train
    });
    // The service does not sort predictions.
    let mut trains: Vec<Value> = trains.collect();
    trains.reverse();
    Value::Array(trains)
}

/// Returns a journey in the service's format, as in its OpenAPI description, at the time that the request names.
fn planned(journey: &Value, now: DateTime, query: &str) -> Value {
    let legs = journey["legs"].as_array().into_iter().flatten().map(|leg| {
        json!({
            "duration": leg["duration"],
            "mode": {"id": leg["mode"], "name": leg["mode"]},
            "departurePoint": {"commonName": format!("{} Underground Station", leg["from"].as_str().unwrap_or_default())},
            "arrivalPoint": {"commonName": format!("{} Underground Station", leg["to"].as_str().unwrap_or_default())},
            "routeOptions": [{"lineIdentifier": {"id": leg["line"]}, "directions": []}],
            "path": {"stopPoints": []},
            "isDisrupted": false,
        })
    });
    let field = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let date = field("date").and_then(|date| Date::strptime("%Y%m%d", date).ok()).unwrap_or(now.date());
    let time = field("time").and_then(|time| Time::strptime("%H%M", time).ok()).unwrap_or(now.time());
    let duration = SignedDuration::from_mins(journey["duration"].as_i64().unwrap_or_default());
    let at = date.to_datetime(time);
    let (start, end) = match field("timeIs") {
        Some("Arriving") => (at - duration, at),
        _ => (at, at + duration),
    };
    json!({
        "duration": journey["duration"],
        "startDateTime": start.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        "arrivalDateTime": end.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        "legs": legs.collect::<Vec<_>>(),
    })
}
