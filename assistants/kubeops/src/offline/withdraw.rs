//! Messages that take back a request that waits for an approval.
//!
//! The person who approves a request must be able to rely on it: a request that the conversation has taken back or corrected must not stay
//! open, even if the correction is not understood. So it is withdrawn before any model reads the message.

use std::collections::BTreeSet;

use crate::cluster::likeness;
use crate::command::Command;
use crate::conversation::{Conversation, Requested};

use super::answers;
use super::plan;
use super::words::{Act, Lexicon, Reading, changes_ruled_out, read};

/// Phrases that take a request back, wherever they are in a message.
const CANCELS: [&str; 37] = [
    "forget both",
    "forget them",
    "forget all",
    "forget about it",
    "forget about that",
    "drop both",
    "drop them",
    "drop all",
    "neither of them",
    "none of them please",
    "cancel",
    "cancel that",
    "abort",
    "withdraw",
    "revoke",
    "call it off",
    "scratch that",
    "forget it",
    "forget that",
    "never mind",
    "nevermind",
    "drop that request",
    "drop the request",
    "take that back",
    "on second thought",
    "second thoughts",
    "dont do it",
    "dont do that",
    "do not do that",
    "dont run it",
    "no dont",
    "wait dont",
    "please dont",
    "hold off",
    "leave it",
    "leave it alone",
    "undo the request",
];
/// Words that a correction begins with, without repeated letters, so that "oops", "ooops" and "sorrry" are found.
const BEGINNINGS: [&str; 29] = [
    "no", "nop", "nope", "nah", "na", "wait", "wrong", "ops", "wops", "whops", "opsie", "ups", "upsi", "sory", "sry",
    "soz", "argh", "arg", "ugh", "shot", "stop", "hold", "actualy", "crap", "dang", "dont", "dam", "shit", "fuck",
];
/// Words before the first word of a message that count for nothing.
const OPENINGS: [&str; 6] = ["oh", "ah", "ahh", "hm", "hmm", "ok"];
/// The maximum number of words of a message that picks the object in another namespace.
const PICKING_WORDS: usize = 6;
/// Words of a correction, wherever they are.
const CORRECTS: [&str; 6] = ["meant", "wanted", "instead", "wrong", "rather", "mistake"];
/// Phrases that look like corrections, but are not.
const NO_CORRECTIONS: [&str; 12] = [
    "not sure",
    "actually thats fine",
    "actually its fine",
    "no problem",
    "no worries",
    "no rush",
    "no hurry",
    "wait for",
    "sorry for",
    "hold my",
    "no idea",
    "sorry about",
];

/// Whether a message cancels a request.
pub(super) fn cancels(reading: &Reading) -> bool {
    let is_negated = reading.says("dont cancel") || reading.says("do not cancel");
    let is_short = reading.words.len() <= 3 && (reading.says("drop it") || reading.says("drop that"));
    // "Bob says 2.3.0 leaks. Don't".
    let ends = reading.words.last().is_some_and(|word| matches!(&**word, "dont" | "stop"))
        || [
            "better not",
            "rather not",
            "lets not",
            "maybe not",
            "do not",
            "drop it",
            "drop that",
            "scrap that",
            "call it off",
        ]
        .iter()
        .any(|end| reading.words.join(" ").ends_with(end));
    // "Ok then no".
    let is_no =
        reading.words.len() <= 4 && reading.words.last().is_some_and(|word| matches!(&**word, "no" | "nope" | "nah"));
    !reading.is_question
        && !is_negated
        && (is_short || is_no || ends || CANCELS.iter().any(|phrase| reading.says(phrase)))
}

/// Whether a word is one that a correction begins with, in any spelling that repeats its letters.
pub(super) fn is_exclamation(word: &str) -> bool {
    let mut letters: Vec<char> = word.chars().collect();
    letters.dedup();
    let letters: String = letters.into_iter().collect();
    word.len() <= 9 && BEGINNINGS.contains(&&*letters)
}

