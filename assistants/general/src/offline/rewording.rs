//! Rewords messages that ask something without being phrased as a question: "my favourite colour?" becomes "what is my
//! favourite colour?".

mod forgetting;

use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role, Value};

use crate::evidence::asks_to_forget;

/// Returns the question or request that a message amounts to, if it is not phrased as one.
pub(super) fn reworded(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    repeated(message, earlier)
        .or_else(|| forgetting::confirmed(message, earlier))
        .or_else(|| forgetting::requested(message))
        .or_else(|| question_after_introduction(message))
        .or_else(|| last_question_asked(message))
        .or_else(|| question_at_end(message))
        .or_else(|| open_question(message))
        .or_else(|| question_with_last_word(message))
        .or_else(|| kept_value(message))
        .or_else(|| read_back(message))
        .or_else(|| preference_corrected(message, earlier))
        .or_else(|| day_beside(message, earlier))
        .or_else(|| question_about_preference(message))
        .or_else(|| question_with_preferring(message))
        .or_else(|| question_for_name(message))
        .or_else(|| request_to_forget_answer(message))
        .or_else(|| statement_after_note_that(message))
        .or_else(|| request_after_remark(message))
        .or_else(|| question_after_courtesy(message))
        .or_else(|| everything_said(message))
        .or_else(|| question_about_value(message))
        .or_else(|| question_after_correction(message, earlier))
}

/// Returns the previous question if a message asks to hear its answer again.
fn repeated(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    const REPEATS: [&str; 11] = [
        "say it again",
        "say that again",
        "repeat that",
        "repeat it",
        "come again",
        "once more",
        "again",
        "repitelo",
        "repite",
        "dilo otra vez",
        "otra vez",
    ];
    let words: Vec<String> = Utterance::new(message).words().iter().map(|word| word.folded.clone()).collect();
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !matches!(*word, "please" | "pls" | "sorry" | "can" | "you"))
        .collect();
    let asked = earlier.iter().rev().find(|message| message.role == Role::User)?.plain_text();
    REPEATS.contains(&words.join(" ").as_str()).then_some(asked)
}

/// Returns the previous question about the next or the previous day: "and the day after?" after "what did I do on Tuesday?"
fn day_beside(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    const FILLERS: [&str; 8] = ["and", "what", "about", "on", "the", "that", "how", "then"];
    let words: Vec<String> = Utterance::new(message).words().iter().map(|word| word.folded.clone()).collect();
    let meant: Vec<&str> = words.iter().map(String::as_str).filter(|word| !FILLERS.contains(word)).collect();
    let step = match meant[..] {
        ["day", "after"] | ["next", "day"] | ["following", "day"] => 1,
        ["day", "before"] | ["previous", "day"] => DAYS.len() - 1,
        _ => return None,
    };
    let asked = earlier.iter().rev().find(|message| message.role == Role::User)?.plain_text();
    let question = Utterance::new(asked.clone());
    let (word, day) = question
        .words()
        .iter()
        .find_map(|word| Some((word, DAYS.iter().position(|day| day.to_lowercase() == word.folded)?)))?;
    let moved = DAYS[(day + step) % DAYS.len()];
    Some(format!("{}{moved}{}", &asked[..word.span.start], &asked[word.span.end..]))
}

/// Returns the complete question for "my favourite colour?"
fn question_about_preference(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let is_short = (2..=MAX_PREFERENCE_WORDS).contains(&utterance.words().len()) && message.trim_end().ends_with('?');
    match utterance.word(0) {
        "my" if is_short => Some(format!("what is {message}")),
        "mi" if is_short => Some(format!("cuál es {message}")),
        _ => None,
    }
}

const MAX_PREFERENCE_WORDS: usize = 4;

