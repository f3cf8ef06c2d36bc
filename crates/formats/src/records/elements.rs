//! Splits an array, or a sequence of values, into one record per element.
//!
//! The scan considers only strings and brackets, so an element with invalid content yields one invalid record. An error in
//! the array itself ends reading.

use std::io::{self, BufRead};

use super::{Chunk, ChunkFault, Fault, FilePosition, skip_whitespace};

/// The syntax that separates the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// An array. Its opening bracket has been read.
    List,
    /// Values separated by optional whitespace.
    Sequence,
}

/// Reads elements up to a maximum size.
pub(super) struct Elements<R> {
    input: R,
    framing: Framing,
    position: FilePosition,
    max_bytes: usize,
    is_first: bool,
}

enum Element {
    Whole(Vec<u8>),
    TooLarge,
    CutOff,
}

impl<R: BufRead> Elements<R> {
    pub(super) fn new(input: R, framing: Framing, position: FilePosition, max_bytes: usize) -> Self {
        Self { input, framing, position, max_bytes, is_first: true }
    }

    /// Moves to the start of the next element. Returns `false` if there is none.
    fn seek_element(&mut self) -> Result<bool, Fault> {
        let next = skip_whitespace(&mut self.input, &mut self.position)?;
        if self.framing == Framing::Sequence {
            return Ok(next.is_some());
        }
        match next {
            None => Err(damage("the file ends before the array is closed")),
            Some(b']') => {
                self.skip_byte();
                self.expect_end()
            }
            Some(_) if self.is_first => Ok(true),
            Some(b',') => {
                self.skip_byte();
                match skip_whitespace(&mut self.input, &mut self.position)? {
                    None => Err(damage("the file ends before the array is closed")),
                    Some(_) => Ok(true),
                }
            }
            Some(_) => Err(damage("missing comma between two array elements")),
        }
    }

    fn skip_byte(&mut self) {
        self.input.consume(1);
        self.position.offset += 1;
    }

    fn expect_end(&mut self) -> Result<bool, Fault> {
        match skip_whitespace(&mut self.input, &mut self.position)? {
            None => Ok(false),
            Some(_) => Err(damage("unexpected data after the end of the array")),
        }
    }

    fn read_element(&mut self) -> io::Result<Element> {
        let (mut bytes, mut is_too_large) = (Vec::new(), false);
        let mut scan = Scan::default();
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(if scan.may_end() { element(bytes, is_too_large) } else { Element::CutOff });
            }
            let end = scan.end(buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if is_too_large || bytes.len() + piece.len() > self.max_bytes {
                (bytes, is_too_large) = (Vec::new(), true);
            } else {
                bytes.extend_from_slice(piece);
            }
            self.position.advance(piece);
            let taken = piece.len();
            self.input.consume(taken);
            if end.is_some() {
                return Ok(element(bytes, is_too_large));
            }
        }
    }

    fn read_whole(&mut self) -> Result<Vec<u8>, Fault> {
        match self.read_element()? {
            Element::Whole(bytes) if bytes.is_empty() => Err(damage("unexpected bracket or comma")),
            Element::Whole(bytes) => Ok(bytes),
            Element::TooLarge => Err(Fault::Record(format!("record exceeds {} bytes", self.max_bytes))),
            Element::CutOff => Err(damage("the file ends inside this record")),
        }
    }
}

impl<R: BufRead> Iterator for Elements<R> {
    type Item = Result<Chunk, ChunkFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let has_element = self.seek_element();
        let position = self.position;
        let element = match has_element {
            Ok(true) => self.read_whole(),
            Ok(false) => return None,
            Err(fault) => Err(fault),
        };
        self.is_first = false;
        let at_offset = |fault| match fault {
            // Many exports consist of one long line, so the byte offset is added to the line number.
            Fault::File(reason) => Fault::File(format!("{reason} (byte offset {})", position.offset)),
            fault => fault,
        };
        let fault = |fault| ChunkFault { line: position.line, fault: at_offset(fault) };
        Some(element.map(|bytes| Chunk { position, bytes }).map_err(fault))
    }
}

fn damage(what: &str) -> Fault {
    Fault::File(what.to_owned())
}

fn element(bytes: Vec<u8>, is_too_large: bool) -> Element {
    if is_too_large { Element::TooLarge } else { Element::Whole(bytes) }
}

/// Finds the end of an element across buffers.
#[derive(Debug, Default)]
struct Scan {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    /// In a number, `true`, `false`, `null` or an invalid literal.
    in_literal: bool,
}

