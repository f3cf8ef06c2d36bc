//! Separates the public-transport lines that the text names from its other words.

use super::Vocabulary;
use super::spelling::Spelling;
use crate::network::Network;

/// The lines and the other words of the text.
#[derive(Debug)]
pub(super) struct Phrase {
    /// The public names of lines.
    pub(super) lines: Vec<String>,
    pub(super) words: Vec<Spelling>,
    /// The words without spaces.
    pub(super) joined: Spelling,
    generic_words: &'static [&'static str],
}

impl Phrase {
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own.text == word)
    }

    pub(super) fn is_generic(&self, word: &str) -> bool {
        self.generic_words.contains(&word)
    }

    pub(super) fn new(text: &str, network: &Network, vocabulary: &Vocabulary) -> Self {
        let raw = raw_words(text);
        let find_line = |word: &str| {
            network.lines.iter().find(|line| line.name.eq_ignore_ascii_case(word)).map(|line| line.name.clone())
        };
        let mut lines = Vec::new();
        let mut is_line = vec![false; raw.len()];
        for (at, word) in raw.iter().enumerate() {
            if let Some(line) = find_line(word)
                && refers_to_a_line(&raw, at, |word| find_line(word).is_some(), vocabulary)
            {
                is_line[at] = true;
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        let rest: Vec<&str> =
            raw.iter().zip(&is_line).filter(|(_, is_line)| !**is_line).map(|(word, _)| word.as_str()).collect();
        let words = normalise(&rest, vocabulary);
        let joined = Spelling::new(words.concat());
        let words = words.into_iter().map(Spelling::new).collect();
        Self { lines, words, joined, generic_words: vocabulary.generic_words }
    }
}

/// Whether a word that is also a line's name refers to the line here: "the 6", "6 train", or line
/// names at the end of the text.
fn refers_to_a_line(raw: &[String], at: usize, is_line: impl Fn(&str) -> bool, vocabulary: &Vocabulary) -> bool {
    let next = raw.get(at + 1).map(String::as_str);
    let before = at.checked_sub(1).map(|before| raw[before].as_str());
    let is_line_noun = |word: Option<&str>| {
        word.is_some_and(|word| matches!(word, "train" | "trains" | "line" | "lines" | "platform"))
    };
    let run_end = (at..raw.len()).find(|index| !is_line(&raw[*index]) && raw[*index] != "and").unwrap_or(raw.len());
    let before_run = (0..at).rev().find(|index| !is_line(&raw[*index]) && raw[*index] != "and");
    let introduces = |word: &str| matches!(word, "the" | "on" | "by" | "via" | "train" | "line");
    let is_introduced = before_run.is_some_and(|index| introduces(&raw[index]));
    let is_street = next.is_some_and(|next| {
        let normal = normalise_word(next, vocabulary);
        vocabulary.generic_words.contains(&normal.as_str())
    });
    if is_line_noun(raw.get(run_end).map(String::as_str)) || is_introduced && !is_street {
        return true;
    }
    // At the end, after a possible name: "canal st a c e", but not "avenue j".
    let is_lettered_avenue = at == 1 && before.is_some_and(|before| matches!(before, "avenue" | "ave" | "av"));
    run_end == raw.len() && before_run.is_some() && !is_lettered_avenue
}

/// Returns the normalised words of the text.
pub(super) fn words_of(text: &str, vocabulary: &Vocabulary) -> Vec<String> {
    let raw = raw_words(text);
    normalise(&raw.iter().map(String::as_str).collect::<Vec<_>>(), vocabulary)
}

fn raw_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace(['\'', '’', '.'], "").replace('&', " and ");
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn normalise(raw: &[&str], vocabulary: &Vocabulary) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    // The hundreds and tens of a number that is spelled out.
    let mut larger: Option<u32> = None;
    for (at, word) in raw.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| below_twenty(raw[at])).filter(|count| *count < 10);
        if matches!(*word, "hundred" | "hundredth") {
            words.extend(larger.take().map(|number| number.to_string()));
            // "One hundred"
            larger = Some(before.filter(|_| words.pop().is_some()).unwrap_or(1) * 100);
            continue;
        }
        if let Some(value) = tens_of(word) {
            let hundreds = larger.filter(|number| number % 100 == 0);
            words.extend(larger.filter(|_| hundreds.is_none()).map(|number| number.to_string()));
            larger = Some(hundreds.unwrap_or(0) + value);
            continue;
        }
        let normal = match (larger.take(), below_twenty(word)) {
            (Some(larger), Some(ones)) if ones < 10 || larger % 100 == 0 => (larger + ones).to_string(),
            (larger, ones) => {
                words.extend(larger.map(|number| number.to_string()));
                ones.map_or_else(|| normalise_word(word, vocabulary), |ones| ones.to_string())
            }
        };
        words.push(normal);
    }
    words.extend(larger.map(|number| number.to_string()));
    words.retain(|word| !vocabulary.fillers.contains(&word.as_str()));
    words
}

fn normalise_word(word: &str, vocabulary: &Vocabulary) -> String {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if !digits.is_empty() && matches!(&word[digits.len()..], "st" | "nd" | "rd" | "th") {
        return digits.to_owned();
    }
    let normal = vocabulary.spellings.iter().find(|(from, _)| *from == word);
    normal.map_or(word, |(_, to)| to).to_owned()
}

fn below_twenty(word: &str) -> Option<u32> {
    const ORDINALS: [&str; 19] = [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
    ];
    const CARDINALS: [&str; 19] = [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    let position_in = |list: &[&str]| list.iter().position(|known| *known == word);
    position_in(&ORDINALS).or_else(|| position_in(&CARDINALS)).and_then(|index| u32::try_from(index + 1).ok())
}

fn tens_of(word: &str) -> Option<u32> {
    const TENS: [(&str, &str); 8] = [
        ("twenty", "twentieth"),
        ("thirty", "thirtieth"),
        ("forty", "fortieth"),
        ("fifty", "fiftieth"),
        ("sixty", "sixtieth"),
        ("seventy", "seventieth"),
        ("eighty", "eightieth"),
        ("ninety", "ninetieth"),
    ];
    let index = TENS.iter().position(|(cardinal, ordinal)| *cardinal == word || *ordinal == word)?;
    u32::try_from(index + 2).ok().map(|tens| tens * 10)
}
