//! Divides the screen. The state needs the sizes to scroll, and the view needs them to draw.

use ratatui::layout::Rect;

/// The minimum width of a screen that shows the list and the conversation side by side.
const WIDE_COLUMNS: u16 = 120;
/// The range of the width of the list beside a conversation.
const LIST_COLUMNS: (u16, u16) = (56, 90);
/// The rows above the list: the query, the status and a rule.
const HEAD_ROWS: u16 = 3;
/// The rows above the messages: the title, why the message was found, and a rule.
pub(super) const READER_HEAD_ROWS: u16 = 3;
/// The maximum width of running text, chosen for readability.
const TEXT_COLUMNS: u16 = 100;

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) query: Rect,
    pub(super) status: Rect,
    pub(super) rule: Rect,
    pub(super) list: Rect,
    /// The line between the list and the conversation.
    pub(super) divider: Rect,
    pub(super) reader: Rect,
    pub(super) help: Rect,
}

impl Areas {
    /// Divides a screen. A narrow screen shows either the list or the conversation; the area of the other one is empty.
    pub(super) fn new(columns: u16, rows: u16, is_reading: bool) -> Self {
        let screen = Rect::new(0, 0, columns, rows);
        let row = |row: u16| Rect::new(0, row, columns, 1).intersection(screen);
        let body = Rect::new(0, HEAD_ROWS, columns, rows.saturating_sub(HEAD_ROWS + 1)).intersection(screen);
        let none = Rect::default();
        let (list, divider, reader) = match (is_wide(columns), is_reading) {
            (true, _) => {
                let list = (columns / 5 * 2).clamp(LIST_COLUMNS.0, LIST_COLUMNS.1);
                let part = |x: u16, width: u16| Rect { x, width, ..body };
                (part(0, list), part(list, 1), part(list + 2, columns - list - 2))
            }
            (false, true) => (none, none, body),
            (false, false) => (body, none, none),
        };
        let help = Rect::new(0, rows.saturating_sub(1), columns, 1).intersection(screen);
        Self { query: row(0), status: row(1), rule: row(2), list, divider, reader, help }
    }

    /// Returns the number of rows for messages.
    pub(super) fn message_rows(&self) -> usize {
        usize::from(self.reader.height.saturating_sub(READER_HEAD_ROWS))
    }

    /// Returns the width of the text of messages.
    pub(super) fn text_columns(&self) -> usize {
        usize::from(self.reader.width.min(TEXT_COLUMNS))
    }
}

/// Whether a screen shows the list and the conversation side by side.
pub(super) fn is_wide(columns: u16) -> bool {
    columns >= WIDE_COLUMNS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_and_stay_on_the_screen() {
        for columns in 0..=250 {
            for (rows, is_reading) in (0..=60).flat_map(|rows| [(rows, false), (rows, true)]) {
                let areas = Areas::new(columns, rows, is_reading);
                let Areas { query, status, rule, list, divider, reader, help } = areas;
                let parts: Vec<Rect> =
                    [query, status, rule, list, divider, reader].into_iter().filter(|part| part.area() > 0).collect();
                for (at, part) in parts.iter().enumerate() {
                    assert!(part.right() <= columns && part.bottom() <= rows, "{areas:?}");
                    assert!(parts[at + 1..].iter().all(|other| !part.intersects(*other)), "{areas:?}");
                    assert!(rows < 5 || !part.intersects(help), "{areas:?}");
                }
            }
        }
    }

    #[test]
    fn wide_screens_show_both_parts() {
        let narrow = Areas::new(80, 24, false);
        assert_eq!((narrow.list.height, narrow.reader.area()), (20, 0));
        assert_eq!(Areas::new(80, 24, true).message_rows(), 17);
        let wide = Areas::new(200, 50, false);
        assert_eq!((wide.list.width, wide.reader.width, wide.text_columns()), (80, 118, 100));
    }
}
