//! Thirty dialogues of several turns. For each turn, the calls, the facts in the reply, the agent and the stored messages are checked.
//! In most dialogues, the service fails at some point.

use serde_json::{Value, json};
use threadkeep::{MessageQuery, Role, TurnStatus};

use crate::env::{Conversation, TestEnv};
use crate::tfl::{Fault, World};

const STATUS: &str = "get_line_status";
const TRAINS: &str = "get_next_trains";
const ROUTE: &str = "get_route";
const INFO: &str = "get_station_info";
const UNREACHABLE: &str = "cannot be reached";

/// A message, and what is expected of its answer.
struct Step {
    say: &'static str,
    before: Event,
    agent: Option<&'static str>,
    calls: &'static [&'static str],
    facts: &'static [&'static str],
    absent: &'static [&'static str],
}

/// What happens before a message.
enum Event {
    Nothing,
    /// Requests for paths that contain the text fail.
    Fault(&'static str, Fault),
    /// All requests succeed again.
    Recovery,
    /// The given number of seconds pass.
    Seconds(i64),
    /// The status of a line changes.
    Change(&'static str, Value),
}

fn say(say: &'static str, calls: &'static [&'static str], facts: &'static [&'static str]) -> Step {
    Step { say, before: Event::Nothing, agent: None, calls, facts, absent: &[] }
}

impl Step {
    fn by(self, agent: &'static str) -> Self {
        Self { agent: Some(agent), ..self }
    }

    fn after(self, before: Event) -> Self {
        Self { before, ..self }
    }

    fn without(self, absent: &'static [&'static str]) -> Self {
        Self { absent, ..self }
    }
}

fn delays(severity: i64, description: &str, reason: &str) -> Value {
    json!([{"statusSeverity": severity, "statusSeverityDescription": description, "reason": reason, "validityPeriods": []}])
}

/// Sets up the state shared by all dialogues: three lines with problems, and trains at two stations.
fn set_up(world: &mut World) {
    let mut set = |line: &str, status: Value| drop(world.status.insert(line.to_owned(), status));
    set("circle", delays(9, "Minor Delays", "Circle Line: Minor delays due to a faulty train."));
    set("victoria", delays(6, "Severe Delays", "Victoria Line: Severe delays due to a signal failure."));
    set("weaver", delays(2, "Suspended", "Weaver Line: No service after a tree fell."));
    let train = |line: &str, platform: &str, destination: &str, seconds: u32| json!({"lineId": line, "destinationName": format!("{destination} Underground Station"), "platformName": platform, "timeToStation": seconds});
    let oxford_circus = json!([
        train("victoria", "Southbound - Platform 6", "Brixton", 130),
        train("victoria", "Northbound - Platform 5", "Walthamstow Central", 250),
        train("central", "Eastbound - Platform 2", "Epping", 70),
    ]);
    world.arrivals.insert("940GZZLUOXC".to_owned(), oxford_circus);
    world
        .arrivals
        .insert("940GZZLUBXN".to_owned(), json!([train("victoria", "Northbound", "Walthamstow Central", 60)]));
    world.disruptions.insert("Brixton".to_owned(), "The lift at Brixton is out of service.".to_owned());
    let leg = json!({"mode": "tube", "line": "central", "from": "Stratford", "to": "Bank", "duration": 14});
    world.journeys.insert("Stratford|Bank".to_owned(), json!({"duration": 16, "legs": [leg]}));
}

/// Runs a dialogue and checks it.
async fn run_dialogue(name: &str, steps: Vec<Step>) {
    let env = TestEnv::new().await;
    set_up(&mut env.tfl.world.lock().unwrap());
    let conversation = env.conversation("ana").await;
    for (index, step) in steps.iter().enumerate() {
        apply(&env, &step.before);
        let turn = conversation.turn(step.say).await;
        let about = format!("{name}, turn {}: {}\n{}", index + 1, step.say, turn.reply);
        assert_eq!((turn.status, &turn.error), (TurnStatus::Completed, &None), "{about}");
        let called: Vec<&str> = turn.tool_calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(called, step.calls, "{about}");
        for fact in step.facts {
            assert!(turn.reply.to_lowercase().contains(&fact.to_lowercase()), "{about}\nlacks {fact}");
        }
        for absent in step.absent {
            assert!(!turn.reply.to_lowercase().contains(&absent.to_lowercase()), "{about}\nsays {absent}");
        }
        if let Some(agent) = step.agent {
            assert_eq!(turn.routed_agent.as_deref(), Some(agent), "{about}");
        }
        assert!(turn.confidence.is_some_and(|confidence| (0.0..=1.0).contains(&confidence)), "{about}");
        check_stored(&env, &conversation, &steps[..=index], &about).await;
    }
}

fn apply(env: &TestEnv, event: &Event) {
    // Not one guard for all events: advancing the clock also locks the world.
    let world = || env.tfl.world.lock().unwrap();
    match event {
        Event::Nothing => {}
        Event::Fault(part, fault) => drop(world().faults.insert((*part).to_owned(), fault.clone())),
        Event::Recovery => world().faults.clear(),
        Event::Seconds(seconds) => env.wait_seconds(*seconds),
        Event::Change(line, status) => drop(world().status.insert((*line).to_owned(), status.clone())),
    }
}

/// Checks that each question and each answer is stored once, in order, and each answer with its agent and data.
async fn check_stored(env: &TestEnv, conversation: &Conversation<'_>, steps: &[Step], about: &str) {
    let query = MessageQuery::newest(200);
    let page = env.agent.memory().messages(&conversation.scope, conversation.thread, &query).await.unwrap();
    let questions = page.messages.iter().filter(|message| message.content.role == Role::User);
    let questions: Vec<String> = questions.map(|message| message.plain_text().into_owned()).collect();
    assert_eq!(questions, steps.iter().map(|step| step.say).collect::<Vec<_>>(), "{about}");
    let is_answer =
        |message: &&threadkeep::Message| message.content.role == Role::Assistant && !message.plain_text().is_empty();
    let answers: Vec<_> = page.messages.iter().filter(is_answer).collect();
    assert_eq!(answers.len(), steps.len(), "{about}");
    for (answer, step) in answers.iter().zip(steps) {
        let data: Value = answer.content.data.as_ref().unwrap().read().unwrap();
        assert!(data["agents"].as_array().is_some_and(|agents| (1..=3).contains(&agents.len())), "{about}: {data}");
        assert!(data["results"].as_array().unwrap().len() >= step.calls.len().min(1), "{about}: {data}");
        assert!(answer.content.agent.is_some(), "{about}");
        if let Some(agent) = step.agent {
            assert_eq!(answer.content.agent.as_deref(), Some(agent), "{about}");
        }
    }
}

#[tokio::test]
async fn status_with_every_fault() {
    for (name, fault) in [
        ("status, 429", Fault::Status(429)),
        ("status, 500", Fault::Status(500)),
        ("status, 503", Fault::Status(503)),
        ("status, slow", Fault::Slow),
        ("status, cut", Fault::Cut),
        ("status, empty", Fault::Empty),
    ] {
        let steps = vec![
            say("Is the Circle line running?", &[STATUS], &["minor delays", "faulty train"]).by("CIRCLE"),
            // By now, the cached answer has expired.
            say("Any delays there?", &[STATUS], &["minor delays"]).by("CIRCLE").after(Event::Seconds(60)),
            say("Is the Weaver line running?", &[STATUS], &[UNREACHABLE])
                .by("WEAVER")
                .without(&["good service", "suspended"])
                .after(Event::Fault("", fault)),
            say("Is the Circle line running?", &[STATUS], &["minor delays"]).by("CIRCLE").after(Event::Nothing),
            say("Any delays there?", &[STATUS], &[UNREACHABLE, "When I last knew it", "minor delays"])
                .by("CIRCLE")
                .after(Event::Seconds(120)),
        ];
        run_dialogue(name, steps).await;
    }
}

#[tokio::test]
async fn trains_with_every_fault() {
    for (name, fault) in [
        ("trains, 429", Fault::Status(429)),
        ("trains, 500", Fault::Status(500)),
        ("trains, slow", Fault::Slow),
        ("trains, cut", Fault::Cut),
        ("trains, empty", Fault::Empty),
    ] {
        run_dialogue(
            name,
            vec![
                say("next Victoria line train at Oxford Circus towards Brixton", &[TRAINS], &["Brixton", "2 min"])
                    .by("VICTORIA")
                    .without(&["Walthamstow", "Epping"]),
                say("and northbound?", &[TRAINS], &["Walthamstow Central", "4 min"]).without(&["to Brixton"]),
                say("next trains at Brixton", &[TRAINS], &[UNREACHABLE])
                    .by("VICTORIA")
                    .without(&["min ("])
                    .after(Event::Fault("Arrivals", fault)),
                say("Is the Victoria line running?", &[STATUS], &["severe delays", "signal failure"]).by("VICTORIA"),
                // The failure is cached for a few seconds.
                say("Is the Jubilee line ok?", &[STATUS], &["good service"]).after(Event::Seconds(60)),
                say("next trains at Brixton", &[TRAINS], &["Walthamstow Central"])
                    .by("VICTORIA")
                    .after(Event::Recovery),
            ],
        )
        .await;
    }
}

#[tokio::test]
async fn routes_with_every_fault() {
    for (name, fault) in [
        ("routes, 300 without options", Fault::Status(300)),
        ("routes, 404", Fault::Status(404)),
        ("routes, 429", Fault::Status(429)),
        ("routes, 500", Fault::Status(500)),
        ("routes, slow", Fault::Slow),
        ("routes, cut", Fault::Cut),
        ("routes, empty", Fault::Empty),
    ] {
        let steps = vec![
            say("how do I get from Stratford to Bank?", &[ROUTE], &["Central line", "journey planner", "16 min"]),
            say("how do I get from Brixton to Oxford Circus?", &[ROUTE], &["Victoria line", "Running times"])
                .by("VICTORIA")
                .without(&["journey planner"])
                .after(Event::Fault("Journey", fault)),
            say("and back?", &[ROUTE], &["Victoria line", "Brixton"]),
            say("Is it delayed?", &[STATUS], &["severe delays"]).by("VICTORIA"),
        ];
        run_dialogue(name, steps).await;
    }
}

#[tokio::test]
async fn stations_with_every_fault() {
    for (name, fault) in
        [("stations, 500", Fault::Status(500)), ("stations, cut", Fault::Cut), ("stations, empty", Fault::Empty)]
    {
        let steps = vec![
            say("is Brixton step-free?", &[INFO], &["Brixton", "step-free", "lift at Brixton is out of service"]),
            say("is Westminster step-free?", &[INFO], &["Westminster", "step-free", UNREACHABLE])
                .without(&["No disruption"])
                .after(Event::Fault("Disruption", fault)),
            say("next trains at Oxford Circus", &[TRAINS], &["Brixton", "Epping"]),
        ];
        run_dialogue(name, steps).await;
    }
}

#[tokio::test]
async fn changes_of_subject_are_followed() {
    run_dialogue(
        "subject",
        vec![
            say("Is the Circle line ok?", &[STATUS], &["minor delays"]).by("CIRCLE"),
            say("And the Victoria line?", &[STATUS], &["severe delays"]).by("VICTORIA").without(&["Circle"]),
            say("Any delays there?", &[STATUS], &["Victoria line"]).by("VICTORIA"),
            say("any delays on the tube?", &[STATUS], &["Circle line", "Victoria line", "Weaver line"]).by("STATUS"),
        ],
    )
    .await;
    run_dialogue(
        "several lines",
        vec![
            say("Are the Circle and the Jubilee running?", &[STATUS], &["minor delays", "Jubilee line: good service"])
                .by("COLLABORATIVE"),
            say("what about the Weaver line?", &[STATUS], &["suspended", "tree"]).by("WEAVER"),
            say("Any delays there?", &[STATUS], &["suspended"]).by("WEAVER"),
        ],
    )
    .await;
    run_dialogue(
        "refusal",
        vec![
            say("What's the weather in Paris?", &[], &["I can only help with London"]).by("STATUS"),
            say("Is the Bakerloo line running?", &[STATUS], &["good service"]).by("BAKERLOO"),
            say("write me a poem about it", &[], &["I can only help with London"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn changes_of_status_are_reported_after_the_cache_expires() {
    run_dialogue(
        "a line recovers",
        vec![
            say("Is the Circle line running?", &[STATUS], &["minor delays"]).by("CIRCLE"),
            say("Is the Circle line running?", &[STATUS], &["minor delays"])
                .after(Event::Change("circle", delays(10, "Good Service", ""))),
            say("Any delays there?", &[STATUS], &["Circle line: good service"])
                .by("CIRCLE")
                .without(&["minor"])
                .after(Event::Seconds(31)),
        ],
    )
    .await;
    run_dialogue(
        "a line fails",
        vec![
            say("Is the District line running?", &[STATUS], &["good service"]).by("DISTRICT"),
            say("any delays on the tube?", &[STATUS], &["Circle line"]).by("STATUS").without(&["District"]),
            say("thanks", &[], &[]).after(Event::Seconds(31)),
            say("Is the District line running?", &[STATUS], &["part suspended", "flooding"])
                .by("DISTRICT")
                .after(Event::Change("district", delays(3, "Part Suspended", "District Line: Flooding."))),
        ],
    )
    .await;
    run_dialogue(
        "one fault passes",
        vec![
            say("Is the Jubilee line running?", &[STATUS], &[UNREACHABLE])
                .after(Event::Fault("Status", Fault::Status(500))),
            say("hello", &[], &[]).after(Event::Seconds(60)),
            say("Is the Jubilee line running?", &[STATUS], &["good service"]).after(Event::Recovery).by("JUBILEE"),
        ],
    )
    .await;
}

#[tokio::test]
async fn built_in_facts_are_available_without_the_service() {
    run_dialogue(
        "built in",
        vec![
            say(
                "which stations are on the Victoria line?",
                &["find_stations_on_line"],
                &["Brixton", "Walthamstow Central"],
            )
            .by("VICTORIA")
            .after(Event::Fault("", Fault::Status(500))),
            say("when is the last train from Brixton?", &["get_train_times"], &["Last trains at Brixton"])
                .by("VICTORIA"),
            say("how do I get from Waterloo to Bank?", &[ROUTE], &["Waterloo & City", "4 min"]),
        ],
    )
    .await;
    run_dialogue(
        "an estimate",
        vec![
            say("from Paddington to Canary Wharf", &[ROUTE], &["Elizabeth line", "estimates by distance"]),
            say("Is the Elizabeth line running?", &[STATUS], &["good service"]).by("ELIZABETH"),
            say("Any delays there?", &[STATUS], &["Elizabeth line"]).by("ELIZABETH"),
        ],
    )
    .await;
    run_dialogue(
        "preferences",
        vec![
            say("My usual line is the Northern", &["save_preference"], &["usual line"]),
            say("Is my usual line OK?", &["get_preference", STATUS], &["Northern line: good service"]).by("NORTHERN"),
        ],
    )
    .await;
}
