//! Prints a reply of an assistant while it is generated.

use std::io::Write;

use anyhow::Result;
use threadkeep::{Turn, TurnEvent};

use crate::output::{DIM, Output, printable, printable_line};
use crate::table::cut;
use crate::word_wrap::WordWrap;

/// The number of columns after which the arguments of a tool are truncated.
const ARGUMENTS_COLUMNS: usize = 60;

/// Prints the events of a turn as they arrive.
pub(super) struct ReplyPrinter<'a> {
    output: &'a Output,
    /// The text of the reply that was printed so far.
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
                let arguments = cut(&printable_line(arguments.as_str()), ARGUMENTS_COLUMNS);
                self.start_over(&format!("· {name} {arguments}"));
            }
            _ => {}
        }
    }

    /// Prints a note on a separate line. The reply starts again below it, because the text above is not part of the reply.
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
        let unprinted = match turn.reply.strip_prefix(self.printed.as_str()) {
            Some(unprinted) => self.wrap.push(&printable(unprinted)),
            None => format!("{}\n{}", self.wrap.finish(), self.wrap.push(&printable(&turn.reply))),
        };
        self.output.line(format_args!("{unprinted}{}", self.wrap.finish()))
    }
}

fn write(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // Errors are ignored here: the next complete line reports a closed output.
    drop(write!(out, "{text}").and_then(|()| out.flush()));
}
