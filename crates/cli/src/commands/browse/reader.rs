//! The conversation that is read: a window of its messages, wrapped to the width of the screen.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use textwrap::{Options, WordSeparator, WrapAlgorithm};
use threadkeep::core::text;

use super::rows::{MessageRow, ThreadInfo};

/// The maximum number of messages in memory.
const MAX_MESSAGES: usize = 150;
/// The indentation of the text of messages.
pub(super) const INDENT: &str = "  ";
/// The minimum width of text, even if the screen is narrower.
const MIN_COLUMNS: usize = 20;
const TAB: &str = "    ";

/// Which messages of a thread are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Last,
    Around(u64),
    Before(u64),
    After(u64),
}

/// Messages in the order of their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) messages: Vec<MessageRow>,
    /// Whether the thread has earlier messages, as far as the page shows.
    pub(super) has_earlier: bool,
    pub(super) has_later: bool,
}

/// The message for which a conversation was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) seq: u64,
    /// Why the message was found.
    pub(super) reasons: String,
    /// The stems of the words that match.
    stems: HashSet<String>,
}

impl Target {
    pub(super) fn new(seq: u64, reasons: String, words: &[&str]) -> Self {
        let stems = words.iter().flat_map(|word| text::indexed_terms(word)).collect();
        Self { seq, reasons, stems }
    }

    /// Returns the byte ranges of the words of a line that match.
    pub(super) fn find_matches(&self, line: &str) -> Vec<Range<usize>> {
        if self.stems.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut at = 0;
        for word in line.split(|c: char| !c.is_alphanumeric()) {
            let range = at..at + word.len();
            at = range.end + line[range.end..].chars().next().map_or(0, char::len_utf8);
            if !word.is_empty() && text::indexed_terms(word).iter().any(|term| self.stems.contains(term)) {
                found.push(range);
            }
        }
        found
    }
}

/// A message with its wrapped lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrappedMessage {
    pub(super) row: MessageRow,
    pub(super) lines: Vec<BodyLine>,
}

/// A line of a message's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BodyLine {
    pub(super) text: String,
    pub(super) is_dim: bool,
}

/// A line on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Heading,
    Body(&'a BodyLine),
    Empty,
}

impl WrappedMessage {
    fn new(row: MessageRow, columns: usize) -> Self {
        let lines = wrapped(&row, columns);
        Self { row, lines }
    }

    /// Returns the number of lines, with the heading and the empty line at the end.
    fn height(&self) -> usize {
        self.lines.len() + 2
    }

    fn line(&self, at: usize) -> Line<'_> {
        match at.checked_sub(1) {
            None => Line::Heading,
            Some(at) => self.lines.get(at).map_or(Line::Empty, Line::Body),
        }
    }
}

/// The conversation that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    pub(super) thread: ThreadInfo,
    /// The number of the request that loads this conversation.
    pub(super) generation: u64,
    pub(super) target: Option<Target>,
    pub(super) messages: VecDeque<WrappedMessage>,
    /// The selected message.
    pub(super) selected: usize,
    /// The first visible line, counted from the first message in memory.
    pub(super) top: usize,
    pub(super) is_loading: bool,
    has_earlier: bool,
    has_later: bool,
    columns: usize,
    rows: usize,
}

impl Reader {
    /// Creates a reader without messages.
    pub(super) fn new(
        thread: ThreadInfo,
        generation: u64,
        target: Option<Target>,
        columns: usize,
        rows: usize,
    ) -> Self {
        Self {
            thread,
            generation,
            target,
            messages: VecDeque::new(),
            selected: 0,
            top: 0,
            is_loading: true,
            has_earlier: false,
            has_later: false,
            columns: columns.max(MIN_COLUMNS),
            rows: rows.max(1),
        }
    }

