use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use threadkeep::agent::{Failure, NoticeSource};
use threadkeep::{JsonText, Timestamp};
use threadkeep_server::{KeyRole, Keys, ServerOptions};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::Client;
use crate::assistants::test_assistant;
use crate::server::{TIMEOUT, TestConfig, TestServer};

/// A stream of server-sent events.
pub(super) struct Events {
    response: reqwest::Response,
    text: String,
}

#[derive(Debug, PartialEq)]
pub(super) struct Event {
    /// The change number, which is the part of the id before the hyphen.
    id: Option<u64>,
    /// The id as sent: the change number and the tag of the change.
    whole_id: Option<String>,
    name: String,
    pub(super) data: Value,
}

impl Events {
    /// Opens a stream. If `seen` is set, events after this change number are replayed.
    pub(super) async fn open(client: &Client, path: &str, seen: Option<u64>) -> Self {
        Self::resume(client, path, seen.map(|seen| seen.to_string()).as_deref()).await
    }

    /// Opens a stream, with `seen` as the id of the last event that the client received.
    async fn resume(client: &Client, path: &str, seen: Option<&str>) -> Self {
        let mut request = client.request("GET", path).header("accept", "text/event-stream");
        if let Some(seen) = seen {
            request = request.header("last-event-id", seen);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let mut events = Self { response, text: String::new() };
        assert_eq!(events.next_block().await.unwrap(), ": listening");
        events
    }

    /// Reads the next block of lines; `None` at the end of the stream.
    async fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let rest = self.text.split_off(end + 2);
                return Some(std::mem::replace(&mut self.text, rest).trim_end().to_owned());
            }
            let chunk = tokio::time::timeout(TIMEOUT, self.response.chunk()).await.unwrap().unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads the next event, ignoring comments; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.next_block().await?;
            if block.starts_with(':') {
                continue;
            }
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            return Some(Event {
                id: field("id").map(|id| id.split('-').next().unwrap().parse().unwrap()),
                whole_id: field("id").map(str::to_owned),
                name: field("event").unwrap().to_owned(),
                data: serde_json::from_str(field("data").unwrap()).unwrap(),
            });
        }
    }
}

fn texts_of(event: &Event) -> Vec<&str> {
    let messages = event.data["events"][0]["messages"].as_array().unwrap();
    messages.iter().map(|message| message["text"].as_str().unwrap()).collect()
}

