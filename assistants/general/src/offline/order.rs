//! The order of what the user said in this conversation: "what came right before the flange?", "how many items did I list?".

use threadkeep::core::text::{Language, content_terms};
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

use super::lists::lists;
use super::quoting::quoted_texts;
use super::results::ordinal;
use super::sequence::sequence;
use crate::calculation;
use crate::evidence::statements;
use crate::evidence::terms::Terms;

/// The maximum number of words in a question for the order.
const MAX_WORDS: usize = 16;
/// A statement has more words than this.
const MIN_WORDS: usize = 3;
/// The minimum number of items in a list within a message.
const MIN_ITEMS: usize = 3;
/// The maximum number of words in an item of a list.
const MAX_ITEM_WORDS: usize = 6;

/// What a question asks for.
#[derive(Debug, PartialEq)]
enum Wanted {
    /// The neighbour of the statement with these words.
    Neighbour { words: String, is_before: bool },
    /// The item or message with this ordinal.
    Nth { word: String, from_list: bool },
    /// The question with this ordinal.
    NthQuestion { word: String },
    /// What was said before it was corrected.
    Original,
    /// What was said of the same thing before the statement of a change: "and before the cut?"
    BeforeChange { change: String },
    /// The other one of two statements.
    Other,
    /// The number of items.
    Count,
}

/// Answers a question for the order of what was said; `None` if the message is no such question.
pub(super) fn describe(text: &str, earlier: &[ChatMessage], language: Language) -> Option<String> {
    let wanted = wanted(text)?;
    let said: Vec<String> = earlier
        .iter()
        .filter(|message| message.role == Role::User)
        .map(ChatMessage::plain_text)
        .filter(|text| !is_question(text) && calculation::find(text).is_none())
        .map(|text| statements(&text))
        .filter(|text| !text.is_empty())
        .collect();
    let quote = |text: &str| match language {
        Language::English => format!("You said: “{text}”"),
        Language::Spanish => format!("Dijiste: “{text}”"),
    };
    match wanted {
        Wanted::Neighbour { words, is_before } => {
            // "The one before it" means the item that was named last.
            let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant);
            let is_pronoun = matches!(Utterance::new(&*words).word(0), "it" | "that" | "this");
            let words = reply.filter(|_| is_pronoun).map_or(words, |reply| quoted_texts(&reply.plain_text()));
            let terms = words_of(&words);
            let names = |text: &str| {
                let own = words_of(text);
                !terms.is_empty() && terms.iter().all(|term| own.contains(term))
            };
            let neighbour = |all: &[String]| {
                let at = all.iter().rposition(|text| names(text))?;
                let neighbour = if is_before { at.checked_sub(1)? } else { at + 1 };
                all.get(neighbour).cloned()
            };
            let of_list = lists(earlier).iter().rev().find_map(|list| {
                let is_named = list.items.iter().any(|item| names(item));
                is_named.then(|| neighbour(&list.items))
            });
            if let Some(found) = of_list {
                return found.or_else(|| Some(none_there(language)));
            }
            let within = said.iter().rev().find(|text| names(text)).map(|text| items(text));
            match within.filter(|items| items.len() >= MIN_ITEMS) {
                Some(items) => neighbour(&items),
                None => neighbour(&said).map(|text| quote(&text)),
            }
        }
        Wanted::Original => original(&said, text).map(|text| quote(&text)),
        Wanted::BeforeChange { change } => before_change(&said, &change).map(|text| quote(&text)),
        Wanted::Other => {
            let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant)?.plain_text();
            let quoted = quoted_texts(&reply);
            let [one, other] = &said[..] else { return None };
            let found = if *one == quoted { other } else { one };
            (*one == quoted || *other == quoted).then(|| quote(found))
        }
        Wanted::Nth { word, from_list } => {
            let kept = lists(earlier).pop().map(|list| list.items).filter(|items| !items.is_empty());
            let list = match from_list {
                true => kept.or_else(|| sequence(&said)).or_else(|| newest_list(&said))?,
                false => said.clone(),
            };
            let at = ordinal(&word, list.len())?;
            match list.get(at) {
                Some(item) => Some(quote(item)),
                None => Some(match language {
                    Language::English => format!("You named only {} in this conversation.", list.len()),
                    Language::Spanish => format!("En esta conversación nombraste solo {}.", list.len()),
                }),
            }
        }
        Wanted::NthQuestion { word } => {
            let messages = earlier.iter().filter(|message| message.role == Role::User);
            let asked: Vec<String> = messages.map(ChatMessage::plain_text).filter(|text| is_question(text)).collect();
            let question = asked.get(ordinal(&word, asked.len())?)?;
            Some(match language {
                Language::English => format!("You asked: “{question}”"),
                Language::Spanish => format!("Preguntaste: “{question}”"),
            })
        }
        Wanted::Count => {
            let list = newest_list(&said)?;
            Some(format!("{}: {}", list.len(), list.join(", ")))
        }
    }
}

