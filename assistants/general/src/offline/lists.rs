//! Lists that the user keeps in a conversation: "put milk on my shopping list", "batteries too", "what's on it now?".

use threadkeep::core::text::Language;
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

/// The maximum number of words in an item.
const MAX_ITEM_WORDS: usize = 6;
/// The maximum number of words in a question about a list.
const MAX_QUESTION_WORDS: usize = 12;

/// A list of the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct List {
    /// Its name, in lower case; empty if it has none.
    name: String,
    pub(super) items: Vec<String>,
}

/// Returns the lists of the conversation; the one that was mentioned last is the last one.
pub(super) fn lists(earlier: &[ChatMessage]) -> Vec<List> {
    let mut lists: Vec<List> = Vec::new();
    // Whether the previous message changed a list, which "batteries too" continues.
    let mut continues = false;
    for message in earlier.iter().filter(|message| message.role == Role::User) {
        let text = message.plain_text();
        let change = change(&text, continues && !lists.is_empty());
        continues = change.is_some() || continues && is_question(&text);
        match change {
            Some(change) => apply(&mut lists, change),
            None => without_done(&text, &mut lists),
        }
    }
    lists
}

/// Takes what a message says is done or not needed off the last list: "I have called the plumber", "I don't need the charger after all,
/// take it off the list".
fn without_done(text: &str, lists: &mut [List]) {
    const NOT_NEEDED: [&str; 9] = [
        "done with",
        "dont need",
        "do not need",
        "no longer need",
        "take it off",
        "cross it off",
        "take that off",
        "cross off",
        "already have",
    ];
    const DONE: [&str; 3] = ["i have", "ive", "i just"];
    without_obtained(text, lists);
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let joined = format!(" {} ", words.join(" ").replace(['\'', '’'], ""));
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
    let (is_not_needed, is_done) = (says(&NOT_NEEDED), says(&DONE));
    let Some(list) = lists.last_mut().filter(|_| (is_not_needed || is_done) && !is_question(text)) else { return };
    let stem = |word: &str| word.chars().take(4).collect::<String>();
    let said: Vec<String> = words.iter().map(|word| stem(word)).collect();
    let is_mentioned = |item: &String| {
        let item = Utterance::new(item.as_str());
        let mut own =
            item.words().iter().filter(|word| !is_article(&word.folded)).map(|word| stem(&word.folded)).peekable();
        // "I have a question about the tent" does nothing with the tent, while "I have called the plumber" does a task.
        let is_task = item.words().len() > 1;
        own.peek().is_some() && (is_not_needed || is_task) && own.all(|word| said.contains(&word))
    };
    if list.items.iter().any(is_mentioned) {
        list.items.retain(|item| !is_mentioned(item));
    }
}

/// Takes what a message says the user has got off the last list: "got the rice", "bought the eggs too". The message names nothing else.
fn without_obtained(text: &str, lists: &mut [List]) {
    const OPENINGS: [&str; 9] = ["i", "ive", "have", "just", "ok", "and", "also", "already", "we"];
    const OBTAINING: [&str; 5] = ["got", "bought", "picked", "grabbed", "ordered"];
    const FILLERS: [&str; 14] =
        ["up", "the", "some", "a", "an", "my", "already", "now", "too", "today", "btw", "and", "as", "well"];
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.trim_end_matches('s')).collect();
    let start = (0..words.len()).take_while(|at| OPENINGS.contains(&utterance.word(*at))).count();
    let obtains = OBTAINING.contains(&utterance.word(start)) && !is_question(text);
    let Some(list) = lists.last_mut().filter(|_| obtains) else { return };
    let rest: Vec<&str> = words[start + 1..].iter().copied().filter(|word| !FILLERS.contains(word)).collect();
    let words_of = |item: &String| -> Vec<String> {
        let item = Utterance::new(item.as_str());
        let words = item.words().iter().filter(|word| !is_article(&word.folded));
        words.map(|word| word.folded.trim_end_matches('s').to_owned()).collect()
    };
    let is_got = |item: &String| {
        let own = words_of(item);
        !own.is_empty() && own.iter().all(|word| rest.contains(&word.as_str()))
    };
    let got: Vec<String> = list.items.iter().filter(|item| is_got(item)).flat_map(words_of).collect();
    if rest.iter().all(|word| got.iter().any(|known| known == word)) {
        list.items.retain(|item| !is_got(item));
    }
}