// S1.06
#[tokio::test]
async fn subscribers_receive_the_changes_to_their_thread_in_order() {
    let server = TestServer::start().await;
    let client = server.client();
    let (thread, other) = (client.new_thread().await, client.new_thread().await);
    let mut events = Events::open(&client, &format!("/v1/threads/{thread}/events"), None).await;
    client.say(&other, "elsewhere").await;
    client.say(&thread, "one").await;
    client.say(&thread, "two").await;
    client.delete(&format!("/v1/threads/{thread}/messages/1")).await;
    client.delete(&format!("/v1/threads/{thread}")).await;
    for (id, text) in [(1, "one"), (2, "two")] {
        let event = events.next().await.unwrap();
        assert_eq!((event.id, event.name.as_str()), (Some(id), "commit"));
        // Messages that were deleted before they were sent are only reported as deleted.
        if event.data["events"][0]["type"] == "appended" {
            assert_eq!(texts_of(&event), [text]);
        }
    }
    let mut last = events.next().await.unwrap();
    while last.name == "commit" {
        last = events.next().await.unwrap();
    }
    assert_eq!(last.name, "deleted");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn missed_events_are_replayed_including_erasures() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    for text in ["one", "two", "three"] {
        client.say(&thread, text).await;
    }
    client.delete(&format!("/v1/threads/{thread}/messages/2")).await;
    let path = format!("/v1/threads/{thread}/events");
    // `Last-Event-ID` takes precedence over the query.
    let mut events = Events::open(&client, &format!("{path}?after=0"), Some(2)).await;
    let third = events.next().await.unwrap();
    assert_eq!((third.id, texts_of(&third)), (Some(3), vec!["three"]));
    let erased = events.next().await.unwrap();
    assert_eq!((erased.id, &erased.data["events"][0]["type"]), (Some(4), &json!("erased")));
    client.say(&thread, "four").await;
    assert_eq!(events.next().await.unwrap().id, Some(5));
    let mut ahead = Events::open(&client, &format!("{path}?after=99"), None).await;
    let reset = ahead.next().await.unwrap();
    assert_eq!((reset.name.as_str(), reset.id), ("reset", Some(5)));
    // S1.43
    let mut newest = Events::open(&client, &format!("{path}?last=2"), None).await;
    let history = newest.next().await.unwrap();
    let texts: Vec<&Value> =
        history.data["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!((history.name.as_str(), texts), ("history", vec![&json!("three"), &json!("four")]));
}

// S1.06
// JSON is stored byte for byte and may contain line breaks, but the data of an event must be on one line.
#[tokio::test]
async fn json_with_line_breaks_is_sent_on_one_line() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/messages");
    let call = "{\"tool_call\":{\"id\":\"c\",\"name\":\"look\",\"arguments\":{\r\n\n\"at\":\n1.0}}}";
    let body = format!("{{\"messages\":[{{\"role\":\"assistant\",\"parts\":[{call}]}}]}}");
    let request = client.request("POST", &path).header("content-type", "application/json");
    crate::server::send(request.body(body)).await.expect(201);
    for query in ["after=0", "last=1"] {
        let mut events = Events::open(&client, &format!("/v1/threads/{thread}/events?{query}"), None).await;
        let data = events.next().await.unwrap().data;
        let messages = if query == "last=1" { &data["messages"] } else { &data["events"][0]["messages"] };
        assert_eq!(messages[0]["parts"][0]["tool_call"]["arguments"], json!({ "at": 1.0 }), "{query}");
    }
    let exported = client.get("/v1/export").await;
    let lines: Vec<Value> = exported.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(client.get(&path).await.text.contains("{\r\n\n\"at\":\n1.0}"), "the stored JSON is unchanged");
}

#[tokio::test]
async fn events_are_filtered_by_role() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/events?role=assistant");
    let mut events = Events::open(&client, &path, None).await;
    client.say(&thread, "question").await;
    let answer = json!({ "messages": [{ "role": "assistant", "text": "answer" }] });
    client.post(&format!("/v1/threads/{thread}/messages"), answer).await.expect(201);
    let mut received = events.next().await.unwrap();
    // An event about the title, which the server derives from the question, may precede the answer.
    if received.data["events"][0]["type"] == "patched" {
        received = events.next().await.unwrap();
    }
    assert_eq!(texts_of(&received), ["answer"]);
}

#[tokio::test]
async fn every_stream_ends_with_a_reason() {
    let options =
        ServerOptions { heartbeat: Duration::from_millis(20), sweep_every: None, ..TestConfig::default().options };
    let mut server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let (record, secret) =
        Keys::new(&server.memory).create(crate::server::new_key("acme", None, &[KeyRole::Write])).await.unwrap();
    let client = server.client().with_key(secret.as_str());
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/events");
    let mut revoked = Events::open(&client, &path, None).await;
    assert_eq!(revoked.next_block().await.unwrap(), ": heartbeat");
    Keys::new(&server.memory).revoke(&record.tenant, &record.id).await.unwrap();
    assert_eq!(revoked.next().await.unwrap().data, json!({ "type": "end", "reason": "key_revoked" }));
    assert_eq!(revoked.next().await, None);
    let client = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let mut events = Events::open(&client, &path, None).await;
    client.say(&thread, "last words").await;
    assert_eq!(events.next().await.unwrap().id, Some(1));
    server.request_shutdown();
    let end = events.next().await.unwrap();
    assert_eq!(end.data, json!({ "type": "end", "reason": "shutdown", "resume_after": 1 }));
    assert_eq!(events.next().await, None);
    server.wait_until_stopped().await.unwrap();
}