impl Scan {
    /// If the element ends in the buffer, returns the number of its bytes in the buffer.
    fn end(&mut self, buffer: &[u8]) -> Option<usize> {
        for (at, byte) in buffer.iter().enumerate() {
            if self.in_string {
                self.step_in_string(*byte);
                if !self.in_string && self.depth == 0 {
                    return Some(at + 1);
                }
            } else if self.depth == 0 {
                if !self.starts_or_continues(*byte) {
                    return Some(at);
                }
            } else {
                self.step_between_brackets(*byte);
                if self.depth == 0 {
                    return Some(at + 1);
                }
            }
        }
        None
    }

    /// Whether the element can end at the end of the file.
    fn may_end(&self) -> bool {
        self.in_literal
    }

    fn starts_or_continues(&mut self, byte: u8) -> bool {
        match byte {
            b'[' | b'{' | b'"' if self.in_literal => return false,
            b'[' | b'{' => self.depth = 1,
            b'"' => self.in_string = true,
            b',' | b']' | b'}' => return false,
            byte if byte.is_ascii_whitespace() => return false,
            _ => self.in_literal = true,
        }
        true
    }

    fn step_in_string(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.in_string = false,
            _ => {}
        }
    }

    fn step_between_brackets(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// The position after the opening bracket.
    const AFTER_BRACKET: FilePosition = FilePosition { line: 1, offset: 1 };

    type Results = Vec<Result<(u64, String), (u64, String)>>;

    fn elements(framing: Framing, text: &str, max_bytes: usize) -> Results {
        // A buffer of three bytes tests buffer boundaries at all positions.
        let elements = Elements::new(BufReader::with_capacity(3, text.as_bytes()), framing, AFTER_BRACKET, max_bytes);
        let mut results = Vec::new();
        for chunk in elements {
            match chunk {
                Ok(Chunk { position, bytes }) => results.push(Ok((position.line, String::from_utf8(bytes).unwrap()))),
                Err(ChunkFault { line, fault }) => {
                    results.push(Err((line, fault.to_string())));
                    if fault.is_final() {
                        break;
                    }
                }
            }
        }
        results
    }

    fn record(line: u64, text: &str) -> Result<(u64, String), (u64, String)> {
        Ok((line, text.to_owned()))
    }

    fn final_error(line: u64, offset: u64, why: &str) -> Result<(u64, String), (u64, String)> {
        Err((line, format!("{why} (byte offset {offset}); the rest of the file was not read")))
    }

    #[test]
    fn an_array_is_split_at_its_own_commas() {
        let text = r#" {"a": "}],\"\\"},
            [1, [2], {}] , "x,]" ,12,
            null ]  "#;
        let expected = [
            record(1, r#"{"a": "}],\"\\"}"#),
            record(2, "[1, [2], {}]"),
            record(2, r#""x,]""#),
            record(2, "12"),
            record(3, "null"),
        ];
        assert_eq!(elements(Framing::List, text, 100), expected);
        assert_eq!(elements(Framing::List, "]", 100), []);
    }

    #[test]
    fn sequence_values_are_separated_by_optional_whitespace() {
        let expected = [record(1, "{\n}"), record(3, "{}"), record(3, "[]"), record(3, "1")];
        assert_eq!(elements(Framing::Sequence, "{\n}\n{}[] 1", 100), expected);
    }

    #[test]
    fn an_error_in_the_array_ends_reading() {
        let list = |text| elements(Framing::List, text, 100);
        assert_eq!(list("{},\n{"), [record(1, "{}"), final_error(2, 5, "the file ends inside this record")]);
        assert_eq!(list("{}"), [record(1, "{}"), final_error(1, 3, "the file ends before the array is closed")]);
        assert_eq!(list("{},"), [record(1, "{}"), final_error(1, 4, "the file ends before the array is closed")]);
        assert_eq!(list("{},]"), [record(1, "{}"), final_error(1, 4, "unexpected bracket or comma")]);
        assert_eq!(list("{} {}]"), [record(1, "{}"), final_error(1, 4, "missing comma between two array elements")]);
        assert_eq!(list("{}]\n]"), [record(1, "{}"), final_error(2, 5, "unexpected data after the end of the array")]);
    }

    #[test]
    fn an_element_that_is_too_large_is_skipped() {
        let too_large = (1, "record exceeds 6 bytes".to_owned());
        assert_eq!(elements(Framing::List, r#"{"a":"]]]]"},{}]"#, 6), [Err(too_large), record(1, "{}")]);
    }
}
