//! Prints an assistant's reply while it is generated.

use std::io::Write;

use anyhow::Result;
use threadkeep::{Turn, TurnEvent};

use crate::output::{DIM, Output, printable, printable_line};
use crate::table::cut;
use crate::word_wrap::WordWrap;

/// Columns after which a tool's arguments are cut.
const ARGUMENTS: usize = 60;

/// Prints the events of a turn as they arrive.
pub(super) struct ReplyPrinter<'a> {
    output: &'a Output,
    /// The part of the reply that was printed.
    printed: String,
    wrap: WordWrap,
}

impl<'a> ReplyPrinter<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, printed: String::new(), wrap: WordWrap::new(output.text_columns()) }
    }

    pub(super) fn on_event(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Token { text } => {
                write(self.wrap.push(&printable(text)));
                self.printed.push_str(text);
            }
            TurnEvent::Restarted => self.start_over("(starting over)"),
            TurnEvent::ToolStarted { name, arguments, .. } => {
                let arguments = cut(&printable_line(arguments.as_str()), ARGUMENTS);
                self.start_over(&format!("· {name} {arguments}"));
            }
            _ => {}
        }
    }

    /// Prints a note on its own line and starts the reply again below it: earlier text is not part of the reply.
    fn start_over(&mut self, note: &str) {
        write(self.wrap.finish());
        if !self.printed.is_empty() {
            write("\n");
        }
        self.printed.clear();
        write(format_args!("{}\n", self.output.paint(DIM, note)));
    }

    /// Prints the rest of the reply.
    pub(super) fn finish(mut self, turn: &Turn) -> Result<()> {
        let rest = match turn.reply.strip_prefix(self.printed.as_str()) {
            Some(rest) => self.wrap.push(&printable(rest)),
            None => format!("{}\n{}", self.wrap.finish(), self.wrap.push(&printable(&turn.reply))),
        };
        self.output.line(format_args!("{rest}{}", self.wrap.finish()))
    }
}

fn write(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // A closed output is reported by the next full line.
    drop(write!(out, "{text}").and_then(|()| out.flush()));
}
