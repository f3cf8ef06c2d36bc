//! The offline model of the general assistant, which quotes conversations and documents.

mod outcome;
pub(crate) mod quoting;

use serde_json::json;
use threadkeep::dialogue::time::Times;
use threadkeep::dialogue::{
    Classifier, Intent, OfflineModel, OfflineModelBuilder, Outcome, Phrases, Slot, Turn, is_question,
};
use threadkeep::{Role, Value};

const ABOUT: &str = "I quote what you told me and what your documents say, and I remember your preferences. I cannot write, \
                     compute, or look anything up elsewhere. To use a language model instead, see docs/models.md.";

const NOTED: &str = "I will keep that in mind.";
/// The most words of a preference's name. A longer text is not a preference.
const NAME_WORDS: usize = 6;

const GREETING: &str = "Hello. Tell me something to remember, or ask about what you told me.";
const GREETING_IN_SPANISH: &str = "Hola. Cuéntame algo que deba recordar, o pregunta por lo que me contaste.";

/// The words that precede a preference's name and value.
const SETTING_CUES: [&str; 22] = [
    "remember that my",
    "remember my",
    "set my",
    "change my",
    "update my",
    "my",
    "set preference",
    "set the preference",
    "recuerda que mi",
    "recuerda mi",
    "pon mi",
    "cambia mi",
    "configura mi",
    "mi",
    "note that my",
    "save my",
    "keep my",
    "make my",
    "switch my",
    "set the",
    "change the",
    "anota que mi",
];
/// The words that precede the name of a preference to remove.
const FORGET_CUES: [&str; 20] = [
    "forget my preference",
    "forget my",
    "forget the preference",
    "forget preference",
    "remove my preference",
    "remove my",
    "remove the preference",
    "remove preference",
    "delete my preference",
    "delete my",
    "delete the preference",
    "delete preference",
    "clear my",
    "drop my",
    "unset my",
    "olvida mi",
    "borra mi",
    "elimina mi",
    "quita mi",
    "olvida la preferencia",
];

/// The example messages of the intents.
const PHRASES: &str = include_str!("offline/phrases.txt");

/// The classifier that was trained from the phrases: `cargo xtask train` makes it.
const WEIGHTS: &[u8] = include_bytes!("offline/weights.bin");

/// Returns the model that the general assistant uses without a language model.
#[must_use]
pub fn offline_model() -> OfflineModel {
    let classifier = Classifier::from_bytes(WEIGHTS).expect("a test makes the same bytes");
    declaration().classifier(classifier).build().expect("the kinds are declared, and the names are unique")
}

fn declaration() -> OfflineModelBuilder {
    OfflineModel::builder(ABOUT)
        .phrases(Phrases { greeting: GREETING.to_owned(), ..Phrases::english() })
        .phrases(Phrases { greeting: GREETING_IN_SPANISH.to_owned(), ..Phrases::spanish() })
        .kind("time", Times::all())
        .intent(set_preference())
        .intent(list_preferences())
        .intent(forget_preference())
        .intent(list_documents())
        .answer("outcome", |turn| outcome::describe_outcome(turn.earlier()))
        .answer(
            "statement",
            |turn| if turn.question().trim_end().ends_with('?') { answer(turn) } else { NOTED.to_owned() },
        )
        .answer("question", answer)
        .answer("command", |_| command_answer())
        .otherwise(|turn, _| Some(if is_question(&turn.question()) { answer(turn) } else { NOTED.to_owned() }))
        .phrase_file(PHRASES)
        .expect("a test reads the phrases")
}

