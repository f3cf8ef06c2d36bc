//! The offline model of the general assistant, which quotes conversations and documents.

mod facts;
mod outcome;
pub(crate) mod quoting;

use std::collections::HashSet;

use serde_json::json;
use threadkeep::agent::referred_questions;
use threadkeep::core::text::{Language, content_terms};
use threadkeep::dialogue::time::{Times, find_times};
use threadkeep::dialogue::{
    Act, Classifier, Intent, OfflineModel, OfflineModelBuilder, Outcome, Phrases, Slot, Turn, Utterance, is_question,
};
use threadkeep::{ChatMessage, Role, Value};

use crate::erase_tools::{ERASE, FIND};
use crate::evidence::question::{Question, split_questions};
use crate::evidence::sentences;

const ABOUT: &str = "I quote what you told me and what your documents say, remember your preferences, and calculate. I cannot \
                     write, or look anything up elsewhere. To use a language model instead, see docs/models.md.";

const NOTED: &str = "I will keep that in mind.";
const NOTED_IN_SPANISH: &str = "Lo tendré en cuenta.";
const NOT_FOUND: &str = "I found nothing about that in what you told me or in your documents.";
const NOT_FOUND_IN_SPANISH: &str = "No encontré nada sobre eso en lo que me contaste ni en tus documentos.";
/// The maximum number of messages that a list of messages to erase names.
const MAX_NAMED: usize = 10;
/// The most words of a preference's name. A longer text is not a preference.
const NAME_WORDS: usize = 6;

const ABOUT_IN_SPANISH: &str = "Cito lo que me contaste y lo que dicen tus documentos, recuerdo tus preferencias y calculo. No puedo escribir \
                               ni consultar otras fuentes. Para usar un modelo de lenguaje, mira docs/models.md.";

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
/// The words that precede what the user wants to be called.
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
/// The words that precede what the user is allergic to.
const ALLERGY_CUES: [&str; 6] =
    ["i am allergic to", "im allergic to", "i m allergic to", "soy alergica a", "soy alergico a", "soy alergico al"];