/// A change of a list.
#[derive(Debug, PartialEq)]
struct Change {
    /// The name; `None` for the list that was mentioned last.
    name: Option<String>,
    adds: bool,
    items: Vec<String>,
}

fn apply(lists: &mut Vec<List>, change: Change) {
    let position = match &change.name {
        Some(name) => lists.iter().position(|list| list.name == *name),
        None => lists.len().checked_sub(1),
    };
    let mut list = match position {
        Some(at) => lists.remove(at),
        None if change.adds && change.name.is_some() => {
            List { name: change.name.unwrap_or_default(), items: Vec::new() }
        }
        None => return,
    };
    for item in change.items {
        if change.adds {
            if !list.items.iter().any(|known| is_same(known, &item)) {
                list.items.push(item);
            }
        } else {
            list.items.retain(|known| !is_same(known, &item));
        }
    }
    lists.push(list);
}

/// Whether two items are the same thing, whatever their articles and numbers.
fn is_same(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let utterance = Utterance::new(text);
        let words = utterance.words().iter().map(|word| word.folded.trim_end_matches('s').to_owned());
        words.filter(|word| !matches!(&**word, "the" | "a" | "an" | "some" | "my" | "" | "el" | "la")).collect()
    };
    words(one) == words(other)
}

/// Parses a message that changes a list.
fn change(text: &str, continues: bool) -> Option<Change> {
    let text = text.trim().trim_end_matches(['.', '!']);
    if text.contains('\n') || is_question(text) && text.ends_with('?') {
        return None;
    }
    let utterance = Utterance::new(text);
    let words = utterance.words();
    let word = |at: usize| utterance.word(at);
    let mut start = 0;
    while matches!(
        word(start),
        "please" | "and" | "also" | "ok" | "then" | "now" | "can" | "you" | "could" | "oh" | "actually"
    ) {
        start += 1;
    }
    let verb = word(start);
    let adds = matches!(verb, "add" | "put" | "include" | "write");
    let removes = matches!(verb, "take" | "remove" | "cross" | "strike" | "drop" | "scratch" | "delete");
    let list_at = (start..words.len()).rfind(|at| word(*at) == "list");
    if !adds && !removes {
        // "My packing list: socks, charger", "the packing list has socks and a charger"
        if let Some(list) = list_at.filter(|list| *list <= start + 4 && text[words[*list].span.end..].starts_with(':'))
        {
            let name = (start..list).map(word).filter(|word| !is_article(word)).collect::<Vec<_>>().join(" ");
            return Some(Change { name: Some(name), adds: true, items: items(&text[words[list].span.end + 1..])? });
        }
        if let Some(items) = list_after_colon(text) {
            return Some(Change { name: Some(String::new()), adds: true, items });
        }
        // "And I need to order curtains"
        let needs = (word(start) == "i" || word(start) == "we")
            && (matches!(word(start + 1), "need" | "have" | "must") && word(start + 2) == "to" && continues);
        if needs && start > 0 && words.len() > start + 3 {
            let item = text[words[start + 3].span.start..].to_owned();
            return Some(Change { name: None, adds: true, items: vec![item] });
        }
        let last = word(words.len().checked_sub(1)?);
        let ends_so =
            matches!(last, "too" | "tambien") || words.len() > 2 && word(words.len() - 2) == "as" && last == "well";
        // "Also sandpaper", "and hinges"
        let begins_so = (0..start).any(|at| matches!(word(at), "and" | "also")) && is_item(&utterance, start);
        let is_addition = ends_so || begins_so;
        let end = match ends_so {
            true => words.get(words.len() - if last == "well" { 2 } else { 1 })?.span.start,
            false => text.len(),
        };
        return (continues && is_addition && words.len() <= MAX_ITEM_WORDS + 2)
            .then(|| Some(Change { name: None, adds: true, items: items(&text[words[start].span.start..end])? }))
            .flatten();
    }
    let first = start + 1 + usize::from(removes && matches!(word(start + 1), "off" | "out"));
    let begin = words.get(first)?.span.start;
    let preposition = |at: &usize| match adds {
        true => matches!(word(*at), "to" | "on" | "onto" | "in" | "into"),
        false => matches!(word(*at), "off" | "from"),
    };
    // "Add milk to my shopping list", "take it off the list"
    if let Some(list) = list_at
        && let Some(at) = (first..list).rfind(preposition)
    {
        let name = (at + 1..list).map(word).filter(|word| !is_article(word)).collect::<Vec<_>>().join(" ");
        let name = if name.is_empty() && continues { None } else { Some(name) };
        return Some(Change { name, adds, items: items(&text[begin..words[at].span.start])? });
    }
    // "Take the lentils off again", "add rice, too", "add rice to it"
    let end = (first..words.len()).find(|at| {
        preposition(at)
            && (*at + 1 == words.len() || matches!(word(*at + 1), "it" | "again" | "that" | "there" | "too"))
            || matches!(word(*at), "too" | "again") && *at + 1 == words.len()
    });
    let end = match end {
        Some(at) => words[at].span.start,
        None => text.len(),
    };
    continues.then(|| Some(Change { name: None, adds, items: items(text.get(begin..end)?)? })).flatten()
}