/// Returns the preference in "changed my mind, go with Bee instead", after one was set.
fn preference_corrected(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    const OPENINGS: [&str; 22] = [
        "changed", "my", "mind", "i", "ive", "actually", "no", "sorry", "scrap", "that", "wait", "oh", "hm", "on",
        "second", "thought", "thoughts", "lets", "ok", "mejor", "better", "well",
    ];
    const VERBS: [&[&str]; 7] = [
        &["go", "with"],
        &["make", "it"],
        &["make", "that"],
        &["switch", "to"],
        &["change", "it", "to"],
        &["change", "that", "to"],
        &["use"],
    ];
    /// Verbs after which a name follows, but for other preferences not always their value.
    const NAMING: [&[&str]; 4] = [&["id", "rather"], &["rather"], &["prefiero"], &["prefer"]];
    const ENDINGS: [&str; 9] = ["instead", "please", "pls", "then", "from", "now", "on", "after", "all"];
    const MAX_VALUE_WORDS: usize = 3;
    let uses_that =
        Utterance::new(message).words().windows(2).any(|pair| pair[0].folded == "use" && pair[1].folded == "that");
    let mut asked =
        earlier.iter().enumerate().rev().filter(|(_, message)| message.role == Role::User).map(|(at, _)| at);
    // "Everyone says Bee, use that instead" names what it corrects.
    let asked =
        asked.nth(if uses_that { 1 } else { 0 }).or_else(|| earlier.iter().rposition(|it| it.role == Role::User))?;
    let call = earlier[asked..].iter().flat_map(ChatMessage::tool_calls).find(|call| call.name == "set_preference")?;
    let arguments: Value = call.arguments.read().ok()?;
    let name = arguments["name"].as_str()?;
    let utterance = Utterance::new(message);
    let count = utterance.words().len();
    let start = (0..count).take_while(|at| OPENINGS.contains(&utterance.word(*at))).count();
    let is_name = matches!(name, "name" | "nombre");
    // "… , use that instead"
    let uses = (0..count).find(|at| matches!((utterance.word(*at), utterance.word(at + 1)), ("use", "that")));
    let start = uses.filter(|_| is_name).unwrap_or(start);
    let is_verb = |verb: &&&[&str]| verb.iter().enumerate().all(|(at, word)| utterance.word(start + at) == *word);
    let naming = || NAMING.iter().filter(|_| is_name).find(is_verb);
    let first = start + VERBS.iter().find(is_verb).or_else(naming)?.len();
    let last = (first..count).rfind(|at| !ENDINGS.contains(&utterance.word(*at)))?;
    // "Rather Bee than Beatrice"
    let last = (first..=last)
        .find(|at| matches!(utterance.word(*at), "than" | "over"))
        .map_or(last, |than| than.saturating_sub(1));
    // "Everyone says Bee these days, use that instead"
    let is_named_before = is_name && utterance.word(first) == "that" && first == last;
    if is_named_before {
        let names = utterance.words()[1..first]
            .iter()
            .filter(|word| message[word.span.clone()].starts_with(char::is_uppercase) && word.folded != "i");
        let [only] = names.collect::<Vec<_>>()[..] else { return None };
        let call = if name == "nombre" { "llámame" } else { "call me" };
        return Some(format!("{call} {}", &message[only.span.clone()]));
    }
    let is_short = last >= first && last - first < MAX_VALUE_WORDS && !is_question(message);
    let value = utterance.said(first..last + 1);
    let call = if name == "nombre" { "llámame" } else { "call me" };
    is_short.then(|| if is_name { format!("{call} {value}") } else { format!("my {name} is {value}") })
}

/// Returns the question in "new chat, quick one: when does the pass run out", which an introduction precedes.
fn question_after_introduction(message: &str) -> Option<String> {
    let (introduction, question) = message.split_once(": ")?;
    let introduction = Utterance::new(introduction);
    let introduces = introduction.words().iter().any(|word| INTRODUCING.contains(&&*word.folded));
    let is_short = introduction.words().len() <= MAX_INTRODUCTION_WORDS;
    (introduces && is_short && is_question(question)).then(|| question.trim().to_owned())
}

/// Words that introduce a question rather than name its topic.
const INTRODUCING: [&str; 9] = ["question", "q", "quick", "one", "again", "chat", "help", "pregunta", "duda"];
const MAX_INTRODUCTION_WORDS: usize = 6;

/// Returns the question for the last question in "ok so what did I just ask you".
fn last_question_asked(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words: Vec<&str> = utterance
        .words()
        .iter()
        .map(|word| word.folded.as_str())
        .filter(|word| !matches!(*word, "ok" | "so" | "and" | "hm" | "wait" | "sorry" | "just" | "again"))
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !matches!(*word, "about" | "last" | "you")).collect();
    let is_asked = matches!(words[..], ["what", "did", "i", "ask"] | ["what", "was", "i", "asking"]);
    is_asked.then(|| "what was the last question I asked you?".to_owned())
}