/// Returns the words of a name, in the singular and without articles.
fn words_of(text: &str) -> Vec<String> {
    let words = Utterance::new(text).words().iter().map(|word| word.folded.clone()).collect::<Vec<_>>();
    let is_article = |word: &String| matches!(&**word, "the" | "a" | "an" | "el" | "la" | "los" | "las" | "un" | "una");
    let singular = |word: String| match word.strip_suffix('s') {
        Some(singular) if singular.len() > 2 => singular.to_owned(),
        _ => word,
    };
    words.into_iter().filter(|word| !is_article(word)).map(singular).collect()
}

/// Returns the statement that the newest correction replaced. A question for a day or a time is about a correction of one.
fn original(said: &[String], question: &str) -> Option<String> {
    let corrects = |text: &String| {
        let utterance = Utterance::new(&**text);
        let words = || utterance.words().iter().map(|word| word.folded.as_str());
        matches!(utterance.word(0), "no" | "sorry" | "correction" | "wait" | "oops" | "actually" | "perdon")
            || words().any(|word| matches!(word, "moved" | "changed" | "postponed" | "rescheduled"))
            || words().any(|word| word == "not") && text.contains(',')
    };
    let asked = Utterance::new(question);
    let asks_time = asked
        .words()
        .iter()
        .any(|word| matches!(&*word.folded, "day" | "date" | "when" | "time" | "weekday" | "dia" | "fecha" | "hora"));
    let is_asked = |text: &String| !asks_time || Terms::new(text).has_time();
    let at = said.iter().rposition(|text| corrects(text) && is_asked(text))?;
    let is_statement =
        |text: &String| Utterance::new(&**text).words().len() > MIN_WORDS && !corrects(text) && is_asked(text);
    said[..at].iter().rev().find(|text| is_statement(text)).cloned()
}

/// Returns the statement before the newest one of a change that has a word in common with it.
fn before_change(said: &[String], change: &str) -> Option<String> {
    let stem = change.trim_end_matches(['e', 's']);
    let at = said.iter().rposition(|text| words_of(text).iter().any(|word| word.starts_with(stem)))?;
    let terms = |text: &str| -> Vec<String> {
        let words = content_terms(text).into_iter().map(|(word, _)| word);
        words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).collect()
    };
    let subject = terms(&said[at]);
    let is_same = |text: &&String| terms(text).iter().any(|word| subject.contains(word));
    said[..at].iter().rev().find(is_same).cloned()
}

fn none_there(language: Language) -> String {
    match language {
        Language::English => "Nothing: it is at that end of the list.".to_owned(),
        Language::Spanish => "Nada: está en ese extremo de la lista.".to_owned(),
    }
}

