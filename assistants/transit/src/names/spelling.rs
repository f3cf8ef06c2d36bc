//! Compares spellings. Every phrase is compared with all names of a network, so most differences are recognised without computing an edit
//! distance.

/// A text, with what is needed to compare its spelling.
#[derive(Debug)]
pub(super) struct Spelling {
    pub(super) text: String,
    /// The set of its characters, each as one of 32 bits.
    characters: u32,
    length: usize,
    pub(super) letter_count: usize,
    has_digit: bool,
    /// How it sounds; empty if it is too short to compare words by it.
    sound: String,
}

impl Spelling {
    pub(super) fn new(text: String) -> Self {
        let (mut characters, mut length, mut letter_count) = (0, 0, 0);
        for c in text.chars() {
            characters |= 1 << (u32::from(c) % u32::BITS);
            length += 1;
            letter_count += usize::from(c.is_alphabetic());
        }
        let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
        let sound = if has_digit { String::new() } else { sound_of(&text) };
        let sound = if sound.len() < MIN_SOUND { String::new() } else { sound };
        Self { text, characters, length, letter_count, has_digit, sound }
    }

    /// Whether a word equals a known word except for spelling mistakes. Numbers have to be equal.
    pub(super) fn is_misspelt(&self, known: &Self) -> bool {
        let allowed = match self.length.min(known.length) {
            0..=3 => 0,
            4..=7 => 1,
            _ => 2,
        };
        self.text == known.text
            || !self.sound.is_empty() && self.sound == known.sound
            || allowed > 0 && !self.has_digit && !known.has_digit && self.is_within(known, allowed)
    }

    /// Whether at most `distance` edits lead from one text to the other.
    pub(super) fn is_within(&self, other: &Self, distance: usize) -> bool {
        self.least_distance(other) <= distance && strsim::osa_distance(&self.text, &other.text) <= distance
    }

    /// Returns a lower bound of the edit distance: an edit changes the length by at most one, and adds or removes at most one character.
    fn least_distance(&self, other: &Self) -> usize {
        let missing_here = (other.characters & !self.characters).count_ones();
        let missing_there = (self.characters & !other.characters).count_ones();
        self.length.abs_diff(other.length).max(missing_here.max(missing_there) as usize)
    }
}

/// The minimum length of a sound that is compared: "delays" is not "Dollis".
const MIN_SOUND: usize = 6;

/// Returns how a word sounds, roughly: consonants that sound the same are equal, and so are all vowels. "Brikston" sounds like "Brixton".
fn sound_of(text: &str) -> String {
    let text = text.replace("ck", "k").replace('x', "ks").replace("ph", "f").replace("qu", "kw");
    let letters: Vec<char> = text.chars().collect();
    let mut sound = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let next = letters.get(at + 1).copied().unwrap_or(' ');
        let heard = match letter {
            'a' | 'e' | 'i' | 'o' | 'u' | 'y' => 'a',
            'c' if matches!(next, 'e' | 'i' | 'y') => 's',
            'c' => 'k',
            'z' => 's',
            'h' if at > 0 => continue,
            other => *other,
        };
        if !sound.ends_with(heard) {
            sound.push(heard);
        }
    }
    sound
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_words_may_have_more_mistakes() {
        for (word, known, expected) in [
            ("canl", "canal", true),
            ("cna", "can", false),
            ("brodway", "broadway", true),
            ("brdway", "broadway", false),
            ("metropolitn", "metropolitan", true),
            ("metroplitn", "metropolitan", true),
            ("metroplit", "metropolitan", false),
            ("brikston", "brixton", true),
            ("padingtun", "paddington", true),
            ("delays", "dollis", false),
            ("st12345", "st12346", false),
            ("12", "12", true),
        ] {
            let (word, known) = (Spelling::new(word.to_owned()), Spelling::new(known.to_owned()));
            assert_eq!(word.is_misspelt(&known), expected, "{word:?} {known:?}");
        }
    }

    proptest! {
        #[test]
        fn the_lower_bound_is_never_above_the_distance(one in "[a-eé ]{0,9}", other in "[a-eé ]{0,9}") {
            let distance = strsim::osa_distance(&one, &other);
            prop_assert!(Spelling::new(one).least_distance(&Spelling::new(other)) <= distance);
        }
    }
}
