//! Many users decide on one request at the same time, on two instances.

use threadkeep_simulator::slack::Message;

use crate::CHANNEL;
use crate::bench::{ANSWER_TIMEOUT, Bench, Settings};

/// The number of requests, which `THREADKEEP_SLACK_APPROVALS` overrides.
fn rounds() -> usize {
    std::env::var("THREADKEEP_SLACK_APPROVALS").ok().and_then(|count| count.parse().ok()).unwrap_or(9)
}

/// How users decide in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// All eight approve.
    Approved,
    /// Some approve while others deny.
    Mixed,
    /// Someone has denied before the eight approve.
    Denied,
}

// S4.37, S4.47, S4.50
#[tokio::test(flavor = "multi_thread")]
async fn raced_approvals_are_carried_out_once_or_not_at_all() {
    let mut bench = Bench::start(Settings::default()).await;
    let (other, _running) = bench.serve_beside().await;
    let mut expected = 0;
    for number in 0..rounds() {
        let round = [Round::Approved, Round::Mixed, Round::Denied][number % 3];
        let said = format!("<@U0BOT> scale api in shop to {}", 3 + number % 2);
        let request = bench.ask(CHANNEL, "U01ALICE", &said, None).await;
        assert!(request.text.contains("React with"), "round {number}: {}", request.text);
        if round == Round::Denied {
            bench.decide(CHANNEL, &request, "U0DENIER", "x").await;
        }
        let reactions = (0..8).map(|approver| {
            let app = if approver % 2 == 0 { &bench.app } else { &other };
            let emoji = if round == Round::Mixed && approver % 3 == number % 3 { "x" } else { "white_check_mark" };
            let (slack, ts) = (&bench.slack, &request.ts);
            async move { slack.react(app, CHANNEL, ts, &format!("U1APPROVER{approver}"), emoji).await }
        });
        for delivery in futures::future::join_all(reactions).await {
            assert_eq!(delivery.status, Some(200));
        }
        // Each instance processes a channel in order, so its answer comes after the decisions.
        for app in [&bench.app, &other] {
            bench.slack.say(app, CHANNEL, "U01ALICE", "<@U0BOT> thanks", None).await;
        }
        wait_for_thanks(&bench, 2 * (number + 1)).await;
        let closed = bench.slack.messages().into_iter().find(|message| message.ts == request.ts).unwrap();
        let was_approved = closed.text.contains("Approved by");
        assert_ne!(was_approved, closed.text.contains("Denied by"), "round {number}: {}", closed.text);
        match round {
            Round::Approved => assert!(was_approved, "{}", closed.text),
            Round::Denied => assert!(!was_approved, "{}", closed.text),
            Round::Mixed => {}
        }
        expected += usize::from(was_approved);
        assert_eq!(bench.cluster.changes().len(), expected, "round {number} ({round:?}): {}", closed.text);
    }
}

/// Waits until this many thank-you messages have been answered since the start. An answer that arrives later would be mistaken
/// for the answer to the next request.
async fn wait_for_thanks(bench: &Bench, count: usize) {
    let is_answered = |messages: &[Message]| {
        let answers = messages.iter().filter(|message| message.text == "You are welcome.");
        (answers.count() == count).then_some(())
    };
    tokio::time::timeout(ANSWER_TIMEOUT, bench.slack.wait_for(is_answered)).await.expect("all thanks are answered");
}
