//! Intents that set, list and forget preferences.

use serde_json::json;
use threadkeep::Value;
use threadkeep::core::text::{Language, content_terms};
use threadkeep::dialogue::time::find_times;
use threadkeep::dialogue::{Intent, Outcome, Slot, Utterance, is_question};

use super::erasure::{list_to_erase, topic_of};
use super::quoting::origin;
use super::{NOTED, NOTED_IN_SPANISH, text};
use crate::erase_tools::FIND;
use crate::evidence::heading::Heading;

/// The maximum number of words in a preference's name. A longer text is not a preference.
const MAX_PREFERENCE_NAME_WORDS: usize = 6;

/// Phrases that precede a preference's name and value.
const SETTING_CUES: [&str; 27] = [
    "save this as a preference",
    "save it as a preference",
    "save as a preference",
    "store this as a preference",
    "my preference for",
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

/// Phrases that precede what the user wants to be called.
const NAME_CUES: [&str; 15] = [
    "call me",
    "calls me",
    "you can call me",
    "to be called",
    "go by",
    "known as",
    "address me as",
    "llamame",
    "llameme",
    "puedes llamarme",
    "puede llamarme",
    "my name is",
    "mi nombre es",
    "digame",
    "decime",
];

/// Phrases that precede what the user is allergic to.
const ALLERGY_CUES: [&str; 6] =
    ["i am allergic to", "im allergic to", "i m allergic to", "soy alergica a", "soy alergico a", "soy alergico al"];

/// Phrases that precede what the user prefers.
const PREFER_CUES: [&str; 11] = [
    "as a preference that i want",
    "as a preference that i prefer",
    "i also prefer",
    "i prefer",
    "id prefer",
    "i always prefer",
    "i usually prefer",
    "i would prefer",
    "prefiero",
    "yo prefiero",
    "preferiria",
];

/// Phrases that precede the name of a preference to remove.
const FORGET_CUES: [&str; 33] = [
    "remove the",
    "delete the",
    "drop the",
    "forget the",
    "clear the",
    "unset the",
    "olvida la",
    "olvida el",
    "borra la",
    "borra el",
    "quita la",
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
    "olvidate de mi",
    "olvidate mi",
    "borra mi",
    "elimina mi",
    "quita mi",
    "olvida la preferencia",
];

pub(super) fn set_preference() -> Intent {
    Intent::new("set_preference")
        .example("Remember that my seat is the window.")
        .slot(Slot::text("called").after(NAME_CUES).fresh().momentary())
        .slot(Slot::text("allergen").after(ALLERGY_CUES).fresh().momentary())
        .slot(Slot::text("preferred").after(PREFER_CUES).fresh().momentary())
        .slot(Slot::text("setting").after(SETTING_CUES).fresh().momentary())
        .then_calls("set_preference", |outcome| {
            if let Some(name) = parse_name(outcome.slots().label("called")) {
                let key = if outcome.language() == Language::Spanish { "nombre" } else { "name" };
                return Some(json!({"name": key, "value": name}));
            }
            if let Some(allergen) = parse_allergen(outcome.slots().label("allergen")) {
                let key = if outcome.language() == Language::Spanish { "alergia" } else { "allergy" };
                return Some(json!({"name": key, "value": allergen}));
            }
            if let Some((name, value)) = parse_preferred(outcome.slots().label("preferred")) {
                return Some(json!({"name": name, "value": value}));
            }
            let (name, value) = parse_setting(outcome.slots().label("setting"))?;
            Some(json!({"name": name, "value": value}))
        })
        .says(|outcome| match outcome.result("set_preference") {
            Value::Null if outcome.language() == Language::Spanish => NOTED_IN_SPANISH.to_owned(),
            Value::Null => NOTED.to_owned(),
            set => {
                let (name, value) = (text(&set["name"]), text(&set["value"]));
                match outcome.language() {
                    Language::English => format!("I will remember that your {name} is {value}."),
                    Language::Spanish => format!("Recordaré tu preferencia «{name}»: {value}."),
                }
            }
        })
}

pub(super) fn list_preferences() -> Intent {
    Intent::new("list_preferences")
        .example("What are my preferences?")
        .calls_with("list_preferences", |_| json!({}))
        .then_calls("recall", |outcome| {
            let listed = outcome.result("list_preferences");
            let is_empty = listed["preferences"].as_object().is_some_and(serde_json::Map::is_empty);
            is_empty.then(|| json!({"question": LIKING.join(" ")}))
        })
        .says(|outcome| {
            let found = outcome.result("list_preferences");
            let liked = liked(outcome);
            if !liked.is_empty() {
                let introduction = match outcome.language() {
                    Language::English => "No preferences are saved. You told me this:",
                    Language::Spanish => "No hay preferencias guardadas. Me contaste esto:",
                };
                return format!("{introduction}\n{}", liked.join("\n"));
            }
            let lines = found["preferences"].as_object().into_iter().flatten();
            let lines: Vec<String> = lines.map(|(name, value)| format!("- {name}: {}", text(value))).collect();
            match (outcome.language(), lines.is_empty()) {
                (Language::English, true) => "You have not told me any preferences.".to_owned(),
                (Language::English, false) => format!("Your preferences:\n{}", lines.join("\n")),
                (Language::Spanish, true) => "No me has contado ninguna preferencia.".to_owned(),
                (Language::Spanish, false) => format!("Tus preferencias:\n{}", lines.join("\n")),
            }
        })
}

pub(super) fn forget_preference() -> Intent {
    Intent::new("forget_preference")
        .example("Forget my seat.")
        .slot(Slot::text("name").after(FORGET_CUES))
        .confirmed_by("erase_messages")
        .then_calls("list_preferences", |outcome| is_preference_name(name_to_forget(outcome)).then(|| json!({})))
        .then_calls("forget_preference", |outcome| {
            let name = matching_preference(outcome, name_to_forget(outcome))?;
            Some(json!({"name": name}))
        })
        .then_calls(FIND, |outcome| {
            let name = name_to_forget(outcome);
            is_preference_name(name).then(|| json!({"about": topic_of(name)}))
        })
        .says(|outcome| {
            let list = outcome.result(FIND);
            let found = list["messages"].as_array().is_some_and(|messages| !messages.is_empty());
            match outcome.result("forget_preference") {
                Value::Null if list.is_null() => ask_what_to_forget(outcome.language()),
                Value::Null => list_to_erase(&list, outcome.language()),
                done => {
                    let name = text(&done["forgotten"]);
                    let mut answer = match outcome.language() {
                        Language::English => format!("I have forgotten your {name}."),
                        Language::Spanish => format!("He olvidado tu preferencia «{name}»."),
                    };
                    if found {
                        answer = format!("{answer}\n\n{}", list_to_erase(&list, outcome.language()));
                    }
                    answer
                }
            }
        })
}

/// Verbs with which users say what they like.
const LIKING: [&str; 14] = [
    "like",
    "love",
    "hate",
    "prefer",
    "rather",
    "enjoy",
    "dislike",
    "favourite",
    "prefiero",
    "gusta",
    "gustan",
    "encanta",
    "odio",
    "detesto",
];

/// Returns quotations of what the user said about their likes.
fn liked(outcome: &Outcome<'_>) -> Vec<String> {
    let found = outcome.result("recall");
    let messages = found["found"].as_array().into_iter().flatten();
    let lines = messages.filter_map(|message| {
        let (heading, said) = (text(&message["from"]), text(&message["text"]));
        let utterance = Utterance::new(said.as_str());
        let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&&*word.folded));
        let is_own = has(&["i", "id", "im", "me", "we", "prefiero", "odio", "detesto"]) && has(&LIKING);
        let is_by_user = Heading::parse(&heading).is_some_and(|heading| heading.is_by_user());
        (is_own && is_by_user && !is_question(&said))
            .then(|| format!("{} “{}”", origin(&heading, outcome.language(), true), said.trim()))
    });
    lines.take(MAX_LIKED).collect()
}

