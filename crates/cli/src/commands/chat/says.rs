//! What the assistant says, as it comes.

use std::io::Write;

use anyhow::Result;
use threadkeep::{Turn, TurnEvent};

use crate::output::{DIM, Output, printable, printable_line};
use crate::table::cut;
use crate::word_wrap::WordWrap;

/// Columns of a tool's arguments.
const ARGUMENTS: usize = 60;

/// Shows a turn while it is on its way.
pub(super) struct Says<'a> {
    output: &'a Output,
    /// What was shown of the reply.
    shown: String,
    wrap: WordWrap,
}

impl<'a> Says<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, shown: String::new(), wrap: WordWrap::new(output.text_columns()) }
    }

    pub(super) fn hear(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Token { text } => {
                write(self.wrap.take(&printable(text)));
                self.shown.push_str(text);
            }
            TurnEvent::Restarted => self.begin_anew("(begins anew)"),
            TurnEvent::ToolStarted { name, arguments, .. } => {
                let arguments = cut(&printable_line(arguments.as_str()), ARGUMENTS);
                self.begin_anew(&format!("· {name} {arguments}"));
            }
            _ => {}
        }
    }

    /// Goes on below what was shown, which is no part of the reply.
    fn begin_anew(&mut self, why: &str) {
        write(self.wrap.finish());
        if !self.shown.is_empty() {
            write("\n");
        }
        self.shown.clear();
        write(format_args!("{}\n", self.output.paint(DIM, why)));
    }

    /// Shows what is left of the reply.
    pub(super) fn finish(mut self, turn: &Turn) -> Result<()> {
        let rest = match turn.reply.strip_prefix(self.shown.as_str()) {
            Some(rest) => self.wrap.take(&printable(rest)),
            None => format!("{}\n{}", self.wrap.finish(), self.wrap.take(&printable(&turn.reply))),
        };
        self.output.line(format_args!("{rest}{}", self.wrap.finish()))
    }
}

fn write(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // Whoever does not listen any more is told by the next line.
    drop(write!(out, "{text}").and_then(|()| out.flush()));
}
