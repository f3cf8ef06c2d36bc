//! The offline model: answers without a language model. It recognises intents in the message, calls tools, and replies with
//! their results.
//!
//! All facts come from tools. For messages that it does not understand, it replies with examples; requests that are not about
//! London's network it refuses with [`REFUSAL`], as every model of this assistant does.

mod intents;
mod speech;

use threadkeep::ChatMessage;
use threadkeep::Role;
use threadkeep::dialogue::time::Relation;
use threadkeep::dialogue::{Act, Classifier, OfflineModel, OfflineModelBuilder, Turn, Unanswered, Utterance};
use threadkeep_transit::offline::{
    FOLLOW_UPS, MESSAGES, NOT_DELETED, find_direct, find_habits, find_now, find_saved, find_saved_keys,
    find_statements, find_step_free, find_topics, personal_intents, trip_phrases,
};

use crate::prompt::REFUSAL;
use crate::routing::stations_of;
pub(crate) use speech::SPEECH;

const ABOUT: &str = "I answer questions about London's Underground, Elizabeth line, DLR and Overground: status, next trains, \
                     routes, stations and lines. Powered by TfL Open Data. Ask for example:";
const GREETING: &str = "Hello. Ask me about London's Underground: “Is the Victoria line running?”, “Next trains at Oxford \
                        Circus”, “How do I get from Paddington to Bank?”";
const WELCOME: &str = "You are welcome.";

/// The example messages of the intents.
const PHRASES: &str = include_str!("offline/phrases.txt");
/// The classifier that was trained from the phrases: `cargo xtask train` makes it.
const WEIGHTS: &[u8] = include_bytes!("offline/weights.bin");

/// The classes of questions about London's transport that no tool answers, and the replies: what is not known, and where the
/// answer is.
pub const REFERRALS: [(&str, &str); 7] = [
    (
        "fares",
        "I do not know the fares. See tfl.gov.uk/fares. You pay with a contactless card, a phone or an Oyster card.",
    ),
    (
        "other_transport",
        "I only know the Underground, the Elizabeth line, the DLR and the Overground. I do not know buses, trams, river \
         boats, the cable car or other railways: see tfl.gov.uk.",
    ),
    (
        "rules",
        "I do not know the rules, services and facilities at stations. See tfl.gov.uk, or ask the station's staff.",
    ),
    ("lost_property", "I do not know what was found or handed in. See tfl.gov.uk/lostproperty to report a lost item."),
    (
        "strikes",
        "I do not know of strikes or how they change the service. See tfl.gov.uk/strikes. I can look up the status that \
         TfL reports now.",
    ),
    ("crowding", "I do not know how full trains and stations are. See tfl.gov.uk, or the TfL Go app."),
    (
        "future_works",
        "I know what TfL reports for now, and what it lists as planned with a line's status. For works on a later day see \
         tfl.gov.uk/status-updates/planned-track-closures.",
    ),
];

/// Creates the model that answers for the London assistant if there is no language model.
///
/// # Panics
/// Never: a test builds the model.
#[must_use]
pub fn offline_model() -> OfflineModel {
    let classifier = Classifier::from_bytes(WEIGHTS).expect("a test makes the same bytes");
    let model = declaration().classifier(classifier).build();
    model.expect("intents have unique names and use defined slot kinds: a test builds the model")
}