/// Whether a message corrects the request before it.
fn corrects(reading: &Reading) -> bool {
    let asks = reading.is_question
        || reading.has_any(&[
            "what", "which", "how", "why", "who", "when", "where", "whats", "hows", "wheres", "whens", "show", "list",
            "describe", "logs",
        ]);
    let is_social =
        matches!(reading.act, Some(Act::Thanks | Act::Greeting | Act::Consent | Act::Outcome | Act::Capabilities));
    let first = reading.words.iter().find(|word| !OPENINGS.contains(&&***word));
    let excludes = first.is_some_and(|word| word == "not") && !reading.says("not yet");
    let begins = excludes || reading.words.iter().take(2).any(|word| is_exclamation(word));
    !asks
        && !is_social
        && !NO_CORRECTIONS.iter().any(|phrase| reading.says(phrase))
        && (begins || reading.has_any(&CORRECTS))
}

/// Returns the turns whose requests a message takes back, corrects or makes again. `replaces` says whether a new request for the same
/// object replaces the one before.
pub(crate) fn taken_back(message: &str, conversation: &Conversation, replaces: bool) -> BTreeSet<String> {
    let waiting: Vec<&Requested> = answers::all_pending(conversation);
    let Some(newest) = waiting.last().map(|requested| requested.turn.clone()) else { return BTreeSet::new() };
    let reading = read(message, &Lexicon::of(conversation));
    // "Ok no rollback, set it to api:5.1 instead", also after a look at something.
    let ruled_out = changes_ruled_out(message);
    let is_ruled_out = |requested: &&&Requested| {
        let name = requested.command.name.as_deref().unwrap_or_default();
        let has_name = reading.names.iter().any(|own| likeness(name, own).is_some());
        ruled_out.contains(&requested.command.verb) && (reading.names.is_empty() || has_name)
    };
    let turns: BTreeSet<String> = waiting.iter().filter(is_ruled_out).map(|requested| requested.turn.clone()).collect();
    if !turns.is_empty() {
        return turns;
    }
    let is_newest = conversation.earlier.last().is_some_and(|last| !last.requested.is_empty());
    // "Don't touch web": the requests for it; another object changes nothing.
    let is_about_object = !reading.names.is_empty() || reading.namespace.is_some();
    if reading.forbids() && is_about_object && !cancels(&reading) {
        return cancelled(&reading, &waiting, String::new()).into_iter().filter(|turn| !turn.is_empty()).collect();
    }
    if cancels(&reading) {
        return cancelled(&reading, &waiting, newest);
    }
    // "Leave mail alone", "skip web".
    let is_spared = |requested: &&&Requested| {
        let name = requested.command.name.as_deref().unwrap_or_default();
        let is_article = |word: &&String| matches!(&***word, "the" | "that" | "about" | "out");
        let words: Vec<&String> = reading.words.iter().filter(|word| !is_article(word)).collect();
        words.windows(2).any(|pair| {
            matches!(&**pair[0], "leave" | "skip" | "drop" | "forget" | "exclude" | "spare")
                && likeness(name, pair[1]).is_some_and(|fit| fit < 3)
        })
    };
    let spared: BTreeSet<String> = waiting.iter().filter(is_spared).map(|requested| requested.turn.clone()).collect();
    if !spared.is_empty() && !reading.is_question && reading.change_verbs().is_empty() {
        return spared;
    }
    // "The staging one", after a request in another namespace.
    let is_elsewhere = |requested: &&Requested| {
        reading
            .namespace
            .as_ref()
            .is_some_and(|there| requested.command.namespace.as_ref().is_some_and(|own| own != there))
    };
    let picks_namespace = reading.has("one") && reading.words.len() <= PICKING_WORDS && !reading.is_question;
    if is_newest && picks_namespace && reading.verb.is_none_or(|verb| verb.is_read() && reading.is_implied) {
        let elsewhere = waiting.iter().filter(|requested| requested.turn == newest).copied();
        if elsewhere.clone().next().is_some() && elsewhere.clone().all(|requested| is_elsewhere(&requested)) {
            return elsewhere.map(|requested| requested.turn.clone()).collect();
        }
    }
    // "I wanted fin-test", after a question.
    let is_strong = reading.has_any(&["meant", "wanted", "wrong", "mistake"]) && corrects(&reading);
    if (is_newest || is_strong) && corrects(&reading) || plan::amends(message, conversation) {
        return [newest].into();
    }
    if !replaces {
        return BTreeSet::new();
    }
    let planned = plan::planned_changes(message, conversation);
    // "Set it to api:5.1 instead" replaces any other change of the object.
    let is_instead = reading.has_any(&["instead", "rather"]) && !reading.is_question;
    let is_same = |requested: &&&Requested| {
        let command = &requested.command;
        planned.iter().any(|new| {
            (&new.kind, &new.name, &new.namespace) == (&command.kind, &command.name, &command.namespace)
                && (new.verb == command.verb && !adds_values(new, command) || is_instead)
        })
    };
    waiting.iter().filter(is_same).map(|requested| requested.turn.clone()).collect()
}

