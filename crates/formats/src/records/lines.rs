//! Splits a file into one record per line.

use std::io::{self, BufRead};

use super::{Chunk, ChunkFault, Fault, FilePosition};

/// A line including its line feed, or a marker for a line that is too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// Reads lines up to a maximum length and skips blank lines.
pub(super) struct Lines<R> {
    input: R,
    /// The position at which the next line starts.
    position: FilePosition,
    /// The length of the last line.
    read_bytes: u64,
    max_bytes: usize,
    peeked: Option<Line>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, position: FilePosition, max_bytes: usize) -> Self {
        Self { input, position, read_bytes: 0, max_bytes, peeked: None }
    }

    /// Reads the first line without consuming it.
    pub(super) fn peek_line(&mut self) -> io::Result<Option<&Line>> {
        self.peeked = self.read_line()?;
        Ok(self.peeked.as_ref())
    }

    pub(super) fn peek_byte_after_line(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    pub(super) fn into_first_line_and_rest(self) -> (Vec<u8>, R) {
        let first = match self.peeked {
            Some(Line::Whole(bytes)) => bytes,
            Some(Line::TooLong) | None => Vec::new(),
        };
        (first, self.input)
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        let (mut bytes, mut is_too_long) = (Vec::new(), false);
        self.read_bytes = 0;
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            let taken = piece.len();
            if is_too_long || bytes.len() + taken > self.max_bytes {
                (bytes, is_too_long) = (Vec::new(), true);
            } else {
                bytes.extend_from_slice(piece);
            }
            self.input.consume(taken);
            self.read_bytes += taken as u64;
            if end.is_some() || taken == 0 {
                break;
            }
        }
        if is_too_long {
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()).map(Line::Whole))
    }

    fn fault<T>(line: u64, fault: Fault) -> Option<Result<T, ChunkFault>> {
        Some(Err(ChunkFault { line, fault }))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Chunk, ChunkFault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let read = match self.peeked.take() {
                Some(peeked) => Ok(Some(peeked)),
                None => self.read_line(),
            };
            let position = self.position;
            self.position = FilePosition { line: position.line + 1, offset: position.offset + self.read_bytes };
            match read {
                Ok(None) => return None,
                Ok(Some(Line::Whole(bytes))) => match bytes.trim_ascii() {
                    [] => {}
                    trimmed => {
                        let spaces = bytes.len() - bytes.trim_ascii_start().len();
                        let position = FilePosition { offset: position.offset + spaces as u64, ..position };
                        return Some(Ok(Chunk { position, bytes: trimmed.to_vec() }));
                    }
                },
                Ok(Some(Line::TooLong)) => {
                    let reason = format!("line exceeds {} bytes", self.max_bytes);
                    return Self::fault(position.line, Fault::Record(reason));
                }
                Err(error) => return Self::fault(position.line, error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, max_bytes: usize) -> Vec<Result<(u64, String), (u64, String)>> {
        let lines = Lines::new(text.as_bytes(), FilePosition::START, max_bytes);
        lines
            .map(|chunk| match chunk {
                Ok(Chunk { position, bytes }) => Ok((position.line, String::from_utf8(bytes).unwrap())),
                Err(ChunkFault { line, fault }) => Err((line, fault.to_string())),
            })
            .collect()
    }

    #[test]
    fn line_endings_and_blank_lines_are_skipped() {
        let expected = [Ok((1, "a".to_owned())), Ok((4, "b c".to_owned()))];
        assert_eq!(lines("a\r\n\n \t\n b c ", 100), expected);
        assert_eq!(lines("", 100), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_and_skipped() {
        let too_long = "line exceeds 4 bytes".to_owned();
        let expected = [Ok((1, "abc".to_owned())), Err((2, too_long.clone())), Ok((3, "d".to_owned()))];
        assert_eq!(lines("abc\nabcdefgh\nd\n", 4), expected);
        assert_eq!(lines("abcde", 4), [Err((1, too_long))]);
    }
}
