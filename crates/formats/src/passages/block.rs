//! What a document is made of, whatever it is written in.

use unicode_segmentation::UnicodeSegmentation;

/// Characters of a heading that count, as readers see them.
const HEADING_GRAPHEMES: usize = 100;
/// Bytes of a heading: one character can have any number of combining marks, and each passage below repeats the heading.
const HEADING_BYTES: usize = 1_000;

/// A heading or a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Heading { level: u8, text: String, line: usize },
    Paragraph(Paragraph),
}

/// Text of which each place knows its line in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paragraph {
    pub(super) text: String,
    /// From which byte of the text on which line of the file is told, ascending.
    marks: Vec<(usize, usize)>,
}

impl Paragraph {
    /// Adds text that begins on a line of the file; lines after it are counted.
    pub(super) fn push(&mut self, text: &str, line: usize) {
        for (place, part) in text.split_inclusive('\n').enumerate() {
            let (at, line) = (self.text.len(), line + place);
            if self.marks.last().is_none_or(|(_, known)| *known != line) {
                self.marks.push((at, line));
            }
            self.text.push_str(part);
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The line of the file where a byte of the text stands.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        let after = self.marks.partition_point(|(from, _)| *from <= byte);
        self.marks[..after].last().or(self.marks.first()).map_or(1, |(_, line)| *line)
    }
}

/// A heading's words on one line.
pub(super) fn heading(level: u8, text: &str, line: usize) -> Block {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let most = words.floor_char_boundary(HEADING_BYTES);
    let end = words[..most].grapheme_indices(true).nth(HEADING_GRAPHEMES).map_or(most, |(end, _)| end);
    let text = if end < words.len() { format!("{}…", &words[..end]) } else { words };
    Block::Heading { level, text, line }
}

/// The first heading of the highest level that there is.
pub(super) fn first_heading(blocks: &[Block]) -> Option<String> {
    let headings = blocks.iter().filter_map(|block| match block {
        Block::Heading { level, text, .. } if !text.is_empty() => Some((*level, text)),
        _ => None,
    });
    headings.min_by_key(|(level, _)| *level).map(|(_, text)| text.clone())
}
