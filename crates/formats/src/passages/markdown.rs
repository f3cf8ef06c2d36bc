//! Markdown: its words without its marks.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::block::{self, Block, Paragraph};

pub(super) fn blocks(text: &str) -> Vec<Block> {
    let lines = Lines::of(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        writer.take(event, lines.at(range.start));
    }
    writer.finish_paragraph();
    writer.blocks
}

#[derive(Default)]
struct Writer {
    blocks: Vec<Block>,
    paragraph: Paragraph,
    heading: Option<(u8, String, usize)>,
    /// Lists and tables are one block each: items and rows are its lines.
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
            // What a page shows beside its words is no part of what it says.
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
            Tag::TableCell => self.part_cells(line),
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

    fn part_cells(&mut self, line: usize) {
        if !self.paragraph.text.is_empty() && !self.paragraph.text.ends_with('\n') {
            self.paragraph.push(" | ", line);
        }
    }

    /// Ends a block, unless it stands inside a list or table.
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

/// Where each line of a text begins.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// The line, from 1, where a byte stands.
    pub(super) fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}
