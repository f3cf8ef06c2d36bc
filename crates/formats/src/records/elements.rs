//! One record an element of a list, or one of several values after each other.
//!
//! Only strings and brackets are looked at, so that an element with bad JSON inside is one bad record. What breaks the
//! list itself ends the reading.

use std::io::{self, BufRead};

use super::{Chunk, ChunkFault, Fault, Place, skip_white_space};

/// What stands around the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outer {
    /// Brackets around and commas between; the opening bracket has been read.
    List,
    /// Nothing but white space.
    Sequence,
}

/// Reads elements of bounded size.
pub(super) struct Elements<R> {
    input: R,
    outer: Outer,
    place: Place,
    max_bytes: usize,
    is_first: bool,
}

enum Element {
    Whole(Vec<u8>),
    TooLarge,
    CutOff,
}

impl<R: BufRead> Elements<R> {
    pub(super) fn new(input: R, outer: Outer, place: Place, max_bytes: usize) -> Self {
        Self { input, outer, place, max_bytes, is_first: true }
    }

    /// Goes to the beginning of the next element; `false` when there is none.
    fn seek(&mut self) -> Result<bool, Fault> {
        let next = skip_white_space(&mut self.input, &mut self.place)?;
        if self.outer == Outer::Sequence {
            return Ok(next.is_some());
        }
        match next {
            None => Err(damage("the file ends before the list is closed")),
            Some(b']') => {
                self.step_over_one();
                self.expect_the_end()
            }
            Some(_) if self.is_first => Ok(true),
            Some(b',') => {
                self.step_over_one();
                match skip_white_space(&mut self.input, &mut self.place)? {
                    None => Err(damage("the file ends before the list is closed")),
                    Some(_) => Ok(true),
                }
            }
            Some(_) => Err(damage("there is no comma between two elements of the list")),
        }
    }

    fn step_over_one(&mut self) {
        self.input.consume(1);
        self.place.offset += 1;
    }

    fn expect_the_end(&mut self) -> Result<bool, Fault> {
        match skip_white_space(&mut self.input, &mut self.place)? {
            None => Ok(false),
            Some(_) => Err(damage("there is something after the end of the list")),
        }
    }

    fn read_element(&mut self) -> io::Result<Element> {
        let (mut bytes, mut is_too_large) = (Vec::new(), false);
        let mut scan = Scan::default();
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(if scan.may_end() { kept(bytes, is_too_large) } else { Element::CutOff });
            }
            let end = scan.end(buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if is_too_large || bytes.len() + piece.len() > self.max_bytes {
                (bytes, is_too_large) = (Vec::new(), true);
            } else {
                bytes.extend_from_slice(piece);
            }
            self.place.pass(piece);
            let taken = piece.len();
            self.input.consume(taken);
            if end.is_some() {
                return Ok(kept(bytes, is_too_large));
            }
        }
    }

    fn read_whole(&mut self) -> Result<Vec<u8>, Fault> {
        match self.read_element()? {
            Element::Whole(bytes) if bytes.is_empty() => Err(damage("there is a bracket or a comma too many")),
            Element::Whole(bytes) => Ok(bytes),
            Element::TooLarge => {
                Err(Fault::Record(format!("larger than {} bytes, the most that a record may have", self.max_bytes)))
            }
            Element::CutOff => Err(damage("the file ends inside this record")),
        }
    }
}

impl<R: BufRead> Iterator for Elements<R> {
    type Item = Result<Chunk, ChunkFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_there = self.seek();
        let place = self.place;
        let element = match is_there {
            Ok(true) => self.read_whole(),
            Ok(false) => return None,
            Err(fault) => Err(fault),
        };
        self.is_first = false;
        let at_offset = |fault| match fault {
            // Many exports are one long line, in which a line's number is no help.
            Fault::File(what) => Fault::File(format!("{what} (byte offset {})", place.offset)),
            fault => fault,
        };
        let fault = |fault| ChunkFault { line: place.line, fault: at_offset(fault) };
        Some(element.map(|bytes| Chunk { place, bytes }).map_err(fault))
    }
}

fn damage(what: &str) -> Fault {
    Fault::File(what.to_owned())
}

fn kept(bytes: Vec<u8>, is_too_large: bool) -> Element {
    if is_too_large { Element::TooLarge } else { Element::Whole(bytes) }
}

