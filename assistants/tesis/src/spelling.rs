//! Corrects typos in legal terms and in words used to talk about sources.

use std::collections::HashSet;
use std::sync::LazyLock;

use threadkeep::core::text::content_terms;

use crate::clave::fold_text;
use crate::intent::words;
use crate::thesaurus;

/// The minimum number of letters of a word that can be misspelt.
const MIN_LETTERS: usize = 4;
/// The minimum number of letters of a word that is corrected to a legal term by one letter; shorter ones are often words in their
/// own right.
const MIN_LEGAL_LETTERS: usize = 6;

/// Returns a message with its misspelt words corrected. A word of the topic is not misspelt, and is preferred over a legal term.
pub(crate) fn corrected(message: &str, topic: &HashSet<String>) -> String {
    let mut result = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let length = rest[start..].find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len() - start);
        let word = &rest[start..start + length];
        result.push_str(&rest[..start]);
        match correct(word, topic) {
            Some(corrected) => result.push_str(corrected),
            None => result.push_str(word),
        }
        rest = &rest[start + length..];
    }
    result.push_str(rest);
    result
}

fn correct<'a>(typed: &str, topic: &'a HashSet<String>) -> Option<&'a str> {
    let word = fold_text(typed);
    let letters = word.chars().count();
    let is_word = word.chars().all(|c| c.is_ascii_lowercase());
    // A form of a word of the topic: `aportar` beside `aportarse`.
    let is_form = |known: &String| {
        letters > MIN_LETTERS && same_beginning(&word, known) && known.starts_with(&word[..letters - 1])
    };
    if !is_word || letters < MIN_LETTERS || topic.contains(&word) || topic.iter().any(is_form) || is_known(&word) {
        return None;
    }
    let of_topic = topic.iter().map(String::as_str).filter(|word| word.len() > MIN_LETTERS);
    nearest(&word, words::talk(), MIN_LETTERS)
        .or_else(|| nearest(&word, of_topic, MIN_LETTERS + 1))
        .or_else(|| nearest(&word, legal(), MIN_LEGAL_LETTERS))
}

/// Returns the word that sounds like a folded word, or else the only one that differs by a letter, if the word is long enough for that.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>, fewest: usize) -> Option<&'a str> {
    let (sound_of_word, letters) = (sound(word), word.len());
    let (mut by_sound, mut by_letter): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for known in known.filter(|known| known.as_bytes()[..1] == word.as_bytes()[..1] || sound(known) == sound_of_word) {
        // Many short words differ from another word by a letter, so only a missing one or two swapped ones count.
        let is_long = letters >= MIN_LEGAL_LETTERS || known.len() > letters || is_permuted(word, known);
        if sound(known) == sound_of_word {
            by_sound.push(known);
        } else if letters >= fewest && known.len() >= MIN_LETTERS && is_long && near(word, known) {
            by_letter.push(known);
        }
    }
    by_letter.sort_unstable();
    by_sound.into_iter().min().or(match by_letter.as_slice() {
        [first, others @ ..] if others.iter().all(|other| same_beginning(first, other)) => Some(*first),
        _ => None,
    })
}

fn legal() -> impl Iterator<Item = &'static str> {
    thesaurus::words().chain(words::LEGAL.iter().copied()).filter(|word| word.len() > MIN_LETTERS)
}

/// Whether the lists contain a folded word, or a form of it.
fn is_known(word: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| words::talk().chain(legal()).collect());
    let is_inflected = || {
        content_terms(word)
            .iter()
            .flat_map(|(_, stems)| stems)
            .any(|stem| words::is_legal_stem(stem) || thesaurus::has_stem(stem))
    };
    KNOWN.contains(word) || words::is_known(word) || is_inflected()
}

/// Whether two words have the same letters.
fn is_permuted(one: &str, other: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters: Vec<u8> = word.bytes().collect();
        letters.sort_unstable();
        letters
    };
    sorted(one) == sorted(other)
}

/// Whether two words begin alike, as forms of the same word do.
fn same_beginning(one: &str, other: &str) -> bool {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count() >= MIN_LETTERS
}

