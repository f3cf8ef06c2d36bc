//! Commands: requests for work that only a language model or another program can do.
//!
//! Three word lists differ in how certain they are: [`COMMANDS`] begin such requests, [`IMPERATIVES`] usually do, and
//! [`UNAMBIGUOUS_IMPERATIVES`] begin a request and never a statement.

use threadkeep::dialogue::{Utterance, is_question};

/// Whether a message ends like a request: "truck 12 dock again pls".
pub(super) fn ends_like_request(text: &str) -> bool {
    let utterance = Utterance::new(text);
    utterance.words().last().is_some_and(|word| {
        matches!(word.folded.as_str(), "pls" | "plz" | "please" | "again" | "porfa" | "favor" | "vez")
    })
}

/// Distinguishes commands from short questions that resemble them, such as "date of the exam pls" (a question).
pub(super) fn is_command(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let asks_politely = words.windows(2).any(|pair| {
        matches!(
            pair,
            ["can" | "could" | "would" | "will", "you"] | ["puedes" | "podrias", _] | ["me", "puedes" | "podrias"]
        )
    });
    let is_noun_phrase = words.iter().any(|word| matches!(*word, "of" | "for" | "de"))
        && words.first().is_some_and(|first| QUESTION_OPENERS.contains(first));
    asks_politely || !(text.trim_end().ends_with('?') || is_noun_phrase || is_question(text))
}

/// Whether a message begins with words that ask for work that only a language model or another program can do.
pub(crate) fn starts_like_command(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let start = words
        .iter()
        .take_while(|word| {
            matches!(**word, "please" | "can" | "could" | "you" | "ok" | "now" | "por" | "favor" | "puedes")
        })
        .count();
    let starts = |phrase: &&str| words[start..].starts_with(&phrase.split(' ').collect::<Vec<_>>());
    // "paint for the hallway is Egret White" and "draft is due on Friday" begin with nouns.
    let is_noun = start == 0
        && words.first().is_some_and(|first| NOUNS_OR_VERBS.contains(first))
        && (words.get(1).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()))
            || words
                .iter()
                .skip(1)
                .any(|word| matches!(*word, "is" | "are" | "was" | "were" | "costs" | "goes" | "es" | "son")));
    !is_noun && COMMANDS.iter().any(starts)
}

/// Words that begin commands when they are verbs, and statements when they are nouns.
const NOUNS_OR_VERBS: [&str; 5] = ["paint", "draft", "draw", "google", "weather"];

/// Whether a message begins with a verb in the imperative that usually asks for work: "send Deniz an email saying the page is old".
pub(super) fn starts_with_imperative(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let mut words = utterance.words().iter().map(|word| word.folded.as_str());
    let is_opening =
        |word: &str| matches!(word, "please" | "ok" | "now" | "and" | "then" | "hey" | "por" | "favor" | "y" | "oye");
    let first = words.find(|word| !is_opening(word));
    first.is_some_and(|first| IMPERATIVES.contains(&first))
}

/// Whether a message begins with a verb that can only be a request, never a statement: "restart the staging database
/// for me".
pub(super) fn starts_with_unambiguous_imperative(text: &str) -> bool {
    let utterance = Utterance::new(text);
    UNAMBIGUOUS_IMPERATIVES.contains(&utterance.word(0)) && utterance.words().len() > 1
}

const UNAMBIGUOUS_IMPERATIVES: [&str; 14] = [
    "play",
    "restart",
    "deploy",
    "execute",
    "translate",
    "email",
    "print",
    "summarise",
    "summarize",
    "reinicia",
    "despliega",
    "ejecuta",
    "imprime",
    "traduce",
];

const IMPERATIVES: [&str; 52] = [
    "send",
    "write",
    "book",
    "order",
    "email",
    "text",
    "message",
    "play",
    "remind",
    "search",
    "tell",
    "show",
    "make",
    "create",
    "translate",
    "draft",
    "print",
    "draw",
    "generate",
    "ignore",
    "disregard",
    "pretend",
    "act",
    "run",
    "execute",
    "open",
    "delete",
    "deploy",
    "restart",
    "reserve",
    "schedule",
    "google",
    "look",
    "explain",
    "summarise",
    "summarize",
    "manda",
    "mandale",
    "envia",
    "enviale",
    "escribe",
    "escribele",
    "reserva",
    "pide",
    "traduce",
    "busca",
    "resume",
    "explica",
    "muestra",
    "cuentame",
    "ignora",
    "recuerdame",
];

/// The beginnings of commands. "Buy milk" and "call Ana" are not included, because they are notes.
const COMMANDS: [&str; 81] = [
    "write the",
    "write my",
    "explain",
    "explica",
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

/// Words that begin short questions.
const QUESTION_OPENERS: [&str; 30] = [
    "date", "day", "time", "due", "deadline", "address", "name", "number", "price", "cost", "colour", "color", "size",
    "code", "password", "pin", "place", "location", "start", "end", "amount", "phone", "email", "room", "result",
    "dose", "fecha", "hora", "nombre", "numero",
];