/// Where an element ends, found over as many buffers as it takes.
#[derive(Debug, Default)]
struct Scan {
    depth: u64,
    in_text: bool,
    is_escaped: bool,
    /// Inside a number, `true`, `false`, `null`, or what somebody took for one.
    in_word: bool,
}

impl Scan {
    /// How many bytes of the buffer belong to the element, if it ends here.
    fn end(&mut self, buffer: &[u8]) -> Option<usize> {
        for (at, byte) in buffer.iter().enumerate() {
            if self.in_text {
                self.step_in_text(*byte);
                if !self.in_text && self.depth == 0 {
                    return Some(at + 1);
                }
            } else if self.depth == 0 {
                if !self.begins_or_goes_on(*byte) {
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

    /// Whether the element may end with the file.
    fn may_end(&self) -> bool {
        self.in_word
    }

    fn begins_or_goes_on(&mut self, byte: u8) -> bool {
        match byte {
            b'[' | b'{' | b'"' if self.in_word => return false,
            b'[' | b'{' => self.depth = 1,
            b'"' => self.in_text = true,
            b',' | b']' | b'}' => return false,
            byte if byte.is_ascii_whitespace() => return false,
            _ => self.in_word = true,
        }
        true
    }

    fn step_in_text(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.in_text = false,
            _ => {}
        }
    }

    fn step_between_brackets(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_text = true,
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

    /// The bracket that opens the list has been read.
    const AFTER_BRACKET: Place = Place { line: 1, offset: 1 };

    type Seen = Vec<Result<(u64, String), (u64, String)>>;

    fn elements(outer: Outer, text: &str, max_bytes: usize) -> Seen {
        // A buffer of three bytes puts its border everywhere.
        let elements = Elements::new(BufReader::with_capacity(3, text.as_bytes()), outer, AFTER_BRACKET, max_bytes);
        let mut seen = Vec::new();
        for chunk in elements {
            match chunk {
                Ok(Chunk { place, bytes }) => seen.push(Ok((place.line, String::from_utf8(bytes).unwrap()))),
                Err(ChunkFault { line, fault }) => {
                    seen.push(Err((line, fault.to_string())));
                    if fault.is_final() {
                        break;
                    }
                }
            }
        }
        seen
    }

    fn is(line: u64, text: &str) -> Result<(u64, String), (u64, String)> {
        Ok((line, text.to_owned()))
    }

    fn ends(line: u64, offset: u64, why: &str) -> Result<(u64, String), (u64, String)> {
        Err((line, format!("{why} (byte offset {offset}); nothing after this place was read")))
    }

    #[test]
    fn a_list_is_split_at_its_own_commas() {
        let text = r#" {"a": "}],\"\\"},
            [1, [2], {}] , "x,]" ,12,
            null ]  "#;
        let expected =
            [is(1, r#"{"a": "}],\"\\"}"#), is(2, "[1, [2], {}]"), is(2, r#""x,]""#), is(2, "12"), is(3, "null")];
        assert_eq!(elements(Outer::List, text, 100), expected);
        assert_eq!(elements(Outer::List, "]", 100), []);
    }

    #[test]
    fn a_sequence_needs_only_white_space() {
        let expected = [is(1, "{\n}"), is(3, "{}"), is(3, "[]"), is(3, "1")];
        assert_eq!(elements(Outer::Sequence, "{\n}\n{}[] 1", 100), expected);
    }

    #[test]
    fn what_breaks_the_list_ends_it() {
        let list = |text| elements(Outer::List, text, 100);
        assert_eq!(list("{},\n{"), [is(1, "{}"), ends(2, 5, "the file ends inside this record")]);
        assert_eq!(list("{}"), [is(1, "{}"), ends(1, 3, "the file ends before the list is closed")]);
        assert_eq!(list("{},"), [is(1, "{}"), ends(1, 4, "the file ends before the list is closed")]);
        assert_eq!(list("{},]"), [is(1, "{}"), ends(1, 4, "there is a bracket or a comma too many")]);
        assert_eq!(list("{} {}]"), [is(1, "{}"), ends(1, 4, "there is no comma between two elements of the list")]);
        assert_eq!(list("{}]\n]"), [is(1, "{}"), ends(2, 5, "there is something after the end of the list")]);
    }

    #[test]
    fn an_element_that_is_too_large_is_skipped() {
        let too_large = (1, "larger than 6 bytes, the most that a record may have".to_owned());
        assert_eq!(elements(Outer::List, r#"{"a":"]]]]"},{}]"#, 6), [Err(too_large), is(1, "{}")]);
    }
}