/// Returns the only legal term that differs from a folded word by a typo.
pub(crate) fn legal_correction(word: &str) -> Option<&'static str> {
    if is_known(word) {
        return None;
    }
    let mut near_words: Vec<&str> = legal().filter(|known| word.len() > MIN_LETTERS && near(word, known)).collect();
    near_words.sort_unstable();
    near_words.dedup();
    match near_words.as_slice() {
        [first, others @ ..] if others.iter().all(|other| same_beginning(first, other)) => Some(first),
        _ => None,
    }
}

/// Whether two words differ by one typo: a different, missing or additional letter, or two swapped letters.
fn near(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len().abs_diff(other.len()) > 1 || one == other {
        return false;
    }
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (rest, other_rest) = (&one[start..], &other[start..]);
    let is_swapped = || {
        rest.len() >= 2
            && rest.len() == other_rest.len()
            && rest[0] == other_rest[1]
            && rest[1] == other_rest[0]
            && rest[2..] == other_rest[2..]
    };
    match rest.len().cmp(&other_rest.len()) {
        std::cmp::Ordering::Equal => rest.get(1..) == other_rest.get(1..) || is_swapped(),
        std::cmp::Ordering::Less => Some(rest) == other_rest.get(1..),
        std::cmp::Ordering::Greater => rest.get(1..) == Some(other_rest),
    }
}

/// Returns a folded word as it sounds: `detaye` and `detalle`, `sensillo` and `sencillo` sound alike.
fn sound(word: &str) -> String {
    let letters: Vec<char> = word.chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or(' ');
    let mut sound = String::with_capacity(word.len());
    let mut index = 0;
    while index < letters.len() {
        let is_soft = |index: usize| matches!(at(index), 'e' | 'i');
        let (letter, length) = match (at(index), at(index + 1)) {
            ('c', 'h') => ('C', 2),
            ('h', _) => (' ', 1),
            ('l', 'l') => ('y', 2),
            ('q' | 'g', 'u') if is_soft(index + 2) => (if at(index) == 'q' { 'k' } else { 'g' }, 2),
            ('g', _) if is_soft(index + 1) => ('j', 1),
            ('c', _) if is_soft(index + 1) => ('s', 1),
            ('c' | 'q', _) => ('k', 1),
            ('v', _) => ('b', 1),
            ('z', _) => ('s', 1),
            ('m' | 'n', 'b' | 'v' | 'p') => ('m', 1),
            (letter, _) => (letter, 1),
        };
        if letter != ' ' && !sound.ends_with(letter) {
            sound.push(letter);
        }
        index += length;
    }
    sound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_corrected() {
        let topic = HashSet::from(["contratos".to_owned()]);
        for (typed, expected) in [
            ("mas detaye x favor", "mas detalle x favor"),
            ("pasame el regsitro", "pasame el registro"),
            ("¿es vincualnte?", "¿es vinculante?"),
            ("dame un ejmeplo", "dame un ejemplo"),
            ("cual me combiene", "cual me conviene"),
            ("que dcumentos", "que documentos"),
            ("amapro y prescripsion", "amparo y prescripcion"),
            ("los contatos", "los contratos"),
            ("Sentencia de la Niñez en 2023", "Sentencia de la Niñez en 2023"),
            ("asociaciones que impugnan obras", "asociaciones que impugnan obras"),
            ("¿eres un robot? pon música", "¿eres un robot? pon música"),
        ] {
            assert_eq!(corrected(typed, &topic), expected);
        }
    }

    #[test]
    fn a_legal_term_is_found_if_only_one_is_near() {
        for (word, expected) in [
            ("amapro", Some("amparo")),
            ("omicion", Some("omision")),
            ("prescripsion", Some("prescripcion")),
            ("usucapin", Some("usucapion")),
            ("amparo", None),
            ("zapato", None),
            ("caza", None),
        ] {
            assert_eq!(legal_correction(word), expected, "{word}");
        }
    }
}
