//! What a person types.

use std::io::BufRead;

use anyhow::Result;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

const PROMPT: &str = "> ";

/// A line that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Said(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Reads lines: with editing and a history at a terminal, as they are from elsewhere.
pub(super) enum Reader {
    Terminal(Box<DefaultEditor>),
    Stream,
}

impl Reader {
    pub(super) fn new(is_terminal: bool) -> Result<Self> {
        if !is_terminal {
            return Ok(Self::Stream);
        }
        let config = Config::builder().auto_add_history(true).build();
        Ok(Self::Terminal(Box::new(DefaultEditor::with_config(config)?)))
    }

    pub(super) fn read(&mut self) -> Result<Line> {
        match self {
            Self::Terminal(editor) => match editor.readline(PROMPT) {
                Ok(line) => Ok(Line::Said(line)),
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(error.into()),
            },
            Self::Stream => {
                let mut line = String::new();
                let bytes =
                    std::io::Read::take(std::io::stdin().lock(), super::LINE_BYTES as u64).read_line(&mut line)?;
                Ok(if bytes == 0 { Line::End } else { Line::Said(line) })
            }
        }
    }
}
