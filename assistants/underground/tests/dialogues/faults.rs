//! What the assistant does when TfL's service fails.

use serde_json::json;

use crate::env::TestEnv;
use crate::tfl::Fault;

fn delays() -> serde_json::Value {
    json!([{"statusSeverity": 9, "statusSeverityDescription": "Minor Delays", "reason": "Circle Line: Minor delays due to a faulty train."}])
}

// S0.34
#[tokio::test]
async fn every_fault_is_reported_and_nothing_is_invented() {
    for fault in [Fault::Status(429), Fault::Status(500), Fault::Slow, Fault::Cut, Fault::Empty] {
        let env = TestEnv::new().await;
        env.tfl.world.lock().unwrap().faults.insert(String::new(), fault.clone());
        let conversation = env.conversation("ana").await;
        let reply = conversation.say("Is the Circle line running?").await;
        assert!(reply.contains("cannot be reached") && !reply.contains("good service"), "{fault:?}: {reply}");
        let reply = conversation.say("next trains at Oxford Circus").await;
        assert!(reply.contains("cannot be reached"), "{fault:?}: {reply}");
        let reply = conversation.say("how do I get from Brixton to Oxford Circus").await;
        assert!(reply.contains("Victoria line") && reply.contains("Running times"), "{fault:?}: {reply}");
    }
}

#[tokio::test]
async fn the_last_known_status_is_reported_with_its_time() {
    let env = TestEnv::new().await;
    env.tfl.world.lock().unwrap().status.insert("circle".to_owned(), delays());
    let conversation = env.conversation("ana").await;
    assert!(conversation.say("Is the Circle line running?").await.contains("minor delays"));
    env.wait_seconds(3600);
    env.tfl.world.lock().unwrap().faults.insert(String::new(), Fault::Status(500));
    let reply = conversation.say("Any delays there?").await;
    assert!(reply.contains("16 June at 08:40") && reply.contains("minor delays"), "{reply}");
}

// S0.39
#[tokio::test]
async fn transient_failures_are_retried_and_identical_requests_are_sent_once() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("Is the Circle line running?").await;
    conversation.say("Is the Circle line running?").await;
    assert_eq!(env.tfl.requests().len(), 1, "{:?}", env.tfl.requests());
    env.wait_seconds(31);
    env.tfl.world.lock().unwrap().faults.insert(String::new(), Fault::Status(503));
    conversation.say("Is the Circle line running?").await;
    assert_eq!(env.tfl.requests().len(), 4, "{:?}", env.tfl.requests());
}

#[tokio::test]
async fn a_request_with_an_ambiguous_place_is_repeated_with_the_best_match() {
    let env = TestEnv::new().await;
    {
        let mut world = env.tfl.world.lock().unwrap();
        let option = |value: &str, quality: i64| json!({"parameterValue": value, "matchQuality": quality, "place": {"commonName": "Paddington"}});
        world.disambiguation = Some(json!({
            "fromLocationDisambiguation": {"disambiguationOptions": [option("other", 500), option("picked", 999)], "matchStatus": "list"},
            "toLocationDisambiguation": {"matchStatus": "identified"},
        }));
        let leg = json!({"mode": "elizabeth-line", "line": "elizabeth", "from": "Paddington", "to": "Bond Street", "duration": 3});
        world.journeys.insert("Paddington|Bond Street".to_owned(), json!({"duration": 4, "legs": [leg]}));
    }
    let reply = env.conversation("ana").await.say("from Paddington to Bond Street").await;
    assert!(
        reply.contains("Elizabeth line") && reply.contains("4 min") && reply.contains("journey planner"),
        "{reply}"
    );
    assert!(env.tfl.requests().iter().any(|path| path.contains("/picked/to/")), "{:?}", env.tfl.requests());
}
