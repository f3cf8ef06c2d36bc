//! Socket Mode: the same door over a WebSocket that the server opens.

use serde_json::json;
use threadkeep_simulator::slack::App;

use crate::CHANNEL;
use crate::bench::{Bench, Settings};

async fn start() -> Bench {
    let bench = Bench::start(Settings { is_socket_mode: true, ..Settings::default() }).await;
    bench.slack.wait_for_sockets(1).await;
    bench
}

/// Returns the number of messages from the bot.
fn answers(bench: &Bench) -> usize {
    bench.slack.messages().iter().filter(|message| message.is_from_bot()).count()
}

// S4.46, S4.47
#[tokio::test]
async fn a_change_is_requested_and_approved_by_a_reaction_and_a_button() {
    let mut bench = start().await;
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale api in shop to 4", None).await;
    assert!(request.text.contains("--replicas=4"), "{}", request.text);
    let done = bench.decide(CHANNEL, &request, "U02BOB", "white_check_mark").await;
    assert!(done.text.contains("scaled to 4"), "{}", done.text);
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale it to 5", None).await;
    bench.restart().await;
    let before = bench.slack.messages().len();
    let pressed = bench.slack.press(&App::SocketMode, &request, "U02BOB", "threadkeep_approve").await;
    assert_eq!((pressed.status, pressed.attempts), (Some(200), 1));
    let done = bench.slack.wait_for(|messages| messages.get(before).cloned()).await;
    assert!(done.text.contains("scaled to 5"), "{}", done.text);
    assert_eq!(bench.cluster.changes().len(), 2);
    let opened = bench.slack.calls().iter().filter(|call| call.method == "apps.connections.open").count();
    assert_eq!(opened, 2, "one connection for each start");
}

#[tokio::test]
async fn the_server_has_no_endpoints() {
    let bench = start().await;
    for path in [threadkeep_slack::EVENTS_PATH, threadkeep_slack::INTERACTIONS_PATH] {
        let delivery = bench.slack.post(&format!("{}{path}", bench.url), "{}", "application/json", None).await;
        assert_eq!(delivery.status, Some(404), "{path}");
    }
}

#[tokio::test]
async fn the_next_connection_is_open_before_an_announced_end() {
    let bench = start().await;
    for reason in ["warning", "refresh_requested"] {
        bench.slack.announce_disconnect(reason);
        bench.slack.wait_for_sockets(1).await;
        assert_eq!(bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None).await.text, "You are welcome.");
        bench.slack.close_announced();
    }
    assert_eq!(bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None).await.text, "You are welcome.");
    assert_eq!(answers(&bench), 3, "each message is answered once");
}

#[tokio::test]
async fn a_broken_connection_is_replaced_and_messages_arrive_again() {
    let bench = start().await;
    for _ in 0..3 {
        let (asked, ()) = tokio::join!(bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None), async {
            bench.slack.cut_sockets();
        });
        assert_eq!(asked.text, "You are welcome.");
    }
    bench.slack.wait_for_sockets(1).await;
    assert_eq!(bench.ask(CHANNEL, "U1", "<@U0BOT> hi", None).await.thread_ts, None);
    assert_eq!(answers(&bench), 4, "each message is answered once");
}

#[tokio::test]
async fn two_instances_share_the_messages() {
    let mut bench = start().await;
    let (_, _running) = bench.serve_beside().await;
    bench.slack.wait_for_sockets(2).await;
    for _ in 0..4 {
        assert_eq!(bench.ask(CHANNEL, "U1", "<@U0BOT> thanks", None).await.text, "You are welcome.");
    }
    assert_eq!(answers(&bench), 4);
    assert_eq!(bench.roles(CHANNEL).await.len(), 8);
}

#[tokio::test]
async fn messages_of_one_channel_are_stored_in_order() {
    let bench = start().await;
    for number in 0..20 {
        // `say` returns after the acknowledgement, so each message is stored before the next one is sent.
        bench.slack.say(&App::SocketMode, CHANNEL, "U1", &format!("<@U0BOT> describe pod ghost-{number}"), None).await;
    }
    let texts = bench
        .slack
        .wait_for(|messages| {
            let texts: Vec<String> =
                messages.iter().filter(|one| one.is_from_bot()).map(|one| one.text.clone()).collect();
            (texts.len() == 20).then_some(texts)
        })
        .await;
    for (number, text) in texts.iter().enumerate() {
        assert!(text.contains(&format!("ghost-{number}")), "{number}: {text}");
    }
}

#[tokio::test]
async fn other_messages_are_acknowledged_and_need_no_work() {
    let bench = start().await;
    let join = json!({ "type": "member_joined_channel", "user": "U1", "channel": CHANNEL });
    assert_eq!(bench.slack.send_event(&App::SocketMode, &join).await.attempts, 1);
    let command =
        json!({ "team_id": "T0LOCAL", "channel_id": CHANNEL, "user_id": "U1", "command": "/ops", "text": "x" });
    assert_eq!(bench.slack.send_envelope("slash_commands", &command).await.status, Some(200));
    assert_eq!(answers(&bench), 0);
}