fn set_preference() -> Intent {
    Intent::new("set_preference")
        .example("Remember that my seat is the window.")
        .slot(Slot::text("setting").after(SETTING_CUES))
        .then_calls("set_preference", |outcome| {
            let (name, value) = parse_setting(outcome.slots().label("setting"))?;
            Some(json!({"name": name, "value": value}))
        })
        .says(|outcome| match outcome.result("set_preference") {
            Value::Null => NOTED.to_owned(),
            set => format!("I will remember that your {} is {}.", text(&set["name"]), text(&set["value"])),
        })
}
fn list_preferences() -> Intent {
    Intent::new("list_preferences")
        .example("What are my preferences?")
        .calls_with("list_preferences", |_| json!({}))
        .says(|outcome| {
            let found = outcome.result("list_preferences");
            let lines = found["preferences"].as_object().into_iter().flatten();
            let lines: Vec<String> = lines.map(|(name, value)| format!("- {name}: {}", text(value))).collect();
            match lines.is_empty() {
                true => "You have not told me any preferences.".to_owned(),
                false => format!("Your preferences:\n{}", lines.join("\n")),
            }
        })
}

fn forget_preference() -> Intent {
    Intent::new("forget_preference")
        .example("Forget my seat.")
        .slot(Slot::text("name").after(FORGET_CUES))
        .then_calls("forget_preference", |outcome| {
            let name = outcome.slots().label("name");
            (1..=NAME_WORDS).contains(&name.split_whitespace().count()).then(|| json!({"name": name}))
        })
        .says(|outcome| match outcome.result("forget_preference") {
            Value::Null => "Which preference should I forget? Name it, as in “Forget my seat.”".to_owned(),
            done => format!("I have forgotten your {}.", text(&done["forgotten"])),
        })
        .says_of_failure(|outcome| match outcome.failure("forget_preference") {
            Some(why) if why.starts_with("not found") => {
                "I have no such preference. What you said is still in the conversation; `threadkeep erase` removes it."
                    .to_owned()
            }
            why => format!("That did not work: {}", why.unwrap_or_default()),
        })
}

fn list_documents() -> Intent {
    Intent::new("list_documents")
        .example("Which documents do you have?")
        .calls_with("list_documents", |_| json!({}))
        .says(documents)
}

fn documents(outcome: &Outcome<'_>) -> String {
    let found = outcome.result("list_documents");
    let titles = found["documents"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = titles.map(|document| format!("- {}", text(&document["title"]))).collect();
    if lines.is_empty() {
        return "I have no documents. To add one, run `threadkeep docs add FILE`.".to_owned();
    }
    if let Some(more) = found["more"].as_u64().filter(|more| *more > 0) {
        lines.push(format!("- and {more} more"));
    }
    format!("I have these documents:\n{}", lines.join("\n"))
}

/// Splits `seat is the window`, `language = Spanish` or `language to Spanish` into name and value.
fn parse_setting(setting: &str) -> Option<(&str, &str)> {
    let separators = [" is ", " are ", " = ", "=", ": ", " to "];
    let found = separators.iter().filter_map(|separator| Some((setting.find(separator)?, separator.len())));
    let (at, length) = found.min()?;
    let (name, value) = (setting[..at].trim(), setting[at + length..].trim());
    (!name.is_empty() && !value.is_empty() && name.split_whitespace().count() <= NAME_WORDS).then_some((name, value))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn command_answer() -> String {
    format!("I cannot do that without a language model. Your message is stored. {ABOUT}")
}

/// Answers a question with quotations.
fn answer(turn: &Turn<'_>) -> String {
    let instructions: Vec<String> = turn
        .earlier()
        .iter()
        .filter(|message| message.role == Role::System)
        .map(threadkeep::ChatMessage::plain_text)
        .collect();
    quoting::quote(&turn.question(), &instructions.join("\n\n"))
        .unwrap_or_else(|| "I found nothing about that in what you told me or in your documents.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classifier_is_trained_from_the_phrases() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/offline/weights.bin");
        declaration().check_classifier(path, WEIGHTS);
    }

    #[test]
    fn a_setting_is_split_into_name_and_value() {
        for (setting, expected) in [
            ("seat is the window", Some(("seat", "the window"))),
            ("language to Spanish", Some(("language", "Spanish"))),
            ("language=Spanish", Some(("language", "Spanish"))),
            ("favourite colours are red: and blue", Some(("favourite colours", "red: and blue"))),
            ("seat", None),
            ("is ", None),
        ] {
            assert_eq!(parse_setting(setting), expected, "{setting}");
        }
    }
}