/// Parses a question for the order.
fn wanted(text: &str) -> Option<Wanted> {
    const OPENING: [&str; 33] = [
        "and",
        "which",
        "what",
        "whats",
        "who",
        "one",
        "item",
        "thing",
        "name",
        "came",
        "come",
        "comes",
        "was",
        "is",
        "right",
        "just",
        "directly",
        "immediately",
        "straight",
        "listed",
        "list",
        "in",
        "the",
        "on",
        "stands",
        "goes",
        "so",
        "step",
        "entry",
        "que",
        "cual",
        "venia",
        "va",
    ];
    const ORDERING: [&str; 14] = [
        "came",
        "come",
        "comes",
        "right",
        "just",
        "directly",
        "immediately",
        "straight",
        "item",
        "one",
        "listed",
        "list",
        "step",
        "entry",
    ];
    /// Nouns of changes that a statement may describe.
    const CHANGES: [&str; 14] = [
        "cut",
        "change",
        "raise",
        "rise",
        "increase",
        "drop",
        "move",
        "switch",
        "update",
        "correction",
        "reduction",
        "swap",
        "renewal",
        "promotion",
    ];
    const BEFORE_CHANGE: [&str; 16] = [
        "and", "what", "whats", "was", "were", "is", "it", "that", "how", "much", "did", "they", "have", "had", "so",
        "about",
    ];
    const ITEMS: [&str; 8] = ["item", "items", "entry", "entries", "step", "steps", "point", "points"];
    const THINGS: [&str; 6] = ["thing", "things", "message", "note", "fact", "statement"];
    const SAYING: [&str; 12] =
        ["told", "said", "mentioned", "say", "tell", "mention", "gave", "give", "asked", "wrote", "listed", "noted"];
    let message = Utterance::new(text);
    let words: Vec<&str> = message.words().iter().map(|word| word.folded.as_str()).collect();
    if words.is_empty() || words.len() > MAX_WORDS {
        return None;
    }
    let asks = text.trim_end().ends_with('?')
        || matches!(
            words[0],
            "what" | "which" | "whats" | "who" | "how" | "and" | "que" | "cual" | "cuantos" | "cuantas"
        );
    let pivot = words.iter().position(|word| matches!(*word, "before" | "after" | "antes" | "despues"));
    if let [opening @ .., "before", "the" | "that", change] = &words[..]
        && asks
        && CHANGES.contains(change)
        && opening.iter().all(|word| BEFORE_CHANGE.contains(word))
    {
        return Some(Wanted::BeforeChange { change: (*change).to_owned() });
    }
    let is_other =
        |word: &&str| matches!(*word, "and" | "what" | "whats" | "was" | "the" | "other" | "thing" | "about");
    if asks && words.contains(&"other") && words.ends_with(&["thing"]) && words.iter().all(is_other) {
        return Some(Wanted::Other);
    }
    if let Some(at) = pivot.filter(|_| asks) {
        let opening = &words[..at];
        let is_direct = opening
            .last()
            .is_some_and(|last| matches!(*last, "right" | "just" | "directly" | "immediately" | "straight"));
        let is_order = (is_direct
            || opening.iter().all(|word| OPENING.contains(word)) && opening.iter().any(|word| ORDERING.contains(word)))
            && (opening.iter().any(|word| matches!(*word, "which" | "what" | "whats" | "who" | "que" | "cual"))
                || opening == ["the", "one"]
                || opening == ["and", "the", "one"]);
        let rest = message.words().get(at + 1)?;
        let named = text[rest.span.start..].trim_end_matches(['?', '.', '!', ' ']).to_owned();
        let is_before = matches!(words[at], "before" | "antes");
        return is_order.then_some(Wanted::Neighbour { words: named, is_before });
    }
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let says = words
        .windows(2)
        .any(|pair| matches!(pair, ["i", "say" | "said" | "tell" | "told" | "give" | "gave" | "mention"]));
    let is_origin = words.windows(2).any(|pair| matches!(pair, ["at", "first"] | ["the", "beginning"]))
        || words.last().is_some_and(|last| matches!(*last, "first" | "originally" | "initially"));
    if asks && says && is_origin && !has(&THINGS) && !has(&ITEMS) {
        return Some(Wanted::Original);
    }
    // "Which is the third?", "what's the last one?"
    let is_bare = words.iter().all(|word| {
        const WORDS: [&str; 36] = [
            "did", "cost", "costs", "thing", "amount", "price", "figure", "quote", "number", "cuanto", "costaba",
            "again", "which", "what", "whats", "is", "was", "the", "one", "and", "of", "them", "those", "on", "list",
            "my", "in", "cual", "es", "era", "el", "la", "y", "de", "ellos", "ellas",
        ];
        ordinal(word, 1).is_some() || ITEMS.contains(word) || WORDS.contains(word)
    });
    if let Some(at) = words.iter().position(|word| ordinal(word, 1).is_some())
        && is_bare
        && (matches!(words[0], "which" | "what" | "whats" | "and" | "cual" | "y")
            || matches!(words[0], "el" | "la" | "the") && text.trim_end().ends_with('?'))
    {
        return Some(Wanted::Nth { word: words[at].to_owned(), from_list: true });
    }
    let by_user = has(&["i", "my", "you"]) && has(&SAYING);
    let on_list = words.windows(2).any(|pair| matches!(pair, ["the" | "my" | "that", "list"]));
    let names_place = by_user || on_list;
    if matches!(words[0], "how" | "and" | "so" | "cuantos" | "cuantas")
        && words.windows(2).any(|pair| pair == ["how", "many"])
    {
        return (has(&ITEMS) || has(&THINGS)).then_some(Wanted::Count).filter(|_| names_place);
    }
    let at = words.iter().position(|word| ordinal(word, 1).is_some() || *word == "penultimate")?;
    let noun = words.get(at + 1)?;
    let is_named = ITEMS.contains(noun) || THINGS.contains(noun) || *noun == "one";
    if asks
        && has(&["asked", "ask"])
        && has(&["i"])
        && !has(&["remember", "note", "keep"])
        && (is_named || *noun == "question")
    {
        return Some(Wanted::NthQuestion { word: words[at].to_owned() });
    }
    (asks && is_named && names_place)
        .then(|| Wanted::Nth { word: words[at].to_owned(), from_list: on_list || ITEMS.contains(noun) })
}

