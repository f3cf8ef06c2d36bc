//! Prepares the text of a message: takes manifests, quotes and programs out, and splits it into words.

use super::{Lexicon, spelling, vocabulary};

/// Takes the manifest out of a message: a block of code that has a kind.
pub(super) fn take_manifest(text: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = text.splitn(3, "```").collect();
    if let [before, block, after] = parts[..]
        && block.contains("kind:")
    {
        let block = block.trim_start().strip_prefix("yaml").unwrap_or(block);
        return (format!("{before} {after}"), Some(block.trim().to_owned()));
    }
    (text.to_owned(), None)
}

/// Removes sentences in quotes: what a log or a person says is not a request.
pub(super) fn without_quotes(text: &str) -> String {
    let mut rest = text.replace(['“', '”'], "\"");
    while let Some((before, after)) = rest.split_once('"') {
        let Some((quoted, after)) = after.split_once('"') else { break };
        let inner = if quoted.split_whitespace().count() > 1 { "" } else { quoted };
        rest = format!("{before}{inner}{after}");
    }
    rest
}

/// Takes the program out of a message: what follows `--` in a line of `kubectl exec` without a terminal.
pub(super) fn take_program(text: &str) -> (String, Vec<String>) {
    let Some((line, program)) = text.split_once(" -- ") else { return (text.to_owned(), Vec::new()) };
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_exec = words.iter().any(|word| word.trim_matches('`').eq_ignore_ascii_case("exec"));
    let is_interactive = words.iter().any(|word| {
        matches!(*word, "--stdin" | "--tty")
            || word.strip_prefix('-').is_some_and(|flags| flags.contains(['i', 't']) && flags.len() <= 2)
    });
    if !is_exec || is_interactive {
        return (text.to_owned(), Vec::new());
    }
    let rest: Vec<&str> =
        words.into_iter().filter(|word| !word.trim_matches('`').eq_ignore_ascii_case("exec")).collect();
    let program = program.trim().trim_end_matches(['`', '?', '!']).split_whitespace();
    (rest.join(" "), program.map(str::to_owned).collect())
}

/// Returns the words of a command that is written with hyphens: "rollout-restart".
pub(super) fn words_of_verb(word: &str) -> Option<Vec<String>> {
    let phrase = word.to_lowercase().replace('-', " ");
    let is_verb = word.contains('-') && vocabulary::VERBS.iter().any(|(verb, _)| *verb == phrase);
    is_verb.then(|| phrase.split(' ').map(str::to_owned).collect())
}

/// Returns the word before a possessive ending: "prod" of "prod's". "It's" and "that's" are not possessives.
pub(super) fn without_possessive(word: &str) -> Option<&str> {
    const CONTRACTED: [&str; 26] = [
        "it",
        "that",
        "this",
        "what",
        "who",
        "where",
        "how",
        "there",
        "here",
        "he",
        "she",
        "let",
        "when",
        "why",
        "everything",
        "everyone",
        "everybody",
        "nothing",
        "something",
        "someone",
        "somebody",
        "nobody",
        "anything",
        "anyone",
        "one",
        "which",
    ];
    let stem = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"))?;
    (stem.len() > 1 && !CONTRACTED.contains(&&*stem.to_lowercase())).then_some(stem)
}

/// "The one that ends in q 7 m z d": joins letters that spell part of a name.
pub(super) fn with_letters_joined(words: Vec<String>) -> Vec<String> {
    let is_letter = |word: &String| word.len() == 1 && word.chars().all(|c| c.is_ascii_alphanumeric());
    let spells = words.iter().any(|word| {
        matches!(&*word.to_lowercase(), "ends" | "ending" | "starts" | "starting" | "begins" | "beginning" | "spelled")
    });
    if let Some(at) = words.iter().position(|word| matches!(&*word.to_lowercase(), "dash" | "hyphen"))
        && at > 0
        && at + 1 < words.len()
    {
        // "Media dash e u".
        let letters = words[at + 1..].iter().take_while(|word| is_letter(word)).count();
        let end = at + 1 + letters.max(1);
        let joined = format!("{}-{}", words[at - 1], words[at + 1..end].concat()).to_lowercase();
        return words[..at - 1].iter().cloned().chain([joined]).chain(words[end..].iter().cloned()).collect();
    }
    if !spells {
        return words;
    }
    let mut joined: Vec<String> = Vec::new();
    for group in words.chunk_by(|one, other| is_letter(one) && is_letter(other)) {
        if group.len() > 2 {
            joined.push(group.concat().to_lowercase());
        } else {
            joined.extend(group.iter().cloned());
        }
    }
    joined
}

/// Corrects the spelling of a command word.
pub(super) fn spelled(word: String, lexicon: &Lexicon) -> String {
    let lower = word.to_lowercase();
    if super::number_of(&lower).is_some() {
        return word;
    }
    if lexicon.is_complete() && lexicon.linked(&lower).is_some() || lexicon.has_namespace(&lower) {
        return word;
    }
    if let Some(known) = spelling::corrected(&lower) {
        return known.to_owned();
    }
    // If the names in the cluster are not known, the word may be one of them.
    let swapped = if lexicon.is_complete() { spelling::swapped(&lower) } else { None };
    swapped.unwrap_or(word)
}

/// Removes punctuation around a word.
pub(in crate::offline) fn clean(word: &str) -> String {
    let quotes = ['`', '"', '“', '”', '\'', '‘', '’', '*', '(', ')', '[', ']', '<', '>', '{', '}'];
    word.trim_matches(quotes).trim_end_matches(['.', ',', '?', '!', ';', ':', '…']).trim_matches(quotes).to_owned()
}
