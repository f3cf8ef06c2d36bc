//! The offline model of the general assistant, which quotes conversations and documents.

mod commands;
mod continuation;
mod documents;
mod erasure;
mod facts;
mod finding;
mod outcome;
mod preferences;
pub(crate) mod quoting;
mod rewording;

use std::collections::HashSet;

use threadkeep::agent::referred_questions;
use threadkeep::core::text::Language;
use threadkeep::dialogue::time::Times;
use threadkeep::dialogue::{Act, Classifier, OfflineModel, OfflineModelBuilder, Phrases, Turn, Utterance, is_question};
use threadkeep::{ChatMessage, Role, Value};

use crate::evidence::question::{Question, asks_in_clause, asks_within, has_accented_interrogative, split_questions};
use crate::evidence::{sentences, spelling};
use commands::{ends_as_request, is_command, starts_as_command, starts_with_request};

const ABOUT: &str = "I quote what you told me and what your documents say, remember your preferences, and calculate. I cannot \
                     write, or look anything up elsewhere. To use a language model instead, see docs/models.md.";

const NOTED: &str = "I will keep that in mind.";
const NOTED_IN_SPANISH: &str = "Lo tendré en cuenta.";
const NOT_FOUND: &str = "I found nothing about that in what you told me or in your documents.";
const NOT_FOUND_IN_SPANISH: &str = "No encontré nada sobre eso en lo que me contaste ni en tus documentos.";

const ABOUT_IN_SPANISH: &str = "Cito lo que me contaste y lo que dicen tus documentos, recuerdo tus preferencias y calculo. No puedo escribir \
                               ni consultar otras fuentes. Para usar un modelo de lenguaje, mira docs/models.md.";

const GREETING: &str = "Hello. Tell me something to remember, or ask about what you told me.";
const GREETING_IN_SPANISH: &str = "Hola. Cuéntame algo que deba recordar, o pregunta por lo que me contaste.";

/// The example messages of the intents.
const PHRASES: &str = include_str!("offline/phrases.txt");

/// The classifier that `cargo xtask train` trains from the phrases.
const WEIGHTS: &[u8] = include_bytes!("offline/weights.bin");

/// Returns the model that the general assistant uses without a language model.
#[must_use]
pub fn offline_model() -> OfflineModel {
    let classifier = Classifier::from_bytes(WEIGHTS).expect("the weights are valid, which a test checks");
    declaration().classifier(classifier).build().expect("the declaration is valid, which a test checks")
}

fn declaration() -> OfflineModelBuilder {
    let [english, spanish] = phrases();
    OfflineModel::builder(ABOUT)
        .phrases(english)
        .phrases(spanish)
        .kind("time", Times::all())
        .kind("calculation", facts::calculations)
        .kind("clock question", facts::clock_questions)
        .spelling(spelling::of_utterance)
        .completes(continuation::complete)
        .intent(preferences::set_preference())
        .intent(preferences::list_preferences())
        .intent(preferences::forget_preference())
        .intent(erasure::forget_messages())
        .intent(erasure::erase_messages())
        .intent(documents::list_documents())
        .intent(finding::find_said())
        .intent(finding::find_in_documents())
        .intent(facts::calculate())
        .intent(facts::current_time())
        .answer("outcome", |turn| outcome::describe_outcome(turn.earlier()).unwrap_or_else(|| answer(turn)))
        .answer("statement", answer_or_note)
        .answer("question", |turn| match turn.question() {
            text if starts_as_command(&text) => command_answer(turn),
            text if is_long_statement(&text) => noted(turn),
            text if is_declarative(&text) => {
                short_question_answer(turn).filter(|_| !has_verb(&text)).unwrap_or_else(|| noted(turn))
            }
            _ => answer(turn),
        })
        .answer("command", |turn| match turn.question() {
            text if is_declarative(&text)
                && !starts_with_request(&text)
                && (has_verb(&text) || text.contains(": ")) =>
            {
                noted(turn)
            }
            text if is_command(&text) => command_answer(turn),
            _ => answer(turn),
        })
        .reply(Act::Correct, |turn| if selects(&turn.question()) { answer(turn) } else { noted(turn) })
        .reply(Act::Other, answer)
        .otherwise(|turn, _| Some(answer_or_note(turn)))
        .phrase_file(PHRASES)
        .expect("the phrases are valid, which a test checks")
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
        text if is_question(&spelling::corrected(&text))
            || sentences(&text).any(asks_in_clause)
            || has_accented_interrogative(&text) =>
        {
            answer(turn)
        }
        text if ends_as_request(&text) || names_only(&text) => {
            short_question_answer(turn).unwrap_or_else(|| noted(turn))
        }
        _ => noted(turn),
    }
}

