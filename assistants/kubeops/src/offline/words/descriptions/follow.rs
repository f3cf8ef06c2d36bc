//! What follows the noun of a description: a place, a node, a program, or a clause that says more of the object.

use crate::kinds::kind_word;
use crate::offline::words::arguments::number_of;
use crate::offline::words::vocabulary::is_ordinary;
use crate::offline::words::{Lexicon, read};

use super::{Description, MAX_CLAUSE, Words, is_name_of};

/// Reads what follows the noun, and returns where it ends.
pub(super) fn follow(words: &Words<'_>, start: usize, found: &mut Description, lexicon: &Lexicon) -> usize {
    let word = words.word(start);
    let end = clause_end(words, start);
    match word {
        "in" | "on" | "from" | "of" | "at" if end > start => place_or_list(words, start, found, lexicon),
        "with" | "running" | "using" => version(words, start + 1, found)
            .or_else(|| program(words, start + 1, found, lexicon))
            .unwrap_or_else(|| clause(words, start, end, found, lexicon)),
        "that" | "which" | "thats" | "who" | "whos" | "without" | "having" | "not" | "isnt" => {
            clause(words, start, end, found, lexicon)
        }
        "i" | "we" | "you" | "u" => asked_for(words, start, end, found, lexicon),
        _ => start,
    }
}

/// Returns where the clause that begins at a word ends.
pub(super) fn clause_end(words: &Words<'_>, start: usize) -> usize {
    let mut at = start;
    while at < words.raw.len() && at - start < MAX_CLAUSE {
        // "The one with 4 replicas down to 2".
        let is_direction = matches!(words.word(at), "down" | "up" | "back") && words.word(at + 1) == "to";
        // "The one I wanted to scale".
        let is_wish = at > start && matches!(words.word(at - 1), "wanted" | "tried" | "meant" | "you");
        if at > start && (is_direction || words.word(at) == "to" && !is_wish) {
            return at;
        }
        if at > start
            && matches!(words.word(at), "and" | "then" | "please" | "pls" | "first" | "instead" | "but" | "again")
        {
            return at;
        }
        if words.ends_clause(at) {
            return at + 1;
        }
        at += 1;
    }
    at
}

/// "On the crm list", "in staging", "on 8.0.1".
fn place_or_list(words: &Words<'_>, start: usize, found: &mut Description, lexicon: &Lexicon) -> usize {
    let at = start + 1 + usize::from(matches!(words.word(start + 1), "the" | "that" | "your"));
    let (word, next) = (words.word(at), words.word(at + 1));
    let is_list = |word: &str| matches!(word, "list" | "listing");
    if is_list(word) {
        return at + 1;
    }
    let is_of_kind = kind_word(next).is_some() && is_list(words.word(at + 2));
    if (is_list(next) || is_of_kind) && !words.ends_clause(at) {
        found.list = Some(word.to_owned());
        return at + 2 + usize::from(is_of_kind);
    }
    // "The older of the two".
    if words.word(start) == "of" {
        let is_count = matches!(word, "two" | "three" | "those" | "them" | "these" | "both");
        if !is_count || words.word(start + 1) == "that" {
            return start;
        }
        found.count = match word {
            "two" | "both" => Some(2),
            "three" => Some(3),
            _ => None,
        };
        return at + 1;
    }
    if let Some(end) = version(words, start + 1, found).filter(|_| matches!(words.word(start), "on" | "at")) {
        return end;
    }
    if words.word(start) == "on" && is_node_like(word, lexicon) {
        found.node = Some(word.to_owned());
        return at + 1;
    }
    let is_alone = words.ends_clause(at) || !matches!(next, "namespace" | "ns");
    if words.word(start) == "on"
        && at == start + 1
        && let Some(end) = program(words, at, found, lexicon)
    {
        return end;
    }
    match words.word(start) {
        "in" | "from" | "on" if at == start + 1 && lexicon.has_namespace(word) && is_alone => {
            found.place = Some(word.to_owned());
            at + 1
        }
        _ => start,
    }
}

