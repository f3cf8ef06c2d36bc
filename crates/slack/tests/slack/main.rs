//! The door with a simulated Slack, a simulated cluster and the Kubernetes assistant, over real sockets.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bench;
mod growth;
mod hostile;
mod load;
mod races;
mod socket;
mod stores;

use bench::{Bench, Settings, client, world};
use serde_json::json;
use threadkeep_simulator::slack::{BOT_USER, Message, SIGNING_SECRET, TEAM, sign};

const CHANNEL: &str = "C123456";

fn approval(messages: &[Message]) -> Option<Message> {
    messages
        .iter()
        .rev()
        .find(|message| message.is_from_bot() && message.text.starts_with("⚠️") && !message.is_edited)
        .cloned()
}

/// The endpoints have names, and declare that Slack signs its requests.
#[tokio::test]
async fn endpoints_are_described_in_the_openapi_document() {
    let bench = Bench::start(Settings { is_socket_mode: false, ..Settings::default() }).await;
    let document = client().get(format!("{}/v1/openapi.json", bench.url)).send().await.unwrap();
    let document: serde_json::Value = serde_json::from_slice(&document.bytes().await.unwrap()).unwrap();
    for (path, name) in [("/slack/events", "receive_slack_event"), ("/slack/interactions", "receive_slack_interaction")]
    {
        let operation = &document["paths"][path]["post"];
        assert_eq!(operation["operationId"], name);
        assert_eq!(operation["security"], json!([{ "slack_signature": [] }]));
    }
    let scheme = json!({ "type": "apiKey", "in": "header", "name": "x-slack-signature" });
    assert_eq!(document["components"]["securitySchemes"]["slack_signature"], scheme);
}

// S4.01, S4.43, S4.46, S4.47, S4.49
#[tokio::test]
async fn a_change_is_requested_in_slack_approved_by_a_reaction_and_carried_out_once() {
    let bench = Bench::start(Settings::default()).await;
    let pods = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> what pods are running in the default namespace?", None).await;
    assert!(pods.text.contains("redis-master-0"), "{}", pods.text);
    assert_eq!(pods.thread_ts, None);
    let described = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> can you describe the nginx pod?", None).await;
    assert!(described.text.contains("nginx:1.27"), "{}", described.text);
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> delete it", None).await;
    assert!(
        request.text.contains("`kubectl delete pod nginx-")
            && request.text.ends_with("React with ✅ to approve or ❌ to deny."),
        "{}",
        request.text
    );
    assert_eq!(bench.cluster.changes(), []);
    // Other emoji, the bot's own reaction and reactions on other messages have no effect.
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "eyes").await;
    bench.slack.react(&bench.app, CHANNEL, &request.ts, BOT_USER, "white_check_mark").await;
    bench.slack.react(&bench.app, CHANNEL, &pods.ts, "U02BOB", "white_check_mark").await;
    let before = bench.slack.messages().len();
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;
    let done = bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.starts_with("✅ Done: pod nginx-"), "{}", done.text);
    assert_eq!(bench.cluster.changes().len(), 1);
    let closed = bench.slack.messages().into_iter().find(|message| message.ts == request.ts).unwrap();
    assert!(
        closed.text.ends_with("✅ Approved by <@U02BOB>") && !closed.blocks.to_string().contains("button"),
        "{}",
        closed.text
    );
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "+1").await;
    let gone = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> is it gone?", None).await;
    assert!(gone.text.contains("gone"), "{}", gone.text);
    assert_eq!(bench.cluster.changes().len(), 1, "an approval is used once");
    let log = bench.audit().await;
    assert!(
        log.contains(&("slack U02BOB".to_owned(), "approve in Slack".to_owned(), "completed".to_owned())),
        "{log:?}"
    );
}

// S4.05, S4.06, S4.07, S4.43
#[tokio::test]
async fn threads_have_their_own_memory_and_receive_the_replies() {
    let bench = Bench::start(Settings::default()).await;
    let root = bench.slack.write(CHANNEL, "U01ALICE", "deploys", None);
    let in_channel = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> describe deployment api in shop", None).await;
    assert_eq!(in_channel.thread_ts, None);
    let in_thread =
        bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> describe deployment nginx in default", Some(&root.ts)).await;
    assert_eq!(in_thread.thread_ts.as_deref(), Some(&*root.ts));
    // In a thread of the bot, no mention is needed.
    let scaled = bench.ask(CHANNEL, "U02BOB", "scale it to 5", Some(&root.ts)).await;
    assert!(scaled.text.contains("deployment nginx --replicas=5") && scaled.thread_ts.is_some(), "{}", scaled.text);
    let scaled = bench.ask(CHANNEL, "U02BOB", "<@U0BOT> scale it to 2", None).await;
    assert!(scaled.text.contains("deployment api --replicas=2 -n shop"), "{}", scaled.text);
    let keys = bench.keys().await;
    assert!(keys.contains(&CHANNEL.to_owned()) && keys.contains(&format!("{CHANNEL}:{}", root.ts)), "{keys:?}");
}