/// Returns the question in "my usual coffee is what?"
fn question_at_end(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words = utterance.words();
    let (verb, last) = (words.len().checked_sub(2)?, words.len() - 1);
    let asks = matches!(utterance.word(last), "what" | "when" | "where" | "who")
        && matches!(utterance.word(verb), "is" | "are" | "was");
    let subject = message[..words[verb].span.start].trim();
    let subject = ["and ", "so ", "ok "].iter().find_map(|opening| subject.strip_prefix(opening)).unwrap_or(subject);
    let is_plain = asks && verb > 0 && !subject.contains([',', '.', ';']);
    is_plain.then(|| format!("{} {} {subject}?", utterance.word(last), utterance.word(verb)))
}

/// Returns the question in "so gate code is…", which leaves its answer open.
fn open_question(message: &str) -> Option<String> {
    let subject = message.trim_end().strip_suffix('…').or_else(|| message.trim_end().strip_suffix("..."))?;
    let utterance = Utterance::new(subject);
    let words = utterance.words();
    let last = words.len().checked_sub(1)?;
    let start = (0..last).take_while(|at| matches!(utterance.word(*at), "so" | "and" | "ok" | "then" | "y")).count();
    let is_open = matches!(utterance.word(last), "is" | "are" | "was" | "es" | "son" | "era") && start < last;
    let is_spanish = matches!(utterance.word(last), "es" | "son" | "era");
    let asks = if is_spanish { "cuál" } else { "what" };
    let named = &subject[words[start].span.start..words[last].span.start];
    (is_open && last <= MAX_OPEN_WORDS).then(|| format!("{asks} {} {}?", utterance.word(last), named.trim()))
}

/// The maximum number of words in a question that leaves its answer open.
const MAX_OPEN_WORDS: usize = 8;

/// Returns the question in "invoices are still with who".
fn question_with_last_word(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let count = utterance.words().len();
    let asks = matches!(utterance.word(count.checked_sub(1)?), "who" | "what" | "where" | "when" | "which" | "whom");
    let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&&*word.folded));
    let states = has(&["is", "are", "was", "were", "does", "did", "has"]);
    let is_plain = !has(&["know", "sure", "idea", "forgot", "matter", "say", "guess", "wonder"]);
    (asks && states && is_plain && (3..=MAX_OPEN_WORDS).contains(&count) && !is_question(message))
        .then(|| format!("{}?", message.trim_end_matches(['.', '!', ' '])))
}

/// Returns the question in "what have you got down as my diet" and "what did you note for the budget?"
fn kept_value(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let start = words.iter().take_while(|word| matches!(**word, "and" | "so" | "ok" | "hey")).count();
    let asks = matches!(words.get(start..start + 3)?, ["what", "have" | "did" | "do", "you"]);
    let keeps = matches!(
        words.get(start + 3),
        Some(&("got" | "have" | "noted" | "note" | "written" | "saved" | "stored" | "put" | "write" | "save"))
    );
    let down = start + 4 + usize::from(words.get(start + 4) == Some(&"down"));
    let is_introduced = matches!(words.get(down), Some(&("as" | "for" | "under")));
    let subject = utterance.words().get(down + 1).filter(|_| asks && keeps && is_introduced)?;
    Some(format!("what is {}", &message[subject.span.start..]))
}

/// Returns the question in "read my note back to me word for word".
fn read_back(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let start = words.iter().take_while(|word| matches!(**word, "please" | "can" | "you" | "could" | "now")).count();
    let reads = matches!(words.get(start), Some(&("read" | "repeat" | "say" | "play")));
    let back = words.iter().position(|word| *word == "back").filter(|back| reads && *back <= start + 4)?;
    let named = words[start + 1..back].iter().any(|word| matches!(*word, "note" | "message" | "that" | "it"));
    named.then(|| "what was the last thing I said?".to_owned())
}

/// Returns the question for the user's name in "so how will you call me from now on".
fn question_for_name(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let is_pair = |pair: [&str; 2]| {
        (1..utterance.words().len()).any(|at| utterance.word(at - 1) == pair[0] && utterance.word(at) == pair[1])
    };
    if is_question(message) && is_pair(["me", "llamas"]) {
        return Some("¿cómo me llamo?".to_owned());
    }
    let start = usize::from(matches!(utterance.word(0), "so" | "and" | "then" | "ok"));
    let asks = matches!(utterance.word(start), "how" | "what") && is_question(message);
    (asks && (is_pair(["call", "me"]) || is_pair(["calling", "me"]))).then(|| "what is my name?".to_owned())
}

