//! Rewords requests to forget, and the confirmations of the lists of messages to erase.

use threadkeep::dialogue::Utterance;
use threadkeep::{ChatMessage, Role, Value};

use crate::erase_tools::FIND;

/// Words before a request or a confirmation that do not change it.
const OPENINGS: [&str; 24] = [
    "please", "pls", "right", "ok", "okay", "well", "so", "now", "then", "actually", "just", "and", "but", "oh", "hmm",
    "hey", "can", "could", "would", "you", "vale", "bueno", "oye", "y",
];
/// Verbs that erase, with their particles left out.
const ERASING: [&str; 21] = [
    "forget",
    "erase",
    "delete",
    "remove",
    "wipe",
    "scrap",
    "bin",
    "clear",
    "purge",
    "olvida",
    "borra",
    "elimina",
    "olvidalo",
    "borralo",
    "borrala",
    "borralos",
    "borralas",
    "eliminalo",
    "eliminala",
    "eliminalos",
    "eliminalas",
];
const AGREEING: [&str; 16] = [
    "yes",
    "yeah",
    "yep",
    "yup",
    "sure",
    "ok",
    "okay",
    "correct",
    "definitely",
    "absolutely",
    "confirmed",
    "confirm",
    "si",
    "claro",
    "adelante",
    "vale",
];

/// Returns the confirmation in "yes, get rid of it" and "yes all of it" after a list of messages to erase. A message with other words,
/// such as a condition, confirms nothing.
pub(super) fn confirmed(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    const OTHERS: [&str; 37] = [
        "get",
        "rid",
        "of",
        "it",
        "that",
        "them",
        "this",
        "these",
        "those",
        "all",
        "both",
        "everything",
        "please",
        "pls",
        "do",
        "go",
        "ahead",
        "the",
        "whole",
        "lot",
        "thing",
        "for",
        "good",
        "thanks",
        "thank",
        "you",
        "i",
        "am",
        "im",
        "out",
        "away",
        "my",
        "por",
        "favor",
        "todo",
        "hazlo",
        "want",
    ];
    let asked = earlier.iter().rposition(|message| message.role == Role::User)?;
    let call = earlier[asked..].iter().flat_map(ChatMessage::tool_calls).find(|call| call.name == FIND)?;
    let about = call.arguments.read::<Value>().ok()?["about"].as_str().map(str::to_lowercase).unwrap_or_default();
    let named = Utterance::new(about);
    let utterance = Utterance::new(message);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_named = |word: &str| named.words().iter().any(|named| named.folded == word);
    let is_known =
        |word: &&str| AGREEING.contains(word) || ERASING.contains(word) || OTHERS.contains(word) || is_named(word);
    let agrees =
        words.first().is_some_and(|first| AGREEING.contains(first) && !matches!(*first, "ok" | "okay" | "vale"));
    let erases = words.iter().any(|word| ERASING.contains(word)) || words.windows(2).any(|pair| pair == ["get", "rid"]);
    // "Ok, thanks" only acknowledges the list.
    let confirms = !message.contains('?') && (agrees || erases) && words.iter().all(is_known);
    confirms.then(|| "yes, delete it".to_owned())
}

/// Returns the request in "right, wipe everything you know about me" and "get rid of what I said about Ana".
pub(super) fn requested(message: &str) -> Option<String> {
    let utterance = Utterance::new(message);
    let words = utterance.words();
    let start = (0..words.len()).take_while(|at| OPENINGS.contains(&utterance.word(*at))).count();
    let covers_words = |at: usize| {
        matches!(utterance.word(at), "everything" | "all" | "anything" | "what" | "whatever" | "todo")
            && (at..words.len()).any(|at| {
                matches!(utterance.word(at), "know" | "said" | "told" | "mentioned" | "wrote" | "sabes" | "dije")
                    || at > 0 && utterance.word(at) == "me" && utterance.word(at - 1) == "about"
            })
    };
    let object = match utterance.word(start) {
        "get" if utterance.word(start + 1) == "rid" => start + 3,
        verb if ERASING.contains(&verb) => start + 1,
        _ => return None,
    };
    // "Forget Dana's ring size"
    let names_thing = start == 0
        && matches!(utterance.word(0), "forget" | "erase" | "delete")
        && words.get(object).is_some_and(|first| {
            let article = message[..first.span.start].trim_end().ends_with(['\'', '’']);
            let possessive = message[first.span.start..].split_whitespace().next().unwrap_or_default();
            !article && (possessive.ends_with("'s") || possessive.ends_with("’s") || is_possessive(&first.folded))
        });
    if names_thing && words.len() > object + 1 {
        return Some(format!("forget what I said about {}", &message[words[object].span.start..]));
    }
    // The verbs that "forget" does not already begin, and openings that would be taken for a condition
    let is_reworded = start > 0 || !matches!(utterance.word(0), "forget" | "erase" | "delete" | "remove");
    let rest = &message[words.get(object).filter(|_| is_reworded && covers_words(object))?.span.start..];
    let is_spanish = matches!(utterance.word(object), "todo");
    Some(format!("{} {rest}", if is_spanish { "olvida" } else { "forget" }))
}

/// Whether a word may be the possessive of a name, written without its apostrophe: "danas".
fn is_possessive(word: &str) -> bool {
    const OTHERS: [&str; 12] =
        ["this", "its", "his", "yes", "lists", "messages", "notes", "preferences", "things", "always", "units", "his"];
    word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !OTHERS.contains(&word)
}

#[cfg(test)]
mod tests {
    use threadkeep::{JsonText, Part, ToolCall};

    use super::*;

    #[test]
    fn lists_of_messages_to_erase_are_confirmed() {
        let arguments = JsonText::from(&serde_json::json!({"about": "side door code"}));
        let call = ToolCall { id: "c1".to_owned(), name: FIND.to_owned(), arguments };
        let list = ChatMessage { parts: vec![Part::ToolCall(call)], ..ChatMessage::text(Role::Assistant, "") };
        let earlier = [ChatMessage::text(Role::User, "forget the side door code"), list];
        for message in [
            "yes, get rid of it",
            "yes all of it",
            "yes please, delete",
            "yep, bin the side door code",
            "delete it please",
            "sí, bórrala",
        ] {
            assert_eq!(confirmed(message, &earlier).as_deref(), Some("yes, delete it"), "{message}");
            assert_eq!(confirmed(message, &earlier[..1]), None, "{message}");
        }
        for message in ["yes but not the front one", "ok thanks", "delete the front one", "no", "is it deleted?"] {
            assert_eq!(confirmed(message, &earlier), None, "{message}");
        }
    }

    #[test]
    fn requests_to_forget_what_was_said_are_reworded() {
        for (message, expected) in [
            ("right, wipe everything you know about me", Some("forget everything you know about me")),
            ("get rid of what I said about Ana", Some("forget what I said about Ana")),
            ("forget danas ring size pls", Some("forget what I said about danas ring size pls")),
            ("forget Dana's ring size", Some("forget what I said about Dana's ring size")),
            ("forget the table", None),
            ("wipe the table", None),
            ("wipe all the crumbs off for me", None),
            ("clear all the plates", None),
            ("delete everything I said", None),
        ] {
            assert_eq!(requested(message).as_deref(), expected, "{message}");
        }
    }
}