/// The words that precede the name of a preference to remove.
const FORGET_CUES: [&str; 22] = [
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

/// The words that precede the topic of messages to forget.
const ABOUT_CUES: [&str; 28] = [
    "about",
    "regarding",
    "concerning",
    "mentioning",
    "on the subject of",
    "forget that",
    "forget the",
    "forget",
    "erase the",
    "erase",
    "delete the",
    "delete",
    "remove the",
    "remove",
    "le dije del",
    "le dije de",
    "dije del",
    "olvidate de lo que dije de",
    "olvidate de lo que dije sobre",
    "olvidate de",
    "sobre",
    "acerca de",
    "dije de",
    "conte de",
    "olvida que",
    "olvida",
    "borra",
    "elimina",
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
    let [english, spanish] = phrases();
    OfflineModel::builder(ABOUT)
        .phrases(english)
        .phrases(spanish)
        .kind("time", Times::all())
        .kind("calculation", facts::calculations)
        .intent(set_preference())
        .intent(list_preferences())
        .intent(forget_preference())
        .intent(forget_messages())
        .intent(erase_messages())
        .intent(list_documents())
        .intent(facts::calculate())
        .intent(facts::current_time())
        .answer("outcome", |turn| outcome::describe_outcome(turn.earlier()).unwrap_or_else(|| answer(turn)))
        .answer("statement", answer_or_note)
        .answer("question", |turn| match turn.question() {
            text if starts_as_command(&text) => command_answer(turn),
            text if is_long_statement(&text) => noted(turn),
            _ => answer(turn),
        })
        .answer("command", |turn| if is_command(&turn.question()) { command_answer(turn) } else { answer(turn) })
        .reply(Act::Correct, noted)
        .otherwise(|turn, _| Some(answer_or_note(turn)))
        .phrase_file(PHRASES)
        .expect("a test reads the phrases")
}

fn phrases() -> [Phrases; 2] {
    [
        Phrases { greeting: GREETING.to_owned(), ..Phrases::english() },
        Phrases { greeting: GREETING_IN_SPANISH.to_owned(), ..Phrases::spanish() },
    ]
}

fn answer_or_note(turn: &Turn<'_>) -> String {
    match turn.question() {
        text if starts_as_command(&text) => command_answer(turn),
        text if is_question(&text) => answer(turn),
        text if ends_as_request(&text) => short_question_answer(turn).unwrap_or_else(|| noted(turn)),
        _ => noted(turn),
    }
}

/// Whether a message is too long for a question and has no sentence that is one.
fn is_long_statement(text: &str) -> bool {
    Utterance::new(text).words().len() > MAX_WORDS_OF_QUESTION && !sentences(text).any(is_question)
}

/// The most words of a question without the form of one.
const MAX_WORDS_OF_QUESTION: usize = 40;

/// Whether a message ends like a request: "truck 12 dock again pls".
fn ends_as_request(text: &str) -> bool {
    let utterance = Utterance::new(text);
    utterance.words().last().is_some_and(|word| {
        matches!(word.folded.as_str(), "pls" | "plz" | "please" | "again" | "porfa" | "favor" | "vez")
    })
}

/// Whether a message that resembles a command is one, rather than a question in a few words: "date of the exam pls".
fn is_command(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let asks_politely = words.windows(2).any(|pair| {
        matches!(
            pair,
            ["can" | "could" | "would" | "will", "you"] | ["puedes" | "podrias", _] | ["me", "puedes" | "podrias"]
        )
    });
    let is_noun_phrase = words.iter().any(|word| matches!(*word, "of" | "for" | "de"))
        && words.first().is_some_and(|first| NOUNS_OF_QUESTIONS.contains(first));
    asks_politely || !(text.trim_end().ends_with('?') || is_noun_phrase || is_question(text))
}

/// Whether a message begins with a verb that asks for work which only a language model or another program does.
fn starts_as_command(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let start = words
        .iter()
        .take_while(|word| {
            matches!(**word, "please" | "can" | "could" | "you" | "ok" | "now" | "por" | "favor" | "puedes")
        })
        .count();
    let starts = |phrase: &&str| words[start..].starts_with(&phrase.split(' ').collect::<Vec<_>>());
    COMMANDS.iter().any(starts)
}

/// The beginnings of commands. "Buy milk" and "call Ana" are none: they are notes.
const COMMANDS: [&str; 77] = [
    "write me",
    "write a",
    "write an",
    "draft",
    "compose",
    "translate",
    "summarise",
    "summarize",
    "rewrite",
    "proofread",
    "calculate",
    "compute",
    "add up",
    "convert",
    "solve",
    "draw",
    "generate",
    "paint",
    "set an alarm",
    "set a timer",
    "start a timer",
    "remind me to",
    "remind me on",
    "order me",
    "book me",
    "send me an email",
    "send an email",
    "email my",
    "play some",
    "google",
    "search the web",
    "search online",
    "weather in",
    "weather for",
    "whats the weather",
    "what is the weather",
    "look up online",
    "traduce",
    "traduceme",
    "escribe un",
    "escribe una",
    "escribeme",
    "redacta",
    "resume",
    "resumeme",
    "calcula",
    "suma",
    "recuerdame llamar",
    "recuerdame el",
    "email the",
    "email all",
    "email everyone",
    "text my",
    "print your",
    "show me your",
    "reveal your",
    "repeat your",
    "output your",
    "ignore your",
    "ignore all",
    "ignore previous",
    "disregard your",
    "tell me a joke",
    "tell me another joke",
    "tell me a story",
    "cuentame un",
    "cuentame otro",
    "contame un",
    "ignora tus",
    "muestrame tus",
    "muestra tus",
    "revela tus",
    "dime tus instrucciones",
    "manda un",
    "mandale un",
    "enviale un",
    "escribe a",
];

/// Nouns that begin a question in a few words.
const NOUNS_OF_QUESTIONS: [&str; 30] = [
    "date", "day", "time", "due", "deadline", "address", "name", "number", "price", "cost", "colour", "color", "size",
    "code", "password", "pin", "place", "location", "start", "end", "amount", "phone", "email", "room", "result",
    "dose", "fecha", "hora", "nombre", "numero",
];

fn noted(turn: &Turn<'_>) -> String {
    match turn.language(&phrases()) {
        Language::English => NOTED.to_owned(),
        Language::Spanish => NOTED_IN_SPANISH.to_owned(),
    }
}

fn set_preference() -> Intent {
    Intent::new("set_preference")
        .example("Remember that my seat is the window.")
        .slot(Slot::text("called").after(NAME_CUES))
        .slot(Slot::text("allergen").after(ALLERGY_CUES))
        .slot(Slot::text("setting").after(SETTING_CUES))
        .then_calls("set_preference", |outcome| {
            if let Some(name) = parse_name(outcome.slots().label("called")) {
                let key = if outcome.language() == Language::Spanish { "nombre" } else { "name" };
                return Some(json!({"name": key, "value": name}));
            }
            if let Some(allergen) = parse_allergen(outcome.slots().label("allergen")) {
                let key = if outcome.language() == Language::Spanish { "alergia" } else { "allergy" };
                return Some(json!({"name": key, "value": allergen}));
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
fn list_preferences() -> Intent {
    Intent::new("list_preferences")
        .example("What are my preferences?")
        .calls_with("list_preferences", |_| json!({}))
        .says(|outcome| {
            let found = outcome.result("list_preferences");
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

fn forget_preference() -> Intent {
    Intent::new("forget_preference")
        .example("Forget my seat.")
        .slot(Slot::text("name").after(FORGET_CUES))
        .confirmed_by("erase_messages")
        .then_calls("list_preferences", |outcome| is_preference_name(name_to_forget(outcome)).then(|| json!({})))
        .then_calls("forget_preference", |outcome| {
            let name = named_preference(outcome, name_to_forget(outcome))?;
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
                Value::Null if list.is_null() => which_to_forget(outcome.language()),
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

/// Returns the preference that a text names, of those in the list of preferences.
fn named_preference(outcome: &Outcome<'_>, text: &str) -> Option<String> {
    let words_of = |text: &str| -> Vec<String> {
        let words = content_terms(text).into_iter().filter_map(|(_, stems)| stems.into_iter().next());
        words.filter(|word| !matches!(word.as_str(), "prefer" | "pleas" | "set" | "preferencia")).collect()
    };
    let wanted = words_of(text);
    let listed = outcome.result("list_preferences");
    let mut names = listed["preferences"].as_object()?.keys().filter(|name| words_of(name) == wanted);
    names.next().cloned()
}

/// Returns a name without the words around it: "theatre seat preference, please".
fn topic_of(name: &str) -> &str {
    let mut name = name.trim();
    // "what I said about the alarm code", "lo que dije sobre el catering"
    let lower = name.to_lowercase();
    let says = ["said", "told", "mentioned", "wrote", "dije", "conte", "conté", "mencione", "mencioné"];
    if lower.split_whitespace().any(|word| says.contains(&word)) {
        let cues = [" about ", " regarding ", " on ", " sobre ", " acerca de ", " de "];
        let found = cues.iter().find_map(|cue| Some(lower.find(cue)? + cue.len()));
        name = found.and_then(|at| name.get(at..)).unwrap_or(name).trim();
    }
    for ending in ["please", "por favor", "preference", "setting"] {
        name = name.trim_end_matches([',', '.', '!', ' ']).strip_suffix(ending).unwrap_or(name).trim();
    }
    name.trim_end_matches([',', '.', '!', ' '])
}

/// Returns the name in "favourite biscuit, the doctor says no more sugar".
fn name_to_forget<'a>(outcome: &'a Outcome<'_>) -> &'a str {
    let name = outcome.slots().label("name");
    let cut = [", ", ". ", "; ", " because ", " porque ", " since "].iter().filter_map(|end| name.find(end)).min();
    &name[..cut.unwrap_or(name.len())]
}

fn is_preference_name(name: &str) -> bool {
    (1..=NAME_WORDS).contains(&name.split_whitespace().count())
}

fn which_to_forget(language: Language) -> String {
    match language {
        Language::English => {
            "What should I forget? Name it, as in “Forget my seat” or “Forget what I said about Berlin”."
        }
        Language::Spanish => {
            "¿Qué debo olvidar? Nómbralo, como en «Olvida mi asiento» o «Olvida lo que dije sobre Berlín»."
        }
    }
    .to_owned()
}

fn forget_messages() -> Intent {
    Intent::new("forget_messages")
        .example("Forget what I said about Berlin.")
        .slot(Slot::text("about").after(ABOUT_CUES))
        .confirmed_by("erase_messages")
        .calls_with(FIND, |slots| match slots.label("about") {
            "" | "it" | "that" | "this" | "eso" | "esto" => json!({}),
            about => json!({"about": topic_of(about)}),
        })
        .says(|outcome| list_to_erase(&outcome.result(FIND), outcome.language()))
}

/// The intent that "yes" expresses after a list of messages to erase.
fn erase_messages() -> Intent {
    Intent::new("erase_messages")
        .follows(["forget_messages", "forget_preference"])
        .calls_with(ERASE, |_| json!({}))
        .says(|outcome| {
            let erased = outcome.result(ERASE)["erased"].as_u64().unwrap_or(0);
            match (outcome.language(), erased) {
                (Language::English, 0) => "There is nothing to erase.".to_owned(),
                (Language::Spanish, 0) => "No hay nada que borrar.".to_owned(),
                (Language::English, 1) => "I have erased that message, with your request.".to_owned(),
                (Language::English, _) => format!("I have erased these {erased} messages, with your request."),
                (Language::Spanish, 1) => "He borrado ese mensaje y tu petición.".to_owned(),
                (Language::Spanish, _) => format!("He borrado esos {erased} mensajes y tu petición."),
            }
        })
}

/// Lists the messages that would be erased, and asks whether to erase them.
fn list_to_erase(found: &Value, language: Language) -> String {
    let messages = found["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        return match language {
            Language::English => "I found nothing about that in what you told me, so there is nothing to erase.",
            Language::Spanish => "No encontré nada sobre eso en lo que me contaste, así que no hay nada que borrar.",
        }
        .to_owned();
    }
    let line = |message: &Value| {
        let day = quoting::formatted_day(&text(&message["day"]), language);
        format!("- {day}: “{}”", text(&message["text"]).replace('\n', " "))
    };
    let mut lines: Vec<String> = messages.iter().take(MAX_NAMED).map(line).collect();
    let (count, more) = (messages.len(), messages.len().saturating_sub(MAX_NAMED));
    let (introduction, others, question) = match (language, count) {
        (Language::English, 1) => ("You said this:", format!("- and {more} more"), "Shall I erase it for good?"),
        (Language::English, _) => {
            ("You said this:", format!("- and {more} more"), "Shall I erase all of these for good?")
        }
        (Language::Spanish, 1) => ("Dijiste esto:", format!("- y {more} más"), "¿Lo borro para siempre?"),
        (Language::Spanish, _) => ("Dijiste esto:", format!("- y {more} más"), "¿Borro todo esto para siempre?"),
    };
    if more > 0 {
        lines.push(others);
    }
    format!("{introduction}\n{}\n{question}", lines.join("\n"))
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
        return match outcome.language() {
            Language::English => "I have no documents. To add one, run `threadkeep docs add FILE`.",
            Language::Spanish => "No tengo documentos. Para añadir uno, ejecuta `threadkeep docs add ARCHIVO`.",
        }
        .to_owned();
    }
    if let Some(more) = found["more"].as_u64().filter(|more| *more > 0) {
        lines.push(match outcome.language() {
            Language::English => format!("- and {more} more"),
            Language::Spanish => format!("- y {more} más"),
        });
    }
    match outcome.language() {
        Language::English => format!("I have these documents:\n{}", lines.join("\n")),
        Language::Spanish => format!("Tengo estos documentos:\n{}", lines.join("\n")),
    }
}

/// Splits `seat is the window`, `language = Spanish` or `language to Spanish` into name and value.
fn parse_setting(setting: &str) -> Option<(&str, &str)> {
    let separators = [" is ", " are ", " es ", " son ", " = ", "=", ": ", " to "];
    let found = separators.iter().filter_map(|separator| Some((setting.find(separator)?, separator.len())));
    let (at, length) = found.min()?;
    let (name, value) = (setting[..at].trim(), without_asides(&setting[at + length..]));
    (!name.is_empty() && !value.is_empty() && name.split_whitespace().count() <= NAME_WORDS).then_some((name, value))
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
    ((1..=MAX_WORDS_OF_NAME).contains(&words) && !is_other).then_some(name)
}

/// Returns the allergen in "peanuts, by the way" or "la penicilina"; `None` if the text is too long for one.
fn parse_allergen(text: &str) -> Option<&str> {
    let allergen = without_asides(text.split([',', '.', '!', ';', '(']).next()?);
    (1..=NAME_WORDS).contains(&allergen.split_whitespace().count()).then_some(allergen)
}

/// The most words of a user's name.
const MAX_WORDS_OF_NAME: usize = 3;
/// Words after "call me" that are no name.
const NOT_NAMES: [&str; 24] = [
    "la", "el", "los", "las", "lo", "un", "una", "the", "a", "back", "later", "again", "asap", "now", "if", "at", "on",
    "in", "before", "after", "by", "luego", "si", "despues",
];

/// Removes words after a value that do not belong to it.
fn without_asides(value: &str) -> &str {
    let mut value = value.trim().trim_end_matches(['.', '!', ' ']);
    for aside in
        ["by the way", "please", "from now on", "instead", "thanks", "por favor", "porfa", "por cierto", "nomas"]
    {
        let shorter = value.len().checked_sub(aside.len()).filter(|at| value.is_char_boundary(*at));
        if let Some(at) = shorter.filter(|at| *at > 0 && value[*at..].eq_ignore_ascii_case(aside)) {
            value = value[..at].trim_end_matches([',', ' ']);
        }
    }
    value
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Declines work that only a language model does, unless quotations answer the message: "door code please" is a question.
fn command_answer(turn: &Turn<'_>) -> String {
    if let Some(quoted) = short_question_answer(turn) {
        return quoted;
    }
    match turn.language(&phrases()) {
        Language::English => {
            format!("I cannot do that without a language model. Your message is stored. {ABOUT}")
        }
        Language::Spanish => {
            format!("No puedo hacer eso sin un modelo de lenguaje. Tu mensaje queda guardado. {ABOUT_IN_SPANISH}")
        }
    }
}

/// The most words of a message that may be a question without the form of one.
const MAX_WORDS_OF_SHORT_QUESTION: usize = 8;

/// Answers a message of a few words, all of which a quotation contains: "door code please", "wots the reg of the transit".
fn short_question_answer(turn: &Turn<'_>) -> Option<String> {
    let text = turn.question();
    let question = Question::new(&text, "");
    let is_short = Utterance::new(&*text).words().len() <= MAX_WORDS_OF_SHORT_QUESTION;
    if !is_short || question.topic.is_empty() || starts_as_command(&text) {
        return None;
    }
    let language = turn.language(&phrases());
    quoting::quote_whole(&question, &instructions_of(turn), language)
}

fn instructions_of(turn: &Turn<'_>) -> String {
    let instructions: Vec<String> =
        turn.earlier().iter().filter(|message| message.role == Role::System).map(ChatMessage::plain_text).collect();
    instructions.join("\n\n")
}

/// Answers a question with quotations.
fn answer(turn: &Turn<'_>) -> String {
    let (instructions, language) = (instructions_of(turn), turn.language(&phrases()));
    let mut lines: Vec<String> = Vec::new();
    for question in split_questions(&turn.question()) {
        let earlier = turn.earlier().iter().rev().filter(|message| message.role == Role::User);
        let referred = referred_questions(&question, earlier.map(ChatMessage::plain_text));
        let quoted = quoting::quote(&Question::new(&question, &referred.join(" ")), &instructions, language);
        lines.extend(quoted.iter().flat_map(|quoted| quoted.lines()).map(str::to_owned));
    }
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    match (lines.is_empty(), language) {
        (false, _) => lines.join("\n"),
        (true, Language::English) => NOT_FOUND.to_owned(),
        (true, Language::Spanish) => NOT_FOUND_IN_SPANISH.to_owned(),
    }
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