#[tokio::test]
async fn slow_subscribers_are_dropped_without_affecting_others() {
    let options = ServerOptions {
        slow_reader: Duration::from_millis(200),
        // On a busy machine the appends take a long time. The connection must stay open until the test has read all of it.
        write_timeout: Duration::from_secs(3_600),
        sweep_every: None,
        ..TestConfig::default().options
    };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/events");
    let mut slow = Events::open(&client, &path, None).await;
    let mut quick = Events::open(&client, &path, None).await;
    let large = "x".repeat(250_000);
    let mut received = Vec::new();
    for _ in 0..64 {
        client.say(&thread, &large).await;
        received.push(quick.next().await.unwrap().id.unwrap());
    }
    assert_eq!(received, (1..=64).collect::<Vec<_>>());
    let (mut last, mut end) = (0, None);
    while let Some(event) = slow.next().await {
        match event.name.as_str() {
            "commit" => {
                assert_eq!(event.id, Some(last + 1), "no event is missing before the end");
                last += 1;
            }
            _ => end = Some(event),
        }
    }
    let end = end.unwrap();
    assert_eq!(end.data, json!({ "type": "end", "reason": "slow_reader", "resume_after": last }));
    assert!(last < 64);
    let mut resumed = Events::open(&client, &path, Some(last)).await;
    assert_eq!(resumed.next().await.unwrap().id, Some(last + 1));
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn open_socket(server: &TestServer, client: &Client) -> Socket {
    let mut request = format!("ws://{}/v1/live", server.address).into_client_request().unwrap();
    if let Some(key) = &client.key {
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    }
    tokio_tungstenite::connect_async(request).await.unwrap().0
}

async fn send_message(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn receive(socket: &mut Socket) -> Value {
    loop {
        match tokio::time::timeout(TIMEOUT, socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(frame) => return json!({ "closed": frame.unwrap().reason.as_str() }),
            _ => {}
        }
    }
}

#[tokio::test]
async fn invalid_frames_close_the_socket_with_a_reason() {
    let server = TestServer::start().await;
    // The first is too large, the second has a reserved opcode, and the third is a text that is not UTF-8.
    let frames: [(&[u8], u16, &str); 3] = [
        (&[], 1009, "65536"),
        (&[0x83, 0x80, 0, 0, 0, 0], 1002, "opcode"),
        (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007, "UTF-8"),
    ];
    for (frame, code, reason) in frames {
        let mut socket = open_socket(&server, &server.client()).await;
        if frame.is_empty() {
            socket.send(Message::text("x".repeat(65 * 1024))).await.unwrap();
        } else {
            socket.get_mut().write_all(frame).await.unwrap();
        }
        let Message::Close(Some(frame)) = tokio::time::timeout(TIMEOUT, socket.next()).await.unwrap().unwrap().unwrap()
        else {
            panic!("not a close frame");
        };
        assert_eq!(u16::from(frame.code), code, "{frame}");
        assert!(frame.reason.contains(reason), "{frame}");
    }
}

/// After a failover that lost commits, the numbers of lost changes are assigned again. The tag in an event's id distinguishes
/// the new changes from the lost ones.
#[tokio::test]
async fn changes_lost_in_a_failover_are_detected() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}");
    for text in ["one", "two"] {
        client.say(&thread, text).await;
    }
    let events = format!("{path}/events");
    let first = Events::open(&client, &events, Some(0)).await.next().await.unwrap();
    let first_id = first.whole_id.unwrap();
    assert_eq!((first.id, first_id.len(), &first.data["change"]), (Some(1), "1-a1b2c3d4".len(), &json!(1)));
    for seen in [first_id.as_str(), "1"] {
        let next = Events::resume(&client, &events, Some(seen)).await.next().await.unwrap();
        assert_eq!((next.id, texts_of(&next)), (Some(2), vec!["two"]), "after {seen}");
    }
    for lost in ["1-00000000", "2-00000000"] {
        let reset = Events::resume(&client, &events, Some(lost)).await.next().await.unwrap();
        assert_eq!((reset.name.as_str(), reset.id, &reset.data["change"]), ("reset", Some(2), &json!(2)));
        let reset = Events::resume(&client, &format!("{events}?after={lost}"), None).await.next().await.unwrap();
        assert_eq!((reset.name.as_str(), reset.id), ("reset", Some(2)));
    }
    let refused = client.request("GET", &events).header("last-event-id", "1-lost").send().await.unwrap();
    assert_eq!(refused.status(), 400);

    let mut socket = open_socket(&server, &client).await;
    for (after, kind, change) in [
        (json!(first_id), "commit", 2),
        (json!(1), "commit", 2),
        (json!("1"), "commit", 2),
        (json!("1-00000000"), "reset", 2),
        (json!("2-00000000"), "reset", 2),
    ] {
        send_message(&mut socket, json!({ "type": "subscribe", "thread": thread, "after": after })).await;
        assert_eq!(receive(&mut socket).await["type"], "subscribed");
        let received = receive(&mut socket).await;
        assert_eq!((&received["type"], &received["change"]), (&json!(kind), &json!(change)), "after {after}");
        assert!(received["id"].as_str().unwrap().starts_with("2-"), "{received}");
    }
    send_message(&mut socket, json!({ "type": "subscribe", "thread": thread, "after": "lost" })).await;
    assert_eq!(receive(&mut socket).await["error"]["code"], "invalid_request");

    let current_etag = client.get(&path).await.header("etag").to_owned();
    let patch = async |etag: &str| {
        let request = client.request("PATCH", &path).header("if-match", etag).json(&json!({ "title": "New" }));
        request.send().await.unwrap()
    };
    let stale = patch("\"2-00000000\"").await;
    assert_eq!(
        (stale.status(), stale.headers()["etag"].to_str().unwrap()),
        (412.try_into().unwrap(), current_etag.as_str())
    );
    assert_eq!(patch(&current_etag).await.status(), 200);
    assert_eq!(patch("\"3\"").await.status(), 200, "a change number without a tag is accepted");
}