/// The maximum number of quoted messages about what the user likes.
const MAX_LIKED: usize = 5;

/// Returns the name of the user's preference that the text refers to.
fn matching_preference(outcome: &Outcome<'_>, text: &str) -> Option<String> {
    let words_of = |text: &str| -> Vec<String> {
        let words = content_terms(text).into_iter().filter_map(|(_, stems)| stems.into_iter().next());
        words
            .filter(|word| !matches!(word.as_str(), "prefer" | "pls" | "plz" | "pleas" | "set" | "preferencia"))
            .collect()
    };
    let wanted = words_of(text);
    let listed = outcome.result("list_preferences");
    let all = listed["preferences"].as_object()?;
    let named = all.keys().find(|name| words_of(name) == wanted);
    // "The preference about distances": the only one whose name or value contains the words.
    let is_about = |(name, value): &(&String, &Value)| {
        let own = words_of(&format!("{name} {}", self::text(value)));
        !wanted.is_empty() && wanted.iter().all(|word| own.contains(word))
    };
    let mut about = all.iter().filter(is_about).map(|(name, _)| name);
    named.or_else(|| about.next().filter(|_| about.next().is_none())).cloned()
}

/// Returns the name in "favourite biscuit, the doctor says no more sugar".
fn name_to_forget<'a>(outcome: &'a Outcome<'_>) -> &'a str {
    let name = outcome.slots().label("name");
    let cut = [", ", ". ", "; ", " because ", " porque ", " since "].iter().filter_map(|end| name.find(end)).min();
    &name[..cut.unwrap_or(name.len())]
}

