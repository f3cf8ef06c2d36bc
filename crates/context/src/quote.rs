//! Words of messages inside text of ours, where they must not look like ours.

use std::borrow::Cow;

/// What ends a line for some reader or other.
pub(crate) const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// The text with every line after the first indented, so that none begins where ours do.
pub(crate) fn indent(text: &str) -> Cow<'_, str> {
    if !text.contains(LINE_BREAKS) {
        return Cow::Borrowed(text);
    }
    // The two characters of CR LF are one break.
    let text = text.replace("\r\n", "\n");
    Cow::Owned(text.split(LINE_BREAKS).collect::<Vec<_>>().join("\n  "))
}

/// The text on one line: each run of white space and control characters as one space, none at the ends.
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
