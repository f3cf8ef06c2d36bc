//! Prints lines and JSON, with colour and wrapped to a width.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anstyle::{AnsiColor, Color, Style};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};
use threadkeep::Role;
use threadkeep::core::json_line;

use crate::arguments::{Global, When};

/// The maximum width of running text, chosen for readability.
const TEXT_COLUMNS: usize = 100;

/// Standard output and standard error, with formatting options.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    out_colour: bool,
    err_colour: bool,
    columns: Option<usize>,
}

/// The reader closed the pipe, as `head` does. The command then ends without an error message.
#[derive(Debug)]
pub(crate) struct PipeClosed;

impl Display for PipeClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output was closed")
    }
}

impl std::error::Error for PipeClosed {}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let columns = terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns));
        Self {
            json: global.json,
            out_colour: has_colour(global.color, out),
            err_colour: has_colour(global.color, err),
            columns: columns.filter(|columns| out && *columns > 0),
        }
    }

    /// Creates output to a terminal of the given width, without colour.
    #[cfg(test)]
    pub(crate) fn of_columns(columns: usize) -> Self {
        Self { json: false, out_colour: false, err_colour: false, columns: Some(columns) }
    }

    /// Whether `--json` was given.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether standard output has colour.
    pub(crate) fn has_colour(&self) -> bool {
        self.out_colour
    }

    /// Returns the width of the terminal. `None` if the output is not a terminal; then nothing is truncated or wrapped.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Returns the width to which running text is wrapped.
    pub(crate) fn text_columns(&self) -> Option<usize> {
        self.columns.map(|columns| columns.min(TEXT_COLUMNS))
    }

    /// Locks standard output, to write many lines.
    pub(crate) fn lines(&self) -> Lines<'static> {
        Lines { out: BufWriter::new(io::stdout().lock()) }
    }

    /// Prints one line.
    pub(crate) fn line(&self, line: impl Display) -> anyhow::Result<()> {
        let mut lines = self.lines();
        lines.line(line)?;
        lines.finish()
    }

    /// Prints one JSON value on one line.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> anyhow::Result<()> {
        self.line(json_line(value)?)
    }

    /// Prints a note on standard error, in addition to the result.
    pub(crate) fn note(&self, note: impl Display) {
        // Errors are ignored: if standard error is closed, no output remains for reporting them.
        drop(writeln!(io::stderr().lock(), "{note}"));
    }

    /// Applies a style to a text if standard output has colour.
    pub(crate) fn paint<T: Display>(&self, style: Style, text: T) -> Styled<T> {
        Styled { style: self.out_colour.then_some(style), text }
    }

    pub(crate) fn error_label<T: Display>(&self, text: T) -> Styled<T> {
        let style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Red)));
        Styled { style: self.err_colour.then_some(style), text }
    }

    pub(crate) fn hint_label<T: Display>(&self, text: T) -> Styled<T> {
        let style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));
        Styled { style: self.err_colour.then_some(style), text }
    }
}

fn has_colour(when: When, is_terminal: bool) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
                || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_unwanted
        }
    }
}

/// Lines on standard output, buffered.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    out: BufWriter<StdoutLock<'a>>,
}

impl Lines<'_> {
    /// Prints one line.
    pub(crate) fn line(&mut self, line: impl Display) -> anyhow::Result<()> {
        writeln!(self.out, "{line}").map_err(write_error)
    }

    /// Flushes the buffer. Dropping it would lose a write error.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.out.flush().map_err(write_error)
    }
}

fn write_error(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        PipeClosed.into()
    } else {
        anyhow::Error::from(error).context("cannot write the output")
    }
}

/// Text with an optional style.
#[derive(Debug)]
pub(crate) struct Styled<T> {
    style: Option<Style>,
    text: T,
}

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{style}{}{style:#}", self.text),
            None => self.text.fmt(f),
        }
    }
}

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const MATCH: Style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Yellow)));

/// Returns a style with a colour.
pub(crate) const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// Returns the style of a speaker's name.
pub(crate) fn speaker_style(role: Role) -> Style {
    let colour = match role {
        Role::User => AnsiColor::Green,
        Role::Assistant => AnsiColor::Cyan,
        Role::System => AnsiColor::Yellow,
        Role::Tool => AnsiColor::Magenta,
    };
    self::colour(colour).bold()
}

/// Replaces control characters, so that stored text cannot move the cursor or change the state of the terminal.
pub(crate) fn printable(text: &str) -> String {
    let is_unsafe = |c: char| c.is_control() && c != '\n' && c != '\t' || is_direction_override(c);
    text.chars().filter(|c| *c != '\r').map(|c| if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Like [`printable`], but also collapses all white space, so that the text is a single line.
pub(crate) fn printable_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character overrides the direction in which the following text is displayed.
fn is_direction_override(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_replaces_control_characters() {
        assert_eq!(printable("a\u{1b}[31mb\r\nc\td\u{9b}2J\u{202e}"), "a\u{fffd}[31mb\nc\td\u{fffd}2J\u{fffd}");
        assert_eq!(printable_line(" one\n two\t\u{7}"), "one two \u{fffd}");
        assert_eq!(printable("שלום 東京 é 👩‍👩‍👧"), "שלום 東京 é 👩‍👩‍👧");
    }

    #[test]
    fn styled_text_ends_with_a_reset() {
        assert_eq!(Styled { style: Some(BOLD), text: "x" }.to_string(), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(Styled { style: None, text: "x" }.to_string(), "x");
    }
}