/// Whether a word after "on" is the name of a node, also of one that does not exist.
pub(super) fn is_node_like(word: &str, lexicon: &Lexicon) -> bool {
    let looks_like_node = word.contains('-') && !word.contains(['.', ':', '/']);
    !lexicon.has_namespace(word) && (lexicon.has(word) || looks_like_node)
}

/// "On 8.0.1", "running web:1.2": a version or an image.
fn version(words: &Words<'_>, at: usize, found: &mut Description) -> Option<usize> {
    let word = words.word(at);
    let is_version = word.contains('.') && word.chars().any(|c| c.is_ascii_digit()) || word.contains(':');
    if !is_version {
        return None;
    }
    found.words.push(word.to_owned());
    Some(at + 1)
}

/// "On redis", "running redis": the program of the image.
fn program(words: &Words<'_>, at: usize, found: &mut Description, lexicon: &Lexicon) -> Option<usize> {
    let word = words.word(at);
    let ends =
        words.ends_clause(at) || matches!(words.word(at + 1), "" | "too" | "also" | "please" | "pls" | "to" | "and");
    let is_program = word.len() > 2
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && number_of(word).is_none()
        && !is_ordinary(word)
        && kind_word(word).is_none()
        && !lexicon.has_namespace(word)
        && lexicon.namespace_like(word).is_none();
    (ends && is_program && lexicon.is_complete()).then(|| {
        found.words.push(word.to_owned());
        at + 1
    })
}

/// "That isn't ready", "with 4 restarts", "that's not a tmp", "that isn't".
fn clause(words: &Words<'_>, start: usize, end: usize, found: &mut Description, lexicon: &Lexicon) -> usize {
    let said = &words.plain[start..end];
    let rest: Vec<&str> = said.iter().map(String::as_str).collect();
    match rest[..] {
        ["that" | "which" | "who", "isnt" | "arent" | "doesnt" | "hasnt" | "didnt" | "wasnt"]
        | ["thats" | "whos", "not"]
        | ["that" | "which" | "who", "is" | "does", "not"] => {
            found.is_opposite = true;
            return end;
        }
        // "The one without -deployment at the end".
        ["without", word, "at" | "in", "the", "end" | "name"] if word.len() > 2 => {
            found.without.push(word.trim_start_matches('-').to_owned());
            return end;
        }
        ["thats" | "whos", "not", "a" | "an", word] | ["that" | "which", "isnt", "a" | "an", word]
            if is_name_of(word, lexicon) =>
        {
            found.without.push(word.to_owned());
            return end;
        }
        _ => {}
    }
    // "The pod that we looked at".
    if matches!(rest[..], ["that" | "which", "i" | "we" | "you" | "u", ..]) {
        return asked_for(words, start + 1, end, found, lexicon);
    }
    let state = read(&format!("describe the one {}", rest.join(" ")), lexicon).state;
    let spells_name = rest.iter().any(|word| matches!(*word, "ends" | "starts" | "begins" | "called" | "named"));
    if state.is_none() && (words.word(start) == "with" || spells_name) {
        return start;
    }
    found.is_unclear = state.is_none();
    found.state = state.or(found.state);
    end
}

/// "I wanted to scale", "you were asked to restart".
fn asked_for(words: &Words<'_>, start: usize, end: usize, found: &mut Description, lexicon: &Lexicon) -> usize {
    // "The one I described before checkout": what came before another one is not known.
    let compares = (start..end).find(|at| matches!(words.word(*at), "before" | "after")).filter(|at| at + 1 < end);
    if let Some(at) = compares.filter(|at| is_name_of(words.word(at + 1), lexicon)) {
        found.is_unclear = true;
        return at + 2;
    }
    let is_wish = |word: &str| matches!(word, "wanted" | "asked" | "meant" | "tried" | "told");
    let Some(wish) = (start + 1..end.min(start + 3)).find(|at| is_wish(words.word(*at))) else { return start };
    let is_verb = |word: &str| {
        ["scale", "restart", "delete", "update", "describ", "rollback", "undo", "kill", "bounc"]
            .iter()
            .any(|stem| word.starts_with(stem))
    };
    let Some(verb) = (wish + 1..end).find(|at| is_verb(words.word(*at))) else { return start };
    found.asked_for = Some(words.word(verb).to_owned());
    verb + 1
}