fn is_preference_name(name: &str) -> bool {
    (1..=MAX_PREFERENCE_NAME_WORDS).contains(&name.split_whitespace().count())
}

fn ask_what_to_forget(language: Language) -> String {
    match language {
        Language::English => {
            "What should I forget? Say, for example, “Forget my seat” or “Forget what I said about Berlin”."
        }
        Language::Spanish => {
            "¿Qué debo olvidar? Nómbralo, como en «Olvida mi asiento» o «Olvida lo que dije sobre Berlín»."
        }
    }
    .to_owned()
}

/// Splits `seat is the window`, `language = Spanish` or `language to Spanish` into name and value.
fn parse_setting(setting: &str) -> Option<(&str, &str)> {
    let setting = setting.trim_start_matches([':', ' ']);
    // "my preference: units metric"
    let without_kind = ["preference:", "preference ", "preferencia:", "preferencia "]
        .iter()
        .find_map(|kind| setting.trim().strip_prefix(kind));
    if let Some(rest) = without_kind.map(str::trim).filter(|rest| !rest.starts_with("is ") && !rest.starts_with("es "))
    {
        return parse_setting(rest).or_else(|| {
            let (name, value) = rest.split_once(' ')?;
            let value = without_asides(value);
            (value.split_whitespace().count() <= 2).then_some((name, value))
        });
    }
    let separators = [" is ", " are ", " es ", " son ", " = ", "=", ": ", " to "];
    let found = separators.iter().filter_map(|separator| Some((setting.find(separator)?, separator.len())));
    let (at, length) = found.min()?;
    let (name, value) = (setting[..at].trim(), without_asides(&setting[at + length..]));
    (!name.is_empty() && !value.is_empty() && name.split_whitespace().count() <= MAX_PREFERENCE_NAME_WORDS)
        .then_some((name, value))
}

/// Returns the name in "Winnie, please" or "Sam from now on"; `None` if the words are not a name, as in "call me tomorrow".
fn parse_name(text: &str) -> Option<&str> {
    // "My name is Harold but please call me Harry"
    let after_cue = |cue: &&str| text.rfind(&format!("{cue} ")).map(|at| &text[at + cue.len()..]);
    let text = NAME_CUES.iter().find_map(after_cue).unwrap_or(text);
    let name = without_asides(text.split([',', '.', '!', ';', '(']).next()?);
    let utterance = Utterance::new(name);
    let words = utterance.words().len();
    let is_other = NOT_NAMES.contains(&utterance.word(0)) || !find_times(&utterance).is_empty() || is_question(name);
    ((1..=MAX_USER_NAME_WORDS).contains(&words) && !is_other).then_some(name)
}