/// Returns the items of a list after a colon: "Remember for my trip: passport, charger", "To do this week: call the plumber, book the van".
fn list_after_colon(text: &str) -> Option<Vec<String>> {
    const KINDS: [&str; 22] = [
        "todo",
        "do",
        "buy",
        "pack",
        "packing",
        "bring",
        "trip",
        "shopping",
        "groceries",
        "tasks",
        "errands",
        "list",
        "order",
        "get",
        "need",
        "holiday",
        "journey",
        "week",
        "weekend",
        "picnic",
        "party",
        "camping",
    ];
    const VERBS: [&str; 8] = ["is", "are", "was", "were", "came", "has", "had", "costs"];
    let (head, rest) = text.split_once(": ")?;
    let head = Utterance::new(head);
    let is_kind = head.words().iter().any(|word| KINDS.contains(&word.folded.as_str()));
    let found = items(rest).filter(|found| found.len() > 1 && is_kind && head.words().len() <= MAX_ITEM_WORDS)?;
    let is_thing =
        |item: &String| !Utterance::new(item.as_str()).words().iter().any(|word| VERBS.contains(&word.folded.as_str()));
    found.iter().all(is_thing).then_some(found)
}

/// The maximum number of words in an item that "and" adds to a list.
const MAX_ADDED_WORDS: usize = 3;

