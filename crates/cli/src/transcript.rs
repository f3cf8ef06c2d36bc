//! Formats messages for people.

use anyhow::Result;
use textwrap::{Options, WordSeparator};
use threadkeep::{ChatMessage, ImageReference, Message, Part, Role, ToolResult};

use crate::instants;
use crate::output::{self, BOLD, DIM, Lines, Output, printable, printable_line};

const INDENT: &str = "  ";
/// The minimum width of text, even if the terminal is narrower.
const MIN_COLUMNS: usize = 20;

/// Writes messages in order, with a heading for each new day.
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
        let role_note = message.content.author.as_ref().map_or_else(String::new, |_| format!(" ({role})"));
        let agent =
            message.content.agent.as_deref().map_or_else(String::new, |agent| format!(" · {}", printable_line(agent)));
        let edited = if message.revision > 0 { " · edited" } else { "" };
        let rest = format!("{role_note} · {} · #{}{agent}{edited}", instants::time(message.created_at), message.seq);
        lines.line(format_args!("{}{}", output.paint(output::speaker_style(role), name), output.paint(DIM, rest)))?;
        self.parts(lines, &message.content.parts)
    }

    /// Writes one message of a model's context.
    pub(crate) fn chat_message(&self, lines: &mut Lines<'_>, message: &ChatMessage) -> Result<()> {
        let output = self.output;
        let name = speaker(message.author.as_deref(), message.role);
        let role_note = message.author.as_ref().map_or_else(String::new, |_| format!(" ({})", message.role));
        let position = message.seq.map_or_else(String::new, |seq| format!(" · #{seq}"));
        let rest = format!("{role_note}{position}");
        lines.line(format_args!(
            "{}{}",
            output.paint(output::speaker_style(message.role), name),
            output.paint(DIM, rest)
        ))?;
        self.parts(lines, &message.parts)
    }

    /// Writes the parts of a message and an empty line.
    fn parts(&self, lines: &mut Lines<'_>, parts: &[Part]) -> Result<()> {
        for part in parts {
            match part {
                Part::Text(text) => self.text(lines, text)?,
                part => self.dimmed(lines, &part_text(part))?,
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

    fn dimmed(&self, lines: &mut Lines<'_>, text: &str) -> Result<()> {
        // URLs and arguments are broken only at spaces.
        for line in wrapped(self.output, text, INDENT, WordSeparator::AsciiSpace) {
            lines.line(self.output.paint(DIM, line))?;
        }
        Ok(())
    }
}

/// Returns the name of a message's author, or its role.
pub(crate) fn speaker(author: Option<&str>, role: Role) -> String {
    author.map_or_else(|| role.to_string(), printable_line)
}

/// Formats the content of a message on one line.
pub(crate) fn one_line(message: &Message) -> String {
    let parts = message.content.parts.iter().map(|part| match part {
        Part::Text(text) => printable_line(text),
        part => printable_line(&part_text(part)),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Describes a part of a message in text.
pub(crate) fn part_text(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::Reasoning(text) => format!("(thinking) {text}"),
        Part::ToolCall(call) => format!("→ {}({})", call.name, call.arguments),
        Part::ToolResult(ToolResult { output, is_error: false, .. }) => format!("← {output}"),
        Part::ToolResult(ToolResult { output, is_error: true, .. }) => format!("← failed: {output}"),
        Part::Image(image) => image_text(image),
        Part::Raw { format, .. } => format!("[{format} item]"),
    }
}

/// Splits text into lines. The lines are wrapped to the width of the terminal, if there is one.
pub(crate) fn wrapped(output: &Output, text: &str, indent: &str, separator: WordSeparator) -> Vec<String> {
    let text = printable(text);
    let Some(columns) = output.text_columns() else {
        return text.lines().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect();
    };
    let options = Options::new(columns.max(MIN_COLUMNS)).initial_indent(indent).subsequent_indent(indent);
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