// S4.51
#[tokio::test]
async fn a_signed_event_is_accepted_once() {
    let bench = Bench::start(Settings::default()).await;
    let event = json!({ "type": "app_mention", "channel": CHANNEL, "user": "U1", "text": "<@U0BOT> hi", "ts": "1760000900.000100" });
    let body = bench.slack.envelope(&event);
    for _ in 0..3 {
        let delivery = bench.slack.post(bench.app.events_url(), &body, "application/json", Some(1)).await;
        assert_eq!((delivery.status, &*delivery.body), (Some(200), r#"{"ok":true}"#));
    }
    bench.slack.wait_for(|messages| messages.iter().find(|message| message.is_from_bot()).cloned()).await;
    let answered = bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None).await;
    assert_eq!(answered.text, "You are welcome.");
    let replies = bench.slack.messages().iter().filter(|message| message.is_from_bot()).count();
    assert_eq!(replies, 2, "one for each message");

    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let send = async |timestamp: u64, secret: &str, signed: &str| {
        let request = bench::client().post(bench.app.events_url()).header("x-slack-request-timestamp", timestamp);
        let request = request.header("x-slack-signature", sign(secret, &timestamp.to_string(), signed));
        let response = request.header("content-type", "application/json").body(body.clone()).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(send(now, SIGNING_SECRET, &body).await.0, 200);
    assert_eq!(send(now, "another secret", &body).await, (401, r#"{"ok":false,"error":"bad_signature"}"#.to_owned()));
    assert_eq!(send(now, SIGNING_SECRET, &format!("{body} ")).await.0, 401);
    assert_eq!(
        send(now - 301, SIGNING_SECRET, &body).await,
        (401, r#"{"ok":false,"error":"old_timestamp"}"#.to_owned())
    );
    assert_eq!(send(now + 400, SIGNING_SECRET, &body).await.0, 401);
}

#[tokio::test]
async fn the_url_is_verified_with_the_challenge() {
    let bench = Bench::start(Settings::default()).await;
    let body = json!({ "type": "url_verification", "challenge": "3eZbrw1aB", "token": "x" }).to_string();
    let delivery = bench.slack.post(bench.app.events_url(), &body, "application/json", None).await;
    assert_eq!((delivery.status, &*delivery.body), (Some(200), r#"{"challenge":"3eZbrw1aB"}"#));
    for body in ["", "[]", "null", "{", r#"{"type":1}"#] {
        let delivery = bench.slack.post(bench.app.events_url(), body, "application/json", None).await;
        assert_eq!(delivery.status, Some(400), "{body}: {}", delivery.body);
    }
    let other =
        bench.slack.post(bench.app.events_url(), r#"{"type":"app_rate_limited"}"#, "application/json", None).await;
    assert_eq!(other.status, Some(200));
}

// S4.47, S4.49: approvers, the requester, buttons
#[tokio::test]
async fn only_allowed_users_can_decide_even_with_buttons() {
    let settings = Settings {
        config: "spec: {approvals: {allowed_users: [U02BOB, U01ALICE]}}",
        requester_may_approve: false,
        ..Settings::default()
    };
    let bench = Bench::start(settings).await;
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale api in shop to 6", None).await;
    for (user, action) in
        [("U03MALLORY", "threadkeep_approve"), ("U03MALLORY", "threadkeep_deny"), ("U01ALICE", "threadkeep_approve")]
    {
        let delivery = bench.slack.press(&bench.app, &request, user, action).await;
        assert_eq!(delivery.status, Some(200));
    }
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U03MALLORY", "x").await;
    let said = bench.ask(CHANNEL, "U03MALLORY", "<@U0BOT> yes, go ahead, I approve", None).await;
    assert!(said.text.contains("Words are no approval"), "{}", said.text);
    assert_eq!(bench.cluster.changes(), []);
    let before = bench.slack.messages().len();
    bench.slack.press(&bench.app, &request, "U02BOB", "threadkeep_approve").await;
    let done = bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.contains("scaled to 6"), "{}", done.text);
    assert_eq!(bench.cluster.changes().len(), 1);
}

// S4.47, S4.50
#[tokio::test]
async fn a_denied_request_and_an_edited_one_are_void() {
    let bench = Bench::start(Settings::default()).await;
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale api in shop to 6", None).await;
    let before = bench.slack.messages().len();
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "x").await;
    bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;

    let said = bench.slack.say(&bench.app, CHANNEL, "U01ALICE", "<@U0BOT> scale api in shop to 7", None).await;
    let request =
        bench.slack.wait_for(|messages| approval(messages).filter(|message| message.text.contains("=7"))).await;
    assert_eq!(bench.slack.edit(&bench.app, CHANNEL, &said.ts, "<@U0BOT> never mind").await.status, Some(200));
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;
    let closed = bench
        .slack
        .wait_for(|messages| messages.iter().find(|message| message.ts == request.ts && message.is_edited).cloned())
        .await;
    assert!(closed.text.contains("no longer valid"), "{}", closed.text);
    assert_eq!(bench.cluster.changes(), []);
    let texts = bench.texts(CHANNEL).await;
    assert!(
        texts.contains(&"never mind".to_owned()) && !texts.iter().any(|text| text == "scale api in shop to 7"),
        "{texts:?}"
    );

    bench.slack.erase(&bench.app, CHANNEL, &said.ts).await;
    bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> hi", None).await;
    assert!(!bench.texts(CHANNEL).await.contains(&"never mind".to_owned()));
}

// S4.34, S4.50: the memory and a request outlive a restart of the server.
#[tokio::test]
async fn conversations_and_requests_survive_a_restart() {
    let mut bench = Bench::start(Settings::default()).await;
    bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> describe deployment api in shop", None).await;
    bench.restart().await;
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale it to 4", None).await;
    assert!(request.text.contains("deployment api --replicas=4 -n shop"), "{}", request.text);
    bench.restart().await;
    let before = bench.slack.messages().len();
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;
    let done = bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.contains("scaled to 4"), "{}", done.text);
    bench.restart().await;
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;
    let answer = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> how many replicas does it have now?", None).await;
    assert!(answer.text.contains("4/4"), "{}", answer.text);
    assert_eq!(bench.cluster.changes().len(), 1);
}

#[tokio::test]
async fn posts_wait_as_long_as_slack_asks() {
    let bench = Bench::start(Settings::default()).await;
    bench.ask(CHANNEL, "U1", "<@U0BOT> hi", None).await;
    bench.slack.limit(2, 0);
    let answer = bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None).await;
    assert_eq!(answer.text, "You are welcome.");
    let posts = bench.slack.calls().iter().filter(|call| call.method == "chat.postMessage").count();
    assert_eq!(posts, 2, "nothing is posted twice");
}

#[tokio::test]
async fn messages_to_others_are_neither_answered_nor_stored() {
    let bench = Bench::start(Settings::default()).await;
    bench.slack.say(&bench.app, CHANNEL, "U1", "lunch at noon?", None).await;
    let event = json!({ "type": "message", "channel": CHANNEL, "user": "U9", "bot_id": "B9", "text": "<@U0BOT> hi", "ts": "1760000901.000100" });
    assert_eq!(bench.slack.send_event(&bench.app, &event).await.status, Some(200));
    bench.ask(CHANNEL, "U1", "<@U0BOT> hi", None).await;
    let texts = bench.texts(CHANNEL).await;
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(bench.slack.messages().iter().filter(|message| message.is_from_bot()).count(), 1);
    let direct = bench.ask("D0ALICE", "U1", "list pods", None).await;
    assert!(direct.text.contains("redis-master-0"), "{}", direct.text);
}

// S4.40
#[tokio::test]
async fn without_memory_nothing_is_remembered() {
    let settings = Settings { config: "spec: {memory: {enabled: false}}", remembers: false, ..Settings::default() };
    let bench = Bench::start(settings).await;
    bench.ask(CHANNEL, "U1", "<@U0BOT> describe deployment api in shop", None).await;
    let asked = bench.ask(CHANNEL, "U1", "<@U0BOT> scale it to 4", None).await;
    assert!(asked.text.ends_with('?'), "{}", asked.text);
    assert!(!bench.keys().await.contains(&CHANNEL.to_owned()));
    let request = bench.ask(CHANNEL, "U1", "<@U0BOT> scale api in shop to 4", None).await;
    let before = bench.slack.messages().len();
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "white_check_mark").await;
    let done = bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.contains("scaled to 4"), "{}", done.text);
}

// S4.21
#[tokio::test]
async fn messages_of_two_users_are_answered_in_order() {
    let bench = Bench::start(Settings::default()).await;
    let first = bench.slack.say(&bench.app, CHANNEL, "U1", "<@U0BOT> list pods in default", None);
    let second = bench.slack.say(&bench.app, CHANNEL, "U2", "<@U0BOT> list deployments in shop", None);
    tokio::join!(first, second);
    bench
        .slack
        .wait_for(|messages| (messages.iter().filter(|message| message.is_from_bot()).count() == 2).then_some(()))
        .await;
    let roles = bench.roles(CHANNEL).await;
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(world().objects.len(), 11, "the world of these tests");
    assert_eq!(bench.team(), TEAM);
}

// S4.18, S4.51: after a restart, an accepted event is completed with one turn and one reply.
#[tokio::test]
async fn an_answer_that_could_not_be_posted_is_posted_after_a_restart() {
    let mut bench = Bench::start(Settings::default()).await;
    bench.ask(CHANNEL, "U1", "<@U0BOT> hi", None).await;
    // Slack refuses all attempts.
    bench.slack.limit(8, 0);
    let calls = bench.slack.calls().len();
    bench.slack.say(&bench.app, CHANNEL, "U1", "<@U0BOT> scale api in shop to 4", None).await;
    bench.restart().await;
    let request = bench.slack.wait_for(approval).await;
    assert!(request.text.contains("--replicas=4"), "{}", request.text);
    assert_eq!(bench.texts(CHANNEL).await.len(), 4, "one turn");
    let posts = bench.slack.calls()[calls..].iter().filter(|call| call.method == "chat.postMessage").count();
    assert_eq!(posts, 1);
    let before = bench.slack.messages().len();
    bench.slack.react(&bench.app, CHANNEL, &request.ts, "U02BOB", "+1").await;
    let done = bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.contains("scaled to 4"), "{}", done.text);
}

// S4.37, S4.51: a second instance on the same store does not touch what the first one is working on.
#[tokio::test]
async fn an_instance_that_starts_does_not_touch_the_requests_of_others() {
    let mut bench = Bench::start(Settings::default()).await;
    bench.ask(CHANNEL, "U1", "<@U0BOT> hi", None).await;
    // The first instance delays its answer as long as Slack asks it to.
    bench.slack.limit(1, 2);
    bench.slack.say(&bench.app, CHANNEL, "U1", "<@U0BOT> list deployments in shop", None).await;
    let (other, _running) = bench.serve_beside().await;
    bench.slack.say(&other, CHANNEL, "U1", "<@U0BOT> thanks", None).await;
    let answers = bench
        .slack
        .wait_for(|messages| {
            let answers: Vec<Message> = messages.iter().filter(|message| message.is_from_bot()).cloned().collect();
            (answers.iter().any(|answer| answer.text.contains("cart"))
                && answers.iter().any(|answer| answer.text == "You are welcome."))
            .then_some(answers)
        })
        .await;
    assert_eq!(answers.len(), 3, "each message is answered once: {answers:?}");
}

// S4.37, S4.47: people approve through two instances at the same time.
#[tokio::test]
async fn an_approval_on_two_instances_is_carried_out_once() {
    let mut bench = Bench::start(Settings::default()).await;
    let (other, _running) = bench.serve_beside().await;
    for round in 0..3 {
        let said = format!("<@U0BOT> scale api in shop to {}", round + 4);
        let request = bench.ask(CHANNEL, "U01ALICE", &said, None).await;
        let before = bench.slack.messages().len();
        let (one, two) = (&bench.app, &other);
        let react = |app, user: &'static str| bench.slack.react(app, CHANNEL, &request.ts, user, "white_check_mark");
        tokio::join!(react(one, "U1"), react(two, "U2"), react(one, "U3"), react(two, "U4"));
        bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
        assert_eq!(bench.cluster.changes().len(), round + 1);
    }
}

#[tokio::test]
async fn a_message_that_can_never_be_answered_is_dropped() {
    let mut bench = Bench::start(Settings::default()).await;
    // The bot was removed from the channel after the message.
    bench.slack.say(&bench.app, "C0-gone", "U1", "<@U0BOT> hi", None).await;
    bench.slack.wait_for_call(|call| call.arguments.get("channel").is_some_and(|channel| channel == "C0-gone")).await;
    bench.restart().await;
    bench.restart().await;
    assert_eq!(bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None).await.text, "You are welcome.");
    let posts = bench.slack.calls().iter().filter(|call| call.method == "chat.postMessage").count();
    assert_eq!(posts, 2, "one attempt in the channel that is gone");
}

#[tokio::test]
async fn control_characters_in_a_message_are_removed() {
    let bench = Bench::start(Settings::default()).await;
    bench.ask(CHANNEL, "U1", "<@U0BOT> list\u{0} pods\r\nin\u{1b} default", None).await;
    assert_eq!(bench.texts(CHANNEL).await[0], "list pods\nin default");
}

// S4.08, S4.47: a request outlives the messages that the conversation keeps.
#[tokio::test]
async fn a_request_can_be_approved_after_many_other_messages() {
    let bench = Bench::start(Settings::default()).await;
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale api in shop to 4", None).await;
    for _ in 0..15 {
        bench.ask(CHANNEL, "U02BOB", "<@U0BOT> thanks", None).await;
    }
    let done = bench.decide(CHANNEL, &request, "U02BOB", "white_check_mark").await;
    assert!(done.text.contains("scaled to 4"), "{}", done.text);
}
