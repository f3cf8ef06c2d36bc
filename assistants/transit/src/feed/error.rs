use std::fmt;
use std::io;

/// An error in reading a feed.
///
/// Errors in the content of a feed name the file and, if applicable, the line and the column.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The folder or one of its files cannot be read.
    #[error("cannot read {file}")]
    Io {
        /// The file or folder.
        file: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The bytes are not a zip archive, or the archive is damaged.
    #[error("{file} is not a valid zip archive")]
    Archive {
        /// The member that could not be decompressed, or "the feed".
        file: String,
        /// The error of the archive reader.
        #[source]
        source: zip::result::ZipError,
    },
    /// A required file is missing.
    #[error("{file} is missing")]
    MissingFile {
        /// The file.
        file: &'static str,
    },
    /// A required column is missing.
    #[error("{file}: missing column {column}")]
    MissingColumn {
        /// The file.
        file: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A line has the wrong number of fields, or is not UTF-8.
    #[error("{file}, line {line}: expected {fields} fields, encoded in UTF-8")]
    Record {
        /// The file.
        file: &'static str,
        /// The line, counted from 1; the header is line 1.
        line: u64,
        /// The number of fields in the header.
        fields: usize,
    },
    /// A field is invalid.
    #[error("{file}, line {line}, column {column}: {problem}")]
    Field {
        /// The file.
        file: &'static str,
        /// The line, counted from 1; the header is line 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The problem with the value.
        problem: FieldProblem,
    },
    /// A file exceeds a limit of this crate.
    #[error("{file} exceeds {limit} {unit}")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit.
        limit: u64,
        /// The unit of the limit: "bytes" or "rows".
        unit: &'static str,
    },
    /// The feed uses a part of GTFS that is not supported and cannot be ignored.
    #[error("{file} is not supported")]
    Unsupported {
        /// The file.
        file: &'static str,
    },
}

/// The problem with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldProblem {
    /// The field is empty.
    Empty,
    /// The value is not of the expected kind.
    InvalidValue {
        /// The expected kind of value.
        expected: &'static str,
        /// The start of the value.
        value: String,
    },
    /// The field refers to a row that does not exist.
    Unknown {
        /// The start of the id.
        id: String,
    },
    /// The id is defined more than once.
    Repeated {
        /// The start of the id.
        id: String,
    },
    /// Two stops of the trip have the same sequence number.
    RepeatedSequence {
        /// The sequence number.
        sequence: u32,
    },
    /// A time is earlier than the previous time of the trip.
    BackInTime,
    /// A trip has no time at its first or last stop, or has fewer than two stops.
    Incomplete {
        /// The start of the trip's id.
        id: String,
    },
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("missing value"),
            Self::InvalidValue { expected, value } => write!(f, "{value:?} is not {expected}"),
            Self::Unknown { id } => write!(f, "{id:?} is not defined"),
            Self::Repeated { id } => write!(f, "{id:?} is defined more than once"),
            Self::RepeatedSequence { sequence } => write!(f, "\"{sequence}\" occurs more than once in the trip"),
            Self::BackInTime => f.write_str("the time is earlier than the previous time of the trip"),
            Self::Incomplete { id } => {
                write!(f, "trip {id:?} has fewer than two stops, or no time at its first or last stop")
            }
        }
    }
}

/// Truncates a value for an error message, because a field can be very long.
pub(super) fn truncated(value: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    value.chars().take(MAX_CHARACTERS).collect()
}