/// "Also team=net": a label beside that of another request, which stays.
fn adds_values(new: &Command, requested: &Command) -> bool {
    !new.values.is_empty() && !new.values.keys().any(|name| requested.values.contains_key(name))
}

/// "Accounts stays", "keep accounts": an object whose request a cancellation does not mean.
fn stays(reading: &Reading, name: &str) -> bool {
    reading.words.windows(2).any(|pair| {
        pair[0] == name && matches!(&*pair[1], "stays" | "stay" | "remains")
            || pair[1] == name && matches!(&*pair[0], "keep" | "leave" | "not")
    })
}

/// Returns the turns of the requests that a cancellation means: those of the objects that it names, all of them, or the newest.
fn cancelled(reading: &Reading, waiting: &[&Requested], newest: String) -> BTreeSet<String> {
    let is_named = |requested: &&&Requested| {
        let command = &requested.command;
        let name = command.name.as_deref().unwrap_or_default();
        reading.names.iter().any(|own| likeness(name, own).is_some() && !stays(reading, own))
            || reading.namespace.is_some() && reading.namespace == command.namespace
            || reading.mentions(command.verb)
    };
    let named: BTreeSet<String> = waiting.iter().filter(is_named).map(|requested| requested.turn.clone()).collect();
    let is_all = reading.each || reading.has_any(&["all", "everything", "requests", "both"]);
    match named.is_empty() {
        true if is_all => waiting.iter().map(|requested| requested.turn.clone()).collect(),
        true => [newest].into(),
        false => named,
    }
}

#[cfg(test)]
mod tests {
    use threadkeep::agent::ApprovalState;

    use super::*;
    use crate::command::Verb;
    use crate::conversation::Exchange;

    #[test]
    fn cancellations_and_corrections_take_a_request_back() {
        let command = Command::new(Verb::Delete).on("pods", "web-1", Some("prod"));
        let requested = vec![Requested { command, state: ApprovalState::Pending, turn: "t1".to_owned(), by: None }];
        let conversation = Conversation {
            namespaces: vec!["prod".to_owned(), "staging".to_owned()],
            earlier: vec![Exchange { said: "delete web-1".to_owned(), requested, ..Exchange::default() }],
            ..Conversation::default()
        };
        for message in [
            "wait no dont",
            "cancel the delete",
            "no, the other",
            "on second thought drop that request",
            "oops wrong pod",
            "never mind",
            "hmm bob says 2.3.0 leaks. don't",
            "the db is busy, better not",
            "on reflection lets not",
            "sry not prod, staging",
            "oh not prod",
            "the staging one",
            "sorry the one in staging",
        ] {
            assert!(!taken_back(message, &conversation, true).is_empty(), "{message}");
        }
        for message in [
            "wait, what pods are in there?",
            "did it work?",
            "no worries",
            "is it approved?",
            "yes go ahead",
            "thanks",
            "how many are there",
            "restart web",
            "the prod one",
        ] {
            assert!(taken_back(message, &conversation, true).is_empty(), "{message}");
        }
        assert!(taken_back("cancel", &Conversation::default(), true).is_empty());
    }
}
