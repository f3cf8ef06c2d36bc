//! Reads the lines of a chat.

use std::io::{BufRead, Read};

use anyhow::Result;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

use crate::failure::Failure;

const PROMPT: &str = "> ";
/// The maximum length of a line.
const LINE_BYTES: u64 = 1024 * 1024;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum Line {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Reads lines, with editing and history on a terminal.
pub(in crate::commands) enum Reader {
    Terminal(Box<DefaultEditor>),
    Stream,
}

impl Reader {
    pub(in crate::commands) fn new(is_terminal: bool) -> Result<Self> {
        if !is_terminal {
            return Ok(Self::Stream);
        }
        let config = Config::builder().auto_add_history(true).build();
        Ok(Self::Terminal(Box::new(DefaultEditor::with_config(config)?)))
    }

    pub(in crate::commands) fn read(&mut self) -> Result<Line> {
        match self {
            Self::Terminal(editor) => match editor.readline(PROMPT) {
                Ok(line) => Ok(Line::Text(line)),
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(error.into()),
            },
            Self::Stream => Ok(read_line(&mut std::io::stdin().lock())?.map_or(Line::End, Line::Text)),
        }
    }
}

/// Reads the next line, or `None` at the end. Invalid UTF-8 and NUL become U+FFFD.
///
/// # Errors
/// The line is longer than [`LINE_BYTES`]. It is not split, because each part would become a separate question.
pub(super) fn read_line(input: &mut impl BufRead) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.take(LINE_BYTES + 1).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 > LINE_BYTES {
        return Err(Failure::user_error(format!("input line is longer than {LINE_BYTES} bytes")).into());
    }
    Ok(Some(String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_line_rejects_lines_over_the_limit() {
        let mut input = &b"one\ntw\xff\0o"[..];
        assert_eq!(read_line(&mut input).unwrap().unwrap(), "one\n");
        assert_eq!(read_line(&mut input).unwrap().unwrap(), "tw\u{fffd}\u{fffd}o");
        assert_eq!(read_line(&mut input).unwrap(), None);
        let bytes = usize::try_from(LINE_BYTES).unwrap();
        let long = "a".repeat(bytes);
        assert_eq!(read_line(&mut long.as_bytes()).unwrap(), Some(long.clone()));
        let error = read_line(&mut format!("{long}a").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("longer than 1048576 bytes"), "{error}");
    }
}
