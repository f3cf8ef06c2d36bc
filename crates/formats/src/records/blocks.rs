//! Splits an Aider chat history (Markdown) into blocks: consecutive lines of the same kind.

use std::io::{self, BufRead};

use super::{Chunk, ChunkFault, Fault, FilePosition};

/// The start of the line that begins a session. A file starts with such a line, apart from whitespace.
pub(crate) const START: &str = "# aider chat started at ";
const USER: &str = "#### ";
const TOOL: &str = "> ";

/// The kind of a block's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A session begins.
    Start,
    /// The user wrote the block.
    User,
    /// The program wrote the block.
    Tool,
    /// The model wrote the block.
    Model,
}

impl Kind {
    pub(crate) fn of(line: &str) -> Self {
        // The program leaves no space after the mark of an empty line.
        if line.starts_with(START) {
            Self::Start
        } else if line.starts_with(USER) || line.trim_end() == USER.trim_end() {
            Self::User
        } else if line.starts_with(TOOL) || line.trim_end() == TOOL.trim_end() {
            Self::Tool
        } else {
            Self::Model
        }
    }

    fn of_bytes(line: &[u8]) -> Self {
        let start = &line[..line.len().min(START.len())];
        Self::of(&String::from_utf8_lossy(start))
    }
}

/// Reads blocks up to a maximum size, and skips larger ones. A blank line ends every block except those of the model.
pub(super) struct Blocks<R> {
    input: R,
    position: FilePosition,
    max_bytes: usize,
    /// The line that follows the last block.
    next: Option<Vec<u8>>,
}

impl<R: BufRead> Blocks<R> {
    pub(super) fn new(input: R, position: FilePosition, max_bytes: usize) -> Self {
        Self { input, position, max_bytes, next: None }
    }

    /// Reads a line, up to one byte more than the maximum size of a block. Returns `None` at the end of the file.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(line) = self.next.take() {
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        io::Read::take(&mut self.input, self.max_bytes as u64 + 1).read_until(b'\n', &mut line)?;
        Ok((!line.is_empty()).then_some(line))
    }
}

impl<R: BufRead> Iterator for Blocks<R> {
    type Item = Result<Chunk, ChunkFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut bytes, mut kind, mut is_too_long, mut start) = (Vec::new(), None, false, self.position);
        loop {
            let line = match self.read_line() {
                Ok(line) => line,
                Err(error) => return Some(Err(ChunkFault { line: self.position.line, fault: error.into() })),
            };
            let Some(line) = line else {
                let kind = kind?;
                // The program ends a message with a blank line. Without one, more may follow.
                let is_cut = match kind {
                    Kind::Start => !bytes.ends_with(b"\n"),
                    Kind::Model => !bytes.ends_with(b"\n\n"),
                    Kind::User | Kind::Tool if bytes.ends_with(b"\n") => return None,
                    Kind::User | Kind::Tool => true,
                };
                return match is_cut || is_too_long {
                    true => {
                        let reason = match is_too_long {
                            true => format!("block exceeds {} bytes", self.max_bytes),
                            false => "the file ends inside this message".to_owned(),
                        };
                        Some(Err(ChunkFault { line: start.line, fault: Fault::Record(reason) }))
                    }
                    false => Some(Ok(Chunk { position: start, bytes })),
                };
            };
            let is_blank = line.trim_ascii().is_empty();
            let line_kind = Kind::of_bytes(&line);
            let block_ends = match kind {
                None => false,
                Some(Kind::Model) => line_kind != Kind::Model,
                Some(kind) => is_blank || line_kind != kind || kind == Kind::Start,
            };
            // The kind of a truncated line is unknown, so it may continue the block.
            if block_ends && !is_blank && !line.ends_with(b"\n") && !bytes.ends_with(b"\n\n") {
                let reason = "the file ends inside this message".to_owned();
                return Some(Err(ChunkFault { line: start.line, fault: Fault::Record(reason) }));
            }
            if block_ends {
                self.next = Some(line);
                return Some(match is_too_long {
                    true => {
                        let reason = format!("block exceeds {} bytes", self.max_bytes);
                        Err(ChunkFault { line: start.line, fault: Fault::Record(reason) })
                    }
                    false => Ok(Chunk { position: start, bytes }),
                });
            }
            self.position.advance(&line);
            if kind.is_none() && is_blank {
                start = self.position;
                continue;
            }
            kind.get_or_insert(line_kind);
            if is_too_long || bytes.len() + line.len() > self.max_bytes {
                (bytes, is_too_long) = (Vec::new(), true);
            } else {
                bytes.extend_from_slice(&line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str, max_bytes: usize) -> Vec<Result<(u64, String), (u64, String)>> {
        let blocks = Blocks::new(text.as_bytes(), FilePosition::START, max_bytes);
        blocks
            .map(|chunk| match chunk {
                Ok(Chunk { position, bytes }) => Ok((position.line, String::from_utf8(bytes).unwrap())),
                Err(ChunkFault { line, fault }) => Err((line, fault.to_string())),
            })
            .collect()
    }

    #[test]
    fn blocks_end_where_another_kind_begins() {
        let text = "\n# aider chat started at X\n\n> tool  \n\n#### a  \n####   \n#### b  \n\nOne.\n\nTwo.\n\n> tool\n\n> not yet complete\n";
        let found: Vec<_> = blocks(text, 1_000).into_iter().map(Result::unwrap).collect();
        let expected = [
            (2, "# aider chat started at X\n"),
            (4, "> tool  \n"),
            (6, "#### a  \n####   \n#### b  \n"),
            (10, "One.\n\nTwo.\n\n"),
            (14, "> tool\n"),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn large_and_truncated_blocks_are_reported() {
        let large = "block exceeds 10 bytes".to_owned();
        assert_eq!(blocks("> a\n\nwords and words\n> b\n", 10)[1], Err((3, large.clone())));
        assert_eq!(blocks(&"x".repeat(100), 10), [Err((1, large))]);
        assert_eq!(blocks("> a\nwor", 10), [Err((1, "the file ends inside this message".to_owned()))]);
    }
}
