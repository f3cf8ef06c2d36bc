//! A CSV table of a feed: access to columns by name, and errors with locations.

use csv::StringRecord;
use jiff::civil::Date;

use super::error::{FeedError, FieldProblem, truncated};
use super::files::Files;

/// The maximum number of rows of a table. New York has 556,275 stop times.
const ROW_LIMIT: u64 = 20_000_000;

pub(super) struct Table {
    file: &'static str,
    headers: Vec<String>,
    reader: csv::Reader<std::io::Cursor<Vec<u8>>>,
}

/// A column of the table.
#[derive(Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    index: usize,
}

impl Column {
    pub(super) fn name(self) -> &'static str {
        self.name
    }
}

/// A row and its line number.
pub(super) struct Row {
    file: &'static str,
    record: StringRecord,
    line: u64,
}

impl Table {
    /// Opens a table. Returns `None` if the feed does not contain it.
    pub(super) fn find(files: &mut Files, file: &'static str) -> Result<Option<Self>, FeedError> {
        let Some(mut bytes) = files.find(file)? else { return Ok(None) };
        if bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        let mut reader = csv::ReaderBuilder::new().from_reader(std::io::Cursor::new(bytes));
        let headers = reader.headers().map_err(|_| FeedError::Record { file, line: 1, fields: 1 })?;
        let headers = headers.iter().map(|header| header.trim().to_owned()).collect();
        Ok(Some(Self { file, headers, reader }))
    }

    pub(super) fn open(files: &mut Files, file: &'static str) -> Result<Self, FeedError> {
        Self::find(files, file)?.ok_or(FeedError::MissingFile { file })
    }

    pub(super) fn column(&self, name: &'static str) -> Result<Column, FeedError> {
        self.find_column(name).ok_or(FeedError::MissingColumn { file: self.file, column: name })
    }

    pub(super) fn find_column(&self, name: &'static str) -> Option<Column> {
        self.headers.iter().position(|header| header == name).map(|index| Column { name, index })
    }

    /// Calls `visit` with each row, in the order of the file.
    pub(super) fn for_each(mut self, mut visit: impl FnMut(&Row) -> Result<(), FeedError>) -> Result<(), FeedError> {
        let mut row = Row { file: self.file, record: StringRecord::new(), line: 1 };
        let mut count = 0;
        loop {
            match self.reader.read_record(&mut row.record) {
                Ok(false) => return Ok(()),
                Ok(true) => {}
                Err(error) => {
                    let line = error.position().map_or(row.line, csv::Position::line);
                    return Err(FeedError::Record { file: self.file, line, fields: self.headers.len() });
                }
            }
            row.line = row.record.position().map_or(row.line, csv::Position::line);
            count += 1;
            if count > ROW_LIMIT {
                return Err(FeedError::TooLarge { file: self.file.to_owned(), limit: ROW_LIMIT, unit: "rows" });
            }
            visit(&row)?;
        }
    }
}

impl Row {
    /// Returns the text of a field, or an empty string if it is missing.
    pub(super) fn text(&self, column: Column) -> &str {
        self.record.get(column.index).unwrap_or_default().trim()
    }

    pub(super) fn optional_text(&self, column: Option<Column>) -> &str {
        column.map(|column| self.text(column)).unwrap_or_default()
    }

    pub(super) fn required_text(&self, column: Column) -> Result<&str, FeedError> {
        match self.text(column) {
            "" => Err(self.problem(column, FieldProblem::Empty)),
            text => Ok(text),
        }
    }

    /// Reads a number; `None` if the field is empty.
    pub(super) fn number(&self, column: Option<Column>) -> Result<Option<u32>, FeedError> {
        let Some(column) = column else { return Ok(None) };
        match self.text(column) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| self.not_a(column, "a non-negative integer")),
        }
    }

    pub(super) fn required_number(&self, column: Column) -> Result<u32, FeedError> {
        self.number(Some(column))?.ok_or_else(|| self.problem(column, FieldProblem::Empty))
    }

    /// Reads degrees; `None` if the field is empty.
    pub(super) fn degrees(&self, column: Option<Column>, limit: f64) -> Result<Option<f64>, FeedError> {
        let Some(column) = column else { return Ok(None) };
        match self.text(column) {
            "" => Ok(None),
            text => {
                let degrees = text.parse::<f64>().ok().filter(|degrees| degrees.abs() <= limit);
                degrees.map(Some).ok_or_else(|| self.not_a(column, "a valid number of degrees"))
            }
        }
    }

    /// Reads a time as seconds since the start of the service day; `None` if the field is empty. The time can exceed
    /// 24:00:00.
    pub(super) fn time(&self, column: Column) -> Result<Option<u32>, FeedError> {
        match self.text(column) {
            "" => Ok(None),
            text => parse_time(text).map(Some).ok_or_else(|| self.not_a(column, "a time such as 25:04:30")),
        }
    }

    pub(super) fn date(&self, column: Column) -> Result<Date, FeedError> {
        let text = self.required_text(column)?;
        parse_date(text).ok_or_else(|| self.not_a(column, "a date such as 20240318"))
    }

    pub(super) fn flag(&self, column: Column) -> Result<bool, FeedError> {
        match self.text(column) {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.not_a(column, "0 or 1")),
        }
    }

    pub(super) fn not_a(&self, column: Column, expected: &'static str) -> FeedError {
        self.problem(column, FieldProblem::InvalidValue { expected, value: truncated(self.text(column)) })
    }

    pub(super) fn unknown(&self, column: Column) -> FeedError {
        self.problem(column, FieldProblem::Unknown { id: truncated(self.text(column)) })
    }

    pub(super) fn repeated(&self, column: Column) -> FeedError {
        self.problem(column, FieldProblem::Repeated { id: truncated(self.text(column)) })
    }

    pub(super) fn problem(&self, column: Column, problem: FieldProblem) -> FeedError {
        FeedError::Field { file: self.file, line: self.line, column: column.name, problem }
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }
}

/// Parses `H:MM:SS` or `HH:MM:SS`, with hours up to 99.
pub(crate) fn parse_time(text: &str) -> Option<u32> {
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let is_well_formed = parts.next().is_none() && minutes.len() == 2 && seconds.len() == 2 && hours.len() <= 2;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    let (hours, minutes, seconds): (u32, u32, u32) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
    (is_well_formed && minutes < 60 && seconds < 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Parses `YYYYMMDD`.
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, month, day) = (text[..4].parse().ok()?, text[4..6].parse().ok()?, text[6..].parse().ok()?);
    Date::new(year, month, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_can_exceed_24_hours() {
        assert_eq!(parse_time("6:47:30"), Some(24_450));
        assert_eq!(parse_time("27:49:00"), Some(100_140));
        for wrong in ["", "6:47", "06:60:00", "06:00:5", "-1:00:00", "+1:00:00", "6:47:30:1", "100:00:00", "aa:00:00"] {
            assert_eq!(parse_time(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn dates_have_eight_digits() {
        assert_eq!(parse_date("20240318"), Date::new(2024, 3, 18).ok());
        for wrong in ["2024-3-18", "20240230", "2024031", "2024031é", ""] {
            assert_eq!(parse_date(wrong), None, "{wrong:?}");
        }
    }
}