fn declaration() -> OfflineModelBuilder {
    let builder = OfflineModel::builder(ABOUT)
        .spelling(speech::correct)
        .phrases(trip_phrases(GREETING, WELCOME))
        .kind("position", speech::find_position)
        .kind("station", |message: &Utterance| SPEECH.find_stations(message))
        .kind("statement", find_statements)
        .kind("habit", find_habits)
        .kind("saved", find_saved)
        .kind("savedplace", find_saved_keys)
        .kind("avoided", |message: &Utterance| SPEECH.find_avoided(message))
        .kind("usualline", speech::find_usual_line)
        .kind("lines", |message: &Utterance| SPEECH.find_lines(message))
        .kind("depart", SPEECH.times([Relation::At, Relation::After, Relation::Since]))
        .kind("arrive", SPEECH.times([Relation::By, Relation::Before, Relation::Until]))
        .kind("stepfree", find_step_free)
        .kind("direction", speech::find_directions)
        .kind("now", find_now)
        .kind("direct", find_direct)
        .kind("topic", find_topics)
        .kind("setting", |_: &Utterance| Vec::new());
    let pronouns = [
        ("there", "station"),
        ("here", "station"),
        ("that station", "station"),
        ("this station", "station"),
        ("there", "lines"),
        ("is it", "lines"),
        ("does it", "lines"),
        ("on it", "lines"),
        ("that line", "lines"),
        ("this line", "lines"),
        ("that one", "lines"),
        ("the line", "lines"),
        ("them", "lines"),
        ("those lines", "lines"),
        ("these lines", "lines"),
    ];
    let avoiding = ["avoiding it", "avoid it", "without it", "not using it", "not on it"];
    let builder = pronouns.into_iter().fold(builder, |builder, (words, kind)| builder.pronoun(words, kind));
    let builder = avoiding.into_iter().fold(builder, |builder, words| builder.pronoun_of(words, "avoided", "lines"));
    let ways = ["that way", "same direction", "that direction", "same way"];
    let builder = ways.into_iter().fold(builder, |builder, words| builder.pronoun_of(words, "direction", "station"));
    let builder = builder
        .places("station")
        .reply(Act::Source, whether_live)
        .answer("nearest", nearest)
        .answer("asked_station", asked_station)
        .otherwise(|_, cause| (cause == Unanswered::OffTopic).then(|| REFUSAL.to_owned()))
        .phrase_file(FOLLOW_UPS)
        .and_then(|builder| builder.phrase_file(PHRASES))
        .and_then(|builder| builder.phrase_file(MESSAGES))
        .expect("a test reads the phrases");
    let builder =
        REFERRALS.into_iter().fold(builder, |builder, (class, text)| builder.referral(class, move |_| text.to_owned()));
    let builder = builder.referral("deleting", |_| NOT_DELETED.to_owned());
    let intents = intents::intents().into_iter().chain(personal_intents(&SPEECH));
    intents.fold(builder, OfflineModelBuilder::intent)
}

/// Answers which station the user spoke of last.
fn asked_station(turn: &Turn<'_>) -> String {
    let calls = turn.earlier().iter().rev().flat_map(ChatMessage::tool_calls);
    let of_call = |call: &threadkeep::ToolCall| {
        let arguments: threadkeep::Value = call.arguments.read().ok()?;
        Some(arguments["station"].as_str()?.to_owned())
    };
    if let Some(name) = calls.into_iter().find_map(of_call) {
        return format!("You asked about {name}.");
    }
    let messages = turn.earlier().iter().rev().filter(|message| message.role == Role::User);
    let named = messages.map(|message| stations_of(&Utterance::new(message.plain_text())));
    let stations = named.into_iter().find(|stations| !stations.is_empty()).unwrap_or_default();
    match stations.first() {
        Some((name, _)) => format!("You asked about {name}."),
        None => "You have not named a station yet.".to_owned(),
    }
}

/// Answers where the nearest station is, from what the caller said about the user's position.
fn nearest(turn: &Turn<'_>) -> String {
    let system = turn.earlier().iter().filter(|message| message.role == Role::System).map(ChatMessage::plain_text);
    let mut known = system.filter_map(|text| {
        let (_, rest) = text.split_once("The nearest stations are ")?;
        Some(rest.lines().next()?.trim_end_matches('.').to_owned())
    });
    match known.next_back() {
        Some(stations) => format!("The nearest stations, as the crow flies: {stations}."),
        None => {
            "I do not know where you are. Name a station, or use an app that sends your position with the question."
                .to_owned()
        }
    }
}

/// Answers in one sentence where the times of the last answer came from, based on its tool results.
fn whether_live(turn: &Turn<'_>) -> String {
    let results = turn.earlier().iter().rev().flat_map(ChatMessage::tool_results);
    let last = results.map(|result| result.output.as_str()).next();
    let text = match last {
        None => "I have not given you any times yet.",
        Some(text) if text.contains("cannot be reached") => "No: TfL's service could not be reached.",
        Some(text) if text.contains("running times") && text.contains("estimates") => {
            "No: those were running times from TfL's timetables, and estimates by distance where there are none."
        }
        Some(text) if text.contains("running times") => "No: those were running times from TfL's timetables.",
        Some(text) if text.contains("timetables of") => "No: those times came from TfL's timetables.",
        Some(text) if text.contains("(live") => "Yes: those times came live from TfL when you asked.",
        Some(text) if text.contains("journey planner") => "That was TfL's journey planner when you asked.",
        Some(_) => "My last answer came from TfL when you asked, or from the built-in network.",
    };
    text.to_owned()
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
        assert!(format!("{:?}", super::offline_model()).contains("status"));
    }
}