/// Returns the name and the value of a preference in "metric units" or "the window seat": the name is the last word. `None` if the text
/// is a comparison, or is too long.
fn parse_preferred(text: &str) -> Option<(String, String)> {
    let value = without_asides(text.split([',', '.', '!', ';', '(']).next()?);
    let value =
        ["the ", "el ", "la ", "los ", "las "].iter().find_map(|article| value.strip_prefix(article)).unwrap_or(value);
    let words: Vec<&str> = value.split_whitespace().collect();
    let compares = |word: &&str| {
        matches!(
            *word,
            "to" | "over"
                | "than"
                | "if"
                | "that"
                | "when"
                | "not"
                | "you"
                | "we"
                | "being"
                | "que"
                | "a"
                | "si"
                | "no"
                | "se"
        )
    };
    // "Tea over coffee"
    if let [one, "over" | "to", other] = words[..] {
        return Some((format!("{one} or {other}"), one.to_owned()));
    }
    if words.is_empty() || words.len() > MAX_PREFERRED_WORDS || words.iter().any(compares) {
        return None;
    }
    let spanish = text.starts_with("el ") || text.starts_with("la ");
    match (&words[..], spanish) {
        ([only], false) => Some(((*only).to_owned(), "preferred".to_owned())),
        ([only], true) => Some(((*only).to_owned(), "preferido".to_owned())),
        (_, true) => Some((words[0].to_owned(), value.to_owned())),
        (_, false) => Some((words[words.len() - 1].to_owned(), value.to_owned())),
    }
}

const MAX_PREFERRED_WORDS: usize = 4;

/// Returns the allergen in "peanuts, by the way" or "la penicilina"; `None` if the text is too long for an allergen.
fn parse_allergen(text: &str) -> Option<&str> {
    let allergen = without_asides(text.split([',', '.', '!', ';', '(']).next()?);
    (1..=MAX_PREFERENCE_NAME_WORDS).contains(&allergen.split_whitespace().count()).then_some(allergen)
}

/// The maximum number of words in a user's name.
const MAX_USER_NAME_WORDS: usize = 3;

/// Words after "call me" that are not names.
const NOT_NAMES: [&str; 25] = [
    "la", "el", "los", "las", "lo", "un", "una", "the", "a", "back", "later", "again", "asap", "now", "if", "at", "on",
    "in", "before", "after", "by", "luego", "si", "despues", "from",
];

/// Removes trailing phrases that do not belong to a value.
fn without_asides(value: &str) -> &str {
    let mut value = value.trim().trim_end_matches(['.', '!', ' ']);
    // "my favourite tea is now rooibos"
    value = ["now ", "actually ", "ahora ", "ya "].iter().find_map(|word| value.strip_prefix(word)).unwrap_or(value);
    for aside in [
        "by the way",
        "please",
        "pls",
        "plz",
        "from now on",
        "instead",
        "thanks",
        "por favor",
        "porfa",
        "por cierto",
        "nomas",
    ] {
        let shorter = value.len().checked_sub(aside.len()).filter(|at| value.is_char_boundary(*at));
        if let Some(at) = shorter.filter(|at| *at > 0 && value[*at..].eq_ignore_ascii_case(aside)) {
            value = value[..at].trim_end_matches([',', ' ']);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_after_call_me() {
        for (text, name) in [
            ("Winnie, please", Some("Winnie")),
            ("Sam from now on", Some("Sam")),
            ("Harold but please call me Harry", Some("Harry")),
            ("tomorrow", None),
            ("back later", None),
            ("when you arrive", None),
            ("", None),
        ] {
            assert_eq!(parse_name(text), name, "{text}");
        }
    }

    #[test]
    fn a_setting_is_split_into_name_and_value() {
        for (setting, expected) in [
            (": seat = window", Some(("seat", "window"))),
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