    /// Adapts to the size of the screen. The first visible message stays visible.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        let columns = columns.max(MIN_COLUMNS);
        self.rows = rows.max(1);
        if columns != self.columns {
            let (first, _) = self.find_line(self.top);
            self.columns = columns;
            for message in &mut self.messages {
                message.lines = wrapped(&message.row, columns);
            }
            self.top = self.start_of(first);
        }
        self.clamp();
    }

    /// Adds a page.
    pub(super) fn add(&mut self, place: Place, page: Page) {
        self.is_loading = false;
        let columns = self.columns;
        let wrapped = page.messages.into_iter().map(|row| WrappedMessage::new(row, columns));
        match place {
            Place::First | Place::Last | Place::Around(_) => {
                self.messages = wrapped.collect();
                (self.has_earlier, self.has_later) = (page.has_earlier, page.has_later);
                self.go_to(place);
            }
            Place::Before(_) => {
                self.has_earlier = page.has_earlier;
                for message in wrapped.rev() {
                    self.top += message.height();
                    self.selected += 1;
                    self.messages.push_front(message);
                }
                while self.messages.len() > MAX_MESSAGES && self.selected + 1 < self.messages.len() {
                    self.messages.pop_back();
                    self.has_later = true;
                }
            }
            Place::After(_) => {
                self.has_later = page.has_later;
                self.messages.extend(wrapped);
                while self.messages.len() > MAX_MESSAGES && self.selected > 0 {
                    let removed = self.messages.pop_front().map_or(0, |message| message.height());
                    self.top = self.top.saturating_sub(removed);
                    self.selected -= 1;
                    self.has_earlier = true;
                }
            }
        }
        self.clamp();
    }

    /// Selects a message of a page that was just read.
    fn go_to(&mut self, place: Place) {
        let last = self.messages.len().saturating_sub(1);
        self.selected = match place {
            Place::Last => last,
            Place::Around(seq) => self.messages.iter().position(|message| message.row.seq >= seq).unwrap_or(last),
            _ => 0,
        };
        let start = self.start_of(self.selected);
        let first_match = self.target.as_ref().and_then(|target| {
            let message = self.messages.get(self.selected).filter(|message| message.row.seq == target.seq)?;
            message.lines.iter().position(|line| !line.is_dim && !target.find_matches(&line.text).is_empty())
        });
        // The match is in the upper third of the screen, and so is the heading if the message begins there.
        self.top = match place {
            Place::Last => self.line_count(),
            _ => (start + first_match.unwrap_or(0)).saturating_sub(self.rows / 3),
        };
        if first_match.is_none_or(|at| at + 1 < self.rows) && matches!(place, Place::Around(_)) {
            self.top = self.top.min(start).max(start.saturating_sub(self.rows / 3));
        }
    }

    /// Scrolls by a number of lines, up if negative.
    pub(super) fn scroll(&mut self, lines: isize) {
        self.top = self.top.saturating_add_signed(lines);
        self.clamp();
        let bottom = self.find_line(self.top + self.rows - 1).0;
        self.selected = self.selected.clamp(self.find_line(self.top).0, bottom);
    }

    pub(super) fn scroll_pages(&mut self, pages: isize) {
        // One line of the previous page stays visible.
        self.scroll(pages.saturating_mul(self.rows.saturating_sub(1).max(1).cast_signed()));
    }

    /// Selects the next or a previous message, and makes it visible.
    pub(super) fn select(&mut self, messages: isize) {
        self.selected = self.selected.saturating_add_signed(messages).min(self.messages.len().saturating_sub(1));
        let start = self.start_of(self.selected);
        let end = start + self.messages.get(self.selected).map_or(0, WrappedMessage::height);
        if end > self.top + self.rows {
            self.top = end.saturating_sub(self.rows);
        }
        self.top = self.top.min(start);
        self.clamp();
    }

    /// Stops after a failed read, which would fail again.
    pub(super) fn stop_loading(&mut self) {
        (self.is_loading, self.has_earlier, self.has_later) = (false, false, false);
    }

    /// Returns the place of the messages to load next, if the end of the messages in memory is near.
    pub(super) fn needs(&self) -> Option<Place> {
        if self.is_loading {
            return None;
        }
        let first = self.messages.front().filter(|_| self.has_earlier && self.top < self.rows);
        let last = self.messages.back().filter(|_| self.has_later && self.top + 2 * self.rows >= self.line_count());
        first.map(|first| Place::Before(first.row.seq)).or(last.map(|last| Place::After(last.row.seq)))
    }

    pub(super) fn selected_message(&self) -> Option<&MessageRow> {
        self.messages.get(self.selected).map(|message| &message.row)
    }

    /// Returns the visible lines, each with the index of its message.
    pub(super) fn visible_lines(&self) -> impl Iterator<Item = (usize, &WrappedMessage, Line<'_>)> {
        let lines = self.messages.iter().enumerate();
        let lines =
            lines.flat_map(|(at, message)| (0..message.height()).map(move |line| (at, message, message.line(line))));
        lines.skip(self.top).take(self.rows)
    }

    /// Whether there are messages outside the screen: before and after it.
    pub(super) fn has_outside(&self) -> (bool, bool) {
        (self.has_earlier || self.top > 0, self.has_later || self.top + self.rows < self.line_count())
    }

    fn line_count(&self) -> usize {
        self.messages.iter().map(WrappedMessage::height).sum()
    }

    /// Returns the first line of a message.
    fn start_of(&self, message: usize) -> usize {
        self.messages.iter().take(message).map(WrappedMessage::height).sum()
    }

    /// Returns the message that contains a line, or the last message; and the line in this message.
    fn find_line(&self, line: usize) -> (usize, usize) {
        let mut rest = line;
        for (at, message) in self.messages.iter().enumerate() {
            if rest < message.height() {
                return (at, rest);
            }
            rest -= message.height();
        }
        (self.messages.len().saturating_sub(1), rest)
    }

    fn clamp(&mut self) {
        // The empty line at the end need not be visible.
        self.top = self.top.min(self.line_count().saturating_sub(self.rows + 1));
        self.selected = self.selected.min(self.messages.len().saturating_sub(1));
    }
}