/// Returns the request in "forget where the wedding is": to forget what answers that question.
fn request_to_forget_answer(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let start = usize::from(utterance.word(0) == "please");
    let forgets = matches!(utterance.word(start), "forget" | "delete" | "erase" | "remove");
    let asks = matches!(utterance.word(start + 1), "where" | "when" | "who" | "how" | "which" | "what");
    let words = utterance.words();
    let is_of_speaker = matches!(utterance.word(start + 2), "i" | "we" | "you" | "ive" | "weve" | "about");
    let verb =
        words.last().filter(|verb| matches!(&*verb.folded, "is" | "are" | "was" | "were" | "starts" | "ends"))?;
    let subject = words.get(start + 2).filter(|_| forgets && asks && !is_of_speaker)?.span.start;
    let subject = message.get(subject..verb.span.start)?.trim();
    (!subject.is_empty()).then(|| format!("forget what I said about {subject}"))
}

/// Returns the question in "qué te dije que prefiero beber?" with a verb that sets no preference.
fn question_with_preferring(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let asks = message.trim_end().ends_with('?')
        && matches!(utterance.word(0), "que" | "cual" | "cuales" | "y" | "como" | "donde" | "cuando");
    let verb = utterance.words().iter().find(|word| word.folded == "prefiero").filter(|_| asks)?;
    Some(format!("{}me gusta{}", &message[..verb.span.start], &message[verb.span.end..]))
}

/// Returns the complete request for "she uses this tablet too. delete what I wrote about the present".
fn request_after_remark(message: &str) -> Option<String> {
    let (_, last) = message.trim_end_matches(['.', '!', '?', ' ']).rsplit_once(['.', ',', '!', '?', ';'])?;
    let before = Utterance::new(&message[..message.len() - last.len()]);
    let words = before.words();
    // "delete it. erase the locker stuff"
    let names_nothing =
        words.len() <= MAX_REMARK_WORDS && words.iter().any(|word| matches!(&*word.folded, "it" | "that" | "eso"));
    let is_remark = words.len() > 1 && (names_nothing || !asks_to_forget(message));
    (is_remark && asks_to_forget(last)).then(|| last.trim().to_owned())
}

const MAX_REMARK_WORDS: usize = 6;

/// Returns the statement in "better note that my favourite colour is olive".
fn statement_after_note_that(message: &str) -> Option<String> {
    let folded = message.to_lowercase();
    let cues = ["pon que mi ", "apunta que mi ", "anota que mi ", "put that my ", "note that my ", "say that my "];
    let (cue_start, cue) = cues.iter().find_map(|cue| Some((folded.find(cue)?, cue)))?;
    let start = cue_start + cue.len() - cue.len().min(3);
    let is_preference = ["favorit", "favourit", "prefer"].iter().any(|word| folded[cue_start..].contains(word));
    (is_preference && message.is_char_boundary(start)).then(|| message[start..].trim_start().to_owned())
}

/// Returns the complete question for "thank you and when does Annelise come".
fn question_after_courtesy(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words = utterance.words();
    let courtesy = (0..words.len()).take_while(|index| COURTESY.contains(&utterance.word(*index))).count();
    let is_joined = matches!(utterance.word(courtesy), "and" | "y" | "so" | "but" | "also" | "pero");
    let start = words.get(courtesy + 1).filter(|_| courtesy > 0 && is_joined)?.span.start;
    is_question(&message[start..]).then(|| message[start..].to_owned())
}

const COURTESY: [&str; 24] = [
    "thank",
    "you",
    "thanks",
    "thx",
    "ty",
    "cheers",
    "great",
    "perfect",
    "lovely",
    "nice",
    "cool",
    "super",
    "brilliant",
    "good",
    "morning",
    "evening",
    "afternoon",
    "gracias",
    "muchas",
    "genial",
    "perfecto",
    "buenos",
    "dias",
    "bien",
];

