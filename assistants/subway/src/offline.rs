//! The offline model: answers without a language model. It recognises intents in the message, calls tools, and replies with
//! their results.
//!
//! All facts come from tools. For messages that it does not understand, it replies with examples; requests that are not about
//! the subway it refuses with [`REFUSAL`], as every model of this assistant does.

mod boards;
mod comparing;
mod conditions;
mod corridor;
mod lines;
mod speech;
mod trips;

use threadkeep::ChatMessage;
use threadkeep::dialogue::time::Relation;
use threadkeep::dialogue::{
    Act, Choice, Classifier, Names, OfflineModel, OfflineModelBuilder, Phrases, Turn, Unanswered, Utterance,
};
use threadkeep_transit::offline::{
    FOLLOW_UPS, MESSAGES as SHARED_MESSAGES, NOT_DELETED, find_direct, find_habits, find_now, find_saved,
    find_saved_keys, find_statements, find_step_free, find_topics, lines_of, personal_intents, trip_phrases,
};

use crate::prompt::REFUSAL;
use crate::service::usual_service;
use speech::SPEECH;

const ABOUT: &str = "I answer questions about the New York City subway: routes, next trains, local or express, stations and \
                     lines. Ask for example:";
const GREETING: &str = "Hello. Ask me about the New York City subway: “How do I get from Penn Station to Yankee Stadium?”, \
                        “Next 6 at Astor Place”, “Is Bleecker St accessible?”";
const WELCOME: &str = "You are welcome.";

/// The example messages of the intents.
const PHRASES: &str = include_str!("offline/phrases.txt");
/// More example messages, as different people type them.
const MESSAGES: &str = include_str!("offline/messages.txt");
/// The classifier that was trained from the phrases: `cargo xtask train` makes it.
const WEIGHTS: &[u8] = include_bytes!("offline/weights.bin");

/// The classes of questions about the subway that no tool answers, and the replies: what is not known, and where the answer is.
pub const REFERRALS: [(&str, &str); 8] = [
    (
        "fares",
        "I do not know the fares. See mta.info/fares, or a fare machine; you pay by tapping a card or a phone (OMNY).",
    ),
    (
        "alerts",
        "I do not read the MTA's service alerts, so I do not know of delays or changes. See mta.info/alerts. I can look \
         up when the next trains are announced at a station.",
    ),
    (
        "elevators",
        "I do not know which elevators work now: see mta.info/elevator-escalator-status. I only know which \
                   stations are accessible.",
    ),
    (
        "timetable",
        "I cannot look up first or last trains or how often a line runs. See the line's timetable at \
                   mta.info/schedules.",
    ),
    (
        "airports",
        "The subway does not go into the airports. For JFK, take the A to Howard Beach-JFK or the E, J or Z to \
                  Sutphin Blvd-Archer Av-JFK and change to the AirTrain. For LaGuardia, take a bus: the Q70 from \
                  Jackson Hts-Roosevelt Av. Newark has no subway: trains leave from Penn Station. Ask me for the way to \
                  one of these stations.",
    ),
    (
        "other_transport",
        "I only know the subway. I do not know buses, ferries, other railways, or ways on foot: see mta.info.",
    ),
    ("lost_property", "I do not know what was found or handed in. See mta.info/lost-and-found to report a lost item."),
    (
        "rules",
        "I do not know the rules, services and conditions at stations. See mta.info, or ask the station's staff.",
    ),
];

/// Creates the model that answers for the subway assistant if there is no language model.
#[must_use]
pub fn offline_model() -> OfflineModel {
    let classifier = Classifier::from_bytes(WEIGHTS).expect("a test makes the same bytes");
    let model = declaration().classifier(classifier).build();
    model.expect("intents have unique names and use defined slot kinds: a test builds the model")
}

