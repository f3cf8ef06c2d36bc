use std::fmt;
use std::io;

/// Why a feed was refused.
///
/// Everything that a publisher can get wrong names the file, and where there is one, the line and the column.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The folder or one of its files cannot be read.
    #[error("{file} cannot be read")]
    Io {
        /// The file or folder.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The bytes are no zip archive, or a damaged one.
    #[error("{file} is no zip archive, or damaged")]
    Archive {
        /// The member that could not be unpacked, or "the feed".
        file: String,
        /// What the reader of archives said.
        #[source]
        source: zip::result::ZipError,
    },
    /// A file that every feed has is not there.
    #[error("{file} is missing")]
    MissingFile {
        /// The file.
        file: &'static str,
    },
    /// A file lacks a column that it has to have.
    #[error("{file} has no column {column}")]
    MissingColumn {
        /// The file.
        file: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A line is no record of its table: too few or too many fields, or text that is not UTF-8.
    #[error("{file}, line {line}: not a record of {fields} fields in UTF-8")]
    Record {
        /// The file.
        file: &'static str,
        /// The line, counted from 1; the header is line 1.
        line: u64,
        /// How many fields the header has.
        fields: usize,
    },
    /// A field does not hold what its column asks for.
    #[error("{file}, line {line}, column {column}: {problem}")]
    Field {
        /// The file.
        file: &'static str,
        /// The line, counted from 1; the header is line 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What is wrong.
        problem: Problem,
    },
    /// A file is larger than any feed that this crate is meant for.
    #[error("{file} has more than {limit} {unit}")]
    TooLarge {
        /// The file.
        file: String,
        /// The largest number that is read.
        limit: u64,
        /// Of what: "bytes" or "rows".
        unit: &'static str,
    },
    /// The feed uses a part of GTFS that would be answered wrongly if it were passed over.
    #[error("{file} is a part of GTFS that is not supported")]
    Unsupported {
        /// The file.
        file: &'static str,
    },
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The field is empty.
    Empty,
    /// The field holds something else than the named kind of value.
    NotA {
        /// What the column asks for.
        expected: &'static str,
        /// The beginning of what stands there.
        value: String,
    },
    /// The field refers to a row that does not exist.
    Unknown {
        /// The beginning of the id.
        id: String,
    },
    /// The id was used before.
    Repeated {
        /// The beginning of the id.
        id: String,
    },
    /// A time lies before the one that precedes it on the trip.
    BackInTime,
    /// A trip begins or ends without a time, or has a single stop.
    Incomplete {
        /// The beginning of the trip's id.
        id: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing stands there"),
            Self::NotA { expected, value } => write!(f, "{value:?} is not {expected}"),
            Self::Unknown { id } => write!(f, "{id:?} is not defined anywhere"),
            Self::Repeated { id } => write!(f, "{id:?} was defined before"),
            Self::BackInTime => f.write_str("the trip goes back in time"),
            Self::Incomplete { id } => write!(f, "trip {id:?} has fewer than two stops, or no time at its ends"),
        }
    }
}

/// The beginning of a value, for a message: a feed may hold a megabyte in one field.
pub(super) fn beginning(value: &str) -> String {
    const SHOWN_CHARACTERS: usize = 40;
    value.chars().take(SHOWN_CHARACTERS).collect()
}