// S0.38
#[tokio::test]
async fn sockets_subscribe_to_many_threads() {
    let mut server = TestServer::start().await;
    let client = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let other = server.client_with_new_key("acme", Some("bob"), &[KeyRole::Write]).await;
    let (first_thread, second_thread, others_thread) =
        (client.new_thread().await, client.new_thread().await, other.new_thread().await);
    let mut socket = open_socket(&server, &client).await;
    for thread in [&others_thread, "0190b4e2-0000-7000-8000-000000000000", "x"] {
        send_message(&mut socket, json!({ "type": "subscribe", "thread": thread })).await;
        let problem = receive(&mut socket).await;
        assert_eq!(problem["error"], json!({ "code": "not_found", "message": "thread not found", "param": null }));
    }
    for message in
        [json!("?"), json!({ "type": "dance" }), json!({ "type": "subscribe", "thread": first_thread, "odd": 1 })]
    {
        send_message(&mut socket, message).await;
        assert_eq!(receive(&mut socket).await["error"]["code"], "invalid_request");
    }
    send_message(&mut socket, json!({ "type": "subscribe_threads" })).await;
    assert_eq!(receive(&mut socket).await["type"], "subscribed_threads");
    for thread in [&first_thread, &second_thread] {
        send_message(&mut socket, json!({ "type": "subscribe", "thread": thread, "roles": ["user"] })).await;
        assert_eq!(receive(&mut socket).await, json!({ "type": "subscribed", "thread": thread }));
    }
    other.say(&others_thread, "not for ana").await;
    client.say(&first_thread, "first").await;
    let (mut commit, mut cursor) = (None, None);
    while commit.is_none() || cursor.is_none() {
        let received = receive(&mut socket).await;
        match received["type"].as_str().unwrap() {
            "commit" => commit = Some(received),
            _ => {
                assert_eq!(received["threads"][0]["id"], json!(first_thread));
                cursor = Some(received["cursor"].as_str().unwrap().to_owned());
            }
        }
    }
    let commit = commit.unwrap();
    assert_eq!((&commit["thread"], &commit["change"]), (&json!(first_thread), &json!(1)));
    assert_eq!(commit["events"][0]["messages"][0]["text"], "first");
    send_message(&mut socket, json!({ "type": "unsubscribe_threads" })).await;
    send_message(&mut socket, json!({ "type": "unsubscribe", "thread": first_thread })).await;
    send_message(&mut socket, json!({ "type": "unsubscribe", "thread": first_thread })).await;
    assert_eq!(receive(&mut socket).await["error"]["code"], "not_found");
    client.say(&first_thread, "unheard").await;
    client.say(&second_thread, "received").await;
    assert_eq!(receive(&mut socket).await["thread"], json!(second_thread));
    // A cursor that another user received is invalid.
    let mut others_socket = open_socket(&server, &other).await;
    send_message(&mut others_socket, json!({ "type": "subscribe_threads", "cursor": cursor.unwrap() })).await;
    assert_eq!(receive(&mut others_socket).await["error"]["code"], "invalid_cursor");
    server.request_shutdown();
    let end = receive(&mut socket).await;
    assert_eq!((&end["type"], &end["reason"]), (&json!("end"), &json!("shutdown")));
    assert_eq!(receive(&mut socket).await, json!({ "closed": "shutdown" }));
    assert_eq!(receive(&mut others_socket).await, json!({ "closed": "shutdown" }));
    server.wait_until_stopped().await.unwrap();
}