/// Whether the words of a message from a position on only name a thing.
fn is_item(message: &Utterance, start: usize) -> bool {
    const OTHERS: [&str; 34] = [
        "what", "when", "where", "who", "why", "how", "which", "that", "thats", "is", "are", "was", "were", "no",
        "yes", "thanks", "thank", "sorry", "i", "im", "you", "we", "he", "she", "it", "its", "they", "remember",
        "remind", "forget", "me", "show", "list", "on",
    ];
    let words = &message.words()[start..];
    (1..=MAX_ADDED_WORDS).contains(&words.len())
        && !words
            .iter()
            .any(|word| OTHERS.contains(&word.folded.as_str()) || word.folded.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_article(word: &str) -> bool {
    matches!(word, "the" | "my" | "our" | "a" | "that" | "this" | "its" | "remember" | "note" | "here" | "is")
}

/// Splits "milk, lentils and dish soap" into items; `None` if the text is no list.
fn items(text: &str) -> Option<Vec<String>> {
    let parts = text.split([',', ';']).flat_map(|part| part.split(" and "));
    let parts: Vec<String> = parts
        .map(|part| part.trim().trim_start_matches("and ").trim_start_matches("the ").trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    let are_short = parts.iter().all(|part| part.split_whitespace().count() <= MAX_ITEM_WORDS);
    (!parts.is_empty() && are_short).then_some(parts)
}

/// Returns the list as it is after a message that changes it; `None` if the message changes no list.
pub(super) fn changed(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let before = lists(earlier);
    let mut messages = earlier.to_vec();
    messages.push(ChatMessage::text(Role::User, text));
    let after = lists(&messages);
    (after != before).then(|| after.last().map(contents)).flatten()
}

/// Returns the items of a list as a sentence.
fn contents(list: &List) -> String {
    let name = if list.name.is_empty() { "the list".to_owned() } else { format!("your {} list", list.name) };
    match list.items.is_empty() {
        true => format!("Nothing is on {name} now."),
        false => format!("On {name}: {}.", list.items.join(", ")),
    }
}

/// Returns a question about "it" with the name of the list: "what is on it now?" becomes "what is on my shopping list now?"
pub(super) fn named(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let name = lists(earlier).pop()?.name;
    describe(text, earlier, Language::English)?;
    // "Read me the list"
    let utterance = Utterance::new(text);
    let reads = (0..2).any(|at| matches!(utterance.word(at), "read" | "show" | "list" | "give" | "tell"));
    if reads && utterance.words().last().is_some_and(|last| last.folded == "list") {
        let name = if name.is_empty() { "the".to_owned() } else { format!("my {name}") };
        return Some(format!("what is on {name} list?"));
    }
    if name.is_empty() {
        return None;
    }
    let at = text.find(" on it")?;
    Some(format!("{} on my {name} list{}", &text[..at], &text[at + " on it".len()..]))
}

/// Answers a question about a list of the conversation; `None` if the message is no such question.
pub(super) fn describe(text: &str, earlier: &[ChatMessage], language: Language) -> Option<String> {
    let lists = lists(earlier);
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    if lists.is_empty() || words.len() > MAX_QUESTION_WORDS || language != Language::English {
        return None;
    }
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_pair = |one: &str, others: &[&str]| words.windows(2).any(|pair| pair[0] == one && others.contains(&pair[1]));
    let named = lists.iter().rev().find(|list| {
        let names =
            words.windows(2).any(|pair| pair[1] == "list" && list.name.ends_with(pair[0]) && !list.name.is_empty());
        names && has(&["list"])
    });
    let names_list = named.is_some()
        || is_pair("on", &["it"])
        || is_pair("the", &["list"])
        || is_pair("my", &["list"])
        || is_pair("that", &["list"]);
    let is_open = is_open_question(&words) && was_changed_lately(&lists, earlier);
    let list = named.or(lists.last()).filter(|_| names_list || is_open)?;
    let all = || contents(list);
    if is_open && has(&["last", "first"]) {
        let item = if has(&["last"]) { list.items.last() } else { list.items.first() }?;
        return Some(format!("“{item}”."));
    }
    let begins = |known: &[&str]| words.iter().take(2).any(|word| known.contains(word));
    if words.windows(2).any(|pair| pair == ["how", "many"]) {
        return Some(format!("{}. {}", list.items.len(), all()));
    }
    if begins(&["what", "whats", "show", "read", "which"])
        && !has(&["before", "after", "first", "last", "second", "third"])
    {
        return Some(all());
    }
    let asks_whether = matches!(
        words.iter().find(|word| !matches!(**word, "and" | "so" | "ok")),
        Some(&("is" | "are" | "do" | "did"))
    );
    let on = words.iter().position(|word| *word == "on").filter(|_| asks_whether)?;
    let start = words.iter().position(|word| matches!(*word, "is" | "are"))? + 1;
    let asked = words.get(start..on)?.iter().filter(|word| !matches!(**word, "still" | "already" | "now" | "also"));
    let asked = asked.copied().collect::<Vec<_>>().join(" ");
    match list.items.iter().any(|item| is_same(item, &asked)) {
        _ if asked.is_empty() || asked == "there" || asked == "anything" => Some(all()),
        true => Some(format!("Yes. {}", all())),
        false => Some(format!("No. {}", all())),
    }
}

/// How many messages of the user back a list is still what an open question is about.
const MAX_MESSAGES_SINCE_CHANGE: usize = 5;

fn was_changed_lately(now: &[List], earlier: &[ChatMessage]) -> bool {
    let mut asked = (0..earlier.len()).rev().filter(|at| earlier[*at].role == Role::User);
    let start = asked.nth(MAX_MESSAGES_SINCE_CHANGE - 1).unwrap_or_default();
    lists(&earlier[..start]) != now
}

/// Whether a question has only words about the list that was spoken of: "so how many now?", "which did I name last?", "what's still to do?"
fn is_open_question(words: &[&str]) -> bool {
    const OWN: [&str; 52] = [
        "so",
        "and",
        "ok",
        "how",
        "many",
        "things",
        "items",
        "entries",
        "tasks",
        "is",
        "that",
        "are",
        "now",
        "left",
        "open",
        "still",
        "there",
        "in",
        "total",
        "do",
        "i",
        "have",
        "to",
        "what",
        "whats",
        "which",
        "did",
        "name",
        "say",
        "add",
        "mention",
        "last",
        "one",
        "was",
        "first",
        "remains",
        "remaining",
        "need",
        "bring",
        "pack",
        "buy",
        "does",
        "it",
        "make",
        "them",
        "of",
        "the",
        "else",
        "all",
        "altogether",
        "mentioned",
        "named",
    ];
    const ASKING: [&str; 12] = [
        "many",
        "left",
        "open",
        "still",
        "remains",
        "remaining",
        "last",
        "first",
        "name",
        "named",
        "mention",
        "mentioned",
    ];
    let asks = words.iter().any(|word| matches!(*word, "how" | "what" | "whats" | "which"));
    asks && words.iter().all(|word| OWN.contains(word)) && words.iter().any(|word| ASKING.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(texts: &[&str]) -> Vec<ChatMessage> {
        texts.iter().map(|text| ChatMessage::text(Role::User, *text)).collect()
    }

    #[test]
    fn lists_are_kept() {
        let earlier = conversation(&[
            "Add eggs, flour and brown sugar to my baking list",
            "butter too",
            "and walnuts",
            "oh, and also sugar pearls",
            "please take the walnuts off again",
            "and when does the shop open",
            "put a tent on the camping list",
            "what's on my baking list?",
            "please take the flour off my baking list",
            "add vanilla",
        ]);
        let found = lists(&earlier);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].items, ["eggs", "brown sugar", "butter", "sugar pearls", "vanilla"]);
        for (text, expected) in [
            ("what's on it now?", Some("eggs, brown sugar, butter, sugar pearls, vanilla")),
            ("how many things are on the list?", Some("5.")),
            ("is the flour still on it?", Some("No.")),
            ("are the eggs on my baking list?", Some("Yes.")),
            ("what's on the camping list", Some("a tent")),
            ("what is the time?", None),
            ("where is the list?", None),
        ] {
            let described = describe(text, &earlier, Language::English);
            match expected {
                Some(part) => assert!(described.as_ref().is_some_and(|it| it.contains(part)), "{text}: {described:?}"),
                None => assert_eq!(described, None, "{text}"),
            }
        }
    }

    #[test]
    fn what_is_done_or_not_needed_leaves_the_list() {
        let stated = "To do this week: call the plumber, renew the insurance, tent";
        let left = |text: &str| lists(&conversation(&[stated, text])).pop().unwrap_or_default().items.len();
        for (text, expected) in [
            ("I have called the plumber.", 2),
            ("I don't need the tent after all, take it off the list", 2),
            ("I have a question about the tent", 3),
            ("The plumber was nice", 3),
            ("got the tent", 2),
            ("I bought the tent and a stove", 3),
        ] {
            assert_eq!(left(text), expected, "{text}");
        }
        let open = |said: &[&str]| describe("So how many now?", &conversation(said), Language::English);
        assert!(open(&[stated]).is_some_and(|text| text.starts_with("3.")));
        assert_eq!(open(&[stated, "hi", "my dog is ill", "it rains", "I read a book", "it was good"]), None);
    }

    #[test]
    fn other_messages_change_no_list() {
        for text in [
            "take the bus to the station",
            "I put the keys in the drawer",
            "add 12 to that",
            "Mila is coming too",
            "delete what I said about Leo",
        ] {
            assert_eq!(lists(&conversation(&[text])), [], "{text}");
        }
    }
}
