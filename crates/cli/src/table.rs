//! Formats text tables without borders. Columns are separated by two spaces.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::Output;

/// The number of spaces between columns.
pub(crate) const GAP: usize = 2;
/// The minimum width of the names in [`pairs`].
const NAME_WIDTH: usize = 11;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The text of a cell, and its display width. Escape sequences do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    width: usize,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { width: text.width(), text }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// Creates a cell with styled text.
    pub(crate) fn styled(output: &Output, style: Style, text: &str) -> Self {
        Self::default().then(output, style, text)
    }

    /// Appends styled text to the cell.
    pub(crate) fn then(mut self, output: &Output, style: Style, text: &str) -> Self {
        if !text.is_empty() {
            self.text.push_str(&output.paint(style, text).to_string());
            self.width += text.width();
        }
        self
    }

    fn padded(&self, width: usize, align: Align) -> String {
        let padding = " ".repeat(width.saturating_sub(self.width));
        match align {
            Align::Left => format!("{}{padding}", self.text),
            Align::Right => format!("{padding}{}", self.text),
        }
    }
}

/// Rows below headers. Each column is as wide as its widest cell.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headers: Vec<(Cell, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new<T: Into<Cell>>(headers: impl IntoIterator<Item = (T, Align)>) -> Self {
        let headers = headers.into_iter().map(|(name, align)| (name.into(), align)).collect();
        Self { headers, rows: Vec::new() }
    }

    pub(crate) fn add_row<T: Into<Cell>>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Returns the width of the table in terminal columns.
    pub(crate) fn columns(&self) -> usize {
        let widths = (0..self.headers.len()).map(|column| self.width(column));
        widths.sum::<usize>() + GAP * self.headers.len().saturating_sub(1)
    }

    /// Returns the lines of the table without trailing spaces.
    pub(crate) fn text(&self) -> String {
        let header: Vec<Cell> = self.headers.iter().map(|(name, _)| name.clone()).collect();
        let widths: Vec<usize> = (0..header.len()).map(|column| self.width(column)).collect();
        let rule = "─".repeat(self.columns());
        let mut lines = vec![self.line(&header, &widths), rule];
        lines.extend(self.rows.iter().map(|row| self.line(row, &widths)));
        lines.join("\n")
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width);
        cells.chain([self.headers[column].0.width]).max().unwrap_or(0)
    }

    fn line(&self, row: &[Cell], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.headers);
        let cells: Vec<String> = cells.map(|((cell, width), (_, align))| cell.padded(*width, *align)).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

/// Formats names and values, one pair per line.
pub(crate) fn pairs<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let lines = rows.into_iter().map(|(name, value)| format!("{name:NAME_WIDTH$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a part of a whole as a rounded percentage: `12%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let rounded = (u128::from(part) * 200 + u128::from(whole)) / (u128::from(whole.max(1)) * 2);
    format!("{rounded}%")
}

/// Truncates the text to a number of columns and appends an ellipsis.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut room = columns.saturating_sub(1);
    for character in text.chars() {
        let width = character.width().unwrap_or(0);
        if width > room {
            break;
        }
        room -= width;
        cut.push(character);
    }
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Formats a number with thousands separators.
pub(crate) fn number(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// Formats a count with its noun: `1 thread`, `2 threads`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", number(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_fits_and_ends_with_an_ellipsis() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a longer text", 8), "a longe…");
        assert_eq!(cut("a longer text", 3), "a…");
        assert_eq!(cut("東京タワー", 5), "東京…");
        assert_eq!(cut("x", 0), "…");
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new([("name", Align::Left), ("count", Align::Right), ("note", Align::Left)]);
        table.add_row(["東京", "7", "wide"]);
        table.add_row(["x", "1,234", ""]);
        assert_eq!(table.text(), "name  count  note\n─────────────────\n東京      7  wide\nx     1,234");
        assert_eq!(pairs([("threads", "2".to_owned())]), "threads      2");
    }

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!(
            (number(1_234_567), counted(1, "thread"), counted(0, "thread")),
            ("1,234,567".to_owned(), "1 thread".to_owned(), "0 threads".to_owned())
        );
        let percents = [(0, 7), (1, 200), (2, 3), (5, 4), (0, 0)].map(|(part, whole)| percent(part, whole));
        assert_eq!(percents, ["0%", "1%", "67%", "125%", "0%"]);
    }
}