fn wrapped(row: &MessageRow, columns: usize) -> Vec<BodyLine> {
    let width = columns.saturating_sub(INDENT.len());
    let mut lines = Vec::new();
    for part in &row.parts {
        // URLs and arguments are broken only at spaces.
        let separator = if part.is_dim { WordSeparator::AsciiSpace } else { WordSeparator::new() };
        let options = Options::new(width).word_separator(separator).wrap_algorithm(WrapAlgorithm::FirstFit);
        for line in part.text.lines() {
            let line = line.replace('\t', TAB);
            let pieces = textwrap::wrap(&line, &options).into_iter();
            lines.extend(pieces.map(|text| BodyLine { text: text.trim_end().to_owned(), is_dim: part.is_dim }));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::rows::TextPart;
    use super::*;

    fn row(seq: u64, text: &str) -> MessageRow {
        let parts = vec![TextPart { text: text.to_owned(), is_dim: false }];
        MessageRow { seq, role: None, speaker: "user".to_owned(), details: format!(" · #{seq}"), parts }
    }

    fn page(seqs: Range<u64>, has_earlier: bool, has_later: bool) -> Page {
        Page { messages: seqs.map(|seq| row(seq, "one line")).collect(), has_earlier, has_later }
    }

    fn reader(target: Option<Target>) -> Reader {
        let id = "01a214d9-0f9c-7000-8000-000000000001".parse().unwrap();
        let thread = ThreadInfo { id, title: "t".to_owned(), source: String::new(), message_count: 1_000 };
        Reader::new(thread, 1, target, 40, 10)
    }

    /// The positions of the messages on the screen.
    fn visible(reader: &Reader) -> Vec<u64> {
        let mut seqs: Vec<u64> = reader.visible_lines().map(|(_, message, _)| message.row.seq).collect();
        seqs.dedup();
        seqs
    }

    #[test]
    fn a_hit_is_shown_in_its_place_and_selected() {
        let mut reader = reader(Some(Target::new(500, String::new(), &["line"])));
        assert_eq!(reader.needs(), None);
        reader.add(Place::Around(500), page(475..525, true, true));
        assert_eq!(visible(&reader), [499, 500, 501, 502]);
        assert_eq!(reader.selected_message().unwrap().seq, 500);
        assert_eq!(reader.needs(), None);
    }

    #[test]
    fn a_match_deep_in_a_long_message_is_visible() {
        let text = "word\n".repeat(300) + "the needles\n" + &"word\n".repeat(300);
        let mut reader = reader(Some(Target::new(2, String::new(), &["needle"])));
        let messages = vec![row(1, "before"), row(2, &text), row(3, "after")];
        reader.add(Place::Around(2), Page { messages, has_earlier: false, has_later: false });
        let lines: Vec<_> = reader.visible_lines().map(|(_, _, line)| line).collect();
        assert!(lines.iter().any(|line| matches!(line, Line::Body(line) if line.text == "the needles")), "{lines:?}");
    }

    #[test]
    fn pages_are_loaded_near_the_ends_and_memory_is_bounded() {
        let mut reader = reader(None);
        reader.add(Place::First, page(1..51, false, true));
        assert_eq!(visible(&reader)[0], 1);
        for _ in 0..3_000 {
            reader.scroll(1);
            if let Some(Place::After(seq)) = reader.needs() {
                let before = visible(&reader);
                reader.add(Place::After(seq), page(seq + 1..(seq + 51).min(1_001), true, seq + 51 < 1_001));
                assert_eq!(visible(&reader), before);
            }
            assert!(reader.messages.len() <= MAX_MESSAGES + 50);
        }
        assert_eq!(*visible(&reader).last().unwrap(), 1_000);
        assert_eq!(reader.needs(), None);
        for _ in 0..3_000 {
            reader.scroll(-1);
            if let Some(Place::Before(seq)) = reader.needs() {
                let before = visible(&reader);
                let start = seq.saturating_sub(50).max(1);
                reader.add(Place::Before(seq), page(start..seq, start > 1, true));
                assert_eq!(visible(&reader), before);
            }
            assert!(reader.messages.len() <= MAX_MESSAGES + 50);
        }
        assert_eq!((visible(&reader)[0], reader.top), (1, 0));
    }

    #[test]
    fn the_selection_is_always_on_the_screen() {
        let mut reader = reader(None);
        reader.add(Place::Last, page(1..51, false, false));
        assert_eq!(reader.selected_message().unwrap().seq, 50);
        for messages in [-1, -1, -10, 3, -100, 7, 100] {
            reader.select(messages);
            assert!(visible(&reader).contains(&reader.selected_message().unwrap().seq), "{messages}");
        }
        for lines in [-7, -30, 4, -1_000, 1_000] {
            reader.scroll(lines);
            assert!(visible(&reader).contains(&reader.selected_message().unwrap().seq), "{lines}");
        }
    }

    #[test]
    fn resizing_keeps_the_first_visible_message() {
        let mut reader = reader(None);
        let messages = (1..40).map(|seq| row(seq, &"some words ".repeat(40))).collect();
        reader.add(Place::First, Page { messages, has_earlier: false, has_later: false });
        reader.select(20);
        let first = visible(&reader)[0];
        for (columns, rows) in [(100, 30), (25, 5), (1, 1), (0, 0), (40, 10)] {
            reader.resize(columns, rows);
            assert_eq!(visible(&reader)[0], first, "{columns}×{rows}");
        }
    }

    #[test]
    fn every_form_of_a_word_matches() {
        let target = Target::new(1, String::new(), &["ledger", "Córdoba"]);
        let line = "Ledgers, (ledger) cordoba legs";
        let found: Vec<&str> = target.find_matches(line).into_iter().map(|range| &line[range]).collect();
        assert_eq!(found, ["Ledgers", "ledger", "cordoba"]);
        assert!(Target::new(1, String::new(), &[]).find_matches(line).is_empty());
    }
}