/// Returns the items of a message that is a list: "milk, eggs and bread".
pub(crate) fn items(text: &str) -> Vec<String> {
    let list = text.split_once(": ").map_or(text, |(_, list)| list).trim_end_matches(['.', '!']);
    let parts = list.split([',', ';', '\n']).flat_map(|part| part.split(" and "));
    let parts =
        parts.flat_map(|part| part.split(" y ")).flat_map(|part| part.split(" or ")).flat_map(|part| part.split(" o "));
    let parts: Vec<String> = parts
        .map(|part| part.trim().trim_start_matches("and ").trim_start_matches("- ").to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    let are_short = parts.iter().skip(1).all(|part| part.split_whitespace().count() <= MAX_ITEM_WORDS);
    // "Two dates: the notary and the bank"
    let is_named = text.contains(": ") && parts.len() > 1;
    if (list.contains([',', ';', '\n']) || is_named) && are_short { parts } else { Vec::new() }
}

/// Returns the newest list: the items of one message, or several messages that begin with the same word.
fn newest_list(said: &[String]) -> Option<Vec<String>> {
    let first_word = |text: &str| Utterance::new(text).word(0).to_owned();
    for (at, text) in said.iter().enumerate().rev() {
        let items = items(text);
        if items.len() >= MIN_ITEMS || items.len() > 1 && text.contains(": ") {
            return Some(items);
        }
        let series: Vec<String> =
            said[..=at].iter().filter(|other| first_word(other) == first_word(text)).cloned().collect();
        if series.len() >= MIN_ITEMS {
            return Some(series);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> Vec<ChatMessage> {
        texts.iter().map(|text| ChatMessage::text(Role::User, *text)).collect()
    }

    #[test]
    fn the_order_of_statements_is_known() {
        let series = said(&["Note stop 1: Oslo", "Note stop 2: Bergen", "Note stop 3: Tromsø"]);
        let list = said(&["Shopping list: rice, beans, oil and salt", "The shop closes at nine."]);
        let stops = said(&["Stops: first Lyon.", "then Nice, and finally Pisa"]);
        let choices = said(&["Hay tres opciones: Cuenca, Soria o Teruel"]);
        let budget = said(&["Sales has 900 a week.", "The park is near.", "Sales was cut by 100, they have 800"]);
        let visit = said(&[
            "The visit is on Monday at ten.",
            "Sorry, I meant Wednesday.",
            "It is in room Oak and Mr Haddad comes.",
            "no wait, not room Oak, room Elm",
        ]);
        for (earlier, text, expected) in [
            (&series, "what came right before Tromsø?", Some("Bergen")),
            (&series, "and which one was just after Oslo?", Some("Bergen")),
            (&series, "what was the first thing I told you?", Some("Oslo")),
            (&series, "how many things did I tell you?", Some("3: ")),
            (&list, "what comes after beans?", Some("oil")),
            (&list, "what's the last item on the list?", Some("salt")),
            (&list, "how many items are on my list?", Some("4: ")),
            (&list, "what was the last thing I said?", Some("closes at nine")),
            (&stops, "and which one is the last?", Some("Pisa")),
            (&choices, "cuál era la segunda?", Some("Soria")),
            (&budget, "and before the cut?", Some("has 900")),
            (&budget, "what was it before the move?", None),
            (&visit, "which day did I say at first?", Some("Monday")),
            (&list, "what do I need before the meeting?", None),
            (&list, "what happens after lunch?", None),
            (&list, "what was the first flight?", None),
        ] {
            let described = describe(text, earlier, Language::English);
            match expected {
                Some(part) => assert!(described.as_ref().is_some_and(|it| it.contains(part)), "{text}: {described:?}"),
                None => assert_eq!(described, None, "{text}"),
            }
        }
    }
}
