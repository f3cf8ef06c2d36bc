//! Extracts the text of Markdown documents without the markup.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::block::{self, Block, Paragraph};
use super::{NESTED_BLOCKS, SplitError};

pub(super) fn blocks(text: &str) -> Result<Vec<Block>, SplitError> {
    check_nesting(text)?;
    let lines = Lines::of(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        writer.take(event, lines.at(range.start));
    }
    writer.finish_paragraph();
    Ok(writer.blocks)
}

/// Rejects deep nesting, because for each line of a paragraph the parser visits all open quotes and lists.
fn check_nesting(text: &str) -> Result<(), SplitError> {
    let mut line = 1;
    for part in text.split_inclusive(['\n', '\r']) {
        if nesting(part) > NESTED_BLOCKS {
            return Err(SplitError::Nesting { line });
        }
        line += usize::from(part.ends_with('\n'));
    }
    Ok(())
}

/// Returns an upper bound on the number of quotes and lists that are open after a line that opens one. Each needs a
/// marker on the line, or two columns of indentation if it was opened on an earlier line.
fn nesting(line: &str) -> usize {
    let (mut markers, mut columns, mut depth) = (0, 0, 0);
    let mut rest = line.as_bytes();
    if is_rule(rest) {
        return 0;
    }
    while let Some((byte, tail)) = rest.split_first() {
        let marker = match byte {
            b' ' => {
                columns += 1;
                rest = tail;
                continue;
            }
            b'\t' => {
                columns += 4;
                rest = tail;
                continue;
            }
            b'>' => 1,
            b'-' | b'+' | b'*' => 1,
            b'0'..=b'9' => rest.iter().take_while(|byte| byte.is_ascii_digit()).count() + 1,
            _ => break,
        };
        markers += 1;
        depth = markers + columns / 2;
        rest = rest.get(marker..).unwrap_or_default();
    }
    depth
}

/// Whether a line is a thematic break: markers of one kind, possibly with whitespace between them.
fn is_rule(line: &[u8]) -> bool {
    let mut markers = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    let Some(first) = markers.next().filter(|first| matches!(first, b'-' | b'*')) else { return false };
    markers.all(|marker| marker == first)
}

#[derive(Default)]
struct Writer {
    blocks: Vec<Block>,
    paragraph: Paragraph,
    heading: Option<(u8, String, usize)>,
    /// The number of open lists and tables. An outermost list or table is one block; its items or rows are lines.
    depth: usize,
}

impl Writer {
    fn take(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(tag) => self.start(&tag, line),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.write(&text, line);
            }
            Event::SoftBreak | Event::HardBreak => self.write("\n", line),
            Event::TaskListMarker(is_done) => self.write(if is_done { "[x] " } else { "[ ] " }, line),
            Event::Rule => self.finish_paragraph(),
            // Other events are not part of the text.
            Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, line: usize) {
        match tag {
            Tag::Heading { level, .. } => {
                self.finish_paragraph();
                self.heading = Some((*level as u8, String::new(), line));
            }
            Tag::List(_) | Tag::Table(_) => {
                self.finish_outermost();
                self.depth += 1;
            }
            Tag::Item => {
                self.break_line(line);
                self.write("- ", line);
            }
            Tag::TableHead | Tag::TableRow => self.break_line(line),
            Tag::TableCell => self.separate_cells(line),
            Tag::Paragraph | Tag::CodeBlock(_) => self.finish_outermost(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                if let Some((level, text, line)) = self.heading.take() {
                    self.blocks.push(block::heading(level, &text, line));
                }
            }
            TagEnd::List(_) | TagEnd::Table => {
                self.depth = self.depth.saturating_sub(1);
                self.finish_outermost();
            }
            TagEnd::Paragraph | TagEnd::CodeBlock => self.finish_outermost(),
            _ => {}
        }
    }

    fn write(&mut self, text: &str, line: usize) {
        match &mut self.heading {
            Some((_, heading, _)) => heading.push_str(text),
            None => self.paragraph.push(text, line),
        }
    }

    fn break_line(&mut self, line: usize) {
        if !self.paragraph.text.is_empty() && !self.paragraph.text.ends_with('\n') {
            self.paragraph.push("\n", line);
        }
    }

    fn separate_cells(&mut self, line: usize) {
        if !self.paragraph.text.is_empty() && !self.paragraph.text.ends_with('\n') {
            self.paragraph.push(" | ", line);
        }
    }

    /// Ends a block, except inside a list or table.
    fn finish_outermost(&mut self) {
        if self.depth == 0 {
            self.finish_paragraph();
        }
    }

    fn finish_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if !paragraph.is_blank() {
            self.blocks.push(Block::Paragraph(paragraph));
        }
    }
}

/// The byte offsets at which lines start.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// Returns the 1-based number of the line that contains a byte.
    pub(super) fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}