// S0.38, S1.06
#[tokio::test]
async fn sockets_can_subscribe_to_all_threads_of_a_user() {
    let server = TestServer::start().await;
    let client = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let other = server.client_with_new_key("acme", Some("bob"), &[KeyRole::Write]).await;
    let (old, others_thread) = (client.new_thread().await, other.new_thread().await);
    client.say(&old, "before").await;
    let mut socket = open_socket(&server, &client).await;
    send_message(&mut socket, json!({ "type": "subscribe_threads", "roles": ["user"] })).await;
    assert_eq!(receive(&mut socket).await["error"]["param"], "roles");
    send_message(&mut socket, json!({ "type": "subscribe_threads", "follow": true, "roles": ["assistant"] })).await;
    let start = receive(&mut socket).await;
    assert_eq!(start["type"], "subscribed_threads");
    other.say(&others_thread, "not for ana").await;
    let new = client.new_thread().await;
    let exchange = json!({ "messages": [
        { "role": "user", "text": "a question" }, { "role": "assistant", "text": "an answer" },
    ] });
    for thread in [&old, &new] {
        client.post(&format!("/v1/threads/{thread}/messages"), exchange.clone()).await;
        client.post(&format!("/v1/threads/{thread}/messages"), exchange.clone()).await;
    }
    let mut changes = HashMap::from([(old.clone(), vec![]), (new.clone(), vec![])]);
    while changes.values().any(|changes| changes.len() < 2) {
        let received = receive(&mut socket).await;
        if received["type"] == "threads" {
            continue;
        }
        assert_eq!(received["type"], "commit");
        let messages = received["events"][0]["messages"].as_array().unwrap();
        let texts: Vec<_> = messages.iter().map(|message| message["text"].as_str().unwrap()).collect();
        assert_eq!(texts, ["an answer"]);
        changes.get_mut(received["thread"].as_str().unwrap()).unwrap().push(received["change"].as_u64().unwrap());
    }
    assert_eq!(changes, HashMap::from([(old.clone(), vec![2, 3]), (new.clone(), vec![1, 2])]));
    client.delete(&format!("/v1/threads/{new}")).await;
    let mut received = receive(&mut socket).await;
    while received["type"] == "threads" {
        received = receive(&mut socket).await;
    }
    assert_eq!(received, json!({ "thread": new, "type": "deleted" }));
    // A client that resumes receives `reset` for threads that have changed.
    let mut resumed = open_socket(&server, &client).await;
    send_message(&mut resumed, json!({ "type": "subscribe_threads", "follow": true, "cursor": start["cursor"] })).await;
    assert_eq!(receive(&mut resumed).await["type"], "subscribed_threads");
    let reset = receive(&mut resumed).await;
    assert_eq!((&reset["type"], &reset["thread"], &reset["change"]), (&json!("reset"), &json!(old), &json!(3)));
}

/// The weather at two places.
#[derive(Debug, Default)]
struct Weather {
    values: Mutex<BTreeMap<String, JsonText>>,
    reads: AtomicUsize,
    is_down: std::sync::atomic::AtomicBool,
}

