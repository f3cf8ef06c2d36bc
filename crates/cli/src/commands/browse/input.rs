//! A line of text that the user edits: the query, or the name of a file.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum number of characters, far more than any query or path.
const MAX_CHARS: usize = 2_000;

/// Text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    text: String,
    /// A byte position at the boundary of a character.
    cursor: usize,
}

impl Input {
    /// Creates an input with the cursor at the end.
    pub(super) fn new(text: &str) -> Self {
        let mut input = Self::default();
        input.insert(text);
        input
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_cursor_at_end(&self) -> bool {
        self.cursor == self.text.len()
    }

    /// Inserts text at the cursor. Line breaks and other control characters become spaces.
    pub(super) fn insert(&mut self, text: &str) {
        let room = MAX_CHARS.saturating_sub(self.text.chars().count());
        let text = crate::output::printable(text);
        let text: String = text.chars().take(room).map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Handles a key that edits the text or moves the cursor. Other keys have no effect.
    pub(super) fn handle(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('a') => self.cursor = 0,
                KeyCode::Char('e') => self.cursor = self.text.len(),
                KeyCode::Char('u') => self.delete_from(0),
                KeyCode::Char('w') => self.delete_from(self.start_of_word()),
                KeyCode::Char('k') => self.text.truncate(self.cursor),
                KeyCode::Char('h') => self.delete_from(self.previous()),
                _ => {}
            }
            return;
        }
        match key.code {
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::ALT) => self.insert(&c.to_string()),
            KeyCode::Backspace => self.delete_from(self.previous()),
            KeyCode::Delete if !self.is_cursor_at_end() => {
                self.text.remove(self.cursor);
            }
            KeyCode::Left => self.cursor = self.previous(),
            KeyCode::Right => self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
    }

    /// Returns the part of the text that fits into a number of columns and contains the cursor, and the column of the cursor.
    pub(super) fn visible(&self, columns: usize) -> (&str, usize) {
        let room = columns.saturating_sub(1);
        let mut start = self.cursor;
        let mut width = 0;
        for (at, c) in self.text[..self.cursor].char_indices().rev() {
            width += c.width().unwrap_or(0);
            if width > room {
                break;
            }
            start = at;
        }
        (&self.text[start..], self.text[start..self.cursor].width())
    }

    fn previous(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn start_of_word(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn delete_from(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(input: &mut Input, codes: &[KeyCode]) {
        codes.iter().for_each(|code| input.handle(KeyEvent::new(*code, KeyModifiers::NONE)));
    }

    fn control(input: &mut Input, c: char) {
        input.handle(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    }

    #[test]
    fn keys_edit_at_the_cursor() {
        let mut input = Input::new("añb");
        typed(&mut input, &[KeyCode::Left, KeyCode::Left, KeyCode::Char('東'), KeyCode::Delete, KeyCode::Char('c')]);
        assert_eq!(input.text(), "a東cb");
        typed(&mut input, &[KeyCode::Backspace, KeyCode::End, KeyCode::Right, KeyCode::Delete, KeyCode::Char('d')]);
        assert_eq!(input.text(), "a東bd");
        typed(&mut input, &[KeyCode::Home, KeyCode::Left, KeyCode::Backspace, KeyCode::Char('x')]);
        assert_eq!(input.text(), "xa東bd");
    }

    #[test]
    fn control_keys_delete_words_and_lines() {
        let mut input = Input::new("one two  three ");
        control(&mut input, 'w');
        assert_eq!(input.text(), "one two  ");
        control(&mut input, 'w');
        assert_eq!(input.text(), "one ");
        control(&mut input, 'x');
        control(&mut input, 'u');
        assert_eq!(input, Input::default());
    }

    #[test]
    fn pasted_text_becomes_one_line_without_control_characters() {
        assert_eq!(Input::new("a\nb\u{1b}[2J\tc").text(), "a b\u{fffd}[2J c");
        assert_eq!(Input::new(&"x".repeat(10_000)).text().len(), MAX_CHARS);
    }

    #[test]
    fn the_cursor_stays_visible() {
        let mut input = Input::new("東京タワー abc");
        assert_eq!(input.visible(80), ("東京タワー abc", 14));
        assert_eq!(input.visible(6), (" abc", 4));
        typed(&mut input, &[KeyCode::Home]);
        assert_eq!(input.visible(6), ("東京タワー abc", 0));
        assert_eq!(input.visible(0).1, 0);
    }
}
