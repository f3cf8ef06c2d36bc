//! Extracts the visible text of HTML pages.
//!
//! Tags are processed as a stream without building a tree, so neither nesting depth nor missing end tags matter. The number
//! of attributes is limited, because the tokenizer recurses for each attribute with a quoted value.

use std::cell::Cell;
use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Readable, Reader, Span, StringReader, Tokenizer};

use super::block::{self, Block, Paragraph};
use super::markdown::Lines;
use super::{SplitError, TAG_ATTRIBUTES};

/// Returns the title of the page and its blocks.
pub(super) fn blocks(text: &str) -> Result<(Option<String>, Vec<Block>), SplitError> {
    let lines = Lines::of(text);
    let tag = OpenTag::default();
    let mut writer = Writer::default();
    let mut name = String::new();
    let mut emitter = CallbackEmitter::<_, Infallible, usize>::new(|event: CallbackEvent<'_>, span: Span<usize>| {
        match event {
            CallbackEvent::OpenStartTag { name: opened } => {
                tag.open(span.start);
                name = String::from_utf8_lossy(opened).into_owned();
            }
            CallbackEvent::AttributeName { .. } => tag.attributes.set(tag.attributes.get() + 1),
            CallbackEvent::CloseStartTag { self_closing } => {
                tag.attributes.set(0);
                writer.start(&name, self_closing, lines.at(tag.start.get()));
            }
            CallbackEvent::EndTag { name } => {
                tag.open(span.end);
                writer.end(&String::from_utf8_lossy(name));
            }
            CallbackEvent::String { value } => {
                tag.open(span.end);
                writer.write(&String::from_utf8_lossy(value), lines.at(span.start));
            }
            _ => {}
        }
        None
    });
    emitter.naively_switch_states(true);
    let tokenizer = Tokenizer::new_with_emitter(BoundedReader { text: text.to_reader(), tag: &tag }, emitter);
    if tokenizer.finish().is_err() {
        return Err(SplitError::Attributes { line: lines.at(tag.start.get()) });
    }
    writer.finish_paragraph();
    Ok((writer.title, writer.blocks))
}

/// The tag that is being read.
#[derive(Debug, Default)]
struct OpenTag {
    /// The byte at which the tag starts. For an end tag, the end of the preceding token.
    start: Cell<usize>,
    attributes: Cell<usize>,
}

impl OpenTag {
    fn open(&self, start: usize) {
        self.start.set(start);
        self.attributes.set(0);
    }
}

/// Reads the text, and fails if a tag has too many attributes.
struct BoundedReader<'a> {
    text: StringReader<'a>,
    tag: &'a OpenTag,
}

#[derive(Debug, thiserror::Error)]
#[error("a tag has more than {TAG_ATTRIBUTES} attributes")]
struct TooManyAttributes;

impl BoundedReader<'_> {
    fn check(&self) -> Result<(), TooManyAttributes> {
        if self.tag.attributes.get() > TAG_ATTRIBUTES { Err(TooManyAttributes) } else { Ok(()) }
    }
}

impl Reader for BoundedReader<'_> {
    type Error = TooManyAttributes;

    fn read_byte(&mut self) -> Result<Option<u8>, Self::Error> {
        self.check()?;
        let Ok(byte) = self.text.read_byte();
        Ok(byte)
    }

    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Self::Error> {
        let Ok(is_read) = self.text.try_read_string(text, case_sensitive);
        Ok(is_read)
    }

    fn read_until<'b>(&'b mut self, needle: &[u8], buffer: &'b mut [u8; 4]) -> Result<Option<&'b [u8]>, Self::Error> {
        self.check()?;
        let Ok(text) = self.text.read_until(needle, buffer);
        Ok(text)
    }
}

#[derive(Default)]
struct Writer {
    title: Option<String>,
    blocks: Vec<Block>,
    paragraph: Paragraph,
    heading: Option<(u8, String, usize)>,
    /// The enclosing element that hides its text.
    hidden: Option<String>,
    is_title: bool,
    is_preformatted: bool,
}

impl Writer {
    fn start(&mut self, name: &str, is_closed: bool, line: usize) {
        if self.hidden.is_some() {
            return;
        }
        match name {
            "script" | "style" | "template" | "noscript" | "iframe" | "svg" | "textarea" | "select" | "nav" => {
                self.hidden = (!is_closed).then(|| name.to_owned());
            }
            "title" => self.is_title = self.title.is_none(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.finish_paragraph();
                self.finish_heading();
                self.heading = Some((name.as_bytes()[1] - b'0', String::new(), line));
            }
            "br" | "tr" => self.break_line(line),
            "li" | "dt" | "dd" => {
                self.break_line(line);
                self.paragraph.push("- ", line);
            }
            "td" | "th" => self.separate_cells(line),
            "pre" => {
                self.finish_paragraph();
                self.is_preformatted = true;
            }
            _ if is_block(name) => self.finish_paragraph(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(hidden) = &self.hidden {
            if hidden == name {
                self.hidden = None;
            }
            return;
        }
        match name {
            "title" => self.is_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.finish_heading(),
            "pre" => {
                self.finish_paragraph();
                self.is_preformatted = false;
            }
            _ if is_block(name) => self.finish_paragraph(),
            _ => {}
        }
    }

    fn write(&mut self, text: &str, line: usize) {
        if self.hidden.is_some() {
            return;
        }
        if self.is_title {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.title = (!words.is_empty()).then_some(words);
        } else if let Some((_, heading, _)) = &mut self.heading {
            heading.push_str(text);
        } else if self.is_preformatted {
            self.paragraph.push(text, line);
        } else {
            self.write_words(text, line);
        }
    }

    /// Writes words and collapses the whitespace between them, as a browser does.
    fn write_words(&mut self, text: &str, line: usize) {
        for (index, part) in text.split('\n').enumerate() {
            let line = line + index;
            let starts_with_space = index > 0 || part.starts_with(char::is_whitespace);
            let mut needs_space = starts_with_space;
            for word in part.split_whitespace() {
                self.write_space(needs_space, line);
                self.paragraph.push(word, line);
                needs_space = true;
            }
            self.write_space(
                part.ends_with(char::is_whitespace) || (starts_with_space && part.trim().is_empty()),
                line,
            );
        }
    }

    fn write_space(&mut self, needs_space: bool, line: usize) {
        let text = &self.paragraph.text;
        if needs_space && !text.is_empty() && !text.ends_with(char::is_whitespace) {
            self.paragraph.push(" ", line);
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

    fn finish_heading(&mut self) {
        if let Some((level, text, line)) = self.heading.take() {
            self.blocks.push(block::heading(level, &text, line));
        }
    }

    fn finish_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if !paragraph.is_blank() {
            self.blocks.push(Block::Paragraph(paragraph));
        }
    }
}

/// Whether an element starts and ends a paragraph.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "main"
            | "aside"
            | "header"
            | "footer"
            | "body"
            | "ul"
            | "ol"
            | "dl"
            | "table"
            | "blockquote"
            | "figure"
            | "figcaption"
            | "form"
            | "fieldset"
            | "details"
            | "summary"
            | "hr"
            | "address"
    )
}
