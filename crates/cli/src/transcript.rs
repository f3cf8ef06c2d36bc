//! Messages as a person reads them.

use anyhow::Result;
use textwrap::{Options, WordSeparator};
use threadkeep::{ChatMessage, ImageReference, Message, Part, Role, ToolResult};

use crate::instants;
use crate::output::{self, BOLD, DIM, Lines, Output, printable, printable_line};

const INDENT: &str = "  ";
/// Columns that a text gets at least, whatever the terminal says.
const NARROWEST: usize = 20;

/// Writes messages one after the other, with a line where a new day begins.
#[derive(Debug)]
pub(crate) struct Transcript<'a> {
    output: &'a Output,
    day: Option<String>,
}

impl<'a> Transcript<'a> {
    pub(crate) fn new(output: &'a Output) -> Self {
        Self { output, day: None }
    }

    /// Writes one message.
    pub(crate) fn message(&mut self, lines: &mut Lines<'_>, message: &Message) -> Result<()> {
        let output = self.output;
        let day = instants::day(message.created_at);
        if self.day.as_ref() != Some(&day) {
            lines.line(format_args!("{}\n", output.paint(BOLD, format_args!("── {day} ──"))))?;
            self.day = Some(day);
        }
        let role = message.content.role;
        let name = speaker(message.content.author.as_deref(), role);
        let beside = message.content.author.as_ref().map_or_else(String::new, |_| format!(" ({role})"));
        let agent =
            message.content.agent.as_deref().map_or_else(String::new, |agent| format!(" · {}", printable_line(agent)));
        let edited = if message.revision > 0 { " · edited" } else { "" };
        let rest = format!("{beside} · {} · #{}{agent}{edited}", instants::time(message.created_at), message.seq);
        lines.line(format_args!("{}{}", output.paint(output::speaker(role), name), output.paint(DIM, rest)))?;
        self.parts(lines, &message.content.parts)
    }

    /// Writes one message as a model sees it.
    pub(crate) fn chat_message(&self, lines: &mut Lines<'_>, message: &ChatMessage) -> Result<()> {
        let output = self.output;
        let name = speaker(message.author.as_deref(), message.role);
        let beside = message.author.as_ref().map_or_else(String::new, |_| format!(" ({})", message.role));
        let place = message.seq.map_or_else(String::new, |seq| format!(" · #{seq}"));
        let rest = format!("{beside}{place}");
        lines.line(format_args!("{}{}", output.paint(output::speaker(message.role), name), output.paint(DIM, rest)))?;
        self.parts(lines, &message.parts)
    }

    /// Writes what is said, and a line to keep it apart.
    fn parts(&self, lines: &mut Lines<'_>, parts: &[Part]) -> Result<()> {
        for part in parts {
            match part {
                Part::Text(text) => self.text(lines, text)?,
                part => self.aside(lines, &aside(part))?,
            }
        }
        lines.line("")
    }

    fn text(&self, lines: &mut Lines<'_>, text: &str) -> Result<()> {
        for line in wrapped(self.output, text, INDENT, WordSeparator::new()) {
            lines.line(line)?;
        }
        Ok(())
    }

    fn aside(&self, lines: &mut Lines<'_>, text: &str) -> Result<()> {
        // Addresses and arguments are only cut where there is a space.
        for line in wrapped(self.output, text, INDENT, WordSeparator::AsciiSpace) {
            lines.line(self.output.paint(DIM, line))?;
        }
        Ok(())
    }
}

/// Who speaks.
pub(crate) fn speaker(author: Option<&str>, role: Role) -> String {
    author.map_or_else(|| role.to_string(), printable_line)
}

/// What a message says, on one line.
pub(crate) fn one_line(message: &Message) -> String {
    let parts = message.content.parts.iter().map(|part| match part {
        Part::Text(text) => printable_line(text),
        part => printable_line(&aside(part)),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// What is not said in words.
fn aside(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::Reasoning(text) => format!("(thinking) {text}"),
        Part::ToolCall(call) => format!("→ {}({})", call.name, call.arguments),
        Part::ToolResult(ToolResult { output, is_error: false, .. }) => format!("← {output}"),
        Part::ToolResult(ToolResult { output, is_error: true, .. }) => format!("← failed: {output}"),
        Part::Image(image) => image_text(image),
        Part::Raw { format, .. } => format!("[an item of {format}]"),
    }
}

/// The lines of a text, wrapped to the terminal where there is one.
pub(crate) fn wrapped(output: &Output, text: &str, indent: &str, separator: WordSeparator) -> Vec<String> {
    let text = printable(text);
    let Some(columns) = output.text_columns() else {
        return text.lines().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect();
    };
    let options = Options::new(columns.max(NARROWEST)).initial_indent(indent).subsequent_indent(indent);
    let options = options.word_separator(separator);
    text.lines().flat_map(|line| textwrap::wrap(line, &options)).map(|line| line.trim_end().to_owned()).collect()
}

fn image_text(image: &ImageReference) -> String {
    match (&image.description, image.url.as_str()) {
        (Some(description), "") => format!("[image: {description}]"),
        (Some(description), url) => format!("[image: {description}] {url}"),
        (None, url) => format!("[image] {url}"),
    }
}
