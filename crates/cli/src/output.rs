//! What reaches a person or a program: lines, JSON, colour, and the width to write in.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anstyle::{AnsiColor, Color, Style};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};
use threadkeep::Role;
use threadkeep::core::json_line;

use crate::arguments::{Global, When};

/// The widest text that reads well.
const TEXT_COLUMNS: usize = 100;

/// Where a command writes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    out_colour: bool,
    err_colour: bool,
    columns: Option<usize>,
}

/// Whoever read the output went away, as `head` does: the command ends without a word.
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

    /// A terminal of a width, without colour.
    #[cfg(test)]
    pub(crate) fn of_columns(columns: usize) -> Self {
        Self { json: false, out_colour: false, err_colour: false, columns: Some(columns) }
    }

    /// Whether JSON is asked for.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// The terminal's width; `None` where the output goes elsewhere and nothing is cut or wrapped.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// The width to wrap running text to.
    pub(crate) fn text_columns(&self) -> Option<usize> {
        self.columns.map(|columns| columns.min(TEXT_COLUMNS))
    }

    /// Opens standard output for many lines.
    pub(crate) fn lines(&self) -> Lines<'static> {
        Lines { out: BufWriter::new(io::stdout().lock()) }
    }

    /// Prints one line.
    pub(crate) fn line(&self, line: impl Display) -> anyhow::Result<()> {
        let mut lines = self.lines();
        lines.line(line)?;
        lines.finish()
    }

    /// Prints one JSON document on one line.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, document: &T) -> anyhow::Result<()> {
        self.line(json_line(document)?)
    }

    /// Tells a person something beside the result, on standard error.
    pub(crate) fn note(&self, note: impl Display) {
        // Nobody is left to be told that nobody listens.
        drop(writeln!(io::stderr().lock(), "{note}"));
    }

    /// A text in a style, where standard output shows styles.
    pub(crate) fn paint<T: Display>(&self, style: Style, text: T) -> Painted<T> {
        Painted { style: self.out_colour.then_some(style), text }
    }

    pub(crate) fn error_label<T: Display>(&self, text: T) -> Painted<T> {
        let style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Red)));
        Painted { style: self.err_colour.then_some(style), text }
    }

    pub(crate) fn hint_label<T: Display>(&self, text: T) -> Painted<T> {
        let style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));
        Painted { style: self.err_colour.then_some(style), text }
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

/// Lines on standard output, written in large pieces.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    out: BufWriter<StdoutLock<'a>>,
}

impl Lines<'_> {
    /// Prints one line.
    pub(crate) fn line(&mut self, line: impl Display) -> anyhow::Result<()> {
        writeln!(self.out, "{line}").map_err(told)
    }

    /// Writes what is left. Without it an error at the end would go unheard.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.out.flush().map_err(told)
    }
}

fn told(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        PipeClosed.into()
    } else {
        anyhow::Error::from(error).context("the output cannot be written")
    }
}

/// A text that may have a style.
#[derive(Debug)]
pub(crate) struct Painted<T> {
    style: Option<Style>,
    text: T,
}

impl<T: Display> Display for Painted<T> {
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

/// A style of one colour.
pub(crate) const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// The style of a speaker's name.
pub(crate) fn speaker(role: Role) -> Style {
    let colour = match role {
        Role::User => AnsiColor::Green,
        Role::Assistant => AnsiColor::Cyan,
        Role::System => AnsiColor::Yellow,
        Role::Tool => AnsiColor::Magenta,
    };
    self::colour(colour).bold()
}

/// Makes control characters visible, so that a stored text cannot move the cursor or change the terminal.
pub(crate) fn printable(text: &str) -> String {
    let is_harmful = |c: char| c.is_control() && c != '\n' && c != '\t' || is_direction_override(c);
    text.chars().filter(|c| *c != '\r').map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same on one line.
pub(crate) fn printable_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that have what follows shown in another order than it stands.
fn is_direction_override(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\r\nc\td\u{9b}2J\u{202e}"), "a\u{fffd}[31mb\nc\td\u{fffd}2J\u{fffd}");
        assert_eq!(printable_line(" one\n two\t\u{7}"), "one two \u{fffd}");
        assert_eq!(printable("שלום 東京 é 👩‍👩‍👧"), "שלום 東京 é 👩‍👩‍👧");
    }

    #[test]
    fn a_style_is_closed_again() {
        assert_eq!(Painted { style: Some(BOLD), text: "x" }.to_string(), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(Painted { style: None, text: "x" }.to_string(), "x");
    }
}
