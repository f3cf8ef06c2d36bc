//! Packs blocks into passages.

use unicode_segmentation::UnicodeSegmentation;

use super::block::{Block, Paragraph};
use super::{DOCUMENT_PASSAGES, DocumentPassage, PASSAGE_CHARACTERS, SplitError};

/// The text between the headings of a path.
const HEADING_SEPARATOR: &str = " > ";

/// Packs blocks into passages. A heading starts a new passage. So does a paragraph that does not fit into the current
/// passage.
pub(super) fn passages(blocks: Vec<Block>) -> Result<Vec<DocumentPassage>, SplitError> {
    let mut packer = Packer::default();
    for block in blocks {
        match block {
            Block::Heading { level, text, line } => packer.start_section(level, text, line),
            Block::Paragraph(paragraph) => packer.add(&paragraph)?,
        }
        packer.check()?;
    }
    packer.finish();
    packer.check()?;
    Ok(packer.passages)
}

#[derive(Default)]
struct Packer {
    passages: Vec<DocumentPassage>,
    headings: Vec<(u8, String)>,
    /// The line of the first heading that is not part of a passage yet.
    pending_heading: Option<usize>,
    text: String,
    characters: usize,
    lines: Option<(usize, usize)>,
}

impl Packer {
    fn start_section(&mut self, level: u8, text: String, line: usize) {
        self.finish_section(level);
        self.headings.retain(|(above, _)| *above < level);
        if !text.is_empty() {
            self.headings.push((level, text));
            self.pending_heading.get_or_insert(line);
        }
    }

    /// Ends the section of the last heading. A heading without text becomes a passage, unless a deeper heading follows.
    fn finish_section(&mut self, next_level: u8) {
        let is_bare = self.text.is_empty() && self.headings.last().is_some_and(|(level, _)| *level >= next_level);
        if !self.text.is_empty() || is_bare {
            self.finish();
        }
    }

    /// Fails if there are too many passages. The limit bounds memory, because each passage repeats its headings.
    fn check(&self) -> Result<(), SplitError> {
        if self.passages.len() > DOCUMENT_PASSAGES { Err(SplitError::Passages) } else { Ok(()) }
    }

    fn add(&mut self, paragraph: &Paragraph) -> Result<(), SplitError> {
        let text = paragraph.text.trim_end();
        for (start, piece) in pieces(text) {
            self.check()?;
            let characters = piece.chars().count();
            if !self.text.is_empty() && self.characters + 2 + characters > PASSAGE_CHARACTERS {
                self.finish();
            }
            if !self.text.is_empty() {
                self.text.push_str("\n\n");
                self.characters += 2;
            }
            self.text.push_str(piece);
            self.characters += characters;
            let (first, last) = (paragraph.line_at(start), paragraph.line_at(start + piece.len() - 1));
            let from = self.lines.map(|(from, _)| from).or(self.pending_heading.take()).unwrap_or(first);
            self.lines = Some((from, last));
        }
        Ok(())
    }

    fn finish(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.characters = 0;
        let lines = self.lines.take().or_else(|| self.pending_heading.map(|line| (line, line)));
        self.pending_heading = None;
        let Some((first, last)) = lines else { return };
        let path = self.headings.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(HEADING_SEPARATOR);
        let lines = if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
        let place = if path.is_empty() { lines } else { format!("{path}, {lines}") };
        let parts: Vec<String> = [path, text].into_iter().filter(|part| !part.is_empty()).collect();
        self.passages.push(DocumentPassage { place, text: parts.join("\n\n") });
    }
}

/// Splits a paragraph into pieces that fit into a passage. Returns each piece with the byte offset at which it starts.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let start = text.len() - text.trim_start().len();
    let mut pieces = Vec::new();
    let (mut at, mut rest) = (start, text.trim());
    while !rest.is_empty() {
        let end = first_piece_end(rest);
        pieces.push((at, rest[..end].trim_end()));
        let next = rest[end..].trim_start();
        at += rest.len() - next.len();
        rest = next;
    }
    pieces
}

/// Returns the end of the first piece of the text.
fn first_piece_end(text: &str) -> usize {
    let Some((max_end, _)) = text.char_indices().nth(PASSAGE_CHARACTERS) else { return text.len() };
    // The search is limited to twice the length of a piece, so that the cost stays linear for long paragraphs.
    let reach = text[max_end..].char_indices().nth(PASSAGE_CHARACTERS).map_or(text.len(), |(at, _)| max_end + at);
    let window = &text[..reach];
    let last = |ends: &mut dyn Iterator<Item = usize>| ends.take_while(|end| *end <= max_end).last();
    let trimmed_end = |(at, part): (usize, &str)| at + part.trim_end().len();
    let sentences = last(&mut window.split_sentence_bound_indices().map(trimmed_end)).filter(|end| *end >= max_end / 2);
    let words = || {
        let gaps = window.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at);
        last(&mut gaps.filter(|at| *at > 0)).filter(|end| *end >= max_end / 2)
    };
    let graphemes = || last(&mut window.grapheme_indices(true).map(|(at, part)| at + part.len()));
    // A single grapheme cluster that is longer than a passage is not split.
    let first = || text.graphemes(true).next().map_or(text.len(), str::len);
    sentences.or_else(words).or_else(graphemes).unwrap_or_else(first)
}