impl Weather {
    fn set(&self, place: &str, weather: &str) {
        let value = JsonText::of(&json!({ "weather": weather })).unwrap();
        self.values.lock().unwrap().insert(place.to_owned(), value);
    }
}

#[async_trait]
impl NoticeSource for Weather {
    fn topics(&self) -> Vec<String> {
        vec!["london".to_owned(), "paris".to_owned()]
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(5)
    }

    async fn read(&self, _: Timestamp) -> Result<BTreeMap<String, JsonText>, Failure> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(Failure::new("down", "the source is down")),
            false => Ok(self.values.lock().unwrap().clone()),
        }
    }
}

/// Waits until a condition is true.
async fn wait_until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap();
}

// S0.38
#[tokio::test]
async fn subscribers_of_a_thread_receive_notices_when_they_change() {
    let weather = Arc::new(Weather::default());
    let (mut definition, _) = test_assistant("keeper");
    definition.notices = Some(weather.clone());
    let server = TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let idle = Arc::strong_count(&weather);
    let client = server.client();
    let thread = client.new_thread().await;
    weather.set("london", "rain");
    weather.set("paris", "sun");
    let path = format!("/v1/threads/{thread}/events?assistant=keeper&topic=london");
    let mut events = Events::open(&client, &path, None).await;
    let rain = events.next().await.unwrap();
    assert_eq!((rain.name.as_str(), rain.id), ("notice", None));
    let notice = |topic: &str, weather: &str| json!({ "type": "notice", "assistant": "keeper", "topic": topic, "data": { "weather": weather } });
    assert_eq!(rain.data, notice("london", "rain"));

    let mut socket = open_socket(&server, &client).await;
    send_message(&mut socket, json!({ "type": "subscribe", "thread": thread, "assistant": "keeper" })).await;
    assert_eq!(receive(&mut socket).await["type"], "subscribed");
    for (topic, weather) in [("london", "rain"), ("paris", "sun")] {
        let mut expected = notice(topic, weather);
        expected["thread"] = json!(thread);
        assert_eq!(receive(&mut socket).await, expected);
    }
    // Only changes of the topic are sent, in between the updates of the thread.
    weather.set("paris", "fog");
    assert_eq!(receive(&mut socket).await["data"]["weather"], "fog");
    client.say(&thread, "hello").await;
    assert_eq!(events.next().await.unwrap().name, "commit");
    assert_eq!(receive(&mut socket).await["type"], "commit");
    weather.set("london", "snow");
    assert_eq!(events.next().await.unwrap().data, notice("london", "snow"));
    assert_eq!(receive(&mut socket).await["data"]["weather"], "snow");
    // Changes are still sent after the source was down for a while.
    weather.is_down.store(true, Ordering::SeqCst);
    let reads = weather.reads.load(Ordering::SeqCst);
    wait_until(|| weather.reads.load(Ordering::SeqCst) > reads + 1).await;
    weather.is_down.store(false, Ordering::SeqCst);
    weather.set("london", "sun");
    assert_eq!(events.next().await.unwrap().data, notice("london", "sun"));
    // The source is not read without subscribers.
    drop((events, socket));
    client.say(&thread, "the server notices that the clients are gone").await;
    wait_until(|| Arc::strong_count(&weather) == idle).await;
}

#[tokio::test]
async fn subscriptions_to_unknown_notices_are_rejected() {
    let (mut definition, _) = test_assistant("keeper");
    definition.notices = Some(Arc::new(Weather::default()));
    let assistants = vec![definition, test_assistant("other").0];
    let server = TestServer::start_with(TestConfig { assistants, ..TestConfig::default() }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    for (query, param) in [
        ("assistant=other", "assistant"),
        ("assistant=unknown", "assistant"),
        ("assistant=keeper&topic=rome", "topic"),
        ("topic=london", "topic"),
    ] {
        let answer = client.get(&format!("/v1/threads/{thread}/events?{query}")).await;
        assert_eq!(answer.error(400)["param"], param, "{query}");
    }
    let mut socket = open_socket(&server, &client).await;
    send_message(&mut socket, json!({ "type": "subscribe", "thread": thread, "topics": ["london"] })).await;
    assert_eq!(receive(&mut socket).await["error"]["param"], "topic");
}