fn declaration() -> OfflineModelBuilder {
    let builder = OfflineModel::builder(ABOUT)
        .spelling(speech::correct)
        .phrases(phrases())
        .kind("outside", outside())
        .kind("station", |message: &Utterance| SPEECH.find_stations(message))
        .kind("statement", find_statements)
        .kind("habit", find_habits)
        .kind("saved", find_saved)
        .kind("savedplace", find_saved_keys)
        .kind("avoided", |message: &Utterance| SPEECH.find_avoided(message))
        .kind("rivals", |message: &Utterance| SPEECH.find_rivals(message))
        .kind("lines", |message: &Utterance| SPEECH.find_lines(message))
        .kind("depart", SPEECH.times([Relation::At, Relation::After, Relation::Since]))
        .kind("arrive", SPEECH.times([Relation::By, Relation::Before, Relation::Until]))
        .kind("stepfree", find_step_free)
        .kind("direction", conditions::directions)
        .kind("now", find_now)
        .kind("direct", find_direct)
        .kind("topic", find_topics)
        .kind("setting", |_: &Utterance| Vec::new())
        .pronoun("there", "station")
        .pronoun("here", "station")
        .pronoun("that station", "station")
        .pronoun("this station", "station")
        .pronoun_of("avoid it", "avoided", "lines")
        .pronoun_of("avoiding it", "avoided", "lines")
        .pronoun_of("without it", "avoided", "lines")
        .pronoun_of("that way", "direction", "station")
        .pronoun_of("same direction", "direction", "station")
        .pronoun_of("that direction", "direction", "station")
        .pronoun_of("same way", "direction", "station")
        .places("station")
        .reply(Act::Source, whether_live)
        .otherwise(|_, cause| (cause == Unanswered::OffTopic).then(|| REFUSAL.to_owned()))
        .phrase_file(FOLLOW_UPS)
        .and_then(|builder| builder.phrase_file(PHRASES))
        .and_then(|builder| builder.phrase_file(SHARED_MESSAGES))
        .and_then(|builder| builder.phrase_file(MESSAGES))
        .expect("a test reads the phrases");
    let builder = REFERRALS.into_iter().fold(builder, |builder, (class, text)| {
        builder.referral(
            class,
            move |turn| if class == "timetable" { with_usual_service(text, turn) } else { text.to_owned() },
        )
    });
    let builder = builder.referral("deleting", |_| NOT_DELETED.to_owned());
    let intents = trips::intents()
        .into_iter()
        .chain(boards::intents())
        .chain(comparing::intents())
        .chain(personal_intents(&SPEECH));
    intents.fold(builder, OfflineModelBuilder::intent)
}

fn phrases() -> Phrases {
    trip_phrases(GREETING, WELCOME)
}

/// Adds the usual service of the lines that the question names.
fn with_usual_service(text: &str, turn: &Turn<'_>) -> String {
    let lines = SPEECH.find_lines(&Utterance::new(turn.question()));
    let named = lines.first().and_then(|mention| mention.choices.first()).map(|choice| lines_of(&choice.value));
    let usual = named.unwrap_or_default().into_iter().filter_map(|line| usual_service(&SPEECH.system.line_name(&line)));
    let sentences: Vec<&str> = usual.chain([text]).collect();
    sentences.join("\n")
}

/// Finds places that people take for stations, and where the subway does not go.
fn outside() -> Names {
    let airport = |name: &str| Choice::new(name, name);
    Names::new()
        .with(airport("LaGuardia"), &["la guardia", "laguardia airport", "la guardia airport", "lga", "lga airport"])
        .with(airport("Newark"), &["newark airport", "newark liberty", "ewr", "newark penn station"])
        .with(airport("Hoboken"), &[])
        .with(airport("Jersey City"), &[])
}

/// Answers in one sentence where the times of the last answer came from, based on its tool results.
fn whether_live(turn: &Turn<'_>) -> String {
    let results = turn.earlier().iter().rev().flat_map(ChatMessage::tool_results);
    let last = results.map(|result| result.output.as_str()).next();
    match last {
        None => "I have not given you any times yet.".to_owned(),
        Some(text) if text.contains("Live times unavailable") => "No: live times were unavailable.".to_owned(),
        Some(text) if text.contains("are live;") && text.contains("estimates") => {
            "Partly: the waits came live from the MTA's feeds when you asked; the travel times are estimates."
                .to_owned()
        }
        Some(text) if text.contains("are live;") => {
            "Partly: the waits came live from the MTA's feeds when you asked; the travel times are from the timetable."
                .to_owned()
        }
        Some(text) if text.contains("(live") || text.contains("are live") => {
            "Yes: those times came live from the MTA's feeds when you asked.".to_owned()
        }
        Some(text) if text.contains("timetable") => "No: those times came from the timetable.".to_owned(),
        Some(text) if text.contains("estimates") || text.contains("2 min a stop") => {
            "No: those times were estimates of two minutes a stop.".to_owned()
        }
        Some(_) => "No: my last answer had no live times.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_classifier_is_trained_from_the_phrases() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/offline/weights.bin");
        super::declaration().check_classifier(path, super::WEIGHTS);
    }

    #[test]
    fn the_model_is_complete() {
        assert!(format!("{:?}", super::offline_model()).contains("comparison"));
    }
}