/// Returns the complete request for "give me everything I said about the pen test".
fn everything_said(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let all =
        words.iter().take(MAX_OPENING_WORDS).position(|word| matches!(*word, "everything" | "all" | "anything"))?;
    let mut index = all + 1;
    while matches!(words.get(index), Some(&("that" | "i" | "we" | "ive" | "weve" | "have" | "ever"))) {
        index += 1;
    }
    let has_verb_of_saying =
        matches!(words.get(index), Some(&("said" | "told" | "wrote" | "mentioned" | "noted" | "say" | "tell")));
    let about = index + 1 + usize::from(words.get(index + 1) == Some(&"you"));
    let is_about = has_verb_of_saying && matches!(words.get(about), Some(&("about" | "on" | "of")));
    let subject = utterance.words().get(about + 1).filter(|_| is_about)?;
    Some(format!("find everything about {}", &message[subject.span.start..]))
}

const MAX_OPENING_WORDS: usize = 5;

/// Returns the complete question for "number of Anna from the nursery".
fn question_about_value(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let article = usize::from(matches!(utterance.word(0), "the" | "el" | "la"));
    let is_named = VALUES.contains(&utterance.word(article)) && matches!(utterance.word(article + 1), "of" | "for");
    let is_named_in_spanish =
        VALUES_IN_SPANISH.contains(&utterance.word(article)) && matches!(utterance.word(article + 1), "de" | "del");
    let is_short = (3 + article..=MAX_NAMED_VALUE_WORDS).contains(&utterance.words().len());
    let is_statement = utterance.words().iter().any(|word| STATEMENT_WORDS.contains(&word.folded.as_str()));
    if !is_short || is_statement || message.contains([':', '=', '!', ',']) {
        return None;
    }
    match (is_named, is_named_in_spanish) {
        (true, _) => Some(format!("what is the {}", &message[utterance.words()[article].span.start..])),
        (_, true) => Some(format!("cuál es {message}")),
        _ => None,
    }
}

const MAX_NAMED_VALUE_WORDS: usize = 8;
const VALUES: [&str; 22] = [
    "number",
    "phone",
    "telephone",
    "address",
    "name",
    "price",
    "cost",
    "date",
    "day",
    "time",
    "code",
    "password",
    "pin",
    "email",
    "colour",
    "color",
    "size",
    "birthday",
    "deadline",
    "reference",
    "weight",
    "length",
];
const VALUES_IN_SPANISH: [&str; 14] = [
    "numero",
    "telefono",
    "direccion",
    "nombre",
    "precio",
    "fecha",
    "hora",
    "codigo",
    "clave",
    "correo",
    "color",
    "talla",
    "cumpleanos",
    "contrasena",
];
/// Words that indicate that a message states a value rather than asking for it.
const STATEMENT_WORDS: [&str; 16] = [
    "is", "are", "was", "were", "will", "has", "changed", "moved", "es", "son", "era", "fue", "sera", "cambio", "no",
    "not",
];

/// Returns the complete question for "no, I meant the front" after another question. After a statement, the same words correct it.
fn question_after_correction(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let previous = earlier.iter().rev().find(|message| message.role == Role::User)?;
    if !is_question(&previous.plain_text()) {
        return None;
    }
    let utterance = Utterance::new(message);
    let words = utterance.words();
    let opening = (0..words.len())
        .take_while(|index| {
            matches!(utterance.word(*index), "no" | "sorry" | "wait" | "oh" | "ah" | "perdon" | "i" | "me")
        })
        .count();
    let (verb_words, conjunction) = match utterance.word(opening) {
        "meant" | "mean" => (1, "and"),
        "referia" if utterance.word(opening + 1) == "a" => (2, "y"),
        "referia" | "decia" | "digo" => (1, "y"),
        _ => return None,
    };
    let rest = words.get(opening + verb_words).filter(|_| opening > 0)?.span.start;
    let rest = message[rest..].trim_end_matches(['.', '!', '?', ' ']);
    let is_short = Utterance::new(rest).words().len() <= MAX_MEANT_WORDS;
    (is_short && !rest.contains(|c: char| c.is_ascii_digit())).then(|| format!("{conjunction} {rest}?"))
}

const MAX_MEANT_WORDS: usize = 6;

#[cfg(test)]
mod tests {
    use threadkeep::{JsonText, Part, ToolCall};

    use super::*;

