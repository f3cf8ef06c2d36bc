//! Wraps text that arrives in pieces.

use unicode_width::UnicodeWidthStr;

/// Breaks lines between words. Buffers a word until it is complete, so that it is never split.
#[derive(Debug, Default)]
pub(crate) struct WordWrap {
    /// The width of a line; `None` disables wrapping.
    columns: Option<usize>,
    /// The number of columns used in the current line.
    used: usize,
    /// The white space after the last word. Written only if another word follows on the same line.
    space: String,
    /// The incomplete word.
    word: String,
}

impl WordWrap {
    pub(crate) fn new(columns: Option<usize>) -> Self {
        Self { columns, ..Self::default() }
    }

    /// Adds a piece of the text. Returns the output that is ready.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if self.columns.is_none() {
            return piece.to_owned();
        }
        let mut out = String::new();
        for c in piece.chars() {
            match c {
                '\n' => {
                    self.end_word(&mut out);
                    self.space.clear();
                    self.used = 0;
                    out.push('\n');
                }
                c if c.is_whitespace() => {
                    self.end_word(&mut out);
                    self.space.push(c);
                }
                c => self.word.push(c),
            }
        }
        out
    }

    /// Returns the buffered remainder, and resets the wrapper for a new text.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.end_word(&mut out);
        *self = Self::new(self.columns);
        out
    }

    fn end_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (space, word) = (std::mem::take(&mut self.space), std::mem::take(&mut self.word));
        let (space_width, word_width) = (space.width(), word.width());
        let is_over = self.columns.is_some_and(|columns| self.used + space_width + word_width > columns);
        if is_over && self.used > 0 {
            out.push('\n');
            self.used = word_width;
        } else {
            out.push_str(&space);
            self.used += space_width + word_width;
        }
        out.push_str(&word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Take the D to 161 St.\n  - step-free: yes\n\nAuthorization/Konfiguration 地铁 地铁站 end ";

    fn wrapped(columns: Option<usize>, pieces: impl Iterator<Item = String>) -> String {
        let mut wrap = WordWrap::new(columns);
        let mut out: String = pieces.map(|piece| wrap.push(&piece)).collect();
        out.push_str(&wrap.finish());
        out
    }

    #[test]
    fn wrapping_does_not_depend_on_how_the_text_is_split() {
        let whole = wrapped(Some(12), std::iter::once(TEXT.to_owned()));
        assert_eq!(
            whole,
            "Take the D\nto 161 St.\n  -\nstep-free:\nyes\n\nAuthorization/Konfiguration\n地铁 地铁站\nend"
        );
        for size in 1..8 {
            let chars: Vec<char> = TEXT.chars().collect();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect());
            assert_eq!(wrapped(Some(12), pieces), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn text_is_unchanged_without_a_width() {
        assert_eq!(wrapped(None, std::iter::once(TEXT.to_owned())), TEXT);
    }
}
