//! How a file becomes records: its lines, the elements of its one list, or its objects written over several lines.
//!
//! Which of the three it is shows in the first bytes and not in the format, so that every format may come in any of them.

mod elements;
mod lines;

use std::io::{self, BufRead, Cursor, Read};

use serde::de::IgnoredAny;

use crate::error::{ConversationName, Fault, RecordError};
use crate::input::Input;
use elements::{Elements, Outer};
use lines::{Line, Lines};

/// The longest line that is read: 64 MiB.
pub const LINE_BYTES: usize = 64 * 1024 * 1024;
/// The largest element of a list that is read: 256 MiB.
pub const ELEMENT_BYTES: usize = 256 * 1024 * 1024;

/// The text of one record.
#[derive(Debug)]
pub(crate) struct Record {
    /// The line that it starts on, from 1.
    pub(crate) line: u64,
    /// Its place among the records, from 0.
    pub(crate) index: u64,
    /// The byte that it starts at, from 0, in the unpacked text.
    pub(crate) offset: u64,
    /// Its text.
    pub(crate) text: String,
}

/// The bytes of one record.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    place: Place,
    bytes: Vec<u8>,
}

/// A place in the unpacked text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The line, from 1.
    line: u64,
    /// The byte, from 0.
    offset: u64,
}

impl Place {
    const START: Self = Self { line: 1, offset: 0 };

    fn pass(&mut self, bytes: &[u8]) {
        self.line += line_feeds(bytes);
        self.offset += bytes.len() as u64;
    }
}

/// What is wrong where a chunk should be.
#[derive(Debug)]
struct ChunkFault {
    line: u64,
    fault: Fault,
}

/// Reads a file's records. After a fault that is final there are none.
pub(crate) struct Records {
    layout: Layout,
    next_index: u64,
    is_over: bool,
}

enum Layout {
    Lines(Lines<Input>),
    Elements(Elements<Input>),
}

impl Records {
    /// Looks at the beginning; `None` when there is nothing but white space.
    pub(crate) fn open(mut input: Input) -> io::Result<Option<Self>> {
        let mut place = Place::START;
        let layout = match skip_white_space(&mut input, &mut place)? {
            None => return Ok(None),
            Some(b'[') => {
                input.consume(1);
                place.offset += 1;
                Layout::Elements(Elements::new(input, Outer::List, place, ELEMENT_BYTES))
            }
            Some(b'{') => layout_of_objects(input, place)?,
            Some(_) => Layout::Lines(Lines::new(input, place, LINE_BYTES)),
        };
        Ok(Some(Self { layout, next_index: 0, is_over: false }))
    }

    fn next_chunk(&mut self) -> Option<Result<Chunk, ChunkFault>> {
        match &mut self.layout {
            Layout::Lines(lines) => lines.next(),
            Layout::Elements(elements) => elements.next(),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let Some(chunk) = self.next_chunk() else {
            self.is_over = true;
            return None;
        };
        let index = self.next_index;
        self.next_index += 1;
        let read = chunk.and_then(|chunk| Ok((chunk.place, text_of(chunk)?)));
        let record = |(Place { line, offset }, text)| Record { line, index, offset, text };
        Some(read.map(record).map_err(|ChunkFault { line, fault }| {
            self.is_over = fault.is_final();
            RecordError { line, record: index, conversation: ConversationName::default(), fault }
        }))
    }
}

/// One object a line, or objects over several lines: a first line that is only the beginning of an object, with
/// something else than another object in the line below, belongs to the latter.
fn layout_of_objects(input: Input, place: Place) -> io::Result<Layout> {
    let mut lines = Lines::new(input, place, LINE_BYTES);
    let Some(Line::Whole(first)) = lines.peek_line()? else { return Ok(Layout::Lines(lines)) };
    let is_cut = serde_json::from_slice::<IgnoredAny>(first).is_err_and(|error| error.is_eof());
    if !is_cut || matches!(lines.peek_byte_after_line()?, None | Some(b'{')) {
        return Ok(Layout::Lines(lines));
    }
    let (first, rest) = lines.into_first_line_and_rest();
    let whole: Input = Box::new(Cursor::new(first).chain(rest));
    Ok(Layout::Elements(Elements::new(whole, Outer::Sequence, place, ELEMENT_BYTES)))
}

fn text_of(chunk: Chunk) -> Result<String, ChunkFault> {
    let Chunk { place, bytes } = chunk;
    String::from_utf8(bytes).map_err(|error| {
        let mut bad = place;
        bad.pass(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let reason = format!("line {} is not valid UTF-8, at byte offset {}", bad.line, bad.offset);
        ChunkFault { line: place.line, fault: Fault::Record(reason) }
    })
}

fn line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Goes to the next byte that is not white space and looks at it.
fn skip_white_space(input: &mut impl BufRead, place: &mut Place) -> io::Result<Option<u8>> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let spaces = buffer.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(buffer.len());
        let found = buffer.get(spaces).copied();
        place.pass(&buffer[..spaces]);
        input.consume(spaces);
        if found.is_some() {
            return Ok(found);
        }
    }
}
