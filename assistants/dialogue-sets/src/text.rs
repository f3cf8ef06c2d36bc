//! Compares texts. Differences in case, accents and typography are ignored, and numbers may be words or digits.

/// Text with its words normalized.
pub(crate) struct NormalizedText {
    text: String,
    /// The text with plain punctuation but its original case, to match single capital letters.
    cased: String,
}

const NUMBERS: [(&str, &str); 24] = [
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("dos", "2"),
    ("tres", "3"),
    ("cuatro", "4"),
    ("cinco", "5"),
    ("seis", "6"),
    ("siete", "7"),
    ("ocho", "8"),
    ("nueve", "9"),
    ("diez", "10"),
    ("once", "11"),
    ("doce", "12"),
    ("uno", "1"),
    ("una", "1"),
];

impl NormalizedText {
    pub(crate) fn new(text: &str) -> Self {
        let cased = plain_punctuation(text);
        Self { text: normalize(&cased), cased }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether the text contains a phrase. A phrase that begins with a letter or digit matches only at the start of a
    /// word; a phrase of one or two characters matches only a whole word; a single capital letter matches only a
    /// capital.
    pub(crate) fn contains(&self, phrase: &str) -> bool {
        let plain = plain_punctuation(phrase);
        let mut characters = plain.chars();
        if let (Some(only), None) = (characters.next(), characters.next())
            && only.is_uppercase()
        {
            return occurs(&self.cased, &plain, true);
        }
        let normalized = normalize(&plain);
        occurs(&self.text, &normalized, normalized.chars().count() <= 2)
    }

    pub(crate) fn position(&self, phrase: &str) -> Option<usize> {
        self.text.find(&normalize(&plain_punctuation(phrase)))
    }
}

fn occurs(text: &str, phrase: &str, whole_word: bool) -> bool {
    let starts_with_word_char = phrase.starts_with(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let is_start = !starts_with_word_char || !before.is_some_and(char::is_alphanumeric);
        let is_end = !whole_word || !after.is_some_and(char::is_alphanumeric);
        is_start && is_end
    })
}

fn plain_punctuation(text: &str) -> String {
    let replaced = text.chars().map(|character| match character {
        '‘' | '’' | '‚' => '\'',
        '“' | '”' | '„' | '«' | '»' => '"',
        '–' | '—' | '‑' => '-',
        '\u{a0}' | '\u{202f}' => ' ',
        other => other,
    });
    replaced.collect()
}

/// Returns the text in lower case without accents, with number words replaced by digits, and every word that means
/// minutes by `min`.
fn normalize(text: &str) -> String {
    let mut normalized = String::with_capacity(text.len());
    let mut word = String::new();
    for character in text.chars() {
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase().map(unaccented));
        } else {
            push_word(&mut normalized, &mut word);
            match character {
                '&' => normalized.push_str("and"),
                other => normalized.push(other),
            }
        }
    }
    push_word(&mut normalized, &mut word);
    normalized
}

fn push_word(text: &mut String, word: &mut String) {
    let number = NUMBERS.iter().find(|(name, _)| name == word).map(|(_, digits)| *digits);
    match word.as_str() {
        "mins" | "minute" | "minutes" | "minuto" | "minutos" => text.push_str("min"),
        other => text.push_str(number.unwrap_or(other)),
    }
    word.clear();
}

fn unaccented(character: char) -> char {
    match character {
        'á' | 'à' | 'â' | 'ä' | 'ã' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ó' | 'ò' | 'ô' | 'ö' | 'õ' => 'o',
        'ú' | 'ù' | 'û' | 'ü' => 'u',
        'ñ' => 'n',
        'ç' => 'c',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_match_at_the_start_of_words() {
        let text = NormalizedText::new("Take the A: “three minutes” to Embankment & 13 mins more. Córdoba’s");
        for present in ["3 min", "the A", "A", "embankment and 13 min", "cordoba's", "13"] {
            assert!(text.contains(present), "{present}");
        }
        for absent in ["bank", "B", "1", "T", "3 more"] {
            assert!(!text.contains(absent), "{absent}");
        }
    }
}
