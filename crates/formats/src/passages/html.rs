//! HTML: the words that a browser shows.
//!
//! Tags are read one by one and no tree is built, so neither depth nor missing ends matter.

use html5gum::{DefaultEmitter, Token, Tokenizer};

use super::block::{self, Block, Paragraph};
use super::markdown::Lines;

/// The page's own title, and its blocks.
pub(super) fn blocks(text: &str) -> (Option<String>, Vec<Block>) {
    let lines = Lines::of(text);
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    let mut writer = Writer::default();
    for token in Tokenizer::new_with_emitter(text, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let line = lines.at(tag.span.start);
                writer.start(&String::from_utf8_lossy(&tag.name), tag.self_closing, line);
            }
            Token::EndTag(tag) => writer.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(words) => {
                writer.write(&String::from_utf8_lossy(&words.value), lines.at(words.span.start));
            }
            _ => {}
        }
    }
    writer.finish_paragraph();
    (writer.title, writer.blocks)
}

#[derive(Default)]
struct Writer {
    title: Option<String>,
    blocks: Vec<Block>,
    paragraph: Paragraph,
    heading: Option<(u8, String, usize)>,
    /// The element whose words are not shown.
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
            "td" | "th" => self.part_cells(line),
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

    /// Words with single spaces, as a browser shows them.
    fn write_words(&mut self, text: &str, line: usize) {
        for (place, part) in text.split('\n').enumerate() {
            let line = line + place;
            let starts_apart = place > 0 || part.starts_with(char::is_whitespace);
            let mut is_apart = starts_apart;
            for word in part.split_whitespace() {
                self.put_apart(is_apart, line);
                self.paragraph.push(word, line);
                is_apart = true;
            }
            self.put_apart(part.ends_with(char::is_whitespace) || (starts_apart && part.trim().is_empty()), line);
        }
    }

    fn put_apart(&mut self, is_apart: bool, line: usize) {
        let text = &self.paragraph.text;
        if is_apart && !text.is_empty() && !text.ends_with(char::is_whitespace) {
            self.paragraph.push(" ", line);
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

/// Elements before and after which a paragraph ends.
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