/// Whether a correction names what was meant, and no value: "no, I meant the rows".
fn selects(text: &str) -> bool {
    let says_meant = Utterance::new(text)
        .words()
        .iter()
        .any(|word| matches!(word.folded.as_str(), "meant" | "mean" | "referia" | "digo"));
    says_meant && !text.contains(|c: char| c.is_ascii_digit())
}

/// Whether a message is worded as a statement, whatever words it consists of: it asks nothing, and has a verb or a value.
fn is_declarative(text: &str) -> bool {
    let corrected = spelling::corrected(text);
    let asks =
        sentences(&corrected).any(|sentence| is_question(sentence) || asks_within(sentence)) || ends_as_request(text);
    let has_value =
        text.contains(|c: char| c.is_ascii_digit()) && Utterance::new(text).words().len() >= MIN_WORDS_WITH_VALUE;
    !asks && !starts_as_command(text) && (has_verb(text) || has_value || text.contains(": "))
}

/// The least number of words of a statement with a number and without a verb: "clinic again next Wednesday at 14:15".
const MIN_WORDS_WITH_VALUE: usize = 4;

/// Whether a verb follows the first word: "Leila has the key", "Yusuf brings wine".
fn has_verb(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words = utterance.words();
    let is_verb = |at: usize| VERBS.contains(&utterance.word(at));
    let is_named = |at: usize| text[words[at].place.start..].starts_with(char::is_uppercase);
    let is_third_person = |at: usize| {
        let word = utterance.word(at);
        word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !is_named(at)
    };
    let ends_with_s = |at: usize| {
        let end = words[at].place.end;
        text[..end].to_lowercase().ends_with("'s") || text[..end].to_lowercase().ends_with("’s")
    };
    let names_subject = words.len() > 2 && is_named(0) && (is_third_person(1) && !ends_with_s(0));
    names_subject
        || (1..words.len()).any(is_verb)
        || matches!(utterance.word(0), "im" | "ive" | "hes" | "shes" | "theyre" | "its" | "weve")
}

const VERBS: [&str; 44] = [
    "is", "are", "was", "were", "has", "have", "had", "will", "am", "isnt", "arent", "wasnt", "havent", "hasnt",
    "wont", "cant", "dont", "doesnt", "didnt", "said", "says", "told", "wants", "needs", "lives", "works", "goes",
    "comes", "costs", "moved", "paid", "got", "can", "must", "es", "son", "esta", "estan", "tiene", "tienen", "tengo",
    "vive", "trabaja", "hay",
];

/// Whether a message consists of a few words without a value, and without a verb that would make it a statement: "wifi password".
fn names_only(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words = utterance.words();
    let is_verb = |word: &str| {
        matches!(
            word,
            "is" | "are"
                | "was"
                | "were"
                | "has"
                | "have"
                | "had"
                | "will"
                | "im"
                | "ive"
                | "i"
                | "we"
                | "es"
                | "son"
                | "esta"
                | "tiene"
                | "no"
                | "not"
                | "yes"
                | "dont"
        )
    };
    (1..=MAX_WORDS_OF_NAME).contains(&words.len())
        && !text.contains(|c: char| c.is_ascii_digit() || matches!(c, ':' | '=' | '!'))
        && !words.iter().any(|word| is_verb(&word.folded))
}

/// The maximum number of words of a question that only names its topic.
const MAX_WORDS_OF_NAME: usize = 5;

/// Whether a message is too long to be a question, and none of its sentences is a question.
fn is_long_statement(text: &str) -> bool {
    Utterance::new(text).words().len() > MAX_WORDS_OF_QUESTION && !sentences(text).any(is_question)
}

/// The maximum number of words in a question that is not phrased as one.
const MAX_WORDS_OF_QUESTION: usize = 40;

fn noted(turn: &Turn<'_>) -> String {
    match turn.language(&phrases()) {
        Language::English => NOTED.to_owned(),
        Language::Spanish => NOTED_IN_SPANISH.to_owned(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Declines work that only a language model can do. A message that quotations answer is a question instead: "door code please".
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

/// The maximum number of words in a message that may be a question although it is not phrased as one.
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
}
