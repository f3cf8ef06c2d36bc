//! Splits a file into records: lines, elements of a top-level array, or multi-line objects in sequence.
//!
//! The layout is detected by the first bytes. It does not depend on the format: every format can have any layout.

mod blocks;
mod elements;
mod lines;

use std::io::{self, BufRead, Cursor, Read};

use serde::de::IgnoredAny;

use crate::error::{ConversationName, Fault, RecordError};
use crate::input::Input;
use blocks::Blocks;
pub(crate) use blocks::{Kind as Block, START};
use elements::{Elements, Framing};
use lines::{Line, Lines};

/// The maximum length of a line: 64 MiB.
pub const LINE_BYTES: usize = 64 * 1024 * 1024;
/// The maximum size of an element of a list: 256 MiB.
pub const ELEMENT_BYTES: usize = 256 * 1024 * 1024;

/// The text of one record.
#[derive(Debug)]
pub(crate) struct Record {
    /// The 1-based line on which the record starts.
    pub(crate) line: u64,
    /// The 0-based index of the record.
    pub(crate) index: u64,
    /// The byte offset in the decompressed text at which the record starts.
    pub(crate) offset: u64,
    pub(crate) text: String,
}

/// The bytes of one record.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    position: FilePosition,
    bytes: Vec<u8>,
}

/// A position in the decompressed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FilePosition {
    /// The 1-based line.
    line: u64,
    /// The byte offset.
    offset: u64,
}

impl FilePosition {
    const START: Self = Self { line: 1, offset: 0 };

    fn advance(&mut self, bytes: &[u8]) {
        self.line += count_line_feeds(bytes);
        self.offset += bytes.len() as u64;
    }
}

/// An error that takes the place of a chunk.
#[derive(Debug)]
struct ChunkFault {
    line: u64,
    fault: Fault,
}

/// Iterates over the records of a file. Ends after a final fault.
pub(crate) struct Records {
    layout: Layout,
    next_index: u64,
    is_finished: bool,
}

enum Layout {
    Lines(Lines<Input>),
    Elements(Elements<Input>),
    Blocks(Blocks<Input>),
}

impl Records {
    /// Detects the layout. Returns `None` if the input contains only whitespace.
    pub(crate) fn open(mut input: Input) -> io::Result<Option<Self>> {
        let mut position = FilePosition::START;
        let layout = match skip_whitespace(&mut input, &mut position)? {
            None => return Ok(None),
            Some(b'[') => {
                input.consume(1);
                position.offset += 1;
                Layout::Elements(Elements::new(input, Framing::List, position, ELEMENT_BYTES))
            }
            Some(b'{') => layout_of_objects(input, position)?,
            Some(b'#') if input.fill_buf()?.starts_with(START.as_bytes()) => {
                Layout::Blocks(Blocks::new(input, position, LINE_BYTES))
            }
            Some(_) => Layout::Lines(Lines::new(input, position, LINE_BYTES)),
        };
        Ok(Some(Self { layout, next_index: 0, is_finished: false }))
    }

    /// Whether the records are blocks of Markdown, and not JSON.
    pub(crate) fn are_blocks(&self) -> bool {
        matches!(self.layout, Layout::Blocks(_))
    }

    fn next_chunk(&mut self) -> Option<Result<Chunk, ChunkFault>> {
        match &mut self.layout {
            Layout::Lines(lines) => lines.next(),
            Layout::Elements(elements) => elements.next(),
            Layout::Blocks(blocks) => blocks.next(),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let Some(chunk) = self.next_chunk() else {
            self.is_finished = true;
            return None;
        };
        let index = self.next_index;
        self.next_index += 1;
        let read = chunk.and_then(|chunk| Ok((chunk.position, text_of(chunk)?)));
        let record = |(FilePosition { line, offset }, text)| Record { line, index, offset, text };
        Some(read.map(record).map_err(|ChunkFault { line, fault }| {
            self.is_finished = fault.is_final();
            RecordError { line, record: index, conversation: ConversationName::default(), fault }
        }))
    }
}

/// Distinguishes one object per line from multi-line objects. Objects are multi-line if the first line is an incomplete
/// object and the next line does not start with `{`.
fn layout_of_objects(input: Input, position: FilePosition) -> io::Result<Layout> {
    let mut lines = Lines::new(input, position, LINE_BYTES);
    let Some(Line::Whole(first)) = lines.peek_line()? else { return Ok(Layout::Lines(lines)) };
    let is_incomplete = serde_json::from_slice::<IgnoredAny>(first).is_err_and(|error| error.is_eof());
    if !is_incomplete || matches!(lines.peek_byte_after_line()?, None | Some(b'{')) {
        return Ok(Layout::Lines(lines));
    }
    let (first, rest) = lines.into_first_line_and_rest();
    let unsplit: Input = Box::new(Cursor::new(first).chain(rest));
    Ok(Layout::Elements(Elements::new(unsplit, Framing::Sequence, position, ELEMENT_BYTES)))
}

fn text_of(chunk: Chunk) -> Result<String, ChunkFault> {
    let Chunk { position, bytes } = chunk;
    String::from_utf8(bytes).map_err(|error| {
        let mut invalid_at = position;
        invalid_at.advance(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let reason = format!("invalid UTF-8 on line {} at byte offset {}", invalid_at.line, invalid_at.offset);
        ChunkFault { line: position.line, fault: Fault::Record(reason) }
    })
}

fn count_line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Skips whitespace. Returns the next byte without consuming it.
fn skip_whitespace(input: &mut impl BufRead, position: &mut FilePosition) -> io::Result<Option<u8>> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let spaces = buffer.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(buffer.len());
        let found = buffer.get(spaces).copied();
        position.advance(&buffer[..spaces]);
        input.consume(spaces);
        if found.is_some() {
            return Ok(found);
        }
    }
}
