//! Defines the blocks of a document, which are independent of its format.

use unicode_segmentation::UnicodeSegmentation;

/// The maximum number of grapheme clusters in a heading.
const HEADING_GRAPHEMES: usize = 100;
/// The maximum size of a heading in bytes. Needed because a grapheme can have any number of combining marks, and because
/// passages repeat their headings.
const HEADING_BYTES: usize = 1_000;

/// A heading or a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Heading { level: u8, text: String, line: usize },
    Paragraph(Paragraph),
}

/// Text with its line numbers in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paragraph {
    pub(super) text: String,
    /// For each line of the file: the byte offset in the text at which the line starts, and the line number, ascending.
    line_starts: Vec<(usize, usize)>,
}

impl Paragraph {
    /// Appends text that starts on a line of the file.
    pub(super) fn push(&mut self, text: &str, line: usize) {
        for (index, part) in text.split_inclusive('\n').enumerate() {
            let (at, line) = (self.text.len(), line + index);
            if self.line_starts.last().is_none_or(|(_, known)| *known != line) {
                self.line_starts.push((at, line));
            }
            self.text.push_str(part);
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the line of the file that contains a byte of the text.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        let after = self.line_starts.partition_point(|(from, _)| *from <= byte);
        self.line_starts[..after].last().or(self.line_starts.first()).map_or(1, |(_, line)| *line)
    }
}

/// Creates a heading. Its text is joined into one line and truncated.
pub(super) fn heading(level: u8, text: &str, line: usize) -> Block {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let max_end = words.floor_char_boundary(HEADING_BYTES);
    let end = words[..max_end].grapheme_indices(true).nth(HEADING_GRAPHEMES).map_or(max_end, |(end, _)| end);
    let text = if end < words.len() { format!("{}…", &words[..end]) } else { words };
    Block::Heading { level, text, line }
}

/// Returns the first heading of the highest level.
pub(super) fn first_heading(blocks: &[Block]) -> Option<String> {
    let headings = blocks.iter().filter_map(|block| match block {
        Block::Heading { level, text, .. } if !text.is_empty() => Some((*level, text)),
        _ => None,
    });
    headings.min_by_key(|(level, _)| *level).map(|(_, text)| text.clone())
}
