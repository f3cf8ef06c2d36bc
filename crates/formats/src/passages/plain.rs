//! Splits plain text into paragraphs at blank lines.

use super::block::{Block, Paragraph};

pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut paragraph = Paragraph::default();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim().is_empty() {
            finish(&mut paragraph, &mut blocks);
        } else {
            paragraph.push(line, index + 1);
        }
    }
    finish(&mut paragraph, &mut blocks);
    blocks
}

fn finish(paragraph: &mut Paragraph, blocks: &mut Vec<Block>) {
    let paragraph = std::mem::take(paragraph);
    if !paragraph.is_blank() {
        blocks.push(Block::Paragraph(paragraph));
    }
}
