//! Messages as a person reads them.

use anyhow::Result;
use threadkeep::{ImageReference, Message, Part, ToolResult};

use crate::instants;
use crate::output::{self, BOLD, DIM, Lines, Output, printable, printable_line};

const INDENT: &str = "  ";

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
        let name = message.content.author.as_deref().map_or_else(|| role.to_string(), printable_line);
        let beside = message.content.author.as_ref().map_or_else(String::new, |_| format!(" ({role})"));
        let agent =
            message.content.agent.as_deref().map_or_else(String::new, |agent| format!(" · {}", printable_line(agent)));
        let edited = if message.revision > 0 { " · edited" } else { "" };
        let rest = format!("{beside} · {} · #{}{agent}{edited}", instants::time(message.created_at), message.seq);
        lines.line(format_args!("{}{}", output.paint(output::speaker(role), name), output.paint(DIM, rest)))?;
        for part in &message.content.parts {
            self.part(lines, part)?;
        }
        lines.line("")
    }

    fn part(&self, lines: &mut Lines<'_>, part: &Part) -> Result<()> {
        match part {
            Part::Text(text) => self.text(lines, text),
            Part::Reasoning(text) => self.aside(lines, &format!("(thinking) {text}")),
            Part::ToolCall(call) => self.aside(lines, &format!("→ {}({})", call.name, call.arguments)),
            Part::ToolResult(ToolResult { output, is_error, .. }) => {
                let mark = if *is_error { "← failed: " } else { "← " };
                self.aside(lines, &format!("{mark}{output}"))
            }
            Part::Image(image) => self.aside(lines, &image_text(image)),
            Part::Raw { format, .. } => self.aside(lines, &format!("[an item of {format}]")),
        }
    }

    fn text(&self, lines: &mut Lines<'_>, text: &str) -> Result<()> {
        for line in self.wrapped(text) {
            lines.line(line)?;
        }
        Ok(())
    }

    fn aside(&self, lines: &mut Lines<'_>, text: &str) -> Result<()> {
        for line in self.wrapped(text) {
            lines.line(self.output.paint(DIM, line))?;
        }
        Ok(())
    }

    fn wrapped(&self, text: &str) -> Vec<String> {
        let text = printable(text);
        let Some(columns) = self.output.text_columns() else {
            return text.lines().map(|line| format!("{INDENT}{line}").trim_end().to_owned()).collect();
        };
        let options = textwrap::Options::new(columns.max(20)).initial_indent(INDENT).subsequent_indent(INDENT);
        text.lines().flat_map(|line| textwrap::wrap(line, &options)).map(|line| line.trim_end().to_owned()).collect()
    }
}

fn image_text(image: &ImageReference) -> String {
    match (&image.description, image.url.as_str()) {
        (Some(description), "") => format!("[image: {description}]"),
        (Some(description), url) => format!("[image: {description}] {url}"),
        (None, url) => format!("[image] {url}"),
    }
}
