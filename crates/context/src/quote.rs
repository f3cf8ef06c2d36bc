//! Quotes message text inside generated text, so that a message cannot imitate generated lines.

use std::borrow::Cow;

/// Characters that some software treats as line breaks.
pub(crate) const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Indents every line after the first, so that no line of the text looks like a line of the surrounding text.
pub(crate) fn indent(text: &str) -> Cow<'_, str> {
    if !text.contains(LINE_BREAKS) {
        return Cow::Borrowed(text);
    }
    // CR LF is one line break.
    let text = text.replace("\r\n", "\n");
    Cow::Owned(text.split(LINE_BREAKS).collect::<Vec<_>>().join("\n  "))
}

/// Joins the text into one line: replaces each run of whitespace and control characters by a space and trims the ends.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if !word.is_empty() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}