    #[test]
    fn questions_in_other_forms_are_reworded() {
        for (message, question) in [
            ("my favourite colour?", "what is my favourite colour?"),
            ("he reads along. please delete what I said about him", "please delete what I said about him"),
            ("Leo uses this tablet, erase what I said about Leo", "erase what I said about Leo"),
            ("ok now really, delete it. erase the locker stuff", "erase the locker stuff"),
            ("mejor pon que mi color favorito es el verde", "mi color favorito es el verde"),
            ("thank you and when does Annelise come", "when does Annelise come"),
            ("gracias y cuándo llega Ana", "cuándo llega Ana"),
            ("give me everything i said about the pen test", "find everything about the pen test"),
            ("all that we ever told you about Falcon", "find everything about Falcon"),
            ("the number of Anna from the nursery", "what is the number of Anna from the nursery"),
            ("my usual coffee is what?", "what is my usual coffee?"),
            ("new chat, quick one: when does the pass run out", "when does the pass run out"),
            ("so gate code is…", "what is gate code?"),
            ("invoices are still with who", "invoices are still with who?"),
            ("what have you got down as my diet", "what is my diet"),
            ("read my note back to me word for word", "what was the last thing I said?"),
            ("what did i just ask you about", "what was the last question I asked you?"),
            ("ok so what did i just ask you", "what was the last question I asked you?"),
            ("forget where the wedding is", "forget what I said about the wedding"),
            ("so how are you going to call me from now on", "what is my name?"),
            ("teléfono de la fontanera", "cuál es teléfono de la fontanera"),
        ] {
            assert_eq!(reworded(message, &[]).as_deref(), Some(question), "{message}");
        }
    }

    #[test]
    fn corrections_of_a_preference_set_it_again() {
        let set = |name: &str| {
            let arguments = JsonText::from(&serde_json::json!({"name": name, "value": "old"}));
            let call = ToolCall { id: "c1".to_owned(), name: "set_preference".to_owned(), arguments };
            let reply = ChatMessage { parts: vec![Part::ToolCall(call)], ..ChatMessage::text(Role::Assistant, "") };
            [ChatMessage::text(Role::User, "call me Ann"), reply]
        };
        let reworded = |message: &str, name: &str| preference_corrected(message, &set(name));
        assert_eq!(reworded("changed my mind, go with Bee instead", "name").as_deref(), Some("call me Bee"));
        assert_eq!(
            reworded("actually make it green", "favourite colour").as_deref(),
            Some("my favourite colour is green")
        );
        assert_eq!(reworded("hm actually id rather Sunny than Sam", "name").as_deref(), Some("call me Sunny"));
        assert_eq!(reworded("mejor no, prefiero Enrique", "nombre").as_deref(), Some("llámame Enrique"));
        assert_eq!(
            reworded("hmm everyone says Bee these days, use that instead", "name").as_deref(),
            Some("call me Bee")
        );
        assert_eq!(reworded("actually the train was late", "name"), None);
        assert_eq!(preference_corrected("make it Bee", &[ChatMessage::text(Role::User, "the party is at six")]), None);
    }

    #[test]
    fn corrections_of_a_question_become_questions() {
        let question = [ChatMessage::text(Role::User, "when is the back door painted?")];
        let statement = [ChatMessage::text(Role::User, "the back door is painted on Friday")];
        for (message, meant) in
            [("no i meant the front", "and the front?"), ("perdón, me refería a la otra", "y la otra?")]
        {
            assert_eq!(reworded(message, &question).as_deref(), Some(meant), "{message}");
            assert_eq!(reworded(message, &statement), None, "{message}");
        }
    }

    #[test]
    fn the_next_day_is_the_one_after_the_day_of_the_question() {
        let question = [ChatMessage::text(Role::User, "What did I do on Sunday?")];
        for (message, meant) in [
            ("And the day after?", Some("What did I do on Monday?")),
            ("and the previous day", Some("What did I do on Saturday?")),
            ("the day after tomorrow", None),
        ] {
            assert_eq!(reworded(message, &question).as_deref(), meant, "{message}");
        }
    }

    #[test]
    fn statements_are_not_reworded() {
        for message in [
            "date of the exam is 4 May",
            "price for members: 12 euros",
            "no, I meant 14 May",
            "thank you and good night",
            "all the plants are watered",
            "delete it. and the other one",
            "my name is Sam",
        ] {
            assert_eq!(reworded(message, &[]), None, "{message}");
        }
    }
}
