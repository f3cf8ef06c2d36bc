//! Tables for people: no frame, columns apart by two spaces.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Makes a table with headers, as wide as its content.
pub(crate) fn new(headers: &[(&str, Side)]) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    let style = TableStyle::new().header_separator(line);
    table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headers.iter().map(|(name, _)| *name));
    for (column, (_, side)) in table.column_iter_mut().zip(headers) {
        column.set_padding((0, 1));
        if *side == Side::Right {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Makes a table of names and values without headers.
pub(crate) fn pairs<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
    for (name, value) in rows {
        table.add_row([Cell::new(name), Cell::new(value)]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(13)));
    }
    table
}

/// A table's lines without the spaces at their ends.
pub(crate) fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Cuts a text to a number of columns, with a mark where it is cut.
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

/// A number with its thousands apart.
pub(crate) fn number(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// `1 thread`, `2 threads`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", number(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_fits_and_says_so() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a longer text", 8), "a longe…");
        assert_eq!(cut("a longer text", 3), "a…");
        assert_eq!(cut("東京タワー", 5), "東京…");
        assert_eq!(cut("x", 0), "…");
    }

    #[test]
    fn numbers_are_read_easily() {
        assert_eq!(
            (number(1_234_567), counted(1, "thread"), counted(0, "thread")),
            ("1,234,567".to_owned(), "1 thread".to_owned(), "0 threads".to_owned())
        );
    }
}
